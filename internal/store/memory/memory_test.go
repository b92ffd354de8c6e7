package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/memory"
	"github.com/bursar-io/bursar/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Engine{
		Open:   func(*testing.T) store.Store { return memory.New() },
		Reopen: func(_ *testing.T, s store.Store) store.Store { return s },
	})
}

func TestFailingCommitLeavesNothing(t *testing.T) {
	s, full := memory.New(), errors.New("disk full")
	b := store.Batch{Jobs: []job.Job{{ID: "job", Seq: 1}}, Entries: []store.Entry{{Seq: 1}}}

	s.FailCommits(func(store.Batch) error { return full })
	if err := s.Commit(t.Context(), b); !errors.Is(err, full) {
		t.Errorf("Commit: %v, want %v", err, full)
	}
	if c, err := s.Load(t.Context(), time.Time{}); err != nil || c.LastJobSeq != 0 || c.LastEntrySeq != 0 {
		t.Errorf("after a failed commit: %+v, %v", c, err)
	}
	s.FailCommits(nil)
	if err := s.Commit(t.Context(), b); err != nil {
		t.Errorf("once commits pass again: %v", err)
	}
}

func TestCopiesInAndOut(t *testing.T) {
	s := memory.New()
	in := job.Job{ID: "job", Seq: 1, Queue: "queue", Tags: map[string]string{"tag": "as committed"}}
	if err := s.Commit(t.Context(), store.Batch{Jobs: []job.Job{in}}); err != nil {
		t.Fatal(err)
	}
	in.Tags["tag"] = "changed by who committed it"
	for range 2 {
		out, err := s.Job(t.Context(), "job")
		if err != nil || out.Tags["tag"] != "as committed" {
			t.Fatalf("tag is %q, %v", out.Tags["tag"], err)
		}
		out.Tags["tag"] = "changed by who read it"
	}
}
