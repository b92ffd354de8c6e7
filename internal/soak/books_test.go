package soak

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
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
	j.write(store.Command, "SubmitServiceJob", id, struct {
		ID  string
		Seq int64
		governor.Submission
	}{id, seq, governor.Submission{Queue: "q", Demand: []job.Amount{{Unit: g5, Quantity: instances}}}})
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
