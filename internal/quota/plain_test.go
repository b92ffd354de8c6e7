package quota_test

import (
	"fmt"
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

	// givenBack are, by share, the jobs for which others have stopped that are
	// gone now, until what they gave back was granted.
	givenBack map[string]map[quota.JobID]bool
	use       map[string]*use // by fair share

	now      time.Time                    // of the last pass
	granted  map[quota.JobID]bool         // in it, as the last of its share, since anybody was told to stop
	annulled map[annulment]bool           // grants that were taken back in it
	broken   error                        // what it broke
	claims   map[quota.JobID]claim        // the nominated jobs of the last pass
	turns    map[string]*turn             // how far the shares got in its last look
	reasons  map[quota.JobID]quota.Reason // as of the last pass
}

// plainJob is a job and what it holds; holding is nil while it waits.
type plainJob struct {
	quota.Job
	units      []quota.Unit // of its demand
	shape      string       // the same for all that demand as much
	holding    *quota.Holding
	checkpoint time.Time // newest completed one, of any attempt
	parked     string    // the text it is parked with
}

func (j *plainJob) running() bool { return j.holding != nil && j.holding.Stopping == nil }

func newPlain(policy quota.Policy) *plain {
	return &plain{
		policy: policy, capacity: quota.Amounts{},
		shares: map[string]quota.Share{}, jobs: map[quota.JobID]*plainJob{}, givenBack: map[string]map[quota.JobID]bool{},
		use: map[string]*use{},
	}
}

// ---- The calls that change a cohort

func (p *plain) SetPolicy(policy quota.Policy)      { p.policy = policy }
func (p *plain) SetCapacity(capacity quota.Amounts) { p.capacity = maps.Clone(capacity) }

