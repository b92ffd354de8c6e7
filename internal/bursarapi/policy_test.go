package bursarapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/scenario"
)

const policyText = `name: a
capacity: {ml.g5.xlarge: 3, ml.p5.48xlarge/vcpu: 0}
idleAssignment: FairShare
queueing: Backfill
gracePeriod: 1m
shares:
- {name: QS1, quota: {ml.g5.xlarge: 2, ml.p5.48xlarge/vcpu: 0}, borrowLimit: 50, lendLimits: {ml.g5.xlarge: 0}, weight: 3, disabled: true}
- {name: QS2, quota: {ml.g5.xlarge: 1}, sharing: Reserve}
`

var policyDeclared = governor.Declaration{
	Name: "a", Limits: []resource.Limit{{Unit: "ml.g5.xlarge", Max: 3}}, IdleAssignment: resource.IdleFairShare,
	Rules: resource.Rules{Queueing: resource.Backfill, AssumedCheckpointInterval: time.Hour, GracePeriod: time.Minute},
	Shares: []resource.Share{
		{
			Name: "QS1", State: resource.Disabled, Limits: []resource.Limit{{Unit: "ml.g5.xlarge", Max: 2}},
			Sharing: resource.LendAndBorrow, BorrowLimit: 50, LendLimits: []resource.Limit{{Unit: "ml.g5.xlarge", Max: 0}}, Weight: 3,
		},
		{
			Name: "QS2", State: resource.Enabled, Limits: []resource.Limit{{Unit: "ml.g5.xlarge", Max: 1}},
			Sharing: resource.Reserve, BorrowLimit: resource.Unlimited, Weight: 1,
		},
	},
}

func TestPoliciesArePlannedAppliedAndExported(t *testing.T) {
	b := library()
	c := serve(t, b, nil)
	plan, err := c.Plan(t.Context(), []byte(policyText), false)
	if err != nil || plan.Version != "7-planned" {
		t.Fatalf("plan: %+v, %v", plan, err)
	}
	if diff := cmp.Diff(policyDeclared, b.declared, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if plan, err = c.Apply(t.Context(), []byte(policyText), true, "7-planned"); err != nil || plan.Version != "7-planned" || !b.declared.Prune {
		t.Errorf("apply: %+v, %v, of %+v", plan, err, b.declared)
	}
	text, err := c.Policy(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Plan(t.Context(), []byte(text), true); err != nil {
		t.Fatal(err)
	}
	want := policyDeclared
	want.Prune = true
	if diff := cmp.Diff(want, b.declared, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("planned what was exported (-want +got):\n%s", diff)
	}
	standing, err := c.Standing(t.Context(), "a")
	if err != nil || standing.Policy != text || standing.Grace != time.Minute || !standing.At.Equal(at(9)) || len(standing.Jobs) != len(b.jobs) {
		t.Errorf("standing: %+v, %v", standing, err)
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	c := serve(t, library(), nil)
	plan := func(text string) func() error {
		return func() error { _, err := c.Plan(t.Context(), []byte(text), false); return err }
	}
	tests := []struct {
		name    string
		ask     func() error
		status  int
		message string
	}{
		{"nothing", plan(""), http.StatusBadRequest, "policy: the file is empty"},
		{"no name", plan("{capacity: {}, shares: []}"), http.StatusBadRequest, "the policy has no name; give it that of its job queue, as in name: training"},
		{"gang", plan("{name: a, capacity: {}, shares: [], gang: {timeout: 1m}}"), http.StatusBadRequest, "leave gang out"},
		{"a line", plan("name: a\ncapacity: {}\nshare: []\n"), http.StatusBadRequest, "policy:3: the cohort has no key share"},
		{"too much", plan(strings.Repeat("#", MaxPolicy+1)), http.StatusRequestEntityTooLarge, "the policy file has more than 1048576 bytes"},
		{"an old plan", func() error { _, err := c.Apply(t.Context(), []byte(policyText), false, "old"); return err }, http.StatusConflict, "it changed"},
		{"no queue", func() error { _, err := c.Policy(t.Context(), ""); return err }, http.StatusBadRequest, "queue is missing; name a job queue"},
		{"another queue", func() error { _, err := c.Policy(t.Context(), "z"); return err }, http.StatusNotFound, "no such queue"},
		{"standing of no queue", func() error { _, err := c.Standing(t.Context(), ""); return err }, http.StatusBadRequest, "queue is missing"},
		{"standing of another queue", func() error { _, err := c.Standing(t.Context(), "z"); return err }, http.StatusNotFound, "no such queue"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.ask()
			var refused *StatusError
			if !errors.As(err, &refused) || refused.Status != tt.status || !strings.Contains(refused.Message, tt.message) {
				t.Errorf("got %v, want status %d and %q", err, tt.status, tt.message)
			}
		})
	}
}

// TestAnyPolicySurvivesItsFile writes what is declared as a policy file and
// reads it again.
func TestAnyPolicySurvivesItsFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := anyDeclaration().Draw(rt, "declaration")
		text, err := cohortOf(want).Encode()
		if err != nil {
			rt.Fatal(err)
		}
		cohort, err := scenario.ParseCohort("policy", text)
		if err != nil {
			rt.Fatalf("%v in\n%s", err, text)
		}
		got, err := declarationOf(cohort)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("-declared +read:\n%s\nfrom\n%s", diff, text)
		}
	})
}

