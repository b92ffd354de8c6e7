package governor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
)

// declared is a declaration of q with shares of g5.
func declared(capacity int64, shares ...resource.Share) governor.Declaration {
	d := governor.Declaration{Name: "q", Limits: limits(g5, capacity), IdleAssignment: resource.IdleFIFO}
	for _, s := range shares {
		s.State, s.Weight = resource.Enabled, resource.DefaultWeight
		d.Shares = append(d.Shares, s)
	}
	return d
}

func (h *house) plan(d governor.Declaration) governor.Plan {
	h.tb.Helper()
	p, err := h.governor.Plan(h.ctx(), d)
	must(h.tb, err)
	return p
}

func (h *house) apply(d governor.Declaration, version string) governor.Plan {
	h.tb.Helper()
	p, err := h.governor.Apply(h.ctx(), d, version)
	must(h.tb, err)
	h.turn(0)
	return p
}

// names are those of the jobs affected, with their number if not all are named.
func names(a governor.Affected) string {
	list := make([]string, len(a.Jobs))
	for i, j := range a.Jobs {
		list[i] = j.Share + "/" + j.Name
	}
	if a.Count != len(list) {
		list = append(list, fmt.Sprintf("of %d", a.Count))
	}
	return strings.Join(list, " ")
}

// effect is an Effect in short.
func effect(e governor.Effect) map[string]string {
	all := map[string]string{}
	for what, a := range map[string]governor.Affected{
		"reclaimable": e.Reclaimable, "preempted": e.Preempted, "ended": e.Ended, "startable": e.Startable,
	} {
		if a.Count > 0 {
			all[what] = names(a)
		}
	}
	return all
}

