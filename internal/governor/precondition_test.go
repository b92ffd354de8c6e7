package governor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner/simulated"
)

// furnished returns a house with one of everything: environments env (with
// queue q and its shares on, off and used), count (with plain queues plain and
// off), pool (with the fair-share queue by-use), idle and idle-count (with
// nothing on them), policies quota, spare and by-use.
func furnished(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.quotaQueue(3, share("on", 1, resource.LendAndBorrow, -1, true), share("off", 1, resource.Lend, -1, false))
	h.environment("count", resource.NumInstances, 3)
	h.environment("idle", g5, 3)
	h.environment("idle-count", resource.NumInstances, 3)
	h.environment("off", g5, 3)
	must(t, h.governor.UpdateEnvironment(h.ctx(), governor.EnvironmentChange{Name: "off", State: ptr(resource.Disabled)}))
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "spare", IdleAssignment: resource.IdleFIFO}))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain", Environment: "count"}))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "plain-off", Environment: "count", State: resource.Disabled}))
	h.environment("pool", g5, 3)
	must(t, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "by-use", FairShare: &resource.FairShare{}}))
	must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "by-use", Environment: "pool", Policy: "by-use"}))
	must(t, h.governor.UpdateShare(h.ctx(), governor.ShareChange{Queue: "q", Name: "off", State: ptr(resource.Disabled)}))
	h.submit(simulated.Program{}, submission("job", 1, in("on")))
	h.submit(simulated.Program{Runtime: time.Second}, submission("finished", 1, in("on")))
	h.turn(time.Second)
	return h
}

