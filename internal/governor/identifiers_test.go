package governor_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
)

// of makes a job one of a share identifier's.
func of(identifier string) func(*governor.Submission) {
	return func(s *governor.Submission) { s.ShareIdentifier = identifier }
}

func to(queueName string) func(*governor.Submission) {
	return func(s *governor.Submission) { s.Queue = queueName }
}

// fairQueue declares an environment that counts instances and the fair-share
// queue q on it.
func (h *house) fairQueue(capacity int64, f resource.FairShare) {
	h.tb.Helper()
	h.environment("env", resource.NumInstances, capacity)
	must(h.tb, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "fair", FairShare: &f}))
	must(h.tb, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "q", Priority: 1, Environment: "env", EnvironmentOrder: 1, Policy: "fair"}))
}

func weights(pairs ...any) []resource.WeightedShare {
	var all []resource.WeightedShare
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, resource.WeightedShare{Identifier: pairs[i].(string), WeightFactor: int64(pairs[i+1].(float64) * resource.DefaultWeightFactor)})
	}
	return all
}

// granted returns the names of the jobs that were granted capacity, in order.
func (h *house) granted() []string {
	h.tb.Helper()
	var names []string
	for _, e := range h.journal() {
		if e.Kind == store.Decision && e.Name == string(quota.Grant) {
			var d struct{ Name string }
			must(h.tb, json.Unmarshal(e.Data, &d))
			names = append(names, d.Name)
		}
	}
	return names
}

// TestWhoUsedLeastGoesNext has jobs run one at a time on one instance, each for
// as long as its name's number says in minutes, and compares in which order.
func TestWhoUsedLeastGoesNext(t *testing.T) {
	tests := []struct {
		name      string
		policy    resource.FairShare
		jobs      string // identifier, number of minutes, and priority after a colon; all at once
		later     string // those that come after 3 minutes
		wantFirst string // identifiers in the order in which they run
	}{
		{"equals alternate", resource.FairShare{}, "a1 a1 a1 b1 b1 b1", "", "a b a b a b"},
		{"who ran long waits", resource.FairShare{Decay: time.Hour}, "a5 a1 b1 b1 b1", "", "a b b b a"},
		{"a lower factor gets more", resource.FairShare{Decay: time.Hour, Distribution: weights("a", 0.5)}, "a1 a1 a1 a1 b1 b1", "", "a b a a b a"},
		{"factors of prefixes", resource.FairShare{Decay: time.Hour, Distribution: weights("b*", 0.125)}, "a1 bee1 bee1 bee1 bee1 a1", "", "a bee bee bee bee a"},
		{"who is not listed has factor 1", resource.FairShare{Decay: time.Hour, Distribution: weights("a", 4.0)}, "a1 a1 b1 b1 c1 c1", "", "a b c b c a"},
		{"within an identifier by priority", resource.FairShare{}, "a1 a1:1 a1:9 b1", "", "a b a a"},
		{"who comes later has used nothing", resource.FairShare{Decay: time.Hour}, "a2 a2 a2 a2", "c1 b1", "a a c b a a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fairQueue(1, tt.policy)
			h.submitLine(tt.jobs)
			h.turn(3 * time.Minute)
			h.submitLine(tt.later)
			h.turn(time.Hour)
			var got []string
			for _, name := range h.granted() {
				got = append(got, strings.Split(name, "-")[0])
			}
			if want := strings.Fields(tt.wantFirst); !slices.Equal(got, want) {
				t.Errorf("ran in the order %v, want %v", got, want)
			}
		})
	}
}

// submitLine submits jobs as TestWhoUsedLeastGoesNext writes them.
func (h *house) submitLine(line string) {
	h.tb.Helper()
	for _, text := range strings.Fields(line) {
		text, rank, _ := strings.Cut(text, ":")
		at := strings.IndexAny(text, "0123456789")
		var minutes, p int32
		_, err := fmt.Sscan(text[at:], &minutes)
		must(h.tb, err)
		if rank != "" {
			_, err := fmt.Sscan(rank, &p)
			must(h.tb, err)
		}
		h.given++
		name := fmt.Sprintf("%s-%d", text[:at], h.given)
		h.submit(simulated.Program{Runtime: time.Duration(minutes) * time.Minute}, submission(name, 1, of(text[:at]), priority(p)))
	}
}

