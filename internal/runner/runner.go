// Package runner says what the governor asks of whatever runs workers, and
// what it hears back. Engines live in packages below it; runnertest holds the
// conformance suite they all pass.
//
// A runner starts and stops the workers of an attempt and reports what happens
// to them. It knows nothing of quotas, shares or priorities.
package runner

import "time"

// Key names one attempt of a job: the job's id, and which of its runs it is,
// counted from 1 over every dispatch, preempted ones included.
type Key struct {
	Job string `json:"job"`
	Run int    `json:"run"`
}

// Attempt is what a runner needs to run a job once.
type Attempt struct {
	Key
	JobName         string
	Queue           string
	Share           string
	TrainingJobName string // unique to the attempt
	TrainingJobARN  string
	Payload         string // the CreateTrainingJob request as JSON
	// Grace is how long its workers have to end once they are told to; 0: as
	// long as the runner gives everybody.
	Grace time.Duration
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes.
const (
	// Succeeded: every worker exited with status 0 by itself.
	Succeeded Outcome = "succeeded"
	// Failed: a worker ended by itself with a status other than 0 or by a
	// signal, or could not be started; the others were then stopped.
	Failed Outcome = "failed"
	// Stopped: Stop was called before the workers ended by themselves.
	Stopped Outcome = "stopped"
	// Lost: a worker vanished with no trace of how it ended, as when its
	// machine went down; the others were then stopped.
	Lost Outcome = "lost"
)

// Event is what happened to an attempt.
type Event string

// The events, in the order in which an attempt lives them. Checkpointed may
// come any number of times while it runs.
const (
	Starting     Event = "starting"     // its directories and inputs are being made
	Running      Event = "running"      // every worker is up
	Checkpointed Event = "checkpointed" // a newer checkpoint is complete
	Ended        Event = "ended"        // every worker is gone; the last event
)

// Observation is one thing a runner saw. Ended is reported only once no
// process of the attempt is left, so that its capacity is free.
type Observation struct {
	Key
	Event      Event     `json:"event"`
	At         time.Time `json:"at"`
	Checkpoint time.Time `json:"checkpoint,omitzero"` // of Checkpointed and Ended: when the newest checkpoint was completed; zero: none
	Outcome    Outcome   `json:"outcome,omitempty"`   // of Ended
	ExitCode   int       `json:"exitCode,omitempty"`  // of Failed: the first failing worker's status; 128+signal when killed by one
	Message    string    `json:"message,omitempty"`   // of Failed: what went wrong, for people; without any "exit code" suffix
}

// Runner runs attempts. Its methods do not block on workers; they may be
// called from one goroutine only, and what they bring about is reported later.
type Runner interface {
	// Start makes the attempt run, or finds it running: after a restart of
	// the server it is called for every attempt that was dispatched and not
	// yet seen to end. It never starts a worker of an attempt twice. It then
	// reports the attempt's present event and every later one.
	Start(Attempt)

	// Stop tells every worker of the attempt to end: SIGTERM, the grace
	// period it was started with, SIGKILL. Stopping twice, or what has ended, does nothing.
	Stop(Key)

	// Close stops watching and reporting. Workers go on.
	Close() error
}

// Report takes observations from a runner. It may block for as long as the
// governor is busy; it is called from the runner's own goroutines.
type Report func(Observation)
