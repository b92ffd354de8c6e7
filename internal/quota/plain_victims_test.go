package quota_test

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// ---- Section 5: victims

// victim is a job that may be told to stop, and what that costs.
type victim struct {
	*plainJob
	ground quota.Ground
	level  int32         // within its own share, or among others; who has a lower one goes first
	redo   time.Duration // since its last checkpoint
	lost   quota.LostWork
}

func (v victim) own() bool { return v.ground == quota.InShare }

func isOthers(v victim) bool { return !v.own() }

// choice is what victims for a job are chosen from.
type choice struct {
	p          *plain
	books      books
	job        *plainJob
	short      []quota.Unit // lending does not allow the demand in them
	scarce     []quota.Unit // those, and those in which the share is at a limit
	candidates []victim     // in order
}

// newChoice looks for victims of other shares on the grounds that ground says,
// none being "", and of the job's own share if own.
func (p *plain) newChoice(j *plainJob, limit func(quota.Share, quota.Unit) int64, ground func(*plainJob) quota.Ground, own bool) choice {
	c := choice{p: p, books: p.projected(), job: j}
	c.short = p.unlendable(c.books, j)
	c.scarce = unitsWhere(j, func(u quota.Unit, amount int64) bool {
		return slices.Contains(c.short, u) || c.books.usage(j.Share, u) > limit(p.shares[j.Share], u)-amount
	})
	for _, e := range c.books {
		if g := ground(e.plainJob); e.running() && e.Share != j.Share && g != "" && p.over(c.books, e.Share, demandedOf(e.plainJob, c.short)) {
			c.add(e.plainJob, g)
		}
		if own && e.running() && e.Share == j.Share && e.Priority < j.Priority && len(demandedOf(e.plainJob, c.scarce)) > 0 {
			c.add(e.plainJob, quota.InShare)
		}
	}
	c.setLevels()
	slices.SortFunc(c.candidates, func(a, b victim) int { return c.order(c.books, a, b) })
	return c
}

// add makes the job a candidate, unless it is too young: that protects from
// everything but reclaim.
func (c *choice) add(j *plainJob, ground quota.Ground) {
	v := victim{plainJob: j, ground: ground, redo: c.p.sinceCheckpoint(j)}
	for _, u := range c.scarce {
		v.lost += quota.LostWork(j.Demand[u]) * quota.LostWork(v.redo.Milliseconds())
	}
	if ground == quota.Reclaim || !j.comesOfAge(c.p.policy).After(c.p.now) {
		c.candidates = append(c.candidates, v)
	}
}