func TestPriorityInsideAnIdentifier(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{})
	h.submit(simulated.Program{Runtime: time.Minute}, submission("first", 1, of("a")))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("low", 1, of("a"), priority(1)))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("high", 1, of("a"), priority(5)))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("raised", 1, of("a")))
	_, err := h.governor.SetPriority(h.ctx(), h.id("raised"), 9)
	must(t, err)
	h.turn(time.Hour)
	if want, got := []string{"first", "raised", "high", "low"}, h.granted(); !slices.Equal(got, want) {
		t.Errorf("ran in the order %v, want %v", got, want)
	}
}

func TestReservationIsForWhoUsesNothing(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(8, resource.FairShare{Reservation: 50})
	for i := range 8 {
		h.submit(simulated.Program{}, submission(fmt.Sprint("a", i), 1, of("a")))
	}
	if got := len(h.granted()); got != 4 {
		t.Errorf("%d jobs run, want half of the pool", got)
	}
	why, err := h.governor.Why(h.ctx(), h.id("a4"))
	must(t, err)
	const sentence = "It needs 1 NUM_INSTANCES; enough is idle, but 1 of them are reserved for other shares: its own share uses 4."
	if why.Reason.Code != quota.Reserved || why.Sentence != sentence {
		t.Errorf("the next one waits for %s: %s", why.Reason.Code, why.Sentence)
	}
	h.submit(simulated.Program{}, submission("b", 2, of("b")))
	h.expect(map[string]string{"b": "RUNNING", "a4": "RUNNABLE"})
	must(t, h.governor.UpdatePolicy(h.ctx(), governor.PolicyChange{Name: "fair", FairShare: &resource.FairShare{}}))
	h.turn(0)
	h.expect(map[string]string{"a4": "RUNNING", "a5": "RUNNING", "a6": "RUNNABLE"})
}

// TestQueuesOfSeveralKindsByPriority has a FIFO queue and two fair-share queues
// on one environment.
func TestQueuesOfSeveralKindsByPriority(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{Decay: time.Hour})
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "urgent", Priority: 9, Environment: "env", Policy: "fair"}))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain", Priority: 5, Environment: "env"}))
	minute := simulated.Program{Runtime: time.Minute}
	h.submit(minute, submission("q1", 1, of("a")))
	h.submit(minute, submission("q2", 1, of("a")))
	h.submit(minute, submission("plain1", 1, to("plain")))
	h.submit(minute, submission("plain2", 1, to("plain")))
	h.submit(minute, submission("urgent1", 1, to("urgent"), of("a")))
	h.submit(minute, submission("urgent2", 1, to("urgent"), of("a")))
	h.submit(minute, submission("urgent3", 1, to("urgent"), of("b")))

	why, err := h.governor.Why(h.ctx(), h.id("urgent1"))
	must(t, err)
	if want := []quota.Holder{{Role: quota.User, Share: "q/a", Amount: 1}}; !slices.Equal(why.Reason.Holders, want) {
		t.Errorf("the first job waits for %+v, want another queue's share by its full name", why.Reason.Holders)
	}
	h.turn(time.Hour)
	if want, got := []string{"q1", "urgent1", "urgent3", "urgent2", "plain1", "plain2", "q2"}, h.granted(); !slices.Equal(got, want) {
		t.Errorf("ran in the order %v, want %v", got, want)
	}
}

