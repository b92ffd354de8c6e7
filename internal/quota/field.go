package quota

import (
	"iter"
	"slices"
	"sort"
)

// This file lists, in the order in which they are preempted, the jobs that may
// be told to stop, and takes from them what is needed.

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

// exact returns everybody, if the policy asks for the least lost work, it is to
// be found in one unit, and they are few enough to find it.
func (f *field) exact(units []int) ([]victim, bool) {
	if f.p.policy.Victims != LeastLostWork || len(units) != 1 {
		return nil, false
	}
	return f.few()
}

// few returns everybody, in order, if they are few.
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

// greedy takes candidates, cheapest first, until the job fits (or everyone who
// is eligible), and then spares, dearest first, those who are not needed. Who
// comes first can make others ineligible that alone would do; so where that
// finds nothing, and the candidates are few, each of them may come first.
func (f *field) greedy(fits func(*trial) bool, everyone bool) ([]victim, bool) {
	chosen, ok := f.take(f.walk, fits, everyone)
	if ok || everyone {
		return chosen, ok
	}
	few, ok := f.few()
	if !ok {
		return nil, false
	}
	for i := 1; i < len(few); i++ {
		order := slices.Concat(few[i:i+1], few[:i], few[i+1:])
		if chosen, ok := f.take(slices.Values(order), fits, false); ok {
			return chosen, true
		}
	}
	return nil, false
}

// take is greedy with the candidates in one order.
func (f *field) take(order iter.Seq[victim], fits func(*trial) bool, everyone bool) ([]victim, bool) {
	t := newTrial(f.p.Cohort)
	if !f.reclaims {
		t.borrower = f.starting.share()
	}
	f.trial = t
	defer func() { f.trial = nil }()
	var chosen []victim
	if everyone || !fits(t) {
		for v := range order {
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
