package quota

import (
	"slices"
	"time"
)

// FairOrder returns the first n waiting jobs of a fair-share queue in the order
// in which they would be granted at a time, if there were enough for all of
// them. Jobs in backoff are left out.
func (c *Cohort) FairOrder(queue string, n int, at time.Time) []JobID {
	o := fairOrder{c, at.UnixMilli()}
	var turns []*fairTurn
	for _, s := range c.fair {
		if s.def.Fair.Queue == queue {
			if t := o.turnOf(s, n); len(t.waiting) > 0 {
				turns = append(turns, t)
			}
		}
	}
	var order []JobID
	for len(order) < n && len(turns) > 0 {
		first := slices.MinFunc(turns, (*fairTurn).compare)
		order = append(order, first.waiting[0].id)
		if o.grant(first); len(first.waiting) == 0 {
			turns = slices.DeleteFunc(turns, func(t *fairTurn) bool { return t == first })
		}
	}
	return order
}

// fairOrder looks ahead, at a time, and leaves the cohort as it is.
type fairOrder struct {
	*Cohort
	now int64 // in Unix milliseconds
}

// fairTurn is a fair share as it would be after some of its jobs were granted.
type fairTurn struct {
	share   *share
	waiting []*entry // in order
	record  *record
	usage   []int64 // by unit
	burden  burden
	full    fraction
}

func (o fairOrder) turnOf(s *share, n int) *fairTurn {
	t := &fairTurn{share: s, record: s.record.settled(o.now), usage: make([]int64, len(s.units))}
	for _, id := range o.Heads(s.def.Name, n) {
		t.waiting = append(t.waiting, o.jobs[id])
	}
	for i := range s.units {
		t.usage[i] = s.units[i].usage
	}
	o.weigh(t)
	return t
}

// grant lets the first job of a share have what it wants.
func (o fairOrder) grant(t *fairTurn) {
	for _, n := range t.waiting[0].line.shape.needs {
		t.usage[n.unit] += n.amount
		t.record.rate += n.amount
	}
	t.waiting = t.waiting[1:]
	o.weigh(t)
}

// weigh notes what the order depends on, as step 1 of a pass has it.
func (o fairOrder) weigh(t *fairTurn) {
	t.burden = t.record.burden(o.now, t.share.def.Fair.WeightFactor)
	t.full = t.share.fullest(func(unit int) int64 { return t.usage[unit] })
}

// compare is negative if t goes first.
func (t *fairTurn) compare(o *fairTurn) int {
	first := func(a, b *fairTurn) bool {
		return emptier(a.burden, b.burden, a.full, b.full, a.waiting[0], b.waiting[0])
	}
	switch {
	case first(t, o):
		return -1
	case first(o, t):
		return 1
	}
	return 0
}