func TestRefusals(t *testing.T) {
	h := furnished(t)
	g := h.governor
	submit := func(options ...func(*governor.Submission)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := g.Submit(ctx, submission("new", 1, append([]func(*governor.Submission){in("on")}, options...)...))
			return err
		}
	}
	const (
		missing  = governor.Missing
		exists   = governor.Exists
		conflict = governor.Conflict
		invalid  = governor.Invalid
	)
	tests := []struct {
		name    string
		act     func(context.Context) error
		problem governor.Problem
		message string
	}{
		{"environment again", func(ctx context.Context) error {
			return g.CreateEnvironment(ctx, resource.Environment{Name: "env", Limits: limits(g5, 1)})
		}, exists, "Object already exists"},
		{"environment without limits", func(ctx context.Context) error {
			return g.CreateEnvironment(ctx, resource.Environment{Name: "new"})
		}, invalid, "Capacitylimits are required. Give 1 to 5 capacityLimits."},
		{"change of an environment that is not there", func(ctx context.Context) error {
			return g.UpdateEnvironment(ctx, governor.EnvironmentChange{Name: "none"})
		}, missing, "Service environment none does not exist."},
		{"unit of an environment in use", func(ctx context.Context) error {
			return g.UpdateEnvironment(ctx, governor.EnvironmentChange{Name: "env", Limits: limits(resource.NumInstances, 3)})
		}, conflict, "capacityLimits of service environment env cannot change between NUM_INSTANCES and instance types while job queues use it: q. Delete them first, or create another service environment."},
		{"environment limits of 0", func(ctx context.Context) error {
			return g.UpdateEnvironment(ctx, governor.EnvironmentChange{Name: "env", Limits: limits(g5, 0)})
		}, invalid, "Max capacity must be more than 0. maxCapacity of ml.g5.xlarge is 0."},
		{"no environment limits at all", func(ctx context.Context) error {
			return g.UpdateEnvironment(ctx, governor.EnvironmentChange{Name: "env", Limits: []resource.Limit{}})
		}, invalid, "Capacitylimits are required. Give 1 to 5 capacityLimits."},
		{"deletion of an environment in use", func(ctx context.Context) error {
			return g.DeleteEnvironment(ctx, "count")
		}, conflict, "Service environment count is used by job queues: plain, plain-off. Delete them first."},
		{"deletion of an enabled environment", func(ctx context.Context) error {
			return g.DeleteEnvironment(ctx, "idle")
		}, conflict, "Service environment idle has state ENABLED. Set it to DISABLED before deleting it."},

		{"policy again", func(ctx context.Context) error {
			return g.CreatePolicy(ctx, resource.Policy{Name: "quota", IdleAssignment: resource.IdleFIFO})
		}, exists, "Object already exists"},
		{"policy with another idle assignment", func(ctx context.Context) error {
			return g.UpdatePolicy(ctx, governor.PolicyChange{Name: "quota", IdleAssignment: ptr("LIFO")})
		}, invalid, `idleAssignment is "LIFO"; use FIFO or FAIR_SHARE.`},
		{"policy with weight factors that cannot be", func(ctx context.Context) error {
			return g.UpdatePolicy(ctx, governor.PolicyChange{Name: "by-use", FairShare: &resource.FairShare{Distribution: []resource.WeightedShare{{Identifier: "a"}}}})
		}, invalid, "Weight factor should be between 0.0001 and 999.9999. That of shareIdentifier a is not."},
		{"fair-share policy for a policy with quota shares", func(ctx context.Context) error {
			return g.UpdatePolicy(ctx, governor.PolicyChange{Name: "quota", FairShare: &resource.FairShare{}})
		}, invalid, "Scheduling policy quota has a quotaSharePolicy, and the kind of a policy does not change. Create another one with a fairsharePolicy."},
		{"quota shares for a fair-share policy", func(ctx context.Context) error {
			return g.UpdatePolicy(ctx, governor.PolicyChange{Name: "by-use", IdleAssignment: ptr(resource.IdleFIFO)})
		}, invalid, "Scheduling policy by-use has a fairsharePolicy, and the kind of a policy does not change. Create another one with a quotaSharePolicy."},
		{"deletion of a fair-share policy in use", func(ctx context.Context) error {
			return g.DeletePolicy(ctx, "by-use")
		}, conflict, "Scheduling policy by-use is used by job queues: by-use. Delete them, or give them another policy, first."},
		{"deletion of a policy in use", func(ctx context.Context) error {
			return g.DeletePolicy(ctx, "quota")
		}, conflict, "Scheduling policy quota is used by job queues: q. Delete them, or give them another policy, first."},
		{"deletion of a policy that is not there", func(ctx context.Context) error {
			return g.DeletePolicy(ctx, "none")
		}, missing, "SchedulingPolicy none not found. Create it first."},

		{"queue again", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "plain", Environment: "count"})
		}, exists, "Object already exists"},
		{"queue without an environment", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new"})
		}, invalid, "Job queues of type SAGEMAKER_TRAINING must have serviceEnvironmentOrder. Name one service environment in it."},
		{"queue on an environment that is not there", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "none"})
		}, missing, "Service environments must be created and valid before attaching them to a job queue. Service environment none does not exist."},
		{"plain queue on an environment with quotas", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "env"})
		}, conflict, "Service environment env is used for quota management by job queue q alone. Use another one."},
		{"queue with a policy that is not there", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "idle", Policy: "none"})
		}, missing, "SchedulingPolicy none not found. Create it first."},
		{"quota queue on a disabled environment", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "off", Policy: "quota"})
		}, conflict, "Service environments must be created and valid before attaching them to a job queue. Service environment off has state DISABLED; set it to ENABLED."},
		{"quota queue on an environment that counts", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "idle-count", Policy: "quota"})
		}, invalid, "Service environment idle-count is limited by NUM_INSTANCES, but a job queue with quota shares needs one limited by instance types."},
		{"quota queue on an environment in use", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "env", Policy: "quota"})
		}, conflict, "Service environment env is used by job queues: q. A job queue with quota shares needs one of its own."},
		{"fair-share queue on an environment with quotas", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "env", Policy: "by-use"})
		}, conflict, "Service environment env is used for quota management by job queue q alone. Use another one."},
		{"quota queue beside a fair-share queue", func(ctx context.Context) error {
			return g.CreateQueue(ctx, resource.Queue{Name: "new", Environment: "pool", Policy: "quota"})
		}, conflict, "Service environment pool is used by job queues: by-use. A job queue with quota shares needs one of its own."},
		{"fair-share policy for a queue with quota shares", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "q", Policy: ptr("by-use")})
		}, conflict, "Job queue q has scheduling policy quota, which has a quotaSharePolicy; scheduling policy by-use has a fairsharePolicy. Replace it by another one with a quotaSharePolicy."},
		{"quota policy for a fair-share queue", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "by-use", Policy: ptr("quota")})
		}, conflict, "Job queue by-use has scheduling policy by-use, which has a fairsharePolicy; scheduling policy quota has a quotaSharePolicy. Replace it by another one with a fairsharePolicy."},
		{"fair-share policy taken away", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "by-use", Policy: ptr("")})
		}, conflict, "Job queue by-use has scheduling policy by-use, which can be replaced but not taken away."},
		{"quota share of a fair-share queue", func(ctx context.Context) error {
			s := share("s", 1, resource.Lend, -1, false)
			s.Queue = "by-use"
			return g.CreateShare(ctx, s)
		}, invalid, "Job queue by-use has no scheduling policy with quota shares. Create quota shares in a job queue with a quotaSharePolicy."},
		{"policy taken away", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "q", Policy: ptr("")})
		}, conflict, "Job queue q has scheduling policy quota, which can be replaced but not taken away."},
		{"policy for a queue without", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "plain", Policy: ptr("quota")})
		}, conflict, "Job queue plain has no scheduling policy, and cannot get one. Create another job queue with schedulingPolicyArn."},
		{"queue with jobs moved", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "q", Environment: ptr("idle")})
		}, conflict, "Job queue q has jobs on service environment env, and cannot be moved to idle. Wait until they have finished, or terminate them."},
		{"queue priority", func(ctx context.Context) error {
			return g.UpdateQueue(ctx, governor.QueueChange{Name: "q", Priority: ptr(int64(1001))})
		}, invalid, "priority is 1001; use 0 to 1000."},
		{"deletion of an enabled queue", func(ctx context.Context) error {
			return g.DeleteQueue(ctx, "q")
		}, conflict, "Job queue q has state ENABLED. Set it to DISABLED before deleting it."},
		{"deletion of a queue that is not there", func(ctx context.Context) error {
			return g.DeleteQueue(ctx, "none")
		}, missing, "Job queue none does not exist."},

		{"share again", func(ctx context.Context) error {
			s := share("on", 1, resource.Reserve, -1, false)
			s.Queue = "q"
			return g.CreateShare(ctx, s)
		}, exists, "Quota share on already exists in job queue q."},
		{"share of a plain queue", func(ctx context.Context) error {
			s := share("new", 1, resource.Reserve, -1, false)
			s.Queue = "plain"
			return g.CreateShare(ctx, s)
		}, invalid, "Job queue plain has no scheduling policy with quota shares. Create quota shares in a job queue with a quotaSharePolicy."},
		{"share of a queue that is not there", func(ctx context.Context) error {
			s := share("new", 1, resource.Reserve, -1, false)
			s.Queue = "none"
			return g.CreateShare(ctx, s)
		}, missing, "Job queue none does not exist."},
		{"share that does not borrow, with a borrow limit", func(ctx context.Context) error {
			return g.UpdateShare(ctx, governor.ShareChange{Queue: "q", Name: "off", BorrowLimit: ptr(int64(50))})
		}, invalid, "borrowLimit is 50, but a share with strategy LEND does not borrow; leave borrowLimit out or use strategy LEND_AND_BORROW."},
		{"change of a share that is not there", func(ctx context.Context) error {
			return g.UpdateShare(ctx, governor.ShareChange{Queue: "q", Name: "none"})
		}, missing, "Quota share none of job queue q does not exist."},
		{"deletion of an enabled share", func(ctx context.Context) error {
			return g.DeleteShare(ctx, "q", "on")
		}, conflict, "Quota share on of job queue q has state ENABLED. Set it to DISABLED before deleting it."},
		{"shares of a queue that is not there", func(ctx context.Context) error {
			_, err := g.Shares(ctx, "none")
			return err
		}, missing, "Job queue none does not exist."},

		{"submission to a queue that is not there", submit(func(s *governor.Submission) { s.Queue = "none" }), missing, "Job queue none does not exist."},
		{"submission to a disabled queue", submit(in(""), func(s *governor.Submission) { s.Queue = "plain-off" }), conflict,
			"Job queue plain-off has state DISABLED and takes no jobs. Set it to ENABLED, or use another one."},
		{"submission without a share", submit(in("")), invalid, "quotaShareName is required for job queue q, which has quota shares: off, on."},
		{"submission to a share that is not there", submit(in("none")), missing, "Quota share none of job queue q does not exist."},
		{"submission to a disabled share", submit(in("off")), conflict, "Quota share off of job queue q has state DISABLED and takes no jobs. Set it to ENABLED, or use another one."},
		{"submission with a share to a plain queue", submit(func(s *governor.Submission) { s.Queue = "plain" }), invalid,
			`quotaShareName is "on", but job queue plain has no quota shares. Leave it out.`},
		{"submission with a share identifier", submit(func(s *governor.Submission) { s.ShareIdentifier = "team" }), invalid,
			`shareIdentifier is "team", but job queue q has quota shares and no fair-share policy. Leave it out, and give one of them as quotaShareName: off, on.`},
		{"submission with a share identifier to a plain queue", submit(in(""), of("team"), func(s *governor.Submission) { s.Queue = "plain" }), invalid,
			`shareIdentifier is "team", but job queue plain has no fair-share policy. Leave it out.`},
		{"submission without a share identifier", submit(in(""), func(s *governor.Submission) { s.Queue = "by-use" }), invalid,
			"shareIdentifier is required for job queue by-use, which has a fair-share policy. Say by 1 to 255 letters and digits whose the job is."},
		{"submission with a quota share to a fair-share queue", submit(of("team"), func(s *governor.Submission) { s.Queue = "by-use" }), invalid,
			`quotaShareName is "on", but job queue by-use has no quota shares. Leave it out, and say by shareIdentifier whose the job is.`},
		{"share identifier of a job", submit(in(""), of("team*"), func(s *governor.Submission) { s.Queue = "by-use" }), invalid,
			`ShareIdentifier name should match a valid pattern. shareIdentifier is "team*"; use 1 to 255 letters and digits.`},
		{"job name", submit(func(s *governor.Submission) { s.Name = "my job" }), invalid,
			`Job name should match a valid pattern. jobName is "my job"; use 1 to 128 letters, digits, hyphens and underscores.`},
		{"no demand", submit(func(s *governor.Submission) { s.Demand = nil }), invalid,
			"The payload's ResourceConfig asks for no instances. Give it an InstanceType and an InstanceCount of at least 1."},
		{"instance type", submit(func(s *governor.Submission) { s.Demand[0].Unit = "g5" }), invalid, `InstanceType is "g5"; use one such as ml.g5.xlarge.`},
		{"instance count", submit(func(s *governor.Submission) { s.Demand[0].Quantity = 0 }), invalid, "InstanceCount of ml.g5.xlarge is 0; use 1 to 1000000."},
		{"priority", submit(priority(10000)), invalid, "schedulingPriority is 10000; use 0 to 9999."},
		{"timeout", submit(func(s *governor.Submission) { s.Timeout = 59 * time.Second }), invalid, "attemptDurationSeconds is 59; use at least 60."},
		{"max runtime", submit(func(s *governor.Submission) { s.MaxRuntime = -time.Second }), invalid, "MaxRuntimeInSeconds is -1; use at least 1."},
		{"attempts", submit(func(s *governor.Submission) { s.Strategy = &job.Strategy{Attempts: 11} }), invalid, "attempts of retryStrategy is 11; use 1 to 10."},
		{"rules", submit(func(s *governor.Submission) { s.Strategy = &job.Strategy{Attempts: 1, Rules: make([]job.Rule, 6)} }), invalid,
			"evaluateOnExit has 6 rules; use at most 5."},
		{"action", submit(func(s *governor.Submission) {
			s.Strategy = &job.Strategy{Attempts: 1, Rules: []job.Rule{{Action: "STOP", Pattern: "*"}}}
		}), invalid, `action in evaluateOnExit is "STOP"; use RETRY or EXIT.`},
		{"pattern", submit(func(s *governor.Submission) {
			s.Strategy = &job.Strategy{Attempts: 1, Rules: []job.Rule{{Action: job.Exit}}}
		}), invalid, "onStatusReason in evaluateOnExit has 0 characters; use 1 to 512."},
		{"preemption retries", submit(func(s *governor.Submission) { s.PreemptionRetries = ptr(-1) }), invalid,
			"preemptionRetriesBeforeTermination is -1; use 0 or more, or leave it out for no limit."},
		{"token", submit(func(s *governor.Submission) { s.Token = strings.Repeat("x", 65) }), invalid, "clientToken has 65 characters; use 1 to 64."},
		{"tags", submit(func(s *governor.Submission) { s.Tags = map[string]string{"": "x"} }), invalid, `tag key "" has 0 characters; use 1 to 128.`},

		{"priority of a finished job", func(ctx context.Context) error {
			_, err := g.SetPriority(ctx, h.id("finished"), 1)
			return err
		}, conflict, "Service job " + h.id("finished") + " has status SUCCEEDED, and its priority can no longer change."},
		{"priority out of range", func(ctx context.Context) error {
			_, err := g.SetPriority(ctx, h.id("job"), -1)
			return err
		}, invalid, "schedulingPriority is -1; use 0 to 9999."},
		{"priority of no job", func(ctx context.Context) error {
			_, err := g.SetPriority(ctx, "none", 1)
			return err
		}, missing, "Service job none does not exist."},
		{"no job", func(ctx context.Context) error { _, err := g.Job(ctx, "none"); return err }, missing, "Service job none does not exist."},
		{"no payload", func(ctx context.Context) error { _, err := g.Payload(ctx, "none"); return err }, missing, "Service job none does not exist."},
		{"no reason", func(ctx context.Context) error { _, err := g.Why(ctx, "none"); return err }, missing, "Service job none does not exist."},
		{"no snapshot", func(ctx context.Context) error { _, err := g.Snapshot(ctx, "none"); return err }, missing, "Job queue none does not exist."},
		{"no balances", func(ctx context.Context) error { _, err := g.Balances(ctx, "none"); return err }, missing, "Job queue none does not exist."},

		{"tags of nothing", func(ctx context.Context) error {
			return g.Tag(ctx, resource.Ref{Kind: resource.KindShare, Queue: "q", Name: "none"}, map[string]string{"a": "b"})
		}, missing, "Quota share none of job queue q does not exist."},
		{"tags of an unknown kind", func(ctx context.Context) error {
			return g.Untag(ctx, resource.Ref{Kind: "cluster", Name: "x"}, nil)
		}, missing, "cluster x does not exist."},
		{"too many tags", func(ctx context.Context) error {
			many := map[string]string{}
			for i := range 51 {
				many[fmt.Sprint(i)] = ""
			}
			return g.Tag(ctx, resource.Ref{Kind: resource.KindQueue, Name: "q"}, many)
		}, invalid, "tags has 51 entries; use at most 50."},
	}
	before := h.everything()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { mustRefuse(t, tt.act(h.ctx()), tt.problem, tt.message) })
	}
	if after := h.everything(); before != after {
		t.Errorf("refused commands changed the house from\n%s\nto\n%s", before, after)
	}
}

