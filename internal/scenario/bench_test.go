package scenario

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// BenchmarkWorld lives through 100,000 jobs of 15 shares that ask for about as
// much as there is, with checkpoints every hour.
func BenchmarkWorld(b *testing.B) {
	const jobs, shares, gpus = 100_000, 15, 600
	c := defaultCohort()
	c.Capacity = quota.Amounts{"gpu": gpus}
	for i := range shares {
		s := defaultShare()
		s.Name, s.Nominal = fmt.Sprintf("team-%d", i), quota.Amounts{"gpu": gpus / shares}
		c.Shares = append(c.Shares, s)
	}
	demands := []quota.Amounts{{"gpu": 1}, {"gpu": 2}, {"gpu": 4}, {"gpu": 8}}
	random := rand.New(rand.NewPCG(1, 2))
	submissions := make([]Submission, jobs)
	for i := range submissions {
		submissions[i] = Submission{
			Job:   fmt.Sprintf("job-%d", i),
			Share: c.Shares[int(random.ExpFloat64()*4)%shares].Name, Demand: demands[random.IntN(len(demands))],
			Runtime: time.Duration(random.ExpFloat64() * float64(5*time.Hour)), CheckpointEvery: time.Hour,
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w := NewWorld(c, nil)
		for i, s := range submissions {
			if err := w.Advance(time.Duration(i) * 110 * time.Second); err != nil {
				b.Fatal(err)
			}
			if err := w.Submit(s); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*jobs)/b.Elapsed().Seconds(), "jobs/s")
}
