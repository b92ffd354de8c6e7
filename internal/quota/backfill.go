package quota

// This file bounds when a blocked job can start, from the maximum runtimes that
// running jobs declare, and what may start behind it meanwhile (section 3).

// outlook returns the pool as it would be when the demand of a waiting job of
// the share first fits without anybody having to stop, if running jobs end when
// they have declared and nobody else starts; and when that is, in Unix
// nanoseconds. ok is false if what is declared bounds nothing.
func (c *Cohort) outlook(s *share, d *shape) (t *trial, at int64, ok bool) {
	t = newTrial(c)
	for i, e := range c.ends {
		t.end(e.share(), e.line.shape, +1)
		at = e.end()
		if together := i+1 < len(c.ends) && c.ends[i+1].end() == at; !together && t.fits(s, d) {
			return t, at, true
		}
	}
	return nil, 0, false
}

// end is when a running job ends at the latest.
func (e *entry) end() int64 { return e.held.since + e.maxRuntime }

// fits reports whether the demand would fit, within the share's own quota or
// on borrowed capacity.
func (t *trial) fits(s *share, d *shape) bool {
	return t.entitled(s, d) || t.borrows(s, d)
}

// mayBackfill reports whether a job that starts now cannot delay the share's
// blocked job: it ends before that can start, or uses what that will not need.
// If it only lasts too long, longest is, in nanoseconds, what would do.
func (p *pass) mayBackfill(s *share, e *entry) (ok bool, longest int64) {
	blocked, d := s.behind.line.shape, e.line.shape
	t, at, ok := p.outlook(s, blocked)
	if !ok {
		return p.spares(s, blocked, d), 0
	}
	if longest = at - p.now; e.maxRuntime > 0 && e.maxRuntime <= longest {
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