func TestCountsAreLimited(t *testing.T) {
	h := newHouse(t)
	h.quotaQueue(3)
	for i := 1; i < resource.MaxEnvironments; i++ {
		h.environment(fmt.Sprint("env", i), resource.NumInstances, 1)
	}
	err := h.governor.CreateEnvironment(h.ctx(), resource.Environment{Name: "more", Limits: limits(g5, 1)})
	mustRefuse(t, err, governor.Limit, "There are 50 service environments, the most there may be. Delete one that is not needed.")

	for i := 1; i < resource.MaxQueues; i++ {
		must(t, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: fmt.Sprint("q", i), Environment: "env1"}))
	}
	err = h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "more", Environment: "env1"})
	mustRefuse(t, err, governor.Limit, "There are 50 job queues, the most there may be. Delete one that is not needed.")

	for i := range resource.MaxSharesPerQueue {
		s := share(fmt.Sprint("s", i), 1, resource.Lend, -1, false)
		s.Queue = "q"
		must(t, h.governor.CreateShare(h.ctx(), s))
	}
	s := share("more", 1, resource.Lend, -1, false)
	s.Queue = "q"
	mustRefuse(t, h.governor.CreateShare(h.ctx(), s), governor.Limit, "Job queue q has 20 quota shares, the most there may be. Delete one that is not needed.")
}

