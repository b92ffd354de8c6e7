package quota

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// stage is where a share's head stands in a pass. Between passes a share is in
// stage none (nothing waits), stageBlocked or stageNominated; what changes
// takes it out and has it classified again. So a pass looks only at shares that
// something happened to, and its cost follows what changed.
type stage int8

const (
	stageNone      stage = iota
	stageDirty           // to be classified
	stageOwed            // candidate whose claim stands from an earlier pass
	stageEntitled        // candidate of step 1
	stageBorrow          // candidate of step 2
	stageInShare         // candidate of step 3
	stageBlocked         // its head cannot start as things are
	stageNominated       // its head's claim stands; it waits for stopping jobs
)

// Pass decides, at now, everything that can be decided (section 3), and
// applies its decisions to the cohort: what it grants is held from now on, what
// it preempts is stopping. After every grant and preemption all heads are
// candidates again and all claims are derived anew, so a second pass at once
// decides nothing more. First come the heads of shares that jobs stop for: what
// was taken back for them is theirs to claim. Park decisions come last, in
// order of share name.
func (c *Cohort) Pass(now time.Time) []Decision {
	at := now.UnixNano()
	c.wakeUp(at)
	if c.policy.Paused {
		return nil
	}
	c.reopen()
	p := pass{Cohort: c, now: at}
	for p.step() {
	}
	p.park()
	return p.decisions
}

// pass is one pass under way.
type pass struct {
	*Cohort
	now       int64
	decisions []Decision
}

// plan is how a head could start: on which ground, and after which jobs stop.
type plan struct {
	ground Ground
	// physical: the quotas sum to more than the pool and nothing borrowed is
	// left, so what is physically free may be taken (I3).
	physical bool
	short    []int // with physical: the units in which it is taken
	victims  []victim
	field    *field // what the victims were chosen from
}

// wakeUp lets jobs wait whose backoff has ended.
func (c *Cohort) wakeUp(now int64) {
	for c.backoff.len() > 0 && c.backoff.first().notBefore <= now {
		e := c.backoff.pop()
		e.resting = false
		e.share().resting--
		c.wait(e, 0)
	}
}

// reopen makes candidates of all whose standing is not settled by the books
// alone: nominated heads, and heads for whom it depends on the choice of victims.
func (c *Cohort) reopen() {
	c.withdrawClaims()
	hopeful := c.hopeful
	c.hopeful = nil
	for _, s := range hopeful {
		c.touch(s)
	}
}

// withdrawClaims has all claims derived anew.
func (c *Cohort) withdrawClaims() {
	claiming := c.claiming
	c.claiming = nil
	for _, s := range claiming {
		c.release(s)
		c.touch(s)
	}
}

// step takes the next candidate and reports whether there was one.
func (p *pass) step() bool {
	p.review()
	switch {
	case p.owed.len() > 0:
		p.try(p.owed.first())
	case p.entitled.len() > 0:
		p.try(p.entitled.first())
	case p.borrow.len() > 0:
		p.try(p.borrow.first())
	case p.inShare.len() > 0:
		p.try(p.inShare.first())
	default:
		return false
	}
	return true
}

// review classifies every share that something happened to since.
func (p *pass) review() {
	if p.exposed {
		p.exposed = false
		p.touchBlocked(func(s *share) bool { return s.wants })
	}
	if len(p.eased) > 0 {
		units := p.eased
		p.touchBlocked(func(s *share) bool {
			d := s.head().line.shape
			return slices.ContainsFunc(units, func(u int) bool { return d.of(u) > 0 })
		})
		for _, u := range units {
			p.pools[u].eased = false
			p.pools[u].idleFloor, p.pools[u].freeFloor = math.MaxInt64, math.MaxInt64
		}
		p.eased = nil
	}
	for _, s := range p.dirty {
		p.classify(s)
	}
	p.dirty = p.dirty[:0]
}

// classify finds the first step of the pass in which a share's head may be a
// candidate.
func (c *Cohort) classify(s *share) {
	s.stage, s.at = stageNone, -1
	head := s.head()
	never := Reason{}
	if head != nil {
		never = c.neverFits(s, head.line.shape)
	}
	if never.Text != "" || s.parked != nil {
		c.listForParking(s)
	}
	switch {
	case head == nil:
	case never.Text != "":
		c.block(s, false, false)
	case s.owing > 0:
		s.stage = stageOwed
		c.owed.push(s)
	default:
		c.line(s, head)
	}
}

