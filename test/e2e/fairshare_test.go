package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/test/live"
)

// prepareFairShare creates a fair-share queue on an environment of one instance.
func prepareFairShare(t *testing.T, api *batch.Client) {
	t.Helper()
	policy, err := api.CreateSchedulingPolicy(t.Context(), &batch.CreateSchedulingPolicyInput{
		Name: aws.String("by-use"), FairsharePolicy: &types.FairsharePolicy{ShareDecaySeconds: aws.Int32(3600)},
	})
	live.Must(t, err)
	_, err = api.CreateServiceEnvironment(t.Context(), &batch.CreateServiceEnvironmentInput{
		ServiceEnvironmentName: aws.String(live.Environment),
		ServiceEnvironmentType: types.ServiceEnvironmentTypeSagemakerTraining,
		CapacityLimits:         []types.CapacityLimit{{CapacityUnit: aws.String("NUM_INSTANCES"), MaxCapacity: aws.Int32(1)}},
	})
	live.Must(t, err)
	_, err = api.CreateJobQueue(t.Context(), &batch.CreateJobQueueInput{
		JobQueueName: aws.String("fair"), JobQueueType: types.JobQueueTypeSagemakerTraining, Priority: aws.Int32(1), SchedulingPolicyArn: policy.Arn,
		ServiceEnvironmentOrder: []types.ServiceEnvironmentOrder{{Order: aws.Int32(1), ServiceEnvironment: aws.String(live.Environment)}},
	})
	live.Must(t, err)
}

// TestFairShareQueue has people submit by the command line. Who used least
// goes first, also after the server was killed.
func TestFairShareQueue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	release := filepath.Join(t.TempDir(), "release")
	s := live.Start(t, dir)
	prepareFairShare(t, s.Batch())
	submit := func(name, identifier string) {
		run(t, s, append([]string{"submit", "--share-identifier", identifier, "--instances", "ml.g5.xlarge:1", "--name", name, "--"}, waiter(release)...)...)
	}
	submit("first", "ada")
	submit("second", "ada")
	submit("third", "bob")
	live.Eventually(t, "first runs", func() bool { return strings.Contains(run(t, s, "job", "first"), "RUNNING") })

	expectPrinted(t, "jobs", run(t, s, "jobs", "--share-identifier", "ada"), `
JOB  NAME  SHARE  PRIORITY  STATE  SINCE  WHY
SHORTID  second  ada  0  RUNNABLE  AGO  SENTENCE
SHORTID  first  ada  0  RUNNING  AGO
`)
	expectPrinted(t, "shares", run(t, s, "shares"), `
SHARE  UNIT  QUOTA  OWN  BORROWED  LENT  FREE  RUNNING  WAITING
ada  NUM_INSTANCES  1  1  ·  ·  ·  1  1
bob  NUM_INSTANCES  1  ·  ·  ·  ·  0  1
`)
	queue := `
SHARE  PLACE  JOB  NAME  PRIORITY  NEEDS  WAITS  FOR
bob  1  SHORTID  third  0  1 ml.g5.xlarge  AGO  SENTENCE
ada  1  SHORTID  second  0  1 ml.g5.xlarge  AGO  SENTENCE
`
	expectPrinted(t, "queue", run(t, s, "queue", "fair"), queue)
	s.Kill()
	s = live.Start(t, dir)
	t.Cleanup(func() { s.EndJobs(context.WithoutCancel(t.Context())) })
	expectPrinted(t, "queue after a restart", run(t, s, "queue", "fair"), queue)

	live.Must(t, os.WriteFile(release, nil, 0o600))
	live.Eventually(t, "all have run", func() bool { return strings.Count(run(t, s, "jobs", "--all"), "SUCCEEDED") == 3 })
	entries, err := s.Bursar().Journal(t.Context(), 0, 1000, 0)
	live.Must(t, err)
	var granted []string
	for _, e := range entries {
		if e.Kind == "decision" && e.Name == "grant" {
			j, err := s.Bursar().Job(t.Context(), e.Subject)
			live.Must(t, err)
			granted = append(granted, j.Job.Name)
		}
	}
	if got := strings.Join(granted, " "); got != "first third second" {
		t.Errorf("jobs ran in the order %s, want first third second", got)
	}
}
