package process

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/runner"
)

// attempt is one attempt being watched. Its own goroutine runs it; each worker
// has one more, which tells it what happens.
type attempt struct {
	runner.Attempt
	r     *Runner
	dir   string
	stops chan struct{} // told to stop by the runner's caller

	told       chan news
	stopping   bool             // the stop file is there
	stopAgain  <-chan time.Time // when to try again to write it
	workers    int
	upCount    int
	endCount   int
	upAt       time.Time // when the last worker came up
	endedAt    time.Time
	lost       bool
	failure    *failure
	stopped    bool
	checkpoint time.Time // the newest that was reported
	reportedAt time.Time
}

// failure is a worker that failed by itself: the first to do so.
type failure struct {
	exit
	message string
}

func newAttempt(r *Runner, a runner.Attempt) *attempt {
	return &attempt{
		Attempt: a, r: r, dir: AttemptDir(r.cfg.Dir, a.Key),
		stops: make(chan struct{}, 1), told: make(chan news),
	}
}

// requestStop never blocks; a second request is as good as the first.
func (a *attempt) requestStop() {
	select {
	case a.stops <- struct{}{}:
	default:
	}
}

// run watches the attempt until it has ended or ctx has.
func (a *attempt) run(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	switch err := a.begin(ctx, &watchers); {
	case err == nil:
		a.watch(ctx)
	case ctx.Err() == nil:
		a.notStarted(ctx, err)
	}
}

// begin prepares the attempt unless that was done, and sees that every worker
// has a shim and is watched. After an error no worker was started.
func (a *attempt) begin(ctx context.Context, watchers *sync.WaitGroup) error {
	done, ok := a.r.starting(ctx)
	if !ok {
		return ctx.Err()
	}
	defer done()
	prepared, err := a.findPrepared(ctx)
	if err != nil {
		return err
	}
	if !prepared {
		a.observe(ctx, runner.Observation{Event: runner.Starting, At: time.Now()})
		a.checkpoint = a.newestCheckpoint() // those of earlier attempts are no news
		if a.workers, err = a.r.prepare(ctx, a.Attempt); err != nil {
			return err
		}
	}
	a.stopping = exists(filepath.Join(a.dir, stopFile))
	select {
	case <-a.stops:
		a.stop()
	default:
	}
	a.watchWorkers(ctx, watchers)
	return nil
}

// findPrepared reports whether all was prepared, so that workers may have been
// started. A record cut short by the machine's crash counts as none: what was
// running then is gone, as each worker's own record will show.
func (a *attempt) findPrepared(ctx context.Context) (bool, error) {
	found := false
	known := a.r.persist(ctx, "find an attempt", func() error {
		plan, exists, err := readRecord[prepared](filepath.Join(a.dir, attemptFile))
		a.workers, found = plan.Workers, exists && err == nil
		if exists {
			return nil
		}
		return err
	})
	if !known {
		return false, ctx.Err()
	}
	return found, nil
}

// watchWorkers first takes in how workers have ended already: if the attempt
// is over by that, it is told to stop before any other worker is started.
func (a *attempt) watchWorkers(ctx context.Context, watchers *sync.WaitGroup) {
	var going []*worker
	for n := 1; n <= a.workers; n++ {
		w := newWorker(a, n)
		if claimed := w.find(ctx); !claimed || w.shim != nil {
			going = append(going, w)
		} else if end := w.ending(ctx); end != nil {
			a.take(ctx, news{worker: n, end: end})
		}
	}
	for _, w := range going {
		if w.shim == nil && ctx.Err() == nil {
			if err := w.start(); err != nil {
				a.r.cfg.Log.Error("cannot start a worker", "job", a.Job, "run", a.Run, "worker", w.number, "error", err)
			}
		}
		watchers.Go(func() { w.watch(ctx, a.told) })
	}
}

// watch takes in what happens until every worker has ended.
func (a *attempt) watch(ctx context.Context) {
	poll := time.NewTicker(a.r.cfg.CheckpointPoll)
	defer poll.Stop()
	for a.endCount < a.workers {
		select {
		case <-ctx.Done():
			return
		case <-a.stops:
			a.stop()
		case <-a.stopAgain:
			a.stop()
		case n := <-a.told:
			a.take(ctx, n)
		case <-poll.C:
			a.lookForCheckpoint(ctx)
		}
	}
	a.observe(ctx, a.outcome())
}

