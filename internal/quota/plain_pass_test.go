package quota_test

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// ---- Section 3: one pass

// Pass looks at everything until it finds something to decide, and begins anew
// until it finds nothing. So a second pass at once decides nothing.
func (p *plain) Pass(now time.Time) []quota.Decision {
	p.now = now
	p.count()
	p.claims, p.turns = map[quota.JobID]claim{}, map[string]*turn{}
	p.granted, p.annulled, p.broken = map[quota.JobID]bool{}, map[annulment]bool{}, nil
	var decisions []quota.Decision
	for !p.policy.Paused {
		found := p.look()
		if len(found) == 0 {
			break
		}
		decisions = append(decisions, found...)
	}
	if !p.policy.Paused {
		decisions = append(decisions, p.park()...)
		p.forgetGivenBack()
	}
	for name, u := range p.use {
		u.rate = p.inUse(name)
	}
	p.explain()
	return withoutAnnulled(decisions)
}

// annul is a decision that is told to nobody: a grant of the same pass is taken
// back, for another job.
const annul quota.Kind = "annul"

type annulment struct{ granted, taker quota.JobID }

// withoutAnnulled leaves out what was granted and taken back.
func withoutAnnulled(decisions []quota.Decision) (told []quota.Decision) {
	for _, d := range decisions {
		if d.Kind != annul {
			told = append(told, d)
			continue
		}
		told = slices.DeleteFunc(told, func(g quota.Decision) bool { return g.Kind == quota.Grant && g.Job == d.Job })
	}
	return told
}

// step is a part of the pass.
type step int

const (
	keepPromises step = iota
	serveEntitled
	lendIdle
	preemptInShare
	outbidBorrowers
	rebalance
	noStep // the share has no candidate left
)

// turn is how far a share got in a look: which of its jobs is the candidate of
// which step.
type turn struct {
	candidate *plainJob
	step      step
	blocked   map[string]bool      // demands that fit in no step: nobody who wants that is tried again
	behind    *plainJob            // its first blocked job
	delaying  map[quota.JobID]bool // who could delay that
	late      bool                 // its blocked jobs are candidates again, of the steps after lendIdle
	settled   bool                 // what is on its way was not enough for whom it is for
}

// look derives all claims from the state, anew after every decision: so a
// claim of a borrower never stands before that of an entitled job. The
// candidate of the earliest step goes first.
func (p *plain) look() []quota.Decision {
	p.claims, p.turns = map[quota.JobID]claim{}, map[string]*turn{}
	for name := range p.shares {
		p.turns[name] = &turn{}
	}
	p.lineUpAll()
	for {
		share, ok := p.next()
		if !ok {
			return nil
		}
		if decisions := p.try(share); len(decisions) > 0 {
			return decisions
		}
	}
}

// lineUpAll begins with every share from its first job again.
func (p *plain) lineUpAll() {
	for name, t := range p.turns {
		t.blocked, t.behind, t.delaying, t.late = map[string]bool{}, nil, map[quota.JobID]bool{}, false
		p.lineUp(name)
	}
}

// lineUp makes the share's first job that nothing is known of yet its
// candidate. Strict: nothing passes the head.
func (p *plain) lineUp(share string) {
	t := p.turns[share]
	t.candidate, t.step = nil, noStep
	if p.lineUpPromised(share) {
		return
	}
	for _, j := range p.line(share) {
		if !p.claimed(j) && !t.blocked[j.shape] && !t.delaying[j.ID] && p.neverFits(j).Text == "" {
			t.candidate = j
			p.enter(share, keepPromises)
			return
		}
		if p.policy.Queueing == quota.Strict {
			return
		}
	}
	if !t.late {
		t.late, t.blocked = true, map[string]bool{}
		p.lineUp(share)
	}
}

