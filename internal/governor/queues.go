package governor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// CreateQueue declares a job queue. One with a policy for quota shares needs an
// environment of its own, enabled and limited by instance types; one with a
// fair-share policy, or with none, may share its environment with others of
// these kinds. State is ENABLED unless it says otherwise. Refusals:
// Invalid, Exists, Limit, Missing, Conflict.
func (g *Governor) CreateQueue(ctx context.Context, q resource.Queue) error {
	return g.command(ctx, func(t *turn) error { return t.createQueue(q) })
}

// UpdateQueue changes a queue. A policy can be replaced by another one of its
// kind but neither added nor taken away; the environment can be replaced while the queue
// has no jobs. Refusals: Missing, Invalid, Conflict.
func (g *Governor) UpdateQueue(ctx context.Context, c QueueChange) error {
	return g.command(ctx, func(t *turn) error { return t.updateQueue(c) })
}

// DeleteQueue ends the jobs of a disabled queue without quota shares and
// removes it: it has status DELETING until the last job is gone. Refusals:
// Missing, Conflict.
func (g *Governor) DeleteQueue(ctx context.Context, name string) error {
	return g.command(ctx, func(t *turn) error { return t.deleteQueue(name) })
}

// Queues returns all job queues, sorted by name.
func (g *Governor) Queues(ctx context.Context) ([]resource.Queue, error) {
	return query(ctx, g, func(s *state) (all []resource.Queue, err error) {
		for _, name := range inNameOrder(s.queues) {
			all = append(all, s.queues[name].Queue)
		}
		return all, nil
	})
}

func (t *turn) createQueue(q resource.Queue) error {
	if q.State == "" {
		q.State = resource.Enabled
	}
	if err := valid(q.Validate()); err != nil {
		return err
	}
	if t.queues[q.Name] != nil {
		return refuse(Exists, alreadyExists)
	}
	if len(t.queues) >= resource.MaxQueues {
		return refuse(Limit, "There are %d job queues, the most there may be. Delete one that is not needed.", len(t.queues))
	}
	if q.Policy != "" {
		if _, err := t.policy(q.Policy); err != nil {
			return err
		}
	}
	if err := t.attachable(q); err != nil {
		return err
	}
	q = q.Clone()
	q.Status, q.CreatedAt = resource.Valid, t.now
	t.addQueue(q)
	t.accept("CreateJobQueue", subject(queueRef(q.Name)), q)
	t.changedResource(queueRef(q.Name))
	return nil
}

// attachable checks whether a queue may be on its environment.
func (s *state) attachable(q resource.Queue) error {
	const first = "Service environments must be created and valid before attaching them to a job queue."
	e := s.environments[q.Environment]
	if e == nil {
		return refuse(Missing, first+" Service environment %s does not exist.", q.Environment)
	}
	if p := s.policies[q.Policy]; q.Policy == "" || p != nil && p.FairShare != nil {
		if e.managesQuotas() {
			return refuse(Conflict, "Service environment %s is used for quota management by job queue %s alone. Use another one.", e.Name, inNameOrder(e.queues)[0])
		}
		return nil
	}
	if e.State != resource.Enabled {
		return refuse(Conflict, first+" Service environment %s has state %s; set it to %s.", e.Name, e.State, resource.Enabled)
	}
	if e.CountsInstances() {
		return refuse(Invalid, "Service environment %s is limited by %s, but a job queue with quota shares needs one limited by instance types.", e.Name, resource.NumInstances)
	}
	if len(e.queues) > 0 {
		return refuse(Conflict, "Service environment %s is used by job queues: %s. A job queue with quota shares needs one of its own.", e.Name, strings.Join(inNameOrder(e.queues), ", "))
	}
	return nil
}

func (t *turn) updateQueue(c QueueChange) error {
	q, err := t.liveQueue(c.Name)
	if err != nil {
		return err
	}
	after := c.applied(q.Queue)
	if err := valid(after.Validate()); err != nil {
		return err
	}
	if err := t.policySwap(q, after.Policy); err != nil {
		return err
	}
	if after.Environment != q.Environment {
		if err := t.movable(q, after); err != nil {
			return err
		}
	}
	t.replaceQueue(q, after)
	t.accept("UpdateJobQueue", subject(queueRef(q.Name)), c)
	t.changedResource(queueRef(q.Name))
	return nil
}

// applied returns the queue with the changes made.
func (c QueueChange) applied(q resource.Queue) resource.Queue {
	replace(&q.State, c.State)
	replace(&q.Priority, c.Priority)
	replace(&q.Policy, c.Policy)
	replace(&q.Environment, c.Environment)
	replace(&q.EnvironmentOrder, c.EnvironmentOrder)
	if c.TimeLimitActions != nil {
		q.TimeLimitActions = slices.Clone(*c.TimeLimitActions)
	}
	return q
}

