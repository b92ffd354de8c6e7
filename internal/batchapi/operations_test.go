package batchapi

import (
	"net/http"
	"strings"
	"testing"
)

// step is a request and the reply that is right, in full.
type step struct {
	name   string
	method string // POST if empty
	target string // an operation's name, or a path
	body   string
	want   string
}

func (h *house) walk(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			method, target := "POST", s.target
			if s.method != "" {
				method = s.method
			}
			if !strings.HasPrefix(target, "/") {
				target = "/v1/" + target
			}
			r := send(h.door, method, target, s.body)
			if r.status != http.StatusOK {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			if got := r.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
			wantJSON(t, decode(t, r.body), s.want)
		}) {
			t.FailNow()
		}
	}
}

func TestResourcesOnTheWire(t *testing.T) {
	h := newHouse(t)
	const (
		envARN    = arnPrefix + "service-environment/env"
		policyARN = arnPrefix + "scheduling-policy/policy"
		queueARN  = arnPrefix + "job-queue/queue"
		shareARN  = queueARN + "/quota-share/QS1"

		envDetail = `{"serviceEnvironmentName":"env","serviceEnvironmentArn":"` + envARN + `","serviceEnvironmentType":"SAGEMAKER_TRAINING","state":"ENABLED","status":"VALID",
			"capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":3},{"capacityUnit":"ml.p5.48xlarge","maxCapacity":8}],"tags":{"team":"a"}}`
		queueDetail = `{"jobQueueName":"queue","jobQueueArn":"` + queueARN + `","state":"ENABLED","status":"VALID","statusReason":"JobQueue Healthy","priority":7,
			"schedulingPolicyArn":"` + policyARN + `","computeEnvironmentOrder":[],"serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"` + envARN + `"}],"jobQueueType":"SAGEMAKER_TRAINING","tags":{},
			"jobStateTimeLimitActions":[{"reason":"CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY","state":"RUNNABLE","maxTimeSeconds":600,"action":"TERMINATE"}]}`
		shareMembers = `"quotaShareName":"QS1","quotaShareArn":"` + shareARN + `","jobQueueArn":"` + queueARN + `","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}],
			"preemptionConfiguration":{"inSharePreemption":"DISABLED"},"state":"ENABLED","status":"VALID"`
	)
	h.walk(t, []step{
		{name: "create an environment", target: "createserviceenvironment",
			body: `{"serviceEnvironmentName":"env","serviceEnvironmentType":"SAGEMAKER_TRAINING","unknownMember":{"a":[1]},"state":null,
				"capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":3},{"capacityUnit":"ml.p5.48xlarge","maxCapacity":8}],"tags":{"team":"a"}}`,
			want: `{"serviceEnvironmentName":"env","serviceEnvironmentArn":"` + envARN + `"}`},
		{name: "describe it by name", target: "describeserviceenvironments", body: `{"serviceEnvironments":["env"]}`, want: `{"serviceEnvironments":[` + envDetail + `]}`},
		{name: "describe it by ARN", target: "describeserviceenvironments", body: `{"serviceEnvironments":["` + envARN + `"]}`, want: `{"serviceEnvironments":[` + envDetail + `]}`},
		{name: "describe all", target: "describeserviceenvironments", body: `{}`, want: `{"serviceEnvironments":[` + envDetail + `]}`},
		{name: "describe all with an empty list", target: "describeserviceenvironments", body: `{"serviceEnvironments":[]}`, want: `{"serviceEnvironments":[` + envDetail + `]}`},
		{name: "describe all with no body", target: "describeserviceenvironments", want: `{"serviceEnvironments":[` + envDetail + `]}`},
		{name: "describe one that is not there", target: "describeserviceenvironments", body: `{"serviceEnvironments":["none"]}`, want: `{"serviceEnvironments":[]}`},

		{name: "create a policy", target: "createschedulingpolicy", body: `{"name":"policy","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"},"tags":{"a":"b"}}`,
			want: `{"name":"policy","arn":"` + policyARN + `"}`},
		{name: "update it", target: "updateschedulingpolicy", body: `{"arn":"` + policyARN + `","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"}}`, want: `{}`},
		{name: "list policies", target: "listschedulingpolicies", body: `{}`, want: `{"schedulingPolicies":[{"arn":"` + policyARN + `"}]}`},
		{name: "describe policies", target: "describeschedulingpolicies", body: `{"arns":["` + policyARN + `","` + policyARN + `x"]}`,
			want: `{"schedulingPolicies":[{"name":"policy","arn":"` + policyARN + `","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"},"tags":{"a":"b"}}]}`},
		{name: "describe none", target: "describeschedulingpolicies", body: `{"arns":[]}`, want: `{"schedulingPolicies":[]}`},

		{name: "create a queue", target: "createjobqueue",
			body: `{"jobQueueName":"queue","priority":7,"jobQueueType":"SAGEMAKER_TRAINING","schedulingPolicyArn":"` + policyARN + `","computeEnvironmentOrder":[],
				"serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"` + envARN + `"}],
				"jobStateTimeLimitActions":[{"reason":"CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY","state":"RUNNABLE","maxTimeSeconds":600,"action":"TERMINATE"}]}`,
			want: `{"jobQueueName":"queue","jobQueueArn":"` + queueARN + `"}`},
		{name: "describe queues", target: "describejobqueues", body: `{"jobQueues":["queue"]}`, want: `{"jobQueues":[` + queueDetail + `]}`},
		{name: "describe a queue that is not there", target: "describejobqueues", body: `{"jobQueues":["` + queueARN + `x"]}`, want: `{"jobQueues":[]}`},
		{name: "update a queue", target: "updatejobqueue", body: `{"jobQueue":"` + queueARN + `","priority":8,"jobStateTimeLimitActions":[],"computeEnvironmentOrder":[]}`,
			want: `{"jobQueueName":"queue","jobQueueArn":"` + queueARN + `"}`},
		{name: "describe the queue again", target: "describejobqueues", body: `{"jobQueues":["queue"]}`,
			want: `{"jobQueues":[{"jobQueueName":"queue","jobQueueArn":"` + queueARN + `","state":"ENABLED","status":"VALID","statusReason":"JobQueue Healthy","priority":8,
				"schedulingPolicyArn":"` + policyARN + `","computeEnvironmentOrder":[],"serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"` + envARN + `"}],"jobQueueType":"SAGEMAKER_TRAINING","tags":{}}]}`},

		{name: "create a share", target: "createquotashare",
			body: `{"quotaShareName":"QS1","jobQueue":"` + queueARN + `","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}],
				"resourceSharingConfiguration":{"strategy":"RESERVE"},"preemptionConfiguration":{"inSharePreemption":"DISABLED"}}`,
			want: `{"quotaShareName":"QS1","quotaShareArn":"` + shareARN + `"}`},
		{name: "describe the share", target: "describequotashare", body: `{"quotaShareArn":"` + shareARN + `"}`,
			want: `{` + shareMembers + `,"resourceSharingConfiguration":{"strategy":"RESERVE"},"tags":{}}`},
		{name: "update the share", target: "updatequotashare", body: `{"quotaShareArn":"` + shareARN + `","resourceSharingConfiguration":{"strategy":"LEND_AND_BORROW"}}`,
			want: `{"quotaShareName":"QS1","quotaShareArn":"` + shareARN + `"}`},
		{name: "list shares", target: "listquotashares", body: `{"jobQueue":"queue"}`,
			want: `{"quotaShares":[{` + shareMembers + `,"resourceSharingConfiguration":{"strategy":"LEND_AND_BORROW","borrowLimit":-1}}]}`},
		{name: "limit what the share borrows", target: "updatequotashare", body: `{"quotaShareArn":"` + shareARN + `","state":"DISABLED","resourceSharingConfiguration":{"strategy":"LEND_AND_BORROW","borrowLimit":0},
				"preemptionConfiguration":{"inSharePreemption":"ENABLED"},"capacityLimits":[{"capacityUnit":"ml.p5.48xlarge","maxCapacity":2}]}`,
			want: `{"quotaShareName":"QS1","quotaShareArn":"` + shareARN + `"}`},
		{name: "describe the share again", target: "describequotashare", body: `{"quotaShareArn":"` + shareARN + `"}`,
			want: `{"quotaShareName":"QS1","quotaShareArn":"` + shareARN + `","jobQueueArn":"` + queueARN + `","capacityLimits":[{"capacityUnit":"ml.p5.48xlarge","maxCapacity":2}],
				"resourceSharingConfiguration":{"strategy":"LEND_AND_BORROW","borrowLimit":0},"preemptionConfiguration":{"inSharePreemption":"ENABLED"},"state":"DISABLED","status":"VALID","tags":{}}`},

		{name: "tag the share", target: "/v1/tags/" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(shareARN), body: `{"tags":{"a":"1","b":"2"}}`, want: `{}`},
		{name: "untag it", method: "DELETE", target: "/v1/tags/" + shareARN + "?tagKeys=a&tagKeys=none", want: `{}`},
		{name: "list its tags", method: "GET", target: "/v1/tags/" + shareARN, want: `{"tags":{"b":"2"}}`},
		{name: "list an environment's tags", method: "GET", target: "/v1/tags/" + envARN, want: `{"tags":{"team":"a"}}`},
		{name: "list a policy's tags", method: "GET", target: "/v1/tags/" + policyARN, want: `{"tags":{"a":"b"}}`},
		{name: "list a queue's tags", method: "GET", target: "/v1/tags/" + queueARN, want: `{"tags":{}}`},

		{name: "delete the share", target: "deletequotashare", body: `{"quotaShareArn":"` + shareARN + `"}`, want: `{}`},
		{name: "disable the queue", target: "updatejobqueue", body: `{"jobQueue":"queue","state":"DISABLED"}`, want: `{"jobQueueName":"queue","jobQueueArn":"` + queueARN + `"}`},
		{name: "delete the queue", target: "deletejobqueue", body: `{"jobQueue":"queue"}`, want: `{}`},
		{name: "no queue is left", target: "describejobqueues", body: `{"jobQueues":["queue"]}`, want: `{"jobQueues":[]}`},
		{name: "delete the policy", target: "deleteschedulingpolicy", body: `{"arn":"` + policyARN + `"}`, want: `{}`},
		{name: "disable the environment", target: "updateserviceenvironment", body: `{"serviceEnvironment":"` + envARN + `","state":"DISABLED"}`,
			want: `{"serviceEnvironmentName":"env","serviceEnvironmentArn":"` + envARN + `"}`},
		{name: "delete the environment", target: "deleteserviceenvironment", body: `{"serviceEnvironment":"env"}`, want: `{}`},
		{name: "no environment is left", target: "describeserviceenvironments", body: `{}`, want: `{"serviceEnvironments":[]}`},
	})
}

