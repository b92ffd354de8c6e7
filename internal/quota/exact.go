package quota

import (
	"cmp"
	"math/bits"
	"slices"
)

// This file finds, where one unit is short and the candidates are few, the set
// of victims that loses exactly the least work. It builds up bundles of
// victims by what they free, keeping for each gain only the cheapest.

// bundle is a set of victims and what it comes to.
type bundle struct {
	gain int64 // what it frees of the unit, for the head
	lost LostWork
	mask uint64 // who is in it: the newest candidate is the highest bit
}

func (b bundle) with(o bundle) bundle {
	return bundle{b.gain + o.gain, b.lost + o.lost, b.mask | o.mask}
}

func (b bundle) capped(most int64) bundle {
	b.gain = min(b.gain, most)
	return b
}

// ballot is the candidates of one choice, newest first, as single bundles.
type ballot struct {
	unit    int
	victims []victim
	levels  []uint64 // who is of each level, the highest first
}

func newBallot(all []victim, unit int) ballot {
	b := ballot{unit: unit, victims: slices.Clone(all)}
	slices.SortFunc(b.victims, func(v, w victim) int { return cmp.Compare(w.job.id, v.job.id) })
	for _, level := range slices.Backward(levels(all)) {
		mask := uint64(0)
		for i, v := range b.victims {
			if v.compareLevel(level) == 0 {
				mask |= 1 << (63 - i)
			}
		}
		b.levels = append(b.levels, mask)
	}
	return b
}

// compare orders bundles by cost: lost work, then fewer of the highest level,
// and so on down, then newer ones.
func (b ballot) compare(x, y bundle) int {
	if x.lost != y.lost {
		return cmp.Compare(x.lost, y.lost)
	}
	for _, level := range b.levels {
		if n, m := bits.OnesCount64(x.mask&level), bits.OnesCount64(y.mask&level); n != m {
			return cmp.Compare(n, m)
		}
	}
	return cmp.Compare(y.mask, x.mask)
}

