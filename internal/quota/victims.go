package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// This file chooses who must stop for a job that is to start (section 5).
//
// Candidates are ranked by level: those of other shares before those of the
// job's own, then lower priority first. The chosen set has the lowest top level
// there is, and within it, where the policy says LeastLostWork, the least lost
// work: exactly so where one unit is short and the candidates are few, otherwise
// by taking the cheapest per amount first and sparing, in the end, everyone who
// is not needed.

// fewCandidates is up to how many candidates the least lost work is found
// exactly; their set is a bit mask.
const fewCandidates = 64

// manyBundles bounds the work of the exact search where amounts are so varied
// that it would try too many sums; the choice is then made as for many candidates.
const manyBundles = 1 << 14

// victim is a job that may be told to stop.
type victim struct {
	job    *entry
	own    bool // of the starting job's own share
	ground Ground
	rank   int32 // among others, or among its own: who has a lower one goes first
	age    int64 // nanoseconds of work per amount that would be lost; 0 where that does not count
	since  int64 // later goes first
	lost   LostWork
}

func (v victim) amount(unit int) int64 { return v.job.line.shape.of(unit) }

// compareLevel orders grounds and ranks; victims of a lower level go first.
func (v victim) compareLevel(w victim) int {
	if v.own != w.own {
		if v.own {
			return 1
		}
		return -1
	}
	return cmp.Compare(v.rank, w.rank)
}

// cheaper is the order in which many candidates are tried.
func (v victim) cheaper(w victim) bool {
	if l := v.compareLevel(w); l != 0 {
		return l < 0
	}
	if v.age != w.age {
		return v.age < w.age
	}
	if v.since != w.since {
		return v.since > w.since
	}
	return v.job.id > w.job.id
}

// planEntitled is step 1: a job within its share's own quota is granted, or
// reclaims what others borrow.
func (p *pass) planEntitled(s *share, front *entry) (_ plan, ok, hopeful bool) {
	d := front.line.shape
	if _, lacks := p.reserved(s, d); lacks > 0 {
		p.lookAgainAt((s.record.latest + 1) * s.record.width * int64(time.Millisecond))
		return plan{}, false, true
	}
	short := p.short(s, d)
	if len(short) == 0 {
		return plan{ground: Entitled}, true, false
	}
	f := p.field(s, short, short)
	f.reclaims = true
	if chosen, ok := p.reclaim(f, s, d); ok {
		return f.settle(s, d, chosen), true, false
	}
	return f.clearOut(s, d)
}

func (p *pass) reclaim(f *field, s *share, d *shape) ([]victim, bool) {
	if few, ok := f.few(); ok && len(f.short) == 1 {
		unit := f.short[0]
		if chosen, exact := leastReclaimed(few, unit, p.lacksIn(s, need{unit, d.of(unit)})); exact {
			return chosen, len(chosen) > 0
		}
	}
	return f.greedy(func(t *trial) bool { return t.room(s, d) }, false)
}

// planInShare is step 3: a job that fits neither way may have strictly lower
// priorities of its own share stop, and, if that makes it entitled, reclaim too.
func (p *pass) planInShare(s *share, front *entry) (_ plan, ok, hopeful bool) {
	d := front.line.shape
	short := p.short(s, d)
	f := p.field(s, short, p.scarce(s, d, short, (*holdings).ownLimit))
	f.reclaims = true
	f.own, f.below = s, front.priority
	if !f.hasOwn() {
		return plan{}, false, f.passedYoung || len(f.others) > 0 && s.within(d, (*holdings).ownLimit)
	}
	if chosen, ok := p.outrank(f, s, d); ok {
		return f.settle(s, d, chosen), true, false
	}
	return f.clearOut(s, d)
}