// line makes the share a candidate of the first of the steps 1 to 3 that its
// head may take.
func (c *Cohort) line(s *share, head *entry) {
	d := head.line.shape
	switch {
	case s.within(d, (*holdings).ownLimit):
		s.full, s.stage = s.fullness(), stageEntitled
		c.entitled.push(s)
	case s.def.Sharing == LendAndBorrow && s.within(d, (*holdings).borrowLimit):
		s.stage = stageBorrow
		c.borrow.push(s)
	case s.def.InSharePreemption:
		s.stage = stageInShare
		c.inShare.push(s)
	default:
		c.block(s, false, false)
	}
}

func (h *holdings) ownLimit() int64    { return h.nominal }
func (h *holdings) borrowLimit() int64 { return h.limit }

// within reports whether the demand on top of the projected usage is within
// the limit in every unit it wants.
func (s *share) within(d *shape, limit func(*holdings) int64) bool {
	for _, n := range d.needs {
		h := &s.units[n.unit]
		if h.projected()+n.amount > limit(h) {
			return false
		}
	}
	return true
}

// neverFits returns the reason, with its text of A7, why a demand can never be
// met, in the order of section 3 and A7; the zero Reason: it can.
func (c *Cohort) neverFits(s *share, d *shape) Reason {
	borrows := s.def.Sharing == LendAndBorrow
	checks := []struct {
		applies bool
		text    string
		limit   func(*pool, *holdings) int64
	}{
		{true, TextEnvironmentMax, func(p *pool, _ *holdings) int64 { return p.capacity }},
		{!borrows, TextShareLimit, func(_ *pool, h *holdings) int64 { return h.nominal }},
		{borrows, TextShareAndBorrowLimit, func(_ *pool, h *holdings) int64 { return h.limit }},
		{borrows, TextBorrowable, func(p *pool, h *holdings) int64 { return h.nominal + p.lend - h.lend }},
	}
	for _, check := range checks {
		if !check.applies {
			continue
		}
		for _, n := range d.needs {
			p := &c.pools[n.unit]
			if limit := check.limit(p, &s.units[n.unit]); n.amount > limit {
				return Reason{
					Code: Misconfiguration, Unit: p.unit, Wants: n.amount, Lacks: n.amount - limit,
					Place: 1, Text: check.text,
				}
			}
		}
	}
	return Reason{}
}

// emptier is the order of step 1: rank, then least usage relative to nominal,
// then the age of the head.
func (s *share) emptier(o *share) bool {
	if s.def.Rank != o.def.Rank {
		return s.def.Rank > o.def.Rank
	}
	if s.full.less(o.full) || o.full.less(s.full) {
		return s.full.less(o.full)
	}
	return s.head().older(o.head())
}

// longerWaiting is the order of steps 2 and 3: rank, then the age of the head.
func (s *share) longerWaiting(o *share) bool {
	if s.def.Rank != o.def.Rank {
		return s.def.Rank > o.def.Rank
	}
	return s.head().older(o.head())
}

// try lets a candidate start by the plan of its step. Where there is none it
// goes on to a later step, or is blocked.
func (p *pass) try(s *share) {
	step, head := s.stage, s.head()
	p.unstage(s)
	var pl plan
	var ok, hopeful bool
	switch step {
	case stageOwed:
		pl, ok = p.planOwed(s, head)
	case stageEntitled:
		pl, ok, hopeful = p.planEntitled(s, head)
	case stageBorrow:
		pl, ok = plan{ground: Borrow}, p.hasRoom(s, head.line.shape)
	default:
		pl, ok, hopeful = p.planInShare(s, head)
	}
	switch {
	case ok:
		p.carryOut(s, head, pl)
	case step == stageOwed:
		p.line(s, head)
	case step != stageInShare && s.def.InSharePreemption:
		s.stage = stageInShare
		p.inShare.push(s)
	default:
		p.block(s, hopeful || s.within(head.line.shape, (*holdings).ownLimit), hopeful)
	}
}

