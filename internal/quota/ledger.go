package quota

import (
	"math"
	"math/bits"
)

// This file is the one place where lending is added up.
//
// Per unit, with kept = nominal − lend limit, each share r is either short of
// what it keeps, by R(r) = max(0, kept − usage), or beyond it, by
// B(r) = max(0, usage − kept). Invariant I3 says that a grant of d to s leaves
// free what the others keep:
//
//	d ≤ capacity − Σ usage − Σ(r≠s) R(r) = R(s) + capacity − Σ kept − Σ B
//
// and I3b that what all use beyond what they keep stays within what is lent,
// unless the grant adds nothing to it:
//
//	d ≤ R(s)  or  d ≤ R(s) + lendable − Σ B
//
// So all that a unit needs to remember is Σ B, and a victim helps by as much as
// it makes Σ B less.
//
// Everything is kept twice: as it is, and projected, that is without what
// stopping jobs hold (section 3). In projection a nominated head has all that it
// claims; as things are, only what it needs beside what will be given back:
// nobody behind it may take either.

// unlimited is a limit beyond any usage, far enough from overflow to be added to.
const unlimited = math.MaxInt64 / 4

// need is one unit of a demand.
type need struct {
	unit   int // index into Cohort.units
	amount int64
}

// shape is a demand, shared by all jobs that have the same; sorted by unit name.
type shape struct{ needs []need }

func (d *shape) of(unit int) int64 {
	for _, n := range d.needs {
		if n.unit == unit {
			return n.amount
		}
	}
	return 0
}

// account is what the pool, or one view of it, adds up to in one unit.
type account struct {
	used   int64 // Σ usage and what nominated heads have
	beyond int64 // Σ B of these
}

// pool is the cohort's books in one unit.
type pool struct {
	unit      Unit
	capacity  int64
	nominal   int64 // Σ nominal
	kept      int64 // Σ kept
	lend      int64 // Σ lend limits
	spare     int64 // what no share owns, if it may be borrowed
	actual    account
	projected account

	// When a job is found blocked, these remember in projection the least that
	// was idle, and free, of what it lacks, and from where down it would lack
	// what it has enough of. Until there is more, or less, it stays blocked.
	idleFloor int64
	freeFloor int64
	idleCeil  int64
	moved     bool // in Cohort.moved
}

// idle is how much anybody could be granted who keeps nothing: negative while
// more is used than may be.
func (p *pool) idle(a *account) int64 { return min(p.capacity-p.kept, p.lendable()) - a.beyond }

// lendable is all that may ever be borrowed.
func (p *pool) lendable() int64 { return p.lend + p.spare }

func (p *pool) free(a *account) int64 { return p.capacity - a.used }

// holdings is a share's books in one unit.
type holdings struct {
	nominal  int64
	limit    int64 // nominal plus what it may borrow
	lend     int64
	kept     int64
	usage    int64
	stopping int64 // the part of usage that stopping jobs give back
	claimed  int64 // by the share's nominated head
	reserved int64 // the part of claimed that is there now
}

func (h *holdings) projected() int64 { return h.usage - h.stopping + h.claimed }

// running is what the share uses but for its stopping jobs. What it claims it
// does not use, so this is what decides whether it is over its nominal.
func (h *holdings) running() int64 { return h.usage - h.stopping }

func (h *holdings) actual() int64 { return h.usage + h.reserved }

// beyond is B of a share that uses as much.
func (h *holdings) beyond(usage int64) int64 { return max(0, usage-h.kept) }

// lacks is by how much Σ B would have to be less for the amount to be granted
// to a share that uses as much (I3 and I3b); not positive: it may be granted.
func (p *pool) lacks(h *holdings, beyond, usage, amount int64) int64 {
	needed := amount - max(0, h.kept-usage)
	lacks := needed + beyond - (p.capacity - p.kept)
	if needed > 0 {
		lacks = max(lacks, needed+beyond-p.lendable())
	}
	return lacks
}

// booking is a change of a share's holdings.
type booking struct{ usage, stopping, claimed, reserved int64 }

// shift is the only way in which usage changes: it books amounts on a share in
// one unit and keeps every sum in step.
func (c *Cohort) shift(s *share, unit int, by booking) {
	p, h := &c.pools[unit], &s.units[unit]
	before := h.running()
	p.take(h, -1)
	h.usage += by.usage
	h.stopping += by.stopping
	h.claimed += by.claimed
	h.reserved += by.reserved
	p.take(h, +1)
	if after := h.running(); after > before && after > h.nominal {
		c.exposed = true
	}
	idle := p.idle(&p.projected)
	if !p.moved && (idle > p.idleFloor || idle < p.idleCeil || p.free(&p.projected) > p.freeFloor) {
		p.moved = true
		c.moved = append(c.moved, unit)
	}
}

