package job

import (
	"fmt"
	"strings"
	"time"
)

// Texts that a job ends with (section 9; A6 and A7 of the facts).
const (
	FromSageMaker             = "Received status from SageMaker: "
	ReasonCompleted           = FromSageMaker + "Training job completed"
	ReasonPreemptionsOut      = "Preemption retries exhausted"
	ReasonAttemptTimeout      = "Job attempt duration exceeded timeout"
	ReasonMaxRuntime          = FromSageMaker + "MaxRuntimeExceeded: Training job runtime exceeded MaxRuntimeInSeconds provided"
	ReasonLost                = FromSageMaker + "InternalServerError: We encountered an internal error. Please try again."
	ReasonStopped             = FromSageMaker + "Training job stopped"
	timeLimitReason           = "Terminated by JobStateTimeLimit action due to reason: "
	reasonReclaimed           = "Preempted: capacity reclaimed by quota share "
	reasonOutrankedByJobInOwn = "Preempted: higher-priority job %s in the same quota share"
	reasonOutrankedByJobOf    = "Preempted: higher-priority job %s in quota share %s"
	reasonRebalanced          = "Preempted: capacity rebalanced to quota share "
)

// KeptPreemptions is how many preempted attempts a job remembers (section 6).
const KeptPreemptions = 10

// Backoff of a job whose worker was lost: base · 2^(n−1) for the n-th time in
// a row, up to the maximum (section 7's defaults).
const (
	BackoffBase = 60 * time.Second
	BackoffMax  = 3600 * time.Second
)

// ReclaimedBy is the text of an attempt preempted for a share's own quota.
func ReclaimedBy(share string) string { return reasonReclaimed + share }

// OutrankedBy is the text of an attempt preempted for a job of its own share.
func OutrankedBy(jobName string) string { return fmt.Sprintf(reasonOutrankedByJobInOwn, jobName) }

// OutbidBy is the text of an attempt that borrowed, preempted for a job of
// another share.
func OutbidBy(jobName, share string) string {
	return fmt.Sprintf(reasonOutrankedByJobOf, jobName, share)
}

// RebalancedTo is the text of an attempt that borrowed, preempted for a share
// that borrows less for its weight.
func RebalancedTo(share string) string { return reasonRebalanced + share }

// TimeLimitReason is the text of a job ended by a job state time limit action.
func TimeLimitReason(reason string) string { return timeLimitReason + reason }

// Dispatch begins a new attempt of a waiting job that was granted capacity.
func (j *Job) Dispatch(now time.Time, trainingJobName, arn string) {
	j.Runs++
	j.Current = &Attempt{Run: j.Runs, TrainingJobName: trainingJobName, TrainingJobARN: arn, ScheduledAt: now}
	j.ScheduledAt, j.StartedAt = now, time.Time{}
	j.Reason, j.ReasonSince, j.NotBefore = "", time.Time{}, time.Time{}
	j.enter(Scheduled, now)
}

// MarkStarting records that a dispatched attempt is being prepared.
func (j *Job) MarkStarting(now time.Time) {
	if j.Status == Scheduled {
		j.enter(Starting, now)
	}
}

// MarkRunning records that every worker of the attempt is up.
func (j *Job) MarkRunning(now time.Time) {
	if j.Status != Scheduled && j.Status != Starting {
		return
	}
	j.Current.StartedAt, j.StartedAt = now, now
	j.Evictions = 0
	j.enter(Running, now)
}

// MarkCheckpoint records a checkpoint, if it is newer than the last.
func (j *Job) MarkCheckpoint(at time.Time) bool {
	if !at.After(j.CheckpointAt) {
		return false
	}
	j.CheckpointAt = at
	return true
}

// RequestStop orders the current attempt to stop and reports whether that is
// news. A stop after which the job comes back less readily overrides one that
// is under way: what its user gave up must not return.
func (j *Job) RequestStop(s Stop) bool {
	if j.Current == nil {
		return false
	}
	if old := j.Current.Stop; old != nil {
		if s.Cause.rank() <= old.Cause.rank() {
			return false
		}
		// What it holds stays promised to whom it was preempted for.
		s.Ground, s.ForJob, s.ForShare = old.Ground, old.ForJob, old.ForShare
	}
	j.Current.Stop = &s
	j.Terminated = j.Terminated || s.Cause == Terminated
	return true
}

// rank orders causes by how final they are.
func (c Cause) rank() int {
	switch c {
	case Preempted:
		return 0
	case MaxRuntime:
		return 1
	case AttemptTimeout:
		return 2
	default: // Terminated
		return 3
	}
}

// Terminate ends a waiting job with the reason given.
func (j *Job) Terminate(now time.Time, reason string) {
	j.Terminated = true
	j.finish(Failed, now, reason)
}

// Park records why a waiting job cannot start at all, as its status reason;
// an empty reason clears it. It reports whether anything changed.
func (j *Job) Park(now time.Time, reason string) bool {
	if j.Reason == reason {
		return false
	}
	j.Reason, j.ReasonSince = reason, now
	if reason == "" {
		j.ReasonSince = time.Time{}
	}
	return true
}

// End is how an attempt ended, as its runner saw it.
type End int

// The ends of an attempt.
const (
	EndSucceeded End = iota // all workers exited with status 0, by themselves
	EndFailed               // a worker failed by itself
	EndStopped              // it was told to stop
	EndLost                 // a worker vanished
)

