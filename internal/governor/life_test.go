package governor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
)

func TestThreeSharesOneEnvironment(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3,
		share("QS1", 1, resource.LendAndBorrow, 200, true),
		share("QS2", 1, resource.Lend, -1, false),
		share("QS3", 1, resource.Reserve, -1, false))

	h.submit(simulated.Program{}, submission("high", 1, in("QS1"), priority(3)))
	h.turnTo(time.Second)
	h.submit(simulated.Program{}, submission("med", 1, in("QS1"), priority(2)))
	h.turnTo(2 * time.Second)
	h.submit(simulated.Program{}, submission("low", 1, in("QS1"), priority(1)))
	h.turnTo(5 * time.Second)
	h.expect(map[string]string{"high": "RUNNING", "med": "RUNNING", "low": "RUNNABLE"})

	h.turnTo(10 * time.Second)
	h.submit(simulated.Program{}, submission("owner", 1, in("QS2"), priority(1)))
	h.turnTo(15 * time.Second)
	h.expect(map[string]string{"high": "RUNNING", "owner": "RUNNING", "med": "RUNNABLE", "low": "RUNNABLE"})
	med := h.job("med")
	if len(med.Preemptions) != 1 || med.Preemptions[0].Reason != "Preempted: capacity reclaimed by quota share QS2" {
		t.Errorf("preemptions of med: %+v", med.Preemptions)
	}
	if stop := med.Preemptions[0].Stop; stop.Ground != string(quota.Reclaim) || stop.ForJob != h.id("owner") || stop.ForShare != "QS2" {
		t.Errorf("med was preempted as %+v", stop)
	}

	h.turnTo(20 * time.Second)
	_, err := h.governor.SetPriority(h.ctx(), h.id("low"), 4)
	must(t, err)
	h.turnTo(25 * time.Second)
	h.expect(map[string]string{"low": "RUNNING", "owner": "RUNNING", "high": "RUNNABLE", "med": "RUNNABLE"})
	high := h.job("high")
	if high.PreemptionCount != 1 || high.Preemptions[0].Reason != "Preempted: higher-priority job low in the same quota share" {
		t.Errorf("preemptions of high: %+v", high.Preemptions)
	}
}

func TestPreemptionRetriesRunOut(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(2,
		share("owner", 1, resource.LendAndBorrow, -1, false),
		share("guest", 1, resource.LendAndBorrow, -1, false))

	h.submit(simulated.Program{}, submission("g0", 1, in("guest"), priority(9)))
	h.submit(simulated.Program{}, submission("once", 1, in("guest"), priority(5), func(s *governor.Submission) { s.PreemptionRetries = ptr(0) }))
	h.turnTo(5 * time.Minute)
	h.expect(map[string]string{"g0": "RUNNING", "once": "RUNNING"})

	h.turnTo(10 * time.Minute)
	h.submit(simulated.Program{Runtime: 10 * time.Minute}, submission("o1", 1, in("owner")))
	h.turnTo(11 * time.Minute)
	h.expect(map[string]string{"g0": "RUNNING", "o1": "RUNNING", "once": "FAILED"})
	if once := h.job("once"); once.Reason != "Preemption retries exhausted" || once.PreemptionCount != 1 {
		t.Errorf("once: %s, preempted %d times", once.Reason, once.PreemptionCount)
	}

	h.turnTo(12 * time.Minute)
	h.submit(simulated.Program{Runtime: 30 * time.Minute, CheckpointEvery: 10 * time.Minute}, submission("kept", 1, in("guest"), priority(5)))
	h.turnTo(21 * time.Minute)
	h.expect(map[string]string{"g0": "RUNNING", "kept": "RUNNING", "o1": "SUCCEEDED"})
	h.turnTo(45 * time.Minute)
	h.submit(simulated.Program{Runtime: 10 * time.Minute}, submission("o2", 1, in("owner")))
	h.turnTo(46 * time.Minute)
	h.submit(simulated.Program{Runtime: time.Minute}, submission("later", 1, in("guest"), priority(5)))
	h.expect(map[string]string{"g0": "RUNNING", "o2": "RUNNING", "kept": "RUNNABLE", "later": "RUNNABLE"})
	if kept := h.job("kept"); kept.PreemptionCount != 1 || !kept.CheckpointAt.Equal(start.Add(40*time.Minute)) {
		t.Errorf("kept: preempted %d times, checkpoint at %v", kept.PreemptionCount, kept.CheckpointAt.Sub(start))
	}
	h.turnTo(56 * time.Minute)
	h.expect(map[string]string{"g0": "RUNNING", "kept": "RUNNING", "later": "RUNNABLE"})
	h.turnTo(64*time.Minute + 30*time.Second)
	h.expect(map[string]string{"g0": "RUNNING", "kept": "RUNNING", "later": "RUNNABLE"})
	h.turnTo(65*time.Minute + 30*time.Second)
	h.expect(map[string]string{"g0": "RUNNING", "later": "RUNNING", "kept": "SUCCEEDED", "o1": "SUCCEEDED", "o2": "SUCCEEDED"})
}

