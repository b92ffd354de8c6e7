package governor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
)

var errDisk = errors.New("no space left on device")

// everything returns all that the governor answers from its state, as JSON.
func (h *house) everything() string {
	h.tb.Helper()
	g, ctx := h.governor, h.ctx()
	all := map[string]any{}
	put := func(name string, value any, err error) {
		must(h.tb, err)
		all[name] = value
	}
	environments, err := g.Environments(ctx)
	put("environments", environments, err)
	policies, err := g.Policies(ctx)
	put("policies", policies, err)
	balances, err := g.Balances(ctx, "")
	put("balances", balances, err)
	queues, err := g.Queues(ctx)
	put("queues", queues, err)
	for _, q := range queues {
		shares, err := g.Shares(ctx, q.Name)
		put("shares of "+q.Name, shares, err)
		snapshot, err := g.Snapshot(ctx, q.Name)
		put("total of "+q.Name, snapshot.Total, err)
		jobs, err := g.Jobs(ctx, store.JobQuery{Queue: q.Name, Limit: 10_000})
		must(h.tb, err)
		for _, j := range jobs {
			why, err := g.Why(ctx, j.ID)
			put("job "+j.ID, why, err)
		}
	}
	text, err := json.MarshalIndent(all, "", " ")
	must(h.tb, err)
	return string(text)
}

func TestRestartEndsNoJob(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	h.quotaQueue(4,
		share("a", 2, resource.LendAndBorrow, -1, true),
		share("b", 2, resource.LendAndBorrow, -1, true))
	stubborn := simulated.Program{Startup: time.Second, Stopping: time.Hour}
	h.submit(stubborn, submission("borrower", 1, in("a")))
	h.submit(stubborn, submission("own", 2, in("a"), priority(5)))
	h.turn(time.Minute)
	h.submit(stubborn, submission("preempted", 1, in("a"), priority(1)))
	h.turn(2 * time.Second)
	h.submit(stubborn, submission("owner", 2, in("b")))
	h.submit(stubborn, submission("waits", 1, in("b")))
	h.submit(stubborn, submission("never", 9, in("b"), priority(9)))
	must(t, h.governor.Terminate(h.ctx(), h.id("own"), "enough"))
	h.turn(10 * time.Second)

	before, entries := h.everything(), len(h.journal())
	for range 3 {
		h.restart()
	}
	if after := h.everything(); after != before {
		t.Errorf("a restart changed\n%s\nto\n%s", before, after)
	}
	if n := len(h.journal()); n != entries {
		t.Errorf("a restart journaled %d entries: %+v", n-entries, h.journal()[entries:])
	}
	h.turn(2 * time.Minute)
	h.restart()
	h.expect(map[string]string{"own": "FAILED", "owner": "RUNNABLE", "never": "RUNNABLE", "waits": "RUNNABLE"})
	if twice := h.world.Twice(); twice != nil {
		t.Errorf("ran twice at once: %v", twice)
	}
}

// deaf is a runner that hears no orders: those of a governor that dies between
// its commit and its orders.
type deaf struct{ runner.Runner }

func (deaf) Start(runner.Attempt) {}
func (deaf) Stop(runner.Key)      {}

func TestOrdersThatWereNeverGiven(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{}, submission("stop", 1))
	h.runners = func(report runner.Report) (runner.Runner, error) {
		r, err := h.world.Attach(report)
		return deaf{r}, err
	}
	h.restart()
	h.submit(simulated.Program{}, submission("start", 1))
	must(t, h.governor.Terminate(h.ctx(), h.id("stop"), "enough"))
	h.turn(time.Minute)
	h.expect(map[string]string{"start": "SCHEDULED", "stop": "stopping"})
	h.runners = h.world.Attach
	h.restart()
	h.expect(map[string]string{"start": "RUNNING", "stop": "FAILED"})
}

