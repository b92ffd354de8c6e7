package governor

import (
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
)

// This file says how the engine knows what administrators declare.

// cohortPolicy is the policy as the engine knows it.
func cohortPolicy(p *resource.Policy) quota.Policy {
	r := p.Rules
	c := quota.Policy{
		BorrowerPreemption:        r.BorrowerPreemption,
		Rebalance:                 r.Rebalance,
		ShareUnallocated:          r.ShareUnallocated,
		MinRuntime:                r.MinRuntime,
		AssumedCheckpointInterval: r.AssumedCheckpointInterval,
	}
	if p.IdleAssignment == resource.IdleFairShare {
		c.IdleAssignment = quota.FairShare
	}
	switch r.Queueing {
	case resource.BestEffort:
		c.Queueing = quota.BestEffort
	case resource.Backfill:
		c.Queueing = quota.Backfill
	}
	if r.PriorityScope == resource.InCohort {
		c.PriorityScope = quota.InCohort
	}
	switch r.Victims {
	case resource.MostOverQuota:
		c.Victims = quota.MostOverQuota
	case resource.NewestFirst:
		c.Victims = quota.NewestFirst
	}
	return c
}

// cohortShare is the quota share as the engine knows it, by its own name.
func cohortShare(s resource.Share) quota.Share {
	c := quota.Share{
		Name:              s.Name,
		Nominal:           amounts(s.Limits),
		BorrowPercent:     s.BorrowLimit,
		BorrowLimits:      amounts(s.BorrowLimits),
		LendLimits:        amounts(s.LendLimits),
		InSharePreemption: s.InSharePreemption,
		Weight:            s.Weight,
	}
	switch s.Sharing {
	case resource.Lend:
		c.Sharing = quota.Lend
	case resource.LendAndBorrow:
		c.Sharing = quota.LendAndBorrow
	default:
		c.Sharing = quota.Reserve
	}
	return c
}

// grace is how long the queue's jobs have to stop; 0: as long as the runner
// gives everybody.
func (q *queue) grace() time.Duration {
	if q.policy == nil {
		return 0
	}
	return q.policy.Rules.GracePeriod
}