func TestClientTokens(t *testing.T) {
	h := newHouse(t)
	h.plainQueue(1)
	with := func(token, hash string) func(*governor.Submission) {
		return func(s *governor.Submission) { s.Token, s.Hash = token, hash }
	}
	first := h.submit(simulated.Program{Runtime: time.Minute}, submission("first", 1, with("token", "same")))

	again := func() job.Job {
		t.Helper()
		entries := len(h.journal())
		j, err := h.governor.Submit(h.ctx(), submission("first", 1, with("token", "same")))
		must(t, err)
		if got := len(h.journal()); got != entries {
			t.Errorf("a repeated submission was journaled")
		}
		return j
	}
	if j := again(); j.ID != first.ID {
		t.Errorf("a repeated submission made job %s beside %s", j.ID, first.ID)
	}
	_, err := h.governor.Submit(h.ctx(), submission("first", 1, with("token", "other")))
	mustRefuse(t, err, governor.Invalid, `clientToken "token" was sent before, for job `+first.ID+`, with other parameters. Use a new token for a new job.`)

	h.turn(time.Hour)
	h.restart()
	if j := again(); j.ID != first.ID || j.Status != job.Succeeded {
		t.Errorf("after a restart: job %s %s, want %s %s", j.ID, j.Status, first.ID, job.Succeeded)
	}
	h.turnTo(24*time.Hour + time.Second)
	second, err := h.governor.Submit(h.ctx(), submission("first", 1, with("token", "other")))
	must(t, err)
	if second.ID == first.ID {
		t.Error("a token was remembered for more than 24 hours")
	}
}