func TestPreemptedJobThatIsTerminatedKeepsItsPromise(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	h.quotaQueue(2, share("a", 1, resource.LendAndBorrow, -1, false), share("b", 1, resource.Lend, -1, false))
	stubborn := simulated.Program{Stopping: time.Hour}
	h.submit(stubborn, submission("own", 1, in("a"), priority(1)))
	h.submit(stubborn, submission("borrower", 1, in("a")))
	h.submit(stubborn, submission("owner", 1, in("b")))
	must(t, h.governor.Terminate(h.ctx(), h.id("borrower"), "enough"))
	h.turn(time.Second)
	before := h.everything()
	h.restart()
	if after := h.everything(); before != after {
		t.Errorf("a restart changed the state (-before +after):\n%s", cmp.Diff(before, after))
	}
	h.turn(time.Minute)
	h.expect(map[string]string{"own": "RUNNING", "borrower": "FAILED", "owner": "RUNNING"})
	if j := h.job("borrower"); j.Reason != "enough" || j.PreemptionCount != 0 {
		t.Errorf("borrower ended with %q after %d preemptions", j.Reason, j.PreemptionCount)
	}
}

func TestAttemptsThatEndedWhileNobodyWatched(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{Runtime: time.Minute}, submission("ended", 1))
	h.submit(simulated.Program{Runtime: time.Hour, Startup: 30 * time.Second}, submission("started", 1))
	h.close()
	h.clock.Advance(2 * time.Minute)
	h.open()
	h.turn(0)
	h.expect(map[string]string{"ended": "SUCCEEDED", "started": "RUNNING"})
	if got := h.job("ended").StoppedAt.Sub(start); got != time.Minute {
		t.Errorf("ended after %v, want when it ended: 1m", got)
	}
	if got := h.job("started").StartedAt.Sub(start); got != 30*time.Second {
		t.Errorf("started after %v, want when it started: 30s", got)
	}
}

func TestFailedCommitChangesNothing(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{}, submission("runs", 1))
	before := h.everything()

	failures := 0
	h.store.FailCommits(func(store.Batch) error {
		if failures++; failures == 1 {
			return errDisk
		}
		return nil
	})
	_, err := h.governor.Submit(h.ctx(), submission("refused", 1))
	if !errors.Is(err, governor.ErrUnavailable) || !errors.Is(err, errDisk) {
		t.Errorf("submit with a full disk: %v, want an error that wraps ErrUnavailable and says why", err)
	}
	if after := h.everything(); after != before {
		t.Errorf("a failed commit changed\n%s\nto\n%s", before, after)
	}
	h.submit(simulated.Program{}, submission("accepted", 1))
	h.expect(map[string]string{"runs": "RUNNING", "accepted": "RUNNING"})
	if twice := h.world.Twice(); twice != nil {
		t.Errorf("ran twice at once: %v", twice)
	}
}

// TestObservationsSurviveAnOutage has commits fail while the workers of one job
// end and another is due to stop: the governor refuses commands, goes on by
// itself when the store is back, and has missed nothing.
func TestObservationsSurviveAnOutage(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(2)
	h.submit(simulated.Program{Runtime: time.Minute, ExitCode: 7}, submission("fails", 1))
	h.submit(simulated.Program{}, submission("timed", 1, func(s *governor.Submission) { s.Timeout = 90 * time.Second }))
	h.submit(simulated.Program{}, submission("next", 1))
	var broken atomic.Bool
	broken.Store(true)
	h.store.FailCommits(func(store.Batch) error {
		if broken.Load() {
			return errDisk
		}
		return nil
	})
	h.turn(2 * time.Minute)
	if _, err := h.governor.Submit(h.ctx(), submission("refused", 1)); !errors.Is(err, governor.ErrUnavailable) {
		t.Errorf("submit during an outage: %v, want ErrUnavailable", err)
	}
	broken.Store(false)
	h.getOver()
	h.expect(map[string]string{"fails": "FAILED", "timed": "FAILED", "next": "RUNNING"})
	if j := h.job("fails"); j.Attempts[0].Reason != job.FromSageMaker+"AlgorithmError: training failed, exit code: 7" {
		t.Errorf("fails ended with %q", j.Attempts[0].Reason)
	}
}

