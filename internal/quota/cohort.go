package quota

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Errors of the calls that change a cohort. They say that the caller's books
// and the cohort's differ; the cohort is unchanged.
var (
	ErrNoShare   = errors.New("no such share")
	ErrNoJob     = errors.New("no such job")
	ErrJobExists = errors.New("job exists")
	ErrHolds     = errors.New("job holds capacity")
	ErrWaits     = errors.New("job waits")
	ErrDemand    = errors.New("demand must have positive amounts")
)

// Cohort is a pool of capacity, the shares that live on it, and their jobs. It
// is not safe for concurrent use.
type Cohort struct {
	policy Policy
	unitOf map[Unit]int
	pools  []pool // by unit
	shares map[string]*share
	list   []*share // the same, in no order that matters
	jobs   map[JobID]*entry
	shapes map[string]*shape
	refs   map[*shape]int // jobs that have it

	backoff heap[*entry]
	ends    []*entry // running jobs that declare a maximum runtime, by when they end

	// Every share with a waiting job is in one stage (see pass.go).
	steps     [lastStep + 1]heap[*share] // by stage
	blocked   []*share
	dirty     []*share // to be lined up again
	hopeful   []*share // blocked, but for a choice of victims that time may change
	claiming  []*share // with nominated jobs
	putOff    []*share // with jobs that could delay a blocked one
	withheld  []*share // fair shares for which too little would be left for others
	settled   []*share // for whom what is on its way back was not enough
	lingering []*share // for whose jobs somebody has just stopped
	parking   []*share // of whose jobs some may have become, or ceased to be, parked

	fair      []*share // identifiers of fair-share job queues
	nowMillis int64    // of the pass

	exposed  bool  // a share uses more beyond its nominal: there may be new victims
	moved    []int // units in which more is to be had, or less left, than when jobs were blocked
	maturing int64 // when time alone may change an outcome: a job is old enough to be preempted, or use is forgotten; 0: never
}

// share is a Share as the cohort keeps it.
type share struct {
	def       Share
	units     []holdings // by unit
	lineOf    map[*shape]*line
	open      heap[*line]   // lines whose first may be a candidate
	shut      []*line       // lines whose first is blocked
	skipped   []*line       // open lines whose first was passed over
	nominated []*nomination // jobs whose claims stand
	holders   []*entry
	latest    *entry // of the holders, who was granted last
	roll      roll   // of the holders that are not stopping
	resting   int    // jobs in backoff
	owed      owed   // for whom jobs stop, or have just stopped

	stage   stage
	at      int               // in the stage's heap or slice
	full    fraction          // usage relative to nominal, in stageEntitled
	burden  burden            // weighted recent use of a fair share, in stageEntitled
	record  *record           // of a fair share; nil: it is none
	worth   worth             // after its front's grant, in stageBorrow
	late    bool              // its blocked jobs are candidates of the steps that preempt for more than a quota
	tried   bool              // its front was tried in vain in an earlier step
	next    *entry            // the candidate: its front, or the first job that it is owed to
	settled bool              // what is on its way back was not enough for whom it is owed to
	behind  *entry            // its first blocked job, behind which others may only backfill
	wants   bool              // new victims may help a blocked job
	told    map[*entry]string // which of its jobs were told that they can never fit, and why
	listed  bool              // in Cohort.parking
}

// NewCohort returns a cohort without capacity, shares and jobs.
func NewCohort(p Policy) *Cohort {
	c := &Cohort{
		policy: p,
		unitOf: map[Unit]int{},
		shares: map[string]*share{},
		jobs:   map[JobID]*entry{},
		shapes: map[string]*shape{},
		refs:   map[*shape]int{},
	}
	c.backoff = heap[*entry]{
		before: func(a, b *entry) bool {
			return a.notBefore < b.notBefore || a.notBefore == b.notBefore && a.id < b.id
		},
		place: func(e *entry, at int) { e.at = int32(at) },
	}
	for step, before := range map[stage]func(a, b *share) bool{
		stageOwed:      (*share).longerWaiting,
		stageEntitled:  (*share).emptier,
		stageBorrow:    c.borrowsFirst,
		stageInShare:   c.goesFirst,
		stageOutbid:    c.goesFirst,
		stageRebalance: c.goesFirst,
	} {
		c.steps[step] = heap[*share]{before: before, place: func(s *share, at int) { s.at = at }}
	}
	return c
}

