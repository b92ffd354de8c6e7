package quota_test

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// plain is the scheduling semantics once more, slow and obvious: it keeps
// nothing but the state, and answers every question by adding everything up
// again, in the words and the order of the text. The engine is held against it.
// What the text leaves open is decided in the comments here.
type plain struct {
	policy   quota.Policy
	capacity quota.Amounts
	shares   map[string]quota.Share
	jobs     map[quota.JobID]*plainJob

	// lingering are the shares for which jobs stopped that are gone now, until
	// what they gave back was granted.
	lingering map[string]bool

	now     time.Time                    // of the last pass
	claims  map[quota.JobID]claim        // the nominated heads of the last pass
	reasons map[quota.JobID]quota.Reason // as of the last pass
}

// plainJob is a job and what it holds; holding is nil while it waits.
type plainJob struct {
	quota.Job
	holding    *quota.Holding
	checkpoint time.Time // newest completed one, of any attempt
	parked     string    // the text it is parked with
}

func (j *plainJob) running() bool { return j.holding != nil && j.holding.Stopping == nil }

func newPlain(policy quota.Policy) *plain {
	return &plain{
		policy: policy, capacity: quota.Amounts{},
		shares: map[string]quota.Share{}, jobs: map[quota.JobID]*plainJob{}, lingering: map[string]bool{},
	}
}

// ---- The calls that change a cohort

func (p *plain) SetPolicy(policy quota.Policy)      { p.policy = policy }
func (p *plain) SetCapacity(capacity quota.Amounts) { p.capacity = maps.Clone(capacity) }

func (p *plain) SetShare(s quota.Share) {
	s.Nominal, s.BorrowLimits, s.LendLimits = maps.Clone(s.Nominal), maps.Clone(s.BorrowLimits), maps.Clone(s.LendLimits)
	p.shares[s.Name] = s
}

func (p *plain) RemoveShare(name string) error {
	if _, ok := p.shares[name]; !ok {
		return quota.ErrNoShare
	}
	for _, j := range p.jobs {
		if j.Share == name {
			return quota.ErrHolds
		}
	}
	delete(p.shares, name)
	delete(p.lingering, name)
	return nil
}

func (p *plain) Add(j quota.Job) error { return p.add(j, nil) }

func (p *plain) Restore(j quota.Job, h quota.Holding) error { return p.add(j, &h) }

func (p *plain) add(j quota.Job, h *quota.Holding) error {
	if _, ok := p.shares[j.Share]; !ok {
		return quota.ErrNoShare
	}
	if _, ok := p.jobs[j.ID]; ok {
		return quota.ErrJobExists
	}
	if len(j.Demand) == 0 {
		return quota.ErrDemand
	}
	for _, amount := range j.Demand {
		if amount <= 0 {
			return quota.ErrDemand
		}
	}
	j.Demand = maps.Clone(j.Demand)
	p.jobs[j.ID] = &plainJob{Job: j, holding: h}
	if h != nil {
		p.jobs[j.ID].checkpoint = h.Checkpoint
	}
	return nil
}

func (p *plain) SetPriority(id quota.JobID, priority int32) error {
	j, ok := p.jobs[id]
	if !ok {
		return quota.ErrNoJob
	}
	j.Priority = priority
	return nil
}

func (p *plain) Checkpointed(id quota.JobID, at time.Time) error {
	j, err := p.holder(id)
	if err != nil {
		return err
	}
	if at.After(j.checkpoint) {
		j.checkpoint = at
	}
	return nil
}

func (p *plain) Stop(id quota.JobID) error {
	j, err := p.holder(id)
	if err != nil {
		return err
	}
	if j.holding.Stopping == nil {
		j.holding.Stopping = &quota.Preemption{Ground: quota.Ended}
	}
	return nil
}

func (p *plain) Requeue(id quota.JobID, notBefore time.Time) error {
	j, err := p.holder(id)
	if err != nil {
		return err
	}
	p.drop(j)
	j.NotBefore = notBefore
	return nil
}

func (p *plain) Remove(id quota.JobID) error {
	j, ok := p.jobs[id]
	if !ok {
		return quota.ErrNoJob
	}
	p.drop(j)
	delete(p.jobs, id)
	return nil
}

// drop takes back what the job holds, if anything.
func (p *plain) drop(j *plainJob) {
	if j.holding != nil && j.holding.Stopping != nil && j.holding.Stopping.ForShare != "" {
		p.lingering[j.holding.Stopping.ForShare] = true
	}
	j.holding = nil
}

func (p *plain) holder(id quota.JobID) (*plainJob, error) {
	j, ok := p.jobs[id]
	if !ok {
		return nil, quota.ErrNoJob
	}
	if j.holding == nil {
		return nil, quota.ErrWaits
	}
	return j, nil
}

// ---- Section 1: terms

