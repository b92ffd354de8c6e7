package batchapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/internal/resource"
)

func TestFairShareOnTheWire(t *testing.T) {
	h := newHouse(t)
	const (
		policyARN = arnPrefix + "scheduling-policy/byuse"
		otherARN  = arnPrefix + "scheduling-policy/other"
		queueARN  = arnPrefix + "job-queue/fair"
		jobARN    = arnPrefix + "service-job/00000000-0000-4000-8000-00000000000"
		attempt   = `{"serviceResourceId":{"name":"TrainingJobArn","value":"arn:aws:sagemaker:us-east-1:123456789012:training-job/AWSBatchtrain00000000000000000000000000000001"}}`
	)
	h.fifo(t)
	h.walk(t, []step{
		{name: "create a policy", target: "createschedulingpolicy",
			body: `{"name":"byuse","tags":{"a":"b"},"fairsharePolicy":{"shareDecaySeconds":3600,"computeReservation":10,
				"shareDistribution":[{"shareIdentifier":"teamA","weightFactor":0.1},{"shareIdentifier":"teamB*","weightFactor":999.9999},{"shareIdentifier":"c"}]}}`,
			want: `{"name":"byuse","arn":"` + policyARN + `"}`},
		{name: "create one that says nothing", target: "createschedulingpolicy", body: `{"name":"other","fairsharePolicy":{}}`, want: `{"name":"other","arn":"` + otherARN + `"}`},
		{name: "describe both", target: "describeschedulingpolicies", body: `{"arns":["` + policyARN + `","` + otherARN + `"]}`,
			want: `{"schedulingPolicies":[
				{"name":"byuse","arn":"` + policyARN + `","tags":{"a":"b"},"fairsharePolicy":{"shareDecaySeconds":3600,"computeReservation":10,
					"shareDistribution":[{"shareIdentifier":"teamA","weightFactor":0.1},{"shareIdentifier":"teamB*","weightFactor":999.9999},{"shareIdentifier":"c","weightFactor":1.0}]}},
				{"name":"other","arn":"` + otherARN + `","tags":{},"fairsharePolicy":{"shareDecaySeconds":0,"computeReservation":0,"shareDistribution":[]}}]}`},
		{name: "update it", target: "updateschedulingpolicy", body: `{"arn":"` + policyARN + `","fairsharePolicy":{"shareDecaySeconds":60,"shareDistribution":[{"shareIdentifier":"teamB*","weightFactor":2}]}}`, want: `{}`},
		{name: "describe it as a whole", target: "describeschedulingpolicies", body: `{"arns":["` + policyARN + `"]}`,
			want: `{"schedulingPolicies":[{"name":"byuse","arn":"` + policyARN + `","tags":{"a":"b"},
				"fairsharePolicy":{"shareDecaySeconds":60,"computeReservation":0,"shareDistribution":[{"shareIdentifier":"teamB*","weightFactor":2.0}]}}]}`},
		{name: "create a queue beside a FIFO one", target: "createjobqueue",
			body: `{"jobQueueName":"fair","priority":2,"jobQueueType":"SAGEMAKER_TRAINING","schedulingPolicyArn":"` + policyARN + `","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"counted"}]}`,
			want: `{"jobQueueName":"fair","jobQueueArn":"` + queueARN + `"}`},
		{name: "an empty snapshot", target: "getjobqueuesnapshot", body: `{"jobQueue":"fair"}`,
			want: `{"frontOfQueue":{"jobs":[],"lastUpdatedAt":1774000000000},"queueUtilization":{"totalCapacityUsage":[],"fairshareUtilization":{"activeShareCount":0,"topCapacityUtilization":[]},"lastUpdatedAt":1774000000000}}`},
		{name: "replace the policy", target: "updatejobqueue", body: `{"jobQueue":"fair","schedulingPolicyArn":"` + otherARN + `"}`, want: `{"jobQueueName":"fair","jobQueueArn":"` + queueARN + `"}`},
	})
	for _, name := range []string{"a1", "a2", "a3", "b1", "a4"} {
		h.submit(t, name, "fair", "", `,"shareIdentifier":"`+name[:1]+`"`)
	}
	h.clock.Advance(0) // the workers are up
	summary := func(n int, name, more string) string {
		return fmt.Sprintf(`"jobArn":"%s%d","jobName":"%s","jobId":"00000000-0000-4000-8000-00000000000%[2]d","serviceJobType":"SAGEMAKER_TRAINING","shareIdentifier":"%[4]s",
			"createdAt":1774000000000,"capacityUsage":[{"capacityUnit":"ml.g5.xlarge","quantity":1.0}]%[5]s`, jobARN, n, name, name[:1], more)
	}
	front := func(n int) string {
		return fmt.Sprintf(`{"jobArn":"%s%d","earliestTimeAtPosition":1774000000000}`, jobARN, n)
	}
	running := `,"status":"RUNNING","scheduledAt":1774000000000,"startedAt":1774000000000,"latestAttempt":` + attempt
	h.walk(t, []step{
		{name: "describe a job", target: "describeservicejob", body: `{"jobId":"` + jobARN + `1"}`,
			want: `{` + summary(1, "a1", running) + `,"jobQueue":"` + queueARN + `","schedulingPriority":0,"serviceRequestPayload":` + quoted(testPayload) + `,"tags":{},
				"retryStrategy":{"attempts":1},"isTerminated":false,"attempts":[]}`},
		{name: "snapshot", target: "getjobqueuesnapshot", body: `{"jobQueue":"` + queueARN + `"}`,
			want: `{"frontOfQueue":{"jobs":[` + front(4) + `,` + front(3) + `,` + front(5) + `],"lastUpdatedAt":1774000000000},
				"queueUtilization":{"totalCapacityUsage":[{"capacityUnit":"NUM_INSTANCES","quantity":2.0}],
					"fairshareUtilization":{"activeShareCount":1,"topCapacityUtilization":[{"shareIdentifier":"a","capacityUsage":[{"capacityUnit":"NUM_INSTANCES","quantity":2.0}]}]},
					"lastUpdatedAt":1774000000000}}`},
		{name: "list by identifier", target: "listservicejobs", body: `{"jobQueue":"fair","filters":[{"name":"SHARE_IDENTIFIER","values":["b"]}]}`,
			want: `{"jobSummaryList":[{` + summary(4, "b1", `,"status":"RUNNABLE"`) + `}]}`},
		{name: "list by identifier and status", target: "listservicejobs", body: `{"jobQueue":"fair","jobStatus":"RUNNING","filters":[{"name":"SHARE_IDENTIFIER","values":["b"]}]}`, want: `{"jobSummaryList":[]}`},
		{name: "list by no such identifier", target: "listservicejobs", body: `{"jobQueue":"fair","filters":[{"name":"SHARE_IDENTIFIER","values":["B"]}]}`, want: `{"jobSummaryList":[]}`},
		{name: "raise a priority", target: "updateservicejob", body: `{"jobId":"` + jobARN + `5","schedulingPriority":1}`, want: `{"jobArn":"` + jobARN + `5","jobName":"a4","jobId":"00000000-0000-4000-8000-000000000005"}`},
		{name: "snapshot again", target: "getjobqueuesnapshot", body: `{"jobQueue":"fair"}`,
			want: `{"frontOfQueue":{"jobs":[` + front(4) + `,` + front(5) + `,` + front(3) + `],"lastUpdatedAt":1774000000000},
				"queueUtilization":{"totalCapacityUsage":[{"capacityUnit":"NUM_INSTANCES","quantity":2.0}],
					"fairshareUtilization":{"activeShareCount":1,"topCapacityUtilization":[{"shareIdentifier":"a","capacityUsage":[{"capacityUnit":"NUM_INSTANCES","quantity":2.0}]}]},
					"lastUpdatedAt":1774000000000}}`},
	})
}