func TestPolicyChangesCountAtOnce(t *testing.T) {
	minutes := func(n int) simulated.Program {
		return simulated.Program{Runtime: time.Duration(n) * time.Minute}
	}
	change := func(f resource.FairShare) func(*house) error {
		return func(h *house) error {
			return h.governor.UpdatePolicy(h.ctx(), governor.PolicyChange{Name: "fair", FairShare: &f})
		}
	}
	hour := resource.FairShare{Decay: time.Hour}
	tests := []struct {
		name   string
		change func(*house) error
		want   string
	}{
		{"nothing", func(*house) error { return nil }, "b2"}, // a used more
		{"another weight", change(resource.FairShare{Decay: time.Hour, Distribution: weights("b", 9.0)}), "a2"},
		{"a shorter window", change(resource.FairShare{Decay: 4 * time.Minute}), "a2"}, // in which b alone ran
		{"a longer window", change(resource.FairShare{Decay: 100 * time.Hour}), "b2"},
		{"another policy", func(h *house) error {
			f := resource.FairShare{Decay: 4 * time.Minute}
			must(h.tb, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "short", FairShare: &f}))
			return h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", Policy: ptr("short")})
		}, "a2"},
		{"there and back", func(h *house) error {
			return cmp.Or(change(resource.FairShare{Decay: time.Minute})(h), change(hour)(h))
		}, "b2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.fairQueue(1, hour)
			h.submit(minutes(10), submission("a1", 1, of("a")))
			h.turn(10 * time.Minute)
			h.submit(minutes(3), submission("b1", 1, of("b")))
			h.turn(3 * time.Minute)
			h.submit(minutes(3), submission("other", 1, of("c")))
			h.submit(minutes(1), submission("a2", 1, of("a")))
			h.submit(minutes(1), submission("b2", 1, of("b")))
			must(t, tt.change(h))
			h.turn(5 * time.Minute)
			if got := h.granted()[3]; got != tt.want {
				t.Errorf("%s ran first, want %s", got, tt.want)
			}
		})
	}
}

// TestUseGoesWithItsQueue moves a queue without jobs to another environment.
func TestUseGoesWithItsQueue(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{Decay: time.Hour})
	h.environment("other", g5, 1)
	h.submit(simulated.Program{Runtime: time.Minute}, submission("a1", 1, of("a")))
	h.turn(time.Minute)
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", Environment: ptr("other")}))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("c1", 1, of("c")))
	h.submit(simulated.Program{}, submission("a2", 1, of("a")))
	h.submit(simulated.Program{}, submission("b1", 1, of("b")))
	h.turn(time.Minute)
	h.expect(map[string]string{"a2": "RUNNABLE", "b1": "RUNNING"})
}

// identifiers returns the active ones of queue q, as everybody is shown them.
func (h *house) identifiers() string {
	h.tb.Helper()
	balances, err := h.governor.Balances(h.ctx(), "q")
	must(h.tb, err)
	var names []string
	for _, b := range balances {
		names = append(names, fmt.Sprintf("%s:%d+%d", b.ShareIdentifier, b.Running, b.Waiting))
	}
	return strings.Join(names, " ")
}

func TestIdentifiersComeAndGo(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{Decay: 10 * time.Minute})
	expect := func(want string) {
		t.Helper()
		if got := h.identifiers(); got != want {
			t.Errorf("at %v: active are %q, want %q", h.clock.Now().Sub(start), got, want)
		}
	}
	expect("")
	h.submit(simulated.Program{Runtime: time.Minute}, submission("a1", 1, of("a")))
	h.submit(simulated.Program{}, submission("b1", 1, of("b")))
	expect("a:1+0 b:0+1")
	must(t, h.governor.Terminate(h.ctx(), h.id("b1"), "never ran"))
	expect("a:1+0") // b used nothing that would have to be remembered
	h.turn(time.Minute)
	expect("a:0+0")
	h.turn(5 * time.Minute)
	h.restart()
	expect("a:0+0")
	h.turn(10 * time.Minute)
	expect("")
	h.submit(simulated.Program{}, submission("a2", 1, of("a")))
	expect("a:1+0")
}

func TestActiveIdentifiersAreLimited(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{})
	for i := range resource.MaxShareIdentifiers {
		_, err := h.governor.Submit(h.ctx(), submission("j", 1, of(fmt.Sprint("team", i))))
		must(t, err)
	}
	_, err := h.governor.Submit(h.ctx(), submission("one-more", 1, of("onemore")))
	mustRefuse(t, err, governor.Limit, "Job queue q has 500 active share identifiers, and there may be 500. Wait until one has no jobs and has used nothing for 10m0s, or use one of them.")
	last, err := h.governor.Submit(h.ctx(), submission("known", 1, of("team499")))
	must(t, err)
	must(t, h.governor.Terminate(h.ctx(), last.ID, "enough"))
	jobs, err := h.governor.Jobs(h.ctx(), store.JobQuery{Queue: "q", Identifier: "team499", Limit: 10})
	must(t, err)
	for _, j := range jobs {
		must(t, h.governor.Terminate(h.ctx(), j.ID, "enough"))
	}
	if _, err = h.governor.Submit(h.ctx(), submission("one-more", 1, of("onemore"))); err != nil {
		t.Errorf("with one identifier less: %v", err)
	}
}