func (p *pass) outrank(f *field, s *share, d *shape) ([]victim, bool) {
	if few, ok := f.few(); ok && len(f.scarce) == 1 {
		if chosen, exact := p.leastMixed(s, d, f.scarce[0], few, false); exact {
			return chosen, len(chosen) > 0
		}
	}
	chosen, ok := f.greedy(func(t *trial) bool {
		return t.within(s, d, (*holdings).ownLimit) && (t.room(s, d) || len(f.others) == 0 && t.free(d))
	}, false)
	alone := *f
	alone.others = nil
	borrowing, fits := alone.greedy(func(t *trial) bool { return t.borrows(s, d) }, false)
	if fits && (!ok || compareSets(borrowing, chosen) < 0) {
		return borrowing, true
	}
	return chosen, ok
}

// settle is the plan with those victims, but for who turns out not to be needed.
func (f *field) settle(s *share, d *shape, chosen []victim) plan {
	t := newTrial(f.p.Cohort)
	for _, v := range chosen {
		t.stop(v, +1)
	}
	chosen = t.spare(chosen, func(t *trial) bool { return t.entitled(s, d) || t.reclaimed == 0 && t.borrows(s, d) })
	if !t.entitled(s, d) {
		return plan{ground: Borrow, victims: chosen, field: f}
	}
	return plan{ground: Entitled, physically: t.unlendable(s, d), victims: chosen, field: f}
}

// clearOut is for where no victims make room by the rules of lending, because
// the quotas sum to more than the pool: all that is borrowed of what is short
// may go, and the job take what is then physically free (I3's exception).
func (f *field) clearOut(s *share, d *shape) (_ plan, ok, hopeful bool) {
	chosen, ok := f.greedy(func(t *trial) bool { return t.entitled(s, d) }, true)
	if !ok {
		return plan{}, false, f.passedYoung || f.size() > 0
	}
	return f.settle(s, d, chosen), true, false
}

// planOutbid is steps 4 and 5: a job that would borrow may have jobs stop that
// borrow in other shares, and with them lower priorities of its own share:
// in step 4 strictly lower priorities, in step 5 also those whose share borrows
// no less for its weight even afterwards.
func (p *pass) planOutbid(s *share, front *entry, rebalance bool) (_ plan, ok, hopeful bool) {
	d := front.line.shape
	short := p.short(s, d)
	f := p.field(s, short, p.scarce(s, d, short, (*holdings).borrowLimit))
	f.outbids, f.rebalances, f.starting = p.policy.BorrowerPreemption, rebalance, front
	if s.def.InSharePreemption {
		f.own, f.below = s, front.priority
	}
	fits := func(t *trial) bool {
		return t.borrows(s, d) && (!rebalance || t.balanced(s, d))
	}
	if !rebalance && len(f.scarce) == 1 {
		if few, ok := f.few(); ok {
			if chosen, exact := p.leastMixed(s, d, f.scarce[0], few, true); exact {
				return plan{ground: Borrow, victims: chosen, field: f}, len(chosen) > 0, len(f.others) > 0 || f.hasOwn()
			}
		}
	}
	chosen, ok := f.greedy(fits, false)
	return plan{ground: Borrow, victims: chosen, field: f}, ok, len(f.others) > 0 || f.hasOwn()
}

// lacksIn is by how much the projected pool falls short of a need of the share.
func (c *Cohort) lacksIn(s *share, n need) int64 {
	p, h := &c.pools[n.unit], &s.units[n.unit]
	return p.lacks(h, p.projected.beyond, h.projected(), n.amount)
}

// hasRoom reports whether no unit is short.
func (c *Cohort) hasRoom(s *share, d *shape) bool {
	return !slices.ContainsFunc(d.needs, func(n need) bool { return c.lacksIn(s, n) > 0 })
}

// short returns the units in which the projected pool falls short of a demand
// if nobody has to stop.
func (c *Cohort) short(s *share, d *shape) []int {
	var short []int
	for _, n := range d.needs {
		if c.lacksIn(s, n) > 0 {
			short = append(short, n.unit)
		}
	}
	return short
}