// lineUpPromised: where jobs may pass the head, the first for which others stop
// comes before all of its share, if what they give back could be enough.
func (p *plain) lineUpPromised(share string) bool {
	t := p.turns[share]
	if p.policy.Queueing == quota.Strict || t.settled {
		return false
	}
	for _, j := range p.line(share) {
		if p.claimed(j) || !p.hasPrecedence(j) {
			continue
		}
		for _, step := range []step{keepPromises, lendIdle} {
			if p.neverFits(j).Text == "" && p.mayTake(j, step) {
				t.candidate, t.step = j, step
				return true
			}
		}
		return false
	}
	return false
}

// enter has the candidate go on with the first step, from the one given, that
// it may take. One that fits in none is set aside with all that want the same.
func (p *plain) enter(share string, from step) {
	t := p.turns[share]
	for t.step = from; t.step < noStep; t.step++ {
		early := t.step <= lendIdle
		if p.policy.Queueing != quota.Strict && early == t.late {
			continue // all of a share are tried in the early steps first
		}
		if p.mayTake(t.candidate, t.step) {
			return
		}
	}
	if t.behind == nil {
		t.behind = t.candidate
	}
	t.blocked[t.candidate.shape] = true
	p.lineUp(share)
}

func (p *plain) mayTake(j *plainJob, step step) bool {
	s, owns := p.shares[j.Share], p.withinQuota(p.projected(), j)
	borrows := s.Sharing == quota.LendAndBorrow && !owns
	switch step {
	case keepPromises:
		return owns && p.hasPrecedence(j)
	case serveEntitled:
		return owns
	case lendIdle:
		return borrows && len(p.beyondMost(p.projected(), j)) == 0
	case preemptInShare:
		return s.InSharePreemption
	case outbidBorrowers:
		return borrows && p.policy.BorrowerPreemption
	case rebalance:
		return borrows && p.policy.Rebalance && p.policy.IdleAssignment == quota.FairShare
	}
	return false
}

// next returns the share whose candidate is to be tried next.
func (p *plain) next() (share string, ok bool) {
	var first *turn
	for _, name := range slices.Sorted(maps.Keys(p.turns)) {
		if t := p.turns[name]; t.step < noStep && (first == nil || p.before(t, first)) {
			share, first = name, t
		}
	}
	return share, first != nil
}

// try is one step for one candidate.
func (p *plain) try(share string) []quota.Decision {
	t := p.turns[share]
	j := t.candidate
	if p.policy.Queueing == quota.Backfill && t.behind != nil && t.behind != j && !p.mayBackfill(t.behind, j) {
		for _, like := range p.line(share) { // at once with all of its shape that last too long
			if like.shape == j.shape && !p.mayBackfill(t.behind, like) {
				t.delaying[like.ID] = true
			}
		}
		p.lineUp(share)
		return nil
	}
	decisions, taken := p.startBy(t.step, j)
	if len(decisions) > 0 {
		return decisions
	}
	switch {
	case taken: // who was short of one thing may now be short of another, and of whom it may have stop
		p.lineUpAll()
	case p.policy.Queueing != quota.Strict && p.hasPrecedence(j):
		t.settled = true // it waits in its place now
		p.lineUp(share)
	default:
		p.enter(share, t.step+1)
	}
	return nil
}

// startBy lets the candidate start as the step says, if it can: it is granted
// its demand, or nominated, or others are told to stop.
func (p *plain) startBy(step step, j *plainJob) (decisions []quota.Decision, taken bool) {
	if _, lacks := p.reservedFor(j); lacks > 0 && step == serveEntitled {
		return nil, false
	}
	if step <= lendIdle {
		if decisions, taken = p.take(j); taken {
			return decisions, true
		}
	}
	return p.preempt(j, p.choiceIn(step, j)), false
}

// choiceIn returns whom the step lets the candidate make stop.
func (p *plain) choiceIn(step step, j *plainJob) plan {
	switch step {
	case serveEntitled:
		return p.reclaim(j)
	case preemptInShare:
		return p.outrank(j)
	case outbidBorrowers, rebalance:
		return p.outbid(j, step == rebalance)
	}
	return plan{}
}

