package quota_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
)

// fairQueue is a pool of one unit and the identifiers of a fair-share queue.
type fairQueue struct {
	*quota.Cohort
	now    time.Time
	next   quota.JobID
	ran    []string // whose job was granted, in order
	shares map[quota.JobID]string
}

func newFairQueue(capacity int64, fair quota.Fair, factors map[string]int64) *fairQueue {
	q := &fairQueue{
		Cohort: quota.NewCohort(quota.Policy{}), now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		shares: map[quota.JobID]string{},
	}
	q.SetCapacity(quota.Amounts{"gpu": capacity})
	for name, factor := range factors {
		f := fair
		f.Queue, f.WeightFactor = "q", factor
		q.SetShare(quota.Share{Name: name, Nominal: quota.Amounts{"gpu": capacity}, Sharing: quota.Lend, Fair: &f})
	}
	return q
}

func (q *fairQueue) submit(t *testing.T, share string, n int) {
	t.Helper()
	for range n {
		q.next++
		q.shares[q.next] = share
		if err := q.Add(quota.Job{ID: q.next, Share: share, Created: q.now, Demand: quota.Amounts{"gpu": 1}}); err != nil {
			t.Fatal(err)
		}
	}
}

// pass returns the jobs granted.
func (q *fairQueue) pass() []quota.JobID {
	var granted []quota.JobID
	for _, d := range q.Pass(q.now) {
		if d.Kind == quota.Grant {
			granted = append(granted, d.Job)
			q.ran = append(q.ran, q.shares[d.Job])
		}
	}
	return granted
}

// turnOver lets every job that runs end after a while, so often.
func (q *fairQueue) turnOver(t *testing.T, times int, after time.Duration) {
	t.Helper()
	running := q.pass()
	for range times {
		q.now = q.now.Add(after)
		for _, id := range running {
			if err := q.Remove(id); err != nil {
				t.Fatal(err)
			}
		}
		running = q.pass()
	}
}

func count(names []string, name string) (n int) {
	for _, x := range names {
		if x == name {
			n++
		}
	}
	return n
}

func TestFairShareAlternatesAtOneInstant(t *testing.T) {
	q := newFairQueue(6, quota.Fair{}, map[string]int64{"a": 10_000, "b": 10_000})
	q.submit(t, "a", 6)
	q.submit(t, "b", 6)
	q.pass()
	if want := []string{"a", "b", "a", "b", "a", "b"}; !slices.Equal(q.ran, want) {
		t.Errorf("granted to %v, want %v", q.ran, want)
	}
}

func TestFairShareFollowsWeightFactors(t *testing.T) {
	// A factor three times as low gets three times as much.
	q := newFairQueue(4, quota.Fair{Window: time.Hour}, map[string]int64{"a": 10_000, "b": 30_000})
	q.submit(t, "a", 1000)
	q.submit(t, "b", 1000)
	q.turnOver(t, 200, 5*time.Minute)
	ratio := float64(count(q.ran, "a")) / float64(count(q.ran, "b"))
	if math.Abs(ratio-3) > 0.3 {
		t.Errorf("a ran %.2f times as much as b, want 3 times", ratio)
	}
}

func TestFairShareForgetsWhatIsOlderThanItsWindow(t *testing.T) {
	q := newFairQueue(1, quota.Fair{Window: time.Hour}, map[string]int64{"a": 10_000, "b": 10_000})
	q.submit(t, "a", 1)
	q.turnOver(t, 1, 30*time.Minute)
	if !q.Charged("a", q.now) {
		t.Error("right after it ran, nothing is charged")
	}
	q.submit(t, "a", 1)
	q.submit(t, "b", 1)
	if q.pass(); q.ran[len(q.ran)-1] != "b" {
		t.Errorf("granted to %v: who had just used the pool went first", q.ran)
	}
	if q.now = q.now.Add(2 * time.Hour); q.Charged("a", q.now) {
		t.Error("two windows later something is still charged")
	}
}