// scarce returns the units that are short, or in which the share is at the limit.
func (c *Cohort) scarce(s *share, d *shape, short []int, limit func(*holdings) int64) []int {
	var scarce []int
	for _, n := range d.needs {
		h := &s.units[n.unit]
		if slices.Contains(short, n.unit) || h.projected()+n.amount > limit(h) {
			scarce = append(scarce, n.unit)
		}
	}
	return scarce
}

// field is whom a job may preempt: jobs of other shares while those are over
// their nominal in a short unit of which the job holds some, and jobs of its
// own share, below a priority, that hold some of a scarce unit.
type field struct {
	p      *pass
	short  []int
	scarce []int
	others []*share
	own    *share
	below  int32 // priority of the starting job

	// The grounds on which jobs of other shares are in it.
	reclaims   bool
	outbids    bool
	rebalances bool
	starting   *entry // with the latter two, for whom

	trial       *trial // of the choice being made
	passedYoung bool   // somebody was left out who has not run for long enough
}

func (p *pass) field(s *share, short, scarce []int) *field {
	f := &field{p: p, short: short, scarce: scarce}
	for _, o := range p.list {
		if o != s && slices.ContainsFunc(short, func(u int) bool { return o.units[u].running() > o.units[u].nominal }) {
			f.others = append(f.others, o)
		}
	}
	return f
}

// groundFor is on which ground a job of another share may be preempted, its
// share being over its nominal; none: it may not.
func (f *field) groundFor(e *entry) Ground {
	switch {
	case f.reclaims:
		return Reclaim
	case f.outbids && e.priority < f.starting.priority:
		return FromBorrower
	case f.rebalances && (!f.outbids || e.priority <= f.starting.priority):
		// A higher priority would take it back by outbidding (I8).
		return Rebalance
	}
	return ""
}

// isYoung reports whether the job has not run for as long as protects it from
// all but reclaim.
func (f *field) isYoung(e *entry) bool {
	ofAge := e.held.since + int64(f.p.policy.MinRuntime)
	if ofAge <= f.p.now {
		return false
	}
	f.passedYoung = true
	f.p.lookAgainAt(ofAge)
	return true
}

// lookAgainAt notes that by then time alone may have changed the outcome.
func (c *Cohort) lookAgainAt(at int64) {
	if c.maturing == 0 || at < c.maturing {
		c.maturing = at
	}
}

// size is how many jobs the choice is made from, those included that hold none
// of what is wanted.
func (f *field) size() int {
	n := 0
	for _, o := range f.others {
		n += len(o.roll.saved) + len(o.roll.unsaved)
	}
	if f.own != nil {
		for _, list := range f.own.roll.lists() {
			n += len(list) - f.firstBelow(list)
		}
	}
	return n
}

// firstBelow is where the jobs begin, in a list of the own share's roll, that
// the head outranks (I7).
func (f *field) firstBelow(list []*entry) int {
	return sort.Search(len(list), func(i int) bool { return list[i].priority < f.below })
}

func (f *field) hasOwn() bool { return f.own != nil && f.cursorOwn().advance() }

// few returns everybody, if the policy asks for the least lost work and they are
// few enough to find the exact choice.
func (f *field) few() ([]victim, bool) {
	if f.p.policy.Victims != LeastLostWork {
		return nil, false
	}
	var all []victim
	for v := range f.walk {
		if len(all) == fewCandidates {
			return nil, false
		}
		all = append(all, v)
	}
	return all, true
}

// passedOver returns the first, in order, who was not chosen.
func (f *field) passedOver(chosen []victim) (victim, bool) {
	for v := range f.walk {
		if !slices.ContainsFunc(chosen, func(c victim) bool { return c.job == v.job }) {
			return v, true
		}
	}
	return victim{}, false
}