// lendLimit is nothing under Reserve, otherwise all of the nominal unless an
// administrator says less.
func lendLimit(s quota.Share, u quota.Unit) int64 {
	if s.Sharing == quota.Reserve {
		return 0
	}
	if limit, ok := s.LendLimits[u]; ok {
		return min(limit, s.Nominal[u])
	}
	return s.Nominal[u]
}

func kept(s quota.Share, u quota.Unit) int64 { return s.Nominal[u] - lendLimit(s, u) }

// borrowLimit is the percentage of the share's own nominal, rounded down, and
// an absolute limit caps it (section 4).
func borrowLimit(s quota.Share, u quota.Unit) int64 {
	if s.Sharing != quota.LendAndBorrow {
		return 0
	}
	limit := int64(math.MaxInt64)
	if s.BorrowPercent != quota.Unlimited {
		exact := new(big.Int).Mul(big.NewInt(s.Nominal[u]), big.NewInt(s.BorrowPercent))
		if exact.Div(exact, big.NewInt(100)); exact.IsInt64() {
			limit = exact.Int64()
		}
	}
	if absolute, ok := s.BorrowLimits[u]; ok {
		limit = min(limit, absolute)
	}
	return limit
}

// most is the most a share may use: its nominal and its borrow limit (I2, I5).
func most(s quota.Share, u quota.Unit) int64 {
	return s.Nominal[u] + min(borrowLimit(s, u), math.MaxInt64-s.Nominal[u])
}

// books is what the shares use at some instant, real or supposed: which jobs
// hold their demand in it, a nominated head counting as one that does.
type books map[quota.JobID]*plainJob

// held: dispatched, starting, running, or stopping.
func (p *plain) held() books {
	b := books{}
	for id, j := range p.jobs {
		if j.holding != nil {
			b[id] = j
		}
	}
	return b
}

// projected is what will be held once all stopping jobs are gone and the
// nominated heads have what they claim: free + releasing is what is free in it.
func (p *plain) projected() books {
	b := books{}
	for id, j := range p.jobs {
		if j.running() || p.claimed(j) {
			b[id] = j
		}
	}
	return b
}

func (b books) without(victims []victim) books {
	left := maps.Clone(b)
	for _, v := range victims {
		delete(left, v.ID)
	}
	return left
}

func (b books) usage(share string, u quota.Unit) int64 {
	var sum int64
	for _, j := range b {
		if j.Share == share {
			sum += j.Demand[u]
		}
	}
	return sum
}

// free can be negative, after capacity was lowered.
func (p *plain) free(b books, u quota.Unit) int64 {
	free := p.capacity[u]
	for _, j := range b {
		free -= j.Demand[u]
	}
	return free
}

// ---- Section 2: what a grant must leave

// lacks is how much less the shares would have to use beyond what they keep for
// s to be granted amount more of u; not positive: it may be. By I3 the others
// must find free what they keep and do not use. By I3b what all use beyond what
// they keep must be no more than all lend limits; where a lowered quota has
// broken that before, a grant may still be made that adds nothing to it.
func (p *plain) lacks(b books, s quota.Share, u quota.Unit, amount int64) int64 {
	left := p.free(b, u) - amount
	var reserved, before, after, lendable int64
	for name, r := range p.shares {
		usage := b.usage(name, u)
		before += max(0, usage-kept(r, u))
		if name == s.Name {
			usage += amount
		} else {
			reserved += max(0, kept(r, u)-usage)
		}
		after += max(0, usage-kept(r, u))
		lendable += lendLimit(r, u)
	}
	if after == before {
		return reserved - left
	}
	return max(reserved-left, after-lendable)
}

// lendingAllows is I3 and I3b in every unit of the head's demand.
func (p *plain) lendingAllows(b books, h *plainJob) bool { return len(p.unlendable(b, h)) == 0 }

// unlendable returns the demanded units in which I3 or I3b forbid the grant.
func (p *plain) unlendable(b books, h *plainJob) []quota.Unit {
	s := p.shares[h.Share]
	return unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool {
		return p.lacks(b, s, u, amount) > 0
	})
}

// withinQuota is I5: the share's usage would not exceed its nominal.
func (p *plain) withinQuota(b books, h *plainJob) bool {
	s := p.shares[h.Share]
	beyond := unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool { return b.usage(s.Name, u)+amount > s.Nominal[u] })
	return len(beyond) == 0
}

// beyondMost is I2: the demanded units in which the share would use more than
// it ever may.
func (p *plain) beyondMost(b books, h *plainJob) []quota.Unit {
	s := p.shares[h.Share]
	return unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool {
		return b.usage(s.Name, u) > most(s, u)-amount
	})
}

// physicallyFree is I1.
func (p *plain) physicallyFree(b books, h *plainJob) bool {
	scarce := unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool { return amount > p.free(b, u) })
	return len(scarce) == 0
}