func TestParkedJobsSayWhy(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(12,
		share("reserved", 2, resource.Reserve, -1, false),
		share("two", 2, resource.LendAndBorrow, 100, false),
		share("four", 4, resource.LendAndBorrow, 200, false))
	h.submit(simulated.Program{}, submission("r3", 3, in("reserved")))
	h.submit(simulated.Program{}, submission("t5", 5, in("two")))
	h.submit(simulated.Program{}, submission("f9", 9, in("four")))
	h.submit(simulated.Program{}, submission("t4", 4, in("two"), priority(1)))
	h.expect(map[string]string{"t4": "RUNNING", "r3": "RUNNABLE", "t5": "RUNNABLE", "f9": "RUNNABLE"})
	for name, want := range map[string]string{"r3": quota.TextShareLimit, "t5": quota.TextShareAndBorrowLimit, "f9": quota.TextBorrowable} {
		why, err := h.governor.Why(h.ctx(), h.id(name))
		must(t, err)
		if why.Job.Reason != want || why.Sentence != want {
			t.Errorf("%s: reason %q, sentence %q, want %q", name, why.Job.Reason, why.Sentence, want)
		}
	}

	must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "reserved", Limits: limits(g5, 3)}))
	h.turn(0)
	h.expect(map[string]string{"r3": "RUNNING"})
	if got := h.job("r3").Reason; got != "" {
		t.Errorf("r3 runs with status reason %q", got)
	}
}

// TestParkedJobStaysInFrontOnlyThere has the parked job in front of a queue lose
// its place after a restart, while the environment is disabled: then it waits
// like any other job again, and the one that is in front now is parked.
func TestParkedJobStaysInFrontOnlyThere(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{}, submission("first", 3))
	h.submit(simulated.Program{}, submission("second", 4))
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Disabled)}))
	h.restart()
	_, err := h.governor.SetPriority(h.ctx(), h.id("second"), 1)
	must(t, err)
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Enabled)}))
	h.turn(0)
	for name, want := range map[string]string{"first": "", "second": quota.TextEnvironmentMax} {
		if got := h.job(name).Reason; got != want {
			t.Errorf("%s waits with status reason %q, want %q", name, got, want)
		}
	}
}

func TestTimeLimitActionEndsParkedJob(t *testing.T) {
	const reason = "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE"
	h := newHouse(t)
	h.plainQueue(2, func(q *resource.Queue) {
		q.TimeLimitActions = []resource.TimeLimitAction{{Reason: reason, After: 10 * time.Minute}}
	})
	h.submit(simulated.Program{}, submission("big", 3))
	h.turn(5 * time.Minute)
	h.submit(simulated.Program{}, submission("small", 1))
	h.turnTo(10*time.Minute - time.Second)
	h.restart() // the time already spent counts
	h.expect(map[string]string{"big": "RUNNABLE", "small": "RUNNABLE"})
	h.turnTo(10 * time.Minute)
	h.expect(map[string]string{"big": "FAILED", "small": "RUNNING"})
	if got, want := h.job("big").Reason, "Terminated by JobStateTimeLimit action due to reason: "+reason; got != want {
		t.Errorf("big ended with %q, want %q", got, want)
	}

	// An action that comes while a job is parked counts from when it was.
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", TimeLimitActions: &[]resource.TimeLimitAction{}}))
	h.submit(simulated.Program{}, submission("again", 3))
	h.turn(20 * time.Minute)
	h.expect(map[string]string{"again": "RUNNABLE"})
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", TimeLimitActions: &[]resource.TimeLimitAction{{Reason: reason, After: 15 * time.Minute}}}))
	h.turn(0)
	h.expect(map[string]string{"again": "FAILED"})
}