// walk yields everybody in the order in which they are preempted. It looks no
// further than it is asked to.
func (f *field) walk(yield func(victim) bool) {
	order := heap[*cursor]{before: f.before, place: func(*cursor, int) {}}
	for _, o := range f.others {
		if c := f.cursorOf(o); c.advance() {
			order.push(c)
		}
	}
	if f.own != nil {
		if c := f.cursorOwn(); c.advance() {
			order.push(c)
		}
	}
	for order.len() > 0 {
		c := order.first()
		if !yield(c.next) {
			return
		}
		if c.advance() {
			order.fix(0)
		} else {
			order.pop()
		}
	}
}

func (f *field) before(a, b *cursor) bool {
	if f.p.policy.Victims == MostOverQuota && !a.own && !b.own && a.next.rank == b.next.rank {
		over, other := f.overNominal(a.next.job.share()), f.overNominal(b.next.job.share())
		if other.less(over) || over.less(other) {
			return other.less(over)
		}
	}
	return a.next.cheaper(b.next)
}

// overNominal is how far a share is over its nominal, in relation to it, in the
// short unit where that is furthest, after those chosen so far have left.
func (f *field) overNominal(s *share) fraction {
	furthest := fraction{0, 1}
	for _, u := range f.short {
		h := &s.units[u]
		usage := h.running()
		if f.trial != nil {
			usage = f.trial.running(s, u)
		}
		if over := (fraction{usage - h.nominal, h.nominal}); over.over > 0 && furthest.less(over) {
			furthest = over
		}
	}
	return furthest
}

// cursor goes through a share's roll from the cheap ends of its lists.
type cursor struct {
	f     *field
	own   bool
	units []int       // in which its jobs must hold something
	lists [2][]*entry // what is left
	next  victim
	any   bool // next was set before
}

func (f *field) cursorOf(o *share) *cursor {
	c := &cursor{f: f, lists: o.roll.lists()}
	for _, u := range f.short {
		if o.units[u].running() > o.units[u].nominal {
			c.units = append(c.units, u)
		}
	}
	return c
}

func (f *field) cursorOwn() *cursor {
	c := &cursor{f: f, own: true, units: f.scarce, lists: f.own.roll.lists()}
	for i, list := range c.lists {
		c.lists[i] = list[f.firstBelow(list):]
	}
	return c
}

// advance moves to the share's next job; false: there is none.
func (c *cursor) advance() bool {
	best, at := victim{}, -1
	for i := range c.lists {
		if v, ok := c.last(i); ok && (at < 0 || v.job.priority < best.job.priority ||
			v.job.priority == best.job.priority && v.cheaper(best)) {
			best, at = v, i
		}
	}
	if at < 0 {
		return false
	}
	best.rank = c.rank(best)
	c.next, c.any = best, true
	c.lists[at] = c.lists[at][:len(c.lists[at])-1]
	return true
}

// rank is what a job's priority comes to among all candidates. Unless the
// policy says otherwise, priorities of different shares do not compare: in each
// share the lowest that can be preempted is 0, the next 1, and so on.
func (c *cursor) rank(v victim) int32 {
	switch {
	case c.own || c.f.p.policy.PriorityScope == InCohort:
		return v.job.priority
	case !c.any:
		return 0
	case v.job.priority > c.next.job.priority:
		return c.next.rank + 1
	default:
		return c.next.rank
	}
}

// last drops from the end of a list who may not be preempted or holds nothing
// that would help, and returns who is then last.
func (c *cursor) last(list int) (victim, bool) {
	for rest := c.lists[list]; len(rest) > 0; rest = rest[:len(rest)-1] {
		if v, ok := c.victim(rest[len(rest)-1]); ok {
			c.lists[list] = rest
			return v, true
		}
	}
	c.lists[list] = nil
	return victim{}, false
}

func (c *cursor) victim(e *entry) (victim, bool) {
	d := e.line.shape
	if !slices.ContainsFunc(c.units, func(u int) bool { return d.of(u) > 0 }) {
		return victim{}, false
	}
	v := victim{job: e, own: c.own, ground: InShare}
	if !c.own {
		v.ground = c.f.groundFor(e)
	}
	if v.ground == "" || v.ground != Reclaim && c.f.isYoung(e) {
		return victim{}, false
	}
	age := c.f.p.unsaved(e)
	v.lost = lostWork(e, age, c.f.scarce)
	if v.since = e.held.since; c.f.p.policy.Victims != NewestFirst {
		v.age, v.since = age, e.baseline()
	}
	return v, true
}

