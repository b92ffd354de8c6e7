package quota_test

import (
	"maps"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// ---- Section 8: explaining

func (p *plain) explain() {
	p.reasons = map[quota.JobID]quota.Reason{}
	for _, j := range p.jobs {
		if j.holding == nil {
			p.reasons[j.ID] = quota.Reason{Code: quota.Backoff, Until: j.NotBefore}
		}
	}
	for name := range p.shares {
		line := p.line(name)
		for i, j := range line {
			r := quota.Reason{Code: quota.DisabledPool}
			if !p.policy.Paused {
				r = p.bound(p.whyWaits(line, j), line, j)
			}
			r.Place = i + 1
			p.reasons[j.ID] = r
		}
	}
}

// whyWaits says why one of the jobs that wait in a share does.
func (p *plain) whyWaits(line []*plainJob, j *plainJob) quota.Reason {
	if p.policy.Queueing == quota.Strict && j != line[0] {
		return quota.Reason{Code: quota.Behind, Ahead: line[0].ID}
	}
	if r := p.neverFits(j); r.Text != "" {
		return r
	}
	if c, ok := p.claims[j.ID]; ok {
		return p.whyNotNow(j, c)
	}
	if blocked := p.undelayed(line, j); blocked != nil {
		return quota.Reason{Code: quota.Behind, Ahead: blocked.ID}
	}
	return p.whyBlocked(line, j)
}

// undelayed is, with Backfill, the share's first job that is not on its way, if j
// could delay it; nil: it could not, or is that job.
func (p *plain) undelayed(line []*plainJob, j *plainJob) *plainJob {
	if p.policy.Queueing != quota.Backfill {
		return nil
	}
	first := line[slices.IndexFunc(line, func(o *plainJob) bool { return !p.claimed(o) && p.neverFits(o).Text == "" })]
	if first == j || p.mayBackfill(first, j) {
		return nil
	}
	return first
}

// whyBlocked says why a job fits in no step.
func (p *plain) whyBlocked(line []*plainJob, j *plainJob) quota.Reason {
	if first := p.firstLike(line, j); first != j {
		return quota.Reason{Code: quota.Behind, Ahead: first.ID}
	}
	if u, lacks := p.reservedFor(j); lacks > 0 {
		return quota.Reason{Code: quota.Reserved, Unit: u, Wants: j.Demand[u], Lacks: lacks}
	}
	r := p.whyItsShareIsFull(j)
	if r.Code == "" {
		r = p.whyThePoolIsFull(j)
	}
	return r
}

// bound says when the job can start, if its share's jobs that go before it start
// first: where others may pass, those that want as much, and the blocked job that
// it must not delay.
func (p *plain) bound(r quota.Reason, line []*plainJob, j *plainJob) quota.Reason {
	if r.Code == quota.Misconfiguration || r.Code == quota.Releasing {
		return r
	}
	var first []*plainJob
	if blocked := p.undelayed(line, j); blocked != nil && blocked.shape != j.shape {
		first = append(first, blocked)
	}
	for _, o := range line[:slices.Index(line, j)] {
		if p.policy.Queueing == quota.Strict || o.shape == j.shape && !p.claimed(o) {
			first = append(first, o)
		}
	}
	if _, at, known := p.outlook(j, first...); known {
		r.Earliest, r.After = at, len(first)
	}
	return r
}

// firstLike is the first job that waits for as much as j, and was not nominated.
func (p *plain) firstLike(line []*plainJob, j *plainJob) *plainJob {
	return line[slices.IndexFunc(line, func(o *plainJob) bool { return !p.claimed(o) && o.shape == j.shape })]
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

func (p *plain) Reason(id quota.JobID, _ time.Time) (quota.Reason, bool) {
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

// Promised are the waiting jobs that are still to have what was given back for them.
func (p *plain) Promised() []quota.JobID {
	var ids []quota.JobID
	for _, promised := range p.givenBack {
		for id := range promised {
			if j := p.jobs[id]; j != nil && waits(j) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Wake is when time alone will change what a pass decides, if nothing happens
// until then: a backoff ends, or a running job is old enough to be preempted.
func (p *plain) Wake() (at time.Time, ok bool) {
	var instants []time.Time
	for _, j := range p.jobs {
		if _, lacks := p.reservedFor(j); j.holding == nil && lacks > 0 {
			instants = append(instants, p.whenForgotten(j.Share))
		}
		if at, ok := p.claimLapses(j); ok {
			instants = append(instants, at)
		}
		switch {
		case j.holding == nil && j.NotBefore.After(p.now):
			instants = append(instants, j.NotBefore)
		case j.running() && j.comesOfAge(p.policy).After(p.now):
			instants = append(instants, j.comesOfAge(p.policy))
		}
	}
	slices.SortFunc(instants, time.Time.Compare)
	for _, at := range slices.Compact(instants) {
		if p.backsOffUntil(at) || !p.wouldDecide(at.Add(-1)) && p.wouldDecide(at) {
			return at, true
		}
	}
	return time.Time{}, false
}

// claimLapses is when a nominated job may no longer pass its share's blocked one,
// since it would end too late.
func (p *plain) claimLapses(j *plainJob) (at time.Time, ok bool) {
	t := p.turns[j.Share]
	if !p.claimed(j) || p.policy.Queueing != quota.Backfill || t.behind == nil || t.behind == j || j.MaxRuntime == 0 {
		return time.Time{}, false
	}
	_, at, ok = p.outlook(t.behind)
	return at.Add(-j.MaxRuntime).Add(1), ok && at.Add(-j.MaxRuntime).After(p.now)
}

func (p *plain) wouldDecide(at time.Time) bool { return len(p.clone().Pass(at)) > 0 }

func (p *plain) backsOffUntil(at time.Time) bool {
	for _, j := range p.jobs {
		if j.holding == nil && j.NotBefore.Equal(at) {
			return true
		}
	}
	return false
}

func (j *plainJob) comesOfAge(policy quota.Policy) time.Time {
	return j.holding.Since.Add(policy.MinRuntime)
}

// Balances leaves open which lender's idle capacity which borrower uses: Lent
// and Free are not filled in.
func (p *plain) Balances(share string) []quota.Balance {
	var balances []quota.Balance
	held, s := p.held(), p.shares[share]
	for _, u := range p.units() {
		b := quota.Balance{Unit: u, Nominal: s.Nominal[u], Usage: held.usage(share, u)}
		b.Borrowed = max(0, b.Usage-b.Nominal)
		for _, e := range held {
			if e.Share == share && !e.running() {
				b.Stopping += e.amounts[u]
			}
		}
		if b.Nominal > 0 || b.Usage > 0 {
			balances = append(balances, b)
		}
	}
	return balances
}
