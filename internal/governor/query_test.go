package governor_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
)

func TestSnapshotOfQueueWithShares(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3,
		share("a", 1, resource.LendAndBorrow, -1, false),
		share("b", 2, resource.Lend, -1, false),
		share("empty", 1, resource.Reserve, -1, false))
	h.submit(simulated.Program{Runtime: time.Hour}, submission("a1", 1, in("a")))
	h.submit(simulated.Program{Runtime: time.Minute}, submission("b2", 2, in("b")))
	h.submit(simulated.Program{}, submission("a2", 2, in("a")))
	h.submit(simulated.Program{}, submission("b3", 2, in("b")))
	h.submit(simulated.Program{}, submission("b4", 1, in("b")))
	h.turn(30 * time.Second)

	snap, err := h.governor.Snapshot(h.ctx(), "q")
	must(t, err)
	want := governor.Snapshot{
		Queue: snap.Queue, At: h.clock.Now(),
		ShareFronts: []governor.ShareFront{
			{Share: "a", Front: &governor.Front{Job: h.job("a2"), Since: start}},
			{Share: "b", Front: &governor.Front{Job: h.job("b3"), Since: start}},
			{Share: "empty"},
		},
		Total: []job.Amount{{Unit: g5, Quantity: 3}},
		Shares: []governor.Utilization{
			{Share: "b", Usage: []job.Amount{{Unit: g5, Quantity: 2}}},
			{Share: "a", Usage: []job.Amount{{Unit: g5, Quantity: 1}}},
		},
	}
	if diff := cmp.Diff(want, snap); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}

	h.turnTo(time.Minute)
	snap, err = h.governor.Snapshot(h.ctx(), "q")
	must(t, err)
	if front := snap.ShareFronts[1].Front; front.Job.Name != "b4" || !front.Since.Equal(start.Add(time.Minute)) {
		t.Errorf("in front of b: %s since %v, want b4 since 1m", front.Job.Name, front.Since.Sub(start))
	}
}

func TestSnapshotOfPlainQueue(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(4)
	h.submit(simulated.Program{}, submission("mixed", 1, func(s *governor.Submission) {
		s.Demand = []job.Amount{{Unit: "ml.p5.48xlarge", Quantity: 2}, {Unit: g5, Quantity: 1}, {Unit: g5, Quantity: 1}}
	}))
	for _, name := range []string{"w1", "w2", "w3"} {
		h.submit(simulated.Program{}, submission(name, 1))
	}
	snap, err := h.governor.Snapshot(h.ctx(), "q")
	must(t, err)
	var front []string
	for _, f := range snap.Front {
		front = append(front, f.Job.Name)
	}
	if diff := cmp.Diff([]string{"w1", "w2", "w3"}, front); diff != "" {
		t.Errorf("front (-want +got):\n%s", diff)
	}
	// The pool counts instances, the snapshot says of which types.
	if diff := cmp.Diff([]job.Amount{{Unit: g5, Quantity: 2}, {Unit: "ml.p5.48xlarge", Quantity: 2}}, snap.Total); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	balances, err := h.governor.Balances(h.ctx(), "")
	must(t, err)
	want := []governor.Balance{{Queue: "q", Waiting: 3, Running: 1, Units: []governor.UnitBalance{{Unit: resource.NumInstances, Nominal: 4, Own: 4}}}}
	if diff := cmp.Diff(want, balances); diff != "" {
		t.Errorf("balances (-want +got):\n%s", diff)
	}
}

