package soak

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// decided is what the journal says of a decision.
type decided struct {
	Ground   quota.Ground `json:"ground"`
	For      string       `json:"for"`
	ForShare string       `json:"forShare"`
}

// grant checks a grant against the invariants of section 2, and books it.
func (b *books) grant(j *entry, e *store.Entry) error {
	d, err := decode[decided](e)
	if err != nil {
		return err
	}
	switch {
	case j.status != job.Runnable || j.granted:
		return breaks("I9: no job runs twice", "job %s is %s, and is granted", j.id, j.status)
	case e.At.Before(j.notBefore):
		return breaks("backoffs are honoured", "job %s is granted before %v", j.id, j.notBefore)
	case j.lane.pool.State != resource.Enabled:
		return breaks("a disabled environment starts nothing", "job %s is granted", j.id)
	}
	if first := b.head(j.lane, e.At); b.strict(j.lane) && first != j {
		return breaks("Strict: nothing passes the head", "job %s is granted before job %s", j.id, first.id)
	}
	if err := b.checkGrant(j, d.Ground); err != nil {
		return err
	}
	if err := b.inTurn(j, e.At); err != nil {
		return err
	}
	if d.Ground == quota.Borrow {
		b.expose(j.lane)
	}
	plus(j.lane.held, j.demand, 1)
	plus(j.lane.pool.held, j.demand, 1)
	b.holding[j], b.touched[j] = true, true
	j.granted, j.since = true, e.At
	j.startUse(e.At)
	return nil
}

// strict reports whether nothing may pass the lane's head.
func (b *books) strict(l *lane) bool {
	p := b.policies[l.queue.Policy]
	return p == nil || p.Rules.Queueing == resource.Strict
}

// steady reports whether jobs of the lane preempt for their share's quota or
// their rank in it alone: then who stopped for a job stops for it once.
func (b *books) steady(l *lane) bool {
	p := b.policies[l.queue.Policy]
	return b.strict(l) && !p.Rules.BorrowerPreemption && !p.Rules.Rebalance
}

// head is the lane's first waiting job that is not in a backoff; nil: none.
func (b *books) head(l *lane, now time.Time) *entry {
	var first *entry
	for j := range b.waiting {
		if j.lane == l && !j.notBefore.After(now) && (first == nil || ahead(j, first) < 0) {
			first = j
		}
	}
	return first
}

func (b *books) checkGrant(j *entry, ground quota.Ground) error {
	for _, u := range units(j.demand) {
		if free := j.lane.pool.free(u); j.demand[u] > free {
			return breaks("I1: capacity", "job %s is granted %d %s of %d that are free", j.id, j.demand[u], u, free)
		}
		if j.lane.share == nil {
			continue
		}
		if usage := j.lane.held[u] + j.demand[u]; usage > j.lane.most(u) {
			return breaks("I2: limits", "share %s would use %d %s of %d at most", j.lane.name, usage, u, j.lane.most(u))
		}
		if usage := j.lane.held[u] + j.demand[u]; usage > j.lane.nominal(u) && (ground == quota.Entitled || j.lane.share.Sharing != resource.LendAndBorrow) {
			return breaks("I5: no borrowing without leave", "share %s (%s) would use %d %s of its %d on ground %s", j.lane.name, j.lane.share.Sharing, usage, u, j.lane.nominal(u), ground)
		}
		if why := b.lending(j, u); why != nil && (ground != quota.Entitled || j.lane.pool.borrowed(j.lane, u)) {
			return why
		}
	}
	return nil
}

// lending is I3 and I3b in one unit: what a grant must leave to others.
func (b *books) lending(j *entry, u string) error {
	p := j.lane.pool
	left := p.free(u) - j.demand[u]
	var reserved, before, after, lendable, owned int64
	for _, l := range p.lanes {
		usage := l.held[u]
		before += max(0, usage-l.kept(u))
		if l == j.lane {
			usage += j.demand[u]
		} else {
			reserved += max(0, l.kept(u)-usage)
		}
		after += max(0, usage-l.kept(u))
		lendable += l.nominal(u) - l.kept(u)
		owned += l.nominal(u)
	}
	if b.policies[j.lane.queue.Policy].Rules.ShareUnallocated {
		lendable += max(0, p.capacity(u)-owned)
	}
	if left < reserved {
		return breaks("I3: what others keep", "job %s leaves %d %s, others keep %d", j.id, left, u, reserved)
	}
	if after > lendable && after > before {
		return breaks("I3b: what others lend", "job %s takes what is lent of %s from %d to %d, of %d", j.id, u, before, after, lendable)
	}
	return nil
}