// SetPolicy changes how the cohort is governed, from the next pass on.
func (c *Cohort) SetPolicy(p Policy) {
	c.policy = p
	c.ends = nil
	for _, s := range c.list {
		s.roll = roll{}
		for _, e := range s.holders {
			if e.held.stopping == nil {
				c.enroll(e)
			}
		}
	}
	c.touchAll()
}

// SetCapacity sets the pool's capacity per unit; a unit not named has none.
// Lowering it preempts nothing; it stops new grants (I1).
func (c *Cohort) SetCapacity(capacity Amounts) {
	c.learn(capacity)
	for i := range c.pools {
		c.pools[i].capacity = max(0, capacity[c.pools[i].unit])
	}
	c.touchAll()
}

// SetShare creates the share or changes it, its jobs staying as they are.
func (c *Cohort) SetShare(def Share) {
	def.Nominal = positive(def.Nominal)
	def.LendLimits = maps.Clone(def.LendLimits)
	def.BorrowLimits = maps.Clone(def.BorrowLimits)
	c.learn(def.Nominal)
	s, ok := c.shares[def.Name]
	if !ok {
		s = &share{
			units:  make([]holdings, len(c.pools)),
			lineOf: map[*shape]*line{},
			open: heap[*line]{
				before: func(a, b *line) bool { return a.next().ahead(b.next()) },
				place:  func(l *line, at int) { l.at = at },
			},
		}
		c.shares[def.Name] = s
		c.list = append(c.list, s)
		c.recallOwed(s, def.Name)
	}
	s.def = def
	c.keepRecord(s)
	for i := range c.pools {
		c.declare(s, i)
	}
	c.touchAll()
}

// recallOwed finds out who stops for a new share: one of its name may have been
// removed before they were gone.
func (c *Cohort) recallOwed(s *share, name string) {
	for _, e := range c.jobs {
		if e.held != nil && e.held.stopping != nil && e.held.stopping.ForShare == name {
			s.owed.add(e.held.stopping.For)
		}
	}
}

// keepRecord gives a fair share a record of what it uses, and takes it from
// any other.
func (c *Cohort) keepRecord(s *share) {
	f := s.def.Fair
	if f == nil {
		s.record = nil
		c.fair = slices.DeleteFunc(c.fair, func(o *share) bool { return o == s })
		return
	}
	kept := *f
	s.def.Fair = &kept
	if s.record == nil {
		c.fair = append(c.fair, s)
	}
	if fresh := newRecord(f.Window); s.record == nil || s.record.width != fresh.width {
		s.record = fresh
	}
}

// RemoveShare removes a share. It returns ErrNoShare, or ErrHolds while the
// share still has jobs, waiting ones included.
func (c *Cohort) RemoveShare(name string) error {
	s, ok := c.shares[name]
	if !ok {
		return fmt.Errorf("remove share %q: %w", name, ErrNoShare)
	}
	if waiting, holding := c.Counts(name); waiting+holding > 0 {
		return fmt.Errorf("remove share %q with %d jobs: %w", name, waiting+holding, ErrHolds)
	}
	c.release(s)
	s.def = Share{Name: name}
	for i := range c.pools {
		c.declare(s, i)
	}
	c.unstage(s)
	gone := func(other *share) bool { return other == s }
	for _, list := range []*[]*share{&c.list, &c.fair, &c.lingering, &c.dirty, &c.hopeful, &c.claiming, &c.putOff, &c.withheld, &c.settled, &c.parking} {
		*list = slices.DeleteFunc(*list, gone)
	}
	delete(c.shares, name)
	c.touchAll()
	return nil
}

