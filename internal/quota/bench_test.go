package quota_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// The benchmarks are of 1,000 shares and 100,000 waiting jobs unless they say
// otherwise. What one operation is, the extra unit names.

const (
	benchShares  = 1_000
	benchWaiting = 100_000
)

func shareName(i int) string { return fmt.Sprintf("share-%04d", i) }

// benchCohort has shares that own the same each, on a pool of the capacity.
func benchCohort(shares int, nominal, capacity int64) *quota.Cohort {
	c := quota.NewCohort(quota.Policy{})
	c.SetCapacity(of(capacity))
	for i := range shares {
		c.SetShare(quota.Share{
			Name: shareName(i), Nominal: of(nominal), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited, InSharePreemption: true,
		})
	}
	return c
}

// wait adds jobs of one unit of capacity, in turn to every share.
func wait(b *testing.B, c *quota.Cohort, jobs, shares int) {
	b.Helper()
	for i := range jobs {
		err := c.Add(quota.Job{
			ID: quota.JobID(i + 1), Share: shareName(i % shares), Created: epoch.Add(time.Duration(i) * time.Millisecond), Demand: of(1),
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func mustPass(b *testing.B, c *quota.Cohort, now time.Time, decisions int) {
	b.Helper()
	if got := len(c.Pass(now)); got != decisions {
		b.Fatalf("the pass decides %d, want %d", got, decisions)
	}
}

// perUnit reports the time, and the allocations, of each of n things done in
// every iteration.
func perUnit(b *testing.B, n int, what string, allocs uint64) {
	b.Helper()
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N*n)
	b.ReportMetric(each, "ns/"+what)
	b.ReportMetric(1e9/each, what+"s/s")
	b.ReportMetric(float64(allocs)/float64(b.N*n), "allocs/"+what)
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// BenchmarkGrants: everything fits, and one pass grants it all.
func BenchmarkGrants(b *testing.B) {
	for _, shares := range []int{100, benchShares} {
		b.Run(fmt.Sprintf("shares=%d", shares), func(b *testing.B) {
			benchGrants(b, benchWaiting, func() *quota.Cohort {
				c := benchCohort(shares, int64(benchWaiting/shares), benchWaiting)
				wait(b, c, benchWaiting, shares)
				return c
			})
		})
	}
}

// BenchmarkBorrows: shares without a quota borrow 10,000 that one lends, the
// oldest first, or for their weights and with all means to preempt.
func BenchmarkBorrows(b *testing.B) {
	const jobs = 10_000
	for name, policy := range map[string]quota.Policy{
		"FIFO":      {},
		"FairShare": {IdleAssignment: quota.FairShare, Queueing: quota.BestEffort, BorrowerPreemption: true, Rebalance: true},
	} {
		b.Run(name, func(b *testing.B) {
			benchGrants(b, jobs, func() *quota.Cohort {
				c := quota.NewCohort(policy)
				c.SetCapacity(of(jobs))
				c.SetShare(quota.Share{Name: "lender", Nominal: of(jobs), Sharing: quota.Lend})
				for i := range benchShares {
					c.SetShare(quota.Share{
						Name: shareName(i), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited, Weight: int64(1 + i%7),
					})
				}
				wait(b, c, jobs, benchShares)
				return c
			})
		})
	}
}

// benchGrants measures passes that grant all that waits.
func benchGrants(b *testing.B, grants int, prepare func() *quota.Cohort) {
	b.Helper()
	var allocs uint64
	for b.Loop() {
		b.StopTimer()
		c := prepare()
		before := allocations()
		b.StartTimer()
		mustPass(b, c, epoch, grants)
		b.StopTimer()
		allocs += allocations() - before
		b.StartTimer()
	}
	perUnit(b, grants, "grant", allocs)
}

// BenchmarkReclaims: 100 shares, of which half run 10,000 jobs, half of them
// borrowed; the owners come back and reclaim 500 of them, 10 each.
func BenchmarkReclaims(b *testing.B) {
	const shares, running, reclaims = 100, 10_000, 500
	var allocs uint64
	for b.Loop() {
		b.StopTimer()
		c := benchCohort(shares, running/shares, running)
		wait(b, c, running, shares/2)
		mustPass(b, c, epoch, running)
		for i := range reclaims / 10 {
			for n := range 10 {
				err := c.Add(quota.Job{
					ID: quota.JobID(running + 10*i + n + 1), Share: shareName(shares/2 + i), Created: epoch.Add(time.Hour), Demand: of(1),
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		before := allocations()
		b.StartTimer()
		for decided := 0; decided < 2*reclaims; {
			decisions := c.Pass(epoch.Add(2 * time.Hour))
			if len(decisions) == 0 {
				b.Fatalf("a pass decides nothing after %d decisions", decided)
			}
			decided += len(decisions)
			for _, d := range decisions {
				if d.Kind != quota.Preempt {
					continue
				}
				if err := c.Remove(d.Job); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.StopTimer()
		allocs += allocations() - before
		b.StartTimer()
	}
	perUnit(b, reclaims, "reclaim", allocs)
}

// BenchmarkBlocked: the pool is full, nothing that waits fits, and one job ends
// and is followed by the next. One operation is the end of a job and its pass.
func BenchmarkBlocked(b *testing.B) {
	for _, shares := range []int{100, benchShares} {
		b.Run(fmt.Sprintf("shares=%d", shares), func(b *testing.B) { benchBlocked(b, shares) })
	}
}

func benchBlocked(b *testing.B, shares int) {
	b.Helper()
	c := benchCohort(shares, 10, int64(10*shares))
	wait(b, c, benchWaiting+10*shares, shares)
	mustPass(b, c, epoch, 10*shares)
	running := make([]quota.JobID, 0, 10*shares)
	for id := range quota.JobID(10 * shares) {
		running = append(running, id+1)
	}
	next := benchWaiting + 10*shares + 1
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Remove(running[0]); err != nil {
			b.Fatal(err)
		}
		decisions := c.Pass(epoch.Add(time.Second))
		if len(decisions) != 1 {
			b.Fatalf("the pass decides %d, want one grant", len(decisions))
		}
		running = append(running[1:], decisions[0].Job)
		if err := c.Add(quota.Job{ID: quota.JobID(next), Share: decisions[0].Share, Created: epoch.Add(time.Hour), Demand: of(1)}); err != nil {
			b.Fatal(err)
		}
		next++
	}
}

// BenchmarkNothingChanged: a pass in which nothing fits and nothing happened.
func BenchmarkNothingChanged(b *testing.B) {
	c := benchCohort(benchShares, 10, 10*benchShares)
	wait(b, c, benchWaiting+10*benchShares, benchShares)
	mustPass(b, c, epoch, 10*benchShares)
	b.ReportAllocs()
	for b.Loop() {
		mustPass(b, c, epoch.Add(time.Second), 0)
	}
}

// BenchmarkGrantByDepth: what a submission and its grant cost should hardly
// depend on how many jobs wait.
func BenchmarkGrantByDepth(b *testing.B) {
	for _, waiting := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			c := benchCohort(benchShares, 1, benchShares)
			c.SetShare(quota.Share{Name: "spare", Nominal: of(1 << 40), Sharing: quota.Reserve})
			c.SetCapacity(of(1<<40 + benchShares))
			wait(b, c, waiting+benchShares, benchShares)
			mustPass(b, c, epoch, benchShares)
			next := quota.JobID(waiting + benchShares + 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Add(quota.Job{ID: next, Share: "spare", Created: epoch, Demand: of(1)}); err != nil {
					b.Fatal(err)
				}
				mustPass(b, c, epoch, 1)
				next++
			}
		})
	}
}

// BenchmarkMemory reports what a waiting job takes. Time means nothing here.
func BenchmarkMemory(b *testing.B) {
	const jobs = 1_000_000
	for b.Loop() {
		c := benchCohort(benchShares, 1, 1)
		before := heapInUse()
		wait(b, c, jobs, benchShares)
		b.ReportMetric(float64(heapInUse()-before)/jobs, "bytes/waiting-job")
		runtime.KeepAlive(c)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
