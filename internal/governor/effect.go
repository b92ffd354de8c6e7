package governor

import (
	"cmp"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// Effect is what a change does to the jobs there are, beyond what would happen
// to them without it.
type Effect struct {
	// Reclaimable are running jobs of shares that come to be over their quota:
	// a share that is entitled to what they hold may take it back.
	Reclaimable Affected `json:"reclaimable,omitzero"`
	// Preempted are running jobs that are told to stop at once.
	Preempted Affected `json:"preempted,omitzero"`
	// Ended are jobs that end with their share.
	Ended Affected `json:"ended,omitzero"`
	// Startable are waiting jobs that can start: at once, or as soon as the
	// preempted ones are gone.
	Startable Affected `json:"startable,omitzero"`
}

// MaxAffected is how many jobs an Affected names.
const MaxAffected = 100

// Affected is a number of jobs, and the first MaxAffected of them in order of
// acceptance.
type Affected struct {
	Count int           `json:"count"`
	Jobs  []AffectedJob `json:"jobs,omitempty"`
}

// AffectedJob names a job.
type AffectedJob struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Share string `json:"share"`
}

// standing is a job as an engine can be told of it, without what the loop
// changes later.
type standing struct {
	AffectedJob
	job     quota.Job // of the share's own name, without its demand
	demand  []job.Amount
	holding *quota.Holding // nil: it waits
	ending  bool           // it is stopping, and does not come back
}

// standingIn returns the unfinished jobs of a queue. Those that were preempted
// and are still stopping count as waiting: their capacity is on its way.
func (s *state) standingIn(queueName string) []standing {
	var all []standing
	for _, a := range s.jobs {
		if a.Queue != queueName || a.Status.Finished() {
			continue
		}
		st := standing{
			AffectedJob: AffectedJob{ID: a.ID, Name: a.Name, Share: a.Share},
			job: quota.Job{
				ID: a.id(), Share: a.Share, Priority: a.Priority, Created: a.CreatedAt,
				NotBefore: a.NotBefore, MaxRuntime: a.DeclaredRuntime(),
			},
			demand: a.Demand,
		}
		switch {
		case a.Stopping():
			st.ending = a.Current.Stop.Cause != job.Preempted
		case a.Status.Holds():
			st.holding = &quota.Holding{Since: a.ScheduledAt, Checkpoint: a.CheckpointAt}
		}
		all = append(all, st)
	}
	return all
}

// addEffects lets the engine decide, in cohorts of their own, what becomes of
// the jobs after each change alone, and after all of them.
func (p proposal) addEffects(plan *Plan, now time.Time) {
	if len(p.jobs) == 0 {
		return
	}
	slices.SortFunc(p.jobs, func(a, b standing) int { return cmp.Compare(a.job.ID, b.job.ID) })
	without := p.before.outcome(p.jobs, now)
	for i := range plan.Changes {
		c := &plan.Changes[i]
		c.Effect = p.before.with(p.ref(*c), p.after).outcome(p.jobs, now).beyond(without, p.jobs)
	}
	plan.Effect = p.after.outcome(p.jobs, now).beyond(without, p.jobs)
}

// outcome is what becomes of jobs, by their place in the list.
type outcome struct {
	reclaimable, preempted, ended, started map[int]bool
}

// beyond is the effect of what is in the outcome and not in another one.
func (o outcome) beyond(other outcome, jobs []standing) Effect {
	affected := func(these, those map[int]bool) (a Affected) {
		for i := range jobs {
			if !these[i] || those[i] {
				continue
			}
			if a.Count++; a.Count <= MaxAffected {
				a.Jobs = append(a.Jobs, jobs[i].AffectedJob)
			}
		}
		return a
	}
	return Effect{
		Reclaimable: affected(o.reclaimable, other.reclaimable),
		Preempted:   affected(o.preempted, other.preempted),
		Ended:       affected(o.ended, other.ended),
		Startable:   affected(o.started, other.started),
	}
}

// outcome lets the production engine decide about the jobs under what is
// declared, as if whoever is told to stop were gone at once.
func (d declared) outcome(jobs []standing, now time.Time) outcome {
	o := outcome{map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}}
	c := d.cohort()
	places := make(map[quota.JobID]int, len(jobs))
	for i := range jobs {
		places[jobs[i].job.ID] = i
		if jobs[i].ending {
			continue
		}
		if _, there := d.shares[jobs[i].Share]; !there || !jobs[i].enter(c) {
			o.ended[i] = true
		}
	}
	d.markReclaimable(o, c, jobs)
	o.rehearse(c, places, jobs, now)
	return o
}

// enter puts the job into a cohort, and reports whether it could.
func (s *standing) enter(c *quota.Cohort) bool {
	j := s.job
	j.Demand = make(quota.Amounts, len(s.demand))
	for _, a := range s.demand {
		j.Demand[quota.Unit(a.Unit)] += a.Quantity
	}
	if s.holding == nil {
		return c.Add(j) == nil
	}
	return c.Restore(j, *s.holding) == nil
}

// markReclaimable finds the running jobs that hold something of a unit of
// which their share uses more than its quota.
func (d declared) markReclaimable(o outcome, c *quota.Cohort, jobs []standing) {
	over := map[string]quota.Amounts{}
	for _, share := range inNameOrder(d.shares) {
		over[share] = quota.Amounts{}
		for _, b := range c.Balances(share) {
			over[share][b.Unit] = b.Borrowed
		}
	}
	for i := range jobs {
		if jobs[i].holding == nil {
			continue
		}
		for _, a := range jobs[i].demand {
			if over[jobs[i].Share][quota.Unit(a.Unit)] > 0 {
				o.reclaimable[i] = true
			}
		}
	}
}

// maxRounds bounds how often what the preempted give back is given out again.
// Nobody is preempted for whom it was preempted (I8), so few are needed.
const maxRounds = 100

// rehearse lets the engine decide until nobody is told to stop any more.
func (o outcome) rehearse(c *quota.Cohort, places map[quota.JobID]int, jobs []standing, now time.Time) {
	for range maxRounds {
		again := false
		for _, d := range c.Pass(now) {
			i := places[d.Job]
			switch d.Kind {
			case quota.Grant:
				if jobs[i].holding == nil {
					o.started[i] = true
				}
			case quota.Preempt:
				if jobs[i].holding != nil {
					o.preempted[i] = true
				}
				again = c.Requeue(d.Job, time.Time{}) == nil || again
			default: // a job that can never fit neither starts nor stops
			}
		}
		if !again {
			return
		}
	}
}
