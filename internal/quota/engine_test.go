package quota_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/quota"
)

// story is a cohort and what happens to it, jobs going by names.
type story struct {
	name     string
	capacity quota.Amounts
	shares   []quota.Share
	events   []event
}

// event is what happens at one instant, in the order of the fields; then one
// pass runs.
type event struct {
	at       time.Duration
	capacity quota.Amounts
	share    *quota.Share
	policy   *quota.Policy
	gone     []string // stopped, and waits again
	ended    []string // finished, or given up
	submit   []job
	priority map[string]int32

	want  []string          // the decisions, in order
	waits map[string]string // code, or start of the text, of waiting jobs' reasons
}

type job struct {
	name, share string
	priority    int32
	demand      quota.Amounts
	runtime     time.Duration
}

func of(n int64) quota.Amounts { return quota.Amounts{"gpu": n} }

func (s story) run(t *testing.T) {
	c := quota.NewCohort(quota.Policy{})
	c.SetCapacity(s.capacity)
	for _, share := range s.shares {
		c.SetShare(share)
	}
	names, ids := map[quota.JobID]string{}, map[string]quota.JobID{}
	for _, e := range s.events {
		now := epoch.Add(e.at)
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("at %v: %v", e.at, err)
			}
		}
		if e.capacity != nil {
			c.SetCapacity(e.capacity)
		}
		if e.share != nil {
			c.SetShare(*e.share)
		}
		if e.policy != nil {
			c.SetPolicy(*e.policy)
		}
		for _, name := range e.gone {
			check(c.Requeue(ids[name], time.Time{}))
		}
		for _, name := range e.ended {
			check(c.Remove(ids[name]))
		}
		for _, j := range e.submit {
			id := quota.JobID(len(ids) + 1)
			ids[j.name], names[id] = id, j.name
			check(c.Add(quota.Job{ID: id, Share: j.share, Priority: j.priority, Created: now, Demand: j.demand, MaxRuntime: j.runtime}))
		}
		for name, priority := range e.priority {
			check(c.SetPriority(ids[name], priority))
		}
		if diff := cmp.Diff(e.want, inWords(c.Pass(now), names), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("decisions at %v (-want +got):\n%s", e.at, diff)
		}
		for name, want := range e.waits {
			r, ok := c.Reason(ids[name], now)
			if !ok || !strings.HasPrefix(r.Text, want) && string(r.Code) != want {
				t.Errorf("at %v %s waits (%v) for %+v, want %s", e.at, name, ok, r, want)
			}
		}
	}
}

func inWords(decisions []quota.Decision, names map[quota.JobID]string) []string {
	var words []string
	for _, d := range decisions {
		switch d.Kind {
		case quota.Grant:
			words = append(words, fmt.Sprintf("grant %s: %s", names[d.Job], d.Ground))
		case quota.Preempt:
			words = append(words, fmt.Sprintf("preempt %s: %s for %s", names[d.Job], d.Ground, names[d.For]))
		case quota.Park:
			words = append(words, fmt.Sprintf("park %s: %.60s", names[d.Job], d.Reason.Text))
		}
	}
	return words
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, s.run)
	}
}