// planOwed lets a head claim, before all others, what is on its way back for
// its share, if that is enough.
func (p *pass) planOwed(s *share, head *entry) (plan, bool) {
	d := head.line.shape
	short := p.short(s, d)
	if s.within(d, (*holdings).ownLimit) {
		physical := len(short) > 0
		return plan{ground: Entitled, physical: physical, short: short},
			!physical || newTrial(p.Cohort).physical(s, d, short)
	}
	may := s.def.Sharing == LendAndBorrow && s.within(d, (*holdings).borrowLimit)
	return plan{ground: Borrow}, may && len(short) == 0
}

// carryOut preempts the plan's victims, or grants the head its demand if that
// is covered now; otherwise the head is nominated, and claims it.
func (p *pass) carryOut(s *share, head *entry, plan plan) {
	switch {
	case len(plan.victims) > 0:
		p.preempt(plan, s, head)
	case p.covered(s, head.line.shape, plan):
		p.grant(s, head, plan.ground)
	default:
		p.nominate(s, head, plan)
		return
	}
	p.touch(s)
	p.withdrawClaims()
}

// claim is what a nominated head claims of a unit, and how much of that is
// there now.
type claim struct {
	unit             int
	amount, reserved int64
}

// nominate lets the head claim what stopping jobs will give back.
func (p *pass) nominate(s *share, head *entry, plan plan) {
	s.stage, s.nominated, s.claims = stageNominated, head, nil
	p.claiming = append(p.claiming, s)
	for _, n := range head.line.shape.needs {
		c := claim{n.unit, n.amount, max(0, n.amount-max(0, p.uncovered(s, n, plan)))}
		s.claims = append(s.claims, c)
		p.shift(s, c.unit, booking{claimed: c.amount, reserved: c.reserved})
	}
}

// covered reports whether a planned demand is covered by what is there now,
// with stopping jobs holding what they hold, and without what others reserved
// (I1, I2, I3 and I3b).
func (p *pass) covered(s *share, d *shape, plan plan) bool {
	for _, n := range d.needs {
		if p.uncovered(s, n, plan) > 0 || plan.takes(n.unit) && p.borrowedFrom(s, n.unit) {
			return false
		}
	}
	return true
}

// takes reports whether the plan takes what is physically free of the unit.
func (pl plan) takes(unit int) bool { return pl.physical && slices.Contains(pl.short, unit) }

// uncovered is how much of a need is not there now; not positive: none.
func (p *pass) uncovered(s *share, n need, plan plan) int64 {
	b, h := &p.pools[n.unit], &s.units[n.unit]
	limit := h.nominal
	if plan.ground == Borrow {
		limit = h.limit
	}
	lacks := max(n.amount-b.free(&b.actual), h.usage+n.amount-limit)
	if plan.takes(n.unit) {
		return lacks
	}
	return max(lacks, b.lacks(h, b.actual.beyond, h.usage, n.amount))
}

// borrowedFrom reports whether any share but s uses more than its nominal.
func (c *Cohort) borrowedFrom(s *share, unit int) bool {
	return slices.ContainsFunc(c.list, func(o *share) bool {
		return o != s && o.units[unit].actual() > o.units[unit].nominal
	})
}

// preempt tells the plan's victims to stop, and records what they were chosen
// from.
func (p *pass) preempt(plan plan, s *share, head *entry) {
	alternative, spared := plan.field.passedOver(plan.victims)
	candidates := plan.field.size()
	for _, v := range plan.victims {
		p.decisions = append(p.decisions, Decision{
			Kind: Preempt, Job: v.job.id, Share: v.job.share().def.Name,
			Ground: v.ground(), For: head.id, ForShare: s.def.Name,
			LostWork: v.lost, Candidates: candidates,
			Alternative: alternative.lost, HasAlternative: spared,
		})
		p.stop(v.job, Preemption{Ground: v.ground(), For: head.id, ForShare: s.def.Name})
	}
}