// EndAttempt ends the current attempt and decides what becomes of the job: it
// is Succeeded, Failed, or Runnable again in its old place. failure is the
// status reason of EndFailed.
func (j *Job) EndAttempt(now time.Time, end End, failure string) {
	stop := j.Current.Stop
	switch {
	case end == EndSucceeded:
		j.Terminated = false
		j.closeAttempt(now, ReasonCompleted)
		j.finish(Succeeded, now, ReasonCompleted)
	case end == EndFailed && (stop == nil || stop.Cause != Terminated):
		j.fail(now, failure)
	case stop == nil && end == EndLost:
		j.evict(now)
	case stop == nil:
		j.fail(now, ReasonStopped)
	case stop.Cause == Preempted:
		j.preempted(now, stop.Text)
	case stop.Cause == MaxRuntime:
		j.fail(now, stop.Text)
	default: // terminated, or out of attempt time: never retried
		j.closeAttempt(now, stop.Text)
		j.finish(Failed, now, stop.Text)
	}
}

// preempted counts a preemption; it uses up no retry attempt.
func (j *Job) preempted(now time.Time, text string) {
	a := j.takeAttempt(now, text)
	j.PreemptionCount++
	kept := append([]Attempt{a}, j.Preemptions...)
	j.Preemptions = kept[:min(len(kept), KeptPreemptions)]
	if j.PreemptionRetries != nil && j.PreemptionCount > *j.PreemptionRetries {
		j.finish(Failed, now, ReasonPreemptionsOut)
		return
	}
	j.requeue(now)
}

// evict returns a job whose worker was lost, through no fault of its own: no
// attempt is used up, but it waits longer each time this happens in a row.
func (j *Job) evict(now time.Time) {
	j.closeAttempt(now, ReasonLost)
	j.Evictions++
	backoff := BackoffMax
	if n := j.Evictions - 1; n < 6 { // 60 s · 2^6 is beyond the maximum
		backoff = min(BackoffBase<<n, BackoffMax)
	}
	j.NotBefore = now.Add(backoff)
	j.requeue(now)
}

func (j *Job) fail(now time.Time, reason string) {
	j.closeAttempt(now, reason)
	j.Failures++
	if j.retries(reason) {
		j.requeue(now)
		return
	}
	j.finish(Failed, now, reason)
}

func (j *Job) retries(reason string) bool {
	if j.Strategy == nil || j.Failures >= j.Strategy.Attempts {
		return false
	}
	for _, r := range j.Strategy.Rules {
		if matches(r.Pattern, reason) {
			return r.Action == Retry
		}
	}
	return true
}

// matches also accepts the spelling without a space after the prefix, which
// AWS's own Python SDK sends in its default rule.
func matches(pattern, reason string) bool {
	prefix := strings.TrimSuffix(FromSageMaker, " ")
	if p, ok := strings.CutPrefix(pattern, prefix); ok {
		if r, ok := strings.CutPrefix(reason, prefix); ok {
			return glob(strings.TrimPrefix(p, " "), strings.TrimPrefix(r, " "))
		}
	}
	return glob(pattern, reason)
}

// glob matches s against a pattern in which * stands for any characters.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}

// DeclaredRuntime is the longest that an attempt may run; 0: as long as it
// takes.
func (j *Job) DeclaredRuntime() time.Duration {
	if j.Timeout > 0 && j.MaxRuntime > 0 {
		return min(j.Timeout, j.MaxRuntime)
	}
	return max(j.Timeout, j.MaxRuntime)
}

// Deadline is when the running attempt has had its time, and the stop that is
// then due. ok is false while no limit applies.
func (j *Job) Deadline() (at time.Time, stop Stop, ok bool) {
	if j.Status != Running || j.Stopping() {
		return time.Time{}, Stop{}, false
	}
	if j.Timeout > 0 && (j.MaxRuntime == 0 || j.Timeout <= j.MaxRuntime) {
		at = j.StartedAt.Add(j.Timeout)
		return at, Stop{Cause: AttemptTimeout, At: at, Text: ReasonAttemptTimeout}, true
	}
	if j.MaxRuntime > 0 {
		at = j.StartedAt.Add(j.MaxRuntime)
		return at, Stop{Cause: MaxRuntime, At: at, Text: ReasonMaxRuntime}, true
	}
	return time.Time{}, Stop{}, false
}

func (j *Job) closeAttempt(now time.Time, reason string) {
	j.Attempts = append(j.Attempts, j.takeAttempt(now, reason))
}

func (j *Job) takeAttempt(now time.Time, reason string) Attempt {
	a := *j.Current
	a.StoppedAt, a.Reason = now, reason
	j.Current = nil
	return a
}

func (j *Job) requeue(now time.Time) {
	j.ScheduledAt, j.StartedAt = time.Time{}, time.Time{}
	j.Reason, j.ReasonSince = "", time.Time{}
	j.enter(Runnable, now)
}

func (j *Job) finish(s Status, now time.Time, reason string) {
	j.Reason, j.ReasonSince, j.NotBefore = reason, time.Time{}, time.Time{}
	j.StoppedAt = now
	j.enter(s, now)
}

func (j *Job) enter(s Status, now time.Time) { j.Status, j.UpdatedAt = s, now }