// ---- Step 0: a claim stands

// hasPrecedence: who others stop for comes before all others, or else what was
// preempted for it would go to somebody else, and it would preempt more. Where
// nothing passes the head, that is the head, whichever job they stop for.
func (p *plain) hasPrecedence(j *plainJob) bool {
	promised := maps.Clone(p.givenBack[j.Share])
	if promised == nil {
		promised = map[quota.JobID]bool{}
	}
	for _, other := range p.jobs {
		if stops(other) && other.holding.Stopping.ForShare == j.Share {
			promised[other.holding.Stopping.For] = true
		}
	}
	if p.policy.Queueing == quota.Strict {
		return len(promised) > 0
	}
	return promised[j.ID] && !p.turns[j.Share].settled
}

// forgetGivenBack ends the promise to those that have not even nominated what
// was given back for them.
func (p *plain) forgetGivenBack() {
	for share, promised := range p.givenBack {
		maps.DeleteFunc(promised, func(id quota.JobID, _ bool) bool {
			if p.policy.Queueing == quota.Strict {
				j := p.jobs[id]
				return !p.hasClaims(share) || j == nil || holds(j)
			}
			_, claims := p.claims[id]
			return !claims
		})
	}
}

func (p *plain) hasClaims(share string) bool {
	for id := range p.claims {
		if p.jobs[id].Share == share {
			return true
		}
	}
	return false
}

// ---- Who is tried first

// before is the order of candidates: the earlier step, and in each its own.
func (p *plain) before(a, b *turn) bool {
	x, y := a.candidate, b.candidate
	if a.step != b.step {
		return a.step < b.step
	}
	switch a.step {
	case keepPromises:
		return cmp.Or(p.byRank(x, y), byAge(x, y)) < 0
	case serveEntitled:
		return cmp.Or(p.byRank(x, y), p.byUse(x, y), p.byNeed(x, y), byAge(x, y)) < 0
	case lendIdle:
		return p.byBorrowing(x, y) < 0
	}
	return cmp.Or(p.byRank(x, y), p.inCohort(x, y), byAge(x, y)) < 0
}

func (p *plain) byRank(a, b *plainJob) int {
	return -cmp.Compare(p.shares[a.Share].Rank, p.shares[b.Share].Rank)
}

// inCohort: higher priority first, where those of different shares compare.
func (p *plain) inCohort(a, b *plainJob) int {
	if p.policy.PriorityScope == quota.InCohort {
		return byPriority(a, b)
	}
	return 0
}

func byPriority(a, b *plainJob) int { return -cmp.Compare(a.Priority, b.Priority) }

func byAge(a, b *plainJob) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }

// byNeed: the least usage relative to nominal first.
func (p *plain) byNeed(x, y *plainJob) int {
	return compareRatios(p.relativeUsage(x.Share), p.relativeUsage(y.Share))
}

// relativeUsage is the largest usage ÷ nominal over all units, as an exact
// fraction of what the share really uses; nil is infinite: it uses a unit of
// which it owns nothing.
func (p *plain) relativeUsage(share string) *big.Rat {
	b := p.held()
	return p.largest(func(u quota.Unit) (int64, int64) { return b.usage(share, u), p.shares[share].Nominal[u] })
}

// largest returns the largest fraction over all units that is positive, as an
// exact number; nil is infinite.
func (p *plain) largest(fraction func(quota.Unit) (over, under int64)) *big.Rat {
	largest := new(big.Rat)
	for _, u := range p.units() {
		over, under := fraction(u)
		switch {
		case over <= 0:
		case under == 0:
			return nil
		default:
			if r := big.NewRat(over, under); r.Cmp(largest) > 0 {
				largest = r
			}
		}
	}
	return largest
}

// compareRatios compares exact numbers, of which nil is the largest.
func compareRatios(x, y *big.Rat) int {
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	return x.Cmp(y)
}

