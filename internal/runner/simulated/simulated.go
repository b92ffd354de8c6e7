// Package simulated runs attempts on virtual workers that live by a clock: for
// tests, scenarios and simulations. Their world outlives the governor that
// started them, as real processes do, and what happens in it depends on
// nothing but the clock and what it was told.
//
// It shares with the other runners what package runner asks of them. What
// decides anything about jobs may not enter here.
package simulated

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// Clock tells the time, and calls f later, never from within AfterFunc, once d
// has passed, unless stop is called before.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Program is how the workers of a job spend their time.
type Program struct {
	// Startup is how long an attempt takes from its start until it runs.
	Startup time.Duration
	// Runtime is how long the job must run in all; 0: until it is told
	// otherwise.
	Runtime time.Duration
	// CheckpointEvery is how long it runs from one checkpoint to the next.
	// The next attempt resumes from the last one; with 0, from nothing.
	CheckpointEvery time.Duration
	// ExitCode is the status with which its workers exit after Runtime.
	ExitCode int
	// Stopping is how long its workers take to end once they are told to.
	// They are killed when the grace period is over.
	Stopping time.Duration
}

// World is where the workers live. It may be used from several goroutines.
type World struct {
	clock   Clock
	grace   time.Duration
	program func(runner.Attempt) Program

	mu       sync.Mutex
	watcher  *watcher                 // nil while nobody watches
	newest   map[string]*attempt      // by job
	progress map[string]time.Duration // by job: what its checkpoints keep
	twice    []runner.Key             // started while another run of the job was alive
}

// NewWorld returns a world without workers. Those that are told to stop have
// the grace period to end; program says how the workers of an attempt behave.
func NewWorld(clock Clock, grace time.Duration, program func(runner.Attempt) Program) *World {
	return &World{
		clock: clock, grace: grace, program: program,
		newest:   map[string]*attempt{},
		progress: map[string]time.Duration{},
	}
}

// Attach returns a runner for the world's workers. Of several, only the newest
// one reports.
func (w *World) Attach(report runner.Report) (runner.Runner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watcher = &watcher{world: w, report: report}
	return w.watcher, nil
}

// Alive returns the attempts whose workers are there, sorted by job.
func (w *World) Alive() []runner.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	var alive []runner.Key
	for _, a := range w.newest {
		if a.event != runner.Ended {
			alive = append(alive, a.key)
		}
	}
	slices.SortFunc(alive, func(a, b runner.Key) int { return cmp.Compare(a.Job, b.Job) })
	return alive
}

// Twice returns the attempts that were started while another run of their job
// was alive: none, if all is well.
func (w *World) Twice() []runner.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.twice)
}

// Succeed ends the job's running attempt: its workers exit with status 0.
func (w *World) Succeed(job string) {
	w.end(job, runner.Observation{Outcome: runner.Succeeded})
}

// Fail ends the job's running attempt: a worker exits with the status given.
func (w *World) Fail(job string, exitCode int, message string) {
	w.end(job, runner.Observation{Outcome: runner.Failed, ExitCode: exitCode, Message: message})
}

// Lose ends the job's running attempt: a worker's machine goes down.
func (w *World) Lose(job string) {
	w.end(job, runner.Observation{Outcome: runner.Lost})
}

// Checkpoint has the job's running attempt complete a checkpoint now.
func (w *World) Checkpoint(job string) {
	w.mu.Lock()
	a := w.newest[job]
	if a == nil || a.event != runner.Running {
		w.mu.Unlock()
		return
	}
	told := a.checkpoint()
	w.mu.Unlock()
	told()
}

func (w *World) end(job string, how runner.Observation) {
	w.mu.Lock()
	a := w.newest[job]
	if a == nil {
		w.mu.Unlock()
		return
	}
	told := a.end(how)
	w.mu.Unlock()
	told()
}

// watcher is a Runner: somebody who looks at the world.
type watcher struct {
	world  *World
	report runner.Report
}

// Start makes the attempt run, or tells again what became of it.
func (r *watcher) Start(of runner.Attempt) {
	w := r.world
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.newest[of.Job]
	if a == nil || a.key.Run < of.Run {
		if a != nil && a.event != runner.Ended {
			w.twice = append(w.twice, of.Key)
		}
		w.newest[of.Job] = w.begin(of)
		return
	}
	if a.key == of.Key {
		a.after(0, a.present)
	}
}

