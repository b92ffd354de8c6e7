package live

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"
)

// Names of what Prepare creates, and of the one instance type that it knows.
const (
	Environment = "gpus"
	Queue       = "training"
	Instance    = "ml.g5.xlarge"
)

// Share is a quota share of Queue.
type Share struct {
	Name              string
	Instances         int32
	Strategy          types.QuotaShareResourceSharingStrategy
	InSharePreemption bool
}

// Prepare creates Queue with the shares given, on an environment of as many
// instances as they have together.
func Prepare(t testing.TB, api *batch.Client, shares []Share) {
	t.Helper()
	ctx := t.Context()
	var capacity int32
	for _, s := range shares {
		capacity += s.Instances
	}
	policy, err := api.CreateSchedulingPolicy(ctx, &batch.CreateSchedulingPolicyInput{
		Name:             aws.String("sharing"),
		QuotaSharePolicy: &types.QuotaSharePolicy{IdleResourceAssignmentStrategy: types.QuotaShareIdleResourceAssignmentStrategyFifo},
	})
	Must(t, err)
	environment, err := api.CreateServiceEnvironment(ctx, &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String(Environment),
		ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits:         []types.CapacityLimit{{CapacityUnit: aws.String(Instance), MaxCapacity: &capacity}},
	})
	Must(t, err)
	_, err = api.CreateJobQueue(ctx, &batch.CreateJobQueueInput{
		JobQueueName:            aws.String(Queue),
		JobQueueType:            types.JobQueueTypeSagemakerTraining,
		Priority:                aws.Int32(1),
		SchedulingPolicyArn:     policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: environment.ServiceEnvironmentArn}},
	})
	Must(t, err)
	for _, s := range shares {
		preemption := types.QuotaShareInSharePreemptionStateDisabled
		if s.InSharePreemption {
			preemption = types.QuotaShareInSharePreemptionStateEnabled
		}
		_, err := api.CreateQuotaShare(ctx, &batch.CreateQuotaShareInput{
			QuotaShareName:               &s.Name,
			JobQueue:                     aws.String(Queue),
			CapacityLimits:               []types.QuotaShareCapacityLimit{{CapacityUnit: aws.String(Instance), MaxCapacity: &s.Instances}},
			ResourceSharingConfiguration: &types.QuotaShareResourceSharingConfiguration{Strategy: s.Strategy},
			PreemptionConfiguration:      &types.QuotaSharePreemptionConfiguration{InSharePreemption: preemption},
		})
		Must(t, err)
	}
}

// Submission is a request for a job that runs a program on one instance.
func Submission(t testing.TB, name, share string, hyperparameters map[string]string, argv ...string) *batch.SubmitServiceJobInput {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"TrainingJobName":        name,
		"AlgorithmSpecification": map[string]any{"ContainerEntrypoint": argv, "TrainingInputMode": "File"},
		"ResourceConfig":         map[string]any{"InstanceType": Instance, "InstanceCount": 1, "VolumeSizeInGB": 1},
		"HyperParameters":        hyperparameters,
	})
	Must(t, err)
	return &batch.SubmitServiceJobInput{
		JobName:               &name,
		JobQueue:              aws.String(Queue),
		QuotaShareName:        &share,
		ServiceJobType:        types.ServiceJobTypeSagemakerTraining,
		ServiceRequestPayload: aws.String(string(payload)),
	}
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