func TestJobsOnTheWire(t *testing.T) {
	h := newHouse(t)
	h.fifo(t)
	const (
		id       = "00000000-0000-4000-8000-000000000001"
		jobARN   = arnPrefix + "service-job/" + id
		queueARN = arnPrefix + "job-queue/fifo"
		attempt  = `{"serviceResourceId":{"name":"TrainingJobArn","value":"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchtrain00000000000000000000000000000001"}}`
	)
	payload := quoted(testPayload)
	common := `"jobArn":"` + jobARN + `","jobName":"first","jobId":"` + id + `","serviceJobType":"SAGEMAKER_TRAINING","createdAt":1774000000000,"capacityUsage":[{"capacityUnit":"ml.g5.xlarge","quantity":1.0}]`
	described := common + `,"jobQueue":"` + queueARN + `","schedulingPriority":5,"serviceRequestPayload":` + payload + `,"tags":{"a":"b"},
		"retryStrategy":{"attempts":2,"evaluateOnExit":[{"action":"RETRY","onStatusReason":"*Error*"},{"action":"EXIT","onStatusReason":"*"}]},
		"timeoutConfig":{"attemptDurationSeconds":3600},"preemptionConfiguration":{"preemptionRetriesBeforeTermination":0}`

	submitted := h.call(t, "submitservicejob", submission("first", queueARN, "", `,"schedulingPriority":5,"clientToken":"t","tags":{"a":"b"},
		"retryStrategy":{"attempts":2,"evaluateOnExit":[{"action":"Retry","onStatusReason":"*Error*"},{"action":"exit","onStatusReason":"*"}]},
		"timeoutConfig":{"attemptDurationSeconds":3600},"preemptionConfiguration":{"preemptionRetriesBeforeTermination":0}`))
	wantJSON(t, submitted, `{"jobArn":"`+jobARN+`","jobName":"first","jobId":"`+id+`"}`)

	h.clock.Advance(0) // the workers are up
	h.walk(t, []step{
		{name: "describe", target: "describeservicejob", body: `{"jobId":"` + id + `"}`,
			want: `{` + described + `,"status":"RUNNING","scheduledAt":1774000000000,"startedAt":1774000000000,"isTerminated":false,"attempts":[],"latestAttempt":` + attempt + `}`},
		{name: "update", target: "updateservicejob", body: `{"jobId":"` + jobARN + `","schedulingPriority":6}`, want: `{"jobArn":"` + jobARN + `","jobName":"first","jobId":"` + id + `"}`},
		{name: "update back", target: "updateservicejob", body: `{"jobId":"` + id + `","schedulingPriority":5}`, want: `{"jobArn":"` + jobARN + `","jobName":"first","jobId":"` + id + `"}`},
		{name: "list", target: "listservicejobs", body: `{"jobQueue":"fifo"}`,
			want: `{"jobSummaryList":[{` + common + `,"status":"RUNNING","scheduledAt":1774000000000,"startedAt":1774000000000,"latestAttempt":` + attempt + `}]}`},
		{name: "snapshot", target: "getjobqueuesnapshot", body: `{"jobQueue":"fifo"}`,
			want: `{"frontOfQueue":{"jobs":[],"lastUpdatedAt":1774000000000},"queueUtilization":{"totalCapacityUsage":[{"capacityUnit":"ml.g5.xlarge","quantity":1.0}],"lastUpdatedAt":1774000000000}}`},
		{name: "tag", target: "/v1/tags/" + jobARN, body: `{"tags":{"a":"c"}}`, want: `{}`},
		{name: "tag back", target: "/v1/tags/" + jobARN, body: `{"tags":{"a":"b"}}`, want: `{}`},
		{name: "terminate", target: "terminateservicejob", body: `{"jobId":"` + jobARN + `","reason":"no longer needed"}`, want: `{}`},
	})
	h.reach(t, id, "FAILED")
	ended := h.call(t, "describeservicejob", `{"jobId":"`+id+`"}`)
	at, _ := ended["stoppedAt"].(interface{ String() string })
	wantJSON(t, ended, `{`+described+`,"status":"FAILED","statusReason":"no longer needed","scheduledAt":1774000000000,"startedAt":1774000000000,"stoppedAt":`+at.String()+`,"isTerminated":true,
		"attempts":[{"serviceResourceId":{"name":"TrainingJobArn","value":"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchtrain00000000000000000000000000000001"},
			"startedAt":1774000000000,"stoppedAt":`+at.String()+`,"statusReason":"no longer needed"}],"latestAttempt":`+attempt+`}`)
	h.walk(t, []step{
		{name: "list it as terminated", target: "listservicejobs", body: `{"jobQueue":"fifo","jobStatus":"FAILED"}`,
			want: `{"jobSummaryList":[{` + common + `,"status":"FAILED","statusReason":"no longer needed","scheduledAt":1774000000000,"startedAt":1774000000000,"stoppedAt":` + at.String() + `,"isTerminated":true,"latestAttempt":` + attempt + `}]}`},
	})
}

