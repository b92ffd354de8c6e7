// Package process runs the workers of attempts as processes of this machine.
//
// Each worker has a parent of its own, the shim: a hidden subcommand of the
// same binary (ShimMain) that outlives the server, starts the worker, keeps
// its output, stops it when told to, and records how it ended. Everything that
// server and shims must agree on lies in files of the attempt's directory, so
// that a restarted server finds its workers again:
//
//	<dir>/jobs/<job>/checkpoints             kept from attempt to attempt
//	<dir>/jobs/<job>/attempts/<run>/         model, output, input/data
//	    attempt.json                         everything is made; shims may start
//	    stop                                 the attempt was told to stop
//	    worker-<n>/                          n counts from 1, as in algo-<n>
//	        ml/                              what the worker sees as /opt/ml
//	        launch.json                      what the shim is to start
//	        claim.json                       which shim has the worker
//	        up.json, exit.json               that it runs, and how it ended
//	        stdout.log, stdout.log.1, ...    its output, newest first
//
// A process is never known by its id alone, which the kernel gives out again,
// but by its id, its start time and the machine's boot.
//
// The package knows what a training container looks like to those inside
// (SageMaker's /opt/ml and SM_ variables). It knows no quotas, no job states
// and no store. It needs Linux 5.10 or later.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// Defaults of Config.
const (
	DefaultGrace          = 120 * time.Second // SageMaker's time between SIGTERM and SIGKILL
	DefaultCheckpointPoll = 5 * time.Second
	DefaultLogLimit       = 10 << 20
	DefaultLogFiles       = 3
)

// Config is how a Runner runs workers. Zero durations and numbers stand for
// the defaults.
type Config struct {
	Dir            string        // data directory; required
	Shim           []string      // command line that ends up in ShimMain; the runner adds its arguments; required
	Grace          time.Duration // from SIGTERM to SIGKILL
	CheckpointPoll time.Duration // how often checkpoint directories are looked at
	LogLimit       int64         // bytes in one log file before it is rotated
	LogFiles       int           // files kept of one stream, the current one included
	Log            *slog.Logger  // nil: nothing is logged
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("process runner: Config.Dir is empty; it must be the data directory")
	}
	if len(c.Shim) == 0 {
		return c, errors.New("process runner: Config.Shim is empty; it must be the command line of the shim")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("process runner: resolve %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.CheckpointPoll <= 0 {
		c.CheckpointPoll = DefaultCheckpointPoll
	}
	if c.LogLimit <= 0 {
		c.LogLimit = DefaultLogLimit
	}
	if c.LogFiles <= 0 {
		c.LogFiles = DefaultLogFiles
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// startsAtOnce bounds how many attempts are prepared and started at the same
// time: each blocks a thread while it makes directories and forks.
const startsAtOnce = 16

// Runner is a runner.Runner whose workers are processes.
type Runner struct {
	cfg     Config
	report  runner.Report
	environ []string // the server's
	boot    string
	isolate isolation
	starts  chan struct{} // one token for each attempt being started

	watching context.Context // ends with Close
	unwatch  context.CancelFunc
	watchers sync.WaitGroup

	mu       sync.Mutex
	attempts map[runner.Key]*attempt // those not yet seen to end
}

var _ runner.Runner = (*Runner)(nil)

// New returns a runner that reports to report. It tries out, by doing it,
// whether this machine lets workers have an /opt/ml of their own; it fails if
// the configuration is incomplete or the data directory cannot be used.
func New(cfg Config, report runner.Report) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	self, err := ownIdentity()
	if err != nil {
		return nil, fmt.Errorf("process runner: %w", err)
	}
	h, err := openProcess(self, self.Boot)
	if err != nil {
		return nil, fmt.Errorf("process runner: hold on to processes, which needs Linux 5.10 or later: %w", err)
	}
	h.close()
	if err := os.MkdirAll(filepath.Join(cfg.Dir, jobsDir), 0o700); err != nil {
		return nil, fmt.Errorf("process runner: make the jobs directory: %w", err)
	}
	isolate, err := probeIsolation(cfg)
	if err != nil {
		cfg.Log.Info("workers get no /opt/ml of their own; the SM_ variables name the real directories", "reason", err)
	} else {
		cfg.Log.Info("workers get an /opt/ml of their own", "through", isolate)
	}
	watching, unwatch := context.WithCancel(context.Background())
	return &Runner{
		cfg: cfg, report: report, environ: os.Environ(), boot: self.Boot, isolate: isolate,
		starts:   make(chan struct{}, startsAtOnce),
		watching: watching, unwatch: unwatch,
		attempts: map[runner.Key]*attempt{},
	}, nil
}

// ContainerPaths reports whether workers find their directories below
// /opt/ml. Otherwise only the SM_ variables say where they are.
func (r *Runner) ContainerPaths() bool { return r.isolate != isolateNothing }

// Start implements runner.Runner. An attempt that is being watched already is
// left alone.
func (r *Runner) Start(a runner.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts[a.Key] != nil || r.watching.Err() != nil {
		return
	}
	watched := newAttempt(r, a)
	r.attempts[a.Key] = watched
	r.watchers.Go(func() {
		defer r.forget(a.Key)
		watched.run(r.watching)
	})
}

// Stop implements runner.Runner.
func (r *Runner) Stop(key runner.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[key]; a != nil {
		a.requestStop()
	}
}

// Close implements runner.Runner. It returns once nothing is reported any
// more, so it waits for a report under way.
func (r *Runner) Close() error {
	r.unwatch()
	r.watchers.Wait()
	return nil
}

func (r *Runner) forget(key runner.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, key)
}

// starting waits for its turn to start an attempt. The caller must call done,
// unless ok is false because the runner was closed.
func (r *Runner) starting(ctx context.Context) (done func(), ok bool) {
	select {
	case r.starts <- struct{}{}:
		return func() { <-r.starts }, true
	case <-ctx.Done():
		return nil, false
	}
}

// retryAfter is how long after a failure of the machine, such as too many open
// files, the same is tried again.
const retryAfter = time.Second

// persist tries something until it succeeds, and reports whether it did before
// ctx ended. It is for what must not be given up while a worker may be running.
func (r *Runner) persist(ctx context.Context, what string, try func() error) bool {
	for ctx.Err() == nil {
		err := try()
		if err == nil {
			return true
		}
		r.cfg.Log.Error("cannot "+what+"; trying again", "error", err)
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
	return false
}
