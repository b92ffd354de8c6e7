package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// This file chooses who must stop for a head (section 5).
//
// Candidates are ranked by level: reclaim before in-share, then lower priority
// first. The chosen set has the lowest top level there is, and within it the
// least lost work: exactly so where one unit is short and the candidates are
// few, otherwise by taking the cheapest per amount first and sparing, in the
// end, everyone who is not needed.

// fewCandidates is up to how many candidates the least lost work is found
// exactly; their set is a bit mask.
const fewCandidates = 64

// manyBundles bounds the work of the exact search where amounts are so varied
// that it would try too many sums; the choice is then made as for many candidates.
const manyBundles = 1 << 14

// victim is a job that may be told to stop.
type victim struct {
	job      *entry
	own      bool  // of the head's own share
	rank     int32 // among its ground: who has a lower one goes first
	age      int64 // nanoseconds of work per amount that would be lost
	baseline int64
	lost     LostWork
}

func (v victim) ground() Ground {
	if v.own {
		return InShare
	}
	return Reclaim
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
	if v.baseline != w.baseline {
		return v.baseline > w.baseline
	}
	return v.job.id > w.job.id
}

// planEntitled is step 1: a head within its share's own quota is granted, or
// reclaims what others borrow.
func (p *pass) planEntitled(s *share, head *entry) (_ plan, ok, hopeful bool) {
	d := head.line.shape
	short := p.short(s, d)
	if len(short) == 0 {
		return plan{ground: Entitled}, true, false
	}
	f := p.field(s, short, short)
	if chosen, ok := p.reclaim(f, s, d); ok {
		return plan{ground: Entitled, victims: chosen, field: f}, true, false
	}
	return f.physically(s, d)
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

// planInShare is step 3: a head that fits neither way may have strictly lower
// priorities of its own share stop, and, if that makes it entitled, reclaim too.
func (p *pass) planInShare(s *share, head *entry) (_ plan, ok, hopeful bool) {
	d := head.line.shape
	short := p.short(s, d)
	f := p.field(s, short, p.scarce(s, d, short))
	f.own, f.below = s, head.priority
	if !f.hasOwn() {
		return plan{}, false, len(f.others) > 0 && s.within(d, (*holdings).ownLimit)
	}
	if chosen, ground, ok := p.outrank(f, s, d); ok {
		return plan{ground: ground, victims: chosen, field: f}, true, false
	}
	return f.physically(s, d)
}

func (p *pass) outrank(f *field, s *share, d *shape) ([]victim, Ground, bool) {
	if few, ok := f.few(); ok && len(f.scarce) == 1 {
		if chosen, ground, ok, exact := p.leastInShare(s, d, f.scarce[0], few); exact {
			return chosen, ground, ok
		}
	}
	chosen, ok := f.greedy(func(t *trial) bool {
		return t.within(s, d, (*holdings).ownLimit) && t.room(s, d)
	}, false)
	if s.def.Sharing != LendAndBorrow {
		return chosen, Entitled, ok
	}
	alone := *f
	alone.others = nil
	borrowing, fits := alone.greedy(func(t *trial) bool {
		return t.within(s, d, (*holdings).borrowLimit) && t.room(s, d)
	}, false)
	if fits && (!ok || compareSets(borrowing, chosen) < 0) {
		return borrowing, Borrow, true
	}
	return chosen, Entitled, ok
}

// physically is I3's exception: once nothing borrowed is left, an entitled
// head may take what is physically free.
func (f *field) physically(s *share, d *shape) (_ plan, ok, hopeful bool) {
	chosen, ok := f.greedy(func(t *trial) bool {
		return t.within(s, d, (*holdings).ownLimit) && t.physical(s, d, f.short)
	}, true)
	if !ok {
		return plan{}, false, f.size() > 0
	}
	return plan{ground: Entitled, physical: true, short: f.short, victims: chosen, field: f}, true, false
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

// scarce returns the units that are short, or in which the share has no room
// of its own.
func (c *Cohort) scarce(s *share, d *shape, short []int) []int {
	var scarce []int
	for _, n := range d.needs {
		h := &s.units[n.unit]
		if slices.Contains(short, n.unit) || h.projected()+n.amount > h.nominal {
			scarce = append(scarce, n.unit)
		}
	}
	return scarce
}

// field is whom a head may preempt: jobs of other shares while those are over
// their nominal in a short unit of which the job holds some, and jobs of its
// own share, below a priority, that hold some of a scarce unit.
type field struct {
	p      *pass
	short  []int
	scarce []int
	others []*share
	own    *share
	below  int32
}

func (p *pass) field(s *share, short, scarce []int) *field {
	f := &field{p: p, short: short, scarce: scarce}
	for _, o := range p.list {
		if o != s && slices.ContainsFunc(short, func(u int) bool { return o.units[u].projected() > o.units[u].nominal }) {
			f.others = append(f.others, o)
		}
	}
	return f
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

func (f *field) hasOwn() bool { return f.cursorOwn().advance() }

// few returns everybody, if they are few enough to find the exact choice.
func (f *field) few() ([]victim, bool) {
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

// walk yields everybody in the order of victim.cheaper. It looks no further
// than it is asked to.
func (f *field) walk(yield func(victim) bool) {
	order := heap[*cursor]{
		before: func(a, b *cursor) bool { return a.next.cheaper(b.next) },
		place:  func(*cursor, int) {},
	}
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
		if o.units[u].projected() > o.units[u].nominal {
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

// rank is what a job's priority comes to among all candidates. Priorities of
// different shares do not compare: in each, the lowest that can be preempted
// is 0, the next 1, and so on. Inside the head's own share they are what they are.
func (c *cursor) rank(v victim) int32 {
	switch {
	case c.own:
		return v.job.priority
	case !c.any:
		return 0
	case v.job.priority > c.next.job.priority:
		return c.next.rank + 1
	default:
		return c.next.rank
	}
}

// last drops from the end of a list who holds nothing that would help, and
// returns who is then last.
func (c *cursor) last(list int) (victim, bool) {
	for rest := c.lists[list]; len(rest) > 0; rest = rest[:len(rest)-1] {
		e := rest[len(rest)-1]
		d := e.line.shape
		if slices.ContainsFunc(c.units, func(u int) bool { return d.of(u) > 0 }) {
			c.lists[list] = rest
			v := victim{job: e, own: c.own, age: c.f.p.unsaved(e), baseline: e.held.baseline()}
			v.lost = lostWork(v, c.f.scarce)
			return v, true
		}
	}
	c.lists[list] = nil
	return victim{}, false
}

// unsaved is how long the job has worked since its last checkpoint; one that
// never completed any is not assumed to lose more than the policy says.
func (p *pass) unsaved(e *entry) int64 {
	age := max(0, p.now-e.held.baseline())
	if e.held.checkpoint != 0 {
		return age
	}
	assumed := p.policy.AssumedCheckpointInterval
	if assumed == 0 {
		assumed = DefaultCheckpointInterval
	}
	return min(age, int64(assumed))
}

// lostWork is what the victim holds in the units times its age, saturating far
// enough below the largest integer that a whole set can be added up.
func lostWork(v victim, units []int) LostWork {
	amount := uint64(0)
	for _, u := range units {
		amount += uint64(v.amount(u))
	}
	hi, lo := bits.Mul64(amount, uint64(v.age/int64(time.Millisecond)))
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
	var chosen []victim
	if everyone || !fits(t) {
		for v := range f.walk {
			if !v.own && !t.eligible(v, f.short) {
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
	for i := len(chosen) - 1; i >= 0; i-- {
		v := chosen[i]
		if t.stop(v, -1); fits(t) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			t.stop(v, +1)
		}
	}
	return chosen, true
}

// trial is the projected pool as it would be after some victims stopped.
type trial struct {
	c       *Cohort
	stopped map[*share][]int64 // per unit
	freed   []int64            // Σ stopped, per unit
	gained  []int64            // by how much Σ B would be less, per unit
}

func newTrial(c *Cohort) *trial {
	return &trial{c: c, stopped: map[*share][]int64{}, freed: make([]int64, len(c.pools)), gained: make([]int64, len(c.pools))}
}

func (t *trial) usage(s *share, unit int) int64 {
	usage := s.units[unit].projected()
	if stopped := t.stopped[s]; stopped != nil {
		usage -= stopped[unit]
	}
	return usage
}

// stop lets a victim stop (sign 1), or takes that back (sign −1).
func (t *trial) stop(v victim, sign int64) {
	s := v.job.share()
	if t.stopped[s] == nil {
		t.stopped[s] = make([]int64, len(t.c.pools))
	}
	for _, n := range v.job.line.shape.needs {
		kept := s.units[n.unit].kept
		before := max(0, t.usage(s, n.unit)-kept)
		t.stopped[s][n.unit] += sign * n.amount
		t.freed[n.unit] += sign * n.amount
		t.gained[n.unit] += before - max(0, t.usage(s, n.unit)-kept)
	}
}

// eligible reports whether the victim holds some of a short unit in which its
// share is still over its nominal.
func (t *trial) eligible(v victim, short []int) bool {
	s := v.job.share()
	return slices.ContainsFunc(short, func(u int) bool {
		return v.amount(u) > 0 && t.usage(s, u) > s.units[u].nominal
	})
}

// room reports whether the pool would no longer fall short of the demand.
func (t *trial) room(s *share, d *shape) bool {
	for _, n := range d.needs {
		b, h := &t.c.pools[n.unit], &s.units[n.unit]
		if b.lacks(h, b.projected.beyond-t.gained[n.unit], t.usage(s, n.unit), n.amount) > 0 {
			return false
		}
	}
	return true
}

// physical reports whether the demand would be free, with nothing borrowed
// left in the units that are short.
func (t *trial) physical(s *share, d *shape, short []int) bool {
	return t.free(d) && !t.borrowed(s, short)
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

// borrowed reports whether any share but s is over its nominal in one of the units.
func (t *trial) borrowed(s *share, units []int) bool {
	for _, u := range units {
		for _, o := range t.c.list {
			if o != s && t.usage(o, u) > o.units[u].nominal {
				return true
			}
		}
	}
	return false
}