func TestChargeRestoresTheOrder(t *testing.T) {
	q := newFairQueue(1, quota.Fair{Window: time.Hour}, map[string]int64{"a": 10_000, "b": 10_000})
	if err := q.Charge("a", 1, q.now.Add(-20*time.Minute), q.now.Add(-10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	q.submit(t, "a", 1)
	q.submit(t, "b", 1)
	if q.pass(); q.ran[0] != "b" {
		t.Errorf("granted to %v, want b, which used nothing", q.ran)
	}
	if err := q.Charge("nobody", 1, q.now, q.now); err == nil {
		t.Error("a share that is not there was charged")
	}
}

func TestComputeReservation(t *testing.T) {
	// With one active identifier half of the pool is kept for others, with two a quarter.
	q := newFairQueue(8, quota.Fair{Reservation: 50}, map[string]int64{"a": 10_000, "b": 10_000, "c": 10_000})
	q.submit(t, "a", 8)
	if got := len(q.pass()); got != 4 {
		t.Errorf("a alone got %d of 8", got)
	}
	if r, ok := q.Reason(5, q.now); !ok || r.Code != quota.Reserved || r.Lacks != 1 {
		t.Errorf("the next job of a waits for %+v", r)
	}
	q.submit(t, "b", 1)
	if got := q.pass(); len(got) != 2 || q.ran[len(q.ran)-2] != "b" {
		t.Errorf("then %v were granted, %v", got, q.ran)
	}
	if at, ok := q.Wake(); !ok || !at.After(q.now) {
		t.Errorf("waiting for the reservation wakes at %v, %v", at, ok)
	}
}

// TestFairOrderIsTheSameHoweverOftenItLooks compares a cohort that runs a pass
// at every step with one that runs only those that something happens at.
func TestFairOrderIsTheSameHoweverOftenItLooks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		factors := map[string]int64{"a": 10_000, "b": 5_000, "c": 1}
		often := newFairQueue(2, quota.Fair{Window: 10 * time.Minute}, factors)
		seldom := newFairQueue(2, quota.Fair{Window: 10 * time.Minute}, factors)
		for range 20 {
			share := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "share")
			often.submit(t, share, 1)
			seldom.submit(t, share, 1)
		}
		var running []quota.JobID
		for range 20 {
			a, b := often.pass(), seldom.pass()
			if !slices.Equal(a, b) {
				rt.Fatal(fmt.Sprintf("granted %v and %v", a, b))
			}
			running = append(running, a...)
			idle := rapid.IntRange(0, 5).Draw(rt, "idle passes")
			for range idle {
				often.now = often.now.Add(7 * time.Second)
				often.pass()
			}
			seldom.now = often.now
			if len(running) == 0 {
				break
			}
			for _, q := range []*fairQueue{often, seldom} {
				if err := q.Remove(running[0]); err != nil {
					rt.Fatal(err)
				}
			}
			running = running[1:]
		}
	})
}

// TestFairOrderIsTheOrderOfGrants lets random histories meet a pool in which
// everything fits: what was foretold is what is granted.
func TestFairOrderIsTheOrderOfGrants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		factors := map[string]int64{}
		for _, name := range names {
			factors[name] = rapid.SampledFrom([]int64{1, 5_000, 10_000, 20_000}).Draw(rt, "factor")
		}
		q := newFairQueue(1000, quota.Fair{Window: 10 * time.Minute}, factors)
		q.SetShare(quota.Share{Name: "other", Nominal: quota.Amounts{"gpu": 1000}, Sharing: quota.Lend, Fair: &quota.Fair{Queue: "other", WeightFactor: 10_000}})
		q.submit(t, "other", 3)
		var running []quota.JobID
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 12).Draw(rt, "jobs") {
				q.next++
				name := rapid.SampledFrom(names).Draw(rt, "share")
				q.shares[q.next] = name
				j := quota.Job{
					ID: q.next, Share: name, Created: q.now, Priority: rapid.Int32Range(0, 2).Draw(rt, "priority"),
					Demand: quota.Amounts{"gpu": rapid.Int64Range(1, 3).Draw(rt, "demand")},
				}
				if err := q.Add(j); err != nil {
					rt.Fatal(err)
				}
			}
			foretold := q.FairOrder("q", 1000, q.now)
			if first := q.FairOrder("q", 3, q.now); !slices.Equal(first, foretold[:min(3, len(foretold))]) {
				rt.Fatalf("the first three of %v are %v", foretold, first)
			}
			granted := slices.DeleteFunc(q.pass(), func(id quota.JobID) bool { return q.shares[id] == "other" })
			if !slices.Equal(foretold, granted) {
				rt.Fatalf("foretold %v, granted %v", foretold, granted)
			}
			running = append(running, granted...)
			q.now = q.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "seconds")) * time.Second)
			for n := rapid.IntRange(0, len(running)).Draw(rt, "ending"); n > 0; n-- {
				if err := q.Remove(running[0]); err != nil {
					rt.Fatal(err)
				}
				running = running[1:]
			}
		}
	})
}

