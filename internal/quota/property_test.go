package quota_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
)

// TestLeastLostWork compares what a reclaim costs with the least that any set
// costs, found by another way: the cheapest sum for every amount. With one unit
// short and up to 64 candidates it must be exactly that (section 5).
func TestLeastLostWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "candidates")
		now := epoch.Add(24 * time.Hour)
		c := quota.NewCohort(quota.Policy{})
		c.SetShare(quota.Share{Name: "guest", Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited})

		var total int64
		cheapest := map[int64]quota.LostWork{0: 0} // by amount
		for i := range n {
			amount := rapid.Int64Range(1, 8).Draw(t, "amount")
			lost := time.Duration(rapid.IntRange(0, 3000).Draw(t, "seconds lost")) * time.Second
			held := quota.Holding{Since: now.Add(-lost)}
			if rapid.Bool().Draw(t, "checkpoint") {
				held = quota.Holding{Since: epoch, Checkpoint: now.Add(-lost)}
			}
			mustRestore(t, c, quota.Job{ID: quota.JobID(i + 1), Share: "guest", Demand: of(amount)}, held)
			total += amount
			with := map[int64]quota.LostWork{}
			for sum, cost := range cheapest {
				with[sum+amount] = cost + quota.LostWork(amount*lost.Milliseconds())
			}
			for sum, cost := range with {
				if old, ok := cheapest[sum]; !ok || cost < old {
					cheapest[sum] = cost
				}
			}
		}
		want := rapid.Int64Range(1, total).Draw(t, "demand")
		c.SetCapacity(of(total))
		c.SetShare(quota.Share{Name: "owner", Nominal: of(total), Sharing: quota.Lend})
		if err := c.Add(quota.Job{ID: 1000, Share: "owner", Created: now, Demand: of(want)}); err != nil {
			t.Fatal(err)
		}

		least := quota.LostWork(math.MaxInt64)
		for sum, cost := range cheapest {
			if sum >= want {
				least = min(least, cost)
			}
		}
		var lost quota.LostWork
		for _, d := range c.Pass(now) {
			lost += d.LostWork
		}
		if lost != least {
			t.Fatalf("reclaiming %d of %d from %d candidates loses %v, the least is %v", want, total, n, lost, least)
		}
	})
}

func mustRestore(t *rapid.T, c *quota.Cohort, j quota.Job, h quota.Holding) {
	t.Helper()
	if err := c.Restore(j, h); err != nil {
		t.Fatal(err)
	}
}

// TestManyCandidates: with more candidates than are tried exactly, the set is
// still minimal, of the lowest levels, and enough.
func TestManyCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(65, 200).Draw(t, "candidates")
		now := epoch.Add(24 * time.Hour)
		c := quota.NewCohort(quota.Policy{})
		c.SetShare(quota.Share{Name: "guest", Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited})
		amounts, priorities := map[quota.JobID]int64{}, map[quota.JobID]int32{}
		var total int64
		for i := range n {
			j := quota.Job{
				ID: quota.JobID(i + 1), Share: "guest", Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
				Demand: of(rapid.Int64Range(1, 8).Draw(t, "amount")),
			}
			amounts[j.ID], priorities[j.ID] = j.Demand["gpu"], j.Priority
			total += j.Demand["gpu"]
			mustRestore(t, c, j, quota.Holding{Since: now.Add(-time.Duration(rapid.IntRange(0, 7200).Draw(t, "age")) * time.Second)})
		}
		want := rapid.Int64Range(1, total).Draw(t, "demand")
		c.SetCapacity(of(total))
		c.SetShare(quota.Share{Name: "owner", Nominal: of(total), Sharing: quota.Lend})
		if err := c.Add(quota.Job{ID: 1000, Share: "owner", Created: now, Demand: of(want)}); err != nil {
			t.Fatal(err)
		}

		stopped := map[quota.JobID]bool{}
		var freed int64
		var top int32
		for _, d := range c.Pass(now) {
			stopped[d.Job] = true
			freed += amounts[d.Job]
			top = max(top, priorities[d.Job])
		}
		if freed < want {
			t.Fatalf("frees %d, the head wants %d", freed, want)
		}
		var lower int64
		for id, amount := range amounts {
			if stopped[id] && freed-amount >= want {
				t.Fatalf("job %d of %d need not stop: %d freed, %d wanted", id, amount, freed, want)
			}
			if priorities[id] < top {
				lower += amount
			}
		}
		if lower >= want {
			t.Fatalf("priority %d stops, though lower ones hold %d, and %d are wanted", top, lower, want)
		}
	})
}