// lines are a plan's changes, each with its fields and effect.
func lines(p governor.Plan) []string {
	var all []string
	for _, c := range p.Changes {
		words := []string{fmt.Sprintf("%s %s %s:", c.Action, c.Kind, c.Name)}
		for _, f := range c.Fields {
			words = append(words, fmt.Sprintf("%s %q>%q", f.Field, f.Old, f.New))
		}
		for _, what := range sortedKeys(effect(c.Effect)) {
			words = append(words, fmt.Sprintf("[%s %s]", what, effect(c.Effect)[what]))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestApplyMakesEverything(t *testing.T) {
	h := newHouse(t)
	d := declared(3, share("a", 2, resource.LendAndBorrow, 50, true), share("b", 1, resource.Reserve, -1, false))
	d.IdleAssignment = resource.IdleFairShare
	d.Rules = resource.Rules{Queueing: resource.Backfill, Rebalance: true, AssumedCheckpointInterval: time.Hour, GracePeriod: time.Minute}
	d.Shares[0].Weight, d.Shares[0].LendLimits = 2, limits(g5, 1)
	d.Shares[1].State = resource.Disabled

	want := []string{
		`create service-environment q: capacity ml.g5.xlarge "">"3"`,
		`create scheduling-policy q: idleAssignment "">"FairShare" queueing "">"Backfill" rebalance "">"true" gracePeriod "">"1m0s"`,
		`create job-queue q: environment "">"q" policy "">"q" priority "">"1"`,
		`create quota-share a: quota ml.g5.xlarge "">"2" sharing "">"LendAndBorrow" borrowLimit "">"50" lendLimits ml.g5.xlarge "">"1" inSharePreemption "">"true" weight "">"2"`,
		`create quota-share b: quota ml.g5.xlarge "">"1" sharing "">"Reserve" disabled "">"true"`,
	}
	p := h.plan(d)
	same(t, "planned", want, lines(p))
	if queues, err := h.governor.Queues(h.ctx()); err != nil || len(queues) > 0 || len(h.journal()) > 0 {
		t.Errorf("planning made queues %+v (%v), and journaled %+v", queues, err, h.journal())
	}
	same(t, "applied", want, lines(h.apply(d, p.Version)))
	same(t, "journaled", []string{"command ApplyPolicy"}, h.lines("job-queue/q"))
	if by := h.journal()[0].By; by != "tester" {
		t.Errorf("applied by %q", by)
	}

	again := h.plan(d)
	same(t, "planned again", []string{}, lines(again))
	entries := len(h.journal())
	h.apply(d, again.Version)
	if n := len(h.journal()); n != entries {
		t.Errorf("applying what is declared already journaled %d entries", n-entries)
	}

	before := h.everything()
	h.restart()
	same(t, "everything after a restart", before, h.everything())
	h.submit(simulated.Program{}, submission("j", 2, in("a")))
	h.expect(map[string]string{"j": "RUNNING"})
	_, err := h.governor.Submit(h.ctx(), submission("k", 1, in("b")))
	mustRefuse(t, err, governor.Conflict, "Quota share b of job queue q has state DISABLED and takes no jobs. Set it to ENABLED, or use another one.")
}

func TestDeclaredIsWhatWasApplied(t *testing.T) {
	h := newHouse(t)
	d := declared(3, share("a", 2, resource.LendAndBorrow, 50, true), share("b", 1, resource.Lend, -1, false))
	d.Rules = resource.Rules{Victims: resource.NewestFirst, PriorityScope: resource.InCohort, MinRuntime: time.Minute}
	h.apply(d, "")
	got, err := h.governor.Declared(h.ctx(), "q")
	must(t, err)
	own := cmpopts.IgnoreFields(resource.Share{}, "Queue", "Status", "CreatedAt")
	if diff := cmp.Diff(d, got, own, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-applied +declared:\n%s", diff)
	}
	same(t, "planned", []string{}, lines(h.plan(got)))
	_, err = h.governor.Declared(h.ctx(), "p")
	mustRefuse(t, err, governor.Missing, "Job queue p does not exist.")
}

// TestPlanForWhatAWSClientsMade plans for a queue whose environment and policy
// have names of their own.
func TestPlanForWhatAWSClientsMade(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3, share("a", 2, resource.LendAndBorrow, -1, true), share("b", 1, resource.Lend, -1, false))
	got, err := h.governor.Declared(h.ctx(), "q")
	must(t, err)
	same(t, "planned for what is declared", []string{}, lines(h.plan(got)))

	d := got
	d.Limits = append(limits(g5, 5), resource.Limit{Unit: "ml.p5.48xlarge/vcpu", Max: 8})
	d.Rules.Queueing = resource.BestEffort
	d.Shares[1].Sharing, d.Shares[1].BorrowLimit, d.Shares[1].BorrowLimits = resource.LendAndBorrow, 300, limits(g5, 2)
	d.Shares[1].InSharePreemption, d.Shares[1].State = true, resource.Disabled
	want := []string{
		`update service-environment env: capacity ml.g5.xlarge "3">"5" capacity ml.p5.48xlarge/vcpu "">"8"`,
		`update scheduling-policy quota: queueing "Strict">"BestEffort"`,
		`update quota-share b: sharing "Lend">"LendAndBorrow" borrowLimit "-1">"300" borrowLimits ml.g5.xlarge "">"2" inSharePreemption "false">"true" disabled "false">"true"`,
	}
	same(t, "planned", want, lines(h.plan(d)))
	h.apply(d, "")
	same(t, "planned again", []string{}, lines(h.plan(d)))
	d.Limits, d.Shares[1].Sharing, d.Shares[1].BorrowLimit, d.Shares[1].BorrowLimits = limits(g5, 5), resource.Reserve, -1, nil
	want = []string{
		`update service-environment env: capacity ml.p5.48xlarge/vcpu "8">""`,
		`update quota-share b: sharing "LendAndBorrow">"Reserve" borrowLimit "300">"-1" borrowLimits ml.g5.xlarge "2">""`,
	}
	same(t, "planned back", want, lines(h.plan(d)))
}

// TestPlanTellsOfEachChangesEffect has two changes of which each does something
// to other jobs, and both together something else again.
func TestPlanTellsOfEachChangesEffect(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	a, b := share("a", 2, resource.Lend, -1, false), share("b", 2, resource.Lend, -1, false)
	h.apply(declared(4, a, b), "")
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		h.submit(simulated.Program{Stopping: time.Hour}, submission(name, 1, in("a")))
		h.turn(time.Minute)
	}
	for _, name := range []string{"b1", "b2", "b3", "b4"} {
		h.submit(simulated.Program{}, submission(name, 1, in("b")))
	}
	h.expect(map[string]string{"a1": "RUNNING", "a2": "RUNNING", "a3": "RUNNABLE", "b2": "RUNNING", "b3": "RUNNABLE", "b4": "RUNNABLE"})
	before, entries := h.everything(), len(h.journal())

	b.Limits = limits(g5, 3)
	smaller := a
	smaller.Limits = limits(g5, 1)
	p := h.plan(declared(4, smaller, b))
	same(t, "planned", []string{
		// What is over the quota may be taken back, but nobody is entitled to it.
		`update quota-share a: quota ml.g5.xlarge "2">"1" [reclaimable a/a1 a/a2]`,
		// More quota alone is no capacity.
		`update quota-share b: quota ml.g5.xlarge "2">"3"`,
	}, lines(p))
	same(t, "both together", map[string]string{"reclaimable": "a/a1 a/a2", "preempted": "a/a2", "startable": "b/b3"}, effect(p.Effect))

	p = h.plan(declared(5, a, b))
	same(t, "planned with more capacity", map[string]string{"startable": "b/b3"}, effect(p.Effect))
	if diff := cmp.Diff(before, h.everything()); diff != "" || len(h.journal()) != entries {
		t.Errorf("planning changed something (-before +after):\n%s", diff)
	}

	applied := h.apply(declared(4, smaller, b), h.plan(declared(4, smaller, b)).Version)
	same(t, "applied", map[string]string{"reclaimable": "a/a1 a/a2", "preempted": "a/a2", "startable": "b/b3"}, effect(applied.Effect))
	h.expect(map[string]string{"a1": "RUNNING", "a2": "stopping", "b3": "RUNNABLE"})
	h.turn(time.Minute)
	h.expect(map[string]string{"a1": "RUNNING", "a2": "RUNNABLE", "b3": "RUNNING", "b4": "RUNNABLE"})
}

func TestPlanOfRules(t *testing.T) {
	h := newHouse(t)
	a, b := share("a", 1, resource.LendAndBorrow, -1, false), share("b", 1, resource.LendAndBorrow, -1, false)
	d := declared(4, a, b)
	h.apply(d, "")
	for _, name := range []string{"a1", "b1", "a2", "b2"} {
		h.submit(simulated.Program{}, submission(name, 1, in(name[:1])))
	}
	h.submit(simulated.Program{}, submission("b3", 1, in("b"), priority(5)))
	h.expect(map[string]string{"a1": "RUNNING", "b1": "RUNNING", "a2": "RUNNABLE", "b2": "RUNNABLE", "b3": "RUNNABLE"})

	d.Rules.ShareUnallocated = true
	same(t, "sharing what nobody owns", map[string]string{"startable": "a/a2 b/b3"}, effect(h.plan(d).Effect))
	h.apply(d, "")
	h.expect(map[string]string{"a2": "RUNNING", "b3": "RUNNING", "b2": "RUNNABLE"})
	_, err := h.governor.SetPriority(h.ctx(), h.id("b2"), 1)
	must(t, err)
	d.Rules.BorrowerPreemption = true
	same(t, "preemption of borrowers", map[string]string{"preempted": "a/a2", "startable": "b/b2"}, effect(h.plan(d).Effect))
	h.apply(d, "")
	h.expect(map[string]string{"a1": "RUNNING", "a2": "RUNNABLE", "b2": "RUNNING"})
	if got, want := h.job("a2").Preemptions[0].Reason, "Preempted: higher-priority job b2 in quota share b"; got != want {
		t.Errorf("a2: %q, want %q", got, want)
	}
}

func TestRebalancedJobSaysSo(t *testing.T) {
	h := newHouse(t)
	d := declared(4, share("a", 1, resource.LendAndBorrow, -1, false), share("b", 1, resource.LendAndBorrow, -1, false), share("c", 2, resource.Lend, -1, false))
	d.IdleAssignment, d.Rules.Rebalance = resource.IdleFairShare, true
	h.apply(d, "")
	for _, name := range []string{"a1", "a2", "a3"} {
		h.submit(simulated.Program{}, submission(name, 1, in("a")))
		h.turn(time.Second)
	}
	h.submit(simulated.Program{}, submission("b1", 1, in("b")))
	h.submit(simulated.Program{}, submission("b2", 1, in("b")))
	h.expect(map[string]string{"a1": "RUNNING", "b1": "RUNNING", "b2": "RUNNING", "a3": "RUNNABLE"})
	if got, want := h.job("a3").Preemptions[0].Reason, "Preempted: capacity rebalanced to quota share b"; got != want {
		t.Errorf("a3: %q, want %q", got, want)
	}
}

func TestSharesThatAreNoLongerDeclared(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	a, b := share("a", 1, resource.Lend, -1, false), share("b", 1, resource.LendAndBorrow, -1, false)
	h.apply(declared(2, a, b, share("empty", 1, resource.Reserve, -1, false)), "")
	h.submit(simulated.Program{Stopping: time.Hour}, submission("a1", 1, in("a")))
	h.submit(simulated.Program{}, submission("a2", 1, in("a")))
	h.submit(simulated.Program{}, submission("b1", 1, in("b")))
	h.submit(simulated.Program{}, submission("b2", 1, in("b")))

	d := declared(2, b)
	p := h.plan(d)
	same(t, "planned", []string{}, lines(p))
	same(t, "kept", []string{"a", "empty"}, p.Kept)
	d.Shares[0].Limits = limits(g5, 2)
	d.Prune = true
	p = h.plan(d)
	same(t, "planned to prune", []string{
		`update quota-share b: quota ml.g5.xlarge "1">"2"`,
		`delete quota-share a: [ended a/a1 a/a2]`,
		`delete quota-share empty:`,
	}, lines(p))
	same(t, "kept", []string{}, p.Kept)
	same(t, "both together", map[string]string{"ended": "a/a1 a/a2", "startable": "b/b2"}, effect(p.Effect))
	h.apply(d, p.Version)
	h.expect(map[string]string{"a1": "stopping", "a2": "FAILED", "b1": "RUNNING", "b2": "RUNNABLE"})

	same(t, "planned while a share goes", []string{}, lines(h.plan(d)))
	_, err := h.governor.Plan(h.ctx(), declared(2, a, b))
	mustRefuse(t, err, governor.Conflict, "Quota share a of job queue q has status DELETING. Wait until it is gone, or use another name.")
	h.restart()
	h.turn(time.Minute)
	h.expect(map[string]string{"a1": "FAILED", "b2": "RUNNING"})
	if j := h.job("a1"); j.Reason != "Quota share a of job queue q was deleted" {
		t.Errorf("a1 ended with %q", j.Reason)
	}
	shares, err := h.governor.Shares(h.ctx(), "q")
	must(t, err)
	if len(shares) != 1 {
		t.Errorf("shares left: %+v", shares)
	}
	same(t, "planned with it again", []string{`create quota-share a: quota ml.g5.xlarge "">"1" sharing "">"Lend"`}, lines(h.plan(declared(2, a)))[:1])
}

func TestApplyRefusesAnOldPlan(t *testing.T) {
	h := newHouse(t)
	a, b := share("a", 1, resource.Lend, -1, false), share("b", 1, resource.LendAndBorrow, -1, false)
	h.apply(declared(2, a, b), "")
	h.environment("other", g5, 1)
	version := h.plan(declared(3, a, b)).Version

	// What declares nothing of it does no harm.
	h.submit(simulated.Program{}, submission("j", 1, in("a")))
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "other", Limits: limits(g5, 2)}))
	must(t, h.governor.Tag(h.ctx(), resource.Ref{Kind: resource.KindShare, Queue: "q", Name: "a"}, map[string]string{"team": "x"}))
	if again := h.plan(declared(3, a, b)).Version; strings.Split(again, "-")[1] != strings.Split(version, "-")[1] {
		t.Errorf("the version went from %s to %s", version, again)
	}
	h.turn(time.Minute)
	must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "b", BorrowLimit: ptr(int64(7))}))
	_, err := h.governor.Apply(h.ctx(), declared(3, a, b), version)
	mustRefuse(t, err, governor.Conflict, "What is declared under q is not what was planned upon: "+
		"UpdateQuotaShare of quota-share/q/b by tester at 2026-03-01T12:01:00Z. Plan again, and apply that.")
	for range 4 {
		must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "q", Limits: limits(g5, 2)}))
	}
	_, err = h.governor.Apply(h.ctx(), declared(3, a, b), version)
	if err == nil || !strings.Contains(err.Error(), "; and 2 more. Plan again") {
		t.Errorf("after five changes: %v", err)
	}
	_, err = h.governor.Apply(h.ctx(), declared(3, a, b), "99-0123456789abcdef")
	mustRefuse(t, err, governor.Conflict, "What is declared under q is not what was planned upon: "+
		"it was not planned on this server, or for another name. Plan again, and apply that.")
	for _, version := range []string{"yes", "1-", "-1-0123456789abcdef"} {
		_, err = h.governor.Apply(h.ctx(), declared(3, a, b), version)
		mustRefuse(t, err, governor.Invalid, fmt.Sprintf("the version of the plan is %q; give one as a plan prints it, or none.", version))
	}
	h.apply(declared(3, a, b), h.plan(declared(3, a, b)).Version)
}

