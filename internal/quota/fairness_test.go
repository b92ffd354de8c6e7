package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
)

// borrowers live on what one share lends, want more of it than there is, and
// each job of theirs wants 1.
type borrowers struct {
	*quota.Cohort
	weights  []int64
	capacity int64
	lent     int64 // of it, by the share that only lends
	next     quota.JobID
}

func drawBorrowers(t *rapid.T, policy quota.Policy, weights *rapid.Generator[int64]) *borrowers {
	b := &borrowers{
		Cohort: quota.NewCohort(policy), next: 1,
		weights: rapid.SliceOfN(weights, 2, 6).Draw(t, "weights"),
		lent:    rapid.Int64Range(1, 40).Draw(t, "lent"),
	}
	b.capacity = b.lent
	for i, weight := range b.weights {
		nominal := rapid.Int64Range(0, 3).Draw(t, "nominal")
		b.capacity += nominal
		b.SetShare(quota.Share{
			Name: b.name(i), Nominal: of(nominal), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited, Weight: weight,
		})
	}
	b.SetShare(quota.Share{Name: "lender", Nominal: of(b.lent), Sharing: quota.Lend})
	b.SetCapacity(of(b.capacity))
	return b
}

func (b *borrowers) name(i int) string { return fmt.Sprintf("s%d", i) }

// demand has a share want more than all that it may ever get.
func (b *borrowers) demand(t *rapid.T, i int) {
	for range b.capacity {
		if err := b.Add(quota.Job{ID: b.next, Share: b.name(i), Created: epoch, Demand: of(1)}); err != nil {
			t.Fatal(err)
		}
		b.next++
	}
}

func (b *borrowers) borrowed(i int) int64 {
	for _, balance := range b.Balances(b.name(i)) {
		return balance.Borrowed
	}
	return 0
}

func (b *borrowers) all() []int64 {
	var all []int64
	for i := range b.weights {
		all = append(all, b.borrowed(i))
	}
	return all
}

// TestBorrowingFollowsWeights: with endless demand of jobs of 1, what shares
// borrow follows their weights within one job; with equal weights it differs by
// at most one. Weight 0 gets what nobody else wants.
func TestBorrowingFollowsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Just(int64(2)), rapid.Int64Range(0, 5)}).Draw(t, "equal or not")
		b := drawBorrowers(t, quota.Policy{IdleAssignment: quota.FairShare}, weights)
		var weight, sum int64
		for i, w := range b.weights {
			b.demand(t, i)
			weight += w
		}
		b.Pass(epoch)
		for i, w := range b.weights {
			sum += b.borrowed(i)
			if w == 0 && weight > 0 && b.borrowed(i) > 0 {
				t.Fatalf("weight 0 borrows %d, though others want it: %v by %v", b.borrowed(i), b.weights, b.all())
			}
			for j, v := range b.weights {
				if (w > 0) != (v > 0) {
					continue
				}
				if w == 0 {
					w, v = 1, 1
				}
				// i got its last job when j would have had more for its weight.
				if b.borrowed(i)*v > (b.borrowed(j)+1)*w {
					t.Fatalf("borrowed by weights %v: %v", b.weights, b.all())
				}
			}
		}
		if sum != b.lent {
			t.Fatalf("%d is lent, %d of it borrowed", b.lent, sum)
		}
	})
}

// TestRebalancingIsFair: one share borrows all before the others come. By
// rebalance they get their part, within one job, and then it is at rest; on the way there
// no job has to stop more than once for each of them.
func TestRebalancingIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := quota.Policy{
			IdleAssignment: quota.FairShare, Rebalance: true,
			Victims:  rapid.SampledFrom([]quota.Victims{quota.LeastLostWork, quota.MostOverQuota, quota.NewestFirst}).Draw(t, "victims"),
			Queueing: rapid.SampledFrom([]quota.Queueing{quota.Strict, quota.BestEffort, quota.Backfill}).Draw(t, "queueing"),
		}
		b := drawBorrowers(t, policy, rapid.Int64Range(1, 5))
		b.demand(t, 0)
		b.Pass(epoch)
		for i := range b.weights[1:] {
			b.demand(t, i+1)
		}
		rebalanced := b.settle(t, epoch.Add(time.Hour))
		for i, w := range b.weights {
			for j, v := range b.weights {
				if i != j && b.borrowed(j) > 0 && (b.borrowed(i)+1)*v <= (b.borrowed(j)-1)*w {
					t.Fatalf("weights %v borrow %v: share %d would still have less than share %d with one of its jobs", b.weights, b.all(), i, j)
				}
			}
		}
		if most := b.capacity * int64(len(b.weights)); rebalanced > most {
			t.Fatalf("%d jobs stop to rebalance, expected no more than %d", rebalanced, most)
		}
	})
}

// settle has passes decide, and everybody stop who is told to, until nothing
// more is decided.
func (b *borrowers) settle(t *rapid.T, now time.Time) (rebalanced int64) {
	for range 10 * b.capacity {
		decisions := b.Pass(now)
		if len(decisions) == 0 {
			return rebalanced
		}
		for _, d := range decisions {
			if d.Kind != quota.Preempt {
				continue
			}
			if d.Ground == quota.Rebalance {
				rebalanced++
			}
			if err := b.Requeue(d.Job, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("no end of it: %v by weights %v", b.all(), b.weights)
	return 0
}