func unitsWhere(demand quota.Amounts, is func(quota.Unit, int64) bool) []quota.Unit {
	var units []quota.Unit
	for _, u := range slices.Sorted(maps.Keys(demand)) {
		if is(u, demand[u]) {
			units = append(units, u)
		}
	}
	return units
}

// ---- Section 3: one pass

// Pass looks at everything until it finds something to decide, and begins anew
// until it finds nothing. So a second pass at once decides nothing.
func (p *plain) Pass(now time.Time) []quota.Decision {
	p.now = now
	p.claims = map[quota.JobID]claim{}
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
		p.forgetLingering()
	}
	p.explain()
	return decisions
}

// look derives all claims from the state, anew after every decision: so a
// claim of a borrower never stands before that of an entitled head.
func (p *plain) look() []quota.Decision {
	p.claims = map[quota.JobID]claim{}
	steps := []func() []quota.Decision{p.keepPromises, p.serveEntitled, p.lendIdle, p.preemptInShare}
	for _, step := range steps {
		if decisions := step(); len(decisions) > 0 {
			return decisions
		}
	}
	return nil
}

// keepPromises is step 0: a claim stands. An entitled head of a share for which
// jobs are stopping comes before all others, or else what was preempted for it
// would go to somebody else, and it would preempt more.
func (p *plain) keepPromises() []quota.Decision {
	for _, h := range p.promisedTo() {
		if p.withinQuota(p.projected(), h) {
			if decisions, _ := p.take(h); len(decisions) > 0 {
				return decisions
			}
		}
	}
	return nil
}

// promisedTo are the heads of shares for which jobs are stopping, or did and
// what they gave back was not granted yet.
func (p *plain) promisedTo() []*plainJob {
	promised := maps.Clone(p.lingering)
	for _, j := range p.jobs {
		if j.holding != nil && j.holding.Stopping != nil {
			promised[j.holding.Stopping.ForShare] = true
		}
	}
	return slices.DeleteFunc(p.oldestFirst(), func(h *plainJob) bool { return !promised[h.Share] })
}

// forgetLingering ends the promise to shares that have not even nominated what
// was given back for them.
func (p *plain) forgetLingering() {
	nominated := map[string]bool{}
	for id := range p.claims {
		nominated[p.jobs[id].Share] = true
	}
	maps.DeleteFunc(p.lingering, func(share string, _ bool) bool { return !nominated[share] })
}

// serveEntitled is step 1.
func (p *plain) serveEntitled() []quota.Decision {
	for _, h := range p.neediestFirst() {
		if p.claimed(h) || !p.withinQuota(p.projected(), h) {
			continue
		}
		decisions, taken := p.take(h)
		if !taken {
			decisions = p.preempt(h, p.reclaim(h))
		}
		if len(decisions) > 0 {
			return decisions
		}
	}
	return nil
}

// lendIdle is step 2, with idle assignment FIFO; among borrowers, too, a claim
// stands.
func (p *plain) lendIdle() []quota.Decision {
	for _, h := range slices.Concat(p.promisedTo(), p.oldestFirst()) {
		if p.claimed(h) || p.withinQuota(p.projected(), h) {
			continue
		}
		if decisions, _ := p.take(h); len(decisions) > 0 {
			return decisions
		}
	}
	return nil
}

// preemptInShare is step 3.
func (p *plain) preemptInShare() []quota.Decision {
	for _, h := range p.oldestFirst() {
		if p.claimed(h) || !p.shares[h.Share].InSharePreemption {
			continue
		}
		if decisions := p.preempt(h, p.outrank(h)); len(decisions) > 0 {
			return decisions
		}
	}
	return nil
}

func (p *plain) claimed(h *plainJob) bool {
	_, ok := p.claims[h.ID]
	return ok
}

// way is how a head fits: on which ground, and in which units only because
// nothing borrowed is left and the capacity is physically free (I3's exception).
type way struct {
	ground     quota.Ground
	physically []quota.Unit
}

// fits says how the head fits into the books, if it does, with no victims.
func (p *plain) fits(b books, h *plainJob) (way, bool) {
	if !p.withinQuota(b, h) {
		return way{ground: quota.Borrow}, p.mayBorrow(b, h)
	}
	unlendable := p.unlendable(b, h)
	return way{quota.Entitled, unlendable}, p.physicallyFree(b, h) && p.nothingBorrowed(b, h, unlendable)
}

func (p *plain) mayBorrow(b books, h *plainJob) bool {
	return p.shares[h.Share].Sharing == quota.LendAndBorrow && len(p.beyondMost(b, h)) == 0 && p.lendingAllows(b, h)
}

func (p *plain) nothingBorrowed(b books, h *plainJob, units []quota.Unit) bool {
	for name := range p.shares {
		if name != h.Share && p.over(b, name, units) {
			return false
		}
	}
	return true
}

// claim is what a nominated head waits for, and the part of it that is there
// now: nobody behind it may take either.
type claim struct {
	way
	reserved quota.Amounts
}

