package governor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// turn changes the state, and collects what of it is to be stored, journaled
// and ordered. Commands check everything before they change anything: one that
// is refused has left no trace.
type turn struct {
	*state
	ctx context.Context // of the one call that the turn is
	cfg Config
	now time.Time
	by  string // whose command is being applied

	entries  []store.Entry
	refs     []resource.Ref // of changed resources, each once
	dirty    []*activeJob   // changed jobs, each once
	payloads map[string]string
	orders   []order
	leaving  []*activeJob // from memory, once the turn is committed

	// broken is the first error that should not be: the engine's books and
	// the state's differ, or the store could not be read. The turn is void.
	broken error
}

// order is what the runner is to do.
type order struct {
	attempt runner.Attempt
	stop    bool
}

// check makes the turn void if err is not nil.
func (t *turn) check(doing string, err error) {
	if err != nil && t.broken == nil {
		t.broken = fmt.Errorf("%s: %w", doing, err)
	}
}

// write adds a line to the journal.
func (t *turn) write(kind store.EntryKind, name, subject string, data any) {
	raw, err := json.Marshal(data)
	t.check("journal "+name, err)
	t.lastEntry++
	t.entries = append(t.entries, store.Entry{Seq: t.lastEntry, At: t.now, Kind: kind, Name: name, Subject: subject, By: t.by, Data: raw})
}

// accept journals a command.
func (t *turn) accept(operation, subject string, command any) {
	t.write(store.Command, operation, subject, command)
}

// subject is how the journal names a resource, or a job.
func subject(r resource.Ref) string {
	switch r.Kind {
	case resource.KindJob:
		return r.Name
	case resource.KindShare:
		return string(r.Kind) + "/" + r.Queue + "/" + r.Name
	default:
		return string(r.Kind) + "/" + r.Name
	}
}

func environmentRef(name string) resource.Ref {
	return resource.Ref{Kind: resource.KindEnvironment, Name: name}
}

func policyRef(name string) resource.Ref {
	return resource.Ref{Kind: resource.KindPolicy, Name: name}
}

func queueRef(name string) resource.Ref {
	return resource.Ref{Kind: resource.KindQueue, Name: name}
}

func shareRef(queueName, name string) resource.Ref {
	return resource.Ref{Kind: resource.KindShare, Name: name, Queue: queueName}
}

// changedResource has a resource stored as it is at the end of the turn, or
// removed if it is gone by then.
func (t *turn) changedResource(r resource.Ref) {
	if !slices.Contains(t.refs, r) {
		t.refs = append(t.refs, r)
	}
}

// changedJob has a job stored as it is at the end of the turn.
func (t *turn) changedJob(a *activeJob) {
	if !a.changed {
		a.changed = true
		t.dirty = append(t.dirty, a)
	}
}

// batch is what the turn makes durable.
func (t *turn) batch() store.Batch {
	b := store.Batch{Entries: t.entries, Payloads: t.payloads, Jobs: make([]job.Job, len(t.dirty))}
	for _, r := range t.refs {
		t.addResource(&b, r)
	}
	for i, a := range t.dirty {
		b.Jobs[i] = a.Job
		a.changed = false
	}
	return b
}

func (t *turn) addResource(b *store.Batch, r resource.Ref) {
	switch r.Kind {
	case resource.KindEnvironment:
		if e := t.environments[r.Name]; e != nil {
			b.Environments = append(b.Environments, e.Environment)
			return
		}
	case resource.KindPolicy:
		if p := t.policies[r.Name]; p != nil {
			b.Policies = append(b.Policies, *p)
			return
		}
	case resource.KindQueue:
		if q := t.queues[r.Name]; q != nil {
			b.Queues = append(b.Queues, q.Queue)
			return
		}
	case resource.KindShare:
		if l := t.lane(r.Queue, r.Name); l != nil {
			b.Shares = append(b.Shares, l.share)
			return
		}
	case resource.KindJob:
		return // jobs are in t.dirty, and never removed
	}
	b.Removed = append(b.Removed, r)
}

// forgetFinished drops from memory what is in the store alone from now on.
func (t *turn) forgetFinished() {
	for _, a := range t.leaving {
		delete(t.jobs, a.ID)
		delete(t.bySeq, a.id())
	}
}

// job returns a job, also one that has finished, or a refusal.
func (t *turn) job(id string) (*activeJob, error) {
	if a := t.jobs[id]; a != nil {
		return a, nil
	}
	j, err := t.cfg.Store.Job(t.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, noJob(id)
	}
	if err != nil {
		t.check("read job "+id, err)
		return nil, t.broken
	}
	// Kept for the rest of the turn, so that a second command sees what the
	// first did to it.
	a := &activeJob{Job: j, index: -1}
	t.jobs[id] = a
	t.leaving = append(t.leaving, a)
	return a, nil
}

