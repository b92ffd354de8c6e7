package resource

import (
	"encoding/json"
	"fmt"
	"time"
)

// Rules are what a policy with quota shares says beyond its idle assignment.
// AWS Batch has no words for them; the zero value is how AWS Batch does it.
type Rules struct {
	Queueing      Queueing      `json:"queueing,omitempty"`
	PriorityScope PriorityScope `json:"priorityScope,omitempty"`
	Victims       Victims       `json:"victims,omitempty"`
	// BorrowerPreemption and Rebalance are steps 4 and 5 of a pass (section 3
	// of the scheduling semantics).
	BorrowerPreemption bool `json:"borrowerPreemption,omitempty"`
	Rebalance          bool `json:"rebalance,omitempty"`
	// ShareUnallocated makes capacity that no share owns borrowable.
	ShareUnallocated bool `json:"shareUnallocated,omitempty"`
	// AssumedCheckpointInterval is how much work a job without a checkpoint is
	// taken to lose at most (section 5); 0: an hour.
	AssumedCheckpointInterval time.Duration `json:"assumedCheckpointInterval,omitempty"`
	// MinRuntime is for how long a job is no victim of anything but reclaim.
	MinRuntime time.Duration `json:"minRuntime,omitempty"`
	// GracePeriod is how long workers of jobs that start under the policy have
	// to stop; 0: as long as the server gives them.
	GracePeriod time.Duration `json:"gracePeriod,omitempty"`
}

// Queueing says what may happen behind a blocked head (section 3).
type Queueing string

// The kinds of queueing.
const (
	Strict     Queueing = ""
	BestEffort Queueing = "BEST_EFFORT"
	Backfill   Queueing = "BACKFILL"
)

// PriorityScope says between which jobs priorities compare.
type PriorityScope string

// The scopes of priorities.
const (
	InEachShare PriorityScope = ""
	InCohort    PriorityScope = "COHORT"
)

// Victims is the order in which equals are preempted (section 5).
type Victims string

// The orders of victims.
const (
	LeastLostWork Victims = ""
	MostOverQuota Victims = "MOST_OVER_QUOTA"
	NewestFirst   Victims = "NEWEST_FIRST"
)

// validate returns an error that names the first rule with a value that cannot
// be, and what would be right.
func (r Rules) validate() error {
	switch r.Queueing {
	case Strict, BestEffort, Backfill:
	default:
		return invalid("queueing is %q; use %s or %s, or leave it out for strict order", r.Queueing, BestEffort, Backfill)
	}
	switch r.PriorityScope {
	case InEachShare, InCohort:
	default:
		return invalid("priorityScope is %q; use %s, or leave it out for priorities that compare inside a share", r.PriorityScope, InCohort)
	}
	switch r.Victims {
	case LeastLostWork, MostOverQuota, NewestFirst:
	default:
		return invalid("victims is %q; use %s or %s, or leave it out for least lost work", r.Victims, MostOverQuota, NewestFirst)
	}
	return first(
		func() error { return validateDuration("assumedCheckpointInterval", r.AssumedCheckpointInterval) },
		func() error { return validateDuration("minRuntime", r.MinRuntime) },
		func() error { return validateDuration("gracePeriod", r.GracePeriod) },
	)
}

func validateDuration(field string, d time.Duration) error {
	if d < 0 || d > MaxRuleDuration {
		return invalid("%s is %s; use 0s to %s", field, d, MaxRuleDuration)
	}
	return nil
}

// UnmarshalJSON reads a share. One that was stored before shares had weights
// has DefaultWeight.
func (s *Share) UnmarshalJSON(text []byte) error {
	type plain Share // without this method
	read := plain{Weight: DefaultWeight}
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("read a quota share: %w", err)
	}
	*s = Share(read)
	return nil
}
