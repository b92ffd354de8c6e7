// Package storetest is the conformance suite that every engine of package store
// passes. It compares engines with plain references written from the contract
// of store.Store; what one engine alone promises is tested beside that engine.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Engine is an engine under test. The suite closes the stores it opens, and
// calls these functions from several tests at once.
type Engine struct {
	// Open returns an empty store.
	Open func(t *testing.T) store.Store
	// Reopen closes a store, and opens what it kept.
	Reopen func(t *testing.T, s store.Store) store.Store
}

// Run runs the suite.
func Run(t *testing.T, e Engine) {
	t.Helper()
	for name, test := range map[string]func(*testing.T){
		"empty":                          e.empty,
		"every field of every record":    e.everyField,
		"any history of batches":         e.anyHistory,
		"a refused batch leaves nothing": e.refused,
		"a cancelled context":            e.cancelled,
		"a context cancelled meanwhile":  e.cancelledDuringCommit,
		"any query":                      e.anyQuery,
		"queries that cannot be":         e.badQueries,
		"names":                          e.names,
		"bounds within a millisecond":    e.bounds,
		"readers see whole batches":      e.readers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (e Engine) open(t *testing.T) store.Store {
	t.Helper()
	s := e.Open(t)
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func (e Engine) empty(t *testing.T) {
	t.Helper()
	s := e.open(t)
	ctx := t.Context()
	if got, err := s.Load(ctx, time.Time{}); err != nil || !cmp.Equal(got, store.Contents{}, cmpopts.EquateEmpty()) {
		t.Errorf("Load of an empty store: %+v, %v", got, err)
	}
	if _, err := s.Job(ctx, "no-such-job"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Job that is not there: %v, want %v", err, store.ErrNotFound)
	}
	if _, err := s.Payload(ctx, "no-such-job"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Payload that is not there: %v, want %v", err, store.ErrNotFound)
	}
	if got, err := s.Jobs(ctx, store.JobQuery{Queue: "no-such-queue", Limit: 10}); err != nil || len(got) > 0 {
		t.Errorf("Jobs of an empty store: %v, %v", got, err)
	}
	if got, err := s.Ended(ctx, "no-such-queue", time.Time{}); err != nil || len(got) > 0 {
		t.Errorf("Ended of an empty store: %v, %v", got, err)
	}
	if got, err := s.Journal(ctx, 0, 10); err != nil || len(got) > 0 {
		t.Errorf("Journal of an empty store: %v, %v", got, err)
	}
	if err := s.Commit(ctx, store.Batch{}); err != nil {
		t.Errorf("Commit of an empty batch: %v", err)
	}
}

// example returns a small batch of everything. Every n gives other records.
func example(n int64) store.Batch {
	at := time.Date(2026, 3, 1, 12, 0, int(n), 0, time.UTC)
	name := string(rune('a' + n))
	j := job.Job{
		ID: "job-" + name, Seq: n, Name: "train-" + name, Queue: "queue", Share: "share", Status: job.Runnable,
		CreatedAt: at, UpdatedAt: at, Token: "token-" + name, TokenHash: "hash-" + name,
	}
	return store.Batch{
		Environments: []resource.Environment{{Name: "environment-" + name, CreatedAt: at}},
		Policies:     []resource.Policy{{Name: "policy-" + name, CreatedAt: at}},
		Queues:       []resource.Queue{{Name: "queue-" + name, CreatedAt: at}},
		Shares:       []resource.Share{{Queue: "queue-" + name, Name: "share-" + name, CreatedAt: at}},
		Jobs:         []job.Job{j},
		Payloads:     map[string]string{j.ID: "payload-" + name},
		Entries:      []store.Entry{{Seq: n, At: at, Kind: store.Command, Name: "SubmitServiceJob", Subject: j.ID}},
	}
}

// everything is all that a store shows.
type everything struct {
	Contents store.Contents
	Journal  []store.Entry
	Jobs     []job.Job
	Payloads map[string]string
}

// look reads all that a store shows of the jobs of examples.
func look(ctx context.Context, s store.Store) (all everything, err error) {
	if all.Contents, err = s.Load(ctx, time.Time{}); err != nil {
		return all, err
	}
	if all.Journal, err = s.Journal(ctx, 0, 1_000_000); err != nil {
		return all, err
	}
	if all.Jobs, err = s.Jobs(ctx, store.JobQuery{Queue: "queue", Limit: 1_000_000}); err != nil {
		return all, err
	}
	all.Payloads = map[string]string{}
	for _, j := range all.Jobs {
		p, err := s.Payload(ctx, j.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return all, err
		}
		all.Payloads[j.ID] = p
	}
	return all, nil
}

func mustLook(t *testing.T, s store.Store) everything {
	t.Helper()
	all, err := look(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustCommit(t *testing.T, s store.Store, b store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func (e Engine) refused(t *testing.T) {
	t.Helper()
	tests := map[string]func(b *store.Batch){
		"journal entry that is there already": func(b *store.Batch) { b.Entries[0].Seq = 1 },
		"seq of another job":                  func(b *store.Batch) { b.Jobs[0].Seq = 1 },
		"id with another seq": func(b *store.Batch) {
			b.Jobs[0].ID = "job-b"
			b.Payloads = nil
		},
		"job that changed its name":          again(func(j *job.Job) { j.Name = "other" }),
		"job that changed its queue":         again(func(j *job.Job) { j.Queue = "other" }),
		"job that changed its share":         again(func(j *job.Job) { j.Share = "other" }),
		"job that changed its identifier":    again(func(j *job.Job) { j.ShareIdentifier = "other" }),
		"job that changed its creation time": again(func(j *job.Job) { j.CreatedAt = j.CreatedAt.Add(time.Hour) }),
		"job that changed its token":         again(func(j *job.Job) { j.Token = "other" }),
		"job that changed its token's hash":  again(func(j *job.Job) { j.TokenHash = "other" }),
		"payload without its job":            func(b *store.Batch) { b.Payloads["job-z"] = "lost" },
		"removal of a job": func(b *store.Batch) {
			b.Removed = []resource.Ref{{Kind: resource.KindJob, Name: "job-b"}}
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := e.open(t)
			mustCommit(t, s, example(1))
			before := mustLook(t, s)

			b := example(2)
			spoil(&b)
			if err := s.Commit(t.Context(), b); err == nil {
				t.Error("the batch was not refused")
			}
			if diff := cmp.Diff(before, mustLook(t, s)); diff != "" {
				t.Errorf("the refused batch left something (-before +after):\n%s", diff)
			}
			mustCommit(t, s, example(2))
		})
	}
}

// again spoils a batch with a changed version of the job of example 1.
func again(change func(*job.Job)) func(*store.Batch) {
	return func(b *store.Batch) {
		j := example(1).Jobs[0]
		change(&j)
		b.Jobs = append(b.Jobs, j)
	}
}

func (e Engine) cancelled(t *testing.T) {
	t.Helper()
	s := e.open(t)
	mustCommit(t, s, example(1))
	before := mustLook(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"Load":    func() error { _, err := s.Load(ctx, time.Time{}); return err },
		"Commit":  func() error { return s.Commit(ctx, example(2)) },
		"Job":     func() error { _, err := s.Job(ctx, "job-b"); return err },
		"Payload": func() error { _, err := s.Payload(ctx, "job-b"); return err },
		"Jobs":    func() error { _, err := s.Jobs(ctx, store.JobQuery{Queue: "queue", Limit: 1}); return err },
		"Ended":   func() error { _, err := s.Ended(ctx, "queue", time.Time{}); return err },
		"Journal": func() error { _, err := s.Journal(ctx, 0, 1); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v, want %v", name, err, context.Canceled)
		}
	}
	if diff := cmp.Diff(before, mustLook(t, s)); diff != "" {
		t.Errorf("the cancelled commit left something (-before +after):\n%s", diff)
	}
}

// cancelledDuringCommit cancels commits while they run: the error must tell
// whether the batch is there.
func (e Engine) cancelledDuringCommit(t *testing.T) {
	t.Helper()
	s := e.open(t)
	var last int64
	for range 50 {
		b := store.Batch{Entries: []store.Entry{{Seq: last + 1, Kind: store.Seen}, {Seq: last + 2, Kind: store.Seen}}}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := s.Commit(ctx, b); err == nil {
			last += 2
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
		if c, err := s.Load(t.Context(), time.Time{}); err != nil || c.LastEntrySeq != last {
			t.Fatalf("the journal is at %d, %v; want %d, as Commit said", c.LastEntrySeq, err, last)
		}
	}
}

// readers commits batches of jobs whose Runs are all the same, while others
// read; none may see two values at once, nor a value older than one it knows
// to be committed.
func (e Engine) readers(t *testing.T) {
	t.Helper()
	const jobs, batches, readers = 8, 40, 3
	s := e.open(t)
	batch := func(n int) store.Batch {
		var b store.Batch
		for i := range int64(jobs) {
			j := example(i + 1).Jobs[0]
			j.Runs = n
			b.Jobs = append(b.Jobs, j)
		}
		b.Entries = []store.Entry{{Seq: int64(n + 1), Kind: store.State, Name: "RUNNABLE"}}
		return b
	}
	mustCommit(t, s, batch(0))

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, readers)
	for range readers {
		go func() { failed <- readWhole(ctx, s, jobs) }()
	}
	for n := range batches {
		mustCommit(t, s, batch(n+1))
		c, err := s.Load(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Jobs[0].Runs != n+1 {
			t.Fatalf("Load after commit %d sees commit %d", n+1, c.Jobs[0].Runs)
		}
	}
	cancel()
	for range readers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// readWhole reads until ctx is done and returns what was wrong.
func readWhole(ctx context.Context, s store.Store, jobs int) error {
	for {
		c, err := s.Load(ctx, time.Time{})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // reading is over
		}
		if err != nil {
			return err
		}
		if len(c.Jobs) != jobs {
			return errors.New("loaded only a part of the jobs of a batch")
		}
		for _, j := range c.Jobs {
			if j.Runs != c.Jobs[0].Runs || int64(j.Runs+1) != c.LastEntrySeq {
				return errors.New("loaded half of a batch")
			}
		}
	}
}
