package quota

import "slices"

// trial is the projected pool as it would be after some victims stopped.
type trial struct {
	c          *Cohort
	borrower   *share             // for whom others stop only in so far as they borrow; nil: for an owner
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
		before := t.beyond(s, n.unit)
		t.stopped[s][n.unit] += sign * n.amount
		t.freed[n.unit] += sign * n.amount
		t.gained[n.unit] += before - t.beyond(s, n.unit)
	}
}

// beyond is what the share takes from the others' point of view. If its jobs
// stop for a borrower, what is its own stays with it: the borrower would only
// lose it again to whoever of that share is entitled to it, and come back (I8).
func (t *trial) beyond(s *share, unit int) int64 {
	h, usage := &s.units[unit], t.usage(s, unit)
	if t.borrower != nil && t.borrower != s {
		usage = max(usage, min(h.nominal, h.projected()))
	}
	return h.beyond(usage)
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
	return t.balances(f.starting.share(), f.starting.line.shape, s)
}

func (t *trial) worth(s *share) worth {
	return t.c.worth(s, func(u int) int64 { return t.usage(s, u) })
}

// worthAfter is the share's if it were granted the demand.
func (t *trial) worthAfter(s *share, d *shape) worth {
	return t.c.worth(s, func(u int) int64 { return t.usage(s, u) + d.of(u) })
}

// balances reports whether o would borrow no less for its weight than s then
// does, and did borrow more. Without the latter two shares that are alike in the
// unit of which they borrow most could take others from each other for ever (I8).
func (t *trial) balances(s *share, d *shape, o *share) bool {
	after := t.worthAfter(s, d)
	before := t.c.worth(o, func(u int) int64 { return o.units[u].projected() })
	return after.compare(t.worth(o)) <= 0 && after.compare(before) < 0
}

// balanced reports whether that is so of every share that a rebalancing victim
// was taken from.
func (t *trial) balanced(s *share, d *shape) bool {
	for o, n := range t.rebalanced {
		if n > 0 && !t.balances(s, d, o) {
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