func noJob(id string) error {
	return refuse(Missing, "Service job %s does not exist.", id)
}

// resume hands the runner what was running when the state was stored.
func (t *turn) resume() {
	for _, a := range t.inOrder() {
		if !a.Status.Holds() {
			continue
		}
		t.orderStart(a)
		if a.Stopping() {
			t.orderStop(a)
		}
	}
	for _, name := range inNameOrder(t.queues) {
		t.recount(t.queues[name])
	}
	for _, e := range t.environments {
		e.touched = true
	}
}

// inOrder returns all jobs in order of acceptance.
func (t *turn) inOrder() []*activeJob {
	return slices.SortedFunc(maps.Values(t.jobs), func(a, b *activeJob) int { return cmp.Compare(a.Seq, b.Seq) })
}

func (t *turn) orderStart(a *activeJob) {
	t.orders = append(t.orders, order{attempt: runner.Attempt{
		Key:             runner.Key{Job: a.ID, Run: a.Current.Run},
		JobName:         a.Name,
		Queue:           a.Queue,
		Share:           a.Share,
		TrainingJobName: a.Current.TrainingJobName,
		TrainingJobARN:  a.Current.TrainingJobARN,
		Grace:           a.lane.queue.grace(),
	}})
}

func (t *turn) orderStop(a *activeJob) {
	t.orders = append(t.orders, order{attempt: runner.Attempt{Key: runner.Key{Job: a.ID, Run: a.Current.Run}}, stop: true})
}

// stateEntry is what the journal says of a job that entered a state.
type stateEntry struct {
	Name            string `json:"name"`
	Queue           string `json:"queue"`
	Share           string `json:"share,omitempty"`
	ShareIdentifier string `json:"shareIdentifier,omitempty"`
	Run             int    `json:"run,omitempty"`
	Reason          string `json:"reason,omitempty"`
}

// entered journals and stores a job that entered a state.
func (t *turn) entered(a *activeJob) {
	t.write(store.State, string(a.Status), a.ID, stateEntry{
		Name: a.Name, Queue: a.Queue, Share: a.Share, ShareIdentifier: a.ShareIdentifier, Run: a.Runs, Reason: a.Reason,
	})
	t.changedJob(a)
	t.reschedule(a)
}

// finished takes a job that has just finished out of its lane.
func (t *turn) finished(a *activeJob) {
	t.check("remove job "+a.ID, a.cohort().Remove(a.id()))
	a.lane.jobs--
	t.touch(a.lane)
	t.leaving = append(t.leaving, a)
	t.entered(a)
	t.vanish(a.lane)
}

// terminate ends a job: at once if it waits, else as soon as it has stopped.
func (t *turn) terminate(a *activeJob, reason string) {
	if a.Status.Holds() {
		t.stop(a, job.Stop{Cause: job.Terminated, At: t.now, Text: reason})
		return
	}
	a.Terminate(t.now, reason)
	a.lane.moved = t.now
	t.finished(a)
}

// stop tells a job that holds capacity to give it back for a reason of its own.
func (t *turn) stop(a *activeJob, s job.Stop) {
	if !a.RequestStop(s) {
		return
	}
	t.check("stop job "+a.ID, a.cohort().Stop(a.id()))
	t.changedJob(a)
	t.reschedule(a)
	t.touch(a.lane)
	t.orderStop(a)
}

func (t *turn) touch(l *lane) { l.queue.environment.touched = true }

// overdue is what the journal says of a job that had all the time it may have.
type overdue struct {
	Cause  job.Cause `json:"cause,omitempty"`
	Reason string    `json:"reason"`
}

// endOverdue stops the jobs that have run for as long as they may, and ends
// those that were parked for longer than their queue allows.
func (t *turn) endOverdue() {
	for len(t.due) > 0 && !t.due[0].due.After(t.now) {
		a := t.due[0]
		if a.Status == job.Runnable {
			_, reason, _ := a.timeLimit()
			reason = job.TimeLimitReason(reason)
			t.write(store.Decision, "time-limit", a.ID, overdue{Reason: reason})
			t.terminate(a, reason)
			continue
		}
		_, stop, _ := a.Deadline()
		t.write(store.Decision, "timeout", a.ID, overdue{Cause: stop.Cause, Reason: stop.Text})
		t.stop(a, stop)
	}
}