// TestChargesAddUpToWhatWasSeen compares a cohort that saw jobs run, some of
// which had stopped before it was told, with one that was told afterwards.
func TestChargesAddUpToWhatWasSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		factors := map[string]int64{"a": 10_000, "b": 10_000}
		saw := newFairQueue(100, quota.Fair{Window: 10 * time.Minute}, factors)
		type use struct {
			share    string
			from, to time.Time
		}
		var uses []use
		began := map[quota.JobID]time.Time{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			saw.now = saw.now.Add(time.Duration(rapid.IntRange(1, 120_000).Draw(rt, "milliseconds")) * time.Millisecond)
			for _, id := range slices.Sorted(maps.Keys(began)) {
				from := began[id]
				if rapid.Bool().Draw(rt, "ends") {
					to := from.Add(time.Duration(rapid.Int64Range(0, int64(saw.now.Sub(from))).Draw(rt, "ran")).Truncate(time.Millisecond))
					uses = append(uses, use{saw.shares[id], from, to})
					if err := saw.Charge(saw.shares[id], -1, to, saw.now); err != nil {
						rt.Fatal(err)
					}
					if err := saw.Remove(id); err != nil {
						rt.Fatal(err)
					}
					delete(began, id)
				}
			}
			saw.submit(t, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "share"), 1)
			for _, id := range saw.pass() {
				began[id] = saw.now
			}
		}
		for id, from := range began {
			uses = append(uses, use{saw.shares[id], from, saw.now})
			if err := saw.Remove(id); err != nil {
				rt.Fatal(err)
			}
		}
		saw.pass()
		told := newFairQueue(100, quota.Fair{Window: 10 * time.Minute}, factors)
		for _, u := range uses {
			if err := told.Charge(u.share, 1, u.from, u.to); err != nil {
				rt.Fatal(err)
			}
		}
		told.now, told.next = saw.now, saw.next
		for range 20 { // the order depends on what each was charged
			for _, q := range []*fairQueue{saw, told} {
				q.submit(t, "a", 2)
				q.submit(t, "b", 2)
			}
			if a, b := saw.FairOrder("q", 100, saw.now), told.FairOrder("q", 100, told.now); !slices.Equal(a, b) {
				rt.Fatalf("at %v the order is %v for who saw it, %v for who was told", saw.now, a, b)
			}
			for _, share := range []string{"a", "b"} {
				if a, b := saw.Charged(share, saw.now), told.Charged(share, told.now); a != b {
					rt.Fatalf("at %v share %s is charged: %v for who saw it, %v for who was told", saw.now, share, a, b)
				}
			}
			saw.now = saw.now.Add(45 * time.Second)
			told.now = saw.now
		}
	})
}

func TestFreeOfAnIdentifierIsWhatThePoolHas(t *testing.T) {
	q := newFairQueue(4, quota.Fair{}, map[string]int64{"a": 10_000, "b": 10_000})
	q.submit(t, "a", 3)
	q.pass()
	for _, share := range []string{"a", "b"} {
		if got := q.Balances(share)[0].Free; got != 1 {
			t.Errorf("%s has %d free, want what nobody uses: 1", share, got)
		}
	}
}
