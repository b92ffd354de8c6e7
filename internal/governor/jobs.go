package governor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// The bounds of a submission's fields (A6 and A9; where AWS is silent, what
// container jobs have).
const (
	maxPriority      = 9999
	maxAttempts      = 10
	maxRules         = 5
	maxPatternLength = 512
	minTimeout       = 60 * time.Second
	maxTokenLength   = 64
	maxInstances     = 1_000_000 // of one type in one job: far beyond any pool, and safe to add up
	maxJobs          = 1_000_000 // that have not finished
)

// Submit accepts a job and returns it as it was accepted, before anything was
// decided. A client token that came with an earlier submission of the last 24
// hours returns that submission's job as it is now, if the parameters were the
// same. Refusals: Invalid, Missing, Conflict, Limit.
func (g *Governor) Submit(ctx context.Context, sub Submission) (job.Job, error) {
	return commandFor(ctx, g, func(t *turn) (job.Job, error) { return clone(t.submit(sub)) })
}

// SetPriority changes the priority of a job that has not finished, whether it
// waits or runs, and returns it. Refusals: Invalid, Missing, Conflict.
func (g *Governor) SetPriority(ctx context.Context, id string, priority int32) (job.Job, error) {
	return commandFor(ctx, g, func(t *turn) (job.Job, error) { return clone(t.setPriority(id, priority)) })
}

// clone returns a job as it may leave the loop.
func clone(a *activeJob, err error) (job.Job, error) {
	if err != nil {
		return job.Job{}, err
	}
	return a.Clone(), nil
}

// Terminate ends a job with a reason: at once if it waits, else as soon as its
// workers are gone. A job that has finished, or is being terminated, stays as
// it is, and that is no error. Refusals: Invalid, Missing.
func (g *Governor) Terminate(ctx context.Context, id, reason string) error {
	return g.command(ctx, func(t *turn) error { return t.terminateJob(id, reason) })
}

// Job returns a job, finished or not. Refusal: Missing.
func (g *Governor) Job(ctx context.Context, id string) (job.Job, error) {
	found, err := query(ctx, g, func(s *state) (job.Job, error) {
		if a := s.jobs[id]; a != nil {
			return a.Clone(), nil
		}
		return job.Job{}, nil
	})
	if err != nil || found.ID != "" {
		return found, err
	}
	found, err = g.cfg.Store.Job(ctx, id)
	return found, g.missing(id, err)
}

// Payload returns a job's payload. Refusal: Missing.
func (g *Governor) Payload(ctx context.Context, id string) (string, error) {
	payload, err := g.cfg.Store.Payload(ctx, id)
	return payload, g.missing(id, err)
}

// missing turns the store's ErrNotFound for a job into a refusal.
func (g *Governor) missing(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return noJob(id)
	}
	if err != nil {
		return fmt.Errorf("read job %s: %w", id, err)
	}
	return nil
}

// Jobs returns the jobs that the query selects, finished ones too. Refusal:
// Missing, if there is no such queue.
func (g *Governor) Jobs(ctx context.Context, q store.JobQuery) ([]job.Job, error) {
	if _, err := query(ctx, g, func(s *state) (*queue, error) { return s.queue(q.Queue) }); err != nil {
		return nil, err
	}
	// Between two turns the store has everything that memory has.
	jobs, err := g.cfg.Store.Jobs(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read the jobs of job queue %s: %w", q.Queue, err)
	}
	return jobs, nil
}

func (t *turn) submit(sub Submission) (*activeJob, error) {
	if err := sub.validate(); err != nil {
		return nil, err
	}
	if sub.Token != "" {
		id, same, known := t.tokens.find(sub.Token, sub.Hash)
		if known && !same {
			return nil, refuse(Invalid, "clientToken %q was sent before, for job %s, with other parameters. Use a new token for a new job.", sub.Token, id)
		}
		if known {
			return t.job(id)
		}
	}
	if len(t.jobs) >= maxJobs {
		return nil, refuse(Limit, "%d service jobs have not finished, the most there may be. Wait, or terminate some.", len(t.jobs))
	}
	l, err := t.laneFor(sub)
	if err != nil {
		return nil, err
	}
	return t.admit(l, sub), nil
}

