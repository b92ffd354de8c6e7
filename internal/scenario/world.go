package scenario

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// Errors of what is asked of a world.
var (
	ErrUnknownShare = errors.New("no such share")
	ErrUnknownJob   = errors.New("no such job")
	ErrJobExists    = errors.New("a job has that name already")
	ErrNotRunning   = errors.New("the job holds no capacity")
	ErrFinished     = errors.New("the job has finished")
	ErrPast         = errors.New("that time is over")
	ErrRestless     = errors.New("one decision leads to the next without end")
)

// Endless is the runtime of a job that runs until it is told otherwise.
const Endless time.Duration = -1

// Submission is a job as it is handed in, and how its workers spend their time.
type Submission struct {
	Job      string // its name, unique in the world
	Share    string
	Priority int32
	Demand   quota.Amounts // of all workers together
	Workers  int           // 0 is 1

	// Runtime is how long the job must run in all, or Endless.
	Runtime time.Duration
	// CheckpointEvery is how long it runs from one checkpoint to the next. An
	// attempt resumes from the last one; with 0, from nothing.
	CheckpointEvery time.Duration
	// MaxRuntime is what it declares: an attempt that runs longer fails. 0: it
	// declares nothing.
	MaxRuntime time.Duration
	// PreemptionRetries is how often it returns when it is preempted; nil: always.
	PreemptionRetries *int
	// Attempts is how often it may run in all, preempted attempts aside; 0 is 1.
	Attempts int
}

// World is a cohort, its jobs and their workers, in virtual time: engine and
// job life are those of the server; workers do what their Submission says,
// start at once, and are gone a grace period after they are told to stop.
//
// What happens at one instant happens in this order: what workers do by
// themselves, what the caller adds, and then passes until nothing changes. The
// same calls give the same events. A World is not safe for concurrent use.
type World struct {
	cohort   *quota.Cohort
	shares   map[string]Share
	capacity quota.Amounts
	grace    time.Duration
	observe  func(Event)

	now     time.Duration
	touched bool // something changed that a pass must look at
	members []*member
	byName  map[string]*member
	ends    alarms // when attempts end, or are to be told to stop
	saves   alarms // when attempts complete checkpoints

	// broken is the first error that should not be: the engine's books and
	// the world's differ.
	broken error
}

// member is a job of the world.
type member struct {
	job.Job
	demand   quota.Amounts
	borrowed quota.Amounts // of the demand it was granted last
	runtime  time.Duration
	every    time.Duration // between checkpoints

	saved time.Duration // how much of runtime its checkpoints keep
	since time.Duration // from when on its attempt's work is not kept
	lost  time.Duration // what of its attempt's work nothing keeps, once it was told to stop
	end   alarm
	save  alarm
}

func (m *member) id() quota.JobID { return quota.JobID(m.Seq) }

// NewWorld returns a world without jobs at time 0. It tells observe, if that is
// not nil, of every event in order.
func NewWorld(c Cohort, observe func(Event)) *World {
	w := &World{
		cohort:   quota.NewCohort(c.Policy),
		shares:   make(map[string]Share, len(c.Shares)),
		capacity: maps.Clone(c.Capacity),
		grace:    c.GracePeriod,
		observe:  observe,
		byName:   map[string]*member{},
	}
	if w.observe == nil {
		w.observe = func(Event) {}
	}
	w.cohort.SetCapacity(w.capacity)
	for _, s := range c.Shares {
		w.shares[s.Name] = s
		w.cohort.SetShare(s.Share)
	}
	return w
}

// Now is how long the world has been there.
func (w *World) Now() time.Duration { return w.now }

// epoch is when worlds begin, in Unix seconds: a midnight, so that what is
// written as a time of day reads as the time since. It is not 0, which means no
// time to the engine.
const epoch = 946684800

// instant is a time of the world as engine and job life know it.
func instant(at time.Duration) time.Time { return time.Unix(epoch, int64(at)).UTC() }

// check breaks the world if err is not nil.
func (w *World) check(doing string, m *member, err error) {
	if err != nil && w.broken == nil {
		w.broken = fmt.Errorf("%s job %s at %s: %w", doing, m.Name, Spell(w.now), err)
	}
}

func (w *World) tell(m *member, e Event) {
	e.At, e.Job, e.Share, e.Demand = w.now, m.Name, m.Share, m.demand
	w.observe(e)
}

