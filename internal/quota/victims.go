package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
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
	age      int64 // nanoseconds of work per amount that would be lost
	baseline int64
	lost     LostWork
}

func (v victim) amount(unit int) int64 { return v.job.line.shape.of(unit) }

// level orders grounds and priorities; victims of a lower level go first.
func (v victim) level(w victim) int {
	if v.own != w.own {
		if v.own {
			return 1
		}
		return -1
	}
	return cmp.Compare(v.job.priority, w.job.priority)
}

// cheaper is the order in which many candidates are tried.
func (v victim) cheaper(w victim) bool {
	if l := v.level(w); l != 0 {
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
	all := p.reclaimable(s, short)
	fits := func(t *trial) bool { return t.room(s, d) }
	if chosen, ok := p.choose(all, short, fits, func(few []victim) ([]victim, bool) {
		return leastReclaimed(few, short[0], d.of(short[0])-p.roomIn(s, short[0]))
	}); ok {
		return p.plan(Entitled, chosen, all), true, false
	}
	return p.planPhysical(s, d, short, all, nil)
}

// planPhysical is I3's exception: once nothing borrowed is left, an entitled
// head may take what is physically free. own are the jobs of its own share
// that may be stopped as well.
func (p *pass) planPhysical(s *share, d *shape, short []int, all, own []victim) (_ plan, ok, hopeful bool) {
	fits := func(t *trial) bool {
		return t.within(s, d, (*holdings).ownLimit) && t.free(d) && !t.borrowed(s, short)
	}
	candidates := slices.Concat(all, own)
	chosen, ok := p.greedy(candidates, short, fits, true)
	if !ok {
		return plan{}, false, len(candidates) > 0
	}
	physical := p.plan(Entitled, chosen, candidates)
	physical.physical, physical.short = true, short
	return physical, true, false
}

// planInShare is step 3: a head that fits neither way may have strictly lower
// priorities of its own share stop, and, if that makes it entitled, reclaim too.
func (p *pass) planInShare(s *share, head *entry) (_ plan, ok, hopeful bool) {
	d := head.line.shape
	short := p.short(s, d)
	scarce := p.scarce(s, d, short)
	own := p.outranked(s, head, scarce)
	reclaim := p.reclaimable(s, short)
	if len(own) == 0 {
		return plan{}, false, len(reclaim) > 0 && s.within(d, (*holdings).ownLimit)
	}
	for i := range reclaim {
		reclaim[i].lost = lostWork(reclaim[i], scarce)
	}
	all := slices.Concat(reclaim, own)
	entitled := func(t *trial) bool { return t.within(s, d, (*holdings).ownLimit) && t.room(s, d) }
	borrows := func(t *trial) bool { return t.within(s, d, (*holdings).borrowLimit) && t.room(s, d) }

	if len(scarce) == 1 && len(all) <= fewCandidates {
		if chosen, ground, ok, exact := p.leastInShare(s, d, scarce[0], all); exact {
			if ok {
				return p.plan(ground, chosen, all), true, false
			}
			return p.planPhysical(s, d, short, reclaim, own)
		}
	}
	best, ok := p.greedy(all, scarce, entitled, false)
	ground := Entitled
	if s.def.Sharing == LendAndBorrow {
		if other, fits := p.greedy(own, scarce, borrows, false); fits && (!ok || compareSets(other, best) < 0) {
			best, ground, ok = other, Borrow, true
		}
	}
	if ok {
		return p.plan(ground, best, all), true, false
	}
	return p.planPhysical(s, d, short, reclaim, own)
}

// plan prices the choice of victims against those that were passed over.
func (p *pass) plan(ground Ground, chosen, all []victim) plan {
	pl := plan{ground: ground, victims: chosen, candidates: len(all)}
	taken := make(map[JobID]bool, len(chosen))
	for _, v := range chosen {
		taken[v.job.id] = true
	}
	for _, v := range all {
		if !taken[v.job.id] && (!pl.spared || v.lost < pl.alternative) {
			pl.alternative, pl.spared = v.lost, true
		}
	}
	return pl
}

// roomIn is how much of a unit the share may be granted as projected.
func (c *Cohort) roomIn(s *share, unit int) int64 {
	b, h := &c.pools[unit], &s.units[unit]
	return b.room(h, &b.projected, h.projected())
}

// short returns the units of which there is too little for the demand.
func (c *Cohort) short(s *share, d *shape) []int {
	var short []int
	for _, n := range d.needs {
		if n.amount > c.roomIn(s, n.unit) {
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

// reclaimable returns the jobs of other shares that hold some of a short unit
// while their share is over its nominal in one.
func (p *pass) reclaimable(s *share, short []int) []victim {
	var all []victim
	for _, o := range p.list {
		if o == s || !slices.ContainsFunc(short, func(u int) bool { return o.units[u].projected() > o.units[u].nominal }) {
			continue
		}
		for _, e := range o.holders {
			all = p.candidate(all, e, false, short)
		}
	}
	return all
}

// outranked returns the share's own jobs of strictly lower priority (I7).
func (p *pass) outranked(s *share, head *entry, scarce []int) []victim {
	var own []victim
	for _, e := range s.holders {
		if e.priority < head.priority {
			own = p.candidate(own, e, true, scarce)
		}
	}
	return own
}

// candidate appends the job unless it is stopping already or holds nothing
// that would help.
func (p *pass) candidate(to []victim, e *entry, own bool, units []int) []victim {
	d := e.line.shape
	if e.held.stopping != nil || !slices.ContainsFunc(units, func(u int) bool { return d.of(u) > 0 }) {
		return to
	}
	v := victim{job: e, own: own, age: p.unsaved(e), baseline: e.held.baseline()}
	v.lost = lostWork(v, units)
	return append(to, v)
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

// choose finds the exact set where one unit is short and the candidates are
// few, and otherwise a good one.
func (p *pass) choose(all []victim, short []int, fits func(*trial) bool, exactly func([]victim) ([]victim, bool)) ([]victim, bool) {
	if len(short) == 1 && len(all) <= fewCandidates {
		if chosen, exact := exactly(all); exact {
			return chosen, len(chosen) > 0
		}
	}
	return p.greedy(all, short, fits, false)
}

// greedy takes candidates, cheapest first, until the head fits (or all that
// are eligible), and then spares, dearest first, those who are not needed.
func (p *pass) greedy(all []victim, short []int, fits func(*trial) bool, everyone bool) ([]victim, bool) {
	order := heap[victim]{before: victim.cheaper, place: func(victim, int) {}}
	order.items = slices.Clone(all)
	for i := len(all)/2 - 1; i >= 0; i-- {
		order.down(i)
	}
	t := newTrial(p.Cohort)
	var chosen []victim
	for order.len() > 0 && (everyone || !fits(t)) {
		v := order.pop()
		if v.own || t.eligible(v, short) {
			t.stop(v, +1)
			chosen = append(chosen, v)
		}
	}
	if !fits(t) {
		return nil, false
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		if t.stop(chosen[i], -1); fits(t) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			t.stop(chosen[i], +1)
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

// eligible reports whether the victim's share is still over its nominal in a
// unit that is short.
func (t *trial) eligible(v victim, short []int) bool {
	s := v.job.share()
	return slices.ContainsFunc(short, func(u int) bool { return t.usage(s, u) > s.units[u].nominal })
}

func (t *trial) room(s *share, d *shape) bool {
	for _, n := range d.needs {
		b, h := &t.c.pools[n.unit], &s.units[n.unit]
		if n.amount > b.room(h, &b.projected, t.usage(s, n.unit))+t.gained[n.unit] {
			return false
		}
	}
	return true
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