// present is what is held, and what nominated heads have reserved.
func (p *plain) present() books {
	b := p.held()
	for id, c := range p.claims {
		reserving := *p.jobs[id]
		reserving.Demand = c.reserved
		b[id] = &reserving
	}
	return b
}

// availableNow is the most of a unit that the head could have now, with
// nothing given back yet, of the amount it demands.
func (p *plain) availableNow(h *plainJob, w way, u quota.Unit) int64 {
	b, s := p.present(), p.shares[h.Share]
	limit := s.Nominal[u]
	if w.ground == quota.Borrow {
		limit = most(s, u)
	}
	available := min(h.Demand[u], p.free(b, u), limit-b.usage(s.Name, u))
	if !slices.Contains(w.physically, u) {
		available = min(available, h.Demand[u]-p.lacks(b, s, u, h.Demand[u]))
	}
	return max(0, available)
}

// coveredNow says whether the head could start now in the way in which it fits
// once all stopping jobs are gone.
func (p *plain) coveredNow(h *plainJob, w way) bool {
	scarce := unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool { return p.availableNow(h, w, u) < amount })
	return len(scarce) == 0 && p.nothingBorrowed(p.held(), h, w.physically)
}

func (p *plain) nominate(h *plainJob, w way) {
	c := claim{w, quota.Amounts{}}
	for u := range h.Demand {
		c.reserved[u] = p.availableNow(h, w, u)
	}
	p.claims[h.ID] = c
}

// take grants the head what it fits into, or nominates it.
func (p *plain) take(h *plainJob) (decisions []quota.Decision, taken bool) {
	w, ok := p.fits(p.projected(), h)
	if !ok {
		return nil, false
	}
	if !p.coveredNow(h, w) {
		p.nominate(h, w)
		return nil, true
	}
	borrowed := p.borrowedBy(h)
	h.parked = ""
	delete(p.lingering, h.Share)
	h.holding = &quota.Holding{Since: p.now}
	return []quota.Decision{{Kind: quota.Grant, Job: h.ID, Share: h.Share, Ground: w.ground, Borrowed: borrowed}}, true
}

// borrowedBy is the part of the head's demand beyond the nominal; nil: none.
func (p *plain) borrowedBy(h *plainJob) quota.Amounts {
	var borrowed quota.Amounts
	s, b := p.shares[h.Share], p.held()
	for u, amount := range h.Demand {
		if over := min(amount, b.usage(s.Name, u)+amount-s.Nominal[u]); over > 0 {
			if borrowed == nil {
				borrowed = quota.Amounts{}
			}
			borrowed[u] = over
		}
	}
	return borrowed
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
	slices.SortFunc(line, func(a, b *plainJob) int {
		return cmp.Or(-cmp.Compare(a.Priority, b.Priority), byAge(a, b))
	})
	return line
}

func byAge(a, b *plainJob) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }

// heads are the heads of all shares that could fit some day. Nothing passes
// one that cannot (Strict), so its share has no other.
func (p *plain) heads() []*plainJob {
	var heads []*plainJob
	for _, name := range slices.Sorted(maps.Keys(p.shares)) {
		if line := p.line(name); len(line) > 0 && p.neverFits(line[0]).Text == "" {
			heads = append(heads, line[0])
		}
	}
	return heads
}

// oldestFirst is the order of steps 2 and 3.
func (p *plain) oldestFirst() []*plainJob {
	heads := p.heads()
	slices.SortFunc(heads, func(x, y *plainJob) int { return cmp.Or(p.byRank(x, y), byAge(x, y)) })
	return heads
}

// neediestFirst is the order of step 1: the highest rank first, then the least
// usage relative to nominal, then the oldest head.
func (p *plain) neediestFirst() []*plainJob {
	heads, b := p.heads(), p.held()
	slices.SortFunc(heads, func(x, y *plainJob) int {
		return cmp.Or(p.byRank(x, y), p.byNeed(b, x.Share, y.Share), byAge(x, y))
	})
	return heads
}

func (p *plain) byRank(a, b *plainJob) int {
	return -cmp.Compare(p.shares[a.Share].Rank, p.shares[b.Share].Rank)
}

func (p *plain) byNeed(b books, x, y string) int {
	rx, ry := p.relativeUsage(b, x), p.relativeUsage(b, y)
	switch {
	case rx == nil && ry == nil:
		return 0
	case rx == nil:
		return 1
	case ry == nil:
		return -1
	}
	return rx.Cmp(ry)
}

