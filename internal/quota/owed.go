package quota

import "slices"

// owed is whom a share's victims stop for. What is taken back for a job is on
// its way to that job, and nobody else's to claim, until the job has it
// (section 3: its claim stands).
type owed struct {
	stopping map[JobID]int // how many jobs stop for it
	back     []JobID       // for whom somebody has just stopped
}

func (o *owed) add(id JobID) {
	if o.stopping == nil {
		o.stopping = map[JobID]int{}
	}
	o.stopping[id]++
}

// gone notes that one of those who stop for a job is gone.
func (o *owed) gone(id JobID) {
	if o.stopping[id]--; o.stopping[id] == 0 {
		delete(o.stopping, id)
	}
}

// forget ends the promise to a job that is gone itself.
func (o *owed) forget(id JobID) {
	o.back = slices.DeleteFunc(o.back, func(other JobID) bool { return other == id })
}

func (o *owed) any() bool { return len(o.stopping)+len(o.back) > 0 }

func (o *owed) to(id JobID) bool { return o.stopping[id] > 0 || slices.Contains(o.back, id) }

// enterOwed makes the first waiting job of the share that jobs stop for its
// candidate, where it need not be the head, and reports whether there is one
// that could take what they give back.
func (c *Cohort) enterOwed(s *share) bool {
	s.next = c.owedJob(s)
	if s.next == nil || s.settled || c.neverFits(s, s.next.line.shape).Text != "" {
		return false
	}
	for _, step := range []stage{stageOwed, stageBorrow} {
		if c.mayTake(s, s.next, step) {
			s.stage = step
			c.steps[step].push(s)
			return true
		}
	}
	return false
}

func (c *Cohort) owedJob(s *share) *entry {
	var first *entry
	consider := func(id JobID) {
		e := c.jobs[id]
		if e != nil && e.held == nil && !e.resting && !e.nominated && e.share() == s && (first == nil || e.ahead(first)) {
			first = e
		}
	}
	for id := range s.owed.stopping {
		consider(id)
	}
	for _, id := range s.owed.back {
		consider(id)
	}
	return first
}

// isOwed reports whether the share's candidate has precedence. Where nothing
// passes the head, that is the head, whichever job the others stopped for.
func (c *Cohort) isOwed(s *share) bool {
	return !s.settled && s.owed.any() && (c.policy.Queueing == Strict || s.owed.to(s.next.id))
}

// endPrecedence ends the precedence of those for whom jobs have stopped: by now
// they were granted what was given back, or claim it.
func (c *Cohort) endPrecedence() {
	c.lingering = slices.DeleteFunc(c.lingering, func(s *share) bool {
		s.owed.back = slices.DeleteFunc(s.owed.back, func(id JobID) bool {
			if c.policy.Queueing == Strict {
				e := c.jobs[id]
				return len(s.nominated) == 0 || e == nil || e.held != nil
			}
			return !slices.ContainsFunc(s.nominated, func(n *nomination) bool { return n.job.id == id })
		})
		return len(s.owed.back) == 0
	})
}