func TestDeletedShareEndsItsJobs(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	h.quotaQueue(1, share("s", 1, resource.LendAndBorrow, -1, false), share("t", 1, resource.Lend, -1, false))
	h.submit(simulated.Program{Stopping: time.Hour}, submission("runs", 1, in("s"), func(s *governor.Submission) {
		s.Strategy = &job.Strategy{Attempts: 3}
	}))
	h.submit(simulated.Program{}, submission("waits", 1, in("s")))
	h.submit(simulated.Program{}, submission("other", 1, in("t")))
	must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "s", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteShare(h.ctx(), "q", "s"))
	must(t, h.governor.DeleteShare(h.ctx(), "q", "s")) // again: it is under way
	h.turn(0)
	h.expect(map[string]string{"runs": "stopping", "waits": "FAILED", "other": "RUNNABLE"})

	mustRefuse(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "s", State: ptr(resource.Enabled)}),
		governor.Conflict, "Quota share s of job queue q has status DELETING. Wait until it is gone, or use another one.")
	h.restart()
	h.turn(time.Minute)
	h.expect(map[string]string{"runs": "FAILED", "other": "RUNNING"})
	for _, name := range []string{"runs", "waits"} {
		if j := h.job(name); j.Reason != "Quota share s of job queue q was deleted" || !j.Terminated {
			t.Errorf("%s ended with %q, terminated: %v", name, j.Reason, j.Terminated)
		}
	}
	mustRefuse(t, h.governor.DeleteShare(h.ctx(), "q", "s"), governor.Missing, "Quota share s of job queue q does not exist.")
	h.restart()
	mustRefuse(t, h.governor.DeleteShare(h.ctx(), "q", "s"), governor.Missing, "Quota share s of job queue q does not exist.")
}

func TestDeletedQueueGoesWithItsLastJob(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	h.plainQueue(1)
	h.submit(simulated.Program{Stopping: time.Hour}, submission("runs", 1))
	h.submit(simulated.Program{}, submission("waits", 1))
	must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteQueue(h.ctx(), "q"))
	queues, err := h.governor.Queues(h.ctx())
	must(t, err)
	if len(queues) != 1 || queues[0].Status != resource.Deleting {
		t.Fatalf("queues: %+v", queues)
	}
	_, err = h.governor.Submit(h.ctx(), submission("late", 1))
	mustRefuse(t, err, governor.Conflict, "Job queue q has status DELETING. Wait until it is gone, or use another one.")
	h.turn(time.Minute)
	h.expect(map[string]string{"runs": "FAILED", "waits": "FAILED"})
	if queues, err = h.governor.Queues(h.ctx()); err != nil || len(queues) != 0 {
		t.Errorf("queues: %+v, %v", queues, err)
	}
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Disabled)}))
	must(t, h.governor.DeleteEnvironment(h.ctx(), "env"))
	h.environment("env", g5, 1)
}

// TestSetUpAndTakeDown is the order of calls of the notebook helper (D3).
func TestSetUpAndTakeDown(t *testing.T) {
	h := newHouse(t)
	for range 2 {
		h.quotaQueue(3, share("s", 1, resource.Lend, -1, false))
		must(t, h.governor.UpdateQueue(h.ctx(), governor.QueueChange{Name: "q", State: ptr(resource.Disabled)}))
		mustRefuse(t, h.governor.DeleteQueue(h.ctx(), "q"), governor.Conflict, "Job queue q has quota shares: s. Delete them first.")
		must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "s", State: ptr(resource.Disabled)}))
		must(t, h.governor.DeleteShare(h.ctx(), "q", "s"))
		must(t, h.governor.DeleteQueue(h.ctx(), "q"))
		must(t, h.governor.DeletePolicy(h.ctx(), "quota"))
		must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "env", State: ptr(resource.Disabled)}))
		must(t, h.governor.DeleteEnvironment(h.ctx(), "env"))
	}
	contents, err := h.store.Load(h.ctx(), start)
	must(t, err)
	if len(contents.Environments)+len(contents.Policies)+len(contents.Queues)+len(contents.Shares) != 0 {
		t.Errorf("left behind: %+v", contents)
	}
}

func TestStoppedGovernorRefuses(t *testing.T) {
	defer goleak.VerifyNone(t)
	h := newHouse(t)
	h.plainQueue(1)
	h.submit(simulated.Program{}, submission("runs", 1))
	h.close()
	if _, err := h.governor.Submit(h.ctx(), submission("late", 1)); !errors.Is(err, governor.ErrUnavailable) {
		t.Errorf("submit after Stop: %v, want ErrUnavailable", err)
	}
	if alive := h.world.Alive(); len(alive) != 1 {
		t.Errorf("alive after Stop: %v, want the one job that runs", alive)
	}
}