func replace[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func (t *turn) policySwap(q *queue, policy string) error {
	switch {
	case policy == q.Policy:
		return nil
	case q.Policy == "":
		return refuse(Conflict, "Job queue %s has no scheduling policy, and cannot get one. Create another job queue with schedulingPolicyArn.", q.Name)
	case policy == "":
		return refuse(Conflict, "Job queue %s has scheduling policy %s, which can be replaced but not taken away.", q.Name, q.Policy)
	}
	p, err := t.policy(policy)
	if err != nil {
		return err
	}
	if is, will := kindOf(q.policy), kindOf(p); will != is {
		return refuse(Conflict, "Job queue %s has scheduling policy %s, which has a %s; scheduling policy %s has a %s. Replace it by another one with a %s.",
			q.Name, q.Policy, is, p.Name, will, is)
	}
	return nil
}

// kindOf is the kind of a policy, in AWS's word for it.
func kindOf(p *resource.Policy) string {
	if p.FairShare != nil {
		return "fairsharePolicy"
	}
	return "quotaSharePolicy"
}

// movable checks whether the queue may go to another environment.
func (t *turn) movable(q *queue, after resource.Queue) error {
	for _, l := range q.lanes() {
		if l.jobs > 0 {
			return refuse(Conflict, "Job queue %s has jobs on service environment %s, and cannot be moved to %s. Wait until they have finished, or terminate them.",
				q.Name, q.Environment, after.Environment)
		}
	}
	return t.attachable(after)
}

func (t *turn) replaceQueue(q *queue, after resource.Queue) {
	before, moves := q.policy, after.Environment != q.Environment
	q.policy = t.policies[after.Policy]
	if moves {
		t.detach(q)
		q.Queue = after
		q.attach(t.environments[after.Environment])
	}
	q.Queue = after
	q.environment.govern()
	t.reweigh(q, moves || !sameWindow(before, q.policy))
	for _, l := range q.lanes() {
		for _, a := range t.jobsIn(l) {
			t.reschedule(a) // it may be parked, and its time limit another now
		}
	}
}

// detach takes a queue without jobs off its environment.
func (t *turn) detach(q *queue) {
	for _, l := range q.lanes() {
		t.check("remove share "+l.name, q.environment.cohort.RemoveShare(l.name))
	}
	delete(q.environment.queues, q.Name)
	q.environment.govern()
}

func (t *turn) deleteQueue(name string) error {
	q, err := t.queue(name)
	if err != nil || q.Status == resource.Deleting {
		return err
	}
	if q.State != resource.Disabled {
		return refuse(Conflict, "Job queue %s has state %s. Set it to %s before deleting it.", name, q.State, resource.Disabled)
	}
	if len(q.shares) > 0 {
		return refuse(Conflict, "Job queue %s has quota shares: %s. Delete them first.", name, strings.Join(inNameOrder(q.shares), ", "))
	}
	q.Status = resource.Deleting
	t.accept("DeleteJobQueue", subject(queueRef(name)), queueRef(name))
	t.changedResource(queueRef(name))
	if q.jobs() == 0 {
		t.removeQueue(q)
		return nil
	}
	for _, l := range q.lanes() {
		t.endJobs(l)
	}
	return nil
}

// clear ends the jobs of a quota share that is being deleted; the last one to
// go takes the share with it.
func (t *turn) clear(l *lane) {
	if l.jobs == 0 {
		t.vanish(l)
		return
	}
	t.endJobs(l)
}

// endJobs ends the jobs of a lane that is being deleted, itself or with its
// queue.
func (t *turn) endJobs(l *lane) {
	reason, _ := l.deleted()
	for _, a := range t.jobsIn(l) {
		t.terminate(a, reason)
	}
}

// deleted reports whether a lane is being deleted, and the reason with which
// its jobs end.
func (l *lane) deleted() (reason string, gone bool) {
	if l.share.Status == resource.Deleting {
		return fmt.Sprintf("Quota share %s of job queue %s was deleted", l.share.Name, l.queue.Name), true
	}
	if l.queue.Status == resource.Deleting {
		return fmt.Sprintf("Job queue %s was deleted", l.queue.Name), true
	}
	return "", false
}

// vanish removes a share or queue that is being deleted and has no jobs left.
func (t *turn) vanish(l *lane) {
	if _, gone := l.deleted(); !gone || l.jobs > 0 {
		return
	}
	switch {
	case l.share.Name != "":
		t.removeShare(l)
	case l.queue.jobs() == 0:
		t.removeQueue(l.queue)
	}
}

func (t *turn) removeQueue(q *queue) {
	t.detach(q)
	q.environment.touched = true
	delete(t.queues, q.Name)
	t.removed(queueRef(q.Name))
}

// removed journals and stores that a resource is gone.
func (t *turn) removed(r resource.Ref) {
	t.write(store.State, "DELETED", subject(r), r)
	t.changedResource(r)
}

func (s *state) queue(name string) (*queue, error) {
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, refuse(Missing, "Job queue %s does not exist.", name)
}

// liveQueue returns a queue that is not being deleted.
func (s *state) liveQueue(name string) (*queue, error) {
	q, err := s.queue(name)
	if err == nil && q.Status == resource.Deleting {
		return nil, refuse(Conflict, "Job queue %s has status %s. Wait until it is gone, or use another one.", name, q.Status)
	}
	return q, err
}
