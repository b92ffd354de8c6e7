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
	var ids []JobID
	for len(ids) < n && len(turns) > 0 {
		first := slices.MinFunc(turns, (*fairTurn).compare)
		ids = append(ids, first.waiting[0].id)
		if o.grant(first); len(first.waiting) == 0 {
			turns = slices.DeleteFunc(turns, func(t *fairTurn) bool { return t == first })
		}
	}
	return ids
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
	units   []holdings // its own
	burden  burden
	full    fraction
}

func (o fairOrder) turnOf(s *share, n int) *fairTurn {
	t := &fairTurn{share: s, record: s.record.settled(o.now), units: slices.Clone(s.units)}
	t.record.rate = s.inUse()
	for _, id := range o.Heads(s.def.Name, n) {
		t.waiting = append(t.waiting, o.jobs[id])
	}
	o.weigh(t)
	return t
}

// grant lets the first job of a share have what it wants.
func (o fairOrder) grant(t *fairTurn) {
	for _, n := range t.waiting[0].line.shape.needs {
		t.units[n.unit].usage += n.amount
		t.record.rate += n.amount
	}
	t.waiting = t.waiting[1:]
	o.weigh(t)
}

// weigh notes what the order depends on.
func (o fairOrder) weigh(t *fairTurn) {
	t.burden = t.record.burden(o.now, t.share.def.Fair.WeightFactor)
	t.full = fullest(t.units)
}

// compare is negative if t goes before o, by the order of step 1 of a pass.
func (t *fairTurn) compare(o *fairTurn) int {
	switch {
	case t.burden.less(o.burden) || o.burden.less(t.burden):
		return order(t.burden.less(o.burden))
	case t.full.less(o.full) || o.full.less(t.full):
		return order(t.full.less(o.full))
	}
	return order(t.waiting[0].older(o.waiting[0]))
}

func order(before bool) int {
	if before {
		return -1
	}
	return 1
}