// byBorrowing is the order of step 2: those for whom others stop, then by idle
// assignment.
func (p *plain) byBorrowing(x, y *plainJob) int {
	px, py := p.hasPrecedence(x), p.hasPrecedence(y)
	switch {
	case px && py:
		return cmp.Or(p.byRank(x, y), byAge(x, y))
	case px:
		return -1
	case py:
		return 1
	case p.policy.IdleAssignment == quota.FIFO:
		return cmp.Or(p.byRank(x, y), p.inCohort(x, y), byAge(x, y))
	}
	b := p.projected()
	return cmp.Or(
		p.byRank(x, y),
		p.valueOf(b.with(x), x.Share).compare(p.valueOf(b.with(y), y.Share)),
		byPriority(x, y), byAge(x, y))
}

// value is how much of what is lendable a share borrows, for its weight. Of
// weight 0 it is after all others; but who borrows nothing has 0.
type value struct {
	last  bool
	ratio *big.Rat // nil: infinite
}

func (v value) compare(w value) int {
	switch {
	case v.last && !w.last:
		return 1
	case w.last && !v.last:
		return -1
	}
	return compareRatios(v.ratio, w.ratio)
}

// valueOf: among those of weight 0 it is as if they had weight 1.
func (p *plain) valueOf(b books, share string) value {
	s := p.shares[share]
	ratio := p.largest(func(u quota.Unit) (int64, int64) {
		return b.usage(share, u) - s.Nominal[u], p.lendable(u) * max(1, s.Weight)
	})
	return value{s.Weight == 0 && (ratio == nil || ratio.Sign() > 0), ratio}
}

// ---- How a job fits

func (p *plain) claimed(j *plainJob) bool {
	_, ok := p.claims[j.ID]
	return ok
}

// way is how a job fits: on which ground, and in which units only because
// nothing borrowed is left and the capacity is physically free (I3's exception).
type way struct {
	ground     quota.Ground
	physically []quota.Unit
}

// fits says how the job fits into the books, if it does, with no victims.
func (p *plain) fits(b books, j *plainJob) (way, bool) {
	if !p.withinQuota(b, j) {
		return way{ground: quota.Borrow}, p.mayBorrow(b, j)
	}
	unlendable := p.unlendable(b, j)
	return way{quota.Entitled, unlendable}, p.physicallyFree(b, j) && p.nothingBorrowed(b, j, unlendable)
}

func (p *plain) mayBorrow(b books, j *plainJob) bool {
	return p.shares[j.Share].Sharing == quota.LendAndBorrow && len(p.beyondMost(b, j)) == 0 && p.lendingAllows(b, j)
}

func (p *plain) nothingBorrowed(b books, j *plainJob, units []quota.Unit) bool {
	for name := range p.shares {
		if name != j.Share && p.over(b, name, units) {
			return false
		}
	}
	return true
}

// claim is what a nominated job waits for, and the part of it that is there
// now: nobody behind it may take either.
type claim struct {
	way
	reserved quota.Amounts
}

// availableNow is the most of a unit that the job could have now, with nothing
// given back yet, of the amount it demands.
func (p *plain) availableNow(j *plainJob, w way, u quota.Unit) int64 {
	b, s := p.present(), p.shares[j.Share]
	limit := s.Nominal[u]
	if w.ground == quota.Borrow {
		limit = most(s, u)
	}
	available := min(j.Demand[u], p.free(b, u), limit-b.usage(s.Name, u))
	if !slices.Contains(w.physically, u) {
		available = min(available, j.Demand[u]-p.lacks(b, s, u, j.Demand[u]))
	}
	return max(0, available)
}

// coveredNow says whether the job could start now in the way in which it fits
// once all stopping jobs are gone.
func (p *plain) coveredNow(j *plainJob, w way) bool {
	scarce := unitsWhere(j, func(u quota.Unit, amount int64) bool { return p.availableNow(j, w, u) < amount })
	return len(scarce) == 0 && p.nothingBorrowed(p.held(), j, w.physically)
}