func quoted(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

func TestAPlainJobHasDefaults(t *testing.T) {
	h := newHouse(t)
	h.call(t, "createserviceenvironment", `{"serviceEnvironmentName":"off","serviceEnvironmentType":"SAGEMAKER_TRAINING","state":"DISABLED","capacityLimits":[{"capacityUnit":"NUM_INSTANCES","maxCapacity":2}]}`)
	h.call(t, "createjobqueue", `{"jobQueueName":"waiting","priority":1,"jobQueueType":"SAGEMAKER_TRAINING","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"off"}]}`)
	id := h.submit(t, "plain", "waiting", "", "")
	wantJSON(t, h.call(t, "describeservicejob", `{"jobId":"`+id+`"}`), `{"jobArn":"`+arnPrefix+`service-job/`+id+`","jobName":"plain","jobId":"`+id+`","serviceJobType":"SAGEMAKER_TRAINING",
		"createdAt":1774000000000,"capacityUsage":[{"capacityUnit":"ml.g5.xlarge","quantity":1.0}],"jobQueue":"`+arnPrefix+`job-queue/waiting","schedulingPriority":0,
		"serviceRequestPayload":`+quoted(testPayload)+`,"tags":{},"retryStrategy":{"attempts":1},"status":"RUNNABLE","isTerminated":false,"attempts":[]}`)
	wantJSON(t, h.call(t, "getjobqueuesnapshot", `{"jobQueue":"waiting"}`), `{"frontOfQueue":{"jobs":[{"jobArn":"`+arnPrefix+`service-job/`+id+`","earliestTimeAtPosition":1774000000000}],"lastUpdatedAt":1774000000000},
		"queueUtilization":{"totalCapacityUsage":[],"lastUpdatedAt":1774000000000}}`)
}

// The story of scenario 01: a borrower is preempted when the owner comes back.
func TestPreemptionOnTheWire(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	mine := h.submit(t, "mine", "queue", "QS1", "")
	borrows := h.submit(t, "borrows", "queue", "QS1", "")
	h.reach(t, mine, "RUNNING")
	h.reach(t, borrows, "RUNNING")
	other := h.submit(t, "other", "queue", "QS3", "")
	h.reach(t, other, "RUNNING")
	owner := h.submit(t, "owner", "queue", "QS2", "")
	h.reach(t, owner, "RUNNING")

	j := h.reach(t, borrows, "RUNNABLE")
	summary, _ := j["preemptionSummary"].(map[string]any)
	recent, _ := summary["recentPreemptedAttempts"].([]any)
	if len(recent) != 1 {
		t.Fatalf("preemptionSummary %v, want one attempt", j["preemptionSummary"])
	}
	preempted, _ := recent[0].(map[string]any)
	if got := preempted["statusReason"]; got != "Preempted: capacity reclaimed by quota share QS2" {
		t.Errorf("the preempted attempt's reason is %v", got)
	}
	if attempts, _ := j["attempts"].([]any); len(attempts) != 0 {
		t.Errorf("attempts %v, want none: a preempted one is not among them", attempts)
	}
	latest, _ := j["latestAttempt"].(map[string]any)
	if latest == nil || latest["serviceResourceId"] == nil {
		t.Errorf("latestAttempt %v, want the preempted one", latest)
	}

	s := h.call(t, "getjobqueuesnapshot", `{"jobQueue":"queue"}`)
	fronts, _ := s["frontOfQuotaShares"].(map[string]any)
	shares, _ := fronts["quotaShares"].(map[string]any)
	if front, _ := shares["QS1"].([]any); len(front) != 1 {
		t.Errorf("front of QS1: %v, want the preempted job", front)
	}
	if front, ok := shares["QS2"].([]any); !ok || len(front) != 0 {
		t.Errorf("front of QS2: %v, want an empty list", shares["QS2"])
	}
	if queue, _ := s["frontOfQueue"].(map[string]any); len(queue["jobs"].([]any)) != 0 {
		t.Errorf("front of the queue: %v, want none: it has shares", queue)
	}
	used, _ := s["queueUtilization"].(map[string]any)
	if top, _ := used["quotaShareUtilization"].(map[string]any); top == nil || len(top["topCapacityUtilization"].([]any)) != 3 {
		t.Errorf("utilization %v, want three shares", used)
	}
	if total, _ := used["totalCapacityUsage"].([]any); len(total) != 1 {
		t.Errorf("total usage %v", total)
	}
}

func TestClientTokens(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	h.fifo(t)
	const token = `,"clientToken":"once"`
	first := h.submit(t, "job", "queue", "QS1", token)
	if again := h.submit(t, "job", "queue", "QS1", token); again != first {
		t.Errorf("the same submission made job %s, then %s", first, again)
	}
	if again := h.submit(t, "job", arnPrefix+"job-queue/queue", "QS1", token+`,"unknown":1`); again != first {
		t.Errorf("the same submission in other words made job %s, then %s", first, again)
	}
	if without := h.submit(t, "job", "queue", "QS1", ""); without == first {
		t.Error("a submission without a token was taken for one with")
	}
	for name, body := range map[string]string{
		"another name":     submission("other", "queue", "QS1", token),
		"another share":    submission("job", "queue", "QS2", token),
		"another queue":    submission("job", "fifo", "", token),
		"another priority": submission("job", "queue", "QS1", token+`,"schedulingPriority":1`),
		"another payload":  strings.Replace(submission("job", "queue", "QS1", token), `\"VolumeSizeInGB\":1`, `\"VolumeSizeInGB\":2`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, send(h.door, "POST", "/v1/submitservicejob", body), http.StatusBadRequest, "ClientException", `clientToken "once" was sent before`)
		})
	}
}

