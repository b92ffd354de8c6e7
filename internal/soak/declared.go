package soak

import (
	"fmt"
	"maps"
	"slices"

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
	if e.Name == "ApplyPolicy" {
		return b.apply(e)
	}
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
		b.changePolicy(b.policies[v.Name], v)
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
		b.addShare(&v)
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
		b.addLane(q.Name, q)
	}
}

func (b *books) addShare(s *resource.Share) {
	b.addLane(s.Queue+"/"+s.Name, b.queues[s.Queue]).share = s
}

func (b *books) addLane(name string, q *resource.Queue) *lane {
	l := &lane{name: name, queue: q, pool: b.pools[q.Environment], held: map[string]int64{}, stopping: map[string]int64{}}
	b.lanes[name], l.pool.lanes[name] = l, l
	return l
}

// lanesOf returns the lanes of a queue, in order of their names.
func (b *books) lanesOf(q *resource.Queue) []*lane {
	return slices.DeleteFunc(inOrder(b.lanes, func(l *lane) *lane { return l }), func(l *lane) bool { return l.queue != q })
}

// shares returns the lanes that are quota shares, by name.
func (b *books) shares() map[string]*lane {
	shares := maps.Clone(b.lanes)
	maps.DeleteFunc(shares, func(_ string, l *lane) bool { return l.share == nil })
	return shares
}

// takers returns the names under which jobs can be handed in: those of quota
// shares, and of queues without.
func (b *books) takers() map[string]bool {
	names := map[string]bool{}
	for name := range b.shares() {
		names[name] = true
	}
	for name, q := range b.queues {
		if p := b.policies[q.Policy]; p == nil || p.FairShare != nil {
			names[name] = true
		}
	}
	return names
}

// laneFor returns where a job goes; nil: nowhere. A share identifier is there
// from its first job on.
func (b *books) laneFor(s governor.Submission) *lane {
	q := b.queues[s.Queue]
	switch {
	case s.Share != "":
		return b.lanes[s.Queue+"/"+s.Share]
	case q == nil || b.fairShare(q) == nil:
		return b.lanes[s.Queue]
	}
	name := s.Queue + "/" + s.ShareIdentifier
	if b.lanes[name] == nil {
		b.addLane(name, q).identifier = s.ShareIdentifier
	}
	return b.lanes[name]
}

func (b *books) changePolicy(p *resource.Policy, c governor.PolicyChange) {
	set(&p.IdleAssignment, c.IdleAssignment)
	if c.FairShare != nil {
		p.FairShare = c.FairShare
	}
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
	forgetLimits(s)
	set(&s.BorrowLimit, c.BorrowLimit)
	set(&s.InSharePreemption, c.InSharePreemption)
	if c.Limits != nil {
		s.Limits = c.Limits
	}
}

// forgetLimits takes from a share the limits of what it does not do.
func forgetLimits(s *resource.Share) {
	if s.Sharing != resource.LendAndBorrow {
		s.BorrowLimit, s.BorrowLimits = resource.Unlimited, nil
	}
	if s.Sharing == resource.Reserve {
		s.LendLimits = nil
	}
}

// remove books that something goes, at once or with its last job.
func (b *books) remove(operation string, r resource.Ref) error {
	switch operation {
	case "DeleteServiceEnvironment":
		for _, q := range inOrder(b.queues, func(q *resource.Queue) *resource.Queue { return q }) {
			if q.Environment == r.Name {
				return breaks("nothing is deleted that is used", "environment %s has queue %s", r.Name, q.Name)
			}
		}
		delete(b.pools, r.Name)
		return nil
	case "DeleteSchedulingPolicy":
		for _, q := range inOrder(b.queues, func(q *resource.Queue) *resource.Queue { return q }) {
			if q.Policy == r.Name {
				return breaks("nothing is deleted that is used", "policy %s has queue %s", r.Name, q.Name)
			}
		}
		delete(b.policies, r.Name)
		return nil
	case "DeleteJobQueue":
		q := b.queues[r.Name]
		q.Status = resource.Deleting
		for _, l := range b.lanesOf(q) {
			if err := b.end(l); err != nil {
				return err
			}
		}
		return nil
	case "DeleteQuotaShare":
		l := b.lanes[r.Queue+"/"+r.Name]
		l.share.Status = resource.Deleting
		return b.end(l)
	}
	return breaks("commands have names", "%s is none", operation)
}

// end books that the jobs of a lane that is deleted are told to stop.
func (b *books) end(l *lane) error {
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
	clear(b.outranked)
	if r.Kind == resource.KindShare {
		return b.laneGone(b.lanes[r.Queue+"/"+r.Name])
	}
	q := b.queues[r.Name]
	if q.Status != resource.Deleting {
		return breaks("nothing vanishes that was not deleted", "queue %s does", r.Name)
	}
	for _, l := range b.lanesOf(q) {
		if err := b.laneGone(l); err != nil {
			return err
		}
	}
	delete(b.queues, r.Name)
	return nil
}

func (b *books) laneGone(l *lane) error {
	if _, deleted := l.deleted(); !deleted {
		return breaks("nothing vanishes that was not deleted", "%s does", l.name)
	}
	for _, j := range b.accepted {
		if j.lane == l && b.holding[j] {
			return breaks("what is deleted stays until its last job is gone", "%s went before job %s", l.name, j.id)
		}
	}
	delete(l.pool.lanes, l.name)
	delete(b.lanes, l.name)
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
	l := b.laneFor(v.Submission)
	if l == nil || !l.takes() {
		return breaks("what is disabled or deleted takes no jobs", "queue %s does, share %q", v.Queue, v.Share)
	}
	if l.identifier != v.ShareIdentifier {
		return breaks("share identifiers are of fair-share queues", "job %s has %q in %s", v.ID, v.ShareIdentifier, l.name)
	}
	if b.jobs[v.ID] != nil || v.Seq != int64(len(b.accepted))+1 {
		return breaks("jobs are numbered in order of acceptance", "job %s has number %d, after %d jobs", v.ID, v.Seq, len(b.accepted))
	}
	if first := b.tokens[v.Token]; v.Token != "" && first != "" {
		return breaks("a client token makes one job", "token %s made job %s before job %s", v.Token, first, v.ID)
	}
	j := &entry{
		Submission: v.Submission, id: v.ID, seq: v.Seq, created: e.At, moved: e.At,
		lane: l, demand: l.pool.demand(v.Demand), priority: v.Priority, status: job.Runnable,
	}
	b.jobs[j.id], b.waiting[j], b.touched[j] = j, true, true
	b.accepted = append(b.accepted, j)
	b.changes++
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
	maps.DeleteFunc(b.outranked, func(v *entry, _ *outranking) bool { return v.lane.pool == j.lane.pool })
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