// relativeUsage is the largest usage ÷ nominal over all units, as an exact
// fraction of what the share really uses; nil is infinite: it uses a unit of
// which it owns nothing.
func (p *plain) relativeUsage(b books, share string) *big.Rat {
	largest := new(big.Rat)
	for _, u := range p.units() {
		usage, nominal := b.usage(share, u), p.shares[share].Nominal[u]
		switch {
		case usage == 0:
		case nominal == 0:
			return nil
		default:
			if r := big.NewRat(usage, nominal); r.Cmp(largest) > 0 {
				largest = r
			}
		}
	}
	return largest
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

// park marks the heads that can never fit, after all else was decided, shares
// in the order of their names. A job that is no longer the head is no longer
// parked, nor is one that was granted.
func (p *plain) park() []quota.Decision {
	var decisions []quota.Decision
	for _, name := range slices.Sorted(maps.Keys(p.shares)) {
		line := p.line(name)
		for i := len(line) - 1; i >= 0; i-- {
			var r quota.Reason
			if i == 0 {
				r = p.neverFits(line[0])
			}
			if line[i].parked != r.Text {
				line[i].parked = r.Text
				decisions = append(decisions, quota.Decision{Kind: quota.Park, Job: line[i].ID, Share: name, Reason: r})
			}
		}
	}
	return decisions
}

// neverFits says why a head can never fit; the zero Reason: it can.
func (p *plain) neverFits(h *plainJob) quota.Reason {
	s := p.shares[h.Share]
	if r := tooMuch(h, quota.TextEnvironmentMax, func(u quota.Unit) int64 { return p.capacity[u] }); r.Text != "" {
		return r
	}
	if s.Sharing != quota.LendAndBorrow {
		return tooMuch(h, quota.TextShareLimit, func(u quota.Unit) int64 { return s.Nominal[u] })
	}
	if r := tooMuch(h, quota.TextShareAndBorrowLimit, func(u quota.Unit) int64 { return most(s, u) }); r.Text != "" {
		return r
	}
	return tooMuch(h, quota.TextBorrowable, func(u quota.Unit) int64 {
		sum := s.Nominal[u]
		for name, r := range p.shares {
			if name != s.Name {
				sum += lendLimit(r, u)
			}
		}
		return sum
	})
}

func tooMuch(h *plainJob, text string, limit func(quota.Unit) int64) quota.Reason {
	units := unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool { return amount > limit(u) })
	if len(units) == 0 {
		return quota.Reason{}
	}
	u := units[0]
	return quota.Reason{Code: quota.Misconfiguration, Unit: u, Wants: h.Demand[u], Lacks: h.Demand[u] - limit(u), Text: text}
}

// ---- Section 5: victims

// victim is a job that may be told to stop, and what that costs.
type victim struct {
	*plainJob
	ground quota.Ground
	level  int32         // within its ground; who has a lower one goes first
	redo   time.Duration // since its last checkpoint
	lost   quota.LostWork
}

func (p *plain) victim(j *plainJob, ground quota.Ground, short []quota.Unit) victim {
	v := victim{plainJob: j, ground: ground, redo: p.sinceCheckpoint(j)}
	for _, u := range short {
		v.lost += quota.LostWork(j.Demand[u]) * quota.LostWork(v.redo.Milliseconds())
	}
	return v
}

// sinceCheckpoint counts from the job's start where it has no checkpoint, but
// not for more than the interval assumed: not to checkpoint must not protect.
func (p *plain) sinceCheckpoint(j *plainJob) time.Duration {
	since := max(0, p.now.Sub(j.began()))
	if !j.checkpoint.IsZero() {
		return since
	}
	return min(since, cmp.Or(p.policy.AssumedCheckpointInterval, quota.DefaultCheckpointInterval))
}

// byOrder: reclaim before in-share, lower priority first, then who loses less
// work per amount, then whose work began later, then newer jobs first.
func byOrder(a, b victim) int {
	return cmp.Or(byLevel(a, b), cmp.Compare(a.redo, b.redo), b.began().Compare(a.began()), -cmp.Compare(a.ID, b.ID))
}

// began is when the job last held nothing that it could lose.
func (j *plainJob) began() time.Time {
	if j.checkpoint.After(j.holding.Since) {
		return j.checkpoint
	}
	return j.holding.Since
}

func byLevel(a, b victim) int {
	ground := func(v victim) int { return slices.Index([]quota.Ground{quota.Reclaim, quota.InShare}, v.ground) }
	return cmp.Or(cmp.Compare(ground(a), ground(b)), cmp.Compare(a.level, b.level))
}

// over says whether the share uses more than its nominal in one of the units.
// What its head claims it does not use yet.
func (p *plain) over(b books, share string, units []quota.Unit) bool {
	used := maps.Clone(b)
	maps.DeleteFunc(used, func(_ quota.JobID, j *plainJob) bool { return j.holding == nil })
	return slices.ContainsFunc(units, func(u quota.Unit) bool { return used.usage(share, u) > p.shares[share].Nominal[u] })
}