// unsaved is how long the job has worked since its last checkpoint; one that
// never completed any is not assumed to lose more than the policy says.
func (p *pass) unsaved(e *entry) int64 {
	age := max(0, p.now-e.baseline())
	if e.checkpoint != 0 {
		return age
	}
	assumed := p.policy.AssumedCheckpointInterval
	if assumed == 0 {
		assumed = DefaultCheckpointInterval
	}
	return min(age, int64(assumed))
}

// lostWork is what the job holds in the units times its age, saturating far
// enough below the largest integer that a whole set can be added up.
func lostWork(e *entry, age int64, units []int) LostWork {
	amount := uint64(0)
	for _, u := range units {
		amount += uint64(e.line.shape.of(u))
	}
	hi, lo := bits.Mul64(amount, uint64(age/int64(time.Millisecond)))
	const most = math.MaxInt64 / (2 * fewCandidates)
	if hi > 0 || lo > most {
		return most
	}
	return LostWork(lo)
}

// greedy takes candidates, cheapest first, until the head fits (or everyone
// who is eligible), and then spares, dearest first, those who are not needed.
func (f *field) greedy(fits func(*trial) bool, everyone bool) ([]victim, bool) {
	t := newTrial(f.p.Cohort)
	f.trial = t
	defer func() { f.trial = nil }()
	var chosen []victim
	if everyone || !fits(t) {
		for v := range f.walk {
			if !v.own && !t.eligible(v, f) {
				continue
			}
			t.stop(v, +1)
			chosen = append(chosen, v)
			if !everyone && fits(t) {
				break
			}
		}
	}
	if !fits(t) {
		return nil, false
	}
	return t.spare(chosen, fits), true
}

// trial is the projected pool as it would be after some victims stopped.
type trial struct {
	c          *Cohort
	stopped    map[*share][]int64 // per unit
	rebalanced map[*share]int     // how many of a share's jobs stop to rebalance
	reclaimed  int                // how many jobs stop because they are reclaimed
	freed      []int64            // Σ stopped, per unit
	gained     []int64            // by how much Σ B would be less, per unit
}

func newTrial(c *Cohort) *trial {
	return &trial{
		c: c, stopped: map[*share][]int64{}, rebalanced: map[*share]int{},
		freed: make([]int64, len(c.pools)), gained: make([]int64, len(c.pools)),
	}
}

// usage is the projected usage, claims included; running is what runs on.
func (t *trial) usage(s *share, unit int) int64   { return s.units[unit].projected() - t.ended(s, unit) }
func (t *trial) running(s *share, unit int) int64 { return s.units[unit].running() - t.ended(s, unit) }

func (t *trial) ended(s *share, unit int) int64 {
	if stopped := t.stopped[s]; stopped != nil {
		return stopped[unit]
	}
	return 0
}

// stop lets a victim stop (sign 1), or takes that back (sign −1).
func (t *trial) stop(v victim, sign int64) {
	switch v.ground {
	case Reclaim:
		t.reclaimed += int(sign)
	case Rebalance:
		t.rebalanced[v.job.share()] += int(sign)
	}
	t.end(v.job.share(), v.job.line.shape, sign)
}

// spare lets those go on, dearest first, who are not needed for the job to fit.
func (t *trial) spare(chosen []victim, fits func(*trial) bool) []victim {
	for i := len(chosen) - 1; i >= 0; i-- {
		v := chosen[i]
		if t.stop(v, -1); fits(t) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			t.stop(v, +1)
		}
	}
	return chosen
}

