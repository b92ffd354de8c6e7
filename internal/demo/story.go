package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

const (
	instance = "ml.g5.xlarge"
	queue    = "training"

	stepTime = 40 * time.Millisecond
)

// unfinished are the states of jobs that wait or run.
var unfinished = []job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running}

// story is what happens, told step by step. A step begins once the one before
// it can be seen.
func (d *demo) story(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{d.borrows, d.ownerReturns, d.outranks, d.resume}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare creates three shares of one instance each, on an environment of three.
func (d *demo) prepare(ctx context.Context) error {
	d.scene.announce("Three teams own one " + instance + " each. QS1 may borrow, QS2 lends, QS3 reserves.")
	one := []types.QuotaShareCapacityLimit{{CapacityUnit: aws.String(instance), MaxCapacity: aws.Int32(1)}}
	policy, err := d.batch.CreateSchedulingPolicy(ctx, &batch.CreateSchedulingPolicyInput{
		Name:             aws.String("sharing"),
		QuotaSharePolicy: &types.QuotaSharePolicy{IdleResourceAssignmentStrategy: types.QuotaShareIdleResourceAssignmentStrategyFifo},
	})
	if err != nil {
		return fmt.Errorf("creating the scheduling policy: %w", err)
	}
	environment, err := d.batch.CreateServiceEnvironment(ctx, &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String("gpus"),
		ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits:         []types.CapacityLimit{{CapacityUnit: aws.String(instance), MaxCapacity: aws.Int32(3)}},
	})
	if err != nil {
		return fmt.Errorf("creating the service environment: %w", err)
	}
	_, err = d.batch.CreateJobQueue(ctx, &batch.CreateJobQueueInput{
		JobQueueName:            aws.String(queue),
		JobQueueType:            types.JobQueueTypeSagemakerTraining,
		Priority:                aws.Int32(1),
		SchedulingPolicyArn:     policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: environment.ServiceEnvironmentArn}},
	})
	if err != nil {
		return fmt.Errorf("creating the job queue: %w", err)
	}
	for _, share := range []struct {
		name       string
		sharing    types.QuotaShareResourceSharingConfiguration
		preemption types.QuotaShareInSharePreemptionState
	}{
		{"QS1", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLendAndBorrow, BorrowLimit: aws.Int32(200)}, types.QuotaShareInSharePreemptionStateEnabled},
		{"QS2", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyLend}, types.QuotaShareInSharePreemptionStateDisabled},
		{"QS3", types.QuotaShareResourceSharingConfiguration{Strategy: types.QuotaShareResourceSharingStrategyReserve}, types.QuotaShareInSharePreemptionStateDisabled},
	} {
		_, err := d.batch.CreateQuotaShare(ctx, &batch.CreateQuotaShareInput{
			QuotaShareName:               aws.String(share.name),
			JobQueue:                     aws.String(queue),
			CapacityLimits:               one,
			ResourceSharingConfiguration: &share.sharing,
			PreemptionConfiguration:      &types.QuotaSharePreemptionConfiguration{InSharePreemption: share.preemption},
		})
		if err != nil {
			return fmt.Errorf("creating quota share %s: %w", share.name, err)
		}
	}
	return pause(ctx, 2*time.Second)
}

func (d *demo) borrows(ctx context.Context) error {
	d.scene.announce("QS1 submits three jobs. It owns one instance, and borrows the one that QS2 leaves idle. QS3's stays reserved.")
	for _, j := range []struct {
		name     string
		priority int32
		steps    int
	}{{"high", 3, 600}, {"med", 2, 420}, {"low", 1, 340}} {
		if err := d.submit(ctx, j.name, "QS1", j.priority, j.steps); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	if err := d.await(ctx, "med trains on borrowed capacity", trains("med")); err != nil {
		return err
	}
	return pause(ctx, 6*time.Second)
}

func (d *demo) ownerReturns(ctx context.Context) error {
	d.scene.announce("QS2 wants its instance back. The borrower is told to stop, writes a checkpoint, and waits in its old place.")
	if err := d.submit(ctx, "owner", "QS2", 1, 320); err != nil {
		return err
	}
	if err := d.await(ctx, "the owner trains", trains("owner")); err != nil {
		return err
	}
	return pause(ctx, 6*time.Second)
}

func (d *demo) outranks(ctx context.Context) error {
	d.scene.announce("The priority of low is raised to 4. Inside QS1 it now goes before high, which makes room for it.")
	low, ok := d.scene.job("low")
	if !ok {
		return errors.New("job low is not listed")
	}
	_, err := d.batch.UpdateServiceJob(ctx, &batch.UpdateServiceJobInput{JobId: &low.Job.ID, SchedulingPriority: aws.Int32(4)})
	if err != nil {
		return fmt.Errorf("raising the priority of low: %w", err)
	}
	if err := d.await(ctx, "low trains", trains("low")); err != nil {
		return err
	}
	return pause(ctx, 4*time.Second)
}

func (d *demo) resume(ctx context.Context) error {
	d.scene.announce("As instances come free, high and med resume at the step they had reached.")
	return d.await(ctx, "every job succeeds", (*scene).isComplete)
}

// isComplete reports whether every job has ended, and all is known of it that
// the summary needs: its last words, and the journal up to its end.
func (s *scene) isComplete() bool {
	journaled := 0
	for _, e := range s.journal {
		if e.Kind == store.State && job.Status(e.Name).Finished() {
			journaled++
		}
	}
	for _, j := range s.jobs {
		if !j.Job.Status.Finished() || !s.training[j.Job.Name].ended() {
			return false
		}
	}
	return journaled == len(s.jobs)
}

// submit submits one training on one instance.
func (d *demo) submit(ctx context.Context, name, share string, priority int32, steps int) error {
	payload, err := json.Marshal(map[string]any{
		"TrainingJobName":        name,
		"AlgorithmSpecification": map[string]any{"ContainerEntrypoint": []string{d.Train}, "TrainingInputMode": "File"},
		"ResourceConfig":         map[string]any{"InstanceType": instance, "InstanceCount": 1, "VolumeSizeInGB": 1},
		"HyperParameters": map[string]string{
			"steps":            strconv.Itoa(steps),
			"step_ms":          strconv.FormatInt(stepTime.Milliseconds(), 10),
			"checkpoint_every": "50",
			"log_every":        "5",
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the training job: %w", err)
	}
	_, err = d.batch.SubmitServiceJob(ctx, &batch.SubmitServiceJobInput{
		JobName:               aws.String(name),
		JobQueue:              aws.String(queue),
		QuotaShareName:        aws.String(share),
		SchedulingPriority:    aws.Int32(priority),
		ServiceJobType:        types.ServiceJobTypeSagemakerTraining,
		ServiceRequestPayload: aws.String(string(payload)),
	})
	if err != nil {
		return fmt.Errorf("submitting %s: %w", name, err)
	}
	return nil
}

// trains says that a job runs and has been seen to take steps in this run.
func trains(name string) func(*scene) bool {
	return func(s *scene) bool {
		for _, j := range s.jobs {
			if j.Job.Name == name {
				return j.Job.Status == job.Running && s.training[name].stepping(j.Job.Runs)
			}
		}
		return false
	}
}

// await waits until the scene shows something.
func (d *demo) await(ctx context.Context, what string, shown func(*scene) bool) error {
	for {
		ok, changed := d.scene.look(shown)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}