// TestDeterminism is I10: the same calls give the same decisions, whatever the
// order of a map. Maps differ in order from one use to the next by themselves.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, quota.Strict)
		actions := h.actions()
		for name := range actions {
			if name == "restart 0" || name == "restart 1" {
				delete(actions, name)
			}
		}
		t.Repeat(actions)
		h.pass()
		for range 2 {
			var again [][]quota.Decision
			c := quota.NewCohort(h.policy)
			for _, call := range h.calls {
				if call.pass.IsZero() {
					_ = call.do(c)
					continue
				}
				again = append(again, c.Pass(call.pass))
			}
			if diff := cmp.Diff(h.decided, again, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("the same calls decide otherwise (-first +again):\n%s", diff)
			}
		}
	})
}

// TestLargeAmounts: bytes of memory are large numbers, and percentages of them
// larger still.
func TestLargeAmounts(t *testing.T) {
	const pebibyte = 1 << 50
	mem := func(n int64) quota.Amounts { return quota.Amounts{"mem": n} }
	c := quota.NewCohort(quota.Policy{})
	c.SetCapacity(mem(64 * pebibyte))
	c.SetShare(quota.Share{Name: "lends", Nominal: mem(60 * pebibyte), Sharing: quota.Lend})
	c.SetShare(quota.Share{Name: "borrows", Nominal: mem(4 * pebibyte), Sharing: quota.LendAndBorrow, BorrowPercent: 10_000})
	for id, demand := range map[quota.JobID]quota.Amounts{1: mem(40 * pebibyte), 2: mem(20 * pebibyte)} {
		if err := c.Add(quota.Job{ID: id, Share: "borrows", Created: epoch, Demand: demand}); err != nil {
			t.Fatal(err)
		}
	}
	want := []quota.Decision{
		{Kind: quota.Grant, Job: 1, Share: "borrows", Ground: quota.Borrow, Borrowed: mem(36 * pebibyte)},
		{Kind: quota.Grant, Job: 2, Share: "borrows", Ground: quota.Borrow, Borrowed: mem(20 * pebibyte)},
	}
	if diff := cmp.Diff(want, c.Pass(epoch)); diff != "" {
		t.Fatalf("decisions (-want +got):\n%s", diff)
	}
	if err := c.Add(quota.Job{ID: 3, Share: "lends", Created: epoch, Demand: mem(30 * pebibyte)}); err != nil {
		t.Fatal(err)
	}
	stopped := c.Pass(epoch.Add(1000 * time.Hour))
	if !slices.ContainsFunc(stopped, func(d quota.Decision) bool { return d.Job == 1 && d.LostWork > 0 }) {
		t.Fatalf("30 PiB are reclaimed by %s, with saturating lost work", tell(stopped))
	}
}

// TestBorrowLimits is the arithmetic of section 4.
func TestBorrowLimits(t *testing.T) {
	tests := []struct {
		name     string
		nominal  int64
		percent  int64
		absolute quota.Amounts
		most     int64 // usage of the share, others lending all that is wanted
	}{
		{"rounded down", 3, 50, nil, 4},
		{"rounded down to nothing", 1, 99, nil, 1},
		{"none", 4, 0, nil, 4},
		{"twice as much in all", 2, 100, nil, 4},
		{"unlimited", 1, quota.Unlimited, nil, 101},
		{"nothing owned, a percentage of it", 0, 500, nil, 0},
		{"nothing owned, unlimited", 0, quota.Unlimited, nil, 100},
		{"an absolute limit caps the percentage", 4, 100, of(1), 5},
		{"and what is unlimited", 4, quota.Unlimited, of(7), 11},
		{"and adds nothing to it", 4, 50, of(7), 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := quota.NewCohort(quota.Policy{})
			c.SetCapacity(of(1000))
			c.SetShare(quota.Share{Name: "others", Nominal: of(100), Sharing: quota.Lend})
			c.SetShare(quota.Share{
				Name: "s", Nominal: of(tt.nominal), Sharing: quota.LendAndBorrow, BorrowPercent: tt.percent, BorrowLimits: tt.absolute,
			})
			for id := range quota.JobID(110) {
				if err := c.Add(quota.Job{ID: id + 1, Share: "s", Created: epoch, Demand: of(1)}); err != nil {
					t.Fatal(err)
				}
			}
			c.Pass(epoch)
			if _, holding := c.Counts("s"); int64(holding) != tt.most {
				t.Errorf("the share uses %d, want %d", holding, tt.most)
			}
		})
	}
}