func TestApplyIsAllOrNothing(t *testing.T) {
	h := newHouse(t)
	a, b := share("a", 1, resource.Lend, -1, false), share("b", 1, resource.LendAndBorrow, -1, false)
	h.apply(declared(2, a), "")
	h.submit(simulated.Program{}, submission("j", 1, in("a")))
	before := h.everything()
	h.store.FailCommits(func(store.Batch) error { return errDisk })
	if _, err := h.governor.Apply(h.ctx(), declared(5, a, b), ""); err == nil {
		t.Error("applied though the store fails")
	}
	h.store.FailCommits(nil)
	h.getOver()
	same(t, "everything", before, h.everything())
}

func TestDeclarationsThatCannotBe(t *testing.T) {
	h := furnished(t)
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "shared", IdleAssignment: resource.IdleFIFO}))
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "fair", FairShare: &resource.FairShare{}}))
	for _, name := range []string{"one", "two"} {
		h.environment(name, g5, 1)
		must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: name, Environment: name, Policy: "shared"}))
	}
	a := share("a", 1, resource.LendAndBorrow, -1, false)
	named := func(name string, d governor.Declaration) governor.Declaration {
		d.Name = name
		return d
	}
	fair := declared(1, a)
	fair.IdleAssignment = resource.IdleFairShare
	counting := declared(1, a)
	counting.Limits = limits(resource.NumInstances, 3)
	unknown := declared(1, a)
	unknown.Limits = limits("gpu", 3)
	wrong := declared(1, a)
	wrong.Rules.Queueing = "LIFO"
	heavy := declared(1, a)
	heavy.Shares[0].Weight = -1
	poor := declared(1, a)
	poor.Shares[0].Limits = nil
	none := declared(1, a)
	none.Limits = nil
	var many []resource.Share
	for i := range resource.MaxSharesPerQueue {
		many = append(many, share(fmt.Sprint("s", i), 1, resource.Lend, -1, false))
	}
	tests := []struct {
		name    string
		d       governor.Declaration
		problem governor.Problem
		message string
	}{
		{"name", named("a/b", declared(1, a)), governor.Invalid, `name is "a/b"; use 1 to 128 letters, digits, hyphens and underscores.`},
		{"no capacity", none, governor.Invalid, "capacity is empty; name an amount for 1 to 5 units."},
		{"counting", counting, governor.Invalid, "capacity names NUM_INSTANCES; quota shares need capacity by instance type, such as ml.g5.xlarge."},
		{"unit", unknown, governor.Invalid, "capacity of q: gpu is unknown capacity unit. Use an instance type such as ml.g5.xlarge as capacityUnit."},
		{"rule", wrong, governor.Invalid, `policy of q: queueing is "LIFO"; use BEST_EFFORT or BACKFILL, or leave it out for strict order.`},
		{"no quota", poor, governor.Invalid, "quota of share a is empty; give it at least 1 of some unit."},
		{"share", heavy, governor.Invalid, "share a: weight is -1; use 0 to 1000."},
		{"share twice", declared(1, a, a), governor.Invalid, "share a is declared twice; names must differ."},
		{"shares", declared(1, append(many, a)...), governor.Limit, "q has 21 shares; use at most 20."},
		{
			"shares with those there are", declared(1, many...), governor.Limit,
			"Job queue q would have 22 quota shares, with those whose jobs must end first; there may be 20. Delete some that are not needed.",
		},
		{
			"a queue without shares", named("plain", declared(1, a)), governor.Invalid,
			"Job queue plain has no scheduling policy with quota shares, and cannot get one. Name a job queue that has, or one that does not exist.",
		},
		{
			"an environment that counts", named("idle-count", declared(1, a)), governor.Invalid,
			"Service environment idle-count is limited by NUM_INSTANCES, but a job queue with quota shares needs one limited by instance types.",
		},
		{
			"an environment in use", named("env", declared(1, a)), governor.Conflict,
			"Service environment env is used by job queues: q. A job queue with quota shares needs one of its own.",
		},
		{
			"a fair-share policy", named("fair", declared(1, a)), governor.Conflict,
			"Scheduling policy fair is one of fair-share queues, and its kind never changes. Use another name.",
		},
		{
			"another queue's policy", named("one", fair), governor.Conflict,
			"Scheduling policy shared is used by job queue two too: it would be governed otherwise as well. Give job queue one a policy of its own first.",
		},
		{
			"the policy of a queue", named("shared", fair), governor.Conflict,
			"Scheduling policy shared is used by job queue one, two too: it would be governed otherwise as well. Give job queue shared a policy of its own first.",
		},
	}
	before := h.everything()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.governor.Plan(h.ctx(), tt.d)
			mustRefuse(t, err, tt.problem, tt.message)
			_, err = h.governor.Apply(h.ctx(), tt.d, "")
			mustRefuse(t, err, tt.problem, tt.message)
		})
	}
	same(t, "everything", before, h.everything())
	for name, d := range map[string]governor.Declaration{"one": declared(1, a), "idle": declared(3, a), "spare": declared(1, a)} {
		if _, err := h.governor.Apply(h.ctx(), named(name, d), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGraceOfAPolicy checks that workers have the time to stop that the policy
// gave them when they started.
func TestGraceOfAPolicy(t *testing.T) {
	h := newHouse(t, grace(time.Minute))
	d := declared(2, share("a", 2, resource.Lend, -1, false))
	h.apply(d, "")
	stubborn := simulated.Program{Stopping: time.Hour}
	h.submit(stubborn, submission("first", 1, in("a")))
	d.Rules.GracePeriod = 10 * time.Second
	h.apply(d, "")
	h.submit(stubborn, submission("second", 1, in("a")))
	must(t, h.governor.Terminate(h.ctx(), h.id("first"), "enough"))
	must(t, h.governor.Terminate(h.ctx(), h.id("second"), "enough"))
	h.turn(9 * time.Second)
	h.expect(map[string]string{"first": "stopping", "second": "stopping"})
	h.turn(time.Second)
	h.expect(map[string]string{"first": "stopping", "second": "FAILED"})
	h.turn(50 * time.Second)
	h.expect(map[string]string{"first": "FAILED"})
}
