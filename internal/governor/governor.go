// Package governor runs the house: it takes commands and what a runner saw,
// makes them durable, lets the quota engine decide, and hands what was decided
// to the runner. One goroutine owns the state, so that every query sees one
// consistent view, and commands that arrive together share one commit.
//
// It decides what may be created, changed and deleted, for all doors alike. It
// knows no wire format, no SQL, no process, and adds up no usage that the
// engine adds up: what belongs to one of those stays in its own room.
package governor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

const (
	// maxTurn is how many messages share one commit at most: enough to make
	// the cost of a commit small for each, few enough to answer soon.
	maxTurn = 512

	// After a failed commit or load the state is loaded again, at first
	// after minRetry, and each time it fails again after twice as long.
	minRetry = 100 * time.Millisecond
	maxRetry = 10 * time.Second
)

// Clock tells the time, and calls f in another goroutine once d has passed,
// unless stop is called before.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Config is what a governor is built from. All fields are required.
type Config struct {
	Store     store.Store
	NewRunner func(runner.Report) (runner.Runner, error)
	Clock     Clock
	NewID     func() string // an id for a job: a UUID
	NewSuffix func() string // 32 hexadecimal digits that make a training job's name unique
	// TrainingJobARN gives a training job's ARN for its name.
	TrainingJobARN func(name string) string
	Log            *slog.Logger
}

// Governor is the one that decides. Its methods may be called from any number
// of goroutines between Start and Stop.
type Governor struct {
	cfg    Config
	runner runner.Runner
	core   *core // of the loop's goroutine alone

	inbox    chan *message
	wake     chan struct{}
	stopping chan struct{}
	stopped  chan struct{}
	stopOnce sync.Once
	disarm   func() // ends the clock's present callback; the loop's
}

// message asks the loop for something: apply is a command or an observation,
// answer a query. One of the two is set.
type message struct {
	by       string
	apply    func(*turn) error
	answer   func(*state) error
	err      error      // of apply, until the turn is committed
	done     chan error // nil for an observation: nobody waits
	finished bool       // the loop's: done has its answer
}