// take grants the job what it fits into, or nominates it.
func (p *plain) take(j *plainJob) (decisions []quota.Decision, taken bool) {
	w, ok := p.fits(p.projected(), j)
	if !ok {
		return nil, false
	}
	if !p.coveredNow(j, w) {
		p.nominate(j, w)
		return nil, true
	}
	d := quota.Decision{Kind: quota.Grant, Job: j.ID, Share: j.Share, Ground: w.ground, Borrowed: p.borrowedBy(j)}
	p.apply(d)
	return []quota.Decision{d}, true
}

func (p *plain) nominate(j *plainJob, w way) {
	c := claim{w, quota.Amounts{}}
	for u := range j.Demand {
		c.reserved[u] = p.availableNow(j, w, u)
	}
	p.claims[j.ID] = c
}

// borrowedBy is the part of the job's demand beyond the nominal; nil: none.
func (p *plain) borrowedBy(j *plainJob) quota.Amounts {
	var borrowed quota.Amounts
	s, b := p.shares[j.Share], p.held()
	for u, amount := range j.Demand {
		if over := min(amount, b.usage(s.Name, u)+amount-s.Nominal[u]); over > 0 {
			if borrowed == nil {
				borrowed = quota.Amounts{}
			}
			borrowed[u] = over
		}
	}
	return borrowed
}

// apply books a decision.
func (p *plain) apply(d quota.Decision) {
	j := p.jobs[d.Job]
	switch d.Kind {
	case quota.Grant:
		j.holding = &quota.Holding{Since: p.now}
		maps.DeleteFunc(p.granted, func(id quota.JobID, _ bool) bool { return p.jobs[id].Share == j.Share })
		p.granted[j.ID] = true
		delete(p.givenBack[j.Share], j.ID)
		if p.policy.Queueing == quota.Strict {
			delete(p.givenBack, j.Share)
		}
	case annul:
		j.holding = nil
		p.annulled[annulment{j.ID, d.For}] = true
		p.promise(d.ForShare, d.For)
	case quota.Preempt:
		clear(p.granted)
		j.holding.Stopping = &quota.Preemption{Ground: d.Ground, For: d.For, ForShare: d.ForShare}
	case quota.Park:
		j.parked = d.Reason.Text
	}
}

// ---- Backfill

// outlook is when a blocked job could start at the latest, and what would be
// used then, if jobs end when they have declared and nobody else starts but some
// of its share, one after the other, first.
func (p *plain) outlook(j *plainJob, first ...*plainJob) (b books, at time.Time, known bool) {
	b, at = p.projected(), p.now
	ends := map[quota.JobID]time.Time{}
	for _, o := range p.jobs {
		if o.running() && o.MaxRuntime > 0 {
			ends[o.ID] = o.endsAt()
		}
	}
	for {
		for len(first) > 0 && p.startsIn(&b, first[0]) {
			if first[0].MaxRuntime > 0 {
				ends[first[0].ID] = at.Add(first[0].MaxRuntime)
			}
			first = first[1:]
		}
		if _, ok := p.fits(b, j); ok && len(first) == 0 {
			return b, at, known
		}
		if len(ends) == 0 {
			return nil, time.Time{}, false
		}
		next := slices.MinFunc(slices.Collect(maps.Values(ends)), time.Time.Compare)
		b = slices.DeleteFunc(slices.Clone(b), func(e entry) bool { return ends[e.ID].Equal(next) })
		maps.DeleteFunc(ends, func(_ quota.JobID, end time.Time) bool { return end.Equal(next) })
		if known = true; next.After(p.now) {
			at = next
		}
	}
}

// startsIn enters the job in the books if it fits, unless its claim is there.
func (p *plain) startsIn(b *books, j *plainJob) bool {
	_, ok := p.fits(*b, j)
	switch {
	case p.claimed(j):
		return true
	case ok:
		*b = b.with(j)
	}
	return ok
}

