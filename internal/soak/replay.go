package soak

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/memory"
)

// replay tells a governor that never fails, at the times in the journal, what
// the journal says clients commanded and the runner saw. All that follows from
// it must follow again, line by line, whenever the other was started again.
func (d *day) replay() {
	if !d.ok() {
		return
	}
	r := &replay{day: d, store: memory.New(), clock: &dial{now: dawn}}
	r.start()
	digest := fnv.New64a()
	d.events = nil
	for _, b := range d.all {
		if !d.ok() {
			break
		}
		r.again(b)
		for i := range b.Entries {
			d.note("%s", line(&b.Entries[i]))
			fmt.Fprintln(digest, line(&b.Entries[i]))
		}
	}
	d.tally.Digest = digest.Sum64()
	r.stop()
}

type replay struct {
	day      *day
	store    *memory.Store
	clock    *dial
	governor *governor.Governor
	id       string // of the next job
	seq      int64
}

func (r *replay) start() {
	g := governor.New(r.day.config(r.store, r.clock, idleRunner, func() string { return r.id }))
	if err := g.Start(r.day.ctx); err != nil {
		r.day.must(err)
		return
	}
	r.governor = g
}

func (r *replay) stop() {
	if r.governor != nil {
		r.day.must(r.governor.Stop(r.day.ctx))
		r.governor = nil
	}
}

// again has happen what led to a commit, and compares the lines it led to.
func (r *replay) again(b store.Batch) {
	r.clock.turn(b.Entries[0].At)
	var seen []runner.Observation
	for i := range b.Entries {
		e := &b.Entries[i]
		switch e.Kind {
		case store.Command:
			r.day.must(r.command(e))
		case store.Seen:
			o, err := decode[runner.Observation](e)
			r.day.must(err)
			seen = append(seen, o)
		case store.Decision, store.State:
		}
	}
	r.observe(seen)
	r.settle()
	lines, err := r.store.Journal(r.day.ctx, r.seq, 1_000_000)
	r.day.must(err)
	for i := range max(len(lines), len(b.Entries)) {
		var was, is string
		if i < len(b.Entries) {
			was = line(&b.Entries[i])
		}
		if i < len(lines) {
			is = line(&lines[i])
		}
		if was != is {
			r.day.broken("the journal can be replayed", "where it was\n%s\nit is\n%s", was, is)
			return
		}
	}
	r.seq += int64(len(lines))
}

func line(e *store.Entry) string {
	return fmt.Sprintf("%d %s %s %s %s %s %s", e.Seq, e.At.Format(time.RFC3339Nano), e.Kind, e.Name, e.Subject, e.By, e.Data)
}

func (r *replay) settle() {
	_, err := r.governor.Environments(r.day.ctx)
	r.day.must(err)
}

// observe tells what a runner saw. What was heard in one turn is heard in one
// again: the governor is held up at the beginning of a turn until all is told.
func (r *replay) observe(seen []runner.Observation) {
	if len(seen) < 2 {
		for _, o := range seen {
			r.governor.Observe(o)
		}
		return
	}
	gate, turned := r.clock.shut(), make(chan struct{})
	go func() {
		defer close(turned)
		r.settle()
	}()
	<-gate.reached
	for _, o := range seen {
		r.governor.Observe(o)
	}
	close(gate.open)
	<-turned
}

// command carries out a command again.
func (r *replay) command(e *store.Entry) error {
	ctx, g := governor.WithPrincipal(r.day.ctx, e.By), r.governor
	switch e.Name {
	case "CreateServiceEnvironment":
		return carryOut(ctx, e, g.CreateEnvironment)
	case "UpdateServiceEnvironment":
		return carryOut(ctx, e, g.UpdateEnvironment)
	case "DeleteServiceEnvironment":
		return carryOut(ctx, e, func(ctx context.Context, r resource.Ref) error { return g.DeleteEnvironment(ctx, r.Name) })
	case "CreateSchedulingPolicy":
		return carryOut(ctx, e, g.CreatePolicy)
	case "UpdateSchedulingPolicy":
		return carryOut(ctx, e, g.UpdatePolicy)
	case "DeleteSchedulingPolicy":
		return carryOut(ctx, e, func(ctx context.Context, r resource.Ref) error { return g.DeletePolicy(ctx, r.Name) })
	case "CreateJobQueue":
		return carryOut(ctx, e, g.CreateQueue)
	case "UpdateJobQueue":
		return carryOut(ctx, e, g.UpdateQueue)
	case "DeleteJobQueue":
		return carryOut(ctx, e, func(ctx context.Context, r resource.Ref) error { return g.DeleteQueue(ctx, r.Name) })
	case "CreateQuotaShare":
		return carryOut(ctx, e, g.CreateShare)
	case "UpdateQuotaShare":
		return carryOut(ctx, e, g.UpdateShare)
	case "DeleteQuotaShare":
		return carryOut(ctx, e, func(ctx context.Context, r resource.Ref) error { return g.DeleteShare(ctx, r.Queue, r.Name) })
	case "ApplyPolicy":
		return carryOut(ctx, e, func(ctx context.Context, v governor.Declaration) error {
			_, err := g.Apply(ctx, v, "")
			return err
		})
	case "TagResource":
		return carryOut(ctx, e, func(ctx context.Context, tags map[string]string) error {
			return g.Tag(ctx, resource.Ref{Kind: resource.KindJob, Name: e.Subject}, tags)
		})
	case "SubmitServiceJob":
		return r.submit(ctx, e)
	case "UpdateServiceJob":
		return carryOut(ctx, e, func(ctx context.Context, v struct{ Priority int32 }) error {
			_, err := g.SetPriority(ctx, e.Subject, v.Priority)
			return err
		})
	case "TerminateServiceJob":
		return carryOut(ctx, e, func(ctx context.Context, v struct{ Reason string }) error {
			return g.Terminate(ctx, e.Subject, v.Reason)
		})
	}
	return fmt.Errorf("unknown command %s", e.Name)
}

func carryOut[T any](ctx context.Context, e *store.Entry, do func(context.Context, T) error) error {
	v, err := decode[T](e)
	if err != nil {
		return err
	}
	if err := do(ctx, v); err != nil {
		return breaks("the journal can be replayed", "%s by %s: %v", e.Name, e.By, err)
	}
	return nil
}

func (r *replay) submit(ctx context.Context, e *store.Entry) error {
	r.id = e.Subject
	return carryOut(ctx, e, func(ctx context.Context, s governor.Submission) error {
		payload, err := r.day.store.Payload(ctx, e.Subject)
		if err != nil {
			return err
		}
		s.Payload = payload
		var j job.Job
		if j, err = r.governor.Submit(ctx, s); err == nil && j.ID != e.Subject {
			err = errors.New("it made another job")
		}
		return err
	})
}