// borrowed reports whether something other shares borrow of the unit could be
// reclaimed: it has not been told to stop yet.
func (p *pool) borrowed(but *lane, u string) bool {
	for _, l := range p.lanes {
		if l != but && l.held[u]-l.stopping[u] > l.nominal(u) {
			return true
		}
	}
	return false
}

// victim is a job that is told to stop for another.
type victim struct {
	*entry
	ground quota.Ground
	of     *entry
}

// victims are those, first in a row of entries, that stop for one job.
func (b *books) victims(entries []store.Entry) (together []victim, err error) {
	for i := range entries {
		e := &entries[i]
		if e.Kind != store.Decision || e.Name != string(quota.Preempt) {
			break
		}
		d, err := decode[decided](e)
		if err != nil {
			return nil, err
		}
		v := victim{entry: b.jobs[e.Subject], ground: d.Ground, of: b.jobs[d.For]}
		if v.entry == nil || v.of == nil {
			return nil, breaks("who is preempted, and for whom, are jobs", "job %s for job %s", e.Subject, d.For)
		}
		if len(together) > 0 && together[0].of != v.of {
			break
		}
		together = append(together, v)
	}
	return together, nil
}

// checkVictims checks all that stop for one job together.
func (b *books) checkVictims(together []victim) error {
	for i, v := range together {
		if err := b.checkVictim(v); err != nil {
			return err
		}
		first := slices.IndexFunc(together, func(o victim) bool { return o.lane == v.lane }) == i
		if v.lane != v.of.lane && first {
			if err := keepsItsOwn(together, v.lane); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *books) checkVictim(v victim) error {
	switch {
	case v.stop != nil || !v.status.Holds():
		return breaks("only who runs is preempted", "job %s is %s", v.id, v.status)
	case v.of.status != job.Runnable:
		return breaks("jobs are preempted for jobs that wait", "job %s is %s", v.of.id, v.of.status)
	case v.lane.pool != v.of.lane.pool:
		return breaks("preemption stays inside a cohort", "job %s is preempted for %s of another", v.id, v.of.id)
	case v.lane.pool.State != resource.Enabled:
		return breaks("a disabled environment preempts nothing", "job %s is preempted", v.id)
	case v.lane.share == nil:
		return breaks("only quota management preempts", "job %s of queue %s is preempted", v.id, v.lane.name)
	case v.lane == v.of.lane && (v.ground != quota.InShare || !v.lane.share.InSharePreemption || v.priority >= v.of.priority):
		return breaks("I7: rank inside a share", "job %s of priority %d is preempted on ground %s for one of priority %d; allowed: %v",
			v.id, v.priority, v.ground, v.of.priority, v.lane.share.InSharePreemption)
	}
	if err := b.checkGround(v); err != nil {
		return err
	}
	if err := b.checkPingPong(v); err != nil {
		return err
	}
	b.outranked[v.entry] = &outranking{by: v.of, changes: b.changes}
	b.preempted++
	return nil
}

// checkPingPong is I8: if a preempted b, b does not preempt a. It may where two
// things have changed in between: a's share has borrowed, be it for a, and put it
// at risk itself; and jobs have come or ended, so that b may be entitled now to
// what it was outbid for.
func (b *books) checkPingPong(v victim) error {
	if o := b.outranked[v.of]; o != nil && o.by == v.entry && (!o.exposed || o.changes == b.changes) {
		return breaks("I8: no ping-pong", "job %s was preempted for job %s, and now preempts it", v.of.id, v.id)
	}
	if o := b.outranked[v.entry]; o != nil && o.by == v.of && o.changes == b.changes && b.steady(v.lane) {
		return breaks("I8: no ping-pong", "job %s is preempted for job %s again, and nobody has come or ended since it was last", v.id, v.of.id)
	}
	return nil
}

// outranking is whom a job was preempted for, the number of changes by then, and
// whether the other's share has borrowed since.
type outranking struct {
	by      *entry
	changes int
	exposed bool
}

// expose notes that a share borrows.
func (b *books) expose(l *lane) {
	for _, o := range b.outranked {
		o.exposed = o.exposed || o.by.lane == l
	}
}

// checkGround checks what the policy says of a ground (sections 3 and 5).
func (b *books) checkGround(v victim) error {
	p := b.policies[v.lane.queue.Policy]
	switch {
	case v.ground == quota.FromBorrower && (!p.Rules.BorrowerPreemption || v.priority >= v.of.priority):
		return breaks("borrowers are outbid where the policy says so, by higher priorities", "job %s of priority %d is, by one of %d; allowed: %v",
			v.id, v.priority, v.of.priority, p.Rules.BorrowerPreemption)
	case v.ground == quota.Rebalance && (!p.Rules.Rebalance || p.IdleAssignment != resource.IdleFairShare):
		return breaks("nothing is rebalanced unless the policy says so", "job %s is preempted for it", v.id)
	case v.ground != quota.Reclaim && b.at.Before(v.since.Add(p.Rules.MinRuntime)):
		return breaks("nobody is preempted before the minimum runtime, unless to reclaim", "job %s, granted at %v, is on ground %s", v.id, v.since, v.ground)
	}
	return nil
}

// keepsItsOwn is I6: there is an order in which the victims of one share can
// stop, in which the share uses more than its nominal before each.
func keepsItsOwn(together []victim, l *lane) error {
	for _, last := range together {
		if last.lane != l {
			continue
		}
		left := maps.Clone(l.held)
		plus(left, l.stopping, -1)
		for _, v := range together {
			if v.lane == l && v.entry != last.entry {
				plus(left, v.demand, -1)
			}
		}
		for u := range last.demand {
			if left[u] > l.nominal(u) {
				return nil
			}
		}
	}
	of := together[0].of
	return breaks("I6: nobody loses its own to others", "share %s uses no more than its quota, and loses a job for job %s of %s", l.name, of.id, of.lane.name)
}

// idle is work conservation: a head that waits though it fits, while nothing is
// on its way back; nil: there is none.
func (b *books) idle(now time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(b.lanes)) {
		l := b.lanes[name]
		j := b.head(l, now)
		if j == nil || l.pool.State != resource.Enabled || l.pool.releasing() {
			continue
		}
		if b.fits(j, now) {
			return breaks("no head waits that could start", "job %s of %s waits for %v, of which %v of %v is held", j.id, name, j.demand, l.pool.held, l.pool.Limits)
		}
	}
	return nil
}

func (b *books) ground(j *entry) quota.Ground {
	if j.lane.share == nil {
		return quota.Entitled
	}
	for u, n := range j.demand {
		if j.lane.held[u]+n > j.lane.nominal(u) {
			return quota.Borrow
		}
	}
	return quota.Entitled
}

func (p *pool) releasing() bool {
	for _, l := range p.lanes {
		for _, n := range l.stopping {
			if n > 0 {
				return true
			}
		}
	}
	return false
}

// stopping is what is on its way back of a unit.
func (p *pool) stopping(u string) (n int64) {
	for _, l := range p.lanes {
		n += l.stopping[u]
	}
	return n
}

func units(demand map[string]int64) []string { return slices.Sorted(maps.Keys(demand)) }

func (p *pool) capacity(u string) int64 { return amount(p.Limits, u) }
func (p *pool) free(u string) int64     { return p.capacity(u) - p.held[u] }

func amount(limits []resource.Limit, u string) int64 {
	for _, l := range limits {
		if l.Unit == u {
			return l.Max
		}
	}
	return 0
}

func (l *lane) nominal(u string) int64 { return amount(l.share.Limits, u) }

// kept is what the share does not lend of its nominal (section 1).
func (l *lane) kept(u string) int64 {
	if l.share.Sharing == resource.Reserve {
		return l.nominal(u)
	}
	for _, limit := range l.share.LendLimits {
		if limit.Unit == u {
			return max(0, l.nominal(u)-limit.Max)
		}
	}
	return 0
}

// most is what the share may use in all (section 4).
func (l *lane) most(u string) int64 {
	if l.share.Sharing != resource.LendAndBorrow {
		return l.nominal(u)
	}
	limit := int64(math.MaxInt32)
	if l.share.BorrowLimit != resource.Unlimited {
		limit = l.nominal(u) * l.share.BorrowLimit / 100
	}
	for _, absolute := range l.share.BorrowLimits {
		if absolute.Unit == u {
			limit = min(limit, absolute.Max)
		}
	}
	return l.nominal(u) + limit
}
