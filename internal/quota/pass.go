package quota

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// stage is where a share stands in a pass: which step its front, the first of
// its jobs that is not set aside, is a candidate of. Between passes a share is
// in stageNone (nothing waits), stageBlocked or stageNominated; what changes
// takes it out and has it lined up again. So a pass looks only at shares that
// something happened to, and its cost follows what changed.
type stage int8

const (
	stageNone      stage = iota
	stageDirty           // to be lined up
	stageOwed            // step 0: entitled, and jobs stop for the share
	stageEntitled        // step 1
	stageBorrow          // step 2
	stageInShare         // step 3
	stageOutbid          // step 4
	stageRebalance       // step 5
	stageBlocked         // none of its jobs can start as things are
	stageNominated       // Strict: the claim of its head stands, and nothing passes it

	firstStep = stageOwed
	lastStep  = stageRebalance
)

// Pass decides, at now, everything that can be decided (section 3), and
// applies its decisions to the cohort: what it grants is held from now on, what
// it preempts is stopping. After every grant and preemption all heads are
// candidates again and all claims are derived anew, so a second pass at once
// decides nothing more. Who is granted something and would lose it to the next
// that preempts is not told of either, unless jobs would take it from each other
// in turn. Among the entitled, and among those that borrow, first come the heads
// of shares that jobs stop for: what was taken back for them is theirs to claim.
// Park decisions come last, in order of share name.
func (c *Cohort) Pass(now time.Time) []Decision {
	at := now.UnixNano()
	c.wakeUp(at)
	c.settleRecords(now.UnixMilli())
	c.maturing = 0
	if c.policy.Paused {
		return nil
	}
	c.reconsider()
	p := pass{Cohort: c, now: at}
	for p.step() {
	}
	p.endPrecedence()
	p.park()
	return p.told()
}

// pass is one pass under way.
type pass struct {
	*Cohort
	now       int64
	decisions []Decision
	preempted int                // how many decisions there were when somebody was last told to stop
	annulled  map[annulment]bool // grants taken back before they were told
}

// annulment is whose grant was taken back, and for whom.
type annulment struct{ granted, taker *entry }

// told returns the decisions but those that were taken back.
func (p *pass) told() []Decision {
	if len(p.annulled) == 0 {
		return p.decisions
	}
	return slices.DeleteFunc(p.decisions, func(d Decision) bool { return d.Kind == "" })
}

// plan is how a job could start: on which ground, and after which jobs stop.
type plan struct {
	ground Ground
	// physically are the units that are taken because they are free and nothing
	// borrowed is left, though the quotas sum to more than the pool (I3).
	physically []int
	victims    []victim
	field      *field // what the victims were chosen from
}

// nomination is a job whose claim stands until stopping jobs are gone.
type nomination struct {
	job    *entry
	claims []claim
}