// take takes in what happened to a worker. One that failed or was lost stops
// the others.
func (a *attempt) take(ctx context.Context, n news) {
	if n.end == nil {
		a.cameUp(ctx, n.up)
		return
	}
	if !n.end.wasUp && !n.end.StartedAt.IsZero() {
		a.cameUp(ctx, n.end.StartedAt)
	}
	a.endCount++
	a.endedAt = later(a.endedAt, n.end.StoppedAt)
	switch {
	case n.end.lost, n.end.Stopped && !a.stopping: // nobody here stopped it: its machine is going down
		a.lost = true
	case n.end.Stopped:
		a.stopped = true
	case n.end.failedItself():
		a.failed(n.worker, n.end.exit)
	}
	// After a loss even if no worker is left to stop: a shim that an earlier
	// server started may still be about to claim its worker.
	if a.lost || a.failure != nil && a.endCount < a.workers {
		a.stop()
	}
}

func (a *attempt) cameUp(ctx context.Context, at time.Time) {
	a.upCount++
	a.upAt = later(a.upAt, at)
	if a.upCount == a.workers {
		a.observe(ctx, runner.Observation{Event: runner.Running, At: a.upAt})
	}
}

// failed keeps the failure that came first. What a worker says of it is read
// at once, before others that are now stopped say something else.
func (a *attempt) failed(worker int, e exit) {
	if a.failure == nil || e.StoppedAt.Before(a.failure.StoppedAt) {
		a.failure = &failure{exit: e, message: failureMessage(a.dir, worker, e)}
	}
}

// stop tells every worker to end. The file comes first and outlives everything:
// a shim that claims its worker later than this looks finds the file.
func (a *attempt) stop() {
	if a.stopping {
		return
	}
	a.stopAgain = nil
	if err := writeFile(filepath.Join(a.dir, stopFile), nil, true); err != nil {
		a.stopFailed(err)
		return
	}
	if err := syncDir(a.dir); err != nil {
		a.stopFailed(err)
		return
	}
	a.stopping = true
	a.signalShims()
}

func (a *attempt) stopFailed(err error) {
	a.r.cfg.Log.Error("cannot stop an attempt; trying again", "job", a.Job, "run", a.Run, "error", err)
	a.stopAgain = time.After(retryAfter)
}

func (a *attempt) signalShims() {
	for n := 1; n <= a.workers; n++ {
		if err := a.signalShim(n); err != nil {
			a.r.cfg.Log.Error("cannot stop a worker", "job", a.Job, "run", a.Run, "worker", n, "error", err)
		}
	}
}

func (a *attempt) signalShim(n int) error {
	claim, found, err := readRecord[identity](filepath.Join(workerDir(a.dir, n), claimFile))
	if err != nil || !found {
		return err
	}
	h, err := openProcess(claim, a.r.boot)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.close()
	return h.signal(unix.SIGTERM)
}

// notStarted ends an attempt of which no worker was started.
func (a *attempt) notStarted(ctx context.Context, err error) {
	o := runner.Observation{Event: runner.Ended, At: time.Now(), Outcome: runner.Lost, Checkpoint: a.newestCheckpoint()}
	var refused *refusal
	if errors.As(err, &refused) {
		o.Outcome, o.Message = runner.Failed, refused.message
	} else {
		a.r.cfg.Log.Error("cannot start an attempt", "job", a.Job, "run", a.Run, "error", err)
	}
	a.observe(ctx, o)
}

// outcome is how the attempt ended: what its workers did matters in this
// order, for when one vanishes the others tend to fail for want of it.
func (a *attempt) outcome() runner.Observation {
	o := runner.Observation{Event: runner.Ended, At: a.endedAt, Checkpoint: a.newestCheckpoint()}
	switch {
	case a.lost:
		o.Outcome = runner.Lost
	case a.failure != nil:
		o.Outcome, o.ExitCode, o.Message = runner.Failed, a.failure.Code, a.failure.message
	case a.stopped:
		o.Outcome = runner.Stopped
	default:
		o.Outcome = runner.Succeeded
	}
	return o
}

func (a *attempt) lookForCheckpoint(ctx context.Context) {
	if a.upCount < a.workers {
		return
	}
	newest := a.newestCheckpoint()
	if !newest.After(a.checkpoint) {
		return
	}
	a.checkpoint = newest
	a.observe(ctx, runner.Observation{Event: runner.Checkpointed, At: time.Now(), Checkpoint: newest})
}

func (a *attempt) newestCheckpoint() time.Time {
	return newestCheckpoint(CheckpointDir(a.r.cfg.Dir, a.Job), time.Now())
}

// observe reports, unless the runner was closed. What is reported later is not
// of an earlier time, although the shims' records and the runner take it apart.
func (a *attempt) observe(ctx context.Context, o runner.Observation) {
	if ctx.Err() != nil {
		return
	}
	o.Key, o.At = a.Key, later(a.reportedAt, o.At)
	a.reportedAt = o.At
	a.r.report(o)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
