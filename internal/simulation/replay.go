package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// ErrNoCapacity is returned for a policy under which nothing can ever run.
var ErrNoCapacity = errors.New("the policy has no capacity; name an amount for at least one unit")

// Assumptions fill in what a trace does not say of its jobs. The zero value
// assumes nothing.
type Assumptions struct {
	// CheckpointEvery is for jobs that name no checkpoint_s.
	CheckpointEvery time.Duration
	// DeclaredRuntime is for jobs that name no max_runtime_s: they declare
	// their runtime times this, which should be more than 1.
	DeclaredRuntime float64
}

// Policy is a policy to replay a trace under.
type Policy struct {
	Name   string // what summaries and pages call it, such as its file
	Cohort scenario.Cohort
}

// Options are what Replay may be given beside a policy and a trace.
type Options struct {
	// Unit is what the summary is about; empty: the first by name.
	Unit quota.Unit
	// Assume fills in what the trace leaves out.
	Assume Assumptions
	// Observe is told of every event in order, if it is not nil.
	Observe func(scenario.Event)
	// Progress is told, if it is not nil, now and then how many jobs are over.
	Progress func(done int)
}

// Run is what came of a replay.
type Run struct {
	Policy  Policy
	Summary Summary

	assumed Assumptions
	tally   *tally
}

// progressEvery is how many jobs end between two calls of Options.Progress.
const progressEvery = 500

// Replay runs the jobs of a trace under a policy until nothing more happens. It
// returns a *RowError for a job whose share or unit the policy does not know,
// ErrNoCapacity, ctx's error once ctx is done, and the world's if that breaks.
func Replay(ctx context.Context, p Policy, trace *Trace, o Options) (*Run, error) {
	if len(p.Cohort.Capacity) == 0 {
		return nil, fmt.Errorf("replay %s: %w", p.Name, ErrNoCapacity)
	}
	if err := trace.check(&p); err != nil {
		return nil, err
	}
	t := newTally(&p.Cohort, o.Unit, len(trace.Jobs))
	r := &replay{tally: t, options: o}
	r.world = scenario.NewWorld(p.Cohort, r.observe)
	if err := r.run(ctx, trace.Jobs); err != nil {
		return nil, fmt.Errorf("replay %s under %s: %w", trace.Name, p.Name, err)
	}
	t.addUpAll()
	sum := t.summary()
	sum.Policy = p.Name
	sum.Assumed = Assumed{CheckpointS: o.Assume.CheckpointEvery.Seconds(), DeclaredRuntime: o.Assume.DeclaredRuntime}
	return &Run{Policy: p, Summary: sum, assumed: o.Assume, tally: t}, nil
}

// check finds the first job that the policy cannot run.
func (t *Trace) check(p *Policy) error {
	shares := map[string]bool{}
	var names []string
	for _, s := range p.Cohort.Shares {
		shares[s.Name] = true
		names = append(names, s.Name)
	}
	units := unitsOf(&p.Cohort)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if !shares[j.Team] && j.Standing != nil {
			return &RowError{File: t.Name, Right: fmt.Sprintf("job %s is in share %s, which %s does not have; it has %q", j.Name, j.Team, p.Name, names)}
		}
		if !shares[j.Team] {
			return &RowError{
				File: t.Name, Line: j.Line, Column: columnTeam, Value: j.Team,
				Right: fmt.Sprintf("must be a share of %s, which has %q", p.Name, names),
			}
		}
		for unit := range j.Demand {
			if !slices.Contains(units, unit) {
				return &RowError{
					File: t.Name, Line: j.Line,
					Right: fmt.Sprintf("job %s wants %s, a unit that %s does not have; it has %q", j.Name, unit, p.Name, units),
				}
			}
		}
	}
	return nil
}

// replay is one under way.
type replay struct {
	world   *scenario.World
	tally   *tally
	options Options
	done    int
}

func (r *replay) run(ctx context.Context, jobs []Job) error {
	for i := range jobs {
		if err := r.advance(ctx, jobs[i].Submit); err != nil {
			return err
		}
		if err := r.add(&jobs[i]); err != nil {
			return err
		}
	}
	for {
		if err := r.world.Settle(); err != nil {
			return err
		}
		next, ok := r.world.Next()
		if !ok {
			return nil
		}
		if err := r.advance(ctx, next); err != nil {
			return err
		}
	}
}

// add hands in a job, or takes it up where it stands.
func (r *replay) add(j *Job) error {
	s := r.options.Assume.submission(j)
	if j.Standing != nil {
		return r.world.Resume(s, *j.Standing)
	}
	return r.world.Submit(s)
}

func (r *replay) advance(ctx context.Context, to time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.world.Advance(to)
}

// submission is the job with what the trace leaves out filled in.
func (a Assumptions) submission(j *Job) scenario.Submission {
	s := scenario.Submission{
		Job: j.Name, Share: j.Team, Priority: j.Priority, Demand: j.Demand,
		Runtime: j.Runtime, CheckpointEvery: j.CheckpointEvery, MaxRuntime: j.MaxRuntime,
		PreemptionRetries: j.PreemptionRetries,
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = a.CheckpointEvery
	}
	if s.MaxRuntime == 0 {
		s.MaxRuntime = time.Duration(float64(j.Runtime) * a.DeclaredRuntime)
	}
	return s
}

func (r *replay) observe(e scenario.Event) {
	r.tally.observe(e)
	if r.options.Observe != nil {
		r.options.Observe(e)
	}
	if e.Kind != scenario.Finished && e.Kind != scenario.Failed {
		return
	}
	if r.done++; r.options.Progress != nil && r.done%progressEvery == 0 {
		r.options.Progress(r.done)
	}
}