// Next returns when something next happens by itself, once the present is
// settled; ok is false if nothing ever will.
func (w *World) Next() (at time.Duration, ok bool) {
	if len(w.ends) > 0 {
		at, ok = w.ends[0].at, true
	}
	if wake, wakes := w.cohort.Wake(); wakes {
		if due := wake.Sub(instant(0)); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// Advance lets time go by. Everything before the time given has then happened,
// and what workers do at that time; what the caller adds next happens at the
// same instant. It returns ErrPast, or why the world is broken.
func (w *World) Advance(to time.Duration) error {
	if to < w.now {
		return fmt.Errorf("advance to %s at %s: %w", Spell(to), Spell(w.now), ErrPast)
	}
	for w.now < to && w.broken == nil {
		if err := w.Settle(); err != nil {
			return err
		}
		next, ok := w.Next()
		if !ok || next > to {
			next = to
		}
		w.reach(max(next, w.now))
	}
	return w.broken
}

// Finish lets everything happen that ever will by itself: until every job has
// ended that can. It returns why the world is broken.
func (w *World) Finish() error {
	for {
		if err := w.Settle(); err != nil {
			return err
		}
		next, ok := w.Next()
		if !ok {
			return nil
		}
		w.reach(max(next, w.now))
	}
}

// Settle lets the engine decide at the present instant until nothing changes
// any more. It returns why the world is broken.
func (w *World) Settle() error {
	// Every job can be granted, preempted and end a few times at one instant,
	// not for ever.
	most := 1000 + 4*len(w.members)
	for passes := 0; w.touched && w.broken == nil; passes++ {
		if passes == most {
			w.broken = fmt.Errorf("%d passes at %s: %w", passes, Spell(w.now), ErrRestless)
			break
		}
		w.touched = false
		w.completeCheckpoints()
		for _, d := range w.cohort.Pass(instant(w.now)) {
			w.decide(d)
		}
		w.live()
	}
	return w.broken
}

// reach moves the world to an instant at which workers act, or the engine
// wants a pass.
func (w *World) reach(at time.Duration) {
	w.now = at
	if wake, wakes := w.cohort.Wake(); wakes && !wake.After(instant(at)) {
		w.touched = true
	}
	w.live()
}

// Submit hands in a job. In a share that is disabled it fails at once. Errors:
// ErrJobExists, ErrUnknownShare, quota.ErrDemand.
func (w *World) Submit(s Submission) error {
	share, ok := w.shares[s.Share]
	if !ok {
		return fmt.Errorf("submit job %s to share %s: %w", s.Job, s.Share, ErrUnknownShare)
	}
	if w.byName[s.Job] != nil {
		return fmt.Errorf("submit job %s: %w", s.Job, ErrJobExists)
	}
	m := w.newMember(s)
	if !share.Disabled {
		if err := w.cohort.Add(quota.Job{
			ID: m.id(), Share: m.Share, Priority: m.Priority,
			Created: m.CreatedAt, Demand: m.demand, MaxRuntime: m.MaxRuntime,
		}); err != nil {
			return fmt.Errorf("submit job %s: %w", s.Job, err)
		}
	}
	w.members = append(w.members, m)
	w.byName[m.Name] = m
	w.tell(m, Event{Kind: Submitted})
	if share.Disabled {
		m.Terminate(instant(w.now), fmt.Sprintf("Share %s is disabled and takes no jobs.", s.Share))
		w.tell(m, Event{Kind: Failed, Reason: m.Reason})
		return nil
	}
	w.touched = true
	return nil
}

func (w *World) newMember(s Submission) *member {
	now := instant(w.now)
	m := &member{
		Job: job.Job{
			Seq: int64(len(w.members)) + 1, Name: s.Job, Share: s.Share, Priority: s.Priority, Workers: max(1, s.Workers),
			MaxRuntime: s.MaxRuntime, PreemptionRetries: s.PreemptionRetries,
			Status: job.Runnable, CreatedAt: now, UpdatedAt: now,
		},
		demand: s.Demand, runtime: s.Runtime, every: s.CheckpointEvery,
	}
	if s.Attempts > 1 {
		m.Strategy = &job.Strategy{Attempts: s.Attempts}
	}
	m.end, m.save = alarm{of: m, index: -1}, alarm{of: m, index: -1}
	return m
}

// SetPriority changes a job's priority. Errors: ErrUnknownJob, ErrFinished.
func (w *World) SetPriority(name string, priority int32) error {
	m, err := w.unfinished(name)
	if err != nil {
		return fmt.Errorf("set the priority of job %s: %w", name, err)
	}
	m.Priority = priority
	w.check("set the priority of", m, w.cohort.SetPriority(m.id(), priority))
	w.touched = true
	return nil
}

// SetShare creates a share or changes it.
func (w *World) SetShare(s Share) {
	w.shares[s.Name] = s
	w.cohort.SetShare(s.Share)
	w.touched = true
}

// SetCapacity changes the capacity in the units named.
func (w *World) SetCapacity(changed quota.Amounts) {
	capacity := maps.Clone(w.capacity)
	if capacity == nil {
		capacity = quota.Amounts{}
	}
	maps.Copy(capacity, changed)
	w.capacity = capacity
	w.cohort.SetCapacity(capacity)
	w.touched = true
}

// Terminate ends a job: at once if it waits, else once it has stopped. One that
// has finished stays as it is. It returns ErrUnknownJob.
func (w *World) Terminate(name, reason string) error {
	m := w.byName[name]
	if m == nil {
		return fmt.Errorf("terminate job %s: %w", name, ErrUnknownJob)
	}
	switch {
	case m.Status.Finished():
	case m.Status.Holds():
		w.stop(m, job.Stop{Cause: job.Terminated, At: instant(w.now), Text: reason})
	default:
		m.Terminate(instant(w.now), reason)
		w.forget(m)
	}
	return nil
}

// Fail lets the job's attempt fail by itself, with a status reason. Errors:
// ErrUnknownJob, ErrNotRunning.
func (w *World) Fail(name, reason string) error { return w.exit(name, job.EndFailed, reason) }

// Succeed lets the job's attempt succeed. Errors: ErrUnknownJob, ErrNotRunning.
func (w *World) Succeed(name string) error { return w.exit(name, job.EndSucceeded, "") }

func (w *World) exit(name string, end job.End, failure string) error {
	m, err := w.unfinished(name)
	if err == nil && !m.Status.Holds() {
		err = ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("end the attempt of job %s: %w", name, err)
	}
	w.endAttempt(m, end, failure)
	return nil
}

func (w *World) unfinished(name string) (*member, error) {
	m := w.byName[name]
	switch {
	case m == nil:
		return nil, ErrUnknownJob
	case m.Status.Finished():
		return nil, ErrFinished
	}
	return m, nil
}
