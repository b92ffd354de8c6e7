package scenario

import (
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// Standing is where a job stands that a world begins with. Its times are how
// long ago something was.
type Standing struct {
	Age         time.Duration // of the job, since it was accepted
	Preemptions int           // so far
	Backoff     time.Duration // how much longer it may not start; of a waiting job

	Holds bool          // it holds its demand
	Held  time.Duration // since it was granted it
	Ran   time.Duration // since its workers were up
	// Saved is since its newest completed checkpoint, of any attempt; negative:
	// there is none.
	Saved time.Duration
	// Stopping is why its workers were told to stop, if they were. They have a
	// whole grace period left.
	Stopping *job.Stop
}

// Resume has the world begin with a job that is there already: it waits, or
// runs on. It is for worlds in which no time has gone by. Errors: ErrPast,
// ErrJobExists, ErrUnknownShare, quota.ErrDemand.
func (w *World) Resume(s Submission, at Standing) error {
	if w.now > 0 {
		return fmt.Errorf("resume job %s at %s: %w", s.Job, Spell(w.now), ErrPast)
	}
	if _, ok := w.shares[s.Share]; !ok {
		return fmt.Errorf("resume job %s in share %s: %w", s.Job, s.Share, ErrUnknownShare)
	}
	if w.byName[s.Job] != nil {
		return fmt.Errorf("resume job %s: %w", s.Job, ErrJobExists)
	}
	m := w.newMember(s)
	m.CreatedAt, m.PreemptionCount = instant(-at.Age), at.Preemptions
	if at.Saved >= 0 {
		m.MarkCheckpoint(instant(-at.Saved))
	}
	if err := w.enter(m, at); err != nil {
		return fmt.Errorf("resume job %s: %w", s.Job, err)
	}
	w.members = append(w.members, m)
	w.byName[m.Name] = m
	w.touched = true
	w.tell(m, Event{Kind: Submitted})
	if at.Holds {
		w.runOn(m, at)
	}
	return nil
}

// enter puts the job into the engine.
func (w *World) enter(m *member, at Standing) error {
	j := quota.Job{
		ID: m.id(), Share: m.Share, Priority: m.Priority,
		Created: m.CreatedAt, Demand: m.demand, MaxRuntime: m.MaxRuntime,
	}
	if at.Holds {
		return w.cohort.Restore(j, quota.Holding{Since: instant(-at.Held), Checkpoint: m.CheckpointAt})
	}
	if at.Backoff > 0 {
		j.NotBefore = instant(at.Backoff)
	}
	return w.cohort.Add(j)
}

// runOn takes up an attempt where it is.
func (w *World) runOn(m *member, at Standing) {
	m.Dispatch(instant(-at.Held), "", "")
	m.MarkStarting(instant(-at.Held))
	m.MarkRunning(instant(-at.Ran))
	m.since = -at.Ran
	if at.Saved >= 0 && at.Saved < at.Ran {
		m.saved, m.since = at.Ran-at.Saved, -at.Saved
	}
	w.setAlarms(m)
	w.tell(m, Event{Kind: Resumed})
	if at.Stopping != nil {
		w.stop(m, *at.Stopping)
	}
}
