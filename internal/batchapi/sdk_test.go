package batchapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"
	"github.com/aws/smithy-go"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store/memory"
)

// server is a door on a socket, as clients know it: by its URL and a
// credentials file.
type server struct {
	url         string
	credentials string // the file's path
	keys        *auth.Keys
}

// newServer starts a whole house on the machine's clock behind a socket. Jobs
// whose names begin with "short" end soon and well, all others run on.
func newServer(t *testing.T) server {
	t.Helper()
	g := startGovernor(t, memory.New(), clock.System{}, func(a runner.Attempt) simulated.Program {
		if strings.HasPrefix(a.JobName, "short") {
			return simulated.Program{Runtime: 10 * time.Millisecond}
		}
		return simulated.Program{}
	})
	s := server{credentials: filepath.Join(t.TempDir(), "credentials")}
	if _, err := auth.EnsureCredentials(s.credentials); err != nil {
		t.Fatal(err)
	}
	keys, err := auth.LoadKeys(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	s.keys = keys
	listening := httptest.NewServer(New(Config{
		Governor:  g,
		Verifier:  &auth.Verifier{Keys: keys, Region: testRegion, Services: []string{Service}, Now: time.Now},
		Partition: "aws", Region: testRegion, AccountID: testAccount,
		NewID: counter("request-%d"), Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(listening.Close)
	s.url = listening.URL
	return s
}

// client is AWS's own, with nothing but the endpoint and the key changed.
func (s server) client(provider aws.CredentialsProvider) *batch.Client {
	return batch.New(batch.Options{Region: testRegion, BaseEndpoint: &s.url, Credentials: provider, RetryMaxAttempts: 1})
}

func (s server) administrator(t *testing.T) aws.Credentials {
	t.Helper()
	creds, ok := s.keys.Credentials(auth.AdministratorProfile)
	if !ok {
		t.Fatal("no administrator's key")
	}
	return creds
}

func (s server) administratorsClient(t *testing.T) *batch.Client {
	t.Helper()
	creds := s.administrator(t)
	return s.client(credentials.NewStaticCredentialsProvider(creds.AccessKeyID, creds.SecretAccessKey, ""))
}

// must fails the test if a call fails.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(reply T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

func wantClientException(t *testing.T, err error, part string) {
	t.Helper()
	var refused *types.ClientException
	if !errors.As(err, &refused) || !strings.Contains(aws.ToString(refused.Message), part) {
		t.Errorf("error %v, want a ClientException with %q", err, part)
	}
}

// eventually calls again until what it looks for is there.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !there() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestGoSDK(t *testing.T) {
	ctx := context.Background()
	c := newServer(t).administratorsClient(t)

	policy := must[*batch.CreateSchedulingPolicyOutput](t)(c.CreateSchedulingPolicy(ctx, &batch.CreateSchedulingPolicyInput{
		Name:             aws.String("policy"),
		QuotaSharePolicy: &types.QuotaSharePolicy{IdleResourceAssignmentStrategy: types.QuotaShareIdleResourceAssignmentStrategyFifo},
	}))
	environment := &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String("env"),
		ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits:         []types.CapacityLimit{{CapacityUnit: aws.String("ml.g5.xlarge"), MaxCapacity: aws.Int32(3)}},
	}
	created := must[*batch.CreateServiceEnvironmentOutput](t)(c.CreateServiceEnvironment(ctx, environment))
	_, err := c.CreateServiceEnvironment(ctx, environment)
	if refused := (*types.ClientException)(nil); !errors.As(err, &refused) || aws.ToString(refused.Message) != "Object already exists" {
		t.Errorf("a second environment: %v, want exactly \"Object already exists\"", err)
	}
	queue := must[*batch.CreateJobQueueOutput](t)(c.CreateJobQueue(ctx, &batch.CreateJobQueueInput{
		JobQueueName: aws.String("queue"), JobQueueType: types.JobQueueTypeSagemakerTraining, Priority: aws.Int32(1), SchedulingPolicyArn: policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: created.ServiceEnvironmentArn}},
	}))
	share := &batch.CreateQuotaShareInput{
		JobQueue: queue.JobQueueArn, QuotaShareName: aws.String("QS1"),
		CapacityLimits:               []types.QuotaShareCapacityLimit{{CapacityUnit: aws.String("ml.g5.xlarge"), MaxCapacity: aws.Int32(1)}},
		ResourceSharingConfiguration: &types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLend},
		PreemptionConfiguration:      &types.QuotaSharePreemptionConfiguration{InSharePreemption: types.QuotaShareInSharePreemptionStateEnabled},
	}
	first := must[*batch.CreateQuotaShareOutput](t)(c.CreateQuotaShare(ctx, share))
	_, err = c.CreateQuotaShare(ctx, share)
	wantClientException(t, err, "already exists")
	if want := aws.ToString(queue.JobQueueArn) + "/quota-share/QS1"; aws.ToString(first.QuotaShareArn) != want {
		t.Errorf("share ARN %s, want %s", aws.ToString(first.QuotaShareArn), want)
	}
	share.QuotaShareName = aws.String("QS2")
	must[*batch.CreateQuotaShareOutput](t)(c.CreateQuotaShare(ctx, share))

	t.Run("describe and update", func(t *testing.T) {
		environments := must[*batch.DescribeServiceEnvironmentsOutput](t)(c.DescribeServiceEnvironments(ctx, &batch.DescribeServiceEnvironmentsInput{ServiceEnvironments: []string{"env"}}))
		if e := environments.ServiceEnvironments; len(e) != 1 || e[0].Status != types.ServiceEnvironmentStatusValid || e[0].State != types.ServiceEnvironmentStateEnabled {
			t.Errorf("environments %+v", e)
		}
		must[*batch.UpdateServiceEnvironmentOutput](t)(c.UpdateServiceEnvironment(ctx, &batch.UpdateServiceEnvironmentInput{ServiceEnvironment: aws.String("env"), CapacityLimits: environment.CapacityLimits}))
		policies := must[*batch.DescribeSchedulingPoliciesOutput](t)(c.DescribeSchedulingPolicies(ctx, &batch.DescribeSchedulingPoliciesInput{Arns: []string{aws.ToString(policy.Arn)}}))
		if p := policies.SchedulingPolicies; len(p) != 1 || p[0].QuotaSharePolicy == nil {
			t.Errorf("policies %+v", p)
		}
		must[*batch.UpdateSchedulingPolicyOutput](t)(c.UpdateSchedulingPolicy(ctx, &batch.UpdateSchedulingPolicyInput{Arn: policy.Arn, QuotaSharePolicy: &types.QuotaSharePolicy{IdleResourceAssignmentStrategy: types.QuotaShareIdleResourceAssignmentStrategyFifo}}))
		listed := must[*batch.ListSchedulingPoliciesOutput](t)(c.ListSchedulingPolicies(ctx, &batch.ListSchedulingPoliciesInput{}))
		if len(listed.SchedulingPolicies) != 1 {
			t.Errorf("listed policies %+v", listed.SchedulingPolicies)
		}
		queues := must[*batch.DescribeJobQueuesOutput](t)(c.DescribeJobQueues(ctx, &batch.DescribeJobQueuesInput{}))
		if q := queues.JobQueues; len(q) != 1 || q[0].Status != types.JQStatusValid || q[0].ComputeEnvironmentOrder == nil {
			t.Errorf("queues %+v", q)
		}
		must[*batch.UpdateJobQueueOutput](t)(c.UpdateJobQueue(ctx, &batch.UpdateJobQueueInput{JobQueue: aws.String("queue"), Priority: aws.Int32(2)}))
		must[*batch.UpdateQuotaShareOutput](t)(c.UpdateQuotaShare(ctx, &batch.UpdateQuotaShareInput{QuotaShareArn: first.QuotaShareArn,
			ResourceSharingConfiguration: &types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLendAndBorrow, BorrowLimit: aws.Int32(200)}}))
		described := must[*batch.DescribeQuotaShareOutput](t)(c.DescribeQuotaShare(ctx, &batch.DescribeQuotaShareInput{QuotaShareArn: first.QuotaShareArn}))
		if s := described.ResourceSharingConfiguration; s.Strategy != types.QuotaShareResourceSharingStrategyLendAndBorrow || aws.ToInt32(s.BorrowLimit) != 200 {
			t.Errorf("sharing %+v", s)
		}
		var shares []string
		for pages := batch.NewListQuotaSharesPaginator(c, &batch.ListQuotaSharesInput{JobQueue: queue.JobQueueArn, MaxResults: aws.Int32(1)}); pages.HasMorePages(); {
			for _, s := range must[*batch.ListQuotaSharesOutput](t)(pages.NextPage(ctx)).QuotaShares {
				shares = append(shares, aws.ToString(s.QuotaShareName))
			}
		}
		if !slices.Equal(shares, []string{"QS1", "QS2"}) {
			t.Errorf("listed shares %v", shares)
		}
	})

	t.Run("tags", func(t *testing.T) {
		for _, arn := range []*string{created.ServiceEnvironmentArn, policy.Arn, queue.JobQueueArn, first.QuotaShareArn} {
			must[*batch.TagResourceOutput](t)(c.TagResource(ctx, &batch.TagResourceInput{ResourceArn: arn, Tags: map[string]string{"a key": "x=1&y", "b": ""}}))
			must[*batch.UntagResourceOutput](t)(c.UntagResource(ctx, &batch.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"b", "c d/e"}}))
			tags := must[*batch.ListTagsForResourceOutput](t)(c.ListTagsForResource(ctx, &batch.ListTagsForResourceInput{ResourceArn: arn})).Tags
			if len(tags) != 1 || tags["a key"] != "x=1&y" {
				t.Errorf("tags of %s: %v", aws.ToString(arn), tags)
			}
		}
	})

	submit := func(t *testing.T, name, share string) *batch.SubmitServiceJobOutput {
		t.Helper()
		return must[*batch.SubmitServiceJobOutput](t)(c.SubmitServiceJob(ctx, &batch.SubmitServiceJobInput{
			JobName: aws.String(name), JobQueue: queue.JobQueueArn, QuotaShareName: aws.String(share), ServiceJobType: types.ServiceJobTypeSagemakerTraining,
			ServiceRequestPayload: aws.String(testPayload), SchedulingPriority: aws.Int32(1),
			RetryStrategy: &types.ServiceJobRetryStrategy{Attempts: aws.Int32(1)}, TimeoutConfig: &types.ServiceJobTimeout{AttemptDurationSeconds: aws.Int32(86400)},
		}))
	}
	describe := func(t *testing.T, id *string) *batch.DescribeServiceJobOutput {
		t.Helper()
		return must[*batch.DescribeServiceJobOutput](t)(c.DescribeServiceJob(ctx, &batch.DescribeServiceJobInput{JobId: id}))
	}
	reach := func(t *testing.T, id *string, status types.ServiceJobStatus) *batch.DescribeServiceJobOutput {
		t.Helper()
		eventually(t, string(status), func() bool { return describe(t, id).Status == status })
		return describe(t, id)
	}

	t.Run("jobs", func(t *testing.T) {
		short := submit(t, "short", "QS1")
		if j := reach(t, short.JobArn, types.ServiceJobStatusSucceeded); !strings.Contains(aws.ToString(j.StatusReason), "Training job completed") || aws.ToInt64(j.StoppedAt) == 0 {
			t.Errorf("succeeded with reason %q at %d", aws.ToString(j.StatusReason), aws.ToInt64(j.StoppedAt))
		}
		running := submit(t, "running", "QS1")
		j := reach(t, running.JobId, types.ServiceJobStatusRunning)
		if j.LatestAttempt == nil || !strings.Contains(aws.ToString(j.LatestAttempt.ServiceResourceId.Value), ":training-job/AWSBatchtrain") {
			t.Errorf("latest attempt %+v", j.LatestAttempt)
		}
		updated := must[*batch.UpdateServiceJobOutput](t)(c.UpdateServiceJob(ctx, &batch.UpdateServiceJobInput{JobId: running.JobArn, SchedulingPriority: aws.Int32(9)}))
		if aws.ToString(updated.JobArn) != aws.ToString(running.JobArn) || aws.ToInt32(describe(t, running.JobId).SchedulingPriority) != 9 {
			t.Errorf("updated %+v", updated)
		}
		var names []string
		for pages := batch.NewListServiceJobsPaginator(c, &batch.ListServiceJobsInput{JobQueue: aws.String("queue"), MaxResults: aws.Int32(1),
			Filters: []types.KeyValuesPair{{Name: aws.String("JOB_NAME"), Values: []string{"*"}}}}); pages.HasMorePages(); {
			for _, s := range must[*batch.ListServiceJobsOutput](t)(pages.NextPage(ctx)).JobSummaryList {
				names = append(names, aws.ToString(s.JobName))
			}
		}
		if !slices.Equal(names, []string{"running", "short"}) {
			t.Errorf("listed jobs %v", names)
		}
		snapshot := must[*batch.GetJobQueueSnapshotOutput](t)(c.GetJobQueueSnapshot(ctx, &batch.GetJobQueueSnapshotInput{JobQueue: aws.String("queue")}))
		if total := snapshot.QueueUtilization.TotalCapacityUsage; len(total) != 1 || aws.ToFloat64(total[0].Quantity) != 1 {
			t.Errorf("usage %+v", total)
		}
		if fronts := snapshot.FrontOfQuotaShares.QuotaShares; len(fronts) != 2 {
			t.Errorf("fronts %v", fronts)
		}
		must[*batch.TagResourceOutput](t)(c.TagResource(ctx, &batch.TagResourceInput{ResourceArn: running.JobArn, Tags: map[string]string{"a": "b"}}))
		must[*batch.TerminateServiceJobOutput](t)(c.TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: running.JobArn, Reason: aws.String("enough")}))
		if j := reach(t, running.JobId, types.ServiceJobStatusFailed); aws.ToString(j.StatusReason) != "enough" || !aws.ToBool(j.IsTerminated) || j.Tags["a"] != "b" {
			t.Errorf("terminated job: reason %q, terminated %v, tags %v", aws.ToString(j.StatusReason), aws.ToBool(j.IsTerminated), j.Tags)
		}
		_, err := c.DescribeServiceJob(ctx, &batch.DescribeServiceJobInput{JobId: aws.String("none")})
		wantClientException(t, err, "does not exist")
	})

	t.Run("delete", func(t *testing.T) {
		for _, name := range []string{"QS1", "QS2"} {
			arn := aws.String(aws.ToString(queue.JobQueueArn) + "/quota-share/" + name)
			_, err := c.DeleteQuotaShare(ctx, &batch.DeleteQuotaShareInput{QuotaShareArn: arn})
			wantClientException(t, err, "DISABLED")
			must[*batch.UpdateQuotaShareOutput](t)(c.UpdateQuotaShare(ctx, &batch.UpdateQuotaShareInput{QuotaShareArn: arn, State: types.QuotaShareStateDisabled}))
			must[*batch.DeleteQuotaShareOutput](t)(c.DeleteQuotaShare(ctx, &batch.DeleteQuotaShareInput{QuotaShareArn: arn}))
			_, err = c.DescribeQuotaShare(ctx, &batch.DescribeQuotaShareInput{QuotaShareArn: arn})
			wantClientException(t, err, "does not exist")
		}
		must[*batch.UpdateJobQueueOutput](t)(c.UpdateJobQueue(ctx, &batch.UpdateJobQueueInput{JobQueue: queue.JobQueueArn, State: types.JQStateDisabled}))
		must[*batch.DeleteJobQueueOutput](t)(c.DeleteJobQueue(ctx, &batch.DeleteJobQueueInput{JobQueue: queue.JobQueueArn}))
		if left := must[*batch.DescribeJobQueuesOutput](t)(c.DescribeJobQueues(ctx, &batch.DescribeJobQueuesInput{JobQueues: []string{"queue"}})); len(left.JobQueues) != 0 {
			t.Errorf("queues left: %+v", left.JobQueues)
		}
		must[*batch.DeleteSchedulingPolicyOutput](t)(c.DeleteSchedulingPolicy(ctx, &batch.DeleteSchedulingPolicyInput{Arn: policy.Arn}))
		must[*batch.UpdateServiceEnvironmentOutput](t)(c.UpdateServiceEnvironment(ctx, &batch.UpdateServiceEnvironmentInput{ServiceEnvironment: aws.String("env"), State: types.ServiceEnvironmentStateDisabled}))
		must[*batch.DeleteServiceEnvironmentOutput](t)(c.DeleteServiceEnvironment(ctx, &batch.DeleteServiceEnvironmentInput{ServiceEnvironment: aws.String("env")}))
	})
}

