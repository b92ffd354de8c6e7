package governor

import (
	"context"
	"strings"

	"github.com/bursar-io/bursar/internal/resource"
)

// CreatePolicy declares a scheduling policy, for quota shares or for fair-share
// queues. Refusals: Invalid, Exists.
func (g *Governor) CreatePolicy(ctx context.Context, p resource.Policy) error {
	return g.command(ctx, func(t *turn) error { return t.createPolicy(p) })
}

// UpdatePolicy changes a policy, and with it at once all that is governed by it.
// Its kind never changes. Refusals: Missing, Invalid.
func (g *Governor) UpdatePolicy(ctx context.Context, c PolicyChange) error {
	return g.command(ctx, func(t *turn) error { return t.updatePolicy(c) })
}

// DeletePolicy removes a policy that no queue uses. Refusals: Missing,
// Conflict.
func (g *Governor) DeletePolicy(ctx context.Context, name string) error {
	return g.command(ctx, func(t *turn) error { return t.deletePolicy(name) })
}

// Policies returns all scheduling policies, sorted by name.
func (g *Governor) Policies(ctx context.Context) ([]resource.Policy, error) {
	return query(ctx, g, func(s *state) (all []resource.Policy, err error) {
		for _, name := range inNameOrder(s.policies) {
			all = append(all, *s.policies[name])
		}
		return all, nil
	})
}

func (t *turn) createPolicy(p resource.Policy) error {
	if err := valid(p.Validate()); err != nil {
		return err
	}
	if t.policies[p.Name] != nil {
		return refuse(Exists, alreadyExists)
	}
	p = p.Clone()
	p.CreatedAt = t.now
	t.policies[p.Name] = &p
	t.accept("CreateSchedulingPolicy", subject(policyRef(p.Name)), p)
	t.changedResource(policyRef(p.Name))
	return nil
}

func (t *turn) updatePolicy(c PolicyChange) error {
	p, err := t.policy(c.Name)
	if err != nil {
		return err
	}
	if err := c.keepsKind(p); err != nil {
		return err
	}
	after := *p
	replace(&after.IdleAssignment, c.IdleAssignment)
	if c.FairShare != nil {
		after.FairShare = c.FairShare
		after = after.Clone() // what the caller does to its change must not matter
	}
	if err := valid(after.Validate()); err != nil {
		return err
	}
	t.replacePolicy(p, after)
	t.accept("UpdateSchedulingPolicy", subject(policyRef(p.Name)), c)
	t.changedResource(policyRef(p.Name))
	return nil
}

// keepsKind checks that the change is of what a policy of that kind has.
func (c PolicyChange) keepsKind(p *resource.Policy) error {
	if c.FairShare != nil && p.FairShare == nil {
		return refuse(Invalid, "Scheduling policy %s has a quotaSharePolicy, and the kind of a policy does not change. Create another one with a fairsharePolicy.", p.Name)
	}
	if c.IdleAssignment != nil && p.FairShare != nil {
		return refuse(Invalid, "Scheduling policy %s has a fairsharePolicy, and the kind of a policy does not change. Create another one with a quotaSharePolicy.", p.Name)
	}
	return nil
}

// replacePolicy changes a policy, and with it all that is governed by it.
func (t *turn) replacePolicy(p *resource.Policy, after resource.Policy) {
	before := *p
	*p = after
	for _, name := range inNameOrder(t.queues) {
		if q := t.queues[name]; q.policy == p {
			q.environment.govern()
			t.reweigh(q, !sameWindow(&before, p))
		}
	}
}

func (t *turn) deletePolicy(name string) error {
	if _, err := t.policy(name); err != nil {
		return err
	}
	var users []string
	for _, q := range inNameOrder(t.queues) {
		if t.queues[q].Policy == name {
			users = append(users, q)
		}
	}
	if users != nil {
		return refuse(Conflict, "Scheduling policy %s is used by job queues: %s. Delete them, or give them another policy, first.", name, strings.Join(users, ", "))
	}
	delete(t.policies, name)
	t.accept("DeleteSchedulingPolicy", subject(policyRef(name)), policyRef(name))
	t.changedResource(policyRef(name))
	return nil
}

func (s *state) policy(name string) (*resource.Policy, error) {
	if p := s.policies[name]; p != nil {
		return p, nil
	}
	return nil, refuse(Missing, "SchedulingPolicy %s not found. Create it first.", name)
}
