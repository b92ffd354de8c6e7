package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// model is what a store should hold, as plainly as can be.
type model struct {
	resources map[resource.Ref]any
	jobs      []job.Job // by Seq, from 1
	payloads  []string  // the same
	journal   []store.Entry
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// anyHistory commits random batches, good and bad, and compares all that the
// store shows with the model after each.
func (e Engine) anyHistory(t *testing.T) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		s := e.Open(t)
		defer func() { closed(t, s) }() // as it is by then
		m := &model{resources: map[resource.Ref]any{}}
		for range rapid.IntRange(1, 12).Draw(rt, "batches") {
			b := m.batch(rt)
			if rapid.IntRange(0, 4).Draw(rt, "spoil") == 0 {
				b.Entries = append(b.Entries, store.Entry{Seq: 1}, store.Entry{Seq: 1})
				if err := s.Commit(rt.Context(), b); err == nil {
					rt.Fatal("a journal entry that is there already was not refused")
				}
			} else {
				noError(rt, s.Commit(rt.Context(), b))
				m.apply(b)
			}
			if rapid.IntRange(0, 9).Draw(rt, "reopen") == 0 {
				s = e.Reopen(t, s)
			}
			m.compare(rt, s)
		}
	})
}

// batch returns a batch that may follow.
func (m *model) batch(rt *rapid.T) store.Batch {
	b := store.Batch{Payloads: map[string]string{}}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "A", "b", "ä", "%"}), 0, 3, rapid.ID[string])
	version := func() map[string]string {
		return map[string]string{"version": fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "version"))}
	}
	for _, n := range names.Draw(rt, "environments") {
		b.Environments = append(b.Environments, resource.Environment{Name: n, Tags: version()})
	}
	for _, n := range names.Draw(rt, "policies") {
		b.Policies = append(b.Policies, resource.Policy{Name: n, Tags: version()})
	}
	for _, n := range names.Draw(rt, "queues") {
		b.Queues = append(b.Queues, resource.Queue{Name: n, Tags: version()})
	}
	for _, n := range names.Draw(rt, "shares") {
		queue := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "of queue")
		b.Shares = append(b.Shares, resource.Share{Queue: queue, Name: n, Tags: version()})
	}
	for _, r := range slices.SortedFunc(maps.Keys(m.resources), compareRefs) {
		if rapid.IntRange(0, 3).Draw(rt, "remove") == 0 {
			b.Removed = append(b.Removed, r)
		}
	}
	m.addJobs(rt, &b)
	for range rapid.IntRange(0, 3).Draw(rt, "entries") {
		b.Entries = append(b.Entries, store.Entry{Seq: int64(len(m.journal) + len(b.Entries) + 1), At: epoch, Kind: store.Seen, Subject: "job"})
	}
	return b
}

func (m *model) addJobs(rt *rapid.T, b *store.Batch) {
	for _, j := range m.jobs {
		if rapid.IntRange(0, 2).Draw(rt, "update") == 0 {
			j.Status = statuses().Draw(rt, "status")
			j.Runs++
			b.Jobs = append(b.Jobs, j)
		}
	}
	for range rapid.IntRange(0, 3).Draw(rt, "new jobs") {
		seq := int64(len(m.jobs) + len(b.Payloads) + 1)
		j := job.Job{
			ID: fmt.Sprintf("job-%d", seq), Seq: seq, Queue: "queue", Status: statuses().Draw(rt, "status"),
			CreatedAt: epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "created")) * time.Hour),
			Token:     rapid.SampledFrom([]string{"", "t", "u"}).Draw(rt, "token"),
		}
		b.Jobs = append(b.Jobs, j)
		b.Payloads[j.ID] = rapid.StringN(0, 20, -1).Draw(rt, "payload")
	}
}

func compareRefs(a, b resource.Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Name, b.Name))
}

func (m *model) apply(b store.Batch) {
	for _, r := range b.Removed {
		delete(m.resources, r)
	}
	for _, r := range b.Environments {
		m.resources[resource.Ref{Kind: resource.KindEnvironment, Name: r.Name}] = r
	}
	for _, r := range b.Policies {
		m.resources[resource.Ref{Kind: resource.KindPolicy, Name: r.Name}] = r
	}
	for _, r := range b.Queues {
		m.resources[resource.Ref{Kind: resource.KindQueue, Name: r.Name}] = r
	}
	for _, r := range b.Shares {
		m.resources[resource.Ref{Kind: resource.KindShare, Queue: r.Queue, Name: r.Name}] = r
	}
	for _, j := range b.Jobs {
		if int(j.Seq) > len(m.jobs) {
			m.jobs, m.payloads = append(m.jobs, j), append(m.payloads, b.Payloads[j.ID])
		}
		m.jobs[j.Seq-1] = j
	}
	m.journal = append(m.journal, b.Entries...)
}

// contents returns what Load should.
func (m *model) contents(tokensSince time.Time) store.Contents {
	c := store.Contents{LastJobSeq: int64(len(m.jobs)), LastEntrySeq: int64(len(m.journal))}
	for _, r := range slices.SortedFunc(maps.Keys(m.resources), compareRefs) {
		switch r := m.resources[r].(type) {
		case resource.Environment:
			c.Environments = append(c.Environments, r)
		case resource.Policy:
			c.Policies = append(c.Policies, r)
		case resource.Queue:
			c.Queues = append(c.Queues, r)
		case resource.Share:
			c.Shares = append(c.Shares, r)
		}
	}
	for _, j := range m.jobs {
		if !j.Status.Finished() {
			c.Jobs = append(c.Jobs, j)
		}
		if j.Token != "" && !j.CreatedAt.Before(tokensSince) {
			c.Tokens = append(c.Tokens, store.Token{Token: j.Token, JobID: j.ID, CreatedAt: j.CreatedAt})
		}
	}
	slices.SortStableFunc(c.Tokens, func(a, b store.Token) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return c
}

func (m *model) compare(rt *rapid.T, s store.Store) {
	ctx := rt.Context()
	since := epoch.Add(time.Duration(rapid.IntRange(-1, 7).Draw(rt, "since")) * time.Hour / 2)
	contents, err := s.Load(ctx, since)
	noError(rt, err)
	equal(rt, "Load", m.contents(since), contents)
	for i, j := range m.jobs {
		got, err := s.Job(ctx, j.ID)
		noError(rt, err)
		equal(rt, "Job", j, got)
		payload, err := s.Payload(ctx, j.ID)
		noError(rt, err)
		equal(rt, "Payload", m.payloads[i], payload)
	}
	if _, err := s.Job(ctx, fmt.Sprintf("job-%d", len(m.jobs)+1)); !errors.Is(err, store.ErrNotFound) {
		rt.Fatalf("a job that was never committed: %v", err)
	}
	after := rapid.IntRange(0, len(m.journal)).Draw(rt, "after")
	limit := rapid.IntRange(0, len(m.journal)+1).Draw(rt, "limit")
	entries, err := s.Journal(ctx, int64(after), limit)
	noError(rt, err)
	equal(rt, "Journal", m.journal[after:min(after+limit, len(m.journal))], entries)
}

func equal(rt *rapid.T, what string, want, got any) {
	rt.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
