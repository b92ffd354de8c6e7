package soak

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// journal writes lines as a governor would.
type journal struct {
	t       *testing.T
	entries []store.Entry
}

func (j *journal) write(kind store.EntryKind, name, subject string, data any) {
	j.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		j.t.Fatal(err)
	}
	n := int64(len(j.entries)) + 1
	j.entries = append(j.entries, store.Entry{
		Seq: n, At: dawn.Add(time.Duration(n) * time.Second), Kind: kind, Name: name, Subject: subject, By: time.Duration(n).String(), Data: raw,
	})
}

func (j *journal) submit(id string, seq, instances int64) {
	j.t.Helper()
	j.submitTo(governor.Submission{Queue: "q"}, id, seq, instances)
}

func (j *journal) submitTo(to governor.Submission, id string, seq, instances int64) {
	j.t.Helper()
	to.Demand = []job.Amount{{Unit: g5, Quantity: instances}}
	j.write(store.Command, "SubmitServiceJob", id, struct {
		ID  string
		Seq int64
		governor.Submission
	}{id, seq, to})
}

// grant has a job be granted and go on.
func (j *journal) grant(id string, ground quota.Ground) {
	j.t.Helper()
	j.write(store.Decision, "grant", id, decided{Ground: ground})
	j.write(store.State, "SCHEDULED", id, map[string]int{"run": 1})
}

// succeed has a job end.
func (j *journal) succeed(id string) {
	j.t.Helper()
	at := dawn.Add(time.Duration(len(j.entries)) * time.Second)
	j.write(store.Seen, "ended", id, runner.Observation{Key: runner.Key{Job: id, Run: 1}, Event: runner.Ended, Outcome: runner.Succeeded, At: at})
	j.write(store.State, "SUCCEEDED", id, map[string]any{"run": 1, "reason": job.ReasonCompleted})
}

// fairQueue declares a fair-share queue beside the other one.
func (j *journal) fairQueue(reservation int64) {
	j.t.Helper()
	j.write(store.Command, "CreateSchedulingPolicy", "scheduling-policy/f", resource.Policy{Name: "f", FairShare: &resource.FairShare{Decay: time.Hour, Reservation: reservation}})
	j.write(store.Command, "CreateJobQueue", "job-queue/f", resource.Queue{Name: "f", State: resource.Enabled, Environment: "e", Policy: "f"})
}

func of(identifier string) governor.Submission {
	return governor.Submission{Queue: "f", ShareIdentifier: identifier}
}

// declare applies a policy to a queue a of two instances, and of the shares
// named, each of which owns one.
func (j *journal) declare(names ...string) {
	j.t.Helper()
	d := governor.Declaration{Name: "a", Limits: []resource.Limit{{Unit: g5, Max: 2}}, IdleAssignment: resource.IdleFIFO, Prune: true}
	for _, name := range names {
		d.Shares = append(d.Shares, resource.Share{
			Name: name, State: resource.Enabled, Limits: []resource.Limit{{Unit: g5, Max: 1}},
			Sharing: resource.LendAndBorrow, BorrowLimit: resource.Unlimited,
		})
	}
	j.write(store.Command, "ApplyPolicy", "job-queue/a", d)
}

func in(share string) governor.Submission { return governor.Submission{Queue: "a", Share: share} }

// reclaim has x reclaim what y has borrowed, and be granted it.
func (j *journal) reclaim() {
	j.t.Helper()
	j.declare("x", "y")
	j.submitTo(in("y"), "y1", 1, 1)
	j.grant("y1", quota.Entitled)
	j.submitTo(in("y"), "y2", 2, 1)
	j.grant("y2", quota.Borrow)
	j.submitTo(in("x"), "x1", 3, 1)
	j.write(store.Decision, "preempt", "y2", decided{Ground: quota.Reclaim, For: "x1"})
	j.write(store.Seen, "ended", "y2", runner.Observation{Key: runner.Key{Job: "y2", Run: 1}, Event: runner.Ended, Outcome: runner.Stopped})
	j.write(store.State, "RUNNABLE", "y2", map[string]int{"run": 1})
	j.grant("x1", quota.Entitled)
}

const g5 = "ml.g5.xlarge"