// borrowers are the candidates of ground (a): running jobs of other shares that
// hold some of what is short and of which their share uses more than its nominal.
// Priorities of different shares do not compare: a candidate's level is the
// place of its priority among those of its own share's candidates.
func (p *plain) borrowers(b books, h *plainJob, short, scarce []quota.Unit) []victim {
	var candidates []victim
	for _, j := range b {
		if j.running() && j.Share != h.Share && p.over(b, j.Share, demandedOf(j, short)) {
			candidates = append(candidates, p.victim(j, quota.Reclaim, scarce))
		}
	}
	for i, c := range candidates {
		lower := map[int32]bool{}
		for _, other := range candidates {
			if other.Share == c.Share && other.Priority < c.Priority {
				lower[other.Priority] = true
			}
		}
		candidates[i].level = int32(len(lower))
	}
	slices.SortFunc(candidates, byOrder)
	return candidates
}

// inferiors are the candidates of ground (b).
func (p *plain) inferiors(b books, h *plainJob, scarce []quota.Unit) []victim {
	var candidates []victim
	for _, j := range b {
		if j.running() && j.Share == h.Share && j.Priority < h.Priority && len(demandedOf(j, scarce)) > 0 {
			v := p.victim(j, quota.InShare, scarce)
			v.level = j.Priority
			candidates = append(candidates, v)
		}
	}
	slices.SortFunc(candidates, byOrder)
	return candidates
}

// demandedOf returns those of the units of which the job holds some.
func demandedOf(j *plainJob, units []quota.Unit) []quota.Unit {
	return slices.DeleteFunc(slices.Clone(units), func(u quota.Unit) bool { return j.Demand[u] == 0 })
}

// plan is a choice of victims among candidates, in the order they are told.
type plan struct{ candidates, victims []victim }

// reclaim chooses whom an entitled head makes stop.
func (p *plain) reclaim(h *plainJob) plan {
	b := p.projected()
	short := p.unlendable(b, h)
	candidates := p.borrowers(b, h, short, short)
	chosen := p.choose(b, candidates, short, short, func(victims []victim) bool {
		return p.lendingAllows(b.without(victims), h)
	})
	return plan{candidates, p.orClearOut(b, h, candidates, chosen, short)}
}

// outrank chooses whom a head makes stop in its own share, and in others if it
// is entitled then. A head that only borrows then takes nothing from others.
// Scarce is what is short and what the share does not own enough of.
func (p *plain) outrank(h *plainJob) plan {
	b, s := p.projected(), p.shares[h.Share]
	short := p.unlendable(b, h)
	scarce := unitsWhere(h.Demand, func(u quota.Unit, amount int64) bool {
		return slices.Contains(short, u) || b.usage(s.Name, u)+amount > s.Nominal[u]
	})
	own := p.inferiors(b, h, scarce)
	if len(own) == 0 {
		return plan{}
	}
	candidates := append(p.borrowers(b, h, short, scarce), own...)
	entitled := func(victims []victim) bool {
		left := b.without(victims)
		return p.withinQuota(left, h) && p.lendingAllows(left, h)
	}
	if p.nothingBorrowed(b, h, short) {
		entitled = func(victims []victim) bool {
			left := b.without(victims)
			return p.withinQuota(left, h) && p.physicallyFree(left, h)
		}
	}
	borrowing := func(victims []victim) bool {
		return p.mayBorrow(b.without(victims), h) && !slices.ContainsFunc(victims, isReclaimed)
	}
	var chosen []victim
	if len(scarce) == 1 {
		chosen = p.choose(b, candidates, short, scarce, func(victims []victim) bool { return entitled(victims) || borrowing(victims) })
	} else {
		chosen = p.choose(b, candidates, short, scarce, entitled)
		if alone := p.choose(b, own, short, scarce, borrowing); len(alone) > 0 && (len(chosen) == 0 || better(alone, chosen)) {
			chosen = alone
		}
	}
	return plan{candidates, p.orClearOut(b, h, candidates, chosen, short)}
}

// orClearOut is for where no victims make room by the rules of lending, because
// the quotas sum to more than the pool: all that is borrowed of what is short
// may go, and the head take what is then physically free; if that is enough. In
// the end nobody stops who is not needed for the one or the other.
func (p *plain) orClearOut(b books, h *plainJob, candidates, chosen []victim, short []quota.Unit) []victim {
	if len(chosen) == 0 {
		chosen = p.inTurn(b, candidates, short, func([]victim) bool { return false })
	}
	enough := func(victims []victim) bool {
		w, ok := p.fits(b.without(victims), h)
		return ok && (w.ground == quota.Entitled || !slices.ContainsFunc(victims, isReclaimed))
	}
	if !enough(chosen) {
		return nil
	}
	return sparing(chosen, enough)
}

func isReclaimed(v victim) bool { return v.ground == quota.Reclaim }

const fewCandidates = 64

