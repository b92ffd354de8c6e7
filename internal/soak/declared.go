package soak

import (
	"fmt"
	"maps"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// command books what a client had done.
func (b *books) command(e *store.Entry) error {
	if b.by[e.By] != nil {
		return breaks("a command is carried out once", "%s of %s was journaled before", e.Name, e.By)
	}
	b.by[e.By] = e
	switch e.Name {
	case "SubmitServiceJob":
		return b.submit(e)
	case "UpdateServiceJob":
		return b.setPriority(e)
	case "TerminateServiceJob":
		return b.terminate(e)
	case "TagResource", "UntagResource":
		return nil
	}
	clear(b.outranked)
	return b.declare(e)
}

func (b *books) declare(e *store.Entry) error {
	switch e.Name {
	case "CreateServiceEnvironment":
		v, err := decode[resource.Environment](e)
		b.pools[v.Name] = &pool{Environment: v, lanes: map[string]*lane{}, held: map[string]int64{}}
		return err
	case "UpdateServiceEnvironment":
		v, err := decode[governor.EnvironmentChange](e)
		set(&b.pools[v.Name].State, v.State)
		if v.Limits != nil {
			b.pools[v.Name].Limits = v.Limits
		}
		return err
	case "CreateSchedulingPolicy":
		v, err := decode[resource.Policy](e)
		b.policies[v.Name] = &v
		return err
	case "UpdateSchedulingPolicy":
		v, err := decode[governor.PolicyChange](e)
		set(&b.policies[v.Name].IdleAssignment, v.IdleAssignment)
		return err
	case "CreateJobQueue":
		v, err := decode[resource.Queue](e)
		b.addQueue(&v)
		return err
	case "UpdateJobQueue":
		v, err := decode[governor.QueueChange](e)
		b.changeQueue(b.queues[v.Name], v)
		return err
	case "CreateQuotaShare":
		v, err := decode[resource.Share](e)
		b.addLane(v.Queue+"/"+v.Name, b.queues[v.Queue], &v)
		return err
	case "UpdateQuotaShare":
		v, err := decode[governor.ShareChange](e)
		changeShare(b.lanes[v.Queue+"/"+v.Name].share, v)
		return err
	}
	v, err := decode[resource.Ref](e)
	if err != nil {
		return err
	}
	return b.remove(e.Name, v)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func (b *books) addQueue(q *resource.Queue) {
	b.queues[q.Name] = q
	if q.Policy == "" {
		b.addLane(q.Name, q, nil)
	}
}

func (b *books) addLane(name string, q *resource.Queue, s *resource.Share) {
	l := &lane{name: name, queue: q, share: s, pool: b.pools[q.Environment], held: map[string]int64{}, stopping: map[string]int64{}}
	b.lanes[name], l.pool.lanes[name] = l, l
}

func (b *books) changeQueue(q *resource.Queue, c governor.QueueChange) {
	set(&q.State, c.State)
	set(&q.Priority, c.Priority)
	set(&q.Policy, c.Policy)
	set(&q.TimeLimitActions, c.TimeLimitActions)
}

func changeShare(s *resource.Share, c governor.ShareChange) {
	set(&s.State, c.State)
	set(&s.Sharing, c.Sharing)
	if s.Sharing != resource.LendAndBorrow {
		s.BorrowLimit, s.BorrowLimits = resource.Unlimited, nil
	}
	if s.Sharing == resource.Reserve {
		s.LendLimits = nil
	}
	set(&s.BorrowLimit, c.BorrowLimit)
	set(&s.InSharePreemption, c.InSharePreemption)
	if c.Limits != nil {
		s.Limits = c.Limits
	}
}

// remove books that something goes, at once or with its last job.
func (b *books) remove(operation string, r resource.Ref) error {
	switch operation {
	case "DeleteServiceEnvironment":
		if n := len(b.pools[r.Name].lanes); n > 0 {
			return breaks("nothing is deleted that is used", "environment %s has %d queues or shares", r.Name, n)
		}
		delete(b.pools, r.Name)
		return nil
	case "DeleteSchedulingPolicy":
		delete(b.policies, r.Name)
		return nil
	case "DeleteJobQueue":
		b.queues[r.Name].Status = resource.Deleting
		return b.end(b.lanes[r.Name])
	case "DeleteQuotaShare":
		l := b.lanes[r.Queue+"/"+r.Name]
		l.share.Status = resource.Deleting
		return b.end(l)
	}
	return breaks("commands have names", "%s is none", operation)
}

// end books that the jobs of a lane that is deleted are told to stop.
func (b *books) end(l *lane) error {
	if l == nil {
		return nil // a queue that has quota shares, and none is left
	}
	text, _ := l.deleted()
	for _, j := range b.accepted {
		if j.lane != l || !j.status.Holds() {
			continue
		}
		if err := b.tell(j, stop{cause: job.Terminated, text: text}); err != nil {
			return err
		}
	}
	return nil
}

// deleted reports whether a lane is being deleted, and with which reason its
// jobs end.
func (l *lane) deleted() (reason string, gone bool) {
	if l.share != nil && l.share.Status == resource.Deleting {
		return fmt.Sprintf("Quota share %s of job queue %s was deleted", l.share.Name, l.queue.Name), true
	}
	if l.queue.Status == resource.Deleting {
		return fmt.Sprintf("Job queue %s was deleted", l.queue.Name), true
	}
	return "", false
}

// gone books that what was being deleted is no more.
func (b *books) gone(e *store.Entry) error {
	r, err := decode[resource.Ref](e)
	if err != nil {
		return err
	}
	name := r.Name
	if r.Kind == resource.KindShare {
		name = r.Queue + "/" + r.Name
	}
	if l := b.lanes[name]; l != nil {
		if _, deleted := l.deleted(); !deleted {
			return breaks("nothing vanishes that was not deleted", "%s does", name)
		}
		for j := range maps.Keys(b.holding) {
			if j.lane == l {
				return breaks("what is deleted stays until its last job is gone", "%s went before job %s", name, j.id)
			}
		}
		delete(l.pool.lanes, name)
		delete(b.lanes, name)
	}
	if r.Kind == resource.KindQueue {
		delete(b.queues, r.Name)
	}
	clear(b.outranked)
	return nil
}

func (b *books) submit(e *store.Entry) error {
	v, err := decode[struct {
		ID  string
		Seq int64
		governor.Submission
	}](e)
	if err != nil {
		return err
	}
	name := v.Queue
	if v.Share != "" {
		name += "/" + v.Share
	}
	l := b.lanes[name]
	if l == nil || !l.takes() {
		return breaks("what is disabled or deleted takes no jobs", "%s does", name)
	}
	if b.jobs[v.ID] != nil || v.Seq != int64(len(b.accepted))+1 {
		return breaks("jobs are numbered in order of acceptance", "job %s has number %d, after %d jobs", v.ID, v.Seq, len(b.accepted))
	}
	if first := b.tokens[v.Token]; v.Token != "" && first != "" {
		return breaks("a client token makes one job", "token %s made job %s before job %s", v.Token, first, v.ID)
	}
	clear(b.outranked)
	j := &entry{
		Submission: v.Submission, id: v.ID, seq: v.Seq, created: e.At, moved: e.At,
		lane: l, demand: l.pool.demand(v.Demand), priority: v.Priority, status: job.Runnable,
	}
	b.jobs[j.id], b.waiting[j], b.touched[j] = j, true, true
	b.accepted = append(b.accepted, j)
	if v.Token != "" {
		b.tokens[v.Token] = v.ID
	}
	return nil
}

// takes reports whether the lane takes jobs.
func (l *lane) takes() bool {
	_, gone := l.deleted()
	return !gone && l.queue.State == resource.Enabled && (l.share == nil || l.share.State == resource.Enabled)
}

// demand is what instances need in the units of the pool.
func (p *pool) demand(instances []job.Amount) map[string]int64 {
	d := map[string]int64{}
	for _, a := range instances {
		if p.CountsInstances() {
			d[resource.NumInstances] += a.Quantity
		} else {
			d[a.Unit] += a.Quantity
		}
	}
	return d
}

func (b *books) setPriority(e *store.Entry) error {
	v, err := decode[struct{ Priority int32 }](e)
	if err != nil {
		return err
	}
	j := b.jobs[e.Subject]
	if j == nil || j.status.Finished() {
		return breaks("priorities are of jobs that have not finished", "job %s got one", e.Subject)
	}
	clear(b.outranked)
	j.priority, b.touched[j] = v.Priority, true
	return nil
}

func (b *books) terminate(e *store.Entry) error {
	v, err := decode[struct{ Reason string }](e)
	if err != nil {
		return err
	}
	j := b.jobs[e.Subject]
	if j == nil || j.status.Finished() {
		return breaks("only jobs that have not finished are terminated", "job %s was", e.Subject)
	}
	if j.status.Holds() {
		return b.tell(j, stop{cause: job.Terminated, text: v.Reason})
	}
	j.next = &stage{status: job.Failed, reason: v.Reason}
	return nil
}