// Add adds a waiting job. It returns ErrNoShare, ErrJobExists or ErrDemand.
func (c *Cohort) Add(j Job) error {
	e, err := c.admit(j)
	if err != nil {
		return fmt.Errorf("add job %d: %w", j.ID, err)
	}
	c.wait(e, nanos(j.NotBefore))
	if j.Parked != "" {
		e.share().tell(e, j.Parked)
		c.listForParking(e.share())
	}
	if j.Promised {
		c.promise(e.share(), e.id)
	}
	return nil
}

// Restore adds a job that holds capacity already, after a restart. It returns
// ErrNoShare, ErrJobExists or ErrDemand, and never looks at limits.
func (c *Cohort) Restore(j Job, h Holding) error {
	e, err := c.admit(j)
	if err != nil {
		return fmt.Errorf("restore job %d: %w", j.ID, err)
	}
	e.checkpoint = nanos(h.Checkpoint)
	c.hold(e, nanos(h.Since))
	if h.Stopping != nil {
		c.stop(e, *h.Stopping)
	}
	return nil
}

// SetPriority changes a job's priority, whether it waits or holds capacity. It
// returns ErrNoJob.
func (c *Cohort) SetPriority(id JobID, priority int32) error {
	e, ok := c.jobs[id]
	if !ok {
		return fmt.Errorf("set priority of job %d: %w", id, ErrNoJob)
	}
	s := e.share()
	switch {
	case e.held != nil:
		c.change(e, func() { e.priority = priority })
		c.touch(s)
	case e.resting:
		e.priority = priority
	default:
		c.unwait(e)
		e.priority = priority
		c.wait(e, 0)
	}
	return nil
}

// Checkpointed records when a job that holds capacity last completed a
// checkpoint. It returns ErrNoJob, or ErrWaits for a job that holds none.
func (c *Cohort) Checkpointed(id JobID, at time.Time) error {
	e, err := c.holder(id)
	if err != nil {
		return fmt.Errorf("checkpoint of job %d: %w", id, err)
	}
	c.change(e, func() { e.checkpoint = max(e.checkpoint, nanos(at)) })
	return nil
}

// Stop records that a job which holds capacity was told to stop for a reason
// of its own: what it holds is on its way back. A job that was preempted
// before keeps being on its way for whom it was preempted. It returns ErrNoJob
// or ErrWaits.
func (c *Cohort) Stop(id JobID) error {
	e, err := c.holder(id)
	if err != nil {
		return fmt.Errorf("stop job %d: %w", id, err)
	}
	if e.held.stopping == nil {
		c.stop(e, Preemption{Ground: Ended})
	}
	return nil
}

// Requeue takes back what the job holds and lets it wait again in its old
// place, not before notBefore. It returns ErrNoJob or ErrWaits.
func (c *Cohort) Requeue(id JobID, notBefore time.Time) error {
	e, err := c.holder(id)
	if err != nil {
		return fmt.Errorf("requeue job %d: %w", id, err)
	}
	c.drop(e)
	c.wait(e, nanos(notBefore))
	return nil
}

// Remove forgets a job, and takes back what it holds. It returns ErrNoJob.
func (c *Cohort) Remove(id JobID) error {
	e, ok := c.jobs[id]
	if !ok {
		return fmt.Errorf("remove job %d: %w", id, ErrNoJob)
	}
	if e.held != nil {
		c.drop(e)
	} else {
		c.unwait(e)
		e.share().owed.forget(id)
	}
	delete(c.jobs, id)
	d := e.line.shape
	if c.refs[d]--; c.refs[d] == 0 {
		delete(c.refs, d)
		delete(c.shapes, c.key(d.needs))
	}
	return nil
}

// Wake returns when time alone will next change what a pass decides: a backoff
// ends, or a job becomes old enough to be preempted. ok is false when it will not.
func (c *Cohort) Wake() (at time.Time, ok bool) {
	next := c.maturing
	if c.backoff.len() > 0 {
		if first := c.backoff.first().notBefore; next == 0 || first < next {
			next = first
		}
	}
	if next == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, next).UTC(), true
}