func TestTerminateManyJobs(t *testing.T) {
	h := newHouse(t)
	h.fifo(t)
	a, b := h.submit(t, "a", "fifo", "", ""), h.submit(t, "b", "fifo", "", "")
	arn := arnPrefix + "service-job/" + b
	elsewhere := "arn:aws:batch:eu-west-1:123456789012:service-job/" + b
	got := h.call(t, "terminateservicejobs", `{"jobs":["`+a+`","`+arn+`","unknown","`+elsewhere+`"],"reason":"cleaning up"}`)
	wantJSON(t, got, `{"successful":["`+a+`","`+arn+`","unknown"],"errors":[{"job":"`+elsewhere+`","code":"ValidationException",
		"message":"jobs[3] is \"`+elsewhere+`\", in region \"eu-west-1\"; this server's region is us-east-1"}]}`)
	for _, id := range []string{a, b} {
		if j := h.reach(t, id, "FAILED"); j["statusReason"] != "cleaning up" || j["isTerminated"] != true {
			t.Errorf("job %s: reason %v, terminated %v", id, j["statusReason"], j["isTerminated"])
		}
	}
}

func TestUnknownOperations(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct{ method, target string }{
		"another operation":     {"POST", "/v1/describejobs"},
		"upper case":            {"POST", "/v1/SubmitServiceJob"},
		"another version":       {"POST", "/v2/submitservicejob"},
		"no operation":          {"POST", "/v1/"},
		"the root":              {"GET", "/"},
		"GET of an operation":   {"GET", "/v1/describejobqueues"},
		"PUT of tags":           {"PUT", "/v1/tags/" + arnPrefix + "job-queue/q"},
		"below an operation":    {"POST", "/v1/submitservicejob/x"},
		"an escaped name":       {"POST", "/v1/submitservicejob%00"},
		"a path outside":        {"POST", "/v1/../submitservicejob"},
		"tags without an ARN":   {"POST", "/v1/tags"},
		"a name without prefix": {"POST", "/submitservicejob"},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, send(h.door, c.method, c.target, `{}`), http.StatusNotFound, "UnknownOperationException", "there is no operation "+c.method)
		})
	}
}

func TestRequestsThatAreTooLarge(t *testing.T) {
	h := newHouse(t)
	body := `{"x":"` + strings.Repeat("x", maxRequest) + `"}`
	wantRefusal(t, send(h.door, "POST", "/v1/describejobqueues", body), http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "more than 131072 bytes")
}
