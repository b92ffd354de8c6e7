package scenario

import (
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// decide carries out a decision of the engine, as the governor does.
func (w *World) decide(d quota.Decision) {
	if d.Job < 1 || int(d.Job) > len(w.members) {
		w.broken = fmt.Errorf("%s job %d at %s: %w", d.Kind, d.Job, Spell(w.now), quota.ErrNoJob)
		return
	}
	m := w.members[d.Job-1]
	switch d.Kind {
	case quota.Grant:
		w.dispatch(m, d)
	case quota.Preempt:
		w.preempt(m, d)
	case quota.Park:
		m.Park(instant(w.now), d.Reason.Text)
	}
}

// dispatch begins an attempt. Its workers are up at once.
func (w *World) dispatch(m *member, d quota.Decision) {
	now := instant(w.now)
	m.Dispatch(now, "", "")
	m.MarkStarting(now)
	m.MarkRunning(now)
	m.borrowed = d.Borrowed
	m.since, m.lost = w.now, 0
	w.setAlarms(m)
	w.tell(m, Event{Kind: Granted, Ground: d.Ground, Borrowed: d.Borrowed})
}

// setAlarms notes when the attempt has done what it has to do, or has had the
// time it may have, and its next checkpoint.
func (w *World) setAlarms(m *member) {
	deadline, _, limited := m.Deadline()
	due := deadline.Sub(instant(0))
	if m.runtime != Endless && (!limited || m.doneAt() <= due) {
		due, limited = m.doneAt(), true
	}
	if limited {
		w.ends.set(&m.end, due)
	}
	if m.every > 0 {
		w.saves.set(&m.save, w.now+m.every)
	}
}

// doneAt is when an attempt that is not stopped has done all of the job's work.
func (m *member) doneAt() time.Duration { return m.since + m.runtime - m.saved }

func (w *World) preempt(m *member, d quota.Decision) {
	by := w.members[d.For-1]
	text := job.ReclaimedBy(d.ForShare)
	switch d.Ground {
	case quota.InShare:
		text = job.OutrankedBy(by.Name)
	case quota.FromBorrower:
		text = job.OutbidBy(by.Name, d.ForShare)
	case quota.Rebalance:
		text = job.RebalancedTo(d.ForShare)
	default:
	}
	w.tell(m, Event{Kind: Preempted, Ground: d.Ground, For: by.Name})
	w.halt(m, job.Stop{
		Cause: job.Preempted, At: instant(w.now), Text: text,
		Ground: string(d.Ground), ForJob: by.Name, ForShare: d.ForShare,
	})
}

// stop tells a job that holds capacity to give it back for a reason of its own.
func (w *World) stop(m *member, s job.Stop) {
	w.checkpoint(m)
	if w.halt(m, s) {
		w.check("stop", m, w.cohort.Stop(m.id()))
		w.touched = true
	}
}

// halt has the workers stop working, and be gone after the grace period, and
// reports whether the order to stop is news.
func (w *World) halt(m *member, s job.Stop) bool {
	halted := m.Stopping()
	if !m.RequestStop(s) {
		return false
	}
	if !halted {
		m.lost = w.now - m.since
		w.saves.clear(&m.save)
		w.ends.set(&m.end, w.now+w.grace)
	}
	return true
}

// live lets workers do what they do by now.
func (w *World) live() {
	for {
		a, ok := w.ends.due(w.now)
		if !ok {
			return
		}
		w.ring(a.of)
	}
}

// ring ends an attempt that has stopped or done its work, and stops one that
// has had its time.
func (w *World) ring(m *member) {
	switch {
	case m.Stopping():
		w.endAttempt(m, job.EndStopped, "")
	case m.runtime != Endless && m.doneAt() <= w.now:
		w.endAttempt(m, job.EndSucceeded, "")
	default:
		_, stop, _ := m.Deadline()
		w.stop(m, stop)
	}
}

// completeCheckpoints tells the engine of the checkpoints completed by now. It
// wants them when it decides, and not before.
func (w *World) completeCheckpoints() {
	for {
		a, ok := w.saves.due(w.now)
		if !ok {
			return
		}
		w.checkpoint(a.of)
		w.saves.set(a, a.of.since+a.of.every)
	}
}

// checkpoint keeps the work of an attempt up to its newest checkpoint.
func (w *World) checkpoint(m *member) {
	if m.every == 0 || m.Stopping() || w.now-m.since < m.every {
		return
	}
	kept := (w.now - m.since).Truncate(m.every)
	m.saved += kept
	m.since += kept
	if at := instant(m.since); m.MarkCheckpoint(at) {
		w.check("record a checkpoint of", m, w.cohort.Checkpointed(m.id(), at))
	}
}

// endAttempt ends the attempt, and the job or its wait with it.
func (w *World) endAttempt(m *member, end job.End, failure string) {
	w.checkpoint(m)
	if !m.Stopping() {
		m.lost = w.now - m.since
	}
	released := Event{Kind: Released, Lost: m.lost}
	released.Preempted = end == job.EndStopped && m.Current.Stop.Cause == job.Preempted
	if end == job.EndSucceeded {
		released.Lost = 0
	}
	w.ends.clear(&m.end)
	w.saves.clear(&m.save)
	m.EndAttempt(instant(w.now), end, failure)
	w.tell(m, released)
	if m.Status.Finished() {
		w.forget(m)
		return
	}
	w.check("requeue", m, w.cohort.Requeue(m.id(), m.NotBefore))
	w.touched = true
	w.tell(m, Event{Kind: Requeued})
}

// forget takes a job that has just finished from the engine.
func (w *World) forget(m *member) {
	w.check("remove", m, w.cohort.Remove(m.id()))
	w.touched = true
	if m.Status == job.Succeeded {
		w.tell(m, Event{Kind: Finished})
		return
	}
	w.tell(m, Event{Kind: Failed, Reason: m.Reason})
}