func TestBalancesAndWhy(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3,
		share("QS1", 1, resource.LendAndBorrow, 200, true),
		share("QS2", 1, resource.Lend, -1, false),
		share("QS3", 1, resource.Reserve, -1, false))
	h.submit(simulated.Program{}, submission("high", 1, in("QS1"), priority(3)))
	h.submit(simulated.Program{}, submission("med", 1, in("QS1"), priority(2)))
	h.submit(simulated.Program{}, submission("low", 1, in("QS1"), priority(1)))
	h.submit(simulated.Program{}, submission("last", 1, in("QS1")))

	balances, err := h.governor.Balances(h.ctx(), "q")
	must(t, err)
	want := []governor.Balance{
		{Queue: "q", Share: "QS1", Waiting: 2, Running: 2, Units: []governor.UnitBalance{{Unit: g5, Nominal: 1, Own: 1, Borrowed: 1}}},
		{Queue: "q", Share: "QS2", Units: []governor.UnitBalance{{Unit: g5, Nominal: 1, Lent: 1}}},
		{Queue: "q", Share: "QS3", Units: []governor.UnitBalance{{Unit: g5, Nominal: 1, Free: 1}}},
	}
	if diff := cmp.Diff(want, balances); diff != "" {
		t.Errorf("balances (-want +got):\n%s", diff)
	}

	low, err := h.governor.Why(h.ctx(), h.id("low"))
	must(t, err)
	if low.Reason.Code != quota.Reserved {
		t.Errorf("low waits for %s", low.Reason.Code)
	}
	const sentence = "It needs 1 ml.g5.xlarge; enough is idle, but 1 of them are reserved for other shares: its own share uses 2, QS3 keeps 1 unused."
	if low.Sentence != sentence {
		t.Errorf("low waits because:\n %s\nwant\n %s", low.Sentence, sentence)
	}
	last, err := h.governor.Why(h.ctx(), h.id("last"))
	must(t, err)
	if want := "It has place 2 in its share; job low goes first."; last.Sentence != want {
		t.Errorf("last waits because %s, want %s", last.Sentence, want)
	}
	med, err := h.governor.Why(h.ctx(), h.id("med"))
	must(t, err)
	if diff := cmp.Diff(quota.Amounts{g5: 1}, med.Borrowed); diff != "" || med.Reason != nil {
		t.Errorf("med: borrowed (-want +got):\n%s\nreason %v", diff, med.Reason)
	}

	// What was decided is told for good.
	h.turn(90 * time.Second)
	h.submit(simulated.Program{Runtime: time.Hour}, submission("owner", 1, in("QS2")))
	must(t, h.governor.Terminate(h.ctx(), h.id("med"), "enough"))
	h.restart()
	med, err = h.governor.Why(h.ctx(), h.id("med"))
	must(t, err)
	told := []governor.Told{
		{At: start.Add(90 * time.Second), Sentence: "Preempted because share QS2 takes its own capacity back for job owner; it loses 90 unit-seconds of work, and of 2 candidates the next in line would have lost 90 unit-seconds."},
		{At: start, Sentence: "Granted, borrowing 1 ml.g5.xlarge that other shares leave idle."},
	}
	if diff := cmp.Diff(told, med.Decisions); diff != "" {
		t.Errorf("decisions on med (-want +got):\n%s", diff)
	}
}

func TestTags(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3, share("s", 1, resource.Lend, -1, false))
	h.submit(simulated.Program{}, submission("runs", 1, in("s"), func(s *governor.Submission) { s.Tags = map[string]string{"a": "0"} }))
	h.submit(simulated.Program{}, submission("finished", 1, in("s")))
	must(t, h.governor.Terminate(h.ctx(), h.id("finished"), "enough"))
	for _, ref := range []resource.Ref{
		{Kind: resource.KindEnvironment, Name: "env"},
		{Kind: resource.KindPolicy, Name: "quota"},
		{Kind: resource.KindQueue, Name: "q"},
		{Kind: resource.KindShare, Queue: "q", Name: "s"},
		{Kind: resource.KindJob, Name: h.id("runs")},
		{Kind: resource.KindJob, Name: h.id("finished")},
	} {
		must(t, h.governor.Tag(h.ctx(), ref, map[string]string{"a": "1", "b": "2"}))
		must(t, h.governor.Tag(h.ctx(), ref, map[string]string{"c": "3"}))
		must(t, h.governor.Untag(h.ctx(), ref, []string{"b", "never"}))
		for _, when := range []string{"at once", "after a restart"} {
			tags, err := h.governor.Tags(h.ctx(), ref)
			must(t, err)
			if diff := cmp.Diff(map[string]string{"a": "1", "c": "3"}, tags); diff != "" {
				t.Errorf("tags of %s %s, %s (-want +got):\n%s", ref.Kind, ref.Name, when, diff)
			}
			h.restart()
		}
	}
}