func TestManySubmitAtOnce(t *testing.T) {
	const clients, each = 16, 25
	h := newHouse(t)
	h.plainQueue(10)
	var commits atomic.Int64
	h.store.FailCommits(func(store.Batch) error { commits.Add(1); return nil })
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				j, err := h.governor.Submit(h.ctx(), submission(fmt.Sprintf("j-%d-%d", c, i), 1))
				if err != nil {
					t.Errorf("submit: %v", err)
					return
				}
				if got, err := h.governor.Job(h.ctx(), j.ID); err != nil || got.ID != j.ID {
					t.Errorf("job %s right after its submission: %v, %v", j.ID, got.ID, err)
				}
				mu.Lock()
				seen[j.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != clients*each {
		t.Errorf("%d different jobs, want %d", len(seen), clients*each)
	}
	t.Logf("%d submissions in %d commits", clients*each, commits.Load())
}

func TestCallerThatGivesUp(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(1)
	ctx, cancel := context.WithCancel(h.ctx())
	cancel()
	for range 100 {
		if _, err := h.governor.Submit(ctx, submission("j", 1)); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("submit with a context that is done: %v", err)
		}
	}
	h.settle()
}

// TestJournalReplays checks that the journal has every command: carried out
// again at the same times, in a house where the workers do the same, they lead
// to the same state and to the same journal.
func TestJournalReplays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t, grace(30*time.Second))
		defer h.close()
		l := newLife(rt, h)
		for range 30 {
			l.act()
		}
		h.turn(15 * time.Minute)
		copied := newHouse(t, grace(30*time.Second))
		defer copied.close()
		copied.programs = h.programs
		copied.replay(h)
		copied.turn(h.clock.Now().Sub(copied.clock.Now()))
		if before, after := h.everything(), copied.everything(); before != after {
			rt.Errorf("the state was\n%s\nand is after a replay\n%s", before, after)
		}
		was, is := h.journal(), copied.journal()
		for i := range min(len(was), len(is)) {
			a, _ := json.Marshal(was[i])
			b, _ := json.Marshal(is[i])
			if string(a) != string(b) {
				rt.Fatalf("entry %d was %s\nand is after a replay %s", i, a, b)
			}
		}
		if len(was) != len(is) {
			rt.Errorf("%d entries, %d after a replay", len(was), len(is))
		}
	})
}

// replay carries out the commands in another house's journal.
func (h *house) replay(from *house) {
	h.tb.Helper()
	for _, e := range from.journal() {
		if e.Kind != store.Command {
			continue
		}
		h.turn(e.At.Sub(h.clock.Now()))
		must(h.tb, h.carryOut(from, e))
		h.turn(0)
	}
}

func (h *house) carryOut(from *house, e store.Entry) error {
	read := func(into any) { must(h.tb, json.Unmarshal(e.Data, into)) }
	g, ctx := h.governor, governor.WithPrincipal(h.tb.Context(), e.By)
	switch e.Name {
	case "CreateServiceEnvironment":
		var v resource.Environment
		read(&v)
		return g.CreateEnvironment(ctx, v)
	case "UpdateServiceEnvironment":
		var v governor.EnvironmentChange
		read(&v)
		return g.UpdateEnvironment(ctx, v)
	case "CreateSchedulingPolicy":
		var v resource.Policy
		read(&v)
		return g.CreatePolicy(ctx, v)
	case "UpdateSchedulingPolicy":
		var v governor.PolicyChange
		read(&v)
		return g.UpdatePolicy(ctx, v)
	case "CreateJobQueue":
		var v resource.Queue
		read(&v)
		return g.CreateQueue(ctx, v)
	case "CreateQuotaShare":
		var v resource.Share
		read(&v)
		return g.CreateShare(ctx, v)
	case "UpdateQuotaShare":
		var v governor.ShareChange
		read(&v)
		return g.UpdateShare(ctx, v)
	case "DeleteQuotaShare":
		var v resource.Ref
		read(&v)
		return g.DeleteShare(ctx, v.Queue, v.Name)
	case "ApplyPolicy":
		var v governor.Declaration
		read(&v)
		_, err := g.Apply(ctx, v, "")
		return err
	case "SubmitServiceJob":
		var v governor.Submission
		read(&v)
		payload, err := from.governor.Payload(ctx, e.Subject)
		must(h.tb, err)
		v.Payload = payload
		_, err = g.Submit(ctx, v)
		return err
	case "UpdateServiceJob":
		var v struct{ Priority int32 }
		read(&v)
		_, err := g.SetPriority(ctx, e.Subject, v.Priority)
		return err
	case "TerminateServiceJob":
		var v struct{ Reason string }
		read(&v)
		return g.Terminate(ctx, e.Subject, v.Reason)
	default:
		return fmt.Errorf("unknown command %s", e.Name)
	}
}