// claim is what a nominated job claims of a unit, and how much of that is
// there now.
type claim struct {
	unit             int
	amount, reserved int64
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

// reconsider makes candidates of all whose standing is not settled by the
// books alone: nominated jobs, and those for whom it depends on the choice of
// victims, or on the time.
func (c *Cohort) reconsider() {
	c.withdrawClaims()
	c.touchThe(&c.hopeful)
	c.touchThe(&c.withheld)
}

// withdrawClaims has all claims derived anew, and everybody looked at again for
// whom that may matter.
func (c *Cohort) withdrawClaims() {
	c.touchThe(&c.putOff)
	settled := c.settled
	c.settled = nil
	for _, s := range settled {
		s.settled = false
		c.touch(s)
	}
	claiming := c.claiming
	c.claiming = nil
	for _, s := range claiming {
		c.release(s)
		c.touch(s)
	}
}

// touchThe touches the shares of a list, which is empty then.
func (c *Cohort) touchThe(list *[]*share) {
	shares := *list
	*list = nil
	for _, s := range shares {
		c.touch(s)
	}
}

// step takes the next candidate and reports whether there was one.
func (p *pass) step() bool {
	p.review()
	for step := firstStep; step <= lastStep; step++ {
		if p.steps[step].len() > 0 {
			p.try(p.steps[step].first())
			return true
		}
	}
	return false
}

// review lines up every share that something happened to since.
func (p *pass) review() {
	if p.exposed {
		p.exposed = false
		p.touchBlocked(func(s *share) bool { return s.wants })
	}
	if len(p.moved) > 0 {
		wants := func(d *shape) bool {
			return slices.ContainsFunc(p.moved, func(u int) bool { return d.of(u) > 0 })
		}
		p.touchBlocked(func(s *share) bool {
			tried := func(l *line) bool { return wants(l.shape) }
			return s.tried && wants(s.next.line.shape) || slices.ContainsFunc(s.shut, tried) ||
				s.late && slices.ContainsFunc(s.open.items, tried)
		})
		for _, u := range p.moved {
			p.pools[u].forget()
		}
		p.moved = p.moved[:0]
	}
	for _, s := range p.dirty {
		s.stage, s.at = stageNone, -1
		p.lineUp(s)
	}
	p.dirty = p.dirty[:0]
}

// lineUp makes the share's front a candidate of the first step that it may
// take, after setting aside those that can never start.
func (c *Cohort) lineUp(s *share) {
	if len(s.told) > 0 {
		c.listForParking(s)
	}
	if c.policy.Queueing != Strict && c.enterOwed(s) {
		return
	}
	for {
		front := s.front()
		switch {
		case front == nil && !s.late && c.hasLateSteps(s) && s.reconsider():
			continue
		case front == nil:
			c.rest(s)
		case c.neverFits(s, front.line.shape).Text != "":
			c.listForParking(s)
			s.setAside().never = true
			if c.policy.Queueing != Strict {
				continue
			}
			c.rest(s)
		default:
			c.enter(s, front, firstStep)
		}
		return
	}
}

// enter makes the front a candidate of the first step, from the one given,
// that it may take.
func (c *Cohort) enter(s *share, front *entry, from stage) {
	s.next = front
	first, last := c.stepsOf(s)
	for step := max(from, first); step <= last; step++ {
		if c.mayTake(s, front, step) {
			s.stage = step
			c.steps[step].push(s)
			return
		}
	}
	c.block(s, false)
}

// stepsOf are the first and the last step that the share's jobs are candidates
// of. Where others may pass a blocked job, all of a share are looked at for its own
// quota and for what is idle before any preempts for more than that: so whoever
// is entitled goes before those that borrow, also behind a blocked job.
func (c *Cohort) stepsOf(s *share) (first, last stage) {
	switch {
	case c.policy.Queueing == Strict:
		return firstStep, lastStep
	case s.late:
		return stageInShare, lastStep
	}
	return firstStep, stageBorrow
}

// hasLateSteps reports whether blocked jobs of the share are candidates again.
func (c *Cohort) hasLateSteps(s *share) bool {
	return c.policy.Queueing != Strict && (s.def.InSharePreemption || c.policy.BorrowerPreemption || c.policy.Rebalance)
}

// mayTake reports whether the front could start in a step at all, and notes
// what the step's order depends on.
func (c *Cohort) mayTake(s *share, front *entry, step stage) bool {
	d := front.line.shape
	mayBorrow := s.def.Sharing == LendAndBorrow
	switch step {
	case stageOwed:
		return c.isOwed(s) && s.within(d, (*holdings).ownLimit)
	case stageEntitled:
		s.full, s.burden = s.fullness(), c.due(s)
		return s.within(d, (*holdings).ownLimit)
	case stageBorrow:
		if !mayBorrow || s.within(d, (*holdings).ownLimit) || !s.within(d, (*holdings).borrowLimit) {
			return false
		}
		if c.policy.IdleAssignment == FairShare {
			s.worth = c.worth(s, func(u int) int64 { return s.units[u].projected() + d.of(u) })
		}
		return true
	case stageInShare:
		return s.def.InSharePreemption
	case stageOutbid, stageRebalance:
		if !mayBorrow || s.within(d, (*holdings).ownLimit) {
			return false
		}
		if step == stageOutbid {
			return c.policy.BorrowerPreemption
		}
		return c.policy.Rebalance && c.policy.IdleAssignment == FairShare
	}
	return false
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
	checks := [...]struct {
		applies bool
		text    string
		limit   func(*pool, *holdings) int64
	}{
		{true, TextEnvironmentMax, func(p *pool, _ *holdings) int64 { return p.capacity }},
		{!borrows, TextShareLimit, func(_ *pool, h *holdings) int64 { return h.nominal }},
		{borrows, TextShareAndBorrowLimit, func(_ *pool, h *holdings) int64 { return h.limit }},
		{borrows, TextBorrowable, func(p *pool, h *holdings) int64 { return h.nominal + p.lendable() - h.lend }},
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

// emptier is the order of step 1: rank, then in fair-share queues least recent
// use for the weight, then least usage relative to nominal, then the age of the
// front.
func (s *share) emptier(o *share) bool {
	if s.def.Rank != o.def.Rank {
		return s.def.Rank > o.def.Rank
	}
	if s.burden != o.burden {
		return s.burden.less(o.burden)
	}
	if s.full.less(o.full) || o.full.less(s.full) {
		return s.full.less(o.full)
	}
	return s.next.older(o.next)
}

// longerWaiting is the order of step 0: rank, then the age of the front.
func (s *share) longerWaiting(o *share) bool {
	if s.def.Rank != o.def.Rank {
		return s.def.Rank > o.def.Rank
	}
	return s.next.older(o.next)
}

// goesFirst is the order of steps 3 to 5: where priorities compare across
// shares, they go before age.
func (c *Cohort) goesFirst(a, b *share) bool {
	if c.policy.PriorityScope == InCohort && a.def.Rank == b.def.Rank {
		return a.next.ahead(b.next)
	}
	return a.longerWaiting(b)
}

// borrowsFirst is the order of step 2: those that jobs stop for, then by how
// idle capacity is assigned.
func (c *Cohort) borrowsFirst(a, b *share) bool {
	if owedA, owedB := c.isOwed(a), c.isOwed(b); owedA || owedB {
		if owedA && owedB {
			return a.longerWaiting(b)
		}
		return owedA
	}
	if c.policy.IdleAssignment == FIFO || a.def.Rank != b.def.Rank {
		return c.goesFirst(a, b)
	}
	if less := a.worth.compare(b.worth); less != 0 {
		return less < 0
	}
	return a.next.ahead(b.next)
}

// try lets a candidate start by the plan of its step. Where there is none it
// goes on to a later step, or is blocked.
func (p *pass) try(s *share) {
	step, front := s.stage, s.next
	p.unstage(s)
	if s.behind != nil && s.behind != front && p.policy.Queueing == Backfill {
		if ok, longest := p.mayBackfill(p.now, s.behind, front); !ok {
			p.passOver(s, longest)
			return
		}
	}
	var pl plan
	var ok, hopeful bool
	switch step {
	case stageOwed:
		pl, ok = p.planOwed(s, front)
	case stageEntitled:
		pl, ok, hopeful = p.planEntitled(s, front)
	case stageBorrow:
		pl, ok = plan{ground: Borrow}, p.hasRoom(s, front.line.shape)
	case stageInShare:
		pl, ok, hopeful = p.planInShare(s, front)
	default:
		pl, ok, hopeful = p.planOutbid(s, front, step == stageRebalance)
	}
	if ok {
		p.carryOut(s, front, pl)
		return
	}
	s.wants = s.wants || hopeful || p.policy.BorrowerPreemption || p.policy.Rebalance ||
		s.within(front.line.shape, (*holdings).ownLimit)
	if hopeful {
		p.hopeful = append(p.hopeful, s)
	}
	s.tried = true
	p.watch(s, front.line.shape)
	if p.policy.Queueing != Strict && p.isOwed(s) {
		s.settled = true // it has to take its turn
		p.settled = append(p.settled, s)
		p.lineUp(s)
		return
	}
	p.enter(s, front, step+1)
}

// planOwed lets an entitled share claim, before all others, what is on its way
// back for it, if that is enough for its first job.
func (p *pass) planOwed(s *share, front *entry) (plan, bool) {
	t := newTrial(p.Cohort)
	d := front.line.shape
	return plan{ground: Entitled, physically: t.unlendable(s, d)}, t.entitled(s, d)
}

// carryOut preempts the plan's victims, or grants the front its demand if that
// is covered now; otherwise the front is nominated, and claims it. Victims that
// were all granted in this pass only do not start.
func (p *pass) carryOut(s *share, front *entry, plan plan) {
	switch {
	case p.annulAll(plan.victims, front):
		p.promise(s, front.id)
	case len(plan.victims) > 0:
		p.preempt(plan, s, front)
	case p.covered(s, front.line.shape, plan):
		p.grant(s, front, plan.ground)
	default:
		p.nominate(s, front, plan)
		return
	}
	p.touch(s)
	p.withdrawClaims()
}

// nominate lets the front claim what stopping jobs will give back.
func (p *pass) nominate(s *share, front *entry, plan plan) {
	p.watchTime(s, front)
	s.leave(front)
	front.nominated = true
	if len(s.nominated) == 0 {
		p.claiming = append(p.claiming, s)
	}
	n := &nomination{job: front}
	s.nominated = append(s.nominated, n)
	for _, need := range front.line.shape.needs {
		c := claim{need.unit, need.amount, max(0, need.amount-max(0, p.uncovered(s, need, plan)))}
		n.claims = append(n.claims, c)
		p.shift(s, c.unit, booking{claimed: c.amount, reserved: c.reserved})
	}
	p.touchThe(&p.putOff)
	switch {
	case p.policy.Queueing == Strict:
		s.stage = stageNominated
	case s.stage != stageDirty:
		p.lineUp(s)
	}
}

// watchTime has it looked at again when a job that is nominated, and passes a
// blocked one because it ends before that can start, would end too late.
func (p *pass) watchTime(s *share, front *entry) {
	if p.policy.Queueing != Backfill || s.behind == nil || s.behind == front || front.maxRuntime == 0 {
		return
	}
	_, at, ok := p.outlook(p.now, s, s.behind.line.shape, nil)
	if tooLate := at - front.maxRuntime + 1; ok && tooLate > p.now {
		p.lookAgainAt(tooLate)
	}
}

// release withdraws the claims of a share's nominated jobs, which wait as
// before.
func (c *Cohort) release(s *share) {
	nominated := s.nominated
	s.nominated = nil
	c.unstage(s)
	for _, n := range nominated {
		for _, was := range n.claims {
			c.shift(s, was.unit, booking{claimed: -was.amount, reserved: -was.reserved})
		}
		n.job.nominated = false
		s.join(n.job)
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
func (pl plan) takes(unit int) bool { return slices.Contains(pl.physically, unit) }

// uncovered is how much of a need is not there now; not positive: none.
func (p *pass) uncovered(s *share, n need, plan plan) int64 {
	b, h := &p.pools[n.unit], &s.units[n.unit]
	limit := h.nominal
	if plan.ground == Borrow {
		limit = h.limit
	}
	lacks := max(n.amount-b.free(&b.actual), h.actual()+n.amount-limit)
	if plan.takes(n.unit) {
		return lacks
	}
	return max(lacks, b.lacks(h, b.actual.beyond, h.actual(), n.amount))
}

// borrowedFrom reports whether any share but s uses more than its nominal.
func (c *Cohort) borrowedFrom(s *share, unit int) bool {
	return slices.ContainsFunc(c.list, func(o *share) bool {
		return o != s && o.units[unit].usage > o.units[unit].nominal
	})
}

// preempt tells the plan's victims to stop, and records what they were chosen
// from.
func (p *pass) preempt(plan plan, s *share, front *entry) {
	alternative, spared := plan.field.passedOver(plan.victims)
	candidates := plan.field.size()
	for _, v := range plan.victims {
		p.decisions = append(p.decisions, Decision{
			Kind: Preempt, Job: v.job.id, Share: v.job.share().def.Name,
			Ground: v.ground, For: front.id, ForShare: s.def.Name,
			LostWork: v.lost, Candidates: candidates,
			Alternative: alternative.lost, HasAlternative: spared,
		})
		p.stop(v.job, Preemption{Ground: v.ground, For: front.id, ForShare: s.def.Name})
	}
	p.preempted = len(p.decisions)
}

// isFresh reports whether the job was granted in this pass, as the last of its
// share, and nobody was told to stop since: that may have depended on what its
// share uses.
func (p *pass) isFresh(e *entry) bool {
	at := int(e.held.granted) - 1
	return e.share().latest == e && at >= p.preempted && at < len(p.decisions) && p.decisions[at].Kind == Grant && p.decisions[at].Job == e.id
}

// annulAll takes back what victims were granted, if that is true of all of them,
// and reports whether it is.
func (p *pass) annulAll(victims []victim, taker *entry) bool {
	for _, v := range victims {
		if !p.isFresh(v.job) || p.annulled[annulment{v.job, taker}] {
			return false
		}
	}
	for _, v := range victims {
		p.annul(v.job, taker)
	}
	return len(victims) > 0
}

// annul takes back a grant of this pass: the job never started, and waits as
// before. That happens where another job comes to be looked at only after those
// before it in its share were found blocked. What the grant took goes to that one,
// and never twice from the same to the same, lest there be no end of it.
func (p *pass) annul(e, taker *entry) {
	if p.annulled == nil {
		p.annulled = map[annulment]bool{}
	}
	p.annulled[annulment{e, taker}] = true
	p.decisions[e.held.granted-1] = Decision{}
	p.drop(e)
	e.share().settleUse()
	p.wait(e, 0)
}

func (p *pass) grant(s *share, front *entry, ground Ground) {
	s.leave(front)
	if s.owed.forget(front.id); p.policy.Queueing == Strict {
		s.owed.back = nil
	}
	if len(s.told) > 0 {
		p.listForParking(s)
	}
	p.hold(front, p.now)
	if s.settleUse(); s.record != nil {
		p.touchThe(&p.withheld) // the more use something, the less is reserved for those that do not
	}
	s.latest, front.held.granted = front, int32(len(p.decisions)+1)
	p.decisions = append(p.decisions, Decision{
		Kind: Grant, Job: front.id, Share: s.def.Name, Ground: ground,
		Borrowed: p.borrowed(s, front.line.shape),
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

// block sets the front's shape aside until more is to be had than now, and
// goes on to what may pass it. later: not because it does not fit, but because
// it could delay a job before it.
func (c *Cohort) block(s *share, later bool) {
	front := s.front()
	s.setAside()
	if later {
		c.putOff = append(c.putOff, s)
	} else if s.behind == nil {
		s.behind = front
	}
	s.tried = false
	c.watch(s, front.line.shape)
	if c.policy.Queueing == Strict {
		c.rest(s)
		return
	}
	c.lineUp(s)
}

// passOver goes on to who may pass the share's blocked job though the front may
// not: of those that want as much, who last no longer than would do.
func (c *Cohort) passOver(s *share, longest int64) {
	l := s.open.first()
	if s.skip(l, longest) {
		c.lineUp(s)
		return
	}
	l.later = true
	c.block(s, true)
}

// watch remembers how much there was when a demand of the share did not fit:
// at other levels it is looked at again.
func (c *Cohort) watch(s *share, d *shape) {
	for _, n := range d.needs {
		p := &c.pools[n.unit]
		idle := p.idle(&p.projected)
		p.idleFloor = min(p.idleFloor, idle)
		p.freeFloor = min(p.freeFloor, p.free(&p.projected))
		if lacks := c.lacksIn(s, n); lacks <= 0 && s.wants {
			// Once short of this unit too, it may reclaim who holds both.
			p.idleCeil = max(p.idleCeil, idle+lacks)
		}
	}
}

// rest leaves a share that has no more candidates until something changes.
func (c *Cohort) rest(s *share) {
	if len(s.shut) == 0 {
		return
	}
	s.stage, s.at = stageBlocked, len(c.blocked)
	c.blocked = append(c.blocked, s)
}

// touch has a share lined up again, with all of its shapes. Under Strict a
// nominated head keeps its claim until it is derived anew.
func (c *Cohort) touch(s *share) {
	if s.stage == stageDirty || c.policy.Queueing == Strict && len(s.nominated) > 0 {
		return
	}
	c.unstage(s)
	s.reopen()
	s.stage = stageDirty
	c.dirty = append(c.dirty, s)
}

// touchAll follows a change of the rules.
func (c *Cohort) touchAll() {
	for i := range c.pools {
		p := &c.pools[i]
		p.spare = 0
		if c.policy.ShareUnallocated {
			p.spare = max(0, p.capacity-p.nominal)
		}
	}
	for _, s := range c.list {
		c.touch(s)
	}
}

// touchBlocked touches, of the shares that found too little for a job without
// somebody stopping, those for which that may have changed.
func (c *Cohort) touchBlocked(which func(*share) bool) {
	for i := len(c.blocked) - 1; i >= 0; i-- {
		if s := c.blocked[i]; which(s) {
			c.touch(s)
		}
	}
	for step := firstStep + 1; step <= lastStep; step++ {
		for _, s := range slices.Clone(c.steps[step].items) {
			if (s.tried || s.late || len(s.shut) > 0) && which(s) {
				c.touch(s)
			}
		}
	}
}

// unstage takes a share out of its stage.
func (c *Cohort) unstage(s *share) {
	switch {
	case s.stage >= firstStep && s.stage <= lastStep:
		c.steps[s.stage].remove(s.at)
	case s.stage == stageBlocked:
		last := c.blocked[len(c.blocked)-1]
		c.blocked[s.at], last.at = last, s.at
		c.blocked[len(c.blocked)-1] = nil
		c.blocked = c.blocked[:len(c.blocked)-1]
	case s.stage == stageDirty:
		return
	}
	s.stage, s.at = stageNone, -1
}

// listForParking has the end of the pass look which of the share's jobs are to
// be told that they can never fit, or no longer.
func (c *Cohort) listForParking(s *share) {
	if !s.listed {
		s.listed = true
		c.parking = append(c.parking, s)
	}
}

// park tells jobs that can never fit so, and takes it back from those for
// which that has changed.
func (p *pass) park() {
	slices.SortFunc(p.parking, func(a, b *share) int { return cmp.Compare(a.def.Name, b.def.Name) })
	for _, s := range p.parking {
		s.listed = false
		parked := p.parkedJobs(s)
		for _, e := range slices.SortedFunc(maps.Keys(s.told), byAhead) {
			if _, still := parked[e]; still {
				continue
			}
			delete(s.told, e)
			if p.jobs[e.id] == e && e.held == nil {
				p.decisions = append(p.decisions, Decision{Kind: Park, Job: e.id, Share: s.def.Name})
			}
		}
		for _, e := range slices.SortedFunc(maps.Keys(parked), byAhead) {
			never := parked[e]
			if s.told[e] == never.Text {
				continue
			}
			s.tell(e, never.Text)
			p.decisions = append(p.decisions, Decision{Kind: Park, Job: e.id, Share: s.def.Name, Reason: never})
		}
	}
	p.parking = p.parking[:0]
}

// tell notes what a job of the share was told.
func (s *share) tell(e *entry, text string) {
	if s.told == nil {
		s.told = map[*entry]string{}
	}
	s.told[e] = text
}

// parkedJobs returns the jobs that can never fit: under Strict only the head
// is looked at, otherwise all.
func (c *Cohort) parkedJobs(s *share) map[*entry]Reason {
	parked := map[*entry]Reason{}
	for _, l := range s.shut {
		if !l.never {
			continue
		}
		jobs := l.jobs.items
		if c.policy.Queueing == Strict {
			jobs = jobs[:1]
		}
		never := c.neverFits(s, l.shape)
		for _, e := range jobs {
			parked[e] = never
		}
	}
	return parked
}