// TestPagesOfAnIdentifier goes through the jobs of an identifier page by page.
func TestPagesOfAnIdentifier(t *testing.T) {
	h := newHouse(t)
	h.fifo(t)
	h.fair(t)
	for i := range 7 {
		h.submit(t, fmt.Sprint("job", i), "fair", "", fmt.Sprintf(`,"shareIdentifier":"%c"`, "ab"[i%2]))
	}
	var names []string
	for token := "null"; ; {
		r := h.call(t, "listservicejobs", `{"jobQueue":"fair","maxResults":3,"nextToken":`+token+`,"filters":[{"name":"SHARE_IDENTIFIER","values":["a"]}]}`)
		list, _ := r["jobSummaryList"].([]any)
		for _, j := range list {
			names = append(names, fmt.Sprint(j.(map[string]any)["jobName"]))
		}
		if r["nextToken"] == nil {
			break
		}
		token = quoted(fmt.Sprint(r["nextToken"]))
	}
	if want := []string{"job6", "job4", "job2", "job0"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
}

func TestTopOfTheSnapshotIsLimited(t *testing.T) {
	h := newHouse(t)
	h.fifo(t)
	h.fair(t)
	h.call(t, "updateserviceenvironment", `{"serviceEnvironment":"counted","capacityLimits":[{"capacityUnit":"NUM_INSTANCES","maxCapacity":200}]}`)
	for i := range 25 {
		h.submit(t, fmt.Sprint("job", i), "fair", "", fmt.Sprintf(`,"shareIdentifier":"t%d"`, i))
	}
	h.submit(t, "second", "fair", "", `,"shareIdentifier":"t24"`)
	for i := range 120 {
		h.submit(t, fmt.Sprint("more", i), "fair", "", `,"shareIdentifier":"u"`)
	}
	for i := range 101 {
		h.submit(t, fmt.Sprint("waits", i), "fair", "", `,"shareIdentifier":"v"`)
	}
	var snapshot struct {
		Front       frontOfQueue `json:"frontOfQueue"`
		Utilization struct {
			FairShare struct {
				Active int `json:"activeShareCount"`
				Top    []struct {
					Identifier string `json:"shareIdentifier"`
				} `json:"topCapacityUtilization"`
			} `json:"fairshareUtilization"`
		} `json:"queueUtilization"`
	}
	r := send(h.door, "POST", "/v1/getjobqueuesnapshot", `{"jobQueue":"fair"}`)
	if err := json.Unmarshal([]byte(r.body), &snapshot); err != nil {
		t.Fatal(err)
	}
	use := snapshot.Utilization.FairShare
	if use.Active != 27 || len(use.Top) != 20 || use.Top[0].Identifier != "u" || use.Top[1].Identifier != "v" || use.Top[2].Identifier != "t24" {
		t.Errorf("use %+v", use)
	}
	if n := len(snapshot.Front.Jobs); n != 47 {
		t.Errorf("%d jobs in front, want those that wait: 47", n)
	}
}

func TestWeightFactorsOnTheWire(t *testing.T) {
	for factor, want := range map[weightFactor]string{
		resource.MinWeightFactor: "0.0001", 1_000: "0.1", 1_250: "0.125", 10_000: "1.0", 12_345: "1.2345", 20_000: "2.0", resource.MaxWeightFactor: "999.9999",
	} {
		if got, err := json.Marshal(factor); err != nil || string(got) != want {
			t.Errorf("%d ten-thousandths read %s, %v; want %s", factor, got, err, want)
		}
	}
}

func TestGoSDKWithFairShares(t *testing.T) {
	ctx := context.Background()
	c := newServer(t).administratorsClient(t)
	policy := must[*batch.CreateSchedulingPolicyOutput](t)(c.CreateSchedulingPolicy(ctx, &batch.CreateSchedulingPolicyInput{
		Name: aws.String("byuse"),
		FairsharePolicy: &types.FairsharePolicy{
			ShareDecaySeconds: aws.Int32(3600), ComputeReservation: aws.Int32(0),
			ShareDistribution: []types.ShareAttributes{{ShareIdentifier: aws.String("teamA*"), WeightFactor: aws.Float32(0.1)}, {ShareIdentifier: aws.String("b")}},
		},
	}))
	described := must[*batch.DescribeSchedulingPoliciesOutput](t)(c.DescribeSchedulingPolicies(ctx, &batch.DescribeSchedulingPoliciesInput{Arns: []string{*policy.Arn}}))
	f := described.SchedulingPolicies[0].FairsharePolicy
	if f == nil || aws.ToInt32(f.ShareDecaySeconds) != 3600 || len(f.ShareDistribution) != 2 ||
		aws.ToFloat32(f.ShareDistribution[0].WeightFactor) != 0.1 || aws.ToFloat32(f.ShareDistribution[1].WeightFactor) != 1 {
		t.Fatalf("described %+v", f)
	}
	_, err := c.UpdateSchedulingPolicy(ctx, &batch.UpdateSchedulingPolicyInput{Arn: policy.Arn, FairsharePolicy: &types.FairsharePolicy{
		ShareDistribution: []types.ShareAttributes{{ShareIdentifier: aws.String("b"), WeightFactor: aws.Float32(1000)}},
	}})
	wantClientException(t, err, "Weight factor should be between 0.0001 and 999.9999.")

	must[*batch.CreateServiceEnvironmentOutput](t)(c.CreateServiceEnvironment(ctx, &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String("env"), ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits: []types.CapacityLimit{{CapacityUnit: aws.String("NUM_INSTANCES"), MaxCapacity: aws.Int32(2)}},
	}))
	must[*batch.CreateJobQueueOutput](t)(c.CreateJobQueue(ctx, &batch.CreateJobQueueInput{
		JobQueueName: aws.String("fair"), JobQueueType: types.JobQueueTypeSagemakerTraining, Priority: aws.Int32(1), SchedulingPolicyArn: policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: aws.String("env")}},
	}))
	submit := func(name, identifier string) *batch.SubmitServiceJobOutput {
		return must[*batch.SubmitServiceJobOutput](t)(c.SubmitServiceJob(ctx, &batch.SubmitServiceJobInput{
			JobName: aws.String(name), JobQueue: aws.String("fair"), ShareIdentifier: aws.String(identifier),
			ServiceJobType: types.ServiceJobTypeSagemakerTraining, ServiceRequestPayload: aws.String(testPayload),
		}))
	}
	status := func(job *batch.SubmitServiceJobOutput) types.ServiceJobStatus {
		j := must[*batch.DescribeServiceJobOutput](t)(c.DescribeServiceJob(ctx, &batch.DescribeServiceJobInput{JobId: job.JobArn}))
		return j.Status
	}
	first, second := submit("first", "b"), submit("second", "b")
	third, fourth := submit("third", "b"), submit("fourth", "teamA1")
	eventually(t, "the first two to run", func() bool {
		return status(first) == types.ServiceJobStatusRunning && status(second) == types.ServiceJobStatusRunning
	})
	snapshot := must[*batch.GetJobQueueSnapshotOutput](t)(c.GetJobQueueSnapshot(ctx, &batch.GetJobQueueSnapshotInput{JobQueue: aws.String("fair")}))
	var front []string
	for _, j := range snapshot.FrontOfQueue.Jobs {
		front = append(front, aws.ToString(j.JobArn))
	}
	if want := []string{*fourth.JobArn, *third.JobArn}; !slices.Equal(front, want) {
		t.Errorf("in front %v, want %v", front, want)
	}
	use := snapshot.QueueUtilization.FairshareUtilization
	if use == nil || aws.ToInt64(use.ActiveShareCount) != 1 || aws.ToString(use.TopCapacityUtilization[0].ShareIdentifier) != "b" ||
		aws.ToString(use.TopCapacityUtilization[0].CapacityUsage[0].CapacityUnit) != "NUM_INSTANCES" || aws.ToFloat64(use.TopCapacityUtilization[0].CapacityUsage[0].Quantity) != 2 {
		t.Errorf("utilization %+v", use)
	}
	listed := must[*batch.ListServiceJobsOutput](t)(c.ListServiceJobs(ctx, &batch.ListServiceJobsInput{JobQueue: aws.String("fair"),
		Filters: []types.KeyValuesPair{{Name: aws.String("SHARE_IDENTIFIER"), Values: []string{"teamA1"}}}}))
	if len(listed.JobSummaryList) != 1 || aws.ToString(listed.JobSummaryList[0].ShareIdentifier) != "teamA1" {
		t.Errorf("listed %+v", listed.JobSummaryList)
	}
	must[*batch.TerminateServiceJobOutput](t)(c.TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: first.JobArn, Reason: aws.String("enough")}))
	eventually(t, "who used nothing to go first", func() bool { return status(fourth) == types.ServiceJobStatusRunning })
	if got := status(third); got != types.ServiceJobStatusRunnable {
		t.Errorf("the third job is %s", got)
	}
}