// TestAnyLife has a house live a random life with crashes and outages, and
// checks after each step what must always hold.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t, grace(30*time.Second))
		defer h.close()
		l := newLife(rt, h)
		for range 40 {
			switch rapid.IntRange(0, 9).Draw(rt, "fate") {
			case 0:
				before := h.everything()
				h.restart()
				if after := h.everything(); after != before {
					rt.Fatalf("a restart changed the state (-before +after):\n%s", cmp.Diff(before, after))
				}
			case 1:
				l.outage()
			default:
				l.act()
			}
			l.check()
		}
	})
}

// life is a random one.
type life struct {
	rt       *rapid.T
	h        *house
	accepted []string
	named    int
}

func newLife(rt *rapid.T, h *house) *life {
	h.quotaQueue(6,
		share("a", 2, resource.LendAndBorrow, -1, true),
		share("b", 2, resource.LendAndBorrow, 100, false),
		share("c", 2, resource.Lend, -1, true))
	return &life{rt: rt, h: h}
}

// act does something at random, which may be refused.
func (l *life) act() {
	g, ctx := l.h.governor, l.h.ctx()
	shareName := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(l.rt, "share")
	var err error
	switch rapid.SampledFrom([]string{"submit", "submit", "submit", "turn", "turn", "priority", "terminate", "limits", "pool", "state", "delete", "apply"}).Draw(l.rt, "act") {
	case "submit":
		err = l.submit(shareName)
	case "turn":
		l.h.turn(time.Duration(rapid.IntRange(1, 600).Draw(l.rt, "seconds")) * time.Second)
	case "priority":
		if id, ok := l.anyone(); ok {
			_, err = g.SetPriority(ctx, id, rapid.Int32Range(0, 9).Draw(l.rt, "priority"))
		}
	case "terminate":
		if id, ok := l.anyone(); ok {
			err = g.Terminate(ctx, id, "no reason")
		}
	case "limits":
		err = g.UpdateShare(ctx, governor.ShareChange{Queue: "q", Name: shareName, Limits: limits(g5, rapid.Int64Range(1, 3).Draw(l.rt, "quota"))})
	case "pool":
		err = g.UpdateEnvironment(ctx, governor.EnvironmentChange{Name: "env", Limits: limits(g5, rapid.Int64Range(2, 8).Draw(l.rt, "capacity"))})
	case "state":
		state := rapid.SampledFrom([]resource.State{resource.Enabled, resource.Enabled, resource.Disabled}).Draw(l.rt, "state")
		err = g.UpdateShare(ctx, governor.ShareChange{Queue: "q", Name: shareName, State: &state})
	case "delete":
		err = g.DeleteShare(ctx, "q", shareName)
	case "apply":
		_, err = g.Apply(ctx, l.declaration(), "")
	}
	var refusal *governor.Refusal
	if err != nil && !errors.As(err, &refusal) && !errors.Is(err, governor.ErrUnavailable) {
		l.rt.Fatalf("a command failed: %v", err)
	}
	l.h.turn(0)
}