// choose returns the best set of victims that makes the head fit; empty: there
// is none. With one unit scarce and few candidates it is the best of all sets.
func (p *plain) choose(b books, candidates []victim, short, scarce []quota.Unit, fits func([]victim) bool) []victim {
	if len(scarce) == 1 && len(candidates) <= fewCandidates {
		return p.bestOfAll(b, candidates, short, fits)
	}
	if chosen := p.inTurn(b, candidates, short, fits); fits(chosen) {
		return sparing(chosen, fits)
	}
	for i := range candidates {
		if i == 0 || len(candidates) > fewCandidates {
			continue
		}
		// Who comes first may make those ineligible who would do.
		order := slices.Concat(candidates[i:i+1], candidates[:i], candidates[i+1:])
		if chosen := p.inTurn(b, order, short, fits); fits(chosen) {
			return sparing(chosen, fits)
		}
	}
	return nil
}

// sparing leaves out, from the last to the first, who is not needed.
func sparing(chosen []victim, fits func([]victim) bool) []victim {
	for i := len(chosen) - 1; i >= 0; i-- {
		if spared := slices.Delete(slices.Clone(chosen), i, i+1); fits(spared) {
			chosen = spared
		}
	}
	return chosen
}

// inTurn adds candidates in their order until the head fits. One from another
// share stays eligible only while its share is over its nominal.
func (p *plain) inTurn(b books, candidates []victim, short []quota.Unit, fits func([]victim) bool) []victim {
	var chosen []victim
	for _, v := range candidates {
		if fits(chosen) {
			break
		}
		if !isReclaimed(v) || p.over(b.without(chosen), v.Share, demandedOf(v.plainJob, short)) {
			chosen = append(chosen, v)
		}
	}
	return chosen
}

// bestOfAll tries every set; unless not even all candidates together are enough,
// nor all of the head's own share.
func (p *plain) bestOfAll(b books, candidates []victim, short []quota.Unit, fits func([]victim) bool) []victim {
	var best []victim
	if !fits(candidates) && !fits(slices.DeleteFunc(slices.Clone(candidates), isReclaimed)) {
		return nil
	}
	for set := uint64(1); set < 1<<len(candidates); set++ {
		var victims []victim
		for i, v := range candidates {
			if set&(1<<i) != 0 {
				victims = append(victims, v)
			}
		}
		if (best == nil || better(victims, best)) && p.inSomeOrder(b, victims, short) && fits(victims) {
			best = victims
		}
	}
	return best
}

// inSomeOrder says whether the victims can go one after the other, each of
// another share while that share is still over its nominal. Usage only falls,
// so that is so if it is over before its last one goes, whichever that is.
func (p *plain) inSomeOrder(b books, victims []victim, short []quota.Unit) bool {
	lastOf := map[string]bool{}
	for i, v := range victims {
		if isReclaimed(v) {
			others := slices.Delete(slices.Clone(victims), i, i+1)
			lastOf[v.Share] = lastOf[v.Share] || p.over(b.without(others), v.Share, demandedOf(v.plainJob, short))
		}
	}
	return !slices.Contains(slices.Collect(maps.Values(lastOf)), false)
}

// better compares sets: the lower top level, then less lost work, then fewer of
// the highest level, and so on down, then newer ones.
func better(a, b []victim) bool {
	falling := func(victims []victim) []victim {
		return slices.SortedFunc(slices.Values(victims), func(v, w victim) int { return byLevel(w, v) })
	}
	high, low := falling(a), falling(b)
	return cmp.Or(
		byLevel(high[0], low[0]),
		cmp.Compare(lostWork(a), lostWork(b)),
		slices.CompareFunc(high, low, byLevel),
		-slices.Compare(newestFirst(a), newestFirst(b)),
	) < 0
}

func lostWork(victims []victim) (sum quota.LostWork) {
	for _, v := range victims {
		sum += v.lost
	}
	return sum
}