func TestSnapshotOfFairShareQueue(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(4, resource.FairShare{Decay: time.Hour, Distribution: weights("c", 0.001)})
	mixed := func(s *governor.Submission) {
		s.Demand = []job.Amount{{Unit: "ml.p5.48xlarge", Quantity: 1}, {Unit: g5, Quantity: 1}}
	}
	h.submit(simulated.Program{}, submission("a1", 2, of("a"), mixed))
	h.submit(simulated.Program{}, submission("b1", 1, of("b")))
	h.submit(simulated.Program{}, submission("c1", 1, of("c")))
	h.turn(time.Minute)
	for _, name := range []string{"a2", "a3", "b2", "c2", "d2", "c3"} {
		h.submit(simulated.Program{}, submission(name, 1, of(name[:1])))
	}
	snap, err := h.governor.Snapshot(h.ctx(), "q")
	must(t, err)
	var front []string
	for _, f := range snap.Front {
		front = append(front, f.Job.Name)
	}
	if want := []string{"d2", "c2", "c3", "b2", "a2", "a3"}; !slices.Equal(front, want) {
		t.Errorf("in front are %v, want %v", front, want)
	}
	waiting, err := h.governor.Waiting(h.ctx(), "q", 4)
	must(t, err)
	for i, w := range waiting {
		if len(waiting) != 4 || w.Job.Name != front[i] {
			t.Errorf("waiting are %d jobs, with %s at %d; want the first 4 of %v", len(waiting), w.Job.Name, i, front)
		}
	}
	use := governor.FairShareUse{Active: 3, Top: []governor.Utilization{
		{Share: "a", Usage: []job.Amount{{Unit: g5, Quantity: 1}, {Unit: "ml.p5.48xlarge", Quantity: 1}}},
		{Share: "b", Usage: []job.Amount{{Unit: g5, Quantity: 1}}},
		{Share: "c", Usage: []job.Amount{{Unit: g5, Quantity: 1}}},
	}}
	if diff := gocmp.Diff(&use, snap.FairShare); diff != "" || snap.Shares != nil || snap.ShareFronts != nil {
		t.Errorf("use (-want +got):\n%s\nshares %v, fronts %v", diff, snap.Shares, snap.ShareFronts)
	}
	if diff := gocmp.Diff([]job.Amount{{Unit: g5, Quantity: 3}, {Unit: "ml.p5.48xlarge", Quantity: 1}}, snap.Total); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if since := snap.Front[0].Since.Sub(start); since != time.Minute {
		t.Errorf("the first has been there since %v", since)
	}
}

func TestDeletedFairShareQueueGoesWithItsLastJob(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	h.fairQueue(2, resource.FairShare{})
	h.submit(simulated.Program{Stopping: time.Hour}, submission("a1", 1, of("a")))
	h.submit(simulated.Program{}, submission("b1", 1, of("b")))
	h.submit(simulated.Program{}, submission("c1", 1, of("c")))
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteQueue(h.ctx(), "q"))
	h.turn(0)
	h.expect(map[string]string{"a1": "stopping", "b1": "FAILED", "c1": "FAILED"})
	h.restart()
	h.turn(time.Minute)
	h.expect(map[string]string{"a1": "FAILED"})
	if queues, err := h.governor.Queues(h.ctx()); err != nil || len(queues) != 0 {
		t.Errorf("queues: %+v, %v", queues, err)
	}
	must(t, h.governor.DeletePolicy(h.ctx(), "fair"))
	h.fairlyAgain()
}

// fairlyAgain makes the queue that was deleted again, and uses it.
func (h *house) fairlyAgain() {
	h.tb.Helper()
	must(h.tb, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "fair", FairShare: &resource.FairShare{}}))
	must(h.tb, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "q", Environment: "env", Policy: "fair"}))
	must(h.tb, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", State: ptr(resource.Disabled)}))
	must(h.tb, h.governor.DeleteQueue(h.ctx(), "q"))
}