// declaration is of the cohort with rules and shares at random.
func (l *life) declaration() governor.Declaration {
	d := governor.Declaration{
		Name:           "q",
		Limits:         limits(g5, rapid.Int64Range(2, 8).Draw(l.rt, "capacity")),
		IdleAssignment: rapid.SampledFrom([]string{resource.IdleFIFO, resource.IdleFairShare}).Draw(l.rt, "idle assignment"),
		Rules: resource.Rules{
			Queueing:           rapid.SampledFrom([]resource.Queueing{resource.Strict, resource.BestEffort, resource.Backfill}).Draw(l.rt, "queueing"),
			PriorityScope:      rapid.SampledFrom([]resource.PriorityScope{resource.InEachShare, resource.InCohort}).Draw(l.rt, "scope"),
			Victims:            rapid.SampledFrom([]resource.Victims{resource.LeastLostWork, resource.MostOverQuota, resource.NewestFirst}).Draw(l.rt, "victims"),
			BorrowerPreemption: rapid.Bool().Draw(l.rt, "borrower preemption"),
			Rebalance:          rapid.Bool().Draw(l.rt, "rebalance"),
			ShareUnallocated:   rapid.Bool().Draw(l.rt, "share unallocated"),
			MinRuntime:         time.Duration(rapid.IntRange(0, 120).Draw(l.rt, "min runtime")) * time.Second,
			GracePeriod:        time.Duration(rapid.IntRange(0, 90).Draw(l.rt, "grace")) * time.Second,
		},
		Prune: rapid.Bool().Draw(l.rt, "prune"),
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if rapid.Bool().Draw(l.rt, "declared") {
			s := share(name, rapid.Int64Range(1, 3).Draw(l.rt, "quota"), resource.LendAndBorrow, -1, rapid.Bool().Draw(l.rt, "in share"))
			s.State, s.Weight = resource.Enabled, rapid.Int64Range(0, 3).Draw(l.rt, "weight")
			s.LendLimits = limits(g5, rapid.Int64Range(0, 3).Draw(l.rt, "lend limit"))
			d.Shares = append(d.Shares, s)
		}
	}
	return d
}

func (l *life) submit(shareName string) error {
	l.named++
	s := submission(fmt.Sprint("j", l.named), rapid.Int64Range(1, 3).Draw(l.rt, "instances"), in(shareName), priority(rapid.Int32Range(0, 3).Draw(l.rt, "priority")))
	if rapid.Bool().Draw(l.rt, "retried") {
		s.Strategy = &job.Strategy{Attempts: 2}
	}
	if rapid.Bool().Draw(l.rt, "limited") {
		s.PreemptionRetries = ptr(1)
		s.Timeout = 5 * time.Minute
	}
	l.h.mu.Lock()
	l.h.programs[s.Name] = simulated.Program{
		Startup:         time.Duration(rapid.IntRange(0, 5).Draw(l.rt, "startup")) * time.Second,
		Runtime:         time.Duration(rapid.IntRange(0, 900).Draw(l.rt, "runtime")) * time.Second,
		CheckpointEvery: time.Duration(rapid.SampledFrom([]int{0, 30, 45, 100}).Draw(l.rt, "checkpoint")) * time.Second,
		ExitCode:        rapid.SampledFrom([]int{0, 0, 1}).Draw(l.rt, "exit code"),
		Stopping:        time.Duration(rapid.IntRange(0, 60).Draw(l.rt, "stopping")) * time.Second,
	}
	l.h.mu.Unlock()
	j, err := l.h.governor.Submit(l.h.ctx(), s)
	if err == nil {
		l.accepted = append(l.accepted, j.ID)
	}
	return err
}

func (l *life) anyone() (id string, ok bool) {
	if len(l.accepted) == 0 {
		return "", false
	}
	return rapid.SampledFrom(l.accepted).Draw(l.rt, "job"), true
}

// outage has the next few commits fail while life goes on.
func (l *life) outage() {
	left := atomic.Int64{}
	left.Store(int64(rapid.IntRange(1, 3).Draw(l.rt, "failures")))
	l.h.store.FailCommits(func(store.Batch) error {
		if left.Add(-1) >= 0 {
			return errDisk
		}
		return nil
	})
	l.act()
	l.act()
	l.h.store.FailCommits(nil)
	l.h.getOver()
}

// check checks the invariants that concern a governor.
func (l *life) check() {
	l.rt.Helper()
	if twice := l.h.world.Twice(); twice != nil {
		l.rt.Fatalf("ran twice at once: %v", twice)
	}
	alive := map[string]int{}
	for _, k := range l.h.world.Alive() {
		alive[k.Job] = k.Run
	}
	for _, id := range l.accepted {
		j, err := l.h.governor.Job(l.h.ctx(), id)
		if err != nil {
			l.rt.Fatalf("an accepted job was lost: %v", err)
		}
		run, runs := alive[id]
		switch {
		case runs && (j.Current == nil || j.Current.Run != run):
			l.rt.Fatalf("run %d of job %s is alive, but the job is %s", run, id, j.Status)
		case !runs && j.Status.Holds():
			l.rt.Fatalf("job %s is %s, but nothing of it is alive", id, j.Status)
		}
		delete(alive, id)
	}
	if len(alive) > 0 {
		l.rt.Fatalf("alive, but never accepted: %v", alive)
	}
	l.h.journal()
}