// end takes a demand off a share's usage (sign 1), or adds it (sign −1).
func (t *trial) end(s *share, d *shape, sign int64) {
	if t.stopped[s] == nil {
		t.stopped[s] = make([]int64, len(t.c.pools))
	}
	for _, n := range d.needs {
		h := &s.units[n.unit]
		before := h.beyond(t.usage(s, n.unit))
		t.stopped[s][n.unit] += sign * n.amount
		t.freed[n.unit] += sign * n.amount
		t.gained[n.unit] += before - h.beyond(t.usage(s, n.unit))
	}
}

// eligible reports whether the victim holds some of a short unit in which its
// share is still over its nominal, and, to rebalance, whether its share would
// even afterwards borrow no less for its weight.
func (t *trial) eligible(v victim, f *field) bool {
	s := v.job.share()
	over := slices.ContainsFunc(f.short, func(u int) bool {
		return v.amount(u) > 0 && t.running(s, u) > s.units[u].nominal
	})
	if !over || v.ground != Rebalance {
		return over
	}
	t.stop(v, +1)
	defer t.stop(v, -1)
	return t.worthAfter(f.starting.share(), f.starting.line.shape).compare(t.worth(s)) <= 0
}

func (t *trial) worth(s *share) worth {
	return t.c.worth(s, func(u int) int64 { return t.usage(s, u) })
}

// worthAfter is the share's if it were granted the demand.
func (t *trial) worthAfter(s *share, d *shape) worth {
	return t.c.worth(s, func(u int) int64 { return t.usage(s, u) + d.of(u) })
}

// balanced reports whether every share that a rebalancing victim was taken
// from borrows no less for its weight than s would.
func (t *trial) balanced(s *share, d *shape) bool {
	after := t.worthAfter(s, d)
	for o, n := range t.rebalanced {
		if n > 0 && after.compare(t.worth(o)) > 0 {
			return false
		}
	}
	return true
}

// room reports whether lending would allow the demand.
func (t *trial) room(s *share, d *shape) bool {
	return !slices.ContainsFunc(d.needs, func(n need) bool { return t.lacks(s, n) > 0 })
}

func (t *trial) lacks(s *share, n need) int64 {
	b, h := &t.c.pools[n.unit], &s.units[n.unit]
	return b.lacks(h, b.projected.beyond-t.gained[n.unit], t.usage(s, n.unit), n.amount)
}

// unlendable returns the units in which lending would not allow the demand.
func (t *trial) unlendable(s *share, d *shape) []int {
	var units []int
	for _, n := range d.needs {
		if t.lacks(s, n) > 0 {
			units = append(units, n.unit)
		}
	}
	return units
}

// entitled reports whether the demand would be within the share's own quota,
// and either lending would allow it or, in a unit where nothing borrowed is
// left, it would be physically free (I3).
func (t *trial) entitled(s *share, d *shape) bool {
	return t.within(s, d, (*holdings).ownLimit) && t.free(d) &&
		!slices.ContainsFunc(d.needs, func(n need) bool { return t.lacks(s, n) > 0 && t.borrowed(s, n.unit) })
}

// borrows reports whether the share could borrow what it would need.
func (t *trial) borrows(s *share, d *shape) bool {
	return s.def.Sharing == LendAndBorrow && t.within(s, d, (*holdings).borrowLimit) && t.room(s, d)
}

func (t *trial) within(s *share, d *shape, limit func(*holdings) int64) bool {
	for _, n := range d.needs {
		if t.usage(s, n.unit)+n.amount > limit(&s.units[n.unit]) {
			return false
		}
	}
	return true
}

func (t *trial) free(d *shape) bool {
	for _, n := range d.needs {
		b := &t.c.pools[n.unit]
		if n.amount > b.free(&b.projected)+t.freed[n.unit] {
			return false
		}
	}
	return true
}

// borrowed reports whether any share but s would be over its nominal in the unit.
func (t *trial) borrowed(s *share, unit int) bool {
	return slices.ContainsFunc(t.c.list, func(o *share) bool {
		return o != s && t.running(o, unit) > o.units[unit].nominal
	})
}