// worthwhile drops every bundle that costs as much as one with no less gain.
// The rest is sorted by gain, falling, and so by cost.
func (b ballot) worthwhile(all []bundle) []bundle {
	slices.SortFunc(all, func(x, y bundle) int {
		return cmp.Or(cmp.Compare(y.gain, x.gain), b.compare(x, y))
	})
	kept := all[:0]
	for _, x := range all {
		if len(kept) == 0 || b.compare(x, kept[len(kept)-1]) < 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

func (b ballot) single(i int) bundle {
	v := b.victims[i]
	return bundle{v.amount(b.unit), v.lost, 1 << (63 - i)}
}

func (b ballot) elected(chosen bundle) []victim {
	var victims []victim
	for i, v := range b.victims {
		if chosen.mask&(1<<(63-i)) != 0 {
			victims = append(victims, v)
		}
	}
	slices.SortFunc(victims, func(v, w victim) int {
		if v.cheaper(w) {
			return -1
		}
		return 1
	})
	return victims
}

// leastReclaimed returns the cheapest set of the lowest top level that frees
// the need; none: there is no such set. exact is false if the search was given up.
func leastReclaimed(all []victim, unit int, need int64) (chosen []victim, exact bool) {
	b := newBallot(all, unit)
	for _, level := range levels(all) {
		bundles, ok := b.reclaims(need, func(v victim) bool { return v.compareLevel(level) <= 0 })
		if !ok {
			return nil, false
		}
		if bundles[0].gain >= need {
			return b.elected(bundles[0]), true
		}
	}
	return nil, true
}

// levels returns one candidate of each level, lowest first.
func levels(all []victim) []victim {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, victim.compareLevel)
	return slices.CompactFunc(sorted, func(v, w victim) bool { return v.compareLevel(w) == 0 })
}

// reclaims returns the worthwhile bundles of other shares' jobs. Each share
// gives up jobs only while it is over its nominal, so all but the largest of
// what it gives up must leave it over.
func (b ballot) reclaims(need int64, may func(victim) bool) (_ []bundle, ok bool) {
	members := map[*share][]int{}
	var order []*share
	for i, v := range b.victims {
		if v.own || !may(v) {
			continue
		}
		s := v.job.share()
		if members[s] == nil {
			order = append(order, s)
		}
		members[s] = append(members[s], i)
	}
	total := []bundle{{}}
	for _, s := range order {
		given, ok := b.givenUpBy(s, members[s], need)
		if !ok {
			return nil, false
		}
		var next []bundle
		for _, t := range total {
			next = append(next, t)
			for _, g := range given {
				next = append(next, t.with(g).capped(need))
			}
		}
		if len(next) > manyBundles {
			return nil, false
		}
		total = b.worthwhile(next)
	}
	return total, true
}

// givenUpBy returns the worthwhile bundles of one share's jobs.
func (b ballot) givenUpBy(s *share, members []int, need int64) (_ []bundle, ok bool) {
	h := &s.units[b.unit]
	excess, beyond := h.running()-h.nominal, h.projected()-h.kept
	if b.victims[members[0]].ground != Reclaim {
		beyond = h.projected() - h.nominal // what is its own stays with it
	}
	slices.SortStableFunc(members, func(i, j int) int {
		return cmp.Compare(b.victims[i].amount(b.unit), b.victims[j].amount(b.unit))
	})
	smaller := map[int64]bundle{0: {}} // by what they free, while the share stays over
	var given []bundle
	for _, i := range members {
		last := b.single(i)
		var more []bundle
		for _, rest := range smaller {
			given = append(given, rest.with(last).capped(min(beyond, need)))
			if sum := rest.with(last); sum.gain < excess && sum.gain < need {
				more = append(more, sum)
			}
		}
		for _, m := range more {
			if old, ok := smaller[m.gain]; !ok || b.compare(m, old) < 0 {
				smaller[m.gain] = m
			}
		}
		if len(smaller) > manyBundles || len(given) > manyBundles*fewCandidates {
			return nil, false
		}
		given = b.worthwhile(given)
	}
	return given, true
}

// leastMixed is leastReclaimed for a job that may also have jobs of its own
// share stop. If outbid, others are taken from borrowers and the job will
// borrow; otherwise it is entitled to what it takes from others, or borrows
// without taking from any. No victims: there is no such set.
func (p *pass) leastMixed(s *share, d *shape, unit int, all []victim, outbid bool) (chosen []victim, exact bool) {
	b := newBallot(all, unit)
	pool, h, want := &p.pools[unit], &s.units[unit], d.of(unit)
	overNominal := h.projected() + want - h.nominal
	overLimit := h.projected() + want - h.limit
	mayBorrow := s.def.Sharing == LendAndBorrow
	borrowed := slices.ContainsFunc(all, func(v victim) bool { return !v.own })
	// lacks is what must still be taken from others when own jobs that hold x
	// have stopped.
	lacks := func(x int64) int64 {
		usage := h.projected() - x
		beyond := pool.projected.beyond - h.beyond(h.projected()) + h.beyond(usage)
		return pool.lacks(h, beyond, usage, want)
	}
	for _, level := range levels(all) {
		others, exact := b.reclaims(max(0, lacks(0)), func(v victim) bool { return v.compareLevel(level) <= 0 })
		if !exact {
			return nil, false
		}
		own, exact := b.stops(func(v victim) bool { return v.own && v.compareLevel(level) <= 0 })
		if !exact {
			return nil, false
		}
		var best bundle
		consider := func(x bundle) {
			if best.mask == 0 || b.compare(x, best) < 0 {
				best = x
			}
		}
		for _, o := range own {
			taken, enough := cheapestWith(others, lacks(o.gain))
			// Where nothing is borrowed, what is physically free will do (I3).
			free := !borrowed && want <= pool.free(&pool.projected)+o.gain
			if !outbid && o.gain >= overNominal && (enough || free) {
				consider(o.with(taken))
			}
			if enough && mayBorrow && o.gain >= overLimit && (outbid || taken.mask == 0) {
				consider(o.with(taken))
			}
		}
		if best.mask != 0 {
			return b.elected(best), true
		}
	}
	return nil, true
}

// cheapestWith returns the cheapest of worthwhile bundles that gains enough.
func cheapestWith(bundles []bundle, gain int64) (bundle, bool) {
	for i := len(bundles) - 1; i >= 0; i-- {
		if bundles[i].gain >= gain {
			return bundles[i], true
		}
	}
	return bundle{}, false
}

// stops returns the worthwhile bundles of jobs that may be stopped freely.
func (b ballot) stops(may func(victim) bool) (_ []bundle, ok bool) {
	total := []bundle{{}}
	for i, v := range b.victims {
		if !may(v) {
			continue
		}
		one := b.single(i)
		for _, t := range total[:len(total):len(total)] {
			total = append(total, t.with(one))
		}
		if len(total) > manyBundles {
			return nil, false
		}
		total = b.worthwhile(total)
	}
	return total, true
}

// compareSets orders whole sets: lower top level, less lost work, fewer of the
// highest level, and so on down, newer ones.
func compareSets(a, b []victim) int {
	falling := func(set []victim) []victim {
		return slices.SortedFunc(slices.Values(set), func(v, w victim) int { return w.compareLevel(v) })
	}
	lost := func(set []victim) (sum LostWork) {
		for _, v := range set {
			sum += v.lost
		}
		return sum
	}
	ids := func(set []victim) []JobID {
		var ids []JobID
		for _, v := range set {
			ids = append(ids, v.job.id)
		}
		slices.SortFunc(ids, func(x, y JobID) int { return cmp.Compare(y, x) })
		return ids
	}
	high, low := falling(a), falling(b)
	return cmp.Or(
		high[0].compareLevel(low[0]),
		cmp.Compare(lost(a), lost(b)),
		slices.CompareFunc(high, low, victim.compareLevel),
		slices.Compare(ids(b), ids(a)),
	)
}
