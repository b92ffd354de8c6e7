package governor

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// state is all that is active: what is declared, and the jobs that have not
// finished. It is a pure function of the store's contents and of the turns
// taken since, and owned by one goroutine.
//
// Limits and tags in it are never changed in place, so that queries may hand
// out records as they are. Jobs are, and must be cloned.
type state struct {
	environments map[string]*environment
	policies     map[string]*resource.Policy
	queues       map[string]*queue
	jobs         map[string]*activeJob
	bySeq        map[quota.JobID]*activeJob
	due          dueHeap
	tokens       tokens
	lastJob      int64
	lastEntry    int64
}

// environment is a service environment and the cohort that lives on it.
type environment struct {
	resource.Environment
	cohort  *quota.Cohort
	queues  map[string]*queue
	touched bool // something changed that a pass must look at

	// promised are, as of the last pass, the jobs that the engine must be told
	// of after a restart (see quota.Cohort.Promised).
	promised []quota.JobID
}

// queue is a job queue. One of whole, shares and identifiers is not nil: whole
// is the lane of a queue without policy, shares has the lanes of a queue with
// quota shares, and identifiers those of a fair-share queue.
type queue struct {
	resource.Queue
	policy      *resource.Policy // nil: none
	environment *environment
	whole       *lane
	shares      map[string]*lane
	identifiers map[string]*lane
}

// lane is where jobs wait and hold capacity: what the engine calls a share. It
// is a quota share, a share identifier, or the whole of a queue without policy.
type lane struct {
	name       string // the engine's: queue, queue/share or queue/identifier
	queue      *queue
	share      resource.Share // the zero Share in a queue without quota shares
	identifier string         // empty in a queue that is not a fair-share one
	jobs       int            // that have not finished
	usage      usage          // by instance type, of the jobs that hold capacity
	moved      time.Time      // when a job last left the line of waiting ones
}

// activeJob is a job that has not finished, or did in the present turn.
type activeJob struct {
	job.Job
	lane    *lane
	changed bool // in the present turn
	due     time.Time
	index   int // in the heap of what is due, or -1
}

func (a *activeJob) id() quota.JobID       { return quota.JobID(a.Seq) }
func (a *activeJob) cohort() *quota.Cohort { return a.lane.queue.environment.cohort }

// newState builds the state from what the store has. An error means that the
// contents contradict themselves.
func newState(c store.Contents) (*state, error) {
	s := &state{
		environments: make(map[string]*environment, len(c.Environments)),
		policies:     make(map[string]*resource.Policy, len(c.Policies)),
		queues:       make(map[string]*queue, len(c.Queues)),
		jobs:         make(map[string]*activeJob, len(c.Jobs)),
		bySeq:        make(map[quota.JobID]*activeJob, len(c.Jobs)),
		tokens:       newTokens(c.Tokens),
		lastJob:      c.LastJobSeq,
		lastEntry:    c.LastEntrySeq,
	}
	for _, e := range c.Environments {
		s.addEnvironment(e)
	}
	for _, p := range c.Policies {
		s.policies[p.Name] = &p
	}
	for _, q := range c.Queues {
		if s.environments[q.Environment] == nil {
			return nil, fmt.Errorf("job queue %s is on service environment %s, which is not stored", q.Name, q.Environment)
		}
		s.addQueue(q)
	}
	for _, sh := range c.Shares {
		q := s.queues[sh.Queue]
		if q == nil || q.shares == nil {
			return nil, fmt.Errorf("quota share %s is of job queue %s, which is not stored as one with quota shares", sh.Name, sh.Queue)
		}
		s.addShare(q, sh)
	}
	if err := s.addJobs(c.Jobs); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *state) addEnvironment(e resource.Environment) {
	env := &environment{Environment: e, queues: map[string]*queue{}}
	env.cohort = quota.NewCohort(env.policy())
	env.cohort.SetCapacity(amounts(e.Limits))
	s.environments[e.Name] = env
}

func (s *state) addQueue(r resource.Queue) {
	q := &queue{Queue: r, policy: s.policies[r.Policy]}
	switch {
	case q.policy == nil:
		q.whole = &lane{name: r.Name, queue: q, usage: usage{}}
	case q.policy.FairShare != nil:
		q.identifiers = map[string]*lane{}
	default:
		q.shares = map[string]*lane{}
	}
	s.queues[r.Name] = q
	q.attach(s.environments[r.Environment])
}

func (s *state) addShare(q *queue, r resource.Share) {
	l := &lane{name: q.Name + "/" + r.Name, queue: q, share: r, usage: usage{}}
	q.shares[r.Name] = l
	q.environment.cohort.SetShare(l.quota())
}

