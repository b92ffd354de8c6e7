package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
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
// exactly, their set being a bit mask, and each is tried first.
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
	if _, lacks := p.reserved(s, d, p.nowMillis); lacks > 0 {
		p.lookAgainAt((s.record.latest + 1) * s.record.width * int64(time.Millisecond))
		p.withheld = append(p.withheld, s)
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
	if few, ok := f.exact(f.short); ok {
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
	if !s.roll.anyBelow(front.priority) && !s.within(d, (*holdings).ownLimit) {
		return plan{}, false, false
	}
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
	if few, ok := f.exact(f.scarce); ok {
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
	if !rebalance {
		if few, ok := f.exact(f.scarce); ok {
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