// TestANewQueueBeginsAnew makes a queue again under the name of one whose
// identifiers have used something.
func TestANewQueueBeginsAnew(t *testing.T) {
	h := newHouse(t)
	h.fairQueue(1, resource.FairShare{Decay: time.Hour})
	h.submit(simulated.Program{Runtime: time.Minute}, submission("a1", 1, of("a")))
	h.turn(time.Minute)
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteQueue(h.ctx(), "q"))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "q", Environment: "env", Policy: "fair"}))
	for _, when := range []string{"at once", "after a restart"} {
		if got := h.identifiers(); got != "" {
			t.Errorf("%s the new queue has identifiers %q that used something", when, got)
		}
		h.restart()
	}
}

// TestRestartKeepsWhatWasUsed has two houses live the same life, one of which
// is restarted again and again: their journals are the same, word for word.
func TestRestartKeepsWhatWasUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steady, restarted := newHouse(t, grace(30*time.Second)), newHouse(t, grace(30*time.Second))
		defer steady.close()
		defer restarted.close()
		f := drawnFairShare(rt)
		capacity := rapid.Int64Range(1, 4).Draw(rt, "capacity")
		for _, h := range []*house{steady, restarted} {
			h.fairQueue(capacity, f)
			must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain", Priority: 1, Environment: "env"}))
		}
		for n := range 25 {
			act := drawnAct(rt, n, "down")
			act(steady)
			act(restarted)
			if rapid.IntRange(0, 2).Draw(rt, "fate") == 0 {
				restarted.restart()
			}
			if a, b := steady.standing(), restarted.standing(); a != b {
				rt.Fatalf("after act %d stands\n%s\nand with restarts\n%s", n, a, b)
			}
		}
		steady.turn(time.Hour)
		restarted.turn(time.Hour)
		a, b := steady.journal(), restarted.journal()
		for i := range min(len(a), len(b)) {
			if diff := gocmp.Diff(a[i], b[i]); diff != "" {
				rt.Fatalf("entry %d (-steady +restarted):\n%s", i, diff)
			}
		}
		if len(a) != len(b) {
			rt.Fatalf("%d entries, and with restarts %d", len(a), len(b))
		}
		if twice := restarted.world.Twice(); twice != nil {
			rt.Fatalf("ran twice at once: %v", twice)
		}
	})
}

// TestOutageKeepsWhatWasUsed has a house live through outages of its store, in
// which workers end and are seen to have ended only later: a restart finds the
// same order.
func TestOutageKeepsWhatWasUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t, grace(30*time.Second))
		defer h.close()
		h.fairQueue(2, drawnFairShare(rt))
		must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain", Priority: 1, Environment: "env"}))
		for n := range 20 {
			drawnAct(rt, n, "down")(h)
			if rapid.IntRange(0, 2).Draw(rt, "fate") == 0 {
				h.outage(time.Duration(rapid.IntRange(1, 300).Draw(rt, "seconds")) * time.Second)
			}
			before := h.standing()
			h.restart()
			if after := h.standing(); before != after {
				rt.Fatalf("after act %d stands\n%s\nand after a restart\n%s", n, before, after)
			}
		}
	})
}

// TestFairShareJournalReplays carries out what the journal says again, in a
// house where the workers do the same.
func TestFairShareJournalReplays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, copied := newHouse(t, grace(30*time.Second)), newHouse(t, grace(30*time.Second))
		defer h.close()
		defer copied.close()
		h.fairQueue(2, drawnFairShare(rt))
		must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain", Priority: 1, Environment: "env"}))
		for n := range 25 {
			drawnAct(rt, n)(h)
		}
		copied.programs = h.programs
		copied.replay(h)
		copied.turn(h.clock.Now().Sub(copied.clock.Now()))
		if a, b := h.standing(), copied.standing(); a != b {
			rt.Fatalf("stands\n%s\nand after a replay\n%s", a, b)
		}
		if diff := gocmp.Diff(h.journal(), copied.journal()); diff != "" {
			rt.Fatalf("the journal (-was +is after a replay):\n%s", diff)
		}
	})
}

// standing is what a house shows of its queues, and in which order jobs wait.
func (h *house) standing() string {
	h.tb.Helper()
	snap, err := h.governor.Snapshot(h.ctx(), "q")
	must(h.tb, err)
	var front []string
	for _, f := range snap.Front {
		front = append(front, f.Job.Name)
	}
	return fmt.Sprintf("%s\n%v\n%+v", h.identifiers(), front, *snap.FairShare)
}