// setLevels: inside a share, and in the cohort where the policy says so, the
// level is the priority. Otherwise priorities of different shares do not
// compare: it is the place of the priority among those of its share's candidates.
func (c *choice) setLevels() {
	for i, v := range c.candidates {
		if v.own() || c.p.policy.PriorityScope == quota.InCohort {
			c.candidates[i].level = v.Priority
			continue
		}
		lower := map[int32]bool{}
		for _, other := range c.candidates {
			if other.Share == v.Share && other.Priority < v.Priority {
				lower[other.Priority] = true
			}
		}
		c.candidates[i].level = int32(len(lower))
	}
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

// began is when the job last held nothing that it could lose.
func (j *plainJob) began() time.Time {
	if j.checkpoint.After(j.holding.Since) {
		return j.checkpoint
	}
	return j.holding.Since
}

// order of candidates, as things are in the books: other shares' before the
// own, lower priority first, then as the policy says.
func (c *choice) order(b books, v, w victim) int {
	return cmp.Or(byLevel(v, w), c.byOverQuota(b, v, w), c.byCost(v, w), -cmp.Compare(v.ID, w.ID))
}

func byLevel(v, w victim) int {
	if v.own() != w.own() {
		if w.own() {
			return -1
		}
		return 1
	}
	return cmp.Compare(v.level, w.level)
}

// byCost: who loses less work per amount, then whose work began later; or who
// was granted last.
func (c *choice) byCost(v, w victim) int {
	if c.p.policy.Victims == quota.NewestFirst {
		return w.holding.Since.Compare(v.holding.Since)
	}
	return cmp.Or(cmp.Compare(v.redo, w.redo), w.began().Compare(v.began()))
}

// byOverQuota: whose share is furthest over its nominal, in relation to it, in
// a short unit. It matters between other shares only.
func (c *choice) byOverQuota(b books, v, w victim) int {
	if c.p.policy.Victims != quota.MostOverQuota || v.own() || w.own() {
		return 0
	}
	return compareRatios(c.overQuota(b, w.Share), c.overQuota(b, v.Share))
}

func (c *choice) overQuota(b books, share string) *big.Rat {
	used := b.used()
	return c.p.largest(func(u quota.Unit) (int64, int64) {
		if !slices.Contains(c.short, u) {
			return 0, 1
		}
		nominal := c.p.shares[share].Nominal[u]
		return used.usage(share, u) - nominal, nominal
	})
}

// demandedOf returns those of the units of which the job holds some.
func demandedOf(j *plainJob, units []quota.Unit) []quota.Unit {
	return slices.DeleteFunc(slices.Clone(units), func(u quota.Unit) bool { return j.Demand[u] == 0 })
}

// plan is a choice of victims among candidates, in the order they are told.
type plan struct{ candidates, victims []victim }

func nominal(s quota.Share, u quota.Unit) int64 { return s.Nominal[u] }

func anyGround(*plainJob) quota.Ground { return quota.Reclaim }

// reclaim chooses whom an entitled job makes stop.
func (p *plain) reclaim(j *plainJob) plan {
	c := p.newChoice(j, nominal, anyGround, false)
	chosen := c.choose(c.candidates, c.short, func(victims []victim) bool {
		return p.lendingAllows(c.books.without(victims), j)
	})
	return plan{c.candidates, c.orClearOut(chosen)}
}

// outrank chooses whom a job makes stop in its own share, and in others if it
// is entitled then. A job that only borrows then takes nothing from others.
func (p *plain) outrank(j *plainJob) plan {
	c := p.newChoice(j, nominal, anyGround, true)
	own := slices.DeleteFunc(slices.Clone(c.candidates), isOthers)
	if len(own) == 0 {
		return plan{}
	}
	entitled := func(victims []victim) bool {
		left := c.books.without(victims)
		return p.withinQuota(left, j) &&
			(p.lendingAllows(left, j) || p.nothingBorrowed(c.books, j, c.short) && p.physicallyFree(left, j))
	}
	borrowing := func(victims []victim) bool {
		return p.mayBorrow(c.books.without(victims), j) && !slices.ContainsFunc(victims, isOthers)
	}
	if c.isExact(c.candidates, c.scarce) {
		return plan{c.candidates, c.orClearOut(c.bestOfAll(func(victims []victim) bool { return entitled(victims) || borrowing(victims) }))}
	}
	chosen := c.choose(c.candidates, c.scarce, entitled)
	if alone := c.choose(own, c.scarce, borrowing); len(alone) > 0 && (len(chosen) == 0 || better(alone, chosen)) {
		chosen = alone
	}
	return plan{c.candidates, c.orClearOut(chosen)}
}

// outbid is steps 4 and 5: a job that will borrow has jobs of other shares stop
// that borrow now, and lower priorities of its own share if that may be.
func (p *plain) outbid(j *plainJob, rebalancing bool) plan {
	ground := func(other *plainJob) quota.Ground {
		switch {
		case p.policy.BorrowerPreemption && other.Priority < j.Priority:
			return quota.FromBorrower
		case rebalancing && (!p.policy.BorrowerPreemption || other.Priority <= j.Priority):
			return quota.Rebalance
		}
		return ""
	}
	c := p.newChoice(j, most, ground, p.shares[j.Share].InSharePreemption)
	fits := func(victims []victim) bool {
		left := c.books.withoutBorrowed(victims, p)
		return p.mayBorrow(left, j) && !slices.ContainsFunc(victims, func(v victim) bool { return !c.balances(left, v) })
	}
	if !rebalancing && c.isExact(c.candidates, c.scarce) {
		return plan{c.candidates, c.bestOfAll(fits)}
	}
	return plan{c.candidates, c.inSomeTurn(c.candidates, fits)}
}

// balances: who stops to rebalance leaves its share with no less, for its
// weight, than the job's share then has; and it had more.
func (c *choice) balances(left books, v victim) bool {
	if v.ground != quota.Rebalance {
		return true
	}
	then := c.p.valueOf(left.with(c.job), c.job.Share)
	return then.compare(c.p.valueOf(left, v.Share)) <= 0 && then.compare(c.p.valueOf(c.books, v.Share)) < 0
}

// orClearOut is for where no victims make room by the rules of lending, because
// the quotas sum to more than the pool: all that is borrowed of what is short
// may go, and the job take what is then physically free; if that is enough. In
// the end nobody stops who is not needed for the one or the other.
func (c *choice) orClearOut(chosen []victim) []victim {
	if len(chosen) == 0 {
		chosen = c.inTurn(c.candidates, func([]victim) bool { return false })
	}
	enough := func(victims []victim) bool {
		w, ok := c.p.fits(c.books.without(victims), c.job)
		return ok && (w.ground == quota.Entitled || !slices.ContainsFunc(victims, isOthers))
	}
	if !enough(chosen) {
		return nil
	}
	return sparing(chosen, enough)
}

const fewCandidates = 64

// isExact: by least lost work, with one unit scarce and few candidates, the set
// is the best of all sets.
func (c *choice) isExact(candidates []victim, scarce []quota.Unit) bool {
	return c.p.policy.Victims == quota.LeastLostWork && len(scarce) == 1 && len(candidates) <= fewCandidates
}

// choose returns the best set of victims that makes the job fit; empty: there
// is none.
func (c *choice) choose(candidates []victim, scarce []quota.Unit, fits func([]victim) bool) []victim {
	if c.isExact(candidates, scarce) {
		return c.bestOfAll(fits)
	}
	return c.inSomeTurn(candidates, fits)
}

// inSomeTurn takes candidates in their order until the job fits, and spares who
// is not needed. Who comes first may make those ineligible who would do: so
// where that finds nothing, each of a few may come first.
func (c *choice) inSomeTurn(candidates []victim, fits func([]victim) bool) []victim {
	if chosen := c.inTurn(candidates, fits); fits(chosen) {
		return sparing(chosen, fits)
	}
	if len(candidates) > fewCandidates {
		return nil
	}
	for i := range candidates {
		order := slices.Concat(candidates[i:i+1], candidates[:i], candidates[i+1:])
		if chosen := c.inOrder(order, fits); fits(chosen) {
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

// inTurn adds candidates in the order of the policy until the job fits. How far
// shares are over their nominal is judged anew after each.
func (c *choice) inTurn(candidates []victim, fits func([]victim) bool) []victim {
	if c.p.policy.Victims != quota.MostOverQuota {
		return c.inOrder(candidates, fits)
	}
	var chosen []victim
	for waiting := slices.Clone(candidates); len(waiting) > 0 && !fits(chosen); waiting = waiting[1:] {
		left := c.books.without(chosen)
		slices.SortFunc(waiting, func(v, w victim) int { return c.order(left, v, w) })
		if c.isEligible(left, waiting[0]) {
			chosen = append(chosen, waiting[0])
		}
	}
	return chosen
}

// inOrder adds candidates in their order until the job fits.
func (c *choice) inOrder(candidates []victim, fits func([]victim) bool) []victim {
	var chosen []victim
	for _, v := range candidates {
		if fits(chosen) {
			break
		}
		if c.isEligible(c.books.without(chosen), v) {
			chosen = append(chosen, v)
		}
	}
	return chosen
}

// isEligible: a job of another share is so only while its share is over its
// nominal.
func (c *choice) isEligible(left books, v victim) bool {
	return v.own() || c.p.over(left, v.Share, demandedOf(v.plainJob, c.short)) && c.balances(left.without([]victim{v}), v)
}

// bestOfAll tries every set; unless not even all candidates together are enough,
// nor all of the job's own share.
func (c *choice) bestOfAll(fits func([]victim) bool) []victim {
	var best []victim
	if !fits(c.candidates) && !fits(slices.DeleteFunc(slices.Clone(c.candidates), isOthers)) {
		return nil
	}
	for set := uint64(1); set < 1<<len(c.candidates); set++ {
		var victims []victim
		for i, v := range c.candidates {
			if set&(1<<i) != 0 {
				victims = append(victims, v)
			}
		}
		if (best == nil || better(victims, best)) && c.inSomeOrder(victims) && fits(victims) {
			best = victims
		}
	}
	return best
}

// inSomeOrder says whether the victims can go one after the other, each of
// another share while that share is still over its nominal. Usage only falls,
// so that is so if it is over before its last one goes, whichever that is.
func (c *choice) inSomeOrder(victims []victim) bool {
	lastOf := map[string]bool{}
	for i, v := range victims {
		if isOthers(v) {
			others := slices.Delete(slices.Clone(victims), i, i+1)
			lastOf[v.Share] = lastOf[v.Share] || c.p.over(c.books.without(others), v.Share, demandedOf(v.plainJob, c.short))
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

// annul takes back what victims were granted in this pass, since anybody was told
// to stop, if that is true of all of them: others may depend on what their shares
// use.
func (p *plain) annul(j *plainJob, victims []victim) (decisions []quota.Decision) {
	for _, v := range victims {
		if !p.granted[v.ID] || p.annulled[annulment{v.ID, j.ID}] {
			return nil
		}
	}
	for _, v := range victims {
		d := quota.Decision{Kind: annul, Job: v.ID, For: j.ID, ForShare: j.Share}
		p.apply(d)
		decisions = append(decisions, d)
	}
	return decisions
}

// preempt tells the victims to stop; without victims it decides nothing. Who was
// granted in this pass has not been told so: only that is taken back then, but
// not twice for the same job.
func (p *plain) preempt(j *plainJob, chosen plan) []quota.Decision {
	p.check(j, chosen.victims)
	spared := slices.IndexFunc(chosen.candidates, func(c victim) bool {
		return !slices.ContainsFunc(chosen.victims, func(v victim) bool { return v.ID == c.ID })
	})
	decisions := p.annul(j, chosen.victims)
	if len(decisions) > 0 {
		return decisions
	}
	for _, v := range chosen.victims {
		d := quota.Decision{
			Kind: quota.Preempt, Job: v.ID, Share: v.Share, Ground: v.ground, For: j.ID, ForShare: j.Share,
			LostWork: v.lost, Candidates: len(chosen.candidates),
		}
		if spared >= 0 {
			d.Alternative, d.HasAlternative = chosen.candidates[spared].lost, true
		}
		p.apply(d)
		decisions = append(decisions, d)
	}
	return decisions
}
