package governor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
)

// Problem is the kind of a Refusal.
type Problem int

// The kinds of refusals.
const (
	Invalid  Problem = iota // a field's value cannot be
	Missing                 // what is named does not exist
	Exists                  // what is to be created exists
	Conflict                // the state of something forbids it
	Limit                   // a count would exceed its limit
)

// Refusal is the error of a command that was not accepted and changed nothing.
// Its message names the field, the value, and what would be right.
type Refusal struct {
	Problem Problem
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(p Problem, format string, args ...any) error {
	return &Refusal{Problem: p, Message: fmt.Sprintf(format, args...)}
}

// ErrUnavailable is wrapped by the error of a command that could not be made
// durable, or that came while the governor was stopping. It changed nothing.
var ErrUnavailable = errors.New("the governor cannot accept commands now")

type principalKey struct{}

// WithPrincipal returns a context whose commands are journaled as by name.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name)
}

// EnvironmentChange changes what is not nil of an environment.
type EnvironmentChange struct {
	Name   string           `json:"name"`
	State  *resource.State  `json:"state,omitempty"`
	Limits []resource.Limit `json:"limits,omitempty"`
}

// PolicyChange changes what is not nil of a scheduling policy.
type PolicyChange struct {
	Name           string              `json:"name"`
	IdleAssignment *string             `json:"idleAssignment,omitempty"`
	FairShare      *resource.FairShare `json:"fairShare,omitempty"`
}

// QueueChange changes what is not nil of a queue.
type QueueChange struct {
	Name             string                      `json:"name"`
	State            *resource.State             `json:"state,omitempty"`
	Priority         *int64                      `json:"priority,omitempty"`
	Policy           *string                     `json:"policy,omitempty"`
	Environment      *string                     `json:"environment,omitempty"`
	EnvironmentOrder *int64                      `json:"environmentOrder,omitempty"`
	TimeLimitActions *[]resource.TimeLimitAction `json:"timeLimitActions,omitempty"`
}

// ShareChange changes what is not nil of a share.
type ShareChange struct {
	Queue             string            `json:"queue"`
	Name              string            `json:"name"`
	State             *resource.State   `json:"state,omitempty"`
	Limits            []resource.Limit  `json:"limits,omitempty"`
	Sharing           *resource.Sharing `json:"sharing,omitempty"`
	BorrowLimit       *int64            `json:"borrowLimit,omitempty"`
	InSharePreemption *bool             `json:"inSharePreemption,omitempty"`
}

// Submission is a job to accept. A queue with quota shares needs Share, a
// fair-share queue ShareIdentifier, and any other queue has neither. Demand, Workers, TrainingJobName and
// MaxRuntime are what a door read from Payload.
type Submission struct {
	Name              string            `json:"name"`
	Queue             string            `json:"queue"`
	Share             string            `json:"share,omitempty"`
	ShareIdentifier   string            `json:"shareIdentifier,omitempty"`
	Priority          int32             `json:"priority"`
	Demand            []job.Amount      `json:"demand"`
	Workers           int               `json:"workers"`
	TrainingJobName   string            `json:"trainingJobName"`
	MaxRuntime        time.Duration     `json:"maxRuntime,omitempty"`
	Timeout           time.Duration     `json:"timeout,omitempty"`
	Strategy          *job.Strategy     `json:"strategy,omitempty"`
	PreemptionRetries *int              `json:"preemptionRetries,omitempty"`
	Tags              map[string]string `json:"tags,omitempty"`
	Payload           string            `json:"-"`
	// Token makes a repeated submission return the first reply; Hash tells
	// whether the parameters are the same. Both are the door's.
	Token string `json:"token,omitempty"`
	Hash  string `json:"hash,omitempty"`
}

// Front is a waiting job in front of a queue or share, and since when.
type Front struct {
	Job   job.Job
	Since time.Time
}

// Utilization is how much of each instance type the jobs of a quota share, or
// of a share identifier, hold.
type Utilization struct {
	Share string
	Usage []job.Amount
}

// Snapshot is a queue at one instant.
type Snapshot struct {
	Queue resource.Queue
	At    time.Time
	// Front is, on a queue without quota shares, the first 100 waiting jobs in
	// order. ShareFronts is, on one with quota shares, the first of each share;
	// a share without waiting jobs has a nil Front.
	Front       []Front
	ShareFronts []ShareFront
	Total       []job.Amount
	Shares      []Utilization // the 20 with the highest usage, highest first
	FairShare   *FairShareUse // of a fair-share queue
}

// FairShareUse is who uses a fair-share queue: how many share identifiers hold
// capacity, and the 20 with the highest usage, highest first.
type FairShareUse struct {
	Active int
	Top    []Utilization
}

// ShareFront is a share's first waiting job; nil: none waits.
type ShareFront struct {
	Share string
	Front *Front
}

// Why explains a job: what it waits for, or what it runs on.
type Why struct {
	Job job.Job `json:"job"`
	// Reason and Sentence are set while the job waits.
	Reason   *quota.Reason `json:"reason,omitempty"`
	Sentence string        `json:"sentence,omitempty"`
	// Borrowed is what a running job's share uses beyond its quota.
	Borrowed quota.Amounts `json:"borrowed,omitempty"`
	// Decisions are the newest journaled decisions on the job, newest first.
	Decisions []Told `json:"decisions,omitempty"`
}

// Told is a decision in words.
type Told struct {
	At       time.Time `json:"at"`
	Sentence string    `json:"sentence"`
}

// Balance is what a quota share owns, uses, borrows, lends and has free, per
// unit; or what a share identifier, or a whole queue without a policy, uses of
// the pool, which is theirs and everybody else's.
type Balance struct {
	Queue           string        `json:"queue"`
	Share           string        `json:"share"`
	ShareIdentifier string        `json:"shareIdentifier,omitempty"`
	Waiting         int           `json:"waiting"`
	Running         int           `json:"running"`
	Units           []UnitBalance `json:"units"`
}

// UnitBalance is a Balance in one unit. Own is the usage within the nominal;
// Own + Borrowed = usage; Free is the part of the nominal that nobody uses.
type UnitBalance struct {
	Unit     quota.Unit `json:"unit"`
	Nominal  int64      `json:"nominal"`
	Own      int64      `json:"own"`
	Borrowed int64      `json:"borrowed"`
	Lent     int64      `json:"lent"`
	Free     int64      `json:"free"`
}