// laneFor returns where the job goes.
func (t *turn) laneFor(sub Submission) (*lane, error) {
	q, err := t.liveQueue(sub.Queue)
	if err != nil {
		return nil, err
	}
	if q.State != resource.Enabled {
		return nil, refuse(Conflict, "Job queue %s has state %s and takes no jobs. Set it to %s, or use another one.", q.Name, q.State, resource.Enabled)
	}
	switch {
	case q.identifiers != nil:
		return t.laneForIdentifier(q, sub)
	case sub.ShareIdentifier != "" && q.shares != nil:
		return nil, refuse(Invalid, "shareIdentifier is %q, but job queue %s has quota shares and no fair-share policy. Leave it out, and give one of them as quotaShareName: %s.", sub.ShareIdentifier, q.Name, listed(inNameOrder(q.shares)))
	case sub.ShareIdentifier != "":
		return nil, refuse(Invalid, "shareIdentifier is %q, but job queue %s has no fair-share policy. Leave it out.", sub.ShareIdentifier, q.Name)
	case sub.Share != "" && q.whole != nil:
		return nil, refuse(Invalid, "quotaShareName is %q, but job queue %s has no quota shares. Leave it out.", sub.Share, q.Name)
	case q.whole != nil:
		return q.whole, nil
	case sub.Share == "":
		return nil, refuse(Invalid, "quotaShareName is required for job queue %s, which has quota shares: %s.", q.Name, listed(inNameOrder(q.shares)))
	}
	return t.laneForShare(q, sub)
}

func (t *turn) laneForShare(q *queue, sub Submission) (*lane, error) {
	l, err := t.liveShare(q.Name, sub.Share)
	if err != nil {
		return nil, err
	}
	if l.share.State != resource.Enabled {
		return nil, refuse(Conflict, "Quota share %s of job queue %s has state %s and takes no jobs. Set it to %s, or use another one.", sub.Share, q.Name, l.share.State, resource.Enabled)
	}
	return l, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none so far"
	}
	return strings.Join(names, ", ")
}

// submission is what the journal says of a submission; the payload is stored
// beside it, by the job's id.
type submission struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq"`
	Submission
}

func (t *turn) admit(l *lane, sub Submission) *activeJob {
	t.lastJob++
	a := &activeJob{lane: l, index: -1, Job: job.Job{
		ID: t.cfg.NewID(), Seq: t.lastJob,
		Name: sub.Name, Queue: sub.Queue, Share: sub.Share, ShareIdentifier: sub.ShareIdentifier, Priority: sub.Priority,
		Demand: sorted(sub.Demand), Workers: sub.Workers,
		TrainingJobName: sub.TrainingJobName, MaxRuntime: sub.MaxRuntime, Timeout: sub.Timeout,
		Strategy: sub.Strategy, PreemptionRetries: sub.PreemptionRetries,
		Status: job.Runnable, CreatedAt: t.now, UpdatedAt: t.now,
		Tags: sub.Tags, Token: sub.Token, TokenHash: sub.Hash,
	}}
	a.Job = a.Clone() // what the caller does to its submission must not matter
	t.addJob(a)
	t.check("add job "+a.ID, a.cohort().Add(a.quota()))
	t.touch(l)
	t.payloads[a.ID] = sub.Payload
	if sub.Token != "" {
		t.tokens.add(store.Token{Token: sub.Token, Hash: sub.Hash, JobID: a.ID, CreatedAt: t.now})
	}
	t.accept("SubmitServiceJob", a.ID, submission{ID: a.ID, Seq: a.Seq, Submission: sub})
	t.changedJob(a)
	return a
}

// sorted returns the demand by instance type, each type once.
func sorted(demand []job.Amount) []job.Amount {
	u := usage{}
	u.add(demand, 1)
	return u.amounts()
}

func (t *turn) setPriority(id string, priority int32) (*activeJob, error) {
	if err := validatePriority(priority); err != nil {
		return nil, err
	}
	a, err := t.job(id)
	if err != nil {
		return nil, err
	}
	if a.Status.Finished() {
		return nil, refuse(Conflict, "Service job %s has status %s, and its priority can no longer change.", id, a.Status)
	}
	a.Priority = priority
	t.check("set the priority of job "+id, a.cohort().SetPriority(a.id(), priority))
	t.touch(a.lane)
	t.accept("UpdateServiceJob", id, struct {
		Priority int32 `json:"priority"`
	}{priority})
	t.changedJob(a)
	return a, nil
}