func (p *plain) SetShare(s quota.Share) {
	s.Nominal, s.BorrowLimits, s.LendLimits = maps.Clone(s.Nominal), maps.Clone(s.BorrowLimits), maps.Clone(s.LendLimits)
	p.keepUse(s.Name, p.shares[s.Name].Fair, s.Fair)
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
	delete(p.givenBack, name)
	delete(p.use, name)
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
	if j.Promised {
		p.promise(j.Share, j.ID)
	}
	p.jobs[j.ID] = &plainJob{
		Job: j, units: slices.Sorted(maps.Keys(j.Demand)), shape: fmt.Sprint(j.Demand), holding: h, parked: j.Parked,
	}
	if h != nil {
		p.jobs[j.ID].checkpoint, p.jobs[j.ID].parked = h.Checkpoint, ""
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
	delete(p.givenBack[j.Share], id)
	return nil
}

// drop takes back what the job holds, if anything.
func (p *plain) drop(j *plainJob) {
	if stops(j) {
		if why := j.holding.Stopping; p.shares[why.ForShare].Name != "" {
			p.promise(why.ForShare, why.For)
		}
	}
	j.holding = nil
}

func (p *plain) promise(share string, id quota.JobID) {
	if p.givenBack[share] == nil {
		p.givenBack[share] = map[quota.JobID]bool{}
	}
	p.givenBack[share][id] = true
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

// lendable is all that may be borrowed of a unit: what shares lend and, if it is
// shared, what no share owns.
func (p *plain) lendable(u quota.Unit) int64 {
	var lent, owned int64
	for _, s := range p.shares {
		lent += lendLimit(s, u)
		owned += s.Nominal[u]
	}
	if p.policy.ShareUnallocated {
		lent += max(0, p.capacity[u]-owned)
	}
	return lent
}

// books is what the shares use at some instant, real or supposed: which jobs
// hold how much in it.
type books []entry

// entry is a job in the books; it only claims what it does not use yet.
type entry struct {
	*plainJob
	amounts quota.Amounts
	claims  bool
}

// held: dispatched, starting, running, or stopping.
func (p *plain) held() books {
	var b books
	for _, j := range p.jobs {
		if j.holding != nil {
			b = append(b, entry{j, j.Demand, false})
		}
	}
	return b
}

// present is what is held, and what nominated jobs have reserved.
func (p *plain) present() books {
	b := p.held()
	for id, c := range p.claims {
		b = append(b, entry{p.jobs[id], c.reserved, true})
	}
	return b
}

// projected is what will be held once all stopping jobs are gone and the
// nominated ones have what they claim: free + releasing is what is free in it.
func (p *plain) projected() books {
	var b books
	for _, j := range p.jobs {
		if j.running() || p.claimed(j) {
			b = append(b, entry{j, j.Demand, !j.running()})
		}
	}
	return b
}

func (b books) without(victims []victim) books {
	return slices.DeleteFunc(slices.Clone(b), func(e entry) bool {
		return slices.ContainsFunc(victims, func(v victim) bool { return v.ID == e.ID })
	})
}

// withoutBorrowed leaves to the victims' shares what is their own: a borrower
// would only lose that again to who is entitled to it, and come back (I8).
func (b books) withoutBorrowed(victims []victim, p *plain) books {
	left := b.without(victims)
	for _, share := range sharesOf(victims) {
		own := entry{&plainJob{Job: quota.Job{Share: share}}, quota.Amounts{}, true}
		for _, u := range p.units() {
			own.amounts[u] = max(0, min(p.shares[share].Nominal[u], b.usage(share, u))-left.usage(share, u))
		}
		left = append(left, own)
	}
	return left
}

func sharesOf(victims []victim) (shares []string) {
	for _, v := range victims {
		if isOthers(v) && !slices.Contains(shares, v.Share) {
			shares = append(shares, v.Share)
		}
	}
	return shares
}

// with adds a job as if it held its demand.
func (b books) with(j *plainJob) books { return append(slices.Clone(b), entry{j, j.Demand, false}) }

// used leaves out what is only claimed.
func (b books) used() books {
	return slices.DeleteFunc(slices.Clone(b), func(e entry) bool { return e.claims })
}

func (b books) usage(share string, u quota.Unit) int64 {
	var sum int64
	for _, e := range b {
		if e.Share == share {
			sum += e.amounts[u]
		}
	}
	return sum
}

// over says whether the share uses more than its nominal in one of the units.
func (p *plain) over(b books, share string, units []quota.Unit) bool {
	used := b.used()
	return slices.ContainsFunc(units, func(u quota.Unit) bool { return used.usage(share, u) > p.shares[share].Nominal[u] })
}

// free can be negative, after capacity was lowered.
func (p *plain) free(b books, u quota.Unit) int64 {
	free := p.capacity[u]
	for _, e := range b {
		free -= e.amounts[u]
	}
	return free
}

// ---- Section 2: what a grant must leave

// lacks is how much less the shares would have to use beyond what they keep for
// s to be granted amount more of u; not positive: it may be. By I3 the others
// must find free what they keep and do not use. By I3b what all use beyond what
// they keep must be no more than is lendable; where a lowered quota has
// broken that before, a grant may still be made that adds nothing to it.
func (p *plain) lacks(b books, s quota.Share, u quota.Unit, amount int64) int64 {
	left := p.free(b, u) - amount
	var reserved, before, after int64
	for name, r := range p.shares {
		usage := b.usage(name, u)
		before += max(0, usage-kept(r, u))
		if name == s.Name {
			usage += amount
		} else {
			reserved += max(0, kept(r, u)-usage)
		}
		after += max(0, usage-kept(r, u))
	}
	if after == before {
		return reserved - left
	}
	return max(reserved-left, after-p.lendable(u))
}

// lendingAllows is I3 and I3b in every unit of the head's demand.
func (p *plain) lendingAllows(b books, h *plainJob) bool { return len(p.unlendable(b, h)) == 0 }

// unlendable returns the demanded units in which I3 or I3b forbid the grant.
func (p *plain) unlendable(b books, h *plainJob) []quota.Unit {
	s := p.shares[h.Share]
	return unitsWhere(h, func(u quota.Unit, amount int64) bool {
		return p.lacks(b, s, u, amount) > 0
	})
}

// withinQuota is I5: the share's usage would not exceed its nominal.
func (p *plain) withinQuota(b books, h *plainJob) bool {
	s := p.shares[h.Share]
	beyond := unitsWhere(h, func(u quota.Unit, amount int64) bool { return b.usage(s.Name, u)+amount > s.Nominal[u] })
	return len(beyond) == 0
}

// beyondMost is I2: the demanded units in which the share would use more than
// it ever may.
func (p *plain) beyondMost(b books, h *plainJob) []quota.Unit {
	s := p.shares[h.Share]
	return unitsWhere(h, func(u quota.Unit, amount int64) bool {
		return b.usage(s.Name, u) > most(s, u)-amount
	})
}

// physicallyFree is I1.
func (p *plain) physicallyFree(b books, h *plainJob) bool {
	scarce := unitsWhere(h, func(u quota.Unit, amount int64) bool { return amount > p.free(b, u) })
	return len(scarce) == 0
}

func unitsWhere(j *plainJob, is func(quota.Unit, int64) bool) []quota.Unit {
	var units []quota.Unit
	for _, u := range j.units {
		if is(u, j.Demand[u]) {
			units = append(units, u)
		}
	}
	return units
}