func TestListsAndPayloads(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3, share("z", 1, resource.Lend, -1, false), share("a", 1, resource.LendAndBorrow, 50, true))
	h.environment("count", resource.NumInstances, 1)
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "b", Environment: "count"}))

	environments, err := h.governor.Environments(h.ctx())
	must(t, err)
	wantEnvironments := []resource.Environment{
		{Name: "count", State: resource.Enabled, Status: resource.Valid, Limits: limits(resource.NumInstances, 1), CreatedAt: start},
		{Name: "env", State: resource.Enabled, Status: resource.Valid, Limits: limits(g5, 3), CreatedAt: start},
	}
	if diff := cmp.Diff(wantEnvironments, environments); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
	queues, err := h.governor.Queues(h.ctx())
	must(t, err)
	if len(queues) != 2 || queues[0].Name != "b" || queues[1].Name != "q" {
		t.Errorf("queues: %+v", queues)
	}
	shares, err := h.governor.Shares(h.ctx(), "q")
	must(t, err)
	if len(shares) != 2 || shares[0].Name != "a" || shares[0].BorrowLimit != 50 || shares[1].Name != "z" {
		t.Errorf("shares: %+v", shares)
	}
	must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "a", Sharing: ptr(resource.Reserve)}))
	shares, err = h.governor.Shares(h.ctx(), "q")
	must(t, err)
	if got := shares[0].BorrowLimit; got != resource.Unlimited {
		t.Errorf("a share that does not borrow has borrow limit %d", got)
	}

	h.submit(simulated.Program{Runtime: time.Minute}, submission("first", 1, in("z")))
	h.turn(time.Minute)
	h.submit(simulated.Program{}, submission("second", 1, in("z")))
	jobs, err := h.governor.Jobs(h.ctx(), store.JobQuery{Queue: "q", Limit: 10})
	must(t, err)
	if diff := cmp.Diff([]job.Job{h.job("second"), h.job("first")}, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	payload, err := h.governor.Payload(h.ctx(), h.id("first"))
	must(t, err)
	if payload != `{"of":"first"}` {
		t.Errorf("payload %s", payload)
	}
	_, err = h.governor.Jobs(h.ctx(), store.JobQuery{Queue: "none", Limit: 10})
	mustRefuse(t, err, governor.Missing, "Job queue none does not exist.")
}

func TestQueueMovesWhileItHasNoJobs(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(1, share("s", 2, resource.Lend, -1, false))
	h.environment("bigger", g5, 2)
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", Environment: ptr("bigger")}))
	h.submit(simulated.Program{}, submission("j", 2, in("s")))
	h.expect(map[string]string{"j": "RUNNING"})
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteEnvironment(h.ctx(), "env"))
}

func TestPolicyIsReplaced(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(1)
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "other", IdleAssignment: resource.IdleFIFO}))
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", Policy: ptr("other")}))
	must(t, h.governor.DeletePolicy(h.ctx(), "quota"))
	policies, err := h.governor.Policies(h.ctx())
	must(t, err)
	if len(policies) != 1 || policies[0].Name != "other" {
		t.Errorf("policies: %+v", policies)
	}
}

func TestWaitingInOrder(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(1)
	for _, name := range []string{"runs", "w1", "w2"} {
		h.submit(simulated.Program{}, submission(name, 1))
	}
	waiting, err := h.governor.Waiting(h.ctx(), "q", 1)
	must(t, err)
	if len(waiting) != 1 || waiting[0].Job.Name != "w1" || waiting[0].Reason.Code != quota.InsufficientCapacity {
		t.Errorf("waiting: %+v", waiting)
	}
}

// BenchmarkSubmit is what a durable submission costs without a store: 64
// callers whose jobs wait behind one that runs.
func BenchmarkSubmit(b *testing.B) {
	h := newHouse(b)
	h.plainQueue(1)
	h.submit(simulated.Program{}, submission("first", 1))
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s := submission("j", 1)
		for pb.Next() {
			if _, err := h.governor.Submit(h.ctx(), s); err != nil {
				b.Error(err)
			}
		}
	})
}
