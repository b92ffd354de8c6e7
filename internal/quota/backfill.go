package quota

import "slices"

// This file bounds when a blocked job can start, from the maximum runtimes that
// jobs declare, and says what may start behind it meanwhile (section 3).

// manyAhead is before how many others a job's start is still foreseen.
const manyAhead = 10_000

// outlook returns the pool as it would be when the demand of a waiting job of
// the share fits without anybody having to stop, after some jobs of the share
// that start first, and when that is, in Unix nanoseconds. It takes it that jobs
// last as long as they declare, or for ever, and that nobody else starts. ok is
// false if what is declared bounds nothing.
func (c *Cohort) outlook(now int64, s *share, d *shape, first []*entry) (t *trial, at int64, ok bool) {
	t = newTrial(c)
	ends := c.newEnds()
	for at = now; ; at = max(now, ends.pass(t)) {
		for len(first) > 0 && t.starts(s, first[0]) {
			ends.add(first[0], at)
			first = first[1:]
		}
		if len(first) == 0 && t.fits(s, d) {
			return t, at, ends.passed
		}
		if !ends.more() {
			return nil, 0, false
		}
	}
}

// starts lets a job start if it can, and reports whether it does: one that is
// nominated has its claim.
func (t *trial) starts(s *share, e *entry) bool {
	if e.nominated {
		return true
	}
	fits := t.fits(s, e.line.shape)
	if fits {
		t.end(s, e.line.shape, -1)
	}
	return fits
}

// ends is who ends when, as far as that is declared.
type ends struct {
	running []*entry // by when they end
	started heap[ending]
	passed  bool // some have ended
}

type ending struct {
	at  int64
	job *entry
}

func (c *Cohort) newEnds() *ends {
	return &ends{running: c.ends, started: heap[ending]{
		before: func(a, b ending) bool { return a.at < b.at || a.at == b.at && a.job.id < b.job.id },
		place:  func(ending, int) {},
	}}
}

// add has a job end that starts at an instant, if it declares when.
func (n *ends) add(e *entry, at int64) {
	if e.maxRuntime > 0 {
		n.started.push(ending{at + e.maxRuntime, e})
	}
}

func (n *ends) more() bool { return len(n.running)+n.started.len() > 0 }

// next is who ends next.
func (n *ends) next() ending {
	if len(n.running) == 0 {
		return n.started.first()
	}
	first := ending{n.running[0].end(), n.running[0]}
	if n.started.len() > 0 && n.started.first().at < first.at {
		return n.started.first()
	}
	return first
}

// pass lets all end that end next, and returns when that is.
func (n *ends) pass(t *trial) int64 {
	n.passed = true
	at := n.next().at
	for n.more() {
		e := n.next()
		if e.at != at {
			break
		}
		if len(n.running) > 0 && n.running[0] == e.job {
			n.running = n.running[1:]
		} else {
			n.started.pop()
		}
		t.end(e.job.share(), e.job.line.shape, +1)
	}
	return at
}

// end is when a running job ends at the latest.
func (e *entry) end() int64 { return e.held.since + e.maxRuntime }

// fits reports whether the demand would fit, within the share's own quota or
// on borrowed capacity.
func (t *trial) fits(s *share, d *shape) bool {
	return t.entitled(s, d) || t.borrows(s, d)
}

// startFirst returns, in order, which jobs of its share start before a waiting
// one: all before it, where nothing passes the head; otherwise those that want as
// much, and the blocked job that it must not delay, if any.
func (c *Cohort) startFirst(e, undelayed *entry) []*entry {
	ahead := e.line.aheadOf
	if c.policy.Queueing == Strict {
		ahead = e.share().aheadOf
	}
	first := slices.SortedFunc(slices.Values(ahead(e)), byAhead)
	if undelayed != nil && undelayed.line != e.line {
		return slices.Insert(first, 0, undelayed)
	}
	return first
}

// aheadOf returns the jobs of the share that go before one, in any order.
func (s *share) aheadOf(e *entry) []*entry {
	var ahead []*entry
	for _, n := range s.nominated {
		if n.job.ahead(e) {
			ahead = append(ahead, n.job)
		}
	}
	s.waitingLines(func(l *line) { ahead = append(ahead, l.aheadOf(e)...) })
	return ahead
}

// aheadOf returns the jobs of the line that go before one, in any order.
func (l *line) aheadOf(e *entry) []*entry {
	var ahead []*entry
	for _, o := range l.jobs.items {
		if o.ahead(e) {
			ahead = append(ahead, o)
		}
	}
	return ahead
}

// mayBackfill reports whether a job that starts now cannot delay a blocked job
// of its share: it ends before that can start, or uses what that will not need.
// If it only lasts too long, longest is, in nanoseconds, what would do.
func (c *Cohort) mayBackfill(now int64, behind, e *entry) (ok bool, longest int64) {
	s, blocked, d := e.share(), behind.line.shape, e.line.shape
	t, at, ok := c.outlook(now, s, blocked, nil)
	if !ok {
		return c.spares(s, blocked, d), 0
	}
	if longest = at - now; e.maxRuntime > 0 && e.maxRuntime <= longest {
		return true, 0
	}
	t.end(s, d, -1)
	return t.fits(s, blocked), longest
}

// spares reports whether a job with demand d leaves the blocked job what it
// needs in every unit that both want: nothing is known of when more of it will
// be there.
func (c *Cohort) spares(s *share, blocked, d *shape) bool {
	t := newTrial(c)
	t.end(s, d, -1)
	for _, n := range d.needs {
		if amount := blocked.of(n.unit); amount > 0 && !t.fits(s, &shape{[]need{{n.unit, amount}}}) {
			return false
		}
	}
	return true
}
