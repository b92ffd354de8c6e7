package batchapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// malformed is a request that must be refused, and a part of the message.
type malformed struct{ op, body, want string }

// edit returns a JSON object with members changed; a member set to nil is
// removed.
func edit(tb testing.TB, object string, changes ...any) string {
	tb.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		tb.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		name := changes[i].(string)
		if changes[i+1] == nil {
			delete(members, name)
		} else {
			members[name] = changes[i+1]
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func TestMalformedRequests(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	h.fifo(t)
	h.fair(t)
	job := h.submit(t, "job", "fifo", "", "")
	h.reach(t, job, "RUNNING")

	const (
		environment = `{"serviceEnvironmentName":"new","serviceEnvironmentType":"SAGEMAKER_TRAINING","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":3}]}`
		byUse       = `{"name":"new","fairsharePolicy":{"shareDecaySeconds":3600,"computeReservation":1,"shareDistribution":[{"shareIdentifier":"a","weightFactor":0.5}]}}`
		byUseARN    = arnPrefix + "scheduling-policy/byuse"
		policy      = `{"name":"new","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"}}`
		queue       = `{"jobQueueName":"new","priority":1,"jobQueueType":"SAGEMAKER_TRAINING","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"counted"}]}`
		share       = `{"quotaShareName":"new","jobQueue":"queue","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}],"resourceSharingConfiguration":{"strategy":"LEND"},"preemptionConfiguration":{"inSharePreemption":"ENABLED"}}`
		shareARN    = arnPrefix + "job-queue/queue/quota-share/QS1"
		policyARN   = arnPrefix + "scheduling-policy/policy"
		elsewhere   = "arn:aws:batch:eu-west-1:123456789012:job-queue/queue"
		long        = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	)
	submit := submission("new", "queue", "QS1", "")
	env := func(changes ...any) string { return edit(t, environment, changes...) }
	pol := func(changes ...any) string { return edit(t, policy, changes...) }
	fss := func(member, value string) string {
		return edit(t, byUse, "fairsharePolicy", raw(`{"`+member+`":`+value+`}`))
	}
	weight := func(value string) string {
		return fss("shareDistribution", `[{"shareIdentifier":"a","weightFactor":`+value+`}]`)
	}
	que := func(changes ...any) string { return edit(t, queue, changes...) }
	sha := func(changes ...any) string { return edit(t, share, changes...) }
	sub := func(changes ...any) string { return edit(t, submit, changes...) }
	action := func(reason, state, action, seconds string) json.RawMessage {
		return raw(fmt.Sprintf(`[{"reason":%s,"state":%s,"action":%s,"maxTimeSeconds":%s}]`, reason, state, action, seconds))
	}
	const stuck = `"MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE"`
	tags := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		return m
	}

	cases := []malformed{
		// Not a JSON object at all, whatever the operation.
		{"createserviceenvironment", `nonsense`, "not JSON"},
		{"createserviceenvironment", `{"serviceEnvironmentName":`, "before it is complete"},
		{"createserviceenvironment", `[]`, "is a list; it must be a JSON object"},
		{"createserviceenvironment", `null`, "is null; it must be a JSON object"},
		{"createserviceenvironment", environment + `x`, "goes on after"},
		{"createserviceenvironment", environment + environment, "goes on after"},
		{"createserviceenvironment", `{"serviceEnvironmentName":"a","serviceEnvironmentName":"b"}`, "serviceEnvironmentName is given twice"},
		{"createserviceenvironment", "{\"serviceEnvironmentName\":\"\xff\"}", "not valid UTF-8"},
		{"createserviceenvironment", `{"x":` + strings.Repeat(`[`, 5000), "more than 64 levels"},
		{"submitservicejob", `{"jobName":"a"`, "before it is complete"},
		{"describejobqueues", `"a"`, "it must be a JSON object"},
		{"getjobqueuesnapshot", `1`, "it must be a JSON object"},

		// Service environments.
		{"createserviceenvironment", `{}`, "serviceEnvironmentName is missing"},
		{"createserviceenvironment", ``, "serviceEnvironmentName is missing"},
		{"createserviceenvironment", env("serviceEnvironmentName", nil), "serviceEnvironmentName is missing"},
		{"createserviceenvironment", env("serviceEnvironmentName", raw("null")), "serviceEnvironmentName is missing"},
		{"createserviceenvironment", env("serviceEnvironmentName", ""), "serviceEnvironmentName is missing"},
		{"createserviceenvironment", env("serviceEnvironmentName", 5), "serviceEnvironmentName is the number 5; it must be a string"},
		{"createserviceenvironment", env("serviceEnvironmentName", "a b"), `Service environment name should match a valid pattern.`},
		{"createserviceenvironment", env("serviceEnvironmentName", "é"), `serviceEnvironmentName is "é"`},
		{"createserviceenvironment", env("serviceEnvironmentName", long), "1 to 128 letters"},
		{"createserviceenvironment", env("serviceEnvironmentType", nil), "serviceEnvironmentType is missing"},
		{"createserviceenvironment", env("serviceEnvironmentType", "EC2"), `serviceEnvironmentType is "EC2"; use SAGEMAKER_TRAINING`},
		{"createserviceenvironment", env("state", "enabled"), `state is "enabled"; use ENABLED or DISABLED`},
		{"createserviceenvironment", env("state", true), "state is true; it must be a string"},
		{"createserviceenvironment", env("capacityLimits", nil), "Capacitylimits are required."},
		{"createserviceenvironment", env("capacityLimits", raw(`[]`)), "Capacitylimits are required."},
		{"createserviceenvironment", env("capacityLimits", raw(`{}`)), "capacityLimits is an object; it must be a list"},
		{"createserviceenvironment", env("capacityLimits", raw(`[7]`)), "capacityLimits[0] is the number 7; it must be an object"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"maxCapacity":1}]`)), "capacityLimits[0].capacityUnit is missing"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge"}]`)), "capacityLimits[0].maxCapacity is missing"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge","maxCapacity":"3"}]`)), `capacityLimits[0].maxCapacity is the string "3"; it must be a whole number`},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1.5}]`)), "maxCapacity is the number 1.5; it must be a whole number"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge","maxCapacity":99999999999}]`)), "maxCapacity is the number 99999999999"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge","maxCapacity":0}]`)), "Max capacity must be more than 0."},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge","maxCapacity":-1}]`)), "Max capacity must be more than 0."},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"gpus","maxCapacity":1}]`)), "gpus is unknown capacity unit"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"ml.g5.xlarge/vcpu","maxCapacity":1}]`)), "ml.g5.xlarge/vcpu is unknown capacity unit"},
		{"createserviceenvironment", env("capacityLimits", raw(`[{"capacityUnit":"NUM_INSTANCES","maxCapacity":1},{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}]`)), "Capacity units must specify either number of instances OR instance type"},
		{"createserviceenvironment", env("capacityLimits", raw(`[`+strings.Repeat(`{"capacityUnit":"ml.g5.xlarge","maxCapacity":1},`, 5)+`{"capacityUnit":"ml.p5.48xlarge","maxCapacity":1}]`)), "Number of capacity limits exceeds 5."},
		{"createserviceenvironment", env("tags", raw(`[]`)), "tags is a list; it must be an object"},
		{"createserviceenvironment", env("tags", raw(`{"a":1}`)), "tags.a is the number 1; it must be a string"},
		{"createserviceenvironment", env("tags", tags(51)), "tags has 51 entries; use at most 50"},
		{"createserviceenvironment", env("tags", map[string]string{"": "v"}), "use 1 to 128"},
		{"createserviceenvironment", env("tags", map[string]string{long: "v"}), "use 1 to 128"},
		{"createserviceenvironment", env("tags", map[string]string{"k": long + long}), "use at most 256"},
		{"createserviceenvironment", env("serviceEnvironmentName", "env"), "Object already exists"},
		{"updateserviceenvironment", `{}`, "serviceEnvironment is missing"},
		{"updateserviceenvironment", `{"serviceEnvironment":"none"}`, "Service environment none does not exist"},
		{"updateserviceenvironment", `{"serviceEnvironment":"env","state":"ON"}`, `state is "ON"`},
		{"updateserviceenvironment", `{"serviceEnvironment":"env","capacityLimits":[]}`, "Capacitylimits are required."},
		{"updateserviceenvironment", `{"serviceEnvironment":"` + policyARN + `"}`, "the ARN of a scheduling-policy; it must be that of a service-environment"},
		{"deleteserviceenvironment", `{"serviceEnvironment":7}`, "serviceEnvironment is the number 7"},
		{"deleteserviceenvironment", `{"serviceEnvironment":"none"}`, "does not exist"},
		{"deleteserviceenvironment", `{"serviceEnvironment":"env"}`, "env"},
		{"describeserviceenvironments", `{"serviceEnvironments":"env"}`, `serviceEnvironments is the string "env"; it must be a list`},
		{"describeserviceenvironments", `{"serviceEnvironments":[1]}`, "serviceEnvironments[0] is the number 1; it must be a string"},
		{"describeserviceenvironments", `{"maxResults":0}`, "maxResults is the number 0; it must be a whole number from 1 to 100"},
		{"describeserviceenvironments", `{"maxResults":101}`, "from 1 to 100"},
		{"describeserviceenvironments", `{"maxResults":"5"}`, `maxResults is the string "5"`},
		{"describeserviceenvironments", `{"nextToken":"abc"}`, `nextToken is "abc", which is not a token`},
		{"describeserviceenvironments", `{"nextToken":"%%%"}`, "which is not a token"},
		{"describeserviceenvironments", `{"nextToken":5}`, "nextToken is the number 5"},
		{"describeserviceenvironments", `{"serviceEnvironments":[` + strings.Repeat(`"a",`, 100) + `"b"]}`, "serviceEnvironments has 101 entries; name at most 100"},

		// Scheduling policies.
		{"createschedulingpolicy", `{}`, "name is missing"},
		{"createschedulingpolicy", pol("name", "a/b"), "Scheduling policy name should match a valid pattern."},
		{"createschedulingpolicy", pol("quotaSharePolicy", nil), "A scheduling policy can have either fairsharePolicy or quotaSharePolicy"},
		{"createschedulingpolicy", pol("fairsharePolicy", raw(`{}`)), "A scheduling policy can have either fairsharePolicy or quotaSharePolicy"},
		{"createschedulingpolicy", pol("quotaSharePolicy", raw("null")), "A scheduling policy can have either fairsharePolicy or quotaSharePolicy"},
		{"createschedulingpolicy", edit(t, byUse, "fairsharePolicy", 5), "fairsharePolicy is the number 5; it must be an object"},
		{"createschedulingpolicy", fss("shareDecaySeconds", `604801`), "shareDecaySeconds is 604801; use 0 to 604800"},
		{"createschedulingpolicy", fss("shareDecaySeconds", `-1`), "shareDecaySeconds is -1; use 0 to 604800"},
		{"createschedulingpolicy", fss("shareDecaySeconds", `1.5`), "fairsharePolicy.shareDecaySeconds is the number 1.5; it must be a whole number"},
		{"createschedulingpolicy", fss("computeReservation", `100`), "computeReservation is 100; use 0 to 99"},
		{"createschedulingpolicy", fss("computeReservation", `"1"`), `fairsharePolicy.computeReservation is the string "1"; it must be a whole number`},
		{"createschedulingpolicy", fss("shareDistribution", `{}`), "fairsharePolicy.shareDistribution is an object; it must be a list"},
		{"createschedulingpolicy", fss("shareDistribution", `[{"weightFactor":1}]`), "fairsharePolicy.shareDistribution[0].shareIdentifier is missing"},
		{"createschedulingpolicy", fss("shareDistribution", `[{"shareIdentifier":"team-a"}]`), "ShareIdentifier name should match a valid pattern."},
		{"createschedulingpolicy", fss("shareDistribution", `[{"shareIdentifier":"a"},{"shareIdentifier":"a","weightFactor":2}]`), "Cannot have two or more identical shareIdentifiers."},
		{"createschedulingpolicy", fss("shareDistribution", `[{"shareIdentifier":"UserA*"},{"shareIdentifier":"UserA1"}]`), "Share identifier UserA1 matches another share identifier UserA*"},
		{"createschedulingpolicy", fss("shareDistribution", `[`+strings.Repeat(`{"shareIdentifier":"a"},`, 500)+`{"shareIdentifier":"b"}]`), "ShareDistribution size cannot be greater than 500."},
		{"createschedulingpolicy", weight(`0`), "Weight factor should be between 0.0001 and 999.9999."},
		{"createschedulingpolicy", weight(`0.00009`), "Weight factor should be between 0.0001 and 999.9999."},
		{"createschedulingpolicy", weight(`1000`), "Weight factor should be between 0.0001 and 999.9999."},
		{"createschedulingpolicy", weight(`1e400`), "fairsharePolicy.shareDistribution[0].weightFactor is the number 1e400; it must be a number"},
		{"createschedulingpolicy", weight(`"1"`), `weightFactor is the string "1"; it must be a number`},
		{"createschedulingpolicy", pol("quotaSharePolicy", raw(`{}`)), "Idle resource assignment strategy must be one of [FIFO]."},
		{"createschedulingpolicy", pol("quotaSharePolicy", raw(`{"idleResourceAssignmentStrategy":"LIFO"}`)), `"LIFO"`},
		{"createschedulingpolicy", pol("quotaSharePolicy", raw(`{"idleResourceAssignmentStrategy":"FAIR_SHARE"}`)), `must be one of [FIFO]. idleResourceAssignmentStrategy is "FAIR_SHARE"`},
		{"createschedulingpolicy", pol("quotaSharePolicy", 5), "quotaSharePolicy is the number 5; it must be an object"},
		{"createschedulingpolicy", pol("name", "policy"), "Object already exists"},
		{"updateschedulingpolicy", `{}`, "arn is missing"},
		{"updateschedulingpolicy", `{"arn":"policy"}`, `arn is "policy"; it must be an ARN such as arn:aws:batch:`},
		{"updateschedulingpolicy", `{"arn":"` + policyARN + `","fairsharePolicy":{}}`, "the kind of a policy does not change"},
		{"updateschedulingpolicy", `{"arn":"` + byUseARN + `","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"}}`, "the kind of a policy does not change"},
		{"updateschedulingpolicy", `{"arn":"` + byUseARN + `","fairsharePolicy":{},"quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"}}`, "A scheduling policy can have either fairsharePolicy or quotaSharePolicy"},
		{"updateschedulingpolicy", `{"arn":"` + byUseARN + `","fairsharePolicy":{"computeReservation":-1}}`, "computeReservation is -1"},
		{"deleteschedulingpolicy", `{"arn":"` + byUseARN + `"}`, "is used by job queues: fair"},
		{"updateschedulingpolicy", `{"arn":"` + policyARN + `","quotaSharePolicy":{}}`, "must be one of [FIFO]."},
		{"deleteschedulingpolicy", `{"arn":"` + policyARN + `"}`, "is used by job queues: queue"},
		{"deleteschedulingpolicy", `{"arn":"` + policyARN + `x"}`, "not found"},
		{"describeschedulingpolicies", `{}`, "arns is missing"},
		{"describeschedulingpolicies", `{"arns":["policy"]}`, `arns[0] is "policy"; it must be an ARN`},
		{"describeschedulingpolicies", `{"arns":[` + strings.Repeat(`"a",`, 100) + `"b"]}`, "arns has 101 entries"},
		{"listschedulingpolicies", `{"maxResults":-1}`, "from 1 to 100"},

		// Job queues.
		{"createjobqueue", `{}`, "jobQueueName is missing"},
		{"createjobqueue", que("jobQueueName", "a b"), "Job Queue name should match a valid pattern."},
		{"createjobqueue", que("priority", nil), "priority is missing"},
		{"createjobqueue", que("priority", "1"), `priority is the string "1"; it must be a whole number`},
		{"createjobqueue", que("priority", -1), "priority is -1; use 0 to 1000"},
		{"createjobqueue", que("priority", 1001), "priority is 1001; use 0 to 1000"},
		{"createjobqueue", que("jobQueueType", nil), "The jobQueueType provided is ECS, which is incompatible with the provided serviceEnvironmentOrder."},
		{"createjobqueue", que("jobQueueType", "EKS"), "The jobQueueType provided is EKS, which is incompatible"},
		{"createjobqueue", que("serviceEnvironmentOrder", nil), "must have serviceEnvironmentOrder."},
		{"createjobqueue", que("serviceEnvironmentOrder", raw(`[]`)), "must have serviceEnvironmentOrder."},
		{"createjobqueue", que("serviceEnvironmentOrder", raw(`[{"order":1,"serviceEnvironment":"counted"},{"order":2,"serviceEnvironment":"env"}]`)), "Job queue can only have 1 service environment."},
		{"createjobqueue", que("serviceEnvironmentOrder", raw(`[{"serviceEnvironment":"counted"}]`)), "serviceEnvironmentOrder[0].order is missing"},
		{"createjobqueue", que("serviceEnvironmentOrder", raw(`[{"order":1}]`)), "serviceEnvironmentOrder[0].serviceEnvironment is missing"},
		{"createjobqueue", que("serviceEnvironmentOrder", raw(`[{"order":1,"serviceEnvironment":"none"}]`)), "Service environments must be created and valid before attaching them to a job queue."},
		{"createjobqueue", que("computeEnvironmentOrder", raw(`[{"order":1,"computeEnvironment":"c"}]`)), "compute environments are not supported by this server"},
		{"createjobqueue", que("schedulingPolicyArn", "policy"), "schedulingPolicyArn is \"policy\"; it must be an ARN"},
		{"createjobqueue", que("schedulingPolicyArn", policyARN), "limited by NUM_INSTANCES"},
		{"createjobqueue", que("state", "PAUSED"), `state is "PAUSED"`},
		{"createjobqueue", que("jobStateTimeLimitActions", action(`"BOREDOM"`, `"RUNNABLE"`, `"TERMINATE"`, `600`)), `reason "BOREDOM"`},
		{"createjobqueue", que("jobStateTimeLimitActions", action(stuck, `"RUNNING"`, `"TERMINATE"`, `600`)), `jobStateTimeLimitActions[0].state is "RUNNING"; use RUNNABLE`},
		{"createjobqueue", que("jobStateTimeLimitActions", action(stuck, `"RUNNABLE"`, `"CANCEL"`, `600`)), "Invalid job action. Valid job actions: [TERMINATE]"},
		{"createjobqueue", que("jobStateTimeLimitActions", action(stuck, `"RUNNABLE"`, `"TERMINATE"`, `599`)), "is 599; use 600 to 86400"},
		{"createjobqueue", que("jobStateTimeLimitActions", action(stuck, `"RUNNABLE"`, `"TERMINATE"`, `86401`)), "is 86401; use 600 to 86400"},
		{"createjobqueue", que("jobQueueName", "queue"), "Object already exists"},
		{"updatejobqueue", `{"jobQueue":"none"}`, "Job queue none does not exist"},
		{"updatejobqueue", `{"jobQueue":"` + elsewhere + `"}`, `in region "eu-west-1"; this server's region is us-east-1`},
		{"updatejobqueue", `{"jobQueue":"arn:aws:batch:us-east-1:999999999999:job-queue/queue"}`, `in account "999999999999"; this server's account is 123456789012`},
		{"updatejobqueue", `{"jobQueue":"arn:aws-cn:batch:us-east-1:123456789012:job-queue/queue"}`, `in partition "aws-cn"`},
		{"updatejobqueue", `{"jobQueue":"arn:aws:sagemaker:us-east-1:123456789012:job-queue/queue"}`, `in service "sagemaker"`},
		{"updatejobqueue", `{"jobQueue":"arn:aws:batch"}`, "it must be an ARN such as"},
		{"updatejobqueue", `{"jobQueue":"` + arnPrefix + `job-queue/"}`, "one name must follow job-queue/"},
		{"updatejobqueue", `{"jobQueue":"` + arnPrefix + `job-queue/a/b"}`, "one name must follow job-queue/"},
		{"updatejobqueue", `{"jobQueue":"queue","schedulingPolicyArn":""}`, "schedulingPolicyArn is missing"},
		{"updatejobqueue", `{"jobQueue":"queue","schedulingPolicyArn":"` + byUseARN + `"}`, "Replace it by another one with a quotaSharePolicy"},
		{"updatejobqueue", `{"jobQueue":"fair","schedulingPolicyArn":"` + policyARN + `"}`, "Replace it by another one with a fairsharePolicy"},
		{"updatejobqueue", `{"jobQueue":"fair","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"env"}]}`, "used for quota management by job queue queue alone"},
		{"updatejobqueue", `{"jobQueue":"queue","serviceEnvironmentOrder":[]}`, "must have serviceEnvironmentOrder."},
		{"updatejobqueue", `{"jobQueue":"queue","priority":1.0}`, "priority is the number 1.0; it must be a whole number"},
		{"deletejobqueue", `{"jobQueue":"queue"}`, "Set it to DISABLED before deleting it"},
		{"deletejobqueue", `{"jobQueue":"none"}`, "does not exist"},
		{"describejobqueues", `{"jobQueues":["` + elsewhere + `"]}`, "jobQueues[0] is"},
		{"getjobqueuesnapshot", `{}`, "jobQueue is missing"},
		{"getjobqueuesnapshot", `{"jobQueue":"none"}`, "does not exist"},

		// Quota shares.
		{"createquotashare", `{}`, "jobQueue is missing"},
		{"createquotashare", sha("quotaShareName", nil), "quotaShareName is missing"},
		{"createquotashare", sha("quotaShareName", "a b"), "Quota share name should match a valid pattern."},
		{"createquotashare", sha("jobQueue", "none"), "Job queue none does not exist"},
		{"createquotashare", sha("jobQueue", "fifo"), "no scheduling policy with quota shares"},
		{"createquotashare", sha("jobQueue", "fair"), "no scheduling policy with quota shares"},
		{"createquotashare", sha("capacityLimits", nil), "Capacitylimits are required."},
		{"createquotashare", sha("capacityLimits", raw(`[{"capacityUnit":"NUM_INSTANCES","maxCapacity":1}]`)), "NUM_INSTANCES is unknown capacity unit"},
		{"createquotashare", sha("resourceSharingConfiguration", nil), "resourceSharingConfiguration.strategy is missing"},
		{"createquotashare", sha("resourceSharingConfiguration", raw(`{"strategy":"SHARE"}`)), `"SHARE"`},
		{"createquotashare", sha("resourceSharingConfiguration", raw(`{"strategy":"LEND","borrowLimit":50}`)), "borrowLimit is 50, but a share with strategy LEND does not borrow"},
		{"createquotashare", sha("resourceSharingConfiguration", raw(`{"strategy":"LEND_AND_BORROW","borrowLimit":-2}`)), "borrowLimit is -2"},
		{"createquotashare", sha("resourceSharingConfiguration", raw(`{"strategy":"LEND_AND_BORROW","borrowLimit":"all"}`)), `resourceSharingConfiguration.borrowLimit is the string "all"`},
		{"createquotashare", sha("preemptionConfiguration", nil), "preemptionConfiguration.inSharePreemption is missing"},
		{"createquotashare", sha("preemptionConfiguration", raw(`{"inSharePreemption":"MAYBE"}`)), `preemptionConfiguration.inSharePreemption is "MAYBE"; use ENABLED or DISABLED`},
		{"createquotashare", sha("quotaShareName", "QS1"), "already exists"},
		{"updatequotashare", `{}`, "quotaShareArn is missing"},
		{"updatequotashare", `{"quotaShareArn":"QS1"}`, `quotaShareArn is "QS1"; it must be an ARN`},
		{"updatequotashare", `{"quotaShareArn":"` + arnPrefix + `job-queue/queue"}`, "the ARN of a job-queue; it must be that of a quota-share"},
		{"updatequotashare", `{"quotaShareArn":"` + arnPrefix + `job-queue/queue/quota-share/none"}`, "does not exist"},
		{"updatequotashare", `{"quotaShareArn":"` + shareARN + `","capacityLimits":[]}`, "Capacitylimits are required."},
		{"updatequotashare", `{"quotaShareArn":"` + shareARN + `","state":1}`, "state is the number 1"},
		{"deletequotashare", `{"quotaShareArn":"` + shareARN + `"}`, "Set it to DISABLED before deleting it"},
		{"describequotashare", `{"quotaShareArn":"` + arnPrefix + `job-queue/queue/quota-share/none"}`, "does not exist"},
		{"describequotashare", `{"quotaShareArn":"` + arnPrefix + `job-queue/none/quota-share/QS1"}`, "does not exist"},
		{"listquotashares", `{}`, "jobQueue is missing"},
		{"listquotashares", `{"jobQueue":"none"}`, "does not exist"},

		// Service jobs.
		{"submitservicejob", `{}`, "jobName is missing"},
		{"submitservicejob", sub("jobName", nil), "jobName is missing"},
		{"submitservicejob", sub("jobName", "a b"), `jobName is "a b"`},
		{"submitservicejob", sub("jobName", long), "1 to 128 letters"},
		{"submitservicejob", sub("jobName", raw(`["a"]`)), "jobName is a list; it must be a string"},
		{"submitservicejob", sub("jobQueue", nil), "jobQueue is missing"},
		{"submitservicejob", sub("jobQueue", "none"), "Job queue none does not exist"},
		{"submitservicejob", sub("jobQueue", elsewhere), "eu-west-1"},
		{"submitservicejob", sub("jobQueue", arnPrefix+"service-job/queue"), "it must be that of a job-queue"},
		{"submitservicejob", sub("serviceJobType", nil), "serviceJobType is missing"},
		{"submitservicejob", sub("serviceJobType", "BATCH"), `serviceJobType is "BATCH"; use SAGEMAKER_TRAINING`},
		{"submitservicejob", sub("quotaShareName", nil), "quotaShareName is required for job queue queue"},
		{"submitservicejob", sub("quotaShareName", "none"), "Quota share none of job queue queue does not exist"},
		{"submitservicejob", sub("quotaShareName", 1), "quotaShareName is the number 1"},
		{"submitservicejob", sub("jobQueue", "fifo"), "has no quota shares"},
		{"submitservicejob", sub("shareIdentifier", "a"), "job queue queue has quota shares and no fair-share policy. Leave it out"},
		{"submitservicejob", sub("shareIdentifier", "a", "quotaShareName", nil, "jobQueue", "fifo"), "job queue fifo has no fair-share policy. Leave it out"},
		{"submitservicejob", sub("quotaShareName", nil, "jobQueue", "fair"), "shareIdentifier is required for job queue fair"},
		{"submitservicejob", sub("shareIdentifier", "a", "jobQueue", "fair"), `quotaShareName is "QS1", but job queue fair has no quota shares`},
		{"submitservicejob", sub("shareIdentifier", "a*", "quotaShareName", nil, "jobQueue", "fair"), "ShareIdentifier name should match a valid pattern."},
		{"submitservicejob", sub("shareIdentifier", 1, "quotaShareName", nil, "jobQueue", "fair"), "shareIdentifier is the number 1; it must be a string"},
		{"submitservicejob", sub("schedulingPriority", -1), "schedulingPriority is -1; use 0 to 9999"},
		{"submitservicejob", sub("schedulingPriority", 10000), "schedulingPriority is 10000; use 0 to 9999"},
		{"submitservicejob", sub("schedulingPriority", "5"), `schedulingPriority is the string "5"; it must be a whole number`},
		{"submitservicejob", sub("schedulingPriority", 4294967296), "schedulingPriority is the number 4294967296"},
		{"submitservicejob", sub("retryStrategy", raw(`{}`)), "retryStrategy.attempts is missing"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":0}`)), "use 1 to 10"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":11}`)), "use 1 to 10"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":{}}`)), "retryStrategy.evaluateOnExit is an object; it must be a list"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":[{"action":"RETRY"}]}`)), "retryStrategy.evaluateOnExit[0].onStatusReason is missing"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":[{"onStatusReason":"*"}]}`)), "retryStrategy.evaluateOnExit[0].action is missing"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":[{"action":"GO","onStatusReason":"*"}]}`)), `"GO"; use RETRY or EXIT`},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":[{"action":"EXIT","onStatusReason":"`+strings.Repeat("x", 513)+`"}]}`)), "use 1 to 512"},
		{"submitservicejob", sub("retryStrategy", raw(`{"attempts":2,"evaluateOnExit":[`+strings.Repeat(`{"action":"EXIT","onStatusReason":"a"},`, 5)+`{"action":"EXIT","onStatusReason":"a"}]}`)), "has 6 rules; use at most 5"},
		{"submitservicejob", sub("timeoutConfig", raw(`{"attemptDurationSeconds":59}`)), "attemptDurationSeconds is 59; use at least 60"},
		{"submitservicejob", sub("timeoutConfig", raw(`{"attemptDurationSeconds":"1h"}`)), `timeoutConfig.attemptDurationSeconds is the string "1h"`},
		{"submitservicejob", sub("timeoutConfig", 60), "timeoutConfig is the number 60; it must be an object"},
		{"submitservicejob", sub("preemptionConfiguration", raw(`{"preemptionRetriesBeforeTermination":-1}`)), "preemptionRetriesBeforeTermination is -1; use 0 or more"},
		{"submitservicejob", sub("clientToken", long), "use 1 to 64"},
		{"submitservicejob", sub("clientToken", 7), "clientToken is the number 7"},
		{"submitservicejob", sub("tags", tags(51)), "use at most 50"},
		{"submitservicejob", sub("serviceRequestPayload", nil), "serviceRequestPayload is missing"},
		{"submitservicejob", sub("serviceRequestPayload", raw(testPayload)), "serviceRequestPayload is an object; it must be a string"},
		{"submitservicejob", sub("serviceRequestPayload", "{"), "serviceRequestPayload: "},
		{"submitservicejob", sub("serviceRequestPayload", "{}"), "serviceRequestPayload: ResourceConfig is missing"},
		{"submitservicejob", sub("serviceRequestPayload", `{"ResourceConfig":{"InstanceType":"ml.g5.xlarge","InstanceCount":0}}`), "InstanceCount"},
		{"submitservicejob", sub("serviceRequestPayload", `{"ResourceConfig":{"InstanceType":"big","InstanceCount":1}}`), `"big"`},
		{"submitservicejob", sub("serviceRequestPayload", `{"x":"`+strings.Repeat("x", 10<<10)+`"}`), "serviceRequestPayload has 10248 bytes; it may have 10240"},
		{"submitservicejob", sub("unknown", strings.Repeat("x", 30<<10)), "a SubmitServiceJob request may have 30720"},
		{"describeservicejob", `{}`, "jobId is missing"},
		{"describeservicejob", `{"jobId":"none"}`, "none does not exist"},
		{"describeservicejob", `{"jobId":"` + arnPrefix + `job-queue/queue"}`, "it must be that of a service-job"},
		{"updateservicejob", `{"jobId":"` + job + `"}`, "schedulingPriority is missing"},
		{"updateservicejob", `{"jobId":"` + job + `","schedulingPriority":10000}`, "use 0 to 9999"},
		{"updateservicejob", `{"jobId":"none","schedulingPriority":1}`, "does not exist"},
		{"terminateservicejob", `{"jobId":"` + job + `"}`, "reason is missing"},
		{"terminateservicejob", `{"jobId":"` + job + `","reason":""}`, "reason is missing"},
		{"terminateservicejob", `{"jobId":"` + job + `","reason":"  "}`, "reason is required"},
		{"terminateservicejob", `{"jobId":"` + job + `","reason":"` + strings.Repeat("x", 1025) + `"}`, "reason has 1025 characters; use at most 1024"},
		{"terminateservicejob", `{"reason":"r"}`, "jobId is missing"},
		{"terminateservicejob", `{"jobId":"none","reason":"r"}`, "does not exist"},
		{"terminateservicejobs", `{"reason":"r"}`, "jobs has 0 entries; give 1 to 50"},
		{"terminateservicejobs", `{"reason":"r","jobs":[]}`, "give 1 to 50"},
		{"terminateservicejobs", `{"reason":"r","jobs":[` + strings.Repeat(`"a",`, 50) + `"b"]}`, "jobs has 51 entries"},
		{"terminateservicejobs", `{"reason":"r","jobs":"a"}`, `jobs is the string "a"; it must be a list`},
		{"terminateservicejobs", `{"jobs":["` + job + `"]}`, "reason is missing"},
		{"listservicejobs", `{}`, "jobQueue is missing"},
		{"listservicejobs", `{"jobQueue":"none"}`, "does not exist"},
		{"listservicejobs", `{"jobQueue":"fifo","jobStatus":"DONE"}`, `jobStatus is "DONE"; use SUBMITTED or PENDING or RUNNABLE`},
		{"listservicejobs", `{"jobQueue":"fifo","filters":{}}`, "filters is an object; it must be a list"},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"JOB_NAME","values":["a"]},{"name":"JOB_NAME","values":["b"]}]}`, "filters has 2 entries; give one"},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"values":["a"]}]}`, "filters[0].name is missing"},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"COLOUR","values":["a"]}]}`, `filters[0].name is "COLOUR"; use JOB_NAME or`},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"JOB_NAME"}]}`, "filters[0].values has 0 entries"},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"JOB_NAME","values":["a","b"]}]}`, "filters[0].values has 2 entries"},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"BEFORE_CREATED_AT","values":["yesterday"]}]}`, `filters[0].values[0] is "yesterday"; it must be a time in milliseconds`},
		{"listservicejobs", `{"jobQueue":"fifo","filters":[{"name":"AFTER_CREATED_AT","values":["-1"]}]}`, `"-1"`},
		{"listservicejobs", `{"jobQueue":"fair","filters":[{"name":"SHARE_IDENTIFIER","values":[""]}]}`, "filters[0].values has 1 entries; give one that is not empty"},
		{"listservicejobs", `{"jobQueue":"fifo","maxResults":500}`, "from 1 to 100"},
		{"listservicejobs", `{"jobQueue":"fifo","nextToken":"AAAAAAAAAAAAAAAA"}`, "which is not a token"},
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	before := h.changes(t)
	for i, c := range cases {
		t.Run(fmt.Sprintf("%03d %s", i, c.op), func(t *testing.T) {
			r := send(h.door, "POST", "/v1/"+c.op, c.body)
			wantRefusal(t, r, http.StatusBadRequest, "ClientException", c.want)
			if t.Failed() {
				t.Logf("request: %.300s", c.body)
			}
			if after := h.changes(t); after != before {
				t.Errorf("a refused request changed something: %d journal entries, %d before", after, before)
			}
		})
	}
}

