package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
)

// applyPolicy has somebody apply a policy file: mostly as it was planned, now
// and then after others have changed something, or without a plan.
func (d *day) applyPolicy() {
	want := d.declaration()
	plan, planned := d.plan(want)
	if !planned && d.people.IntN(3) > 0 {
		return
	}
	upon, version := d.books.declared(want.Name), ""
	if planned && d.people.IntN(4) > 0 {
		version = plan.Version
	}
	if d.people.IntN(3) == 0 {
		one(d.people, d.changeShare, d.changeShare, d.changeEnvironment, d.changeQueue, d.changePolicy)()
	}
	stands := d.books.declared(want.Name) == upon
	var applied governor.Plan
	o := d.command("ApplyPolicy", fmt.Sprintf("%+v, version %q", want, version), func() bool { return len(applied.Changes) == 0 },
		func(ctx context.Context, g *governor.Governor) (err error) {
			applied, err = g.Apply(ctx, want, version)
			return err
		})
	outdated := o.refusal != nil && strings.Contains(o.refusal.Message, "is not what was planned upon")
	switch {
	case version != "" && !stands && o.accepted():
		d.broken("a plan that others came between is not applied", "%s was", version)
	case outdated && stands:
		d.broken("a plan that still stands can be applied", "%s cannot: %s", version, o.refusal)
	case planned && stands && o.accepted():
		d.comparePlans("what is applied is what was planned", plan.Changes, applied.Changes)
	}
	if o.accepted() {
		d.planAgain(want)
	}
}

// plan asks what a declaration would change. That changes nothing.
func (d *day) plan(want governor.Declaration) (plan governor.Plan, ok bool) {
	if !d.settle() || !d.ok() {
		return plan, false
	}
	d.note("plan %+v", want)
	commits := d.commits()
	plan, err := d.governor.Plan(d.ctx, want)
	d.settle()
	var refusal *governor.Refusal
	switch {
	case d.commits() != commits && !d.present.dead:
		d.broken("a plan changes nothing", "one was followed by a commit")
	case errors.As(err, &refusal):
		d.note("plan: %v", err)
	case err != nil && !errors.Is(err, governor.ErrUnavailable):
		d.broken("errors are refusals, or say that nothing can be accepted now", "a plan: %v", err)
	}
	return plan, err == nil
}

// planAgain checks that nothing is left to be changed of what was applied.
func (d *day) planAgain(want governor.Declaration) {
	if plan, ok := d.plan(want); ok {
		d.comparePlans("what was applied is as it was declared", nil, plan.Changes)
	}
}

// comparePlans compares changes without their effects, which depend on the time.
func (d *day) comparePlans(check string, planned, applied []governor.Change) {
	if diff := cmp.Diff(planned, applied, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(governor.Change{}, "Effect")); diff != "" {
		d.broken(check, "(-planned +applied):\n%s", diff)
	}
}

// declaration is what is declared of a queue with quota shares, changed in some
// respects; or something new; or of a queue that has none, which is refused.
func (d *day) declaration() governor.Declaration {
	rng := d.people
	name := fmt.Sprintf("applied-%d", rng.IntN(2))
	if names := d.applicable(); len(names) > 0 && rng.IntN(4) > 0 {
		name = one(rng, names...)
	}
	want := governor.Declaration{Name: name, Limits: d.capacity(), IdleAssignment: d.idleAssignment(), Rules: d.rules(), Prune: rng.IntN(3) == 0}
	if q := d.books.queues[name]; q != nil && q.Policy != "" {
		p := d.books.policies[q.Policy]
		if rng.IntN(2) == 0 {
			want.Limits = d.books.pools[q.Environment].Limits
		}
		if rng.IntN(3) == 0 {
			want.IdleAssignment, want.Rules = p.IdleAssignment, p.Rules
		}
		want.Shares = d.sharesChanged(d.books.sharesOf(q))
	}
	if len(want.Shares) == 0 || rng.IntN(4) == 0 {
		want.Shares = append(want.Shares, d.share("", fmt.Sprintf("share-%d", rng.IntN(6)))) // twice now and then, and refused
	}
	return want
}

// applicable are the queues with quota shares; now and then, all.
func (d *day) applicable() []string {
	all := d.people.IntN(10) == 0
	names := inOrder(d.books.queues, func(q *resource.Queue) string { return q.Name })
	return slices.DeleteFunc(names, func(name string) bool {
		p := d.books.policies[d.books.queues[name].Policy]
		return !all && (p == nil || p.FairShare != nil)
	})
}

// sharesChanged leaves out some shares, and changes others.
func (d *day) sharesChanged(shares []resource.Share) []resource.Share {
	var changed []resource.Share
	for _, s := range shares {
		switch d.people.IntN(6) {
		case 0:
		case 1, 2:
			changed = append(changed, d.share("", s.Name))
		default:
			changed = append(changed, s)
		}
	}
	return changed
}
