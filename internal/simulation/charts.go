package simulation

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// charts is what the page's script draws.
type charts struct {
	Unit        string     `json:"unit"` // that lost work is counted in
	WaitClasses []string   `json:"waitClasses"`
	Runs        []chartRun `json:"runs"`
}

// chartRun is one run over time, in steps of so many seconds.
type chartRun struct {
	Name        string      `json:"name"`
	Step        float64     `json:"step"`
	Steps       int         `json:"steps"`
	Units       []chartUnit `json:"units"`
	Preemptions []float64   `json:"preemptions"` // per bar; bars are some steps long
	Lost        []float64   `json:"lost"`        // per bar, in hours of the unit
	Waits       []chartWait `json:"waits"`
}

type chartUnit struct {
	Unit     string       `json:"unit"`
	Capacity int64        `json:"capacity"`
	Shares   []chartShare `json:"shares"` // as stacked: those with a colour, and the rest as one
	Strips   []chartShare `json:"strips"` // one by one
	More     int          `json:"more"`   // shares without a strip
}

// chartShare is what a share holds within its quota and beyond it, on average
// in each step.
type chartShare struct {
	Name     string    `json:"name"`
	Quota    int64     `json:"quota"`
	Colour   int       `json:"colour"` // −1: it has none of its own
	Owned    []float64 `json:"owned"`
	Borrowed []float64 `json:"borrowed"`
}

