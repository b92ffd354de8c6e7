// Package memory is a store that forgets everything when its process ends, for
// simulations and tests. It keeps the same rules as the durable engines; no
// file, no SQL and no encoding may enter it.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Store is a store.Store in memory. What goes in and what comes out are copies.
type Store struct {
	mu           sync.RWMutex
	failing      func(store.Batch) error
	environments map[string]resource.Environment
	policies     map[string]resource.Policy
	queues       map[string]resource.Queue
	shares       map[shareKey]resource.Share
	jobs         map[string]*job.Job
	ids          map[int64]string // of jobs, by Seq
	lastJob      int64
	payloads     map[string]string
	journal      []store.Entry
}

type shareKey struct{ queue, name string }

// New returns an empty store.
func New() *Store {
	return &Store{
		environments: map[string]resource.Environment{},
		policies:     map[string]resource.Policy{},
		queues:       map[string]resource.Queue{},
		shares:       map[shareKey]resource.Share{},
		jobs:         map[string]*job.Job{},
		ids:          map[int64]string{},
		payloads:     map[string]string{},
	}
}

// FailCommits has every Commit from now on ask with what to fail; nil from it
// lets the commit pass. A nil with lets all pass again.
func (s *Store) FailCommits(with func(store.Batch) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = with
}

// Commit puts the batch into the store. See store.Store.
func (s *Store) Commit(ctx context.Context, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b, err := b.Checked()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(b); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.putResources(b)
	s.putJobs(b)
	s.journal = append(s.journal, b.Entries...)
	return nil
}

// refused returns why the batch cannot be put. Everything is checked before
// anything is put, so that a refused batch leaves nothing.
func (s *Store) refused(b store.Batch) error {
	if s.failing != nil {
		if err := s.failing(b); err != nil {
			return err
		}
	}
	fresh, ids := map[string]*job.Job{}, map[int64]string{}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		if old := cmp.Or(fresh[j.ID], s.jobs[j.ID]); old != nil && !sameIdentity(old, j) {
			return fmt.Errorf("job %s: what identifies it has changed since it was stored", j.ID)
		}
		fresh[j.ID] = j
		if id := cmp.Or(ids[j.Seq], s.ids[j.Seq], j.ID); id != j.ID {
			return fmt.Errorf("job %s: its Seq %d is job %s's", j.ID, j.Seq, id)
		}
		ids[j.Seq] = j.ID
	}
	last := s.lastEntry()
	for _, e := range b.Entries {
		if e.Seq <= last {
			return fmt.Errorf("journal entry %d: the journal is at %d already", e.Seq, last)
		}
		last = e.Seq
	}
	return nil
}

func sameIdentity(a, b *job.Job) bool {
	return a.Seq == b.Seq && a.Name == b.Name && a.Queue == b.Queue && a.Share == b.Share &&
		a.ShareIdentifier == b.ShareIdentifier && a.CreatedAt.Equal(b.CreatedAt) && a.Token == b.Token && a.TokenHash == b.TokenHash
}

func (s *Store) lastEntry() int64 {
	if len(s.journal) == 0 {
		return 0
	}
	return s.journal[len(s.journal)-1].Seq
}

func (s *Store) putResources(b store.Batch) {
	for _, r := range b.Removed {
		s.remove(r)
	}
	for _, e := range b.Environments {
		s.environments[e.Name] = e
	}
	for _, p := range b.Policies {
		s.policies[p.Name] = p
	}
	for _, q := range b.Queues {
		s.queues[q.Name] = q
	}
	for _, sh := range b.Shares {
		s.shares[shareKey{sh.Queue, sh.Name}] = sh
	}
}

func (s *Store) remove(r resource.Ref) {
	switch r.Kind {
	case resource.KindEnvironment:
		delete(s.environments, r.Name)
	case resource.KindPolicy:
		delete(s.policies, r.Name)
	case resource.KindQueue:
		delete(s.queues, r.Name)
	case resource.KindShare:
		delete(s.shares, shareKey{r.Queue, r.Name})
	case resource.KindJob: // a checked batch removes no job
	}
}

func (s *Store) putJobs(b store.Batch) {
	for i := range b.Jobs {
		j := &b.Jobs[i]
		s.jobs[j.ID], s.ids[j.Seq] = j, j.ID
		s.lastJob = max(s.lastJob, j.Seq)
	}
	maps.Copy(s.payloads, b.Payloads)
}

