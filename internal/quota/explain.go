package quota

import (
	"cmp"
	"slices"
	"time"
)

// Reason returns why a waiting job waits, as the last pass left things, and from
// now on; ok is false for a job that does not wait.
func (c *Cohort) Reason(id JobID, now time.Time) (r Reason, ok bool) {
	e, ok := c.jobs[id]
	if !ok || e.held != nil {
		return Reason{}, false
	}
	s := e.share()
	switch {
	case e.resting:
		return Reason{Code: Backoff, Until: time.Unix(0, e.notBefore).UTC()}, true
	case c.policy.Paused:
		r = Reason{Code: DisabledPool}
	case e.nominated:
		r = c.whyNominated(s, e)
	case e.line.never && (c.policy.Queueing != Strict || e == s.head()):
		r = c.neverFits(s, e.line.shape)
	default:
		r = c.whyWaits(s, e, nanos(now))
	}
	r.Place = s.place(e)
	if unit, ok := c.unitOf[r.Unit]; ok && r.Code != Misconfiguration {
		r.Wants = e.line.shape.of(unit)
		r.Holders = c.holdersOf(unit, s)
	}
	return r, true
}

// whyWaits returns whom a job is behind, or what it lacks itself, and by when it
// can start as far as what is declared bounds that.
func (c *Cohort) whyWaits(s *share, e *entry, now int64) Reason {
	undelayed := c.undelayed(s, e, now)
	r := c.whyBlocked(s, e.line.shape, now)
	if ahead := cmp.Or(undelayed, c.passing(s, e)); ahead != nil {
		r = Reason{Code: Behind, Ahead: ahead.id}
	}
	first := c.startFirst(e, undelayed)
	if len(first) > manyAhead {
		return r
	}
	if _, at, ok := c.outlook(now, s, e.line.shape, first); ok {
		r.Earliest, r.After = time.Unix(0, at).UTC(), len(first)
	}
	return r
}

// undelayed is the blocked job that a job would delay if it passed it; nil: it
// may pass, or is that job.
func (c *Cohort) undelayed(s *share, e *entry, now int64) *entry {
	if c.policy.Queueing != Backfill {
		return nil
	}
	var blocked *entry
	s.waitingLines(func(l *line) {
		if first := l.jobs.first(); !l.never && (blocked == nil || first.ahead(blocked)) {
			blocked = first
		}
	})
	if ok, _ := c.mayBackfill(now, blocked, e); e == blocked || ok {
		return nil
	}
	return blocked
}

// passing is the job that a job cannot pass: the head or, where others may pass
// that, the first that wants as much; nil: it is that job.
func (c *Cohort) passing(s *share, e *entry) *entry {
	first := s.head()
	if c.policy.Queueing != Strict {
		first = e.line.jobs.first()
	}
	if first == e {
		return nil
	}
	return first
}

// place counts who goes ahead of a waiting job in its share, from 1.
func (s *share) place(e *entry) int {
	place := 1
	count := func(o *entry) {
		if o.ahead(e) {
			place++
		}
	}
	s.waitingLines(func(l *line) {
		for _, o := range l.jobs.items {
			count(o)
		}
	})
	for _, n := range s.nominated {
		count(n.job)
	}
	return place
}

// whyNominated names the first unit that stopping jobs still hold.
func (c *Cohort) whyNominated(s *share, e *entry) Reason {
	for _, n := range s.nominated {
		for _, claim := range n.claims {
			if lacks := claim.amount - claim.reserved; n.job == e && lacks > 0 {
				return Reason{Code: Releasing, Unit: c.pools[claim.unit].unit, Lacks: lacks}
			}
		}
	}
	return Reason{Code: Releasing}
}

// whyBlocked names the first unit that is in the way: the share's own limits
// before the pool's.
func (c *Cohort) whyBlocked(s *share, d *shape, now int64) Reason {
	if n, lacks := c.reserved(s, d, now/int64(time.Millisecond)); lacks > 0 {
		return Reason{Code: Reserved, Unit: c.pools[n.unit].unit, Lacks: lacks}
	}
	entitled := s.within(d, (*holdings).ownLimit)
	borrows := s.def.Sharing == LendAndBorrow
	for _, n := range d.needs {
		p, h := &c.pools[n.unit], &s.units[n.unit]
		free := p.free(&p.projected)
		switch {
		case !borrows && h.projected()+n.amount > h.nominal:
			if free < n.amount && h.nominal >= p.capacity {
				return Reason{Code: InsufficientCapacity, Unit: p.unit, Lacks: n.amount - free}
			}
			return Reason{Code: InsufficientQuota, Unit: p.unit, Lacks: h.projected() + n.amount - h.nominal}
		case borrows && !entitled && h.projected()+n.amount > h.limit:
			return Reason{Code: BorrowLimit, Unit: p.unit, Lacks: h.projected() + n.amount - h.limit}
		}
	}
	for _, n := range d.needs {
		lacks := c.lacksIn(s, n)
		if lacks <= 0 {
			continue
		}
		p := &c.pools[n.unit]
		free := p.free(&p.projected)
		switch {
		case free >= n.amount:
			return Reason{Code: Reserved, Unit: p.unit, Lacks: lacks}
		case entitled:
			return Reason{Code: InsufficientCapacity, Unit: p.unit, Lacks: n.amount - free}
		case p.capacity < p.nominal:
			return Reason{Code: InsufficientCapacity, Unit: p.unit, Lacks: lacks}
		}
		return Reason{Code: InsufficientQuota, Unit: p.unit, Lacks: lacks}
	}
	// Nothing is in the way: the pass that will grant it has not run yet.
	return Reason{Code: InsufficientCapacity}
}

