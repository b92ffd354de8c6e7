package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func waiting(change func(*Job)) *Job {
	j := &Job{ID: "j", Name: "train", Status: Runnable, CreatedAt: start, UpdatedAt: start}
	if change != nil {
		change(j)
	}
	return j
}

// run dispatches the job and brings its workers up.
func run(j *Job, now time.Time) {
	j.Dispatch(now, fmt.Sprintf("train-%d", j.Runs+1), "arn")
	j.MarkStarting(now)
	j.MarkRunning(now)
}

func retries(attempts int, rules ...Rule) func(*Job) {
	return func(j *Job) { j.Strategy = &Strategy{Attempts: attempts, Rules: rules} }
}

func TestEndOfAnAttempt(t *testing.T) {
	zero := 0
	preempt := Stop{Cause: Preempted, Text: ReclaimedBy("owner")}
	terminate := Stop{Cause: Terminated, Text: "no longer needed"}
	failure := FromSageMaker + "AlgorithmError: out of memory, exit code: 1"
	tests := []struct {
		name    string
		job     func(*Job)
		stop    *Stop
		end     End
		failure string

		status     Status
		reason     string
		attempt    string // reason of the ended attempt
		preempted  int
		failures   int
		terminated bool
	}{
		{name: "success", end: EndSucceeded, status: Succeeded, reason: ReasonCompleted, attempt: ReasonCompleted},
		{name: "failure without a strategy", end: EndFailed, failure: failure, status: Failed, reason: failure, attempt: failure, failures: 1},
		{name: "failure with attempts left", job: retries(2), end: EndFailed, failure: failure, status: Runnable, attempt: failure, failures: 1},
		{name: "a rule that exits", job: retries(3, Rule{Exit, "*memory*"}, Rule{Retry, "*"}), end: EndFailed, failure: failure, status: Failed, reason: failure, attempt: failure, failures: 1},
		{name: "the first rule that matches", job: retries(3, Rule{Retry, "*memory*"}, Rule{Exit, "*"}), end: EndFailed, failure: failure, status: Runnable, attempt: failure, failures: 1},
		{name: "no rule matches", job: retries(3, Rule{Exit, "CapacityError*"}), end: EndFailed, failure: failure, status: Runnable, attempt: failure, failures: 1},
		{name: "preempted", stop: &preempt, end: EndStopped, status: Runnable, attempt: preempt.Text, preempted: 1},
		{name: "preempted without retries", job: func(j *Job) { j.PreemptionRetries = &zero }, stop: &preempt, end: EndStopped, status: Failed, reason: "Preemption retries exhausted", attempt: preempt.Text, preempted: 1},
		{name: "finished before the stop reached it", stop: &preempt, end: EndSucceeded, status: Succeeded, reason: ReasonCompleted, attempt: ReasonCompleted},
		{name: "failed before the stop reached it", stop: &preempt, end: EndFailed, failure: failure, status: Failed, reason: failure, attempt: failure, failures: 1},
		{name: "lost while being preempted", stop: &preempt, end: EndLost, status: Runnable, attempt: preempt.Text, preempted: 1},
		{name: "terminated", job: retries(5), stop: &terminate, end: EndStopped, status: Failed, reason: "no longer needed", attempt: "no longer needed", terminated: true},
		{name: "terminated while failing", job: retries(5), stop: &terminate, end: EndFailed, failure: failure, status: Failed, reason: "no longer needed", attempt: "no longer needed", terminated: true},
		{name: "finished before it was terminated", stop: &terminate, end: EndSucceeded, status: Succeeded, reason: ReasonCompleted, attempt: ReasonCompleted},
		{name: "out of attempt time", job: retries(5), stop: &Stop{Cause: AttemptTimeout, Text: ReasonAttemptTimeout}, end: EndStopped, status: Failed, reason: ReasonAttemptTimeout, attempt: ReasonAttemptTimeout},
		{name: "out of run time, retried", job: retries(2), stop: &Stop{Cause: MaxRuntime, Text: ReasonMaxRuntime}, end: EndStopped, status: Runnable, attempt: ReasonMaxRuntime, failures: 1},
		{name: "lost", end: EndLost, status: Runnable, attempt: ReasonLost},
		{name: "stopped by somebody else", end: EndStopped, status: Failed, reason: ReasonStopped, attempt: ReasonStopped, failures: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := waiting(tt.job)
			run(j, at(1))
			if tt.stop != nil && !j.RequestStop(*tt.stop) {
				t.Fatal("the stop was no news")
			}
			j.EndAttempt(at(5), tt.end, tt.failure)

			if j.Status != tt.status || j.Reason != tt.reason {
				t.Errorf("job is %s (%q), want %s (%q)", j.Status, j.Reason, tt.status, tt.reason)
			}
			if j.Current != nil {
				t.Error("the attempt is still current")
			}
			ended := append(append([]Attempt{}, j.Attempts...), j.Preemptions...)
			if len(ended) != 1 || ended[0].Reason != tt.attempt || !ended[0].StoppedAt.Equal(at(5)) {
				t.Errorf("ended attempts are %+v, want one with reason %q", ended, tt.attempt)
			}
			if j.PreemptionCount != tt.preempted || len(j.Preemptions) != tt.preempted || j.Failures != tt.failures {
				t.Errorf("preempted %d times (%d kept), %d failures, want %d and %d", j.PreemptionCount, len(j.Preemptions), j.Failures, tt.preempted, tt.failures)
			}
			if j.Terminated != tt.terminated {
				t.Errorf("terminated is %v, want %v", j.Terminated, tt.terminated)
			}
			if j.Status.Finished() != !j.StoppedAt.IsZero() {
				t.Errorf("a %s job stopped at %v", j.Status, j.StoppedAt)
			}
		})
	}
}

