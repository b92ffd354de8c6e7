package sqlite

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

// BenchmarkCommit submits jobs with a payload of 1 KiB and two journal entries
// each, in batches.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			s := openIn(b, b.TempDir())
			var seq int64
			for b.Loop() {
				if err := s.Commit(b.Context(), numbered(seq, n, 1024)); err != nil {
					b.Fatal(err)
				}
				seq += int64(n)
			}
			b.ReportMetric(float64(seq)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkUpdate changes the state of jobs that are stored, in batches.
func BenchmarkUpdate(b *testing.B) {
	const n = 32
	s := openIn(b, b.TempDir())
	batch := numbered(0, n, 1024)
	if err := s.Commit(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
	batch.Payloads = nil
	states := []job.Status{job.Scheduled, job.Starting, job.Running, job.Runnable}
	for i := 0; b.Loop(); i++ {
		for k := range batch.Jobs {
			batch.Jobs[k].Status = states[i%len(states)]
		}
		for k := range batch.Entries {
			batch.Entries[k].Seq += 2 * n
		}
		if err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// stored is how many jobs BenchmarkJobs and BenchmarkLoad find, half of one
// percent of them active. BURSAR_BENCH_JOBS sets another number.
func stored(b *testing.B) (*Store, int64) {
	b.Helper()
	total := int64(100_000)
	if text := os.Getenv("BURSAR_BENCH_JOBS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		total = n
	}
	s := openIn(b, b.TempDir())
	for seq := int64(0); seq < total; seq += 1000 {
		batch := numbered(seq, 1000, 64)
		for i := range batch.Jobs {
			j := &batch.Jobs[i]
			j.CreatedAt = j.CreatedAt.Add(time.Duration(i) * time.Millisecond)
			switch {
			case i%200 == 0:
				j.Status = job.Running
			case i%10 == 0:
				j.Status = job.Failed
			default:
				j.Status = job.Succeeded
			}
		}
		if err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return s, total
}

// BenchmarkJobs reads pages of 100 jobs among many.
func BenchmarkJobs(b *testing.B) {
	s, total := stored(b)
	share, middle := "share-7", numbered(total/2, 1, 0).Jobs[0].CreatedAt
	for _, query := range []struct {
		name string
		store.JobQuery
	}{
		{"newest", store.JobQuery{}},
		{"a page in the middle", store.JobQuery{BeforeSeq: total / 2, BeforeTime: middle}},
		{"running", store.JobQuery{Statuses: []job.Status{job.Running}}},
		{"finished", store.JobQuery{Statuses: []job.Status{job.Succeeded, job.Failed}}},
		{"failed in a share", store.JobQuery{Share: &share, Statuses: []job.Status{job.Failed}}},
		{"running in a share that runs nothing", store.JobQuery{Share: &share, Statuses: []job.Status{job.Running}}},
		{"name", store.JobQuery{NamePrefix: fmt.Sprintf("train-%d", total/2), NameExact: true}},
		{"common name prefix", store.JobQuery{NamePrefix: "train-"}},
		{"name prefix that no job has", store.JobQuery{NamePrefix: "evaluate"}},
		{"created before", store.JobQuery{CreatedBefore: middle}},
	} {
		b.Run(query.name, func(b *testing.B) {
			query.Queue, query.Limit = "queue", 100
			for b.Loop() {
				if _, err := s.Jobs(b.Context(), query.JobQuery); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad starts from a store with many jobs, most of them finished.
func BenchmarkLoad(b *testing.B) {
	s, _ := stored(b)
	for b.Loop() {
		if _, err := s.Load(b.Context(), time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}