// Heads returns the first n waiting jobs of a share, in order: those in
// backoff are left out.
func (c *Cohort) Heads(share string, n int) []JobID {
	s, ok := c.shares[share]
	if !ok {
		return nil
	}
	var first []*entry
	s.waitingLines(func(l *line) { first = append(first, l.jobs.firsts(n)...) })
	for _, n := range s.nominated {
		first = append(first, n.job)
	}
	slices.SortFunc(first, byAhead)
	ids := make([]JobID, 0, min(n, len(first)))
	for _, e := range first[:min(n, len(first))] {
		ids = append(ids, e.id)
	}
	return ids
}

func byAhead(a, b *entry) int {
	if a.ahead(b) {
		return -1
	}
	return 1
}

// Counts returns how many jobs of a share wait (in backoff too) and how many
// hold capacity.
func (c *Cohort) Counts(share string) (waiting, holding int) {
	s, ok := c.shares[share]
	if !ok {
		return 0, 0
	}
	waiting = s.resting + len(s.nominated)
	s.waitingLines(func(l *line) { waiting += l.jobs.len() })
	return waiting, len(s.holders)
}

// admit makes the entry of a new job, not yet in any place.
func (c *Cohort) admit(j Job) (*entry, error) {
	s, ok := c.shares[j.Share]
	if !ok {
		return nil, fmt.Errorf("share %q: %w", j.Share, ErrNoShare)
	}
	if _, ok := c.jobs[j.ID]; ok {
		return nil, ErrJobExists
	}
	d, err := c.shapeOf(j.Demand)
	if err != nil {
		return nil, err
	}
	l, ok := s.lineOf[d]
	if !ok {
		l = newLine(s, d)
	}
	e := &entry{
		id: j.ID, created: nanos(j.Created), maxRuntime: int64(j.MaxRuntime),
		line: l, priority: j.Priority, at: -1,
	}
	c.jobs[j.ID] = e
	c.refs[d]++
	return e, nil
}

func (c *Cohort) wait(e *entry, notBefore int64) {
	s := e.share()
	e.notBefore = notBefore
	if notBefore > 0 {
		e.resting = true
		s.resting++
		c.backoff.push(e)
		return
	}
	s.join(e)
	c.touch(s)
}

// unwait takes a waiting job out of its place.
func (c *Cohort) unwait(e *entry) {
	s := e.share()
	if e.resting {
		c.backoff.remove(int(e.at))
		e.resting = false
		s.resting--
		return
	}
	if e.nominated {
		c.release(s)
	}
	s.leave(e)
	c.touch(s)
}

// hold books the demand of a job that is in no place as held.
func (c *Cohort) hold(e *entry, since int64) {
	s := e.share()
	e.held = &held{since: since}
	e.at = int32(len(s.holders))
	s.holders = append(s.holders, e)
	c.enroll(e)
	for _, n := range e.line.shape.needs {
		c.shift(s, n.unit, booking{usage: n.amount})
	}
	c.touch(s)
}

func (c *Cohort) stop(e *entry, why Preemption) {
	s := e.share()
	c.strike(e)
	e.held.stopping = &why
	for _, n := range e.line.shape.needs {
		c.shift(s, n.unit, booking{stopping: n.amount})
	}
	if f, ok := c.shares[why.ForShare]; ok {
		f.owed.add(why.For)
		c.touch(f)
	}
	c.touch(s)
}

// drop takes back what a job holds, and leaves it in no place.
func (c *Cohort) drop(e *entry) {
	s := e.share()
	for _, n := range e.line.shape.needs {
		stopping := int64(0)
		if e.held.stopping != nil {
			stopping = n.amount
		}
		c.shift(s, n.unit, booking{usage: -n.amount, stopping: -stopping})
	}
	if e.held.stopping == nil {
		c.strike(e)
	} else {
		c.giveBack(*e.held.stopping)
	}
	last := s.holders[len(s.holders)-1]
	s.holders[e.at], last.at = last, e.at
	s.holders[len(s.holders)-1] = nil
	s.holders = s.holders[:len(s.holders)-1]
	e.held = nil
	c.touch(s)
}