// addJobs puts stored jobs back where they were.
func (s *state) addJobs(jobs []job.Job) error {
	for _, j := range jobs {
		l := s.laneOf(&j)
		if l == nil {
			return fmt.Errorf("job %s is in job queue %s and quota share %q, which are not stored", j.ID, j.Queue, j.Share)
		}
		s.addJob(&activeJob{Job: j, lane: l, index: -1})
	}
	for _, j := range jobs {
		if err := s.restoreJob(s.jobs[j.ID]); err != nil {
			return fmt.Errorf("restore job %s: %w", j.ID, err)
		}
	}
	for _, env := range s.environments {
		for _, q := range env.queues {
			q.install() // the usage is known only now
		}
	}
	return nil
}

func (s *state) addJob(a *activeJob) {
	s.jobs[a.ID] = a
	s.bySeq[a.id()] = a
	a.lane.jobs++
}

func (s *state) restoreJob(a *activeJob) error {
	s.reschedule(a)
	if !a.Status.Holds() {
		if env := a.lane.queue.environment; a.Promised {
			env.promised = append(env.promised, a.id())
		}
		return a.cohort().Add(a.quota())
	}
	a.lane.usage.add(a.Demand, 1)
	return a.cohort().Restore(a.quota(), s.holding(a))
}

// holding is what the engine must know of a job that holds capacity.
func (s *state) holding(a *activeJob) quota.Holding {
	h := quota.Holding{Since: a.ScheduledAt, Checkpoint: a.CheckpointAt}
	switch {
	case !a.Stopping():
	case a.Current.Stop.Ground != "":
		h.Stopping = &quota.Preemption{Ground: quota.Ground(a.Current.Stop.Ground), ForShare: a.Queue + "/" + a.Current.Stop.ForShare}
		if beneficiary := s.jobs[a.Current.Stop.ForJob]; beneficiary != nil {
			h.Stopping.For = beneficiary.id()
		}
	default:
		h.Stopping = &quota.Preemption{Ground: quota.Ended}
	}
	return h
}

// laneOf returns where a stored job is, or nil.
func (s *state) laneOf(j *job.Job) *lane {
	if q := s.queues[j.Queue]; q != nil && q.identifiers != nil && j.ShareIdentifier != "" {
		return q.identifier(j.ShareIdentifier)
	}
	return s.lane(j.Queue, j.Share)
}

// lane returns where jobs of a queue and quota share are, or nil.
func (s *state) lane(queueName, share string) *lane {
	q := s.queues[queueName]
	switch {
	case q == nil:
		return nil
	case share == "":
		return q.whole
	default:
		return q.shares[share]
	}
}

// jobsIn returns the unfinished jobs of a lane, in order of acceptance. It
// looks at every job there is: for rare commands only.
func (s *state) jobsIn(l *lane) []*activeJob {
	var in []*activeJob
	for _, a := range s.jobs {
		if a.lane == l && !a.Status.Finished() {
			in = append(in, a)
		}
	}
	slices.SortFunc(in, func(a, b *activeJob) int { return cmp.Compare(a.Seq, b.Seq) })
	return in
}

// govern tells the engine how the environment's cohort is governed now.
func (e *environment) govern() {
	e.cohort.SetPolicy(e.policy())
	e.touched = true
}

// policy is how the environment's cohort is governed: as the policy of its
// queue with quota shares says, which is there alone. While the environment is
// disabled its queues stop being processed (A2).
func (e *environment) policy() quota.Policy {
	p := quota.Policy{}
	for _, q := range e.queues {
		if q.shares != nil {
			p = cohortPolicy(q.policy)
		}
	}
	p.Paused = e.State == resource.Disabled
	return p
}

// managesQuotas reports whether a queue with quota shares lives on the
// environment; such a queue is there alone.
func (e *environment) managesQuotas() bool {
	for _, q := range e.queues {
		if q.shares != nil {
			return true
		}
	}
	return false
}

// lanes returns the queue's lanes in order of their names.
func (q *queue) lanes() []*lane {
	if q.whole != nil {
		return []*lane{q.whole}
	}
	lanes := slices.Collect(maps.Values(q.shares))
	lanes = slices.AppendSeq(lanes, maps.Values(q.identifiers))
	slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.name, b.name) })
	return lanes
}

// jobs counts the queue's jobs that have not finished.
func (q *queue) jobs() (n int) {
	for _, l := range q.lanes() {
		n += l.jobs
	}
	return n
}

func (q *queue) attach(e *environment) {
	q.environment = e
	e.queues[q.Name] = q
	e.govern()
	q.install()
}

// install tells the engine of the queue's lanes as they are now.
func (q *queue) install() {
	for _, l := range q.lanes() {
		q.environment.cohort.SetShare(l.quota())
	}
}

// quota is the lane as the engine knows it.
func (l *lane) quota() quota.Share {
	if l.share.Name == "" {
		return quota.Share{Name: l.name, Rank: l.queue.Priority, Nominal: l.wholePool(), Sharing: quota.Lend, Fair: l.fair()}
	}
	s := cohortShare(l.share)
	s.Name, s.Rank = l.name, l.queue.Priority
	return s
}