// TestBooksFindWhatIsWrong has the books read journals with something wrong in
// the last line, after an environment of two and a queue on it.
func TestBooksFindWhatIsWrong(t *testing.T) {
	grant := decided{Ground: "entitled"}
	tests := []struct {
		name  string
		write func(*journal)
		check string // the promise that is broken; empty: none
	}{
		{"nothing", func(j *journal) {
			j.submit("a", 1, 2)
			j.write(store.Decision, "grant", "a", grant)
			j.write(store.State, "SCHEDULED", "a", map[string]int{"run": 1})
		}, ""},
		{"a gap", func(j *journal) {
			j.submit("a", 1, 2)
			j.entries[len(j.entries)-1].Seq++
		}, "the journal has no gaps"},
		{"a step back in time", func(j *journal) {
			j.submit("a", 1, 2)
			j.entries[len(j.entries)-1].At = dawn
		}, "the journal goes forward in time"},
		{"a number left out", func(j *journal) { j.submit("a", 2, 2) }, "jobs are numbered in order of acceptance"},
		{"too much granted", func(j *journal) {
			j.submit("a", 1, 3)
			j.write(store.Decision, "grant", "a", grant)
		}, "I1: capacity"},
		{"granted twice", func(j *journal) {
			j.submit("a", 1, 1)
			j.write(store.Decision, "grant", "a", grant)
			j.write(store.Decision, "grant", "a", grant)
		}, "I9: no job runs twice"},
		{"passed", func(j *journal) {
			j.submit("a", 1, 3)
			j.submit("b", 2, 1)
			j.write(store.Decision, "grant", "b", grant)
		}, "Strict: nothing passes the head"},
		{"preempted without quotas", func(j *journal) {
			j.submit("a", 1, 2)
			j.submit("b", 2, 2)
			j.write(store.Decision, "grant", "a", grant)
			j.write(store.State, "SCHEDULED", "a", map[string]int{"run": 1})
			j.write(store.Decision, "preempt", "a", decided{Ground: "reclaim", For: "b"})
		}, "only quota management preempts"},
		{"a state skipped", func(j *journal) {
			j.submit("a", 1, 1)
			j.write(store.State, "RUNNING", "a", nil)
		}, "states move along allowed edges only"},
		{"ended for no reason", func(j *journal) {
			j.submit("a", 1, 1)
			j.write(store.State, "FAILED", "a", nil)
		}, "states change for a reason"},
		{"old news", func(j *journal) {
			j.submit("a", 1, 1)
			j.write(store.Seen, "ended", "a", runner.Observation{Key: runner.Key{Job: "a", Run: 1}, Event: runner.Ended})
		}, "only news of the present attempt count"},
		{"taken by what is disabled", func(j *journal) {
			disabled := resource.Disabled
			j.write(store.Command, "UpdateJobQueue", "job-queue/q", governor.QueueChange{Name: "q", State: &disabled})
			j.submit("a", 1, 1)
		}, "what is disabled or deleted takes no jobs"},
		{"identifiers in turn", func(j *journal) {
			j.fairQueue(0)
			j.submitTo(of("ada"), "a", 1, 2)
			j.grant("a", quota.Entitled)
			j.submitTo(of("ada"), "b", 2, 2)
			j.submitTo(of("bob"), "c", 3, 2)
			j.succeed("a")
			j.grant("c", quota.Entitled)
			j.succeed("c")
			j.grant("b", quota.Entitled)
		}, ""},
		{"who used nothing is passed", func(j *journal) {
			j.fairQueue(0)
			j.submitTo(of("ada"), "a", 1, 2)
			j.grant("a", quota.Entitled)
			j.submitTo(of("ada"), "b", 2, 2)
			j.submitTo(of("bob"), "c", 3, 2)
			for range 100 {
				j.write(store.Command, "TagResource", "a", nil)
			}
			j.succeed("a")
			j.grant("b", quota.Entitled)
		}, "who goes first is granted first"},
		{"a queue of higher priority is passed", func(j *journal) {
			high := int64(1)
			j.fairQueue(0)
			j.write(store.Command, "UpdateJobQueue", "job-queue/f", governor.QueueChange{Name: "f", Priority: &high})
			j.submit("a", 1, 2)
			j.submitTo(of("ada"), "b", 2, 2)
			j.grant("a", quota.Entitled)
		}, "who goes first is granted first"},
		{"what is reserved is taken", func(j *journal) {
			j.fairQueue(50)
			j.submitTo(of("ada"), "a", 1, 1)
			j.submitTo(of("ada"), "b", 2, 1)
			j.grant("a", quota.Entitled)
			j.grant("b", quota.Entitled)
		}, "capacity is reserved for identifiers that use nothing"},
		{"what is reserved is for others", func(j *journal) {
			j.fairQueue(50)
			j.submitTo(of("ada"), "a", 1, 1)
			j.submitTo(of("bob"), "b", 2, 1)
			j.grant("a", quota.Entitled)
			j.grant("b", quota.Entitled)
		}, ""},
		{"reclaimed", (*journal).reclaim, ""},
		{"reclaimed, and back", func(j *journal) {
			j.reclaim()
			j.write(store.Decision, "preempt", "x1", decided{Ground: quota.Reclaim, For: "y2"})
		}, "I8: no ping-pong"},
		{"outbid against the policy", func(j *journal) {
			j.reclaim()
			j.submitTo(in("x"), "x2", 4, 1)
			j.write(store.Decision, "preempt", "y1", decided{Ground: quota.FromBorrower, For: "x2"})
		}, "borrowers are outbid where the policy says so, by higher priorities"},
		{"a share that is left out takes jobs", func(j *journal) {
			j.declare("x", "y")
			j.declare("x")
			j.submitTo(in("y"), "y1", 1, 1)
		}, "what is disabled or deleted takes no jobs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := &journal{t: t}
			j.write(store.Command, "CreateServiceEnvironment", "service-environment/e", resource.Environment{
				Name: "e", State: resource.Enabled, Limits: []resource.Limit{{Unit: g5, Max: 2}},
			})
			j.write(store.Command, "CreateJobQueue", "job-queue/q", resource.Queue{Name: "q", State: resource.Enabled, Environment: "e"})
			tt.write(j)
			err := newBooks().lines(j.entries)
			var b *breach
			switch {
			case tt.check == "" && err != nil:
				t.Errorf("found %v in a journal that is right", err)
			case tt.check != "" && (!errors.As(err, &b) || b.check != tt.check):
				t.Errorf("found %v, want: %s", err, tt.check)
			}
		})
	}
}