func anyDeclaration() *rapid.Generator[governor.Declaration] {
	units := []string{"ml.g5.xlarge", "ml.p5.48xlarge", "ml.p5.48xlarge/vcpu"}
	limits := func(t *rapid.T, least int64) []resource.Limit {
		var limits []resource.Limit
		for _, u := range units {
			if amount := rapid.Int64Range(-2, 9).Draw(t, u); amount >= least {
				limits = append(limits, resource.Limit{Unit: u, Max: amount})
			}
		}
		return limits
	}
	duration := func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 5000).Draw(t, "seconds")) * time.Second
	}
	return rapid.Custom(func(t *rapid.T) governor.Declaration {
		d := governor.Declaration{
			Name: "q", IdleAssignment: rapid.SampledFrom([]string{resource.IdleFIFO, resource.IdleFairShare}).Draw(t, "idle assignment"),
			Rules: resource.Rules{
				Queueing:                  rapid.SampledFrom([]resource.Queueing{resource.Strict, resource.BestEffort, resource.Backfill}).Draw(t, "queueing"),
				PriorityScope:             rapid.SampledFrom([]resource.PriorityScope{resource.InEachShare, resource.InCohort}).Draw(t, "scope"),
				Victims:                   rapid.SampledFrom([]resource.Victims{resource.LeastLostWork, resource.MostOverQuota, resource.NewestFirst}).Draw(t, "victims"),
				BorrowerPreemption:        rapid.Bool().Draw(t, "borrower preemption"),
				Rebalance:                 rapid.Bool().Draw(t, "rebalance"),
				ShareUnallocated:          rapid.Bool().Draw(t, "share unallocated"),
				AssumedCheckpointInterval: duration(t) + time.Second,
				MinRuntime:                duration(t),
				GracePeriod:               duration(t),
			},
		}
		for _, u := range units { // all of them, so that limits may name any
			d.Limits = append(d.Limits, resource.Limit{Unit: u, Max: rapid.Int64Range(1, 99).Draw(t, "capacity")})
		}
		for _, name := range []string{"a", "b", "0", "true"} {
			d.Shares = append(d.Shares, resource.Share{
				Name: name, Limits: limits(t, 1),
				Sharing:     rapid.SampledFrom([]resource.Sharing{resource.Reserve, resource.Lend, resource.LendAndBorrow}).Draw(t, "sharing"),
				BorrowLimit: rapid.Int64Range(-1, 300).Draw(t, "borrow limit"), BorrowLimits: limits(t, 0), LendLimits: limits(t, 0),
				InSharePreemption: rapid.Bool().Draw(t, "preemption"), Weight: rapid.Int64Range(0, 5).Draw(t, "weight"),
				State: rapid.SampledFrom([]resource.State{resource.Enabled, resource.Disabled}).Draw(t, "state"),
			})
		}
		return d
	})
}