// TestTimeLimitConcernsEveryParkedJob has several jobs parked in one share, as
// only strict order forbids, when their queue gets a time limit.
func TestTimeLimitConcernsEveryParkedJob(t *testing.T) {
	h := newHouse(t)
	h.environment("env", g5, 2)
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{
		Name: "quota", IdleAssignment: resource.IdleFIFO, Rules: resource.Rules{Queueing: resource.BestEffort},
	}))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "q", Environment: "env", Policy: "quota"}))
	s := share("s", 2, resource.Lend, -1, false)
	s.Queue = "q"
	must(t, h.governor.CreateShare(h.ctx(), s))
	for _, name := range []string{"one", "two", "three"} {
		h.submit(simulated.Program{}, submission(name, 3, in("s")))
	}
	h.turn(time.Hour)
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", TimeLimitActions: &[]resource.TimeLimitAction{
		{Reason: "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE", After: 10 * time.Minute},
	}}))
	h.turn(0)
	h.expect(map[string]string{"one": "FAILED", "two": "FAILED", "three": "FAILED"})
}

func TestJobLives(t *testing.T) {
	retry := func(attempts int, rules ...job.Rule) func(*governor.Submission) {
		return func(s *governor.Submission) { s.Strategy = &job.Strategy{Attempts: attempts, Rules: rules} }
	}
	timeout := func(d time.Duration) func(*governor.Submission) {
		return func(s *governor.Submission) { s.Timeout = d }
	}
	maxRuntime := func(d time.Duration) func(*governor.Submission) {
		return func(s *governor.Submission) { s.MaxRuntime = d }
	}
	tests := []struct {
		name    string
		program simulated.Program
		options []func(*governor.Submission)
		act     func(*house)
		status  job.Status
		reason  string
		runs    int
		ended   time.Duration
		journal string
	}{
		{
			name: "succeeds", program: simulated.Program{Startup: time.Second, Runtime: time.Minute},
			status: job.Succeeded, reason: job.ReasonCompleted, runs: 1, ended: 61 * time.Second,
			journal: "command SubmitServiceJob, decision grant, state SCHEDULED, seen starting, state STARTING, seen running, state RUNNING, seen ended, state SUCCEEDED",
		},
		{
			name: "fails once without a strategy", program: simulated.Program{Runtime: time.Minute, ExitCode: 3},
			status: job.Failed, reason: job.FromSageMaker + "AlgorithmError: training failed, exit code: 3", runs: 1, ended: time.Minute,
		},
		{
			name: "is retried", program: simulated.Program{Runtime: time.Minute, ExitCode: 3}, options: []func(*governor.Submission){retry(3)},
			status: job.Failed, reason: job.FromSageMaker + "AlgorithmError: training failed, exit code: 3", runs: 3, ended: 3 * time.Minute,
		},
		{
			name: "is not retried where a rule says so", program: simulated.Program{Runtime: time.Minute, ExitCode: 3},
			options: []func(*governor.Submission){retry(3, job.Rule{Action: job.Exit, Pattern: "*exit code: 3"})},
			status:  job.Failed, reason: job.FromSageMaker + "AlgorithmError: training failed, exit code: 3", runs: 1, ended: time.Minute,
		},
		{
			name: "attempt timeout ends the job", options: []func(*governor.Submission){timeout(2 * time.Minute), retry(3)},
			status: job.Failed, reason: job.ReasonAttemptTimeout, runs: 1, ended: 2*time.Minute + 30*time.Second,
			journal: "command SubmitServiceJob, decision grant, state SCHEDULED, seen starting, state STARTING, seen running, state RUNNING, decision timeout, seen ended, state FAILED",
		},
		{
			name: "too long a runtime is retried", options: []func(*governor.Submission){maxRuntime(2 * time.Minute), retry(2)},
			status: job.Failed, reason: job.ReasonMaxRuntime, runs: 2, ended: 5 * time.Minute,
		},
		{
			name: "terminated while it runs",
			act: func(h *house) {
				h.turn(time.Minute)
				must(h.tb, h.governor.Terminate(h.ctx(), h.id("j"), "no longer needed"))
			},
			options: []func(*governor.Submission){retry(5)},
			status:  job.Failed, reason: "no longer needed", runs: 1, ended: 90 * time.Second,
		},
		{
			name: "terminated while a timeout stops it", options: []func(*governor.Submission){maxRuntime(time.Minute), retry(5)},
			act: func(h *house) {
				h.turn(70 * time.Second)
				must(h.tb, h.governor.Terminate(h.ctx(), h.id("j"), "enough"))
			},
			status: job.Failed, reason: "enough", runs: 1, ended: 90 * time.Second,
		},
		{
			name: "lost workers cost no attempt, but time", program: simulated.Program{Runtime: 3 * time.Minute},
			act: func(h *house) {
				h.turn(time.Minute)
				h.world.Lose(h.id("j"))
				h.turn(0)
				h.expect(map[string]string{"j": "RUNNABLE"})
				why, err := h.governor.Why(h.ctx(), h.id("j"))
				must(h.tb, err)
				if why.Reason.Code != quota.Backoff {
					h.tb.Errorf("a lost job waits with %+v", why.Reason)
				}
			},
			status: job.Succeeded, reason: job.ReasonCompleted, runs: 2, ended: 5 * time.Minute,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, grace(30*time.Second))
			h.plainQueue(1)
			tt.program.Stopping = time.Hour // they ignore the order to stop
			h.submit(tt.program, submission("j", 1, tt.options...))
			if tt.act != nil {
				tt.act(h)
			}
			h.turn(time.Hour)
			j := h.job("j")
			if j.Status != tt.status || j.Reason != tt.reason || j.Runs != tt.runs || !j.StoppedAt.Equal(start.Add(tt.ended)) {
				t.Errorf("%s (%s) after %d runs and %v, want %s (%s) after %d and %v",
					j.Status, j.Reason, j.Runs, j.StoppedAt.Sub(start), tt.status, tt.reason, tt.runs, tt.ended)
			}
			if tt.journal != "" {
				if diff := cmp.Diff(tt.journal, strings.Join(h.lines(j.ID), ", ")); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
			}
			if left := h.world.Alive(); left != nil {
				t.Errorf("still alive: %v", left)
			}
		})
	}
}