// enroll lists a running job among those that could be told to stop.
func (c *Cohort) enroll(e *entry) {
	h := e.held
	h.key, h.saved = e.baseline(), e.checkpoint != 0
	if c.policy.Victims == NewestFirst {
		h.key, h.saved = h.since, false
	}
	e.share().roll.add(e)
	if e.maxRuntime > 0 {
		at, _ := slices.BinarySearchFunc(c.ends, e, byEnd)
		c.ends = slices.Insert(c.ends, at, e)
	}
}

func (c *Cohort) strike(e *entry) {
	e.share().roll.strike(e)
	if at, ok := slices.BinarySearchFunc(c.ends, e, byEnd); ok && e.maxRuntime > 0 {
		c.ends = slices.Delete(c.ends, at, at+1)
	}
}

// byEnd orders running jobs by when they end at the latest.
func byEnd(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(a.end(), b.end()),
		cmp.Compare(a.id, b.id))
}

// change changes what a job that holds capacity is listed by.
func (c *Cohort) change(e *entry, change func()) {
	if e.held.stopping != nil {
		change()
		return
	}
	c.strike(e)
	change()
	c.enroll(e)
}

// giveBack notes that a job which stopped for a share is gone.
func (c *Cohort) giveBack(why Preemption) {
	s, ok := c.shares[why.ForShare]
	if !ok {
		return
	}
	s.owed.gone(why.For)
	c.promise(s, why.For)
	c.touch(s)
}

// promise has a job keep its precedence though those who stopped for it are gone.
func (c *Cohort) promise(s *share, id JobID) {
	if len(s.owed.back) == 0 {
		c.lingering = append(c.lingering, s)
	}
	if !slices.Contains(s.owed.back, id) {
		s.owed.back = append(s.owed.back, id)
	}
}

// Promised returns the waiting jobs, sorted, for which others have stopped that
// are gone, and which wait for the rest of what they claim. Nothing else tells
// that of them: after a restart they must be added as such (Job.Promised).
func (c *Cohort) Promised() []JobID {
	var ids []JobID
	for _, s := range c.lingering {
		for _, id := range s.owed.back {
			if e := c.jobs[id]; e != nil && e.held == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (c *Cohort) holder(id JobID) (*entry, error) {
	e, ok := c.jobs[id]
	if !ok {
		return nil, ErrNoJob
	}
	if e.held == nil {
		return nil, ErrWaits
	}
	return e, nil
}

// learn makes room for units that were not seen before, in order of name.
func (c *Cohort) learn(amounts Amounts) {
	for _, u := range slices.Sorted(maps.Keys(amounts)) {
		if _, ok := c.unitOf[u]; ok {
			continue
		}
		at := len(c.pools)
		c.unitOf[u] = at
		c.pools = append(c.pools, pool{unit: u})
		c.pools[at].forget()
		for _, s := range c.list {
			s.units = append(s.units, holdings{})
			c.declare(s, at)
		}
	}
}

// shapeOf returns the one shape that stands for the demand.
func (c *Cohort) shapeOf(demand Amounts) (*shape, error) {
	if len(demand) == 0 {
		return nil, ErrDemand
	}
	for _, amount := range demand {
		if amount <= 0 || amount >= unlimited {
			return nil, ErrDemand
		}
	}
	c.learn(demand)
	needs := make([]need, 0, len(demand))
	for u, amount := range demand {
		needs = append(needs, need{c.unitOf[u], amount})
	}
	slices.SortFunc(needs, func(a, b need) int {
		return cmp.Compare(c.pools[a.unit].unit, c.pools[b.unit].unit)
	})
	key := c.key(needs)
	d, ok := c.shapes[key]
	if !ok {
		d = &shape{needs}
		c.shapes[key] = d
	}
	return d, nil
}

func (c *Cohort) key(needs []need) string {
	var b strings.Builder
	for _, n := range needs {
		fmt.Fprintf(&b, "%d:%d ", n.unit, n.amount)
	}
	return b.String()
}

// positive returns a copy without negative amounts.
func positive(a Amounts) Amounts {
	p := maps.Clone(a)
	maps.DeleteFunc(p, func(_ Unit, amount int64) bool { return amount < 0 })
	return p
}