func drawnFairShare(rt *rapid.T) resource.FairShare {
	f := resource.FairShare{
		Decay:       time.Duration(rapid.SampledFrom([]int{0, 60, 300, 3600}).Draw(rt, "decay")) * time.Second,
		Reservation: rapid.SampledFrom([]int64{0, 0, 30}).Draw(rt, "reservation"),
	}
	for _, identifier := range []string{"a", "b*"} {
		if rapid.Bool().Draw(rt, "weighted") {
			f.Distribution = append(f.Distribution, resource.WeightedShare{
				Identifier: identifier, WeightFactor: rapid.SampledFrom([]int64{1, 2_500, 30_000}).Draw(rt, "factor"),
			})
		}
	}
	return f
}

// drawnAct draws something that can be done to any house, or one of more.
func drawnAct(rt *rapid.T, n int, more ...string) func(*house) {
	switch rapid.SampledFrom(append(more, "submit", "submit", "submit", "turn", "turn", "terminate", "policy", "pool")).Draw(rt, "act") {
	case "submit":
		return drawnSubmission(rt, n)
	case "turn":
		d := time.Duration(rapid.IntRange(1, 400_000).Draw(rt, "milliseconds")) * time.Millisecond
		return func(h *house) { h.turn(d) }
	case "terminate":
		which := rapid.IntRange(0, max(n-1, 0)).Draw(rt, "job")
		return func(h *house) { h.accept(h.governor.Terminate(h.ctx(), h.id(fmt.Sprint("j", which)), "no reason")) }
	case "policy":
		f := drawnFairShare(rt)
		return func(h *house) {
			h.accept(h.governor.UpdatePolicy(h.ctx(), governor.PolicyChange{Name: "fair", FairShare: &f}))
		}
	case "pool":
		capacity := rapid.Int64Range(1, 4).Draw(rt, "capacity")
		return func(h *house) {
			h.accept(h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", Limits: limits(resource.NumInstances, capacity)}))
		}
	default: // workers end while nobody watches
		d := time.Duration(rapid.IntRange(1, 300).Draw(rt, "seconds")) * time.Second
		return func(h *house) {
			h.close()
			h.clock.Advance(d)
			h.open()
			h.turn(0)
		}
	}
}

func drawnSubmission(rt *rapid.T, n int) func(*house) {
	s := submission(fmt.Sprint("j", n), rapid.Int64Range(1, 2).Draw(rt, "instances"), priority(rapid.Int32Range(0, 2).Draw(rt, "priority")))
	if s.Queue = rapid.SampledFrom([]string{"q", "q", "q", "plain"}).Draw(rt, "queue"); s.Queue == "q" {
		s.ShareIdentifier = rapid.SampledFrom([]string{"a", "b1", "b2", "c"}).Draw(rt, "identifier")
	}
	if rapid.Bool().Draw(rt, "retried") {
		s.Strategy = &job.Strategy{Attempts: 3}
	}
	p := simulated.Program{
		Startup:  time.Duration(rapid.IntRange(0, 5).Draw(rt, "startup")) * time.Second,
		Runtime:  time.Duration(rapid.IntRange(1, 500_000).Draw(rt, "runtime")) * time.Millisecond,
		ExitCode: rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, "exit code"),
		Stopping: time.Duration(rapid.IntRange(0, 60).Draw(rt, "stopping")) * time.Second,
	}
	return func(h *house) { h.submit(p, s) }
}

// accept fails the test if a command failed other than by a refusal.
func (h *house) accept(err error) {
	h.tb.Helper()
	var refusal *governor.Refusal
	if err != nil && !errors.As(err, &refusal) {
		h.tb.Fatalf("a command failed: %v", err)
	}
	h.turn(0)
}

// outage has commits fail for a while.
func (h *house) outage(d time.Duration) {
	h.tb.Helper()
	var broken atomic.Bool
	broken.Store(true)
	h.store.FailCommits(func(store.Batch) error {
		if broken.Load() {
			return errDisk
		}
		return nil
	})
	h.turn(d)
	broken.Store(false)
	h.getOver()
}
