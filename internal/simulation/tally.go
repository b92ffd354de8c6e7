package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// tally adds up the events of a run as they come.
type tally struct {
	unit     int // the one that a Summary is about
	units    []quota.Unit
	capacity []int64
	shares   map[string]*shareTally
	order    []*shareTally // as in the policy
	jobs     map[string]*jobTally
	line     *timeline

	start, end       time.Duration
	finished, failed int
	resumed          int // jobs that ran before the run began
	waitsAgain       []float64
	preemptions      *series
	lost             *series // of the summary's unit, amount times seconds
}

// shareTally is what one share has come to.
type shareTally struct {
	name                string
	jobs, preemptions   int
	waits, waitsInQuota []float64
	units               []unitTally
}

// unitTally is what one share has come to in one unit. Held, over and lost are
// amounts times seconds.
type unitTally struct {
	nominal, usage int64
	since          time.Duration // usage is added up to here

	held, over, lost float64
	owned, borrowed  *series // usage within and beyond the nominal
}

// jobTally is what is known of one job.
type jobTally struct {
	waiting time.Duration // since when it waits, if it does
	fitted  bool          // its own quota, when it was submitted
	started bool
}

// newTally returns the tally of a run of so many jobs in a cohort. unit is the
// one that the summary is about, or nothing for the first by name.
func newTally(c *scenario.Cohort, unit quota.Unit, jobs int) *tally {
	t := &tally{
		shares: make(map[string]*shareTally, len(c.Shares)),
		jobs:   make(map[string]*jobTally, jobs),
		units:  unitsOf(c),
		line:   &timeline{step: time.Millisecond},
	}
	t.unit = max(0, slices.Index(t.units, unit))
	t.preemptions, t.lost = t.line.series(), t.line.series()
	for _, u := range t.units {
		t.capacity = append(t.capacity, c.Capacity[u])
	}
	for _, s := range c.Shares {
		share := &shareTally{name: s.Name}
		for _, u := range t.units {
			share.units = append(share.units, unitTally{nominal: s.Nominal[u], owned: t.line.series(), borrowed: t.line.series()})
		}
		t.shares[s.Name] = share
		t.order = append(t.order, share)
	}
	return t
}

// unitsOf returns the units of a cohort's capacity and quotas, by name.
func unitsOf(c *scenario.Cohort) []quota.Unit {
	all := maps.Clone(c.Capacity)
	for _, s := range c.Shares {
		maps.Copy(all, s.Nominal)
	}
	return slices.Sorted(maps.Keys(all))
}

// observe takes the next event.
func (t *tally) observe(e scenario.Event) {
	t.end = e.At
	s := t.shares[e.Share]
	j := t.jobs[e.Job]
	switch e.Kind {
	case scenario.Submitted:
		if len(t.jobs) == 0 {
			t.start = e.At
		}
		s.jobs++
		t.jobs[e.Job] = &jobTally{waiting: e.At, fitted: t.fits(s, e.Demand)}
	case scenario.Granted:
		t.granted(s, j, (e.At - j.waiting).Seconds())
		t.use(s, e.At, e.Demand, +1)
	case scenario.Resumed:
		j.started = true
		t.resumed++
		t.use(s, e.At, e.Demand, +1)
	case scenario.Preempted:
		s.preemptions++
		t.line.add(t.preemptions, e.At, 1)
	case scenario.Released:
		t.use(s, e.At, e.Demand, -1)
		t.lose(s, e)
	case scenario.Requeued:
		j.waiting = e.At
	case scenario.Finished:
		t.finished++
	case scenario.Failed:
		t.failed++
	}
}

// fits reports whether a demand is within what the share's quota leaves.
func (t *tally) fits(s *shareTally, demand quota.Amounts) bool {
	for i, u := range t.units {
		if d := demand[u]; d > 0 && s.units[i].usage+d > s.units[i].nominal {
			return false
		}
	}
	return true
}

func (t *tally) granted(s *shareTally, j *jobTally, wait float64) {
	if j.started {
		t.waitsAgain = append(t.waitsAgain, wait)
		return
	}
	j.started = true
	s.waits = append(s.waits, wait)
	if j.fitted {
		s.waitsInQuota = append(s.waitsInQuota, wait)
	}
}

// use adds a demand to the share's usage (sign 1), or takes it off (sign −1).
func (t *tally) use(s *shareTally, at time.Duration, demand quota.Amounts, sign int64) {
	for i, u := range t.units {
		if d := demand[u]; d > 0 {
			s.units[i].addUp(t.line, at)
			s.units[i].usage += sign * d
		}
	}
}

// addUp accounts for what was used until now.
func (u *unitTally) addUp(line *timeline, now time.Duration) {
	owned := float64(min(u.usage, u.nominal))
	borrowed := float64(u.usage) - owned
	line.hold(u.owned, u.since, now, owned)
	line.hold(u.borrowed, u.since, now, borrowed)
	seconds := (now - u.since).Seconds()
	u.held += float64(u.usage) * seconds
	u.over += borrowed * seconds
	u.since = now
}

// lose accounts for the work that a preempted attempt threw away.
func (t *tally) lose(s *shareTally, e scenario.Event) {
	if !e.Preempted {
		return
	}
	for i, u := range t.units {
		s.units[i].lost += float64(e.Demand[u]) * e.Lost.Seconds()
	}
	t.line.add(t.lost, e.At, float64(e.Demand[t.units[t.unit]])*e.Lost.Seconds())
}

// addUpAll accounts for what is used at the end of the run.
func (t *tally) addUpAll() {
	for _, s := range t.order {
		for i := range s.units {
			s.units[i].addUp(t.line, t.end)
		}
	}
}
