package e2e

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"
	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/test/live"
)

// TestThreeSharesOneEnvironment is the first scenario end to end: lend,
// borrow, reclaim across shares, preempt by priority inside one, and resume
// from a checkpoint.
func TestThreeSharesOneEnvironment(t *testing.T) {
	s := start(t)
	api := s.Batch()
	live.Prepare(t, api, threeShares)
	train := map[string]string{"steps": "100000", "step_ms": "5", "checkpoint_every": "20", "log_every": "5"}
	jobs := map[string]string{}
	add := func(name, share string, priority int32) {
		jobs[name] = submit(t, api, name, share, priority, train, live.Train())
	}
	// expect waits until the jobs named run and take steps, and all others wait.
	expect := func(running ...string) {
		t.Helper()
		live.Eventually(t, fmt.Sprintf("of the jobs exactly %v run", running), func() bool {
			for name, id := range jobs {
				wanted := types.ServiceJobStatusRunnable
				if strings.Contains(" "+strings.Join(running, " ")+" ", " "+name+" ") {
					wanted = types.ServiceJobStatusRunning
				}
				if describe(t, api, id).Status != wanted {
					return false
				}
			}
			return true
		})
		for _, name := range running {
			live.Eventually(t, name+" takes steps", func() bool { return strings.Contains(output(t, s, jobs[name], 0), "progress step=") })
		}
	}

	add("high", "QS1", 3)
	add("med", "QS1", 2)
	add("low", "QS1", 1)
	expect("high", "med")
	checkBorrowed(t, s, map[string]int64{"QS1": 1, "QS2": 0, "QS3": 0})

	add("owner", "QS2", 1)
	expect("high", "owner")
	checkPreempted(t, api, jobs, map[string]string{"med": "Preempted: capacity reclaimed by quota share QS2"})

	_, err := api.UpdateServiceJob(t.Context(), &batch.UpdateServiceJobInput{JobId: aws.String(jobs["low"]), SchedulingPriority: aws.Int32(4)})
	live.Must(t, err)
	expect("low", "owner")
	checkBorrowed(t, s, map[string]int64{"QS1": 0, "QS2": 0, "QS3": 0})
	checkPreempted(t, api, jobs, map[string]string{
		"med":  "Preempted: capacity reclaimed by quota share QS2",
		"high": "Preempted: higher-priority job low in the same quota share",
	})

	_, err = api.TerminateServiceJob(t.Context(), &batch.TerminateServiceJobInput{JobId: aws.String(jobs["owner"]), Reason: aws.String("no longer needed")})
	live.Must(t, err)
	live.Eventually(t, "the owner is gone", func() bool { return describe(t, api, jobs["owner"]).Status == types.ServiceJobStatusFailed })
	if got := describe(t, api, jobs["owner"]); aws.ToString(got.StatusReason) != "no longer needed" || !aws.ToBool(got.IsTerminated) {
		t.Errorf("the owner ended with reason %q and isTerminated %v", aws.ToString(got.StatusReason), aws.ToBool(got.IsTerminated))
	}
	delete(jobs, "owner")
	expect("low", "high")
	checkResumed(t, s, jobs["high"])
}

// output is what the first worker of a run printed so far.
func output(t *testing.T, s *live.Server, id string, run int) string {
	t.Helper()
	log, err := s.Bursar().Log(t.Context(), bursarapi.LogQuery{Job: id, Run: run})
	live.Must(t, err)
	defer log.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, log)
	live.Must(t, err)
	return text.String()
}

// checkResumed checks that a job's second run began at the step at which its
// first one had stopped.
func checkResumed(t *testing.T, s *live.Server, id string) {
	t.Helper()
	first, second := output(t, s, id, 1), output(t, s, id, 2)
	lines := strings.Split(strings.TrimSpace(first), "\n")
	var stopped, saved, resumed int
	if _, err := fmt.Sscanf(lines[len(lines)-1], "stopped step=%d checkpoint=%d", &stopped, &saved); err != nil {
		t.Fatalf("the first run ended with %q: %v", lines[len(lines)-1], err)
	}
	if _, err := fmt.Sscanf(second, "resumes step=%d", &resumed); err != nil || resumed != stopped || stopped == 0 {
		t.Errorf("stopped at step %d, resumed at %d (%v)", stopped, resumed, err)
	}
}

// checkBorrowed checks what each share borrows.
func checkBorrowed(t *testing.T, s *live.Server, want map[string]int64) {
	t.Helper()
	balances, err := s.Bursar().Balances(t.Context(), live.Queue)
	live.Must(t, err)
	got := map[string]int64{}
	for _, b := range balances {
		for _, u := range b.Units {
			got[b.Share] += u.Borrowed
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("borrowed (-want +got):\n%s", diff)
	}
}

// checkPreempted checks that the jobs named were preempted once, for the
// reason given, and the others never.
func checkPreempted(t *testing.T, api *batch.Client, jobs, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, id := range jobs {
		summary := describe(t, api, id).PreemptionSummary
		if summary == nil {
			continue
		}
		if n := aws.ToInt32(summary.PreemptedAttemptCount); n != 1 || len(summary.RecentPreemptedAttempts) != 1 {
			t.Errorf("%s was preempted %d times and tells of %d", name, n, len(summary.RecentPreemptedAttempts))
			continue
		}
		got[name] = aws.ToString(summary.RecentPreemptedAttempts[0].StatusReason)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("preempted (-want +got):\n%s", diff)
	}
}