var stories = []story{
	{
		name:     "lend, borrow, reclaim across shares, and preempt by priority inside one",
		capacity: of(3),
		shares: []quota.Share{
			{Name: "QS1", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: 200, InSharePreemption: true},
			{Name: "QS2", Nominal: of(1), Sharing: quota.Lend},
			{Name: "QS3", Nominal: of(1), Sharing: quota.Reserve},
		},
		events: []event{
			{submit: []job{{"high", "QS1", 3, of(1), 0}}, want: []string{"grant high: entitled"}},
			{at: 1 * time.Second, submit: []job{{"med", "QS1", 2, of(1), 0}}, want: []string{"grant med: borrow"}},
			{at: 2 * time.Second, submit: []job{{"low", "QS1", 1, of(1), 0}}, waits: map[string]string{"low": "RESERVED"}},
			{at: 10 * time.Second, submit: []job{{"owner", "QS2", 1, of(1), 0}}, want: []string{"preempt med: reclaim for owner"},
				waits: map[string]string{"owner": "RELEASING", "low": "RESERVED"}},
			{at: 15 * time.Second, gone: []string{"med"}, want: []string{"grant owner: entitled"},
				waits: map[string]string{"med": "RESERVED", "low": "BEHIND"}},
			{at: 20 * time.Second, priority: map[string]int32{"low": 4}, want: []string{"preempt high: in-share for low"},
				waits: map[string]string{"low": "RELEASING", "med": "BEHIND"}},
			{at: 21 * time.Second, gone: []string{"high"}, want: []string{"grant low: entitled"},
				waits: map[string]string{"high": "RESERVED", "med": "BEHIND"}},
		},
	},
	{
		name:     "a job that can never fit says exactly why, and blocks only its own share",
		capacity: of(12),
		shares: []quota.Share{
			{Name: "reserved", Nominal: of(2), Sharing: quota.Reserve},
			{Name: "two", Nominal: of(2), Sharing: quota.LendAndBorrow, BorrowPercent: 100},
			{Name: "four", Nominal: of(4), Sharing: quota.LendAndBorrow, BorrowPercent: 200},
		},
		events: []event{
			{submit: []job{{"r3", "reserved", 0, of(3), 0}}, want: []string{"park r3: " + quota.TextShareLimit[:60]}},
			{at: 1 * time.Second, submit: []job{{"t5", "two", 0, of(5), 0}}, want: []string{"park t5: " + quota.TextShareAndBorrowLimit[:60]}},
			{at: 2 * time.Second, submit: []job{{"f9", "four", 0, of(9), 0}}, want: []string{"park f9: " + quota.TextBorrowable[:60]}},
			{at: 3 * time.Second, submit: []job{{"t1", "two", 1, of(4), 0}}, want: []string{"grant t1: borrow"}, waits: map[string]string{
				"r3": quota.TextShareLimit, "t5": quota.TextShareAndBorrowLimit, "f9": quota.TextBorrowable,
			}},
		},
	},
	{
		name:     "preemption retries run out; a preempted job keeps its place",
		capacity: of(2),
		shares: []quota.Share{
			{Name: "owner", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
			{Name: "guest", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
		},
		events: []event{
			{submit: []job{{"g0", "guest", 9, of(1), 0}, {"once", "guest", 5, of(1), 0}}, want: []string{"grant g0: entitled", "grant once: borrow"}},
			{at: 10 * time.Minute, submit: []job{{"o1", "owner", 0, of(1), 0}}, want: []string{"preempt once: reclaim for o1"}},
			{at: 10 * time.Minute, ended: []string{"once"}, want: []string{"grant o1: entitled"}}, // no return was left to it
			{at: 12 * time.Minute, submit: []job{{"kept", "guest", 5, of(1), 0}}, waits: map[string]string{"kept": "INSUFFICIENT_QUOTA"}},
			{at: 20 * time.Minute, ended: []string{"o1"}, want: []string{"grant kept: borrow"}},
			{at: 45 * time.Minute, submit: []job{{"o2", "owner", 0, of(1), 0}}, want: []string{"preempt kept: reclaim for o2"}},
			{at: 45 * time.Minute, gone: []string{"kept"}, want: []string{"grant o2: entitled"}},
			{at: 46 * time.Minute, submit: []job{{"later", "guest", 5, of(1), 0}}, waits: map[string]string{"later": "BEHIND"}},
			{at: 55 * time.Minute, ended: []string{"o2"}, want: []string{"grant kept: borrow"}, waits: map[string]string{"later": "INSUFFICIENT_QUOTA"}},
			{at: 65 * time.Minute, ended: []string{"kept"}, want: []string{"grant later: borrow"}},
		},
	},
	{
		name:     "A10.1: a borrower may use what Lend lends and its own, never what Reserve keeps; higher numbers go first",
		capacity: of(3),
		shares: []quota.Share{
			{Name: "keeps", Nominal: of(1), Sharing: quota.Reserve},
			{Name: "lends", Nominal: of(1), Sharing: quota.Lend},
			{Name: "both", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
		},
		events: []event{
			{submit: []job{{"low", "both", 1, of(1), 0}, {"mid", "both", 2, of(1), 0}, {"top", "both", 3, of(1), 0}},
				want: []string{"grant top: entitled", "grant mid: borrow"}, waits: map[string]string{"low": "RESERVED"}},
			{at: time.Second, submit: []job{{"own", "keeps", 0, of(1), 0}}, want: []string{"grant own: entitled"},
				waits: map[string]string{"low": "INSUFFICIENT_QUOTA"}},
			{at: 2 * time.Second, submit: []job{{"more", "lends", 0, of(1), 0}}, want: []string{"preempt mid: reclaim for more"}},
		},
	},
	{
		name:     "A10.2: quota 2 and a borrow limit of 100 % make 4 at most, and 4 if others lend them",
		capacity: of(6),
		shares: []quota.Share{
			{Name: "two", Nominal: of(2), Sharing: quota.LendAndBorrow, BorrowPercent: 100},
			{Name: "others", Nominal: of(4), Sharing: quota.Lend},
		},
		events: []event{
			{submit: []job{{"five", "two", 0, of(5), 0}}, want: []string{"park five: " + quota.TextShareAndBorrowLimit[:60]},
				waits: map[string]string{"five": quota.TextShareAndBorrowLimit}},
			{at: time.Second, ended: []string{"five"}, submit: []job{{"four", "two", 0, of(4), 0}}, want: []string{"grant four: borrow"}},
		},
	},
	{
		name:     "A10.2: quota 2 and a borrow limit of 100 %, where others lend only 1",
		capacity: of(6),
		shares: []quota.Share{
			{Name: "two", Nominal: of(2), Sharing: quota.LendAndBorrow, BorrowPercent: 100},
			{Name: "others", Nominal: of(4), Sharing: quota.Lend, LendLimits: of(1)},
		},
		events: []event{
			{submit: []job{{"four", "two", 0, of(4), 0}}, want: []string{"park four: " + quota.TextBorrowable[:60]},
				waits: map[string]string{"four": quota.TextBorrowable}},
			{at: time.Second, ended: []string{"four"}, submit: []job{{"three", "two", 0, of(3), 0}}, want: []string{"grant three: borrow"}},
		},
	},
	{
		name:     "A10.3: two shares of 4 that may borrow 200 % can have 8 and not 9",
		capacity: of(20),
		shares: []quota.Share{
			{Name: "a", Nominal: of(4), Sharing: quota.LendAndBorrow, BorrowPercent: 200},
			{Name: "b", Nominal: of(4), Sharing: quota.LendAndBorrow, BorrowPercent: 200},
		},
		events: []event{
			{submit: []job{{"nine", "a", 0, of(9), 0}, {"eight", "b", 0, of(8), 0}},
				want:  []string{"grant eight: borrow", "park nine: " + quota.TextBorrowable[:60]},
				waits: map[string]string{"nine": quota.TextBorrowable}},
		},
	},
	{
		name:     "A10.4: a job that may not return is gone after its first preemption",
		capacity: of(2),
		shares: []quota.Share{
			{Name: "owner", Nominal: of(2), Sharing: quota.Lend},
			{Name: "guest", Nominal: of(0), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
		},
		events: []event{
			{submit: []job{{"once", "guest", 0, of(2), 0}}, want: []string{"grant once: borrow"}},
			{at: time.Second, submit: []job{{"mine", "owner", 0, of(1), 0}}, want: []string{"preempt once: reclaim for mine"}},
			{at: 2 * time.Second, ended: []string{"once"}, want: []string{"grant mine: entitled"}},
		},
	},
	{
		name:     "nobody is granted and preempted in one pass",
		capacity: of(2),
		shares: []quota.Share{
			{Name: "owner", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
			{Name: "guest", Nominal: of(0), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
			{Name: "other", Nominal: of(1), Sharing: quota.Lend},
		},
		events: []event{
			{policy: &quota.Policy{Queueing: quota.BestEffort}, submit: []job{{"busy", "other", 0, of(1), 0}}, want: []string{"grant busy: entitled"}},
			{at: time.Second, submit: []job{{"borrower", "guest", 0, of(1), 0}, {"large", "owner", 1, of(2), 0}, {"small", "owner", 0, of(1), 0}},
				want: []string{"grant small: entitled"}, waits: map[string]string{"borrower": "INSUFFICIENT_QUOTA"}},
		},
	},
	{
		name:     "A10.5: a Reserve share lowered below its usage loses a job only when somebody needs it",
		capacity: of(2),
		shares: []quota.Share{
			{Name: "keeps", Nominal: of(2), Sharing: quota.Reserve},
			{Name: "other", Nominal: of(0), Sharing: quota.Reserve},
		},
		events: []event{
			{submit: []job{{"k1", "keeps", 0, of(1), 0}, {"k2", "keeps", 0, of(1), 0}}, want: []string{"grant k1: entitled", "grant k2: entitled"}},
			{at: time.Second, share: &quota.Share{Name: "keeps", Nominal: of(1), Sharing: quota.Reserve}},
			{at: time.Second, share: &quota.Share{Name: "other", Nominal: of(1), Sharing: quota.Reserve}},
			{at: 2 * time.Second, submit: []job{{"o1", "other", 0, of(1), 0}}, want: []string{"preempt k2: reclaim for o1"}},
		},
	},
	{
		name:     "a lowered share keeps its excess where there is room for everybody",
		capacity: of(4),
		shares: []quota.Share{
			{Name: "keeps", Nominal: of(2), Sharing: quota.Reserve},
			{Name: "other", Nominal: of(2), Sharing: quota.Reserve},
		},
		events: []event{
			{submit: []job{{"k1", "keeps", 0, of(1), 0}, {"k2", "keeps", 0, of(1), 0}}, want: []string{"grant k1: entitled", "grant k2: entitled"}},
			{at: time.Second, share: &quota.Share{Name: "keeps", Nominal: of(1), Sharing: quota.Reserve}},
			{at: 2 * time.Second, submit: []job{{"o1", "other", 0, of(1), 0}, {"o2", "other", 0, of(1), 0}},
				want: []string{"grant o1: entitled", "grant o2: entitled"}},
		},
	},
	{
		name:     "lowering capacity preempts nothing, and stops grants in that unit only",
		capacity: quota.Amounts{"gpu": 4, "cpu": 4},
		shares:   []quota.Share{{Name: "a", Nominal: quota.Amounts{"gpu": 4, "cpu": 4}}, {Name: "b", Nominal: quota.Amounts{"gpu": 4, "cpu": 4}}},
		events: []event{
			{submit: []job{{"three", "a", 0, of(3), 0}}, want: []string{"grant three: entitled"}},
			{at: time.Second, capacity: quota.Amounts{"gpu": 2, "cpu": 4}},
			{at: 2 * time.Second, submit: []job{{"one", "a", 0, of(1), 0}, {"cpu", "b", 0, quota.Amounts{"cpu": 1}, 0}},
				want: []string{"grant cpu: entitled"}, waits: map[string]string{"one": "INSUFFICIENT_CAPACITY"}},
			{at: 3 * time.Second, capacity: quota.Amounts{"gpu": 4, "cpu": 4}, want: []string{"grant one: entitled"}},
		},
	},
	{
		name:     "a claim stands: what was preempted for a head is not given to another share",
		capacity: of(2),
		shares: []quota.Share{
			{Name: "a", Nominal: of(2), Sharing: quota.Lend, InSharePreemption: true},
			{Name: "b", Nominal: of(2), Sharing: quota.Lend},
		},
		events: []event{
			{submit: []job{{"a1", "a", 1, of(1), 0}, {"a2", "a", 1, of(1), 0}}, want: []string{"grant a1: entitled", "grant a2: entitled"}},
			{at: time.Second, submit: []job{{"b1", "b", 0, of(1), 0}, {"b2", "b", 0, of(1), 0}}, waits: map[string]string{"b1": "INSUFFICIENT_CAPACITY"}},
			{at: 2 * time.Second, submit: []job{{"top", "a", 5, of(1), 0}}, want: []string{"preempt a2: in-share for top"}},
			{at: 3 * time.Second, waits: map[string]string{"top": "RELEASING", "b1": "INSUFFICIENT_CAPACITY"}},
			{at: 4 * time.Second, gone: []string{"a2"}, want: []string{"grant top: entitled"}},
		},
	},
	{
		name:     "a nominated gang keeps what is free for it from who comes behind it",
		capacity: of(4),
		shares: []quota.Share{
			{Name: "gang", Nominal: of(2), Sharing: quota.Lend},
			{Name: "late", Nominal: of(2), Sharing: quota.Lend},
			{Name: "guest", Nominal: of(0), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
		},
		events: []event{
			{submit: []job{{"g1", "guest", 0, of(1), 0}, {"g2", "guest", 0, of(2), 0}}, want: []string{"grant g1: borrow", "grant g2: borrow"}},
			{at: time.Second, submit: []job{{"x", "gang", 0, of(2), 0}}, want: []string{"preempt g1: reclaim for x"}},
			{at: 2 * time.Second, submit: []job{{"y", "late", 0, of(1), 0}}, want: []string{"preempt g2: reclaim for y"},
				waits: map[string]string{"x": "RELEASING", "y": "RELEASING"}},
			{at: 3 * time.Second, ended: []string{"g1"}, want: []string{"grant x: entitled"}},
		},
	},
	{
		name:     "quotas that sum to more than the pool: what is physically free may be taken once nothing borrowed is left",
		capacity: of(3),
		shares: []quota.Share{
			{Name: "a", Nominal: of(2), Sharing: quota.Reserve},
			{Name: "b", Nominal: of(2), Sharing: quota.Reserve},
			{Name: "guest", Nominal: of(0), Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited},
		},
		events: []event{
			{submit: []job{{"a2", "a", 0, of(2), 0}}, want: []string{"grant a2: entitled"}},
			{at: time.Second, submit: []job{{"b2", "b", 0, of(2), 0}, {"g1", "guest", 0, of(1), 0}}, want: []string{"park g1: " + quota.TextBorrowable[:60]},
				waits: map[string]string{"b2": "INSUFFICIENT_CAPACITY"}},
			{at: 2 * time.Second, ended: []string{"b2"}, submit: []job{{"b1", "b", 0, of(1), 0}}, want: []string{"grant b1: entitled"}},
		},
	},
	{
		name:     "a disabled pool decides nothing, and goes on where it was",
		capacity: of(1),
		shares:   []quota.Share{{Name: "a", Nominal: of(1)}},
		events: []event{
			{policy: &quota.Policy{Paused: true}, submit: []job{{"j", "a", 0, of(1), 0}, {"never", "a", 0, of(2), 0}},
				waits: map[string]string{"j": "DISABLED", "never": "DISABLED"}},
			{at: time.Second, policy: &quota.Policy{}, want: []string{"grant j: entitled", "park never: " + quota.TextEnvironmentMax[:60]}},
		},
	},
}

// TestReasons looks at every code with its numbers and holders (section 8).
func TestReasons(t *testing.T) {
	borrower := quota.Share{Name: "b", Nominal: of(1), Sharing: quota.LendAndBorrow, BorrowPercent: 100}
	tests := []struct {
		name     string
		capacity int64
		policy   quota.Policy
		shares   []quota.Share
		before   []quota.Job // granted by a first pass
		job      quota.Job
		then     func(*quota.Cohort) error // before the second pass
		want     quota.Reason
	}{
		{
			name: "quota and what may be borrowed are used up", capacity: 2,
			shares: []quota.Share{borrower, {Name: "o", Nominal: of(1), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "b", Demand: of(1)}, {ID: 2, Share: "o", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "b", Demand: of(1)},
			want: quota.Reason{Code: quota.InsufficientQuota, Unit: "gpu", Wants: 1, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OwnShare, Share: "b", Amount: 1}, {Role: quota.User, Share: "o", Amount: 1},
			}},
		},
		{
			name: "a share that may not borrow has used its quota", capacity: 3,
			shares: []quota.Share{{Name: "s", Nominal: of(2), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "s", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(2)},
			want: quota.Reason{Code: quota.InsufficientQuota, Unit: "gpu", Wants: 2, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OwnShare, Share: "s", Amount: 1}, {Role: quota.Unshared, Amount: 1},
			}},
		},
		{
			name: "the borrow limit is reached", capacity: 4,
			shares: []quota.Share{borrower, {Name: "o", Nominal: of(3), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "b", Demand: of(2)}},
			job:    quota.Job{ID: 9, Share: "b", Demand: of(1)},
			want: quota.Reason{Code: quota.BorrowLimit, Unit: "gpu", Wants: 1, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OwnShare, Share: "b", Amount: 2},
			}},
		},
		{
			name: "idle, but kept by others", capacity: 3,
			shares: []quota.Share{borrower, {Name: "o", Nominal: of(2), Sharing: quota.Reserve}, {Name: "l", Nominal: of(2), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "b", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "b", Demand: of(1)},
			want: quota.Reason{Code: quota.Reserved, Unit: "gpu", Wants: 1, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OwnShare, Share: "b", Amount: 1}, {Role: quota.Keeper, Share: "o", Amount: 2},
			}},
		},
		{
			name: "the pool has too little free", capacity: 2,
			shares: []quota.Share{{Name: "s", Nominal: of(2), Sharing: quota.Lend}, {Name: "o", Nominal: of(1), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "s", Demand: of(1)}, {ID: 2, Share: "o", Demand: of(1), MaxRuntime: time.Hour}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(1)},
			want: quota.Reason{
				Code: quota.InsufficientCapacity, Unit: "gpu", Wants: 1, Lacks: 1, Place: 1, Earliest: epoch.Add(time.Hour),
				Holders: []quota.Holder{{Role: quota.OwnShare, Share: "s", Amount: 1}, {Role: quota.User, Share: "o", Amount: 1}},
			},
		},
		{
			name: "another job of the share goes first", capacity: 1,
			shares: []quota.Share{{Name: "s", Nominal: of(1)}},
			before: []quota.Job{{ID: 1, Share: "s", Demand: of(1)}, {ID: 2, Share: "s", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(1)},
			want:   quota.Reason{Code: quota.Behind, Place: 2, Ahead: 2},
		},
		{
			name: "nominated", capacity: 2,
			shares: []quota.Share{{Name: "b", Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited}, {Name: "o", Nominal: of(2), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "b", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "o", Demand: of(2)},
			want: quota.Reason{Code: quota.Releasing, Unit: "gpu", Wants: 2, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OnItsWay, Share: "b", ForShare: "o", Amount: 1},
			}},
		},
		{
			name: "behind a nominated head of another share", capacity: 2,
			shares: []quota.Share{{Name: "s", Nominal: of(2), Sharing: quota.Lend}, {Name: "o", Nominal: of(2), Sharing: quota.Lend}},
			before: []quota.Job{{ID: 1, Share: "o", Demand: of(2)}, {ID: 2, Share: "o", Demand: of(1)}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(1), Created: epoch.Add(time.Second)},
			then:   func(c *quota.Cohort) error { return c.Stop(1) },
			want: quota.Reason{Code: quota.Releasing, Unit: "gpu", Wants: 1, Lacks: 1, Place: 1, Holders: []quota.Holder{
				{Role: quota.OnItsWay, Share: "o", Amount: 2}, {Role: quota.Nominated, Share: "o", Amount: 1},
			}},
		},
		{
			name: "in backoff", capacity: 1,
			shares: []quota.Share{{Name: "s", Nominal: of(1)}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(1), NotBefore: epoch.Add(time.Minute)},
			want:   quota.Reason{Code: quota.Backoff, Until: epoch.Add(time.Minute)},
		},
		{
			name: "disabled", capacity: 1, policy: quota.Policy{Paused: true},
			shares: []quota.Share{{Name: "s", Nominal: of(1)}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(1)},
			want:   quota.Reason{Code: quota.DisabledPool, Place: 1},
		},
		{
			name: "larger than the environment", capacity: 2,
			shares: []quota.Share{{Name: "s", Nominal: of(8), Sharing: quota.LendAndBorrow}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(5)},
			want:   quota.Reason{Code: quota.Misconfiguration, Unit: "gpu", Wants: 5, Lacks: 3, Place: 1, Text: quota.TextEnvironmentMax},
		},
		{
			name: "larger than the quota", capacity: 9,
			shares: []quota.Share{{Name: "s", Nominal: of(2), Sharing: quota.Lend}},
			job:    quota.Job{ID: 9, Share: "s", Demand: of(3)},
			want:   quota.Reason{Code: quota.Misconfiguration, Unit: "gpu", Wants: 3, Lacks: 1, Place: 1, Text: quota.TextShareLimit},
		},
		{
			name: "larger than quota and borrow limit", capacity: 9,
			shares: []quota.Share{borrower, {Name: "o", Nominal: of(8), Sharing: quota.Lend}},
			job:    quota.Job{ID: 9, Share: "b", Demand: of(5)},
			want:   quota.Reason{Code: quota.Misconfiguration, Unit: "gpu", Wants: 5, Lacks: 3, Place: 1, Text: quota.TextShareAndBorrowLimit},
		},
		{
			name: "larger than all that is lent", capacity: 9,
			shares: []quota.Share{borrower, {Name: "o", Nominal: of(8), Sharing: quota.Reserve}},
			job:    quota.Job{ID: 9, Share: "b", Demand: of(2)},
			want:   quota.Reason{Code: quota.Misconfiguration, Unit: "gpu", Wants: 2, Lacks: 1, Place: 1, Text: quota.TextBorrowable},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := quota.NewCohort(tt.policy)
			c.SetCapacity(of(tt.capacity))
			for _, s := range tt.shares {
				c.SetShare(s)
			}
			for _, j := range append(tt.before, tt.job) {
				if j.ID == tt.job.ID {
					c.Pass(epoch)
				}
				if j.Created.IsZero() {
					j.Created = epoch
				}
				if err := c.Add(j); err != nil {
					t.Fatal(err)
				}
			}
			if tt.then != nil {
				if err := tt.then(c); err != nil {
					t.Fatal(err)
				}
			}
			c.Pass(epoch)
			got, ok := c.Reason(tt.job.ID, epoch)
			if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
				t.Errorf("reason, known %v (-want +got):\n%s", ok, diff)
			}
			if _, ok := c.Reason(1, epoch); ok && len(tt.before) > 0 {
				t.Error("a job that runs has a reason to wait")
			}
		})
	}
}
