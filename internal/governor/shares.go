package governor

import (
	"context"
	"slices"

	"github.com/bursar-io/bursar/internal/resource"
)

// CreateShare declares a quota share of a queue with a policy. State is
// ENABLED unless it says otherwise. Refusals: Invalid, Missing, Exists, Limit,
// Conflict.
func (g *Governor) CreateShare(ctx context.Context, s resource.Share) error {
	return g.command(ctx, func(t *turn) error { return t.createShare(s) })
}

// UpdateShare changes a share. Lowered limits preempt nothing by themselves,
// but what is beyond them may be reclaimed (section 4). A new strategy that
// does not borrow takes the borrow limit away. Refusals: Missing, Invalid,
// Conflict.
func (g *Governor) UpdateShare(ctx context.Context, c ShareChange) error {
	return g.command(ctx, func(t *turn) error { return t.updateShare(c) })
}

// DeleteShare ends the jobs of a disabled share and removes it: it has status
// DELETING until the last job is gone. Refusals: Missing, Conflict.
func (g *Governor) DeleteShare(ctx context.Context, queueName, name string) error {
	return g.command(ctx, func(t *turn) error { return t.deleteShare(queueName, name) })
}

// Shares returns the quota shares of a queue, sorted by name; a queue without
// a policy for them has none. Refusal: Missing, if there is no such queue.
func (g *Governor) Shares(ctx context.Context, queueName string) ([]resource.Share, error) {
	return query(ctx, g, func(s *state) (all []resource.Share, err error) {
		q, err := s.queue(queueName)
		if err != nil {
			return nil, err
		}
		for _, name := range inNameOrder(q.shares) {
			all = append(all, q.shares[name].share)
		}
		return all, nil
	})
}

func (t *turn) createShare(r resource.Share) error {
	if r.State == "" {
		r.State = resource.Enabled
	}
	if err := valid(r.Validate()); err != nil {
		return err
	}
	q, err := t.liveQueue(r.Queue)
	if err != nil {
		return err
	}
	if q.shares == nil {
		return refuse(Invalid, "Job queue %s has no scheduling policy with quota shares. Create quota shares in a job queue with a quotaSharePolicy.", q.Name)
	}
	if q.shares[r.Name] != nil {
		return refuse(Exists, "Quota share %s already exists in job queue %s.", r.Name, q.Name)
	}
	if len(q.shares) >= resource.MaxSharesPerQueue {
		return refuse(Limit, "Job queue %s has %d quota shares, the most there may be. Delete one that is not needed.", q.Name, len(q.shares))
	}
	r = r.Clone()
	r.Status, r.CreatedAt = resource.Valid, t.now
	forgetLimits(&r)
	t.addShare(q, r)
	q.environment.touched = true
	t.accept("CreateQuotaShare", subject(shareRef(q.Name, r.Name)), r)
	t.changedResource(shareRef(q.Name, r.Name))
	return nil
}

// forgetLimits gives a share that does not borrow, or not lend, the default
// limits of it.
func forgetLimits(r *resource.Share) {
	if r.Sharing != resource.LendAndBorrow {
		r.BorrowLimit, r.BorrowLimits = resource.Unlimited, nil
	}
	if r.Sharing == resource.Reserve {
		r.LendLimits = nil
	}
}

func (t *turn) updateShare(c ShareChange) error {
	l, err := t.liveShare(c.Queue, c.Name)
	if err != nil {
		return err
	}
	after := c.applied(l.share)
	if err := valid(after.Validate()); err != nil {
		return err
	}
	forgetLimits(&after)
	l.share = after
	l.queue.environment.cohort.SetShare(l.quota())
	t.touch(l)
	t.accept("UpdateQuotaShare", subject(shareRef(c.Queue, c.Name)), c)
	t.changedResource(shareRef(c.Queue, c.Name))
	return nil
}

// applied returns the share with the changes made.
func (c ShareChange) applied(r resource.Share) resource.Share {
	replace(&r.State, c.State)
	if c.Limits != nil {
		r.Limits = slices.Clone(c.Limits)
	}
	if c.Sharing != nil {
		r.Sharing = *c.Sharing
		forgetLimits(&r)
	}
	replace(&r.BorrowLimit, c.BorrowLimit)
	replace(&r.InSharePreemption, c.InSharePreemption)
	return r
}

func (t *turn) deleteShare(queueName, name string) error {
	l, err := t.share(queueName, name)
	if err != nil || l.share.Status == resource.Deleting {
		return err
	}
	if l.share.State != resource.Disabled {
		return refuse(Conflict, "Quota share %s of job queue %s has state %s. Set it to %s before deleting it.", name, queueName, l.share.State, resource.Disabled)
	}
	l.share.Status = resource.Deleting
	t.accept("DeleteQuotaShare", subject(shareRef(queueName, name)), shareRef(queueName, name))
	t.changedResource(shareRef(queueName, name))
	t.clear(l)
	return nil
}

func (t *turn) removeShare(l *lane) {
	t.check("remove share "+l.name, l.queue.environment.cohort.RemoveShare(l.name))
	t.touch(l)
	delete(l.queue.shares, l.share.Name)
	t.removed(shareRef(l.queue.Name, l.share.Name))
}

func (s *state) share(queueName, name string) (*lane, error) {
	q, err := s.queue(queueName)
	if err != nil {
		return nil, err
	}
	if l := q.shares[name]; l != nil {
		return l, nil
	}
	return nil, refuse(Missing, "Quota share %s of job queue %s does not exist.", name, queueName)
}

// liveShare returns a share that is not being deleted.
func (s *state) liveShare(queueName, name string) (*lane, error) {
	l, err := s.share(queueName, name)
	if err == nil && l.share.Status == resource.Deleting {
		return nil, refuse(Conflict, "Quota share %s of job queue %s has status %s. Wait until it is gone, or use another one.", name, queueName, l.share.Status)
	}
	return l, err
}
