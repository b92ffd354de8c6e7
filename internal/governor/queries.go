package governor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/store"
)

const (
	// frontJobs is how many waiting jobs a snapshot of a queue without
	// quota shares shows, and topShares how many shares by usage (A6).
	frontJobs = 100
	topShares = 20
)

// Snapshot returns what waits in front of a queue and what its jobs hold.
// Refusal: Missing.
func (g *Governor) Snapshot(ctx context.Context, queueName string) (Snapshot, error) {
	return query(ctx, g, func(s *state) (Snapshot, error) {
		q, err := s.queue(queueName)
		if err != nil {
			return Snapshot{}, err
		}
		return s.snapshot(q, g.cfg.Clock.Now().UTC()), nil
	})
}

func (s *state) snapshot(q *queue, now time.Time) Snapshot {
	snap := Snapshot{Queue: q.Queue, At: now}
	held := usage{}
	for _, l := range q.lanes() {
		held.add(l.usage.amounts(), 1)
	}
	snap.Total = held.amounts()
	using := q.using()
	top := using[:min(len(using), topShares)]
	switch {
	case q.whole != nil:
		snap.Front = s.front(q.whole.heads(frontJobs), q.whole.moved)
	case q.identifiers != nil:
		snap.Front = s.front(q.environment.cohort.FairOrder(q.Name, frontJobs, now), q.moved())
		snap.FairShare = &FairShareUse{Active: len(using), Top: top}
	default:
		snap.ShareFronts, snap.Shares = s.shareFronts(q), top
	}
	return snap
}

// using returns the quota shares or share identifiers of a queue that hold
// capacity, those that hold most first.
func (q *queue) using() []Utilization {
	var using []Utilization
	for _, l := range q.lanes() {
		if len(l.usage) > 0 {
			using = append(using, Utilization{Share: cmp.Or(l.share.Name, l.identifier), Usage: l.usage.amounts()})
		}
	}
	slices.SortStableFunc(using, func(a, b Utilization) int { return cmp.Compare(instances(b.Usage), instances(a.Usage)) })
	return using
}

func instances(as []job.Amount) (n int64) {
	for _, a := range as {
		n += a.Quantity
	}
	return n
}

func (s *state) shareFronts(q *queue) []ShareFront {
	var fronts []ShareFront
	for _, l := range q.lanes() {
		first := ShareFront{Share: l.share.Name}
		if front := s.front(l.heads(1), l.moved); len(front) > 0 {
			first.Front = &front[0]
		}
		fronts = append(fronts, first)
	}
	return fronts
}

// heads returns the first n waiting jobs of a lane.
func (l *lane) heads(n int) []quota.JobID { return l.queue.environment.cohort.Heads(l.name, n) }

// moved is when a job last left the line of those that wait in the queue.
func (q *queue) moved() (latest time.Time) {
	for _, l := range q.lanes() {
		if l.moved.After(latest) {
			latest = l.moved
		}
	}
	return latest
}

// front returns jobs in front of a line from which one was last taken at moved.
// A job has been where it is since then, or since it began to wait.
func (s *state) front(ids []quota.JobID, moved time.Time) []Front {
	var front []Front
	for _, id := range ids {
		a := s.bySeq[id]
		since := a.UpdatedAt
		if moved.After(since) {
			since = moved
		}
		front = append(front, Front{Job: a.Clone(), Since: since})
	}
	return front
}

// Why explains a job: the reason why it waits, as of the last pass, what its
// share borrows while it runs, and what was decided about it. Refusal: Missing.
func (g *Governor) Why(ctx context.Context, id string) (Why, error) {
	why, err := query(ctx, g, func(s *state) (Why, error) {
		if a := s.jobs[id]; a != nil {
			return s.why(a, g.cfg.Clock.Now()), nil
		}
		return Why{}, nil
	})
	if err != nil {
		return Why{}, err
	}
	if why.Job.ID == "" {
		if why.Job, err = g.Job(ctx, id); err != nil {
			return Why{}, err
		}
	}
	why.Decisions = decisions(&why.Job)
	return why, nil
}

func (s *state) why(a *activeJob, now time.Time) Why {
	why := Why{Job: a.Clone()}
	if a.Status.Holds() {
		for _, b := range a.cohort().Balances(a.lane.name) {
			if b.Borrowed > 0 {
				if why.Borrowed == nil {
					why.Borrowed = quota.Amounts{}
				}
				why.Borrowed[b.Unit] = b.Borrowed
			}
		}
		return why
	}
	if r, ok := a.cohort().Reason(a.id(), now); ok {
		r = ownNames(a.Queue, r)
		why.Reason, why.Sentence = &r, r.Sentence(s.jobName)
	}
	return why
}

// decisions returns what was decided about a job, newest first.
func decisions(j *job.Job) []Told {
	attempts := slices.Concat(j.Attempts, j.Preemptions)
	if j.Current != nil {
		attempts = append(attempts, *j.Current)
	}
	slices.SortFunc(attempts, func(a, b job.Attempt) int { return cmp.Compare(b.Run, a.Run) })
	var told []Told
	for _, a := range attempts {
		if a.Stop != nil && a.Stop.Decision != "" {
			told = append(told, Told{At: a.Stop.At, Sentence: a.Stop.Decision})
		}
		if a.Decision != "" {
			told = append(told, Told{At: a.ScheduledAt, Sentence: a.Decision})
		}
	}
	return told
}

// Balances returns what each share of a queue owns, uses, borrows, lends and
// has free, sorted by queue and share; of all queues if the name is empty. A
// queue without policy is one balance without a share's name, and a fair-share
// queue has one for each active share identifier. Refusal: Missing.
func (g *Governor) Balances(ctx context.Context, queueName string) ([]Balance, error) {
	return query(ctx, g, func(s *state) (all []Balance, err error) {
		names := []string{queueName}
		if queueName == "" {
			names = inNameOrder(s.queues)
		}
		for _, name := range names {
			q, err := s.queue(name)
			if err != nil {
				return nil, err
			}
			for _, l := range q.shown(g.cfg.Clock.Now()) {
				all = append(all, l.balance())
			}
		}
		return all, nil
	})
}

func (l *lane) balance() Balance {
	cohort := l.queue.environment.cohort
	b := Balance{Queue: l.queue.Name, Share: l.share.Name, ShareIdentifier: l.identifier}
	b.Waiting, b.Running = cohort.Counts(l.name)
	for _, u := range cohort.Balances(l.name) {
		b.Units = append(b.Units, UnitBalance{
			Unit: u.Unit, Nominal: u.Nominal, Own: u.Usage - u.Borrowed, Borrowed: u.Borrowed, Lent: u.Lent, Free: u.Free,
		})
	}
	return b
}

// Journal returns up to limit entries of the journal that come after the one
// with sequence number after, in order.
func (g *Governor) Journal(ctx context.Context, after int64, limit int) ([]store.Entry, error) {
	entries, err := g.cfg.Store.Journal(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return entries, nil
}

// ownNames returns the reason why a job of a queue waits with shares named as
// people name them.
func ownNames(queueName string, r quota.Reason) quota.Reason {
	r.Holders = slices.Clone(r.Holders)
	for i := range r.Holders {
		h := &r.Holders[i]
		h.Share, h.ForShare = ownName(queueName, h.Share), ownName(queueName, h.ForShare)
	}
	return r
}

// ownName is the name of a lane for those who look at one queue: the quota
// share's or share identifier's own in that queue, and with its queue's name in
// any other.
func ownName(queueName, lane string) string { return strings.TrimPrefix(lane, queueName+"/") }