func (j *plainJob) endsAt() time.Time { return j.holding.Since.Add(j.MaxRuntime) }

// mayBackfill: a job that starts now must not delay the share's blocked one.
// It ends before that can start, or that will fit beside it. Where it is not
// known when that can start, it must leave alone what that is short of.
func (p *plain) mayBackfill(behind, j *plainJob) bool {
	b, at, known := p.outlook(behind)
	if known {
		if j.MaxRuntime > 0 && !p.now.Add(j.MaxRuntime).After(at) {
			return true
		}
		_, ok := p.fits(b.with(j), behind)
		return ok
	}
	for u := range j.Demand {
		part := *behind
		part.Demand, part.units = quota.Amounts{u: behind.Demand[u]}, []quota.Unit{u}
		if _, ok := p.fits(p.projected().with(j), &part); behind.Demand[u] > 0 && !ok {
			return false
		}
	}
	return true
}

// ---- Section 3: heads

// line is the share's waiting jobs in order. One in backoff is not in it.
func (p *plain) line(share string) []*plainJob {
	var line []*plainJob
	for _, j := range p.jobs {
		if j.Share == share && j.holding == nil && !j.NotBefore.After(p.now) {
			line = append(line, j)
		}
	}
	slices.SortFunc(line, func(a, b *plainJob) int { return cmp.Or(byPriority(a, b), byAge(a, b)) })
	return line
}

// units are all units that anything is counted in.
func (p *plain) units() []quota.Unit {
	set := maps.Clone(p.capacity)
	for _, s := range p.shares {
		maps.Copy(set, s.Nominal)
	}
	for _, j := range p.jobs {
		maps.Copy(set, j.Demand)
	}
	return slices.Sorted(maps.Keys(set))
}

// park marks the jobs that can never fit, after all else was decided, shares in
// the order of their names; first those that are no longer parked. Strict:
// nothing passes the head, so no other is looked at.
func (p *plain) park() []quota.Decision {
	var decisions []quota.Decision
	for _, j := range p.jobs {
		if holds(j) {
			j.parked = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.shares)) {
		var parked, freed []quota.Decision
		for i, j := range p.line(name) {
			var r quota.Reason
			if i == 0 || p.policy.Queueing != quota.Strict {
				r = p.neverFits(j)
			}
			d := quota.Decision{Kind: quota.Park, Job: j.ID, Share: name, Reason: r}
			switch {
			case j.parked == r.Text:
				continue
			case r.Text == "":
				freed = append(freed, d)
			default:
				parked = append(parked, d)
			}
			p.apply(d)
		}
		decisions = append(decisions, append(freed, parked...)...)
	}
	return decisions
}

// neverFits says why a job can never fit; the zero Reason: it can.
func (p *plain) neverFits(j *plainJob) quota.Reason {
	s := p.shares[j.Share]
	if r := tooMuch(j, quota.TextEnvironmentMax, func(u quota.Unit) int64 { return p.capacity[u] }); r.Text != "" {
		return r
	}
	if s.Sharing != quota.LendAndBorrow {
		return tooMuch(j, quota.TextShareLimit, func(u quota.Unit) int64 { return s.Nominal[u] })
	}
	if r := tooMuch(j, quota.TextShareAndBorrowLimit, func(u quota.Unit) int64 { return most(s, u) }); r.Text != "" {
		return r
	}
	return tooMuch(j, quota.TextBorrowable, func(u quota.Unit) int64 { return s.Nominal[u] + p.lendable(u) - lendLimit(s, u) })
}

func tooMuch(j *plainJob, text string, limit func(quota.Unit) int64) quota.Reason {
	units := unitsWhere(j, func(u quota.Unit, amount int64) bool { return amount > limit(u) })
	if len(units) == 0 {
		return quota.Reason{}
	}
	u := units[0]
	return quota.Reason{Code: quota.Misconfiguration, Unit: u, Wants: j.Demand[u], Lacks: j.Demand[u] - limit(u), Text: text}
}