func TestMalformedTagRequests(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	const queue = "/v1/tags/arn%3Aaws%3Abatch%3Aus-east-1%3A123456789012%3Ajob-queue%2Fqueue"
	before := h.changes(t)
	for name, c := range map[string]struct {
		method, target, body string
		want                 string
	}{
		"no ARN":               {"GET", "/v1/tags/queue", "", `resourceArn is "queue"; it must be an ARN`},
		"empty":                {"GET", "/v1/tags/", "", `resourceArn is ""`},
		"another region":       {"GET", "/v1/tags/arn%3Aaws%3Abatch%3Aeu-west-1%3A123456789012%3Ajob-queue%2Fqueue", "", "eu-west-1"},
		"another kind":         {"GET", "/v1/tags/arn%3Aaws%3Abatch%3Aus-east-1%3A123456789012%3Ajob-definition%2Fd", "", `the ARN of a "job-definition"`},
		"not there":            {"GET", queue + "x", "", "does not exist"},
		"no tags":              {"POST", queue, `{}`, "tags is missing or empty"},
		"empty tags":           {"POST", queue, `{"tags":{}}`, "tags is missing or empty"},
		"no JSON":              {"POST", queue, `tags`, "not JSON"},
		"a number":             {"POST", queue, `{"tags":{"a":1}}`, "tags.a is the number 1"},
		"no keys":              {"DELETE", queue, "", "tagKeys is missing"},
		"a query that is none": {"DELETE", queue + "?a;b", "", "the query string"},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, send(h.door, c.method, c.target, c.body), http.StatusBadRequest, "ClientException", c.want)
			if after := h.changes(t); after != before {
				t.Errorf("a refused request changed something")
			}
		})
	}
}