// New returns a governor that has not been started.
func New(cfg Config) *Governor {
	return &Governor{
		cfg:      cfg,
		inbox:    make(chan *message, maxTurn),
		wake:     make(chan struct{}, 1),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
}

// Start loads the state, makes a runner and hands it every attempt that holds
// capacity, decides what there is to decide, and begins to take commands. It
// returns an error if the store cannot be read or written, or the runner not be
// made. A governor is started once.
func (g *Governor) Start(ctx context.Context) error {
	r, err := g.cfg.NewRunner(g.Observe)
	if err != nil {
		return fmt.Errorf("make the runner: %w", err)
	}
	// What was accepted is finished even when the caller's context ends;
	// Stop is the way to end a governor.
	ctx = context.WithoutCancel(ctx)
	g.runner = r
	g.core = &core{cfg: g.cfg, runner: r}
	if err := g.core.restore(ctx); err != nil {
		g.stopOnce.Do(func() { close(g.stopping) }) // nobody will take what the runner reports
		return errors.Join(err, r.Close())
	}
	g.disarm = g.arm()
	go g.loop(ctx)
	return nil
}

// Stop refuses new commands, finishes those it has taken, and stops watching
// the running jobs, which go on. It does not close the store. It returns an
// error if ctx ends before that is done. It is for a governor that has started,
// and may be called again.
func (g *Governor) Stop(ctx context.Context) error {
	g.stopOnce.Do(func() { close(g.stopping) })
	select {
	case <-g.stopped:
	case <-ctx.Done():
		return fmt.Errorf("stop the governor: %w", ctx.Err())
	}
	if err := g.runner.Close(); err != nil {
		return fmt.Errorf("close the runner: %w", err)
	}
	return nil
}

// Observe takes what the runner saw. It blocks while the governor is busy, and
// forgets what is seen while it stops: the runner tells it again after the
// next start.
func (g *Governor) Observe(o runner.Observation) {
	m := &message{apply: func(t *turn) error { t.observe(o); return nil }}
	select {
	case g.inbox <- m:
	case <-g.stopping:
	}
}

// command has the loop apply a command, and returns once it is durable.
func (g *Governor) command(ctx context.Context, apply func(*turn) error) error {
	by, _ := ctx.Value(principalKey{}).(string)
	return g.send(ctx, &message{by: by, apply: apply, done: make(chan error, 1)})
}

// commandFor is command for one that has a reply.
func commandFor[T any](ctx context.Context, g *Governor, apply func(*turn) (T, error)) (reply T, err error) {
	var made T
	err = g.command(ctx, func(t *turn) (err error) { made, err = apply(t); return err })
	if err == nil {
		reply = made // a caller that gave up does not look: it may be being made
	}
	return reply, err
}

// query has the loop answer from its state, between two turns.
func query[T any](ctx context.Context, g *Governor, answer func(*state) (T, error)) (reply T, err error) {
	var made T
	err = g.send(ctx, &message{
		answer: func(s *state) (err error) { made, err = answer(s); return err },
		done:   make(chan error, 1),
	})
	if err == nil {
		reply = made
	}
	return reply, err
}

func (g *Governor) send(ctx context.Context, m *message) error {
	select {
	case <-g.stopping:
		return errStopping()
	default:
	}
	select {
	case g.inbox <- m:
	case <-g.stopping:
		return errStopping()
	case <-ctx.Done():
		return fmt.Errorf("hand over to the governor: %w", ctx.Err())
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the governor, which may still do it: %w", ctx.Err())
	case <-g.stopped:
	}
	select {
	case err := <-m.done:
		return err
	default:
		return errStopping()
	}
}

func errStopping() error { return fmt.Errorf("%w: it is stopping", ErrUnavailable) }

// loop takes turns until it is stopped.
func (g *Governor) loop(ctx context.Context) {
	defer close(g.stopped)
	defer func() { g.disarm() }()
	for {
		messages, more := g.gather()
		if err := g.core.take(ctx, g.cfg.Clock.Now(), messages); err != nil && !g.reload(ctx, err, messages) {
			return
		}
		g.disarm()
		g.disarm = g.arm()
		answerQueries(g.core.state, messages)
		if !more {
			return
		}
	}
}

// gather waits for a message or for the time that the state waits for, and
// takes whatever else has arrived. more is false when it was told to stop.
func (g *Governor) gather() (messages []*message, more bool) {
	more = true
	select {
	case m := <-g.inbox:
		messages = append(messages, m)
	case <-g.wake:
	case <-g.stopping:
		more = false
	}
	for len(messages) < maxTurn {
		select {
		case m := <-g.inbox:
			messages = append(messages, m)
		case <-g.wake: // every turn looks at what is due
		default:
			return messages, more
		}
	}
	return messages, more
}

// arm asks the clock for the time at which something is due without a message.
func (g *Governor) arm() (disarm func()) {
	at, ok := g.core.state.nextDue()
	if !ok {
		return func() {}
	}
	// Times are whole milliseconds, and what was due has been dealt with.
	wait := max(at.Sub(g.cfg.Clock.Now()), time.Millisecond)
	return g.cfg.Clock.AfterFunc(wait, func() {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	})
}

// reload refuses the messages of a turn that failed and loads the state again,
// as after a restart, until it is in step with the store. What the runner saw
// is not lost: those messages are applied then. It returns false when it was
// told to stop.
func (g *Governor) reload(ctx context.Context, cause error, messages []*message) bool {
	seen := g.refuse(nil, cause, messages)
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		g.cfg.Log.Error("the state could not be made durable; loading it again", "error", cause)
		cause = g.core.restore(ctx)
		if cause == nil {
			cause = g.core.take(ctx, g.cfg.Clock.Now(), seen)
		}
		if cause == nil {
			return true
		}
		var more bool
		if seen, more = g.pause(wait, cause, seen); !more {
			return false
		}
	}
}

// pause refuses commands and queries while it waits, and keeps what the runner
// saw.
func (g *Governor) pause(wait time.Duration, cause error, seen []*message) (kept []*message, more bool) {
	over := make(chan struct{})
	stop := g.cfg.Clock.AfterFunc(wait, func() { close(over) })
	defer stop()
	for {
		select {
		case m := <-g.inbox:
			seen = g.refuse(seen, cause, []*message{m})
		case <-over:
		case <-g.stopping:
			return seen, false
		}
		select {
		case <-over: // nothing that arrives from now on prolongs it
			return seen, true
		default:
		}
	}
}

// refuse answers what nobody has answered yet with the cause, but adds
// observations to those kept.
func (g *Governor) refuse(kept []*message, cause error, messages []*message) []*message {
	for _, m := range messages {
		if m.done == nil {
			kept = append(kept, m)
			continue
		}
		m.finish(fmt.Errorf("%w: %w", ErrUnavailable, cause))
	}
	return kept
}

// finish answers a message, once.
func (m *message) finish(err error) {
	if m.done != nil && !m.finished {
		m.finished = true
		m.done <- err
	}
}

// answerQueries answers what asks about the state.
func answerQueries(s *state, messages []*message) {
	for _, m := range messages {
		if m.answer != nil && !m.finished {
			m.finish(m.answer(s))
		}
	}
}