func newestFirst(victims []victim) []quota.JobID {
	var ids []quota.JobID
	for _, v := range victims {
		ids = append(ids, v.ID)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// preempt tells the victims to stop; without victims it decides nothing.
func (p *plain) preempt(h *plainJob, chosen plan) []quota.Decision {
	spared := slices.IndexFunc(chosen.candidates, func(c victim) bool {
		return !slices.ContainsFunc(chosen.victims, func(v victim) bool { return v.ID == c.ID })
	})
	var decisions []quota.Decision
	for _, v := range chosen.victims {
		v.holding.Stopping = &quota.Preemption{Ground: v.ground, For: h.ID, ForShare: h.Share}
		d := quota.Decision{
			Kind: quota.Preempt, Job: v.ID, Share: v.Share, Ground: v.ground, For: h.ID, ForShare: h.Share,
			LostWork: v.lost, Candidates: len(chosen.candidates),
		}
		if spared >= 0 {
			d.Alternative, d.HasAlternative = chosen.candidates[spared].lost, true
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// ---- Section 8: explaining

func (p *plain) explain() {
	p.reasons = map[quota.JobID]quota.Reason{}
	for _, j := range p.jobs {
		if j.holding == nil {
			p.reasons[j.ID] = quota.Reason{Code: quota.Backoff, Until: j.NotBefore}
		}
	}
	for name := range p.shares {
		for i, j := range p.line(name) {
			if i == 0 {
				p.reasons[j.ID] = p.whyHeadWaits(j)
			} else {
				p.reasons[j.ID] = quota.Reason{Code: quota.Behind, Ahead: p.line(name)[0].ID}
			}
		}
	}
	for id, r := range p.reasons {
		if p.policy.Paused && r.Code != quota.Backoff {
			p.reasons[id] = quota.Reason{Code: quota.DisabledPool}
		}
	}
}

func (p *plain) whyHeadWaits(h *plainJob) quota.Reason {
	if r := p.neverFits(h); r.Text != "" {
		return r
	}
	if c, ok := p.claims[h.ID]; ok {
		return p.whyNotNow(h, c)
	}
	if r := p.whyItsShareIsFull(h); r.Code != "" {
		return r
	}
	return p.whyThePoolIsFull(h)
}

// whyNotNow names the first unit that a nominated head has not all of yet.
func (p *plain) whyNotNow(h *plainJob, c claim) quota.Reason {
	for _, u := range slices.Sorted(maps.Keys(h.Demand)) {
		if lacks := h.Demand[u] - c.reserved[u]; lacks > 0 {
			return quota.Reason{Code: quota.Releasing, Unit: u, Wants: h.Demand[u], Lacks: lacks}
		}
	}
	return quota.Reason{Code: quota.Releasing}
}

// whyItsShareIsFull names the first unit in which the share is at its own
// limit. Where it owns all of the pool, the pool is what is too small.
func (p *plain) whyItsShareIsFull(h *plainJob) quota.Reason {
	b, s := p.projected(), p.shares[h.Share]
	beyond := p.beyondMost(b, h)
	if len(beyond) == 0 || s.Sharing == quota.LendAndBorrow && p.withinQuota(b, h) {
		return quota.Reason{}
	}
	u := beyond[0]
	amount := h.Demand[u]
	r := quota.Reason{Code: quota.InsufficientQuota, Unit: u, Wants: amount, Lacks: amount - (most(s, u) - b.usage(s.Name, u))}
	switch {
	case s.Sharing == quota.LendAndBorrow:
		r.Code = quota.BorrowLimit
	case p.free(b, u) < amount && s.Nominal[u] >= p.capacity[u]:
		r.Code, r.Lacks = quota.InsufficientCapacity, amount-p.free(b, u)
	}
	return r
}

// whyThePoolIsFull names the first unit that lending does not allow.
func (p *plain) whyThePoolIsFull(h *plainJob) quota.Reason {
	b, s := p.projected(), p.shares[h.Share]
	short := p.unlendable(b, h)
	if len(short) == 0 {
		return quota.Reason{}
	}
	u := short[0]
	var nominals int64
	for _, r := range p.shares {
		nominals += r.Nominal[u]
	}
	amount, entitled := h.Demand[u], p.withinQuota(b, h)
	r := quota.Reason{Code: quota.InsufficientQuota, Unit: u, Wants: amount, Lacks: p.lacks(b, s, u, amount)}
	switch {
	case p.free(b, u) >= amount:
		r.Code = quota.Reserved
	case entitled:
		r.Code, r.Lacks = quota.InsufficientCapacity, amount-p.free(b, u)
	case p.capacity[u] < nominals:
		r.Code = quota.InsufficientCapacity
	}
	return r
}

func (p *plain) Reason(id quota.JobID) (quota.Reason, bool) {
	r, ok := p.reasons[id]
	return r, ok
}

func (p *plain) Heads(share string, n int) []quota.JobID {
	var ids []quota.JobID
	for _, j := range p.line(share) {
		if len(ids) < n {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

func (p *plain) Counts(share string) (waiting, holding int) {
	for _, j := range p.jobs {
		switch {
		case j.Share != share:
		case j.holding == nil:
			waiting++
		default:
			holding++
		}
	}
	return waiting, holding
}

// Wake is when the first backoff ends that has not ended yet.
func (p *plain) Wake() (at time.Time, ok bool) {
	for _, j := range p.jobs {
		if j.holding == nil && j.NotBefore.After(p.now) && (!ok || j.NotBefore.Before(at)) {
			at, ok = j.NotBefore, true
		}
	}
	return at, ok
}

// Balances leaves open which lender's idle capacity which borrower uses: Lent
// and Free are not filled in.
func (p *plain) Balances(share string) []quota.Balance {
	var balances []quota.Balance
	held, s := p.held(), p.shares[share]
	for _, u := range p.units() {
		b := quota.Balance{Unit: u, Nominal: s.Nominal[u], Usage: held.usage(share, u)}
		b.Borrowed = max(0, b.Usage-b.Nominal)
		for _, j := range held {
			if j.Share == share && !j.running() {
				b.Stopping += j.Demand[u]
			}
		}
		if b.Nominal > 0 || b.Usage > 0 {
			balances = append(balances, b)
		}
	}
	return balances
}
