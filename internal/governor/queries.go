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
		if l == q.whole {
			snap.Front = s.front(l, frontJobs)
			continue
		}
		first := ShareFront{Share: l.share.Name}
		if front := s.front(l, 1); len(front) > 0 {
			first.Front = &front[0]
		}
		snap.ShareFronts = append(snap.ShareFronts, first)
		if len(l.usage) > 0 {
			snap.Shares = append(snap.Shares, Utilization{Share: l.share.Name, Usage: l.usage.amounts()})
		}
	}
	snap.Total = held.amounts()
	slices.SortStableFunc(snap.Shares, func(a, b Utilization) int { return cmp.Compare(instances(b.Usage), instances(a.Usage)) })
	snap.Shares = snap.Shares[:min(len(snap.Shares), topShares)]
	return snap
}

func instances(as []job.Amount) (n int64) {
	for _, a := range as {
		n += a.Quantity
	}
	return n
}

// front returns the first n waiting jobs of a lane. One has been where it is
// since it began to wait, or since a job last left the line.
func (s *state) front(l *lane, n int) []Front {
	var front []Front
	for _, id := range l.queue.environment.cohort.Heads(l.name, n) {
		a := s.bySeq[id]
		since := a.UpdatedAt
		if l.moved.After(since) {
			since = l.moved
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
			return s.why(a), nil
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

func (s *state) why(a *activeJob) Why {
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
	if r, ok := a.cohort().Reason(a.id()); ok {
		r = ownNames(r)
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
// queue without quota shares is one balance without a share's name. Refusal:
// Missing.
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
			for _, l := range q.lanes() {
				all = append(all, l.balance())
			}
		}
		return all, nil
	})
}

func (l *lane) balance() Balance {
	cohort := l.queue.environment.cohort
	b := Balance{Queue: l.queue.Name, Share: l.share.Name}
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

// ownNames returns the reason with shares named as people name them.
func ownNames(r quota.Reason) quota.Reason {
	r.Holders = slices.Clone(r.Holders)
	for i := range r.Holders {
		h := &r.Holders[i]
		h.Share, h.ForShare = ownName(h.Share), ownName(h.ForShare)
	}
	return r
}

// ownName is the name of a share in its queue, or of a queue without shares. A
// name cannot have a slash, and all quota shares of one environment are of one
// queue.
func ownName(lane string) string {
	_, name, found := strings.Cut(lane, "/")
	if !found {
		return lane
	}
	return name
}