func TestGoSDKWithoutTheRightKey(t *testing.T) {
	s := newServer(t)
	right := s.administrator(t)
	for name, c := range map[string]struct {
		provider aws.CredentialsProvider
		code     string
	}{
		"unsigned":      {aws.AnonymousCredentials{}, auth.MissingAuthenticationToken},
		"unknown key":   {credentials.NewStaticCredentialsProvider("AKIAUNKNOWN", right.SecretAccessKey, ""), auth.UnrecognizedClient},
		"wrong secret":  {credentials.NewStaticCredentialsProvider(right.AccessKeyID, "wrong", ""), auth.InvalidSignature},
		"session token": {credentials.NewStaticCredentialsProvider(right.AccessKeyID, right.SecretAccessKey, "token"), auth.UnrecognizedClient},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.client(c.provider).DescribeJobQueues(context.Background(), &batch.DescribeJobQueuesInput{})
			var refused smithy.APIError
			if !errors.As(err, &refused) || refused.ErrorCode() != c.code {
				t.Errorf("error %v, want %s", err, c.code)
			}
			var response *awshttp.ResponseError
			if !errors.As(err, &response) || response.HTTPStatusCode() != http.StatusForbidden || response.ServiceRequestID() == "" {
				t.Errorf("error %v, want status 403 and a request id", err)
			}
		})
	}
	t.Run("another region", func(t *testing.T) {
		c := batch.New(batch.Options{Region: "eu-west-1", BaseEndpoint: &s.url, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(right.AccessKeyID, right.SecretAccessKey, "")})
		_, err := c.DescribeJobQueues(context.Background(), &batch.DescribeJobQueuesInput{})
		if err == nil || !strings.Contains(err.Error(), "This server is in 'us-east-1'") {
			t.Errorf("error %v, want one that names the server's region", err)
		}
	})
}
