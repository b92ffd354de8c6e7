// Package resource holds what an administrator declares: service
// environments, scheduling policies, job queues and quota shares, as data.
//
// The records know their own shape and defaults. Whether one may be created,
// changed or deleted depends on the others, and is the governor's to decide;
// how they look on a wire is a door's business. Nothing here does I/O.
package resource

import "time"

// State says whether a resource is in use. Disabled resources take no new work.
type State string

// The states of environments, queues and shares.
const (
	Enabled  State = "ENABLED"
	Disabled State = "DISABLED"
)

// Status is where a resource stands in its own life. Changes take effect at
// once, so Bursar shows only Valid, and Deleting while jobs still end.
type Status string

// The statuses that Bursar gives.
const (
	Valid    Status = "VALID"
	Deleting Status = "DELETING"
)

// NumInstances is the capacity unit of an environment that counts instances
// of whatever type.
const NumInstances = "NUM_INSTANCES"

// Limit is an amount of one capacity unit: an instance type such as
// ml.g5.xlarge, or NumInstances.
type Limit struct {
	Unit string `json:"unit"`
	Max  int64  `json:"max"`
}

// Environment is a pool of capacity (a Batch service environment).
type Environment struct {
	Name      string            `json:"name"`
	State     State             `json:"state"`
	Status    Status            `json:"status"`
	Limits    []Limit           `json:"limits"`
	Tags      map[string]string `json:"tags,omitempty"`
	CreatedAt time.Time         `json:"createdAt"`
}

// CountsInstances reports whether the environment has the single limit
// NumInstances rather than limits by instance type.
func (e Environment) CountsInstances() bool {
	return len(e.Limits) == 1 && e.Limits[0].Unit == NumInstances
}

// The idle assignments of quota policies: what is idle goes to the oldest
// waiting head first, or to the share that would then borrow least for its
// weight. AWS Batch has the first only.
const (
	IdleFIFO      = "FIFO"
	IdleFairShare = "FAIR_SHARE"
)

// Policy is a scheduling policy, of one of two kinds that never change: one
// with FairShare is for fair-share queues. Any other is for queues with quota
// shares; its IdleAssignment is set, and Rules are what else it may say.
type Policy struct {
	Name           string            `json:"name"`
	IdleAssignment string            `json:"idleAssignment,omitempty"`
	Rules          Rules             `json:"rules,omitzero"`
	FairShare      *FairShare        `json:"fairShare,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	CreatedAt      time.Time         `json:"createdAt"`
}

// TimeLimitAction ends jobs that wait in front of a queue for longer than
// After with a status reason that starts with Reason (Batch
// jobStateTimeLimitActions with state RUNNABLE and action TERMINATE).
type TimeLimitAction struct {
	Reason string        `json:"reason"`
	After  time.Duration `json:"after"`
}

// Queue is a job queue on one environment: FIFO if Policy is empty, with quota
// shares, or fair-share, as the policy's kind is. Higher priorities are evaluated first among queues that share an
// environment.
type Queue struct {
	Name             string            `json:"name"`
	Priority         int64             `json:"priority"`
	State            State             `json:"state"`
	Status           Status            `json:"status"`
	Environment      string            `json:"environment"`
	EnvironmentOrder int64             `json:"environmentOrder"`
	Policy           string            `json:"policy,omitempty"`
	TimeLimitActions []TimeLimitAction `json:"timeLimitActions,omitempty"`
	Tags             map[string]string `json:"tags,omitempty"`
	CreatedAt        time.Time         `json:"createdAt"`
}

// Sharing is a share's strategy, in Batch's spelling.
type Sharing string

// The strategies (section 1 of the scheduling semantics).
const (
	Reserve       Sharing = "RESERVE"
	Lend          Sharing = "LEND"
	LendAndBorrow Sharing = "LEND_AND_BORROW"
)

// Unlimited is the borrow limit that does not limit.
const Unlimited = -1

// DefaultWeight is the weight of a share that names none.
const DefaultWeight = 1

// Share is a quota share of a queue. BorrowLimit is a percentage of the
// share's own limits that it may use in addition to them; Unlimited by
// default, and meaningful only under LendAndBorrow. BorrowLimits caps, per unit
// named, what it allows. LendLimits is the most that the share lends, per unit
// named; a unit that is not named is lent whole. Weight is the share's part
// under IdleFairShare; shares of weight 0 come last. AWS Batch has no words for
// these three.
type Share struct {
	Queue             string            `json:"queue"`
	Name              string            `json:"name"`
	Limits            []Limit           `json:"limits"`
	Sharing           Sharing           `json:"sharing"`
	BorrowLimit       int64             `json:"borrowLimit"`
	BorrowLimits      []Limit           `json:"borrowLimits,omitempty"`
	LendLimits        []Limit           `json:"lendLimits,omitempty"`
	Weight            int64             `json:"weight"`
	InSharePreemption bool              `json:"inSharePreemption"`
	State             State             `json:"state"`
	Status            Status            `json:"status"`
	Tags              map[string]string `json:"tags,omitempty"`
	CreatedAt         time.Time         `json:"createdAt"`
}

// Kind names a kind of taggable thing.
type Kind string

// The kinds a Ref can point at.
const (
	KindEnvironment Kind = "service-environment"
	KindPolicy      Kind = "scheduling-policy"
	KindQueue       Kind = "job-queue"
	KindShare       Kind = "quota-share"
	KindJob         Kind = "service-job"
)

// Ref points at one thing that can carry tags. Name is a job's id for
// KindJob; Queue is set for KindShare alone.
type Ref struct {
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	Queue string `json:"queue,omitempty"`
}