// Load returns the present state. See store.Store.
func (s *Store) Load(ctx context.Context, tokensSince time.Time) (store.Contents, error) {
	if err := ctx.Err(); err != nil {
		return store.Contents{}, fmt.Errorf("load: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := store.Contents{
		Environments: inOrder(s.environments, strings.Compare, resource.Environment.Clone),
		Policies:     inOrder(s.policies, strings.Compare, resource.Policy.Clone),
		Queues:       inOrder(s.queues, strings.Compare, resource.Queue.Clone),
		Shares:       inOrder(s.shares, shareKey.compare, resource.Share.Clone),
		LastJobSeq:   s.lastJob,
		LastEntrySeq: s.lastEntry(),
	}
	for _, seq := range slices.Sorted(maps.Keys(s.ids)) {
		j := s.jobs[s.ids[seq]]
		if !j.Status.Finished() {
			c.Jobs = append(c.Jobs, j.Clone())
		}
		if j.Token != "" && !j.CreatedAt.Before(tokensSince) {
			c.Tokens = append(c.Tokens, store.Token{Token: j.Token, Hash: j.TokenHash, JobID: j.ID, CreatedAt: j.CreatedAt})
		}
	}
	slices.SortStableFunc(c.Tokens, func(a, b store.Token) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return c, nil
}

func (k shareKey) compare(l shareKey) int {
	return cmp.Or(strings.Compare(k.queue, l.queue), strings.Compare(k.name, l.name))
}

func inOrder[K comparable, V any](records map[K]V, compare func(K, K) int, clone func(V) V) []V {
	out := make([]V, 0, len(records))
	for _, k := range slices.SortedFunc(maps.Keys(records), compare) {
		out = append(out, clone(records[k]))
	}
	return out
}

// Job returns a job or store.ErrNotFound. See store.Store.
func (s *Store) Job(ctx context.Context, id string) (job.Job, error) {
	if err := ctx.Err(); err != nil {
		return job.Job{}, fmt.Errorf("job %q: %w", id, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j, ok := s.jobs[id]
	if !ok {
		return job.Job{}, fmt.Errorf("job %q: %w", id, store.ErrNotFound)
	}
	return j.Clone(), nil
}

// Payload returns a job's payload or store.ErrNotFound. See store.Store.
func (s *Store) Payload(ctx context.Context, id string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("payload of job %q: %w", id, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.payloads[id]
	if !ok {
		return "", fmt.Errorf("payload of job %q: %w", id, store.ErrNotFound)
	}
	return p, nil
}

// Jobs returns the jobs that the query selects. See store.Store.
func (s *Store) Jobs(ctx context.Context, q store.JobQuery) ([]job.Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("jobs of queue %q: %w", q.Queue, err)
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var selected []*job.Job
	for _, j := range s.jobs {
		if selects(q, j) {
			selected = append(selected, j)
		}
	}
	slices.SortFunc(selected, func(a, b *job.Job) int { return newer(a, b.CreatedAt, b.Seq) })
	selected = selected[:min(len(selected), q.Limit)]
	out := make([]job.Job, len(selected))
	for i, j := range selected {
		out[i] = j.Clone()
	}
	return out, nil
}

// Ended returns the jobs with a share identifier that finished lately. See
// store.Store.
func (s *Store) Ended(ctx context.Context, queue string, since time.Time) ([]job.Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("jobs of queue %q that ended since %v: %w", queue, since, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var ended []job.Job
	for _, j := range s.jobs {
		if j.Queue == queue && j.ShareIdentifier != "" && j.Status.Finished() && !j.StoppedAt.Before(since) {
			ended = append(ended, j.Clone())
		}
	}
	slices.SortFunc(ended, func(a, b job.Job) int { return cmp.Compare(a.Seq, b.Seq) })
	return ended, nil
}

// newer is negative if j comes before a job created at t with that seq.
func newer(j *job.Job, t time.Time, seq int64) int {
	return cmp.Or(t.Compare(j.CreatedAt), cmp.Compare(seq, j.Seq))
}

func selects(q store.JobQuery, j *job.Job) bool {
	switch {
	case j.Queue != q.Queue,
		len(q.Statuses) > 0 && !slices.Contains(q.Statuses, j.Status),
		q.Share != nil && j.Share != *q.Share,
		q.Identifier != "" && j.ShareIdentifier != q.Identifier,
		!named(q, j.Name),
		!q.CreatedBefore.IsZero() && !j.CreatedAt.Before(q.CreatedBefore),
		!q.CreatedAfter.IsZero() && !j.CreatedAt.After(q.CreatedAfter):
		return false
	default:
		return q.BeforeSeq == 0 || newer(j, store.Instant(q.BeforeTime), q.BeforeSeq) > 0
	}
}

func named(q store.JobQuery, name string) bool {
	if q.NamePrefix == "" {
		return true
	}
	name, wanted := store.Fold(name), store.Fold(q.NamePrefix)
	return name == wanted || !q.NameExact && strings.HasPrefix(name, wanted)
}

// Journal returns entries after a Seq. See store.Store.
func (s *Store) Journal(ctx context.Context, after int64, limit int) ([]store.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("journal after %d: %w", after, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, _ := slices.BinarySearchFunc(s.journal, after+1, func(e store.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
	out := make([]store.Entry, 0, max(0, min(limit, len(s.journal)-from)))
	for _, e := range s.journal[from : from+cap(out)] {
		e.Data = slices.Clone(e.Data)
		out = append(out, e)
	}
	return out, nil
}

// Close does nothing: the store lives as long as its process.
func (s *Store) Close() error { return nil }
