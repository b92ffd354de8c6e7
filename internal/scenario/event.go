package scenario

import (
	"encoding/json"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// EventKind is what kind of thing happened in a world.
type EventKind string

// The kinds of events. A job's story is a submit, then for each attempt a
// grant, perhaps a preempt, a release, and after that a requeue, a finish or a
// fail. A job that ends while it waits has no release before its fail.
const (
	Submitted EventKind = "submit"  // the job was handed in
	Granted   EventKind = "grant"   // it holds its demand from now on, and runs
	Resumed   EventKind = "resume"  // it held its demand before the world began, and runs on
	Preempted EventKind = "preempt" // it was told to stop for another job; it holds its demand until its release
	Released  EventKind = "release" // its attempt is over and its demand free again
	Requeued  EventKind = "requeue" // it waits again, in its old place
	Finished  EventKind = "finish"  // it succeeded
	Failed    EventKind = "fail"    // it will not run again
)

// Event is one decision or change of state in a world. Its amounts are the
// world's own and must not be changed.
type Event struct {
	At     time.Duration // since the world began
	Kind   EventKind
	Job    string
	Share  string
	Demand quota.Amounts

	// Ground is why, of a Granted or Preempted job; For is the job that a
	// Preempted one makes room for.
	Ground quota.Ground
	For    string
	// Borrowed is the part of a Granted demand beyond the share's quota.
	Borrowed quota.Amounts

	// Preempted and Lost are of a Released attempt: whether it was preempted,
	// and for how long it ran in vain: work that no checkpoint keeps, unless
	// the job succeeded.
	Preempted bool
	Lost      time.Duration

	// Reason is why a job Failed.
	Reason string
}

// MarshalJSON writes the event as a line of an events file: t in seconds, the
// demand always, what else belongs to its kind.
func (e Event) MarshalJSON() ([]byte, error) {
	line := struct {
		T        float64       `json:"t"`
		Event    EventKind     `json:"event"`
		Job      string        `json:"job"`
		Share    string        `json:"share"`
		Demand   quota.Amounts `json:"demand"`
		For      string        `json:"for,omitempty"`
		Ground   quota.Ground  `json:"ground,omitempty"`
		Borrowed quota.Amounts `json:"borrowed,omitzero"`
		Reason   string        `json:"reason,omitempty"`
	}{T: e.At.Seconds(), Event: e.Kind, Job: e.Job, Share: e.Share, Demand: e.Demand, Reason: e.Reason}
	switch e.Kind {
	case Granted:
		line.Borrowed = e.Borrowed
		if line.Borrowed == nil {
			line.Borrowed = quota.Amounts{}
		}
	case Preempted:
		line.For, line.Ground = e.For, e.Ground
	default:
	}
	return json.Marshal(line)
}