func TestTerminateWaitingJobAtOnce(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(1)
	h.submit(simulated.Program{}, submission("runs", 1))
	h.submit(simulated.Program{}, submission("waits", 1))
	must(t, h.governor.Terminate(h.ctx(), h.id("waits"), "changed my mind"))
	j := h.job("waits")
	if j.Status != job.Failed || j.Reason != "changed my mind" || !j.Terminated {
		t.Errorf("%s (%s), terminated: %v", j.Status, j.Reason, j.Terminated)
	}
	// Again, and of a finished job, it succeeds and changes nothing.
	must(t, h.governor.Terminate(h.ctx(), h.id("waits"), "again"))
	if got := h.job("waits").Reason; got != "changed my mind" {
		t.Errorf("reason became %q", got)
	}
	mustRefuse(t, h.governor.Terminate(h.ctx(), h.id("runs"), " "), governor.Invalid, "reason is required; say why the job is terminated.")
	mustRefuse(t, h.governor.Terminate(h.ctx(), "nobody", "x"), governor.Missing, "Service job nobody does not exist.")
}

func TestDisabledEnvironmentStartsNothing(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{Runtime: time.Hour}, submission("runs", 1))
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Disabled)}))
	h.submit(simulated.Program{}, submission("waits", 1))
	h.turn(time.Minute)
	h.expect(map[string]string{"runs": "RUNNING", "waits": "RUNNABLE"})
	why, err := h.governor.Why(h.ctx(), h.id("waits"))
	must(t, err)
	if why.Reason.Code != quota.DisabledPool {
		t.Errorf("waits for %+v", why.Reason)
	}
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Enabled)}))
	h.turn(0)
	h.expect(map[string]string{"waits": "RUNNING"})
}

func TestSmallerPoolPreemptsNothing(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(10)
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "other", Priority: 9, Environment: "env"}))
	h.submit(simulated.Program{}, submission("four", 4))
	h.submit(simulated.Program{}, submission("six", 6))
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", Limits: limits(resource.NumInstances, 5)}))
	h.submit(simulated.Program{}, submission("one", 1, func(s *governor.Submission) { s.Queue = "other" }))
	h.turn(time.Minute)
	h.expect(map[string]string{"four": "RUNNING", "six": "RUNNING", "one": "RUNNABLE"})
	h.restart()
	h.expect(map[string]string{"four": "RUNNING", "six": "RUNNING", "one": "RUNNABLE"})
	h.world.Succeed(h.id("six"))
	h.turn(0)
	h.expect(map[string]string{"four": "RUNNING", "six": "SUCCEEDED", "one": "RUNNING"})
}

