package governor

import (
	"context"
	"slices"
	"strings"

	"github.com/bursar-io/bursar/internal/resource"
)

// alreadyExists is the whole message of a duplicate environment, policy or
// queue: a client compares it (D3).
const alreadyExists = "Object already exists"

// CreateEnvironment declares a service environment. State is ENABLED unless it
// says otherwise. Refusals: Invalid, Exists, Limit.
func (g *Governor) CreateEnvironment(ctx context.Context, e resource.Environment) error {
	return g.command(ctx, func(t *turn) error { return t.createEnvironment(e) })
}

// UpdateEnvironment changes an environment; the change takes effect at once.
// Lowering limits preempts nothing, it stops new grants (section 4). Refusals:
// Missing, Invalid, Conflict.
func (g *Governor) UpdateEnvironment(ctx context.Context, c EnvironmentChange) error {
	return g.command(ctx, func(t *turn) error { return t.updateEnvironment(c) })
}

// DeleteEnvironment removes an environment that is disabled and on which no
// queue is. Refusals: Missing, Conflict.
func (g *Governor) DeleteEnvironment(ctx context.Context, name string) error {
	return g.command(ctx, func(t *turn) error { return t.deleteEnvironment(name) })
}

// Environments returns all environments, sorted by name.
func (g *Governor) Environments(ctx context.Context) ([]resource.Environment, error) {
	return query(ctx, g, func(s *state) (all []resource.Environment, err error) {
		for _, name := range inNameOrder(s.environments) {
			all = append(all, s.environments[name].Environment)
		}
		return all, nil
	})
}

func (t *turn) createEnvironment(e resource.Environment) error {
	if e.State == "" {
		e.State = resource.Enabled
	}
	if err := valid(e.Validate()); err != nil {
		return err
	}
	if t.environments[e.Name] != nil {
		return refuse(Exists, alreadyExists)
	}
	if len(t.environments) >= resource.MaxEnvironments {
		return refuse(Limit, "There are %d service environments, the most there may be. Delete one that is not needed.", len(t.environments))
	}
	e = e.Clone()
	e.Status, e.CreatedAt = resource.Valid, t.now
	t.addEnvironment(e)
	t.accept("CreateServiceEnvironment", subject(environmentRef(e.Name)), e)
	t.changedResource(environmentRef(e.Name))
	return nil
}

func (t *turn) updateEnvironment(c EnvironmentChange) error {
	e, err := t.environment(c.Name)
	if err != nil {
		return err
	}
	after := e.Environment
	if c.State != nil {
		after.State = *c.State
	}
	if c.Limits != nil {
		after.Limits = slices.Clone(c.Limits)
	}
	if err := valid(after.Validate()); err != nil {
		return err
	}
	if after.CountsInstances() != e.CountsInstances() && len(e.queues) > 0 {
		return refuse(Conflict, "capacityLimits of service environment %s cannot change between %s and instance types while job queues use it: %s. Delete them first, or create another service environment.",
			e.Name, resource.NumInstances, strings.Join(inNameOrder(e.queues), ", "))
	}
	e.replace(after)
	t.accept("UpdateServiceEnvironment", subject(environmentRef(e.Name)), c)
	t.changedResource(environmentRef(e.Name))
	return nil
}

// replace changes an environment, the change taking effect at once.
func (e *environment) replace(after resource.Environment) {
	e.Environment = after
	e.govern()
	e.cohort.SetCapacity(amounts(e.Limits))
	for _, name := range inNameOrder(e.queues) {
		e.queues[name].install() // the nominal of a queue without quota shares is the pool
	}
}

func (t *turn) deleteEnvironment(name string) error {
	e, err := t.environment(name)
	if err != nil {
		return err
	}
	if len(e.queues) > 0 {
		return refuse(Conflict, "Service environment %s is used by job queues: %s. Delete them first.", name, strings.Join(inNameOrder(e.queues), ", "))
	}
	if e.State != resource.Disabled {
		return refuse(Conflict, "Service environment %s has state %s. Set it to %s before deleting it.", name, e.State, resource.Disabled)
	}
	delete(t.environments, name)
	t.accept("DeleteServiceEnvironment", subject(environmentRef(name)), environmentRef(name))
	t.changedResource(environmentRef(name))
	return nil
}

func (s *state) environment(name string) (*environment, error) {
	if e := s.environments[name]; e != nil {
		return e, nil
	}
	return nil, refuse(Missing, "Service environment %s does not exist.", name)
}

// valid turns the error of a field into a refusal.
func valid(err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{Problem: Invalid, Message: err.Error()}
}