// forget lets no level of the unit be waited for.
func (p *pool) forget() {
	p.moved, p.idleFloor, p.freeFloor, p.idleCeil = false, math.MaxInt64, math.MaxInt64, math.MinInt64
}

// take adds a share's usage to the sums (sign 1), or takes it out of them
// (sign −1).
func (p *pool) take(h *holdings, sign int64) {
	p.actual.used += sign * h.actual()
	p.actual.beyond += sign * h.beyond(h.actual())
	p.projected.used += sign * h.projected()
	p.projected.beyond += sign * h.beyond(h.projected())
}

// declare sets a share's limits in one unit from its declaration.
func (c *Cohort) declare(s *share, unit int) {
	p, h := &c.pools[unit], &s.units[unit]
	p.take(h, -1)
	p.nominal -= h.nominal
	p.kept -= h.kept
	p.lend -= h.lend
	h.nominal = s.def.Nominal[p.unit]
	h.lend = s.def.lends(p.unit)
	h.kept = h.nominal - h.lend
	h.limit = h.nominal + s.def.borrows(p.unit)
	p.nominal += h.nominal
	p.kept += h.kept
	p.lend += h.lend
	p.take(h, +1)
}

// lends is how much of its nominal the share lends at most (section 1).
func (s *Share) lends(u Unit) int64 {
	nominal := s.Nominal[u]
	if s.Sharing == Reserve {
		return 0
	}
	if limit, ok := s.LendLimits[u]; ok {
		return max(0, min(limit, nominal))
	}
	return nominal
}

// borrows is how much the share may use beyond its nominal (section 4).
func (s *Share) borrows(u Unit) int64 {
	if s.Sharing != LendAndBorrow {
		return 0
	}
	most := int64(unlimited)
	if s.BorrowPercent >= 0 {
		most = percent(s.Nominal[u], s.BorrowPercent)
	}
	if limit, ok := s.BorrowLimits[u]; ok {
		most = min(most, max(0, limit))
	}
	return most
}

// percent is amount·p/100 rounded down, at most unlimited.
func percent(amount, p int64) int64 {
	hi, lo := bits.Mul64(uint64(amount), uint64(p))
	if hi >= 100 {
		return unlimited
	}
	quotient, _ := bits.Div64(hi, lo, 100)
	return int64(min(quotient, unlimited))
}

// fraction is usage over nominal, exact; over 0 it is infinite.
type fraction struct{ over, under int64 }

func (f fraction) less(g fraction) bool {
	if f.under == 0 || g.under == 0 {
		return f.under != 0 && g.under == 0
	}
	fhi, flo := bits.Mul64(uint64(f.over), uint64(g.under))
	ghi, glo := bits.Mul64(uint64(g.over), uint64(f.under))
	return fhi < ghi || fhi == ghi && flo < glo
}

// fullness is the share's usage relative to its nominal in the unit where that
// is highest.
func (s *share) fullness() fraction { return fullest(s.units) }

func fullest(units []holdings) fraction {
	fullest := fraction{0, 1}
	for i := range units {
		h := &units[i]
		if h.usage == 0 {
			continue
		}
		if f := (fraction{h.usage, h.nominal}); fullest.less(f) {
			fullest = f
		}
	}
	return fullest
}

// worth is what idle capacity goes by under FairShare: how much a share borrows
// of what is lendable, for its weight. Less goes first; weight 0 goes last, as
// soon as it borrows anything.
type worth struct {
	last  bool
	value fraction
}

func (w worth) compare(o worth) int {
	switch {
	case w.last != o.last:
		if w.last {
			return 1
		}
		return -1
	case w.value.less(o.value):
		return -1
	case o.value.less(w.value):
		return 1
	}
	return 0
}

// worth is the share's if it used as much in each unit (section 3, step 2).
func (c *Cohort) worth(s *share, usage func(unit int) int64) worth {
	w := worth{value: fraction{0, 1}}
	weight := max(1, s.def.Weight)
	for i := range c.pools {
		borrowed := usage(i) - s.units[i].nominal
		if borrowed <= 0 {
			continue
		}
		if f := (fraction{borrowed, max(0, c.pools[i].lendable()) * weight}); w.value.less(f) {
			w.value, w.last = f, s.def.Weight <= 0
		}
	}
	return w
}
