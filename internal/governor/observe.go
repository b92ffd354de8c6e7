package governor

import (
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// observe applies what a runner saw. What concerns an attempt that is over, or
// is known already, changes nothing: runners repeat themselves after a restart.
func (t *turn) observe(o runner.Observation) {
	a := t.jobs[o.Job]
	if a == nil || a.Current == nil || a.Current.Run != o.Run {
		return
	}
	at := t.seenAt(a, o.At)
	switch o.Event {
	case runner.Starting:
		t.started(a, o, func() { a.MarkStarting(at) })
	case runner.Running:
		t.started(a, o, func() { a.MarkRunning(at) })
	case runner.Checkpointed:
		t.checkpointed(a, o)
	case runner.Ended:
		t.ended(a, o, at)
	}
}

// seenAt is when something happened to a job: never before what is known to
// have happened before, nor in the future, whatever the runner's clock says.
func (t *turn) seenAt(a *activeJob, at time.Time) time.Time {
	at = at.UTC().Truncate(time.Millisecond)
	switch {
	case at.After(t.now):
		return t.now
	case at.Before(a.UpdatedAt):
		return a.UpdatedAt
	}
	return at
}

func (t *turn) started(a *activeJob, o runner.Observation, mark func()) {
	before := a.Status
	mark()
	if a.Status == before {
		return
	}
	t.write(store.Seen, string(o.Event), a.ID, o)
	t.entered(a)
}

func (t *turn) checkpointed(a *activeJob, o runner.Observation) {
	if t.markCheckpoint(a, o.Checkpoint) {
		t.write(store.Seen, string(o.Event), a.ID, o)
	}
}

func (t *turn) markCheckpoint(a *activeJob, at time.Time) bool {
	at = at.UTC().Truncate(time.Millisecond)
	if at.After(t.now) {
		at = t.now
	}
	if at.IsZero() || !a.MarkCheckpoint(at) {
		return false
	}
	t.check("record a checkpoint of job "+a.ID, a.cohort().Checkpointed(a.id(), at))
	t.changedJob(a)
	return true
}

// ended ends the attempt, and the job or its wait with it.
func (t *turn) ended(a *activeJob, o runner.Observation, at time.Time) {
	t.write(store.Seen, string(o.Event), a.ID, o)
	t.markCheckpoint(a, o.Checkpoint)
	a.EndAttempt(at, endOf(o.Outcome), failure(o))
	t.takeBackUse(a, at)
	a.lane.giveBack(a.Demand)
	if a.Status.Finished() {
		t.finished(a)
		return
	}
	t.check("requeue job "+a.ID, a.cohort().Requeue(a.id(), a.NotBefore))
	t.touch(a.lane)
	t.entered(a)
}

func endOf(o runner.Outcome) job.End {
	switch o {
	case runner.Succeeded:
		return job.EndSucceeded
	case runner.Stopped:
		return job.EndStopped
	case runner.Lost:
		return job.EndLost
	default:
		return job.EndFailed
	}
}

// failure is the status reason of an attempt that failed, as SageMaker would
// give it; retry rules match it.
func failure(o runner.Observation) string {
	text := job.FromSageMaker + "AlgorithmError: " + o.Message
	if o.ExitCode != 0 {
		text += fmt.Sprintf(", exit code: %d", o.ExitCode)
	}
	return text
}
