package soak

import (
	"fmt"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
)

// night is how long everything may take to end once failures have ceased and
// there is capacity: a few attempts, and the longest backoff before each.
const night = 72 * time.Hour

// end is the evening: failures cease, workers that hang are lost, there is
// capacity for all, and so every job must end, and give back what it holds. Then
// everything is taken down.
func (d *day) end() {
	d.faults.off, d.calm = true, true
	d.advance(d.clock.Now().Add(20 * time.Minute)) // until it is up, and what was due is done
	if d.ok() && !d.settle() {
		d.broken("a governor comes back once failures cease", "it does not")
	}
	d.look()
	d.compareAnswers()
	d.compareWithReload()
	d.provide()
	d.loseHanging()
	for until := d.clock.Now().Add(night); d.ok() && len(d.unfinished()) > 0; {
		if d.clock.Now().After(until) {
			d.broken("in the end every job finishes", "these do not:\n%s", strings.Join(d.unfinished(), "\n"))
		}
		d.advance(d.clock.Now().Add(10 * time.Minute))
		d.look()
	}
	d.settled()
	d.takeDown()
	d.tally.Jobs, d.tally.Finished = len(d.books.accepted), len(d.books.accepted)
	d.tally.Preemptions = d.books.preempted
}

// provide gives everybody all the capacity that they can want.
func (d *day) provide() {
	enabled := resource.Enabled
	plenty := []resource.Limit{{Unit: instances[0], Max: 10_000}, {Unit: instances[1], Max: 10_000}}
	quota := []resource.Limit{{Unit: instances[0], Max: 500}, {Unit: instances[1], Max: 500}}
	for _, p := range inOrder(d.books.pools, func(p *pool) *pool { return p }) {
		limits := plenty
		if p.CountsInstances() {
			limits = []resource.Limit{{Unit: resource.NumInstances, Max: 10_000}}
		}
		d.updateEnvironment(governor.EnvironmentChange{Name: p.Name, State: &enabled, Limits: limits})
	}
	for _, l := range inOrder(d.books.lanes, func(l *lane) *lane { return l }) {
		if l.share != nil {
			d.updateShare(governor.ShareChange{Queue: l.share.Queue, Name: l.share.Name, Limits: quota})
		}
	}
}

// loseHanging takes away the workers that would never end. Those that were told
// to stop must end by themselves.
func (d *day) loseHanging() {
	for _, k := range d.world.Alive() {
		if d.ok() && d.books.jobs[k.Job].stop == nil {
			d.world.Lose(k.Job)
			d.settle()
		}
	}
}

func (d *day) unfinished() []string {
	var jobs []string
	for _, j := range d.books.accepted {
		if !j.status.Finished() {
			jobs = append(jobs, fmt.Sprintf("%s, %s in %s, wants %v, %d runs, reason %q", j.id, j.status, j.lane.name, j.demand, j.run, j.record.Reason))
		}
	}
	return jobs
}

// settled checks that nothing is left over of jobs that have all finished.
func (d *day) settled() {
	if !d.ok() {
		return
	}
	if alive := d.world.Alive(); alive != nil {
		d.broken("no worker is orphaned", "all jobs have finished, and alive are %v", alive)
	}
	balances, err := d.governor.Balances(d.ctx, "")
	d.must(err)
	for _, b := range balances {
		for _, u := range b.Units {
			if u.Own != 0 || u.Borrowed != 0 || u.Lent != 0 || u.Free != u.Nominal || b.Running != 0 || b.Waiting != 0 {
				d.broken("in the end all capacity is free", "%s/%s: %+v", b.Queue, b.Share, b)
			}
		}
	}
	d.compareAnswers()
	d.compareWithReload()
}

// takeDown deletes all that was declared, and checks that it goes.
func (d *day) takeDown() {
	for _, l := range inOrder(d.books.lanes, func(l *lane) *lane { return l }) {
		if l.share != nil {
			d.removeShare(l)
		}
	}
	for _, name := range inOrder(d.books.queues, func(q *resource.Queue) string { return q.Name }) {
		d.removeQueue(name)
	}
	for _, name := range inOrder(d.books.policies, func(p *resource.Policy) string { return p.Name }) {
		d.removePolicy(name)
	}
	for _, name := range inOrder(d.books.pools, func(p *pool) string { return p.Name }) {
		d.removeEnvironment(name)
	}
	if !d.ok() {
		return
	}
	c, err := d.store.Load(d.ctx, dawn)
	d.must(err)
	if n := len(c.Environments) + len(c.Policies) + len(c.Queues) + len(c.Shares) + len(c.Jobs); n > 0 {
		d.broken("what is deleted is gone", "left are %+v", c)
	}
}