type chartWait struct {
	Name    string  `json:"name"`
	Classes []int   `json:"classes"` // jobs, by waitClasses
	Mean    float64 `json:"mean"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
}

// waitClass is a range of waits, below a bound in seconds.
type waitClass struct {
	below float64
	name  string
}

// waitClasses are what waits are sorted into, from the shortest.
var waitClasses = []waitClass{
	{1, "none"},
	{60, "under a minute"},
	{600, "under 10 minutes"},
	{hour, "under an hour"},
	{6 * hour, "under 6 hours"},
	{24 * hour, "under a day"},
	{7 * 24 * hour, "under a week"},
	{math.Inf(1), "a week or more"},
}

// newCharts gathers the charts of some runs. A share has the same colour in
// all of them: those that hold most in the first have one of their own.
func newCharts(runs []*Run) charts {
	c := charts{Unit: string(runs[0].Summary.Unit)}
	for _, w := range waitClasses {
		c.WaitClasses = append(c.WaitClasses, w.name)
	}
	ranks := runs[0].tally.ranks()
	for _, r := range runs {
		c.Runs = append(c.Runs, r.chart(ranks, r.tally.coarseness(len(runs))))
	}
	return c
}

// ranks orders the shares by how much they held of the summary's unit.
func (t *tally) ranks() map[string]int {
	order := slices.Clone(t.order)
	slices.SortStableFunc(order, func(a, b *shareTally) int { return cmp.Compare(b.units[t.unit].held, a.units[t.unit].held) })
	ranks := make(map[string]int, len(order))
	for i, s := range order {
		ranks[s.name] = i
	}
	return ranks
}

// coarseness is how many steps to merge into one, so that the page of so many
// runs does not hold too many numbers.
func (t *tally) coarseness(runs int) int {
	perStep := runs * len(t.units) * 2 * (min(len(t.order), maxStrips) + min(len(t.order), colours+1))
	merged := 1
	for perStep*points/merged > maxNumbers && merged < points/16 {
		merged *= 2
	}
	return merged
}

func (r *Run) chart(ranks map[string]int, merged int) chartRun {
	t := r.tally
	steps := t.line.steps(t.end)
	c := chartRun{
		Name: r.Policy.Name, Step: t.line.step.Seconds() * float64(merged), Steps: (steps + merged - 1) / merged,
		Waits: r.chartWaits(ranks),
	}
	perBar := (steps + maxBars - 1) / maxBars
	c.Preemptions = merge(t.preemptions[:steps], perBar, 1)
	c.Lost = merge(t.lost[:steps], perBar, hour)
	shares := t.ranked(ranks)
	for i, unit := range t.units {
		u := chartUnit{Unit: string(unit), Capacity: t.capacity[i]}
		for _, s := range shares {
			u.add(s.chart(i, rankOf(ranks, s), steps, merged, t.line.step))
		}
		c.Units = append(c.Units, u)
	}
	return c
}

// ranked returns the shares by rank.
func (t *tally) ranked(ranks map[string]int) []*shareTally {
	shares := slices.Clone(t.order)
	slices.SortStableFunc(shares, func(a, b *shareTally) int { return rankOf(ranks, a) - rankOf(ranks, b) })
	return shares
}

// rankOf is a share's rank; those that the first run does not know come last.
func rankOf(ranks map[string]int, s *shareTally) int {
	if rank, ok := ranks[s.name]; ok {
		return rank
	}
	return len(ranks)
}

func (s *shareTally) chart(unit, rank, steps, merged int, step time.Duration) chartShare {
	u := &s.units[unit]
	c := chartShare{Name: s.name, Quota: u.nominal, Colour: -1}
	if rank < colours {
		c.Colour = rank
	}
	length := step.Seconds() * float64(merged)
	c.Owned = merge(u.owned[:steps], merged, length)
	c.Borrowed = merge(u.borrowed[:steps], merged, length)
	return c
}

// add stacks the next share, and gives it a strip while there is room.
func (u *chartUnit) add(s chartShare) {
	if len(u.Strips) < maxStrips {
		u.Strips = append(u.Strips, s)
	} else {
		u.More++
	}
	if s.Colour >= 0 {
		u.Shares = append(u.Shares, s)
		return
	}
	last := len(u.Shares) - 1
	if last < 0 || u.Shares[last].Colour >= 0 {
		u.Shares = append(u.Shares, chartShare{Name: "all others", Colour: -1, Owned: slices.Clone(s.Owned), Borrowed: slices.Clone(s.Borrowed), Quota: s.Quota})
		return
	}
	others := &u.Shares[last]
	others.Quota += s.Quota
	for i := range s.Owned {
		others.Owned[i] = rounded(others.Owned[i] + s.Owned[i])
		others.Borrowed[i] = rounded(others.Borrowed[i] + s.Borrowed[i])
	}
}

// merge adds up so many steps at a time, and divides by length.
func merge(steps []float64, merged int, length float64) []float64 {
	sums := make([]float64, 0, len(steps)/merged+1)
	for group := range slices.Chunk(steps, merged) {
		sum := 0.0
		for _, v := range group {
			sum += v
		}
		sums = append(sums, rounded(sum/length))
	}
	return sums
}

// rounded keeps what can be seen of a number.
func rounded(v float64) float64 {
	if v >= 100 {
		return math.Round(v)
	}
	return math.Round(v*100) / 100
}

// chartWaits sorts the waits of all jobs, of those that fitted their quota, and
// of each share into classes.
func (r *Run) chartWaits(ranks map[string]int) []chartWait {
	t := r.tally
	shares := t.ranked(ranks)
	var waits, waitsInQuota []float64
	for _, s := range shares {
		waits = append(waits, s.waits...)
		waitsInQuota = append(waitsInQuota, s.waitsInQuota...)
	}
	list := []chartWait{
		newChartWait("all jobs", r.Summary.WaitS, waits),
		newChartWait("within quota", r.Summary.WaitWithinQuotaS, waitsInQuota),
	}
	for _, s := range shares[:min(len(shares), maxStrips)] {
		list = append(list, newChartWait(s.name, r.Summary.Shares[s.name].WaitS, s.waits))
	}
	return list
}

func newChartWait(name string, d Distribution, waits []float64) chartWait {
	c := chartWait{Name: name, Classes: make([]int, len(waitClasses)), Mean: d.Mean, P50: d.P50, P90: d.P90, P99: d.P99}
	for _, w := range waits {
		c.Classes[slices.IndexFunc(waitClasses, func(class waitClass) bool { return w < class.below })]++
	}
	return c
}
