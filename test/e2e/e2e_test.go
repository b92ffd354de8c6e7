// Package e2e tests the product from outside: real servers, real clients, real
// processes.
package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/test/live"
)

func TestMain(m *testing.M) { os.Exit(live.Main(m)) }

// start starts a server on a directory of the test's own, whose jobs end with
// the test.
func start(t *testing.T) *live.Server {
	t.Helper()
	s := live.Start(t, filepath.Join(t.TempDir(), "data"))
	t.Cleanup(func() { s.EndJobs(context.WithoutCancel(t.Context())) }) // the test's context has ended by then
	return s
}

// threeShares are those of the first scenario. What QS1 may borrow is limited
// by what there is.
var threeShares = []live.Share{
	{Name: "QS1", Instances: 1, Strategy: types.QuotaShareResourceSharingStrategyLendAndBorrow, InSharePreemption: true},
	{Name: "QS2", Instances: 1, Strategy: types.QuotaShareResourceSharingStrategyLend},
	{Name: "QS3", Instances: 1, Strategy: types.QuotaShareResourceSharingStrategyReserve},
}

// submit submits a job on one instance and returns its id.
func submit(t *testing.T, api *batch.Client, name, share string, priority int32, hyperparameters map[string]string, argv ...string) string {
	t.Helper()
	input := live.Submission(t, name, share, hyperparameters, argv...)
	input.SchedulingPriority = &priority
	reply, err := api.SubmitServiceJob(t.Context(), input)
	live.Must(t, err)
	return *reply.JobId
}

func describe(t *testing.T, api *batch.Client, id string) *batch.DescribeServiceJobOutput {
	t.Helper()
	reply, err := api.DescribeServiceJob(t.Context(), &batch.DescribeServiceJobInput{JobId: &id})
	live.Must(t, err)
	return reply
}
