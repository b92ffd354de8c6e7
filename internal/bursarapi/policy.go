package bursarapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/scenario"
)

// plan says what a policy file would change.
func (d *door) plan(ctx context.Context, p parameters) (Plan, error) {
	want, err := p.declaration()
	if err != nil {
		return Plan{}, err
	}
	return d.Governor.Plan(ctx, want)
}

// apply has a policy file govern.
func (d *door) apply(ctx context.Context, p parameters) (Plan, error) {
	want, err := p.declaration()
	if err != nil {
		return Plan{}, err
	}
	return d.Governor.Apply(ctx, want, p.Get("version"))
}

// policy is what governs, as a policy file.
func (d *door) policy(ctx context.Context, p parameters) (policyFile, error) {
	queue, err := p.queue()
	if err != nil {
		return policyFile{}, err
	}
	is, err := d.Governor.Declared(ctx, queue)
	if err != nil {
		return policyFile{}, err
	}
	text, err := cohortOf(is).Encode()
	return policyFile{Policy: string(text)}, err
}

// standing is where a queue stands.
func (d *door) standing(ctx context.Context, p parameters) (Standing, error) {
	queue, err := p.queue()
	if err != nil {
		return Standing{}, err
	}
	s, err := d.Governor.Standing(ctx, queue)
	if err != nil {
		return Standing{}, err
	}
	text, err := cohortOf(s.Declaration).Encode()
	return Standing{At: s.At, Policy: string(text), Grace: d.Grace, Jobs: s.Jobs}, err
}

func (p parameters) queue() (string, error) {
	queue := p.Get("queue")
	if queue == "" {
		return "", invalid("queue is missing; name a job queue")
	}
	return queue, nil
}

// declaration reads the policy file that is the request's body.
func (p parameters) declaration() (governor.Declaration, error) {
	prune, err := p.flag("prune")
	if err != nil {
		return governor.Declaration{}, err
	}
	text, err := io.ReadAll(p.body)
	if err != nil {
		return governor.Declaration{}, fmt.Errorf("read the policy file: %w", err)
	}
	cohort, err := scenario.ParseCohort("policy", text)
	if wrong := (*scenario.FileError)(nil); errors.As(err, &wrong) {
		return governor.Declaration{}, invalid("%v", wrong)
	}
	if err != nil {
		return governor.Declaration{}, err
	}
	d, err := declarationOf(cohort)
	d.Prune = prune
	return d, err
}

// declarationOf is a policy file's cohort as the governor knows it.
func declarationOf(c scenario.Cohort) (governor.Declaration, error) {
	if c.Name == "" {
		return governor.Declaration{}, invalid("the policy has no name; give it that of its job queue, as in name: training")
	}
	if c.Gang != scenario.StandardGang() {
		return governor.Declaration{}, invalid("gang is set, but a server does not mind gangs that are not whole yet; leave gang out")
	}
	d := governor.Declaration{
		Name:           c.Name,
		Limits:         limitsOf(c.Capacity, false),
		IdleAssignment: resource.IdleFIFO,
		Rules:          rulesOf(c),
	}
	if c.Policy.IdleAssignment == quota.FairShare {
		d.IdleAssignment = resource.IdleFairShare
	}
	for _, s := range c.Shares {
		d.Shares = append(d.Shares, shareOf(s))
	}
	return d, nil
}

func rulesOf(c scenario.Cohort) resource.Rules {
	p := c.Policy
	r := resource.Rules{
		BorrowerPreemption:        p.BorrowerPreemption,
		Rebalance:                 p.Rebalance,
		ShareUnallocated:          p.ShareUnallocated,
		AssumedCheckpointInterval: p.AssumedCheckpointInterval,
		MinRuntime:                p.MinRuntime,
		GracePeriod:               c.GracePeriod,
	}
	switch p.Queueing {
	case quota.BestEffort:
		r.Queueing = resource.BestEffort
	case quota.Backfill:
		r.Queueing = resource.Backfill
	default:
		r.Queueing = resource.Strict
	}
	if p.PriorityScope == quota.InCohort {
		r.PriorityScope = resource.InCohort
	}
	switch p.Victims {
	case quota.MostOverQuota:
		r.Victims = resource.MostOverQuota
	case quota.NewestFirst:
		r.Victims = resource.NewestFirst
	default:
		r.Victims = resource.LeastLostWork
	}
	return r
}

func shareOf(s scenario.Share) resource.Share {
	r := resource.Share{
		Name:              s.Name,
		Limits:            limitsOf(s.Nominal, false),
		Sharing:           resource.Reserve,
		BorrowLimit:       s.BorrowPercent,
		BorrowLimits:      limitsOf(s.BorrowLimits, true),
		LendLimits:        limitsOf(s.LendLimits, true),
		InSharePreemption: s.InSharePreemption,
		Weight:            s.Weight,
		State:             resource.Enabled,
	}
	switch s.Sharing {
	case quota.Lend:
		r.Sharing = resource.Lend
	case quota.LendAndBorrow:
		r.Sharing = resource.LendAndBorrow
	default:
	}
	if s.Disabled {
		r.State = resource.Disabled
	}
	return r
}

// limitsOf are the amounts by unit. Zeros say nothing of a capacity or quota,
// which are zero where they are not named, but limit what is not.
func limitsOf(a quota.Amounts, zeros bool) []resource.Limit {
	var limits []resource.Limit
	for _, u := range slices.Sorted(maps.Keys(a)) {
		if a[u] != 0 || zeros {
			limits = append(limits, resource.Limit{Unit: string(u), Max: a[u]})
		}
	}
	return limits
}

// cohortOf is what is declared, as a policy file has it.
func cohortOf(d governor.Declaration) scenario.Cohort {
	policy, shares := d.Engine()
	c := scenario.Cohort{
		Name: d.Name, Capacity: quota.Amounts{}, Policy: policy,
		GracePeriod: d.Rules.GracePeriod, Gang: scenario.StandardGang(),
	}
	for _, l := range d.Limits {
		c.Capacity[quota.Unit(l.Unit)] = l.Max
	}
	if policy.AssumedCheckpointInterval == 0 {
		c.Policy.AssumedCheckpointInterval = quota.DefaultCheckpointInterval
	}
	for i, s := range shares {
		c.Shares = append(c.Shares, scenario.Share{Share: s, Disabled: d.Shares[i].State == resource.Disabled})
	}
	return c
}
