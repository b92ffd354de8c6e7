package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// twoTeams owns one GPU each of two; both lend and borrow.
const twoTeams = `
capacity: {gpu: 2}
shares:
- {name: a, quota: {gpu: 1}}
- {name: b, quota: {gpu: 1}, inSharePreemption: true}
`

// diary writes down what happens in a world.
type diary struct{ lines []string }

func (d *diary) note(e Event) {
	line := fmt.Sprintf("%s %s %s", Spell(e.At), e.Kind, e.Job)
	switch e.Kind {
	case Granted:
		line += fmt.Sprintf(" %s [%s]", e.Ground, e.Borrowed)
	case Preempted:
		line += fmt.Sprintf(" %s for %s", e.Ground, e.For)
	case Released:
		line += fmt.Sprintf(" preempted=%t lost=%s", e.Preempted, Spell(e.Lost))
	case Failed:
		line += " " + e.Reason
	default:
	}
	d.lines = append(d.lines, line)
}

func newWorld(t *testing.T, text string) (*World, *diary) {
	t.Helper()
	c, err := ParseCohort("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{}
	return NewWorld(c, d.note), d
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func one(name, share string, runtime time.Duration) Submission {
	return Submission{Job: name, Share: share, Demand: quota.Amounts{"gpu": 1}, Runtime: runtime}
}

func TestWorldTellsAJobsStory(t *testing.T) {
	retries := 1
	tests := []struct {
		name   string
		policy string
		live   func(w *World, must func(...error))
		want   []string
	}{
		{
			name: "a job borrows, is preempted, resumes from its checkpoint and finishes",
			live: func(w *World, must func(...error)) {
				guest := one("guest", "a", 30*time.Minute)
				guest.CheckpointEvery = 10 * time.Minute
				must(w.Submit(one("own", "a", Endless)), w.Submit(guest), w.Advance(25*time.Minute))
				must(w.Submit(one("owner", "b", 5*time.Minute)), w.Finish())
			},
			want: []string{
				"0s submit own", "0s submit guest",
				"0s grant own entitled []", "0s grant guest borrow [1 gpu]",
				"25m submit owner",
				"25m preempt guest reclaim for owner",
				"25m release guest preempted=true lost=5m", "25m requeue guest",
				"25m grant owner entitled []",
				"30m release owner preempted=false lost=0s", "30m finish owner",
				"30m grant guest borrow [1 gpu]",
				"40m release guest preempted=false lost=0s", "40m finish guest",
			},
		},
		{
			name:   "a victim holds its capacity until its grace period is over, and keeps nothing of it",
			policy: "gracePeriod: 2m" + twoTeams,
			live: func(w *World, must func(...error)) {
				guest := one("guest", "a", time.Hour)
				guest.CheckpointEvery, guest.PreemptionRetries = time.Minute, &retries
				must(w.Submit(one("own", "a", Endless)), w.Submit(guest), w.Advance(90*time.Second))
				must(w.Submit(one("owner", "b", time.Hour)), w.Advance(4*time.Minute), w.Settle())
			},
			want: []string{
				"0s submit own", "0s submit guest",
				"0s grant own entitled []", "0s grant guest borrow [1 gpu]",
				"1m30s submit owner",
				"1m30s preempt guest reclaim for owner",
				"3m30s release guest preempted=true lost=30s", "3m30s requeue guest",
				"3m30s grant owner entitled []",
			},
		},
		{
			name: "what runs for longer than declared fails, and is retried while attempts are left",
			live: func(w *World, must func(...error)) {
				long := one("long", "a", time.Hour)
				long.MaxRuntime, long.Attempts, long.CheckpointEvery = 25*time.Minute, 2, 20*time.Minute
				must(w.Submit(long), w.Finish())
			},
			want: []string{
				"0s submit long", "0s grant long entitled []",
				"25m release long preempted=false lost=5m", "25m requeue long", "25m grant long entitled []",
				"50m release long preempted=false lost=5m", "50m fail long " + job.ReasonMaxRuntime,
			},
		},
		{
			name: "a runtime of exactly what is declared is enough",
			live: func(w *World, must func(...error)) {
				exact := one("exact", "a", time.Hour)
				exact.MaxRuntime = time.Hour
				must(w.Submit(exact), w.Finish())
			},
			want: []string{
				"0s submit exact", "0s grant exact entitled []",
				"1h release exact preempted=false lost=0s", "1h finish exact",
			},
		},
		{
			name:   "a preempted job that is terminated does not come back",
			policy: "gracePeriod: 1m" + twoTeams,
			live: func(w *World, must func(...error)) {
				low, high := one("low", "b", Endless), one("high", "b", Endless)
				high.Priority = 1
				must(w.Submit(one("own", "a", Endless)), w.Submit(low), w.Advance(time.Second))
				must(w.Submit(high), w.Advance(2*time.Second))
				must(w.Terminate("low", "not needed"), w.Terminate("own", "done"), w.Finish())
				must(w.Terminate("low", "again"))
			},
			want: []string{
				"0s submit own", "0s submit low", "0s grant own entitled []", "0s grant low entitled []",
				"1s submit high", "1s preempt low in-share for high",
				"1m1s release low preempted=false lost=1s", "1m1s fail low not needed", "1m1s grant high entitled []",
				"1m2s release own preempted=false lost=2s", "1m2s fail own done",
			},
		},
		{
			name: "waiting jobs end at once, disabled shares take none",
			policy: `
capacity: {gpu: 1}
shares:
- {name: a, quota: {gpu: 1}}
- {name: b, quota: {gpu: 0}, disabled: true}`,
			live: func(w *World, must func(...error)) {
				must(w.Submit(one("runs", "a", Endless)), w.Submit(one("waits", "a", Endless)), w.Submit(one("late", "b", Endless)))
				must(w.Settle(), w.Terminate("waits", "not needed"), w.Succeed("runs"), w.Finish())
			},
			want: []string{
				"0s submit runs", "0s submit waits", "0s submit late",
				"0s fail late Share b is disabled and takes no jobs.",
				"0s grant runs entitled []",
				"0s fail waits not needed",
				"0s release runs preempted=false lost=0s", "0s finish runs",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			policy := test.policy
			if policy == "" {
				policy = twoTeams
			}
			w, d := newWorld(t, policy)
			test.live(w, func(errs ...error) { must(t, errs...) })
			if !slices.Equal(d.lines, test.want) {
				t.Errorf("happened:\n%s\nwant:\n%s", strings.Join(d.lines, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestWorldRefuses(t *testing.T) {
	w, _ := newWorld(t, twoTeams)
	must(t, w.Submit(one("a", "a", time.Minute)), w.Submit(one("b", "a", time.Minute)), w.Submit(one("c", "a", Endless)))
	must(t, w.Advance(time.Minute), w.Settle())
	for _, test := range []struct {
		what string
		got  error
		want error
	}{
		{"a share that is not there", w.Submit(one("x", "none", 0)), ErrUnknownShare},
		{"a name that is taken", w.Submit(one("a", "a", 0)), ErrJobExists},
		{"no demand", w.Submit(Submission{Job: "x", Share: "a"}), quota.ErrDemand},
		{"the past", w.Advance(0), ErrPast},
		{"termination of nobody", w.Terminate("x", ""), ErrUnknownJob},
		{"success of nobody", w.Succeed("x"), ErrUnknownJob},
		{"priority of nobody", w.SetPriority("x", 1), ErrUnknownJob},
		{"priority of one that has finished", w.SetPriority("a", 1), ErrFinished},
		{"failure of one that has finished", w.Fail("a", ""), ErrFinished},
	} {
		if !errors.Is(test.got, test.want) {
			t.Errorf("%s: error %v, want %v", test.what, test.got, test.want)
		}
	}
	must(t, w.Submit(one("waits", "b", Endless)))
	if err := w.Fail("waits", ""); !errors.Is(err, ErrNotRunning) {
		t.Errorf("failure of a waiting job: %v", err)
	}
	must(t, w.Settle())
}

func TestEventsAreWrittenAsLines(t *testing.T) {
	demand := quota.Amounts{"gpu": 2}
	for _, test := range []struct {
		event Event
		want  string
	}{
		{
			Event{At: 1500 * time.Millisecond, Kind: Submitted, Job: "j", Share: "s", Demand: demand},
			`{"t":1.5,"event":"submit","job":"j","share":"s","demand":{"gpu":2}}`,
		},
		{
			Event{Kind: Granted, Job: "j", Share: "s", Demand: demand, Ground: quota.Borrow, Borrowed: quota.Amounts{"gpu": 1}},
			`{"t":0,"event":"grant","job":"j","share":"s","demand":{"gpu":2},"borrowed":{"gpu":1}}`,
		},
		{
			Event{Kind: Granted, Job: "j", Share: "s", Demand: demand, Ground: quota.Entitled},
			`{"t":0,"event":"grant","job":"j","share":"s","demand":{"gpu":2},"borrowed":{}}`,
		},
		{
			Event{Kind: Preempted, Job: "j", Share: "s", Demand: demand, Ground: quota.InShare, For: "k"},
			`{"t":0,"event":"preempt","job":"j","share":"s","demand":{"gpu":2},"for":"k","ground":"in-share"}`,
		},
		{
			Event{Kind: Failed, Job: "j", Share: "s", Demand: demand, Reason: "exit code 1"},
			`{"t":0,"event":"fail","job":"j","share":"s","demand":{"gpu":2},"reason":"exit code 1"}`,
		},
	} {
		line, err := json.Marshal(test.event)
		if err != nil || string(line) != test.want {
			t.Errorf("%v\n got %s (%v)\nwant %s", test.event, line, err, test.want)
		}
	}
}