func (p *pass) grant(s *share, head *entry, ground Ground) {
	s.leave(head)
	p.hold(head, held{since: p.now})
	p.decisions = append(p.decisions, Decision{
		Kind: Grant, Job: head.id, Share: s.def.Name, Ground: ground,
		Borrowed: p.borrowed(s, head.line.shape),
	})
}

// borrowed is the part of a demand just booked that is beyond the nominal.
func (c *Cohort) borrowed(s *share, d *shape) Amounts {
	var borrowed Amounts
	for _, n := range d.needs {
		h := &s.units[n.unit]
		if over := min(n.amount, h.usage-h.nominal); over > 0 {
			if borrowed == nil {
				borrowed = Amounts{}
			}
			borrowed[c.pools[n.unit].unit] = over
		}
	}
	return borrowed
}

// block sets a share aside until more is to be had than now. wants: new
// victims may help it. hopeful: so may another choice of victims.
func (c *Cohort) block(s *share, wants, hopeful bool) {
	s.stage, s.wants, s.at = stageBlocked, wants, len(c.blocked)
	c.blocked = append(c.blocked, s)
	if hopeful {
		c.hopeful = append(c.hopeful, s)
	}
	for _, n := range s.head().line.shape.needs {
		p := &c.pools[n.unit]
		p.idleFloor = min(p.idleFloor, p.idle(&p.projected))
		p.freeFloor = min(p.freeFloor, p.free(&p.projected))
	}
}

// release withdraws the claim of a share's nominated head.
func (c *Cohort) release(s *share) {
	if s.stage != stageNominated {
		return
	}
	for _, was := range s.claims {
		c.shift(s, was.unit, booking{claimed: -was.amount, reserved: -was.reserved})
	}
	s.stage, s.nominated, s.claims = stageNone, nil, nil
}

// touch has a share classified again. A nominated head keeps its claim until
// the next pass derives it anew.
func (c *Cohort) touch(s *share) {
	if s.stage == stageDirty || s.stage == stageNominated {
		return
	}
	c.unstage(s)
	s.stage = stageDirty
	c.dirty = append(c.dirty, s)
}

func (c *Cohort) touchAll() {
	for _, s := range c.list {
		c.touch(s)
	}
}

func (c *Cohort) touchBlocked(which func(*share) bool) {
	for i := len(c.blocked) - 1; i >= 0; i-- {
		if s := c.blocked[i]; which(s) {
			c.touch(s)
		}
	}
}

// unstage takes a share out of its stage.
func (c *Cohort) unstage(s *share) {
	switch s.stage {
	case stageOwed:
		c.owed.remove(s.at)
	case stageEntitled:
		c.entitled.remove(s.at)
	case stageBorrow:
		c.borrow.remove(s.at)
	case stageInShare:
		c.inShare.remove(s.at)
	case stageBlocked:
		last := c.blocked[len(c.blocked)-1]
		c.blocked[s.at], last.at = last, s.at
		c.blocked[len(c.blocked)-1] = nil
		c.blocked = c.blocked[:len(c.blocked)-1]
	}
	s.stage, s.at = stageNone, -1
}

// listForParking has the end of the pass look whether the share's head is to
// be told that it can never fit, or no longer.
func (c *Cohort) listForParking(s *share) {
	if !s.listed {
		s.listed = true
		c.parking = append(c.parking, s)
	}
}

// park tells heads that can never fit so, and takes it back from those for
// which that has changed.
func (p *pass) park() {
	slices.SortFunc(p.parking, func(a, b *share) int { return cmp.Compare(a.def.Name, b.def.Name) })
	for _, s := range p.parking {
		s.listed = false
		var parked *entry
		var never Reason
		if head := s.head(); head != nil {
			if never = p.neverFits(s, head.line.shape); never.Text != "" {
				parked = head
			}
		}
		if old := s.parked; old != nil && old != parked && p.jobs[old.id] == old && old.held == nil {
			p.decisions = append(p.decisions, Decision{Kind: Park, Job: old.id, Share: s.def.Name})
		}
		if parked != nil && (parked != s.parked || never.Text != s.text) {
			p.decisions = append(p.decisions, Decision{Kind: Park, Job: parked.id, Share: s.def.Name, Reason: never})
		}
		s.parked, s.text = parked, never.Text
	}
	p.parking = p.parking[:0]
}
