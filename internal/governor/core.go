package governor

import (
	"context"
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// core is the governor without its loop: one turn after the other, each of
// them synchronous. The same turns give the same state and the same journal.
type core struct {
	cfg    Config
	runner runner.Runner
	state  *state
	latest time.Time // of all turns
}

// restore throws away the state and loads it, hands the runner every attempt
// that holds capacity, and decides what is to be decided now.
func (c *core) restore(ctx context.Context) error {
	now := c.cfg.Clock.Now()
	contents, err := c.cfg.Store.Load(ctx, now.Add(-tokenWindow))
	if err != nil {
		return fmt.Errorf("load the state: %w", err)
	}
	c.state, err = newState(contents)
	if err != nil {
		return fmt.Errorf("rebuild the state: %w", err)
	}
	t := c.begin(ctx, now)
	t.resume()
	return c.complete(ctx, t, nil)
}

// take is one turn: it applies the messages in order, lets the engine decide,
// and makes all of it durable in one commit, after which callers are answered
// and the runner gets its orders. After an error the state is not to be used
// again before restore.
func (c *core) take(ctx context.Context, now time.Time, messages []*message) error {
	t := c.begin(ctx, now)
	for _, m := range messages {
		if m.apply != nil && !m.finished {
			t.by = m.by
			m.err = m.apply(t)
		}
	}
	t.by = ""
	return c.complete(ctx, t, messages)
}

func (c *core) begin(ctx context.Context, now time.Time) *turn {
	// Times are kept to the millisecond, in memory as in the store: a
	// restart must change nothing.
	now = now.UTC().Truncate(time.Millisecond)
	if now.Before(c.latest) {
		now = c.latest // the machine's clock was set back
	}
	c.latest = now
	c.state.tokens.forget(now)
	return &turn{state: c.state, ctx: ctx, cfg: c.cfg, now: now, payloads: map[string]string{}}
}

func (c *core) complete(ctx context.Context, t *turn, messages []*message) error {
	t.endOverdue()
	t.pass()
	if t.broken != nil {
		return t.broken
	}
	if len(t.entries) > 0 {
		if err := c.cfg.Store.Commit(ctx, t.batch()); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	for _, m := range messages {
		if m.apply != nil {
			m.finish(m.err)
		}
	}
	t.forgetFinished()
	return c.handOver(ctx, t)
}

// handOver gives the runner its orders.
func (c *core) handOver(ctx context.Context, t *turn) error {
	for _, o := range t.orders {
		if o.stop {
			c.runner.Stop(o.attempt.Key)
			continue
		}
		payload, ok := t.payloads[o.attempt.Job]
		if !ok {
			var err error
			if payload, err = c.cfg.Store.Payload(ctx, o.attempt.Job); err != nil {
				return fmt.Errorf("read the payload of job %s: %w", o.attempt.Job, err)
			}
		}
		o.attempt.Payload = payload
		c.runner.Start(o.attempt)
	}
	return nil
}