// Stop tells the attempt's workers to end.
func (r *watcher) Stop(k runner.Key) {
	w := r.world
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.newest[k.Job]
	if a == nil || a.key != k || a.stopping || a.event == runner.Ended {
		return
	}
	a.stopping = true
	a.cancel()
	a.after(min(a.program.Stopping, a.grace), func() func() {
		return a.end(runner.Observation{Outcome: runner.Stopped})
	})
}

// Close stops reporting. The workers go on.
func (r *watcher) Close() error {
	w := r.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watcher == r {
		w.watcher = nil
	}
	return nil
}

// attempt is one run of a job's workers. Its methods need World.mu, and return
// what is to be called without it: telling whoever watches.
type attempt struct {
	world    *World
	key      runner.Key
	program  Program
	grace    time.Duration
	event    runner.Event       // the last one but Checkpointed
	last     runner.Observation // of event
	since    time.Time          // since when it has run without a checkpoint
	saved    time.Time          // its last checkpoint
	stopping bool
	alarms   int
	pending  map[int]func() // cancel what the clock is still to call
}

// begin starts an attempt that is in nobody's books yet.
func (w *World) begin(of runner.Attempt) *attempt {
	a := &attempt{
		world: w, key: of.Key, program: w.program(of), grace: cmp.Or(of.Grace, w.grace), pending: map[int]func(){},
	}
	a.after(0, func() func() { return a.enter(runner.Observation{Event: runner.Starting}) })
	a.after(a.program.Startup, a.run)
	return a
}

func (a *attempt) run() func() {
	a.since = a.world.clock.Now()
	if a.program.Runtime > 0 {
		how := runner.Observation{Outcome: runner.Succeeded}
		if a.program.ExitCode != 0 {
			how = runner.Observation{Outcome: runner.Failed, ExitCode: a.program.ExitCode, Message: "training failed"}
		}
		a.after(a.program.Runtime-a.world.progress[a.key.Job], func() func() { return a.end(how) })
	}
	if a.program.CheckpointEvery > 0 {
		a.after(a.program.CheckpointEvery, a.checkpointAgain)
	}
	return a.enter(runner.Observation{Event: runner.Running})
}

func (a *attempt) checkpointAgain() func() {
	a.after(a.program.CheckpointEvery, a.checkpointAgain)
	return a.checkpoint()
}

func (a *attempt) checkpoint() func() {
	now := a.world.clock.Now()
	a.world.progress[a.key.Job] += now.Sub(a.since)
	a.since, a.saved = now, now
	return a.tell(runner.Observation{Key: a.key, Event: runner.Checkpointed, At: now, Checkpoint: now})
}

func (a *attempt) end(how runner.Observation) func() {
	if a.event == runner.Ended {
		return func() {}
	}
	a.cancel()
	how.Event, how.Checkpoint = runner.Ended, a.saved
	return a.enter(how)
}

func (a *attempt) enter(o runner.Observation) func() {
	o.Key, o.At = a.key, a.world.clock.Now()
	a.event, a.last = o.Event, o
	return a.tell(o)
}

// present tells the last event again.
func (a *attempt) present() func() {
	if a.event == "" {
		return func() {} // it is still to come
	}
	return a.tell(a.last)
}

func (a *attempt) tell(o runner.Observation) func() {
	watcher := a.world.watcher
	if watcher == nil {
		return func() {}
	}
	return func() { watcher.report(o) }
}

// after has the clock call f, with World.mu held, and then what f returns,
// unless it was cancelled.
func (a *attempt) after(d time.Duration, f func() func()) {
	a.alarms++
	alarm := a.alarms
	a.pending[alarm] = a.world.clock.AfterFunc(d, func() { a.ring(alarm, f)() })
}

func (a *attempt) ring(alarm int, f func() func()) func() {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if _, ok := a.pending[alarm]; !ok {
		return func() {}
	}
	delete(a.pending, alarm)
	return f()
}

func (a *attempt) cancel() {
	for _, stop := range a.pending {
		stop()
	}
	clear(a.pending)
}