// TestSmallerPoolIsTheQuota has a queue without quota shares give back what it
// held beyond a pool that was made smaller: from then on its quota is the pool.
func TestSmallerPoolIsTheQuota(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(3)
	h.submit(simulated.Program{}, submission("three", 3))
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", Limits: limits(resource.NumInstances, 2)}))
	h.world.Succeed(h.id("three"))
	h.turn(0)
	before := h.everything()
	h.restart()
	if after := h.everything(); after != before {
		t.Errorf("a restart changed the state (-before +after):\n%s", cmp.Diff(before, after))
	}
}

func TestLargerPoolIsUsed(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{}, submission("three", 3))
	h.expect(map[string]string{"three": "RUNNABLE"})
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", Limits: limits(resource.NumInstances, 3)}))
	h.turn(0)
	h.expect(map[string]string{"three": "RUNNING"})
}

// TestOldCheckpointsCount has a choice of victims: one that was resumed from a
// checkpoint two hours ago, and one that never completed any. What is assumed
// of the second must not be assumed of the first, restarted or not.
func TestOldCheckpointsCount(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(4,
		share("guest", 1, resource.LendAndBorrow, -1, false),
		share("owner", 3, resource.LendAndBorrow, -1, false))
	h.submit(simulated.Program{}, submission("safe", 1, in("guest"), priority(9)))
	h.submit(simulated.Program{}, submission("resumed", 1, in("guest")))
	h.turnTo(10 * time.Minute)
	h.world.Checkpoint(h.id("resumed"))
	h.submit(simulated.Program{Runtime: 10 * time.Minute}, submission("first", 3, in("owner")))
	h.restart()
	h.expect(map[string]string{"safe": "RUNNING", "resumed": "RUNNABLE", "first": "RUNNING"})
	h.turnTo(90 * time.Minute)
	h.submit(simulated.Program{}, submission("careless", 2, in("guest")))
	h.turnTo(140 * time.Minute)
	h.expect(map[string]string{"safe": "RUNNING", "resumed": "RUNNING", "careless": "RUNNING"})
	h.submit(simulated.Program{}, submission("second", 1, in("owner")))
	h.expect(map[string]string{"safe": "RUNNING", "resumed": "RUNNING", "careless": "RUNNABLE", "second": "RUNNING"})
}

func TestRunnersClockIsOff(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	slow := simulated.Program{Startup: time.Hour}
	h.submit(slow, submission("ahead", 1))
	h.submit(slow, submission("behind", 1))
	h.turn(time.Minute)
	see := func(name string, event runner.Event, at time.Duration) {
		h.governor.Observe(runner.Observation{Key: runner.Key{Job: h.id(name), Run: 1}, Event: event, At: start.Add(at), Checkpoint: start.Add(at), Outcome: runner.Succeeded})
		h.settle()
	}
	see("ahead", runner.Running, time.Hour)
	see("ahead", runner.Checkpointed, time.Hour)
	see("behind", runner.Running, -time.Hour)
	h.turn(time.Minute)
	see("ahead", runner.Ended, time.Second)
	ahead, behind := h.job("ahead"), h.job("behind")
	for what, times := range map[string][2]time.Time{
		"start of ahead":      {ahead.StartedAt, start.Add(time.Minute)},
		"checkpoint of ahead": {ahead.CheckpointAt, start.Add(time.Minute)},
		"end of ahead":        {ahead.StoppedAt, start.Add(time.Minute)},
		"start of behind":     {behind.StartedAt, start},
	} {
		if got, want := times[0], times[1]; !got.Equal(want) {
			t.Errorf("%s: %v, want %v", what, got.Sub(start), want.Sub(start))
		}
	}
}

func TestQueuesOfOneEnvironmentGoByPriority(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(1)
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "urgent", Priority: 9, Environment: "env"}))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("first", 1))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("second", 1))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("urgent", 1, func(s *governor.Submission) { s.Queue = "urgent" }))
	h.turn(time.Minute)
	h.expect(map[string]string{"first": "SUCCEEDED", "second": "RUNNABLE", "urgent": "RUNNING"})
}