// wholePool is the nominal of a queue without quota shares: all of the pool,
// and never less than its jobs hold already. Otherwise a pool that was made
// smaller would look like a quota that was lowered, and the queue would lose
// jobs to another one; only quota management preempts (A5).
func (l *lane) wholePool() quota.Amounts {
	env := l.queue.environment
	nominal := amounts(env.Limits)
	for unit, held := range env.demand(l.usage.amounts()) {
		nominal[unit] = max(nominal[unit], held)
	}
	return nominal
}

// giveBack books that a job no longer holds its demand. A queue without quota
// shares that held more than all of the pool may now have less of a nominal.
func (l *lane) giveBack(demand []job.Amount) {
	if l.share.Name != "" {
		l.usage.add(demand, -1)
		return
	}
	before := l.wholePool()
	l.usage.add(demand, -1)
	if after := l.quota(); !maps.Equal(before, after.Nominal) {
		l.queue.environment.cohort.SetShare(after)
	}
}

// demand is what instances need of the environment, in its own units.
func (e *environment) demand(instances []job.Amount) quota.Amounts {
	d := make(quota.Amounts, len(instances))
	for _, a := range instances {
		if e.CountsInstances() {
			d[resource.NumInstances] += a.Quantity
		} else {
			d[quota.Unit(a.Unit)] += a.Quantity
		}
	}
	return d
}

// quota is the job as the engine knows it.
func (a *activeJob) quota() quota.Job {
	return quota.Job{
		ID:         a.id(),
		Share:      a.lane.name,
		Priority:   a.Priority,
		Created:    a.CreatedAt,
		Demand:     a.lane.queue.environment.demand(a.Demand),
		NotBefore:  a.NotBefore,
		MaxRuntime: a.DeclaredRuntime(),
		Parked:     a.Reason, // a waiting job has no other
		Promised:   a.Promised,
	}
}

func amounts(limits []resource.Limit) quota.Amounts {
	m := make(quota.Amounts, len(limits))
	for _, l := range limits {
		m[quota.Unit(l.Unit)] = l.Max
	}
	return m
}

// usage is a number of instances per instance type.
type usage map[string]int64

func (u usage) add(demand []job.Amount, sign int64) {
	for _, a := range demand {
		u[a.Unit] += sign * a.Quantity
		if u[a.Unit] == 0 {
			delete(u, a.Unit)
		}
	}
}

// amounts returns the usage sorted by instance type.
func (u usage) amounts() []job.Amount {
	as := make([]job.Amount, 0, len(u))
	for unit, q := range u {
		as = append(as, job.Amount{Unit: unit, Quantity: q})
	}
	slices.SortFunc(as, func(a, b job.Amount) int { return cmp.Compare(a.Unit, b.Unit) })
	return as
}

// reschedule notes when time alone will next concern the job.
func (s *state) reschedule(a *activeJob) {
	at, ok := a.nextDue()
	a.due = at
	switch {
	case ok && a.index < 0:
		heap.Push(&s.due, a)
	case ok:
		heap.Fix(&s.due, a.index)
	case a.index >= 0:
		heap.Remove(&s.due, a.index)
	}
}

// nextDue is when the job has run, or been parked, for as long as it may.
func (a *activeJob) nextDue() (at time.Time, ok bool) {
	if a.Status == job.Runnable {
		at, _, ok = a.timeLimit()
		return at, ok
	}
	at, _, ok = a.Deadline()
	return at, ok
}

// timeLimit returns when the first of the queue's jobStateTimeLimitActions
// ends a parked job, and the reason that the action names.
func (a *activeJob) timeLimit() (at time.Time, reason string, ok bool) {
	if a.Reason == "" {
		return time.Time{}, "", false
	}
	for _, action := range a.lane.queue.TimeLimitActions {
		if !strings.HasPrefix(a.Reason, action.Reason) {
			continue
		}
		if t := a.ReasonSince.Add(action.After); !ok || t.Before(at) {
			at, reason, ok = t, action.Reason, true
		}
	}
	return at, reason, ok
}

// nextDue is the earliest time at which something happens without a message.
func (s *state) nextDue() (at time.Time, ok bool) {
	if len(s.due) > 0 {
		at, ok = s.due[0].due, true
	}
	for _, e := range s.environments {
		if t, wakes := e.cohort.Wake(); wakes && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// dueHeap has the jobs that time alone will concern, the earliest first.
type dueHeap []*activeJob

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, k int) bool {
	if !h[i].due.Equal(h[k].due) {
		return h[i].due.Before(h[k].due)
	}
	return h[i].Seq < h[k].Seq
}

func (h dueHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) {
	a := x.(*activeJob)
	a.index = len(*h)
	*h = append(*h, a)
}

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.index = -1
	return a
}