func (t *turn) terminateJob(id, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return refuse(Invalid, "reason is required; say why the job is terminated.")
	}
	a, err := t.job(id)
	if err != nil || a.Status.Finished() || a.Terminated {
		return err
	}
	t.accept("TerminateServiceJob", id, struct {
		Reason string `json:"reason"`
	}{reason})
	t.terminate(a, reason)
	return nil
}

// validate refuses a submission that names a value that cannot be, whatever
// there is in the house.
func (sub Submission) validate() error {
	if !resource.ValidName(sub.Name) {
		return refuse(Invalid, "Job name should match a valid pattern. jobName is %q; use 1 to %d letters, digits, hyphens and underscores.",
			sub.Name, resource.MaxNameLength)
	}
	for _, check := range []func() error{
		sub.validateDemand,
		func() error { return validatePriority(sub.Priority) },
		sub.validateTimes,
		sub.validateRetries,
		sub.validateToken,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return valid(resource.ValidateTags(sub.Tags))
}

func (sub Submission) validateDemand() error {
	if len(sub.Demand) == 0 {
		return refuse(Invalid, "The payload's ResourceConfig asks for no instances. Give it an InstanceType and an InstanceCount of at least 1.")
	}
	for _, a := range sub.Demand {
		if !resource.ValidInstanceType(a.Unit) {
			return refuse(Invalid, "InstanceType is %q; use one such as ml.g5.xlarge.", a.Unit)
		}
		if a.Quantity < 1 || a.Quantity > maxInstances {
			return refuse(Invalid, "InstanceCount of %s is %d; use 1 to %d.", a.Unit, a.Quantity, maxInstances)
		}
	}
	return nil
}

func validatePriority(priority int32) error {
	if priority < 0 || priority > maxPriority {
		return refuse(Invalid, "schedulingPriority is %d; use 0 to %d.", priority, maxPriority)
	}
	return nil
}

func (sub Submission) validateTimes() error {
	if sub.Timeout != 0 && sub.Timeout < minTimeout {
		return refuse(Invalid, "attemptDurationSeconds is %d; use at least %d.", int64(sub.Timeout/time.Second), int64(minTimeout/time.Second))
	}
	if sub.MaxRuntime < 0 {
		return refuse(Invalid, "MaxRuntimeInSeconds is %d; use at least 1.", int64(sub.MaxRuntime/time.Second))
	}
	return nil
}

func (sub Submission) validateRetries() error {
	if n := sub.PreemptionRetries; n != nil && *n < 0 {
		return refuse(Invalid, "preemptionRetriesBeforeTermination is %d; use 0 or more, or leave it out for no limit.", *n)
	}
	if sub.Strategy == nil {
		return nil
	}
	if n := sub.Strategy.Attempts; n < 1 || n > maxAttempts {
		return refuse(Invalid, "attempts of retryStrategy is %d; use 1 to %d.", n, maxAttempts)
	}
	if n := len(sub.Strategy.Rules); n > maxRules {
		return refuse(Invalid, "evaluateOnExit has %d rules; use at most %d.", n, maxRules)
	}
	for _, r := range sub.Strategy.Rules {
		if r.Action != job.Retry && r.Action != job.Exit {
			return refuse(Invalid, "action in evaluateOnExit is %q; use %s or %s.", r.Action, job.Retry, job.Exit)
		}
		if n := utf8.RuneCountInString(r.Pattern); n < 1 || n > maxPatternLength {
			return refuse(Invalid, "onStatusReason in evaluateOnExit has %d characters; use 1 to %d.", n, maxPatternLength)
		}
	}
	return nil
}

func (sub Submission) validateToken() error {
	if n := utf8.RuneCountInString(sub.Token); n > maxTokenLength {
		return refuse(Invalid, "clientToken has %d characters; use 1 to %d.", n, maxTokenLength)
	}
	return nil
}