func TestPreemptionsDoNotUseUpAttempts(t *testing.T) {
	j := waiting(retries(2))
	for n := range 15 {
		run(j, at(n))
		j.RequestStop(Stop{Cause: Preempted, Text: OutrankedBy(fmt.Sprint("job", n))})
		j.EndAttempt(at(n), EndStopped, "")
	}
	if j.PreemptionCount != 15 || len(j.Preemptions) != KeptPreemptions {
		t.Fatalf("%d preemptions, %d kept", j.PreemptionCount, len(j.Preemptions))
	}
	if got, want := j.Preemptions[0].Reason, "Preempted: higher-priority job job14 in the same quota share"; got != want {
		t.Errorf("the newest preemption is %q, want %q", got, want)
	}
	for n := range 2 {
		if j.Status != Runnable {
			t.Fatalf("before failure %d the job is %s", n+1, j.Status)
		}
		run(j, at(20+n))
		j.EndAttempt(at(20+n), EndFailed, "broken")
	}
	if j.Status != Failed {
		t.Errorf("after two failures of two attempts the job is %s", j.Status)
	}
}

func TestPreemptionRetriesAllowThatManyReturns(t *testing.T) {
	two := 2
	j := waiting(func(j *Job) { j.PreemptionRetries = &two })
	var seen []Status
	for n := range 3 {
		run(j, at(n))
		j.RequestStop(Stop{Cause: Preempted, Text: ReclaimedBy("owner")})
		j.EndAttempt(at(n), EndStopped, "")
		seen = append(seen, j.Status)
	}
	if diff := cmp.Diff([]Status{Runnable, Runnable, Failed}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestBackoffDoublesUntilTheJobRuns(t *testing.T) {
	j := waiting(nil)
	var waits []time.Duration
	for range 8 {
		j.Dispatch(start, "train", "arn")
		j.EndAttempt(start, EndLost, "")
		waits = append(waits, j.NotBefore.Sub(start))
	}
	m := time.Minute
	if diff := cmp.Diff([]time.Duration{m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 60 * m, 60 * m}, waits); diff != "" {
		t.Error(diff)
	}
	run(j, start)
	j.EndAttempt(start, EndLost, "")
	if got := j.NotBefore.Sub(start); got != m {
		t.Errorf("after it ran the job waits %v, want %v", got, m)
	}
}

func TestStopsOverrideOnlyWhatIsLessFinal(t *testing.T) {
	order := []Cause{Preempted, MaxRuntime, AttemptTimeout, Terminated}
	for first, was := range order {
		for second, is := range order {
			j := waiting(nil)
			run(j, start)
			j.RequestStop(Stop{Cause: was})
			if news := j.RequestStop(Stop{Cause: is}); news != (second > first) {
				t.Errorf("%s after %s is news: %v", is, was, news)
			}
		}
	}
	if waiting(nil).RequestStop(Stop{Cause: Terminated}) {
		t.Error("a waiting job took an order to stop")
	}
}

func TestDeadline(t *testing.T) {
	tests := []struct {
		timeout, maxRuntime time.Duration
		at                  time.Duration
		cause               Cause
	}{
		{timeout: time.Minute, at: time.Minute, cause: AttemptTimeout},
		{maxRuntime: time.Minute, at: time.Minute, cause: MaxRuntime},
		{timeout: 2 * time.Minute, maxRuntime: time.Minute, at: time.Minute, cause: MaxRuntime},
		{timeout: time.Minute, maxRuntime: time.Minute, at: time.Minute, cause: AttemptTimeout},
	}
	for _, tt := range tests {
		j := waiting(func(j *Job) { j.Timeout, j.MaxRuntime = tt.timeout, tt.maxRuntime })
		j.Dispatch(start, "train", "arn")
		if _, _, ok := j.Deadline(); ok {
			t.Error("a job that does not run yet has a deadline")
		}
		j.MarkRunning(at(10))
		when, stop, ok := j.Deadline()
		if !ok || !when.Equal(at(10).Add(tt.at)) || stop.Cause != tt.cause {
			t.Errorf("%+v: deadline %v, %s, %v", tt, when, stop.Cause, ok)
		}
		j.RequestStop(stop)
		if _, _, ok := j.Deadline(); ok {
			t.Error("a stopping job has a deadline")
		}
	}
}

func TestParkKeepsSince(t *testing.T) {
	j := waiting(nil)
	if !j.Park(at(1), "why") || j.Park(at(2), "why") || !j.ReasonSince.Equal(at(1)) {
		t.Errorf("parked since %v for %q", j.ReasonSince, j.Reason)
	}
	if !j.Park(at(3), "") || j.Reason != "" || !j.ReasonSince.IsZero() {
		t.Errorf("unparked job has reason %q since %v", j.Reason, j.ReasonSince)
	}
}

func TestRulePatterns(t *testing.T) {
	tests := []struct {
		pattern, reason string
		want            bool
	}{
		{"", "", true},
		{"exact", "exact", true},
		{"exact", "exactly", false},
		{"*", "anything", true},
		{"ab*", "abc", true},
		{"*CapacityError*", FromSageMaker + "CapacityError: none", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b", "ab", true},
		{"ab*ba", "aba", false},
		{"a**b", "ab", true},
		{"Case", "case", false},
		// The Python SDK's default rule has no space after the prefix.
		{"Received status from SageMaker:InternalServerError: We encountered an internal error. Please try again.", ReasonLost, true},
		{FromSageMaker + "InternalServerError*", ReasonLost, true},
	}
	for _, tt := range tests {
		if got := matches(tt.pattern, tt.reason); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.reason, got)
		}
	}
}

func TestGlobAgreesWithItsDefinition(t *testing.T) {
	var slow func(p, s string) bool
	slow = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return slow(p[1:], s) || s != "" && slow(p, s[1:])
		default:
			return s != "" && s[0] == p[0] && slow(p[1:], s[1:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab]{0,10}`).Draw(t, "s")
		if got, want := glob(pattern, s), slow(pattern, s); got != want {
			t.Fatalf("glob(%q, %q) = %v", pattern, s, got)
		}
	})
}

// TestLives checks, over random lives, what must hold at every instant.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := waiting(nil)
		if rapid.Bool().Draw(t, "has strategy") {
			j.Strategy = &Strategy{Attempts: rapid.IntRange(1, 10).Draw(t, "attempts")}
		}
		if rapid.Bool().Draw(t, "limits preemptions") {
			n := rapid.IntRange(0, 3).Draw(t, "preemption retries")
			j.PreemptionRetries = &n
		}
		for minute := 0; minute < 40 && !j.Status.Finished(); minute++ {
			now := at(minute)
			if j.Status == Runnable {
				j.Dispatch(now, "train", "arn")
				continue
			}
			switch rapid.SampledFrom([]string{"up", "preempt", "terminate", "end"}).Draw(t, "event") {
			case "up":
				j.MarkStarting(now)
				j.MarkRunning(now)
			case "preempt":
				j.RequestStop(Stop{Cause: Preempted, Text: ReclaimedBy("s")})
			case "terminate":
				j.RequestStop(Stop{Cause: Terminated, Text: "enough"})
			case "end":
				j.EndAttempt(now, End(rapid.IntRange(0, 3).Draw(t, "end")), "broken")
			}
			if j.Status.Holds() != (j.Current != nil) {
				t.Fatalf("a %s job has the attempt %v", j.Status, j.Current)
			}
		}
		allowed := 1
		if j.Strategy != nil {
			allowed = j.Strategy.Attempts
		}
		if j.Failures > allowed {
			t.Fatalf("%d failures of %d attempts", j.Failures, allowed)
		}
		if n := j.PreemptionRetries; n != nil && j.PreemptionCount > *n+1 {
			t.Fatalf("%d preemptions with %d retries", j.PreemptionCount, *n)
		}
		ended := len(j.Attempts) + j.PreemptionCount
		if j.Current != nil {
			ended++
		}
		if ended != j.Runs {
			t.Fatalf("%d runs, but %d attempts", j.Runs, ended)
		}
	})
}

func TestCloneSharesNothing(t *testing.T) {
	n := 1
	j := waiting(retries(2, Rule{Exit, "x"}))
	j.PreemptionRetries, j.Tags, j.Demand = &n, map[string]string{"a": "b"}, []Amount{{"u", 1}}
	run(j, start)
	j.RequestStop(Stop{Cause: Preempted, Text: "first"})
	c := j.Clone()
	if diff := cmp.Diff(*j, c); diff != "" {
		t.Fatal(diff)
	}
	c.Current.Stop.Text, c.Strategy.Rules[0].Pattern, c.Tags["a"], c.Demand[0].Quantity = "y", "y", "y", 9
	*c.PreemptionRetries = 9
	if strings.Contains(fmt.Sprint(j.Current.Stop.Text, j.Strategy.Rules, j.Tags, j.Demand, *j.PreemptionRetries), "y") || j.Demand[0].Quantity == 9 || n == 9 {
		t.Error("a change of the clone changed the job")
	}
}

func TestTextsOfPreemptions(t *testing.T) {
	for got, want := range map[string]string{
		ReclaimedBy("S"):   "Preempted: capacity reclaimed by quota share S",
		OutrankedBy("j"):   "Preempted: higher-priority job j in the same quota share",
		OutbidBy("j", "S"): "Preempted: higher-priority job j in quota share S",
		RebalancedTo("S"):  "Preempted: capacity rebalanced to quota share S",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