// inNameOrder returns a map's keys, sorted: decisions must not depend on the
// order of a map.
func inNameOrder[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pass lets the engine decide in every environment in which something changed,
// or time alone may have changed something.
func (t *turn) pass() {
	for _, name := range inNameOrder(t.environments) {
		e := t.environments[name]
		wake, wakes := e.cohort.Wake()
		if !e.touched && (!wakes || wake.After(t.now)) {
			continue
		}
		e.touched = false
		for _, d := range e.cohort.Pass(t.now) {
			t.decide(d)
		}
		t.keepPromises(e)
	}
}

// keepPromises has it stored to whom the environment's engine has promised what
// was given back, and to whom no longer.
func (t *turn) keepPromises(e *environment) {
	before := e.promised
	e.promised = e.cohort.Promised()
	for _, id := range slices.Concat(before, e.promised) {
		a := t.bySeq[id]
		if a == nil {
			continue // it is gone
		}
		if promised := slices.Contains(e.promised, id); a.Promised != promised {
			a.Promised = promised
			t.changedJob(a)
		}
	}
}

// decision is what the journal says of one.
type decision struct {
	Name            string        `json:"name"`
	Share           string        `json:"share,omitempty"`
	ShareIdentifier string        `json:"shareIdentifier,omitempty"`
	Ground          quota.Ground  `json:"ground,omitempty"`
	Borrowed        quota.Amounts `json:"borrowed,omitempty"`
	For             string        `json:"for,omitempty"`
	ForShare        string        `json:"forShare,omitempty"`
	LostWork        float64       `json:"lostWork,omitempty"` // unit-seconds
	Candidates      int           `json:"candidates,omitempty"`
	Alternative     *float64      `json:"alternative,omitempty"` // unit-seconds
	Reason          *quota.Reason `json:"reason,omitempty"`
	Sentence        string        `json:"sentence"`
}

// decide carries out a decision of the engine.
func (t *turn) decide(d quota.Decision) {
	a := t.bySeq[d.Job]
	if a == nil {
		t.check(fmt.Sprintf("carry out %s of job %d", d.Kind, d.Job), quota.ErrNoJob)
		return
	}
	d.Share, d.ForShare = ownName(a.Queue, d.Share), ownName(a.Queue, d.ForShare)
	sentence := d.Sentence(t.jobName)
	t.write(store.Decision, string(d.Kind), a.ID, t.journaled(a, d, sentence))
	t.changedJob(a)
	switch d.Kind {
	case quota.Grant:
		t.dispatch(a, sentence)
	case quota.Preempt:
		t.preempt(a, d, sentence)
	case quota.Park:
		a.Park(t.now, d.Reason.Text)
		t.reschedule(a)
	}
}

func (t *turn) journaled(a *activeJob, d quota.Decision, sentence string) decision {
	entry := decision{
		Name: a.Name, Share: a.Share, ShareIdentifier: a.ShareIdentifier, Ground: d.Ground, Borrowed: d.Borrowed, ForShare: d.ForShare,
		LostWork: d.LostWork.UnitSeconds(), Candidates: d.Candidates, Sentence: sentence,
	}
	if d.HasAlternative {
		cost := d.Alternative.UnitSeconds()
		entry.Alternative = &cost
	}
	if b := t.bySeq[d.For]; b != nil {
		entry.For = b.ID
	}
	if d.Kind == quota.Park && d.Reason.Code != "" {
		r := ownNames(a.Queue, d.Reason)
		entry.Reason = &r
	}
	return entry
}

// jobName is how sentences name a job.
func (s *state) jobName(id quota.JobID) string {
	if a := s.bySeq[id]; a != nil {
		return a.Name
	}
	return "another job"
}

func (t *turn) dispatch(a *activeJob, sentence string) {
	name := "AWSBatch" + a.TrainingJobName + t.cfg.NewSuffix()
	a.Dispatch(t.now, name, t.cfg.TrainingJobARN(name))
	a.Current.Decision = sentence
	a.lane.usage.add(a.Demand, 1)
	a.lane.moved = t.now
	if !a.CheckpointAt.IsZero() {
		// The engine was not told of it if the job waited at a restart.
		t.check("recall a checkpoint of job "+a.ID, a.cohort().Checkpointed(a.id(), a.CheckpointAt))
	}
	t.entered(a)
	t.orderStart(a)
}

func (t *turn) preempt(a *activeJob, d quota.Decision, sentence string) {
	stop := job.Stop{Cause: job.Preempted, At: t.now, Ground: string(d.Ground), ForShare: d.ForShare, Decision: sentence}
	switch d.Ground {
	case quota.InShare:
		stop.Text = job.OutrankedBy(t.jobName(d.For))
	case quota.FromBorrower:
		stop.Text = job.OutbidBy(t.jobName(d.For), d.ForShare)
	case quota.Rebalance:
		stop.Text = job.RebalancedTo(d.ForShare)
	default:
		stop.Text = job.ReclaimedBy(d.ForShare)
	}
	if b := t.bySeq[d.For]; b != nil {
		stop.ForJob = b.ID
	}
	if a.RequestStop(stop) {
		t.reschedule(a)
		t.orderStop(a)
	}
}