// roleOrder is the order in which holders are listed.
var roleOrder = []Role{OwnShare, Borrower, User, OnItsWay, Nominated, Keeper, Unshared}

// holdersOf lists who has the unit, from the point of view of share s.
func (c *Cohort) holdersOf(unit int, s *share) []Holder {
	var all []Holder
	add := func(role Role, share, forShare string, amount int64) {
		if amount > 0 {
			all = append(all, Holder{Role: role, Share: share, ForShare: forShare, Amount: amount})
		}
	}
	for _, o := range c.list {
		h, name := &o.units[unit], o.def.Name
		using := h.usage - h.stopping
		if o == s {
			add(OwnShare, name, "", using)
		} else {
			add(User, name, "", min(using, h.nominal))
			add(Borrower, name, "", using-h.nominal)
			add(Keeper, name, "", h.kept-h.projected())
			add(Nominated, name, "", h.claimed)
		}
		if h.stopping > 0 {
			for forShare, amount := range o.releasing(unit) {
				add(OnItsWay, name, forShare, amount)
			}
		}
	}
	p := &c.pools[unit]
	if !c.policy.ShareUnallocated {
		add(Unshared, "", "", min(p.capacity-p.nominal, p.free(&p.projected)))
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(
			cmp.Compare(slices.Index(roleOrder, a.Role), slices.Index(roleOrder, b.Role)),
			cmp.Compare(a.Share, b.Share), cmp.Compare(a.ForShare, b.ForShare))
	})
	return all
}

// releasing is what the share's stopping jobs give back, by for whom.
func (s *share) releasing(unit int) map[string]int64 {
	amounts := map[string]int64{}
	for _, e := range s.holders {
		if e.held.stopping != nil {
			amounts[e.held.stopping.ForShare] += e.line.shape.of(unit)
		}
	}
	return amounts
}

// Balance is what a share owns, uses, borrows, lends and has free in one unit.
type Balance struct {
	Unit     Unit
	Nominal  int64
	Usage    int64
	Borrowed int64 // max(0, Usage − Nominal)
	Lent     int64 // the part of the unused nominal that borrowers use
	Free     int64 // the part of the unused nominal that nobody uses
	Stopping int64 // the part of Usage that stopping jobs give back
}

// Balances returns a share's balance in every unit in which it has a nominal
// or a usage, sorted by unit. What is borrowed belongs to no lender in
// particular; it is booked on those with most idle capacity to lend first.
func (c *Cohort) Balances(share string) []Balance {
	s, ok := c.shares[share]
	if !ok {
		return nil
	}
	var all []Balance
	for i := range c.pools {
		h := &s.units[i]
		if h.nominal == 0 && h.usage == 0 {
			continue
		}
		lent := c.lentBy(s, i)
		free := max(0, h.nominal-h.usage-lent)
		if p := &c.pools[i]; s.def.Fair != nil { // its nominal is everybody's
			free = max(0, min(free, p.free(&p.actual)))
		}
		all = append(all, Balance{
			Unit: c.pools[i].unit, Nominal: h.nominal, Usage: h.usage,
			Borrowed: max(0, h.usage-h.nominal), Lent: lent,
			Free: free, Stopping: h.stopping,
		})
	}
	slices.SortFunc(all, func(a, b Balance) int { return cmp.Compare(a.Unit, b.Unit) })
	return all
}

// lentBy is the part of all that is borrowed of a unit that is booked on s.
func (c *Cohort) lentBy(s *share, unit int) int64 {
	mine := s.units[unit].lendable()
	if mine == 0 {
		return 0
	}
	borrowed, before := int64(0), int64(0)
	for _, o := range c.list {
		h := &o.units[unit]
		borrowed += max(0, h.usage-h.nominal)
		if idle := h.lendable(); idle > mine || idle == mine && o.def.Name < s.def.Name {
			before += idle
		}
	}
	return min(mine, max(0, borrowed-before))
}

// lendable is what a share could lend of what it does not use.
func (h *holdings) lendable() int64 { return max(0, min(h.lend, h.nominal-h.usage)) }
