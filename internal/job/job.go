// Package job is the life of a job: its states, attempts, retries, preemptions
// and the texts that end it (sections 5, 6 and 9 of the scheduling semantics).
//
// It is pure: times come in, nothing is read or written. It knows no HTTP, no
// SQL, no process and no quota; the governor tells it what was decided and what
// was seen, and stores what becomes of it.
package job

import (
	"maps"
	"slices"
	"time"
)

// Status is a job's state in Batch's words.
type Status string

// The states. A waiting job is Runnable; one that holds capacity is Scheduled
// (dispatched), Starting or Running, also while it is being stopped.
const (
	Runnable  Status = "RUNNABLE"
	Scheduled Status = "SCHEDULED"
	Starting  Status = "STARTING"
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
)

// Holds reports whether a job in this state holds capacity.
func (s Status) Holds() bool { return s == Scheduled || s == Starting || s == Running }

// Finished reports whether the state is final.
func (s Status) Finished() bool { return s == Succeeded || s == Failed }

// Amount is a number of instances of one type.
type Amount struct {
	Unit     string `json:"unit"`
	Quantity int64  `json:"quantity"`
}

// Action is what a retry rule does.
type Action string

// The actions of a retry rule.
const (
	Retry Action = "RETRY"
	Exit  Action = "EXIT"
)

// Rule applies Action to an attempt that failed with a status reason that
// Pattern matches. In Pattern, * stands for any run of characters, anywhere.
type Rule struct {
	Action  Action `json:"action"`
	Pattern string `json:"pattern"`
}

// Strategy says how often a job may run in all, and which failures end it
// early. The first rule that matches decides; where none does, the job is
// retried while attempts are left.
type Strategy struct {
	Attempts int    `json:"attempts"`
	Rules    []Rule `json:"rules,omitempty"`
}

// Cause is why a running attempt was told to stop.
type Cause string

// The causes.
const (
	Preempted      Cause = "preempted"
	Terminated     Cause = "terminated"
	AttemptTimeout Cause = "attempt-timeout"
	MaxRuntime     Cause = "max-runtime"
)

// Stop is an order to stop the current attempt. Ground, ForJob and ForShare
// are set when it was preempted: on which ground, and for whom. Decision is
// the decision in words.
type Stop struct {
	Cause    Cause     `json:"cause"`
	At       time.Time `json:"at"`
	Text     string    `json:"text"`
	Ground   string    `json:"ground,omitempty"`
	ForJob   string    `json:"forJob,omitempty"`
	ForShare string    `json:"forShare,omitempty"`
	Decision string    `json:"decision,omitempty"`
}

// Attempt is one run of a job. Run counts every dispatch from 1. Decision is,
// in words, why it was granted capacity.
type Attempt struct {
	Run             int       `json:"run"`
	TrainingJobName string    `json:"trainingJobName"`
	TrainingJobARN  string    `json:"trainingJobArn"`
	Decision        string    `json:"decision,omitempty"`
	ScheduledAt     time.Time `json:"scheduledAt,omitzero"`
	StartedAt       time.Time `json:"startedAt,omitzero"`
	StoppedAt       time.Time `json:"stoppedAt,omitzero"`
	Reason          string    `json:"reason,omitempty"`
	Stop            *Stop     `json:"stop,omitempty"`
}

// Job is everything known of a job but its payload, which may be large and is
// wanted only when an attempt starts.
type Job struct {
	ID              string   `json:"id"`
	Seq             int64    `json:"seq"` // order of acceptance, unique over all jobs
	Name            string   `json:"name"`
	Queue           string   `json:"queue"`
	Share           string   `json:"share,omitempty"`           // empty on a queue without quota shares
	ShareIdentifier string   `json:"shareIdentifier,omitempty"` // empty on a queue that is not a fair-share one
	Priority        int32    `json:"priority"`
	Demand          []Amount `json:"demand"` // by instance type, sorted by it
	Workers         int      `json:"workers"`
	TrainingJobName string   `json:"trainingJobName"` // as the payload has it

	// MaxRuntime is the payload's StoppingCondition: an attempt that runs
	// longer fails, and may be retried. Timeout is the job's own attempt
	// timeout: an attempt that runs longer ends the job. Zero: none.
	MaxRuntime time.Duration `json:"maxRuntime,omitempty"`
	Timeout    time.Duration `json:"timeout,omitempty"`

	// Strategy is nil and PreemptionRetries is nil where the submission
	// named none: one attempt, and any number of preemptions.
	Strategy          *Strategy `json:"strategy,omitempty"`
	PreemptionRetries *int      `json:"preemptionRetries,omitempty"`

	Status      Status    `json:"status"`
	Reason      string    `json:"reason,omitempty"`
	ReasonSince time.Time `json:"reasonSince,omitzero"` // since when a waiting job has been parked with Reason
	CreatedAt   time.Time `json:"createdAt"`
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	StoppedAt   time.Time `json:"stoppedAt,omitzero"`
	UpdatedAt   time.Time `json:"updatedAt"` // when Status last changed
	Terminated  bool      `json:"terminated,omitempty"`

	Current         *Attempt  `json:"current,omitempty"`   // the attempt that holds capacity
	Attempts        []Attempt `json:"attempts,omitempty"`  // ended ones that were not preempted, oldest first
	Preemptions     []Attempt `json:"preempted,omitempty"` // the last 10 preempted ones, newest first
	PreemptionCount int       `json:"preemptedCount,omitempty"`
	Runs            int       `json:"runs,omitempty"`     // dispatches so far
	Failures        int       `json:"failures,omitempty"` // attempts used up so far
	Evictions       int       `json:"evictions,omitempty"`
	NotBefore       time.Time `json:"notBefore,omitzero"`    // a waiting job in backoff
	Promised        bool      `json:"promised,omitempty"`    // a waiting job for which others have stopped that are gone
	CheckpointAt    time.Time `json:"checkpointAt,omitzero"` // newest completed checkpoint of any attempt

	Tags      map[string]string `json:"tags,omitempty"`
	Token     string            `json:"token,omitempty"`     // the submission's client token
	TokenHash string            `json:"tokenHash,omitempty"` // of the parameters that came with it
}

// Stopping reports whether the job's attempt was told to stop.
func (j *Job) Stopping() bool { return j.Current != nil && j.Current.Stop != nil }

// Clone returns a deep copy.
func (j *Job) Clone() Job {
	c := *j
	c.Demand = slices.Clone(j.Demand)
	c.Tags = maps.Clone(j.Tags)
	c.Attempts = cloneAttempts(j.Attempts)
	c.Preemptions = cloneAttempts(j.Preemptions)
	if j.Strategy != nil {
		s := *j.Strategy
		s.Rules = slices.Clone(s.Rules)
		c.Strategy = &s
	}
	if j.PreemptionRetries != nil {
		n := *j.PreemptionRetries
		c.PreemptionRetries = &n
	}
	if j.Current != nil {
		a := j.Current.clone()
		c.Current = &a
	}
	return c
}

func (a Attempt) clone() Attempt {
	if a.Stop != nil {
		s := *a.Stop
		a.Stop = &s
	}
	return a
}

func cloneAttempts(as []Attempt) []Attempt {
	c := slices.Clone(as)
	for i := range c {
		c[i] = c[i].clone()
	}
	return c
}
