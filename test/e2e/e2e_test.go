// Package e2e tests the product from outside: real servers, real clients, real
// processes.
package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/test/live"
)

func TestMain(m *testing.M) { os.Exit(live.Main(m)) }

const instance = "ml.g5.xlarge"

// start starts a server on a directory of the test's own, whose jobs end with
// the test.
func start(t *testing.T) *live.Server {
	t.Helper()
	s := live.Start(t, filepath.Join(t.TempDir(), "data"))
	t.Cleanup(func() { s.EndJobs(context.WithoutCancel(t.Context())) }) // the test's context has ended by then
	return s
}

// share is a quota share of one instance.
type share struct {
	name       string
	sharing    types.QuotaShareResourceSharingConfiguration
	preemption types.QuotaShareInSharePreemptionState
}

// threeShares are those of the first scenario.
var threeShares = []share{
	{"QS1", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLendAndBorrow, BorrowLimit: aws.Int32(200)}, types.QuotaShareInSharePreemptionStateEnabled},
	{"QS2", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLend}, types.QuotaShareInSharePreemptionStateDisabled},
	{"QS3", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyReserve}, types.QuotaShareInSharePreemptionStateDisabled},
}

// prepare creates a queue named training with shares of one instance each, on
// an environment of as many.
func prepare(t *testing.T, api *batch.Client, shares []share) {
	t.Helper()
	ctx := t.Context()
	policy, err := api.CreateSchedulingPolicy(ctx, &batch.CreateSchedulingPolicyInput{
		Name:             aws.String("sharing"),
		QuotaSharePolicy: &types.QuotaSharePolicy{IdleResourceAssignmentStrategy: types.QuotaShareIdleResourceAssignmentStrategyFifo},
	})
	must(t, err)
	environment, err := api.CreateServiceEnvironment(ctx, &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String("gpus"),
		ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits:         []types.CapacityLimit{{CapacityUnit: aws.String(instance), MaxCapacity: aws.Int32(int32(len(shares)))}},
	})
	must(t, err)
	_, err = api.CreateJobQueue(ctx, &batch.CreateJobQueueInput{
		JobQueueName:            aws.String("training"),
		JobQueueType:            types.JobQueueTypeSagemakerTraining,
		Priority:                aws.Int32(1),
		SchedulingPolicyArn:     policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: environment.ServiceEnvironmentArn}},
	})
	must(t, err)
	for _, s := range shares {
		_, err := api.CreateQuotaShare(ctx, &batch.CreateQuotaShareInput{
			QuotaShareName:               &s.name,
			JobQueue:                     aws.String("training"),
			CapacityLimits:               []types.QuotaShareCapacityLimit{{CapacityUnit: aws.String(instance), MaxCapacity: aws.Int32(1)}},
			ResourceSharingConfiguration: &s.sharing,
			PreemptionConfiguration:      &types.QuotaSharePreemptionConfiguration{InSharePreemption: s.preemption},
		})
		must(t, err)
	}
}

// submit submits a job on one instance and returns its id.
func submit(t *testing.T, api *batch.Client, name, share string, priority int32, hyperparameters map[string]string, argv ...string) string {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"TrainingJobName":        name,
		"AlgorithmSpecification": map[string]any{"ContainerEntrypoint": argv, "TrainingInputMode": "File"},
		"ResourceConfig":         map[string]any{"InstanceType": instance, "InstanceCount": 1, "VolumeSizeInGB": 1},
		"HyperParameters":        hyperparameters,
	})
	must(t, err)
	reply, err := api.SubmitServiceJob(t.Context(), &batch.SubmitServiceJobInput{
		JobName:               &name,
		JobQueue:              aws.String("training"),
		QuotaShareName:        &share,
		SchedulingPriority:    &priority,
		ServiceJobType:        types.ServiceJobTypeSagemakerTraining,
		ServiceRequestPayload: aws.String(string(payload)),
	})
	must(t, err)
	return *reply.JobId
}

func describe(t *testing.T, api *batch.Client, id string) *batch.DescribeServiceJobOutput {
	t.Helper()
	reply, err := api.DescribeServiceJob(t.Context(), &batch.DescribeServiceJobInput{JobId: &id})
	must(t, err)
	return reply
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
