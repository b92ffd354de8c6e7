package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
	"github.com/bursar-io/bursar/internal/simulation"
)

// story is a small history: a borrows from b, loses it and half an hour of
// work, and goes on from its checkpoint; what c wants can never be had.
const (
	storyPolicy = `
capacity: {gpu: 4}
shares:
- {name: a, quota: {gpu: 2}}
- {name: b, quota: {gpu: 2}}
- {name: c, quota: {gpu: 0}}
`
	storyTrace = `submit_s,runtime_s,team,gpus,checkpoint_s,job
0,7200,a,4,3600,guest
5400,3600,b,2,,owner
60,60,c,5,,dreamer
`
)

func policy(t interface {
	Helper()
	Fatal(...any)
}, name, text string) simulation.Policy {
	t.Helper()
	c, err := scenario.ParseCohort(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Policy{Name: name, Cohort: c}
}

func trace(t *testing.T, text string) *simulation.Trace {
	t.Helper()
	parsed, err := readTrace(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func replay(t *testing.T, p simulation.Policy, tr *simulation.Trace, o simulation.Options) *simulation.Run {
	t.Helper()
	run, err := simulation.Replay(t.Context(), p, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestSummary(t *testing.T) {
	got := replay(t, policy(t, "p.yaml", storyPolicy), trace(t, storyTrace), simulation.Options{}).Summary
	none := simulation.Distribution{Count: 1}
	want := simulation.Summary{
		Policy: "p.yaml", Jobs: 3, Finished: 2, NeverStarted: 1,
		MakespanS: 12600, Unit: "gpu", Utilization: 12.0 / 14, Borrowed: 5.0 / 14,
		WaitS:            simulation.Distribution{Count: 2},
		WaitWithinQuotaS: none,
		WaitAgainS:       simulation.Distribution{Count: 1, Mean: 3600, P50: 3600, P90: 3600, P99: 3600, Max: 3600},
		Preemptions:      1, LostGPUHours: 2,
		Shares: map[string]simulation.ShareSummary{
			"a": {Jobs: 1, WaitS: none, Preemptions: 1, LostGPUHours: 2, HeldGPUHours: 10, BorrowedGPUHours: 5},
			"b": {Jobs: 1, WaitS: none, WaitWithinQuotaS: none, HeldGPUHours: 2},
			"c": {Jobs: 1},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestSummaryIsOneObject(t *testing.T) {
	o := simulation.Options{Assume: simulation.Assumptions{CheckpointEvery: time.Hour, DeclaredRuntime: 1.5}}
	raw, err := json.Marshal(replay(t, policy(t, "p.yaml", storyPolicy), trace(t, storyTrace), o).Summary)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"policy":"p.yaml","assumed":{"checkpoint_s":3600,"declared_runtime":1.5},"jobs":3,`, `"makespan_s":12600,`, `"utilization":0.857`,
		`"wait_s":{"count":2,"mean":0,"p50":0,"p90":0,"p99":0,"max":0}`, `"wait_within_quota_s":`, `"preemptions":1,"lost_gpu_hours":2,`, `"shares":{"a":{"jobs":1,`,
	} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("%s is missing in\n%s", part, raw)
		}
	}
	if strings.Contains(string(raw), `"units"`) {
		t.Errorf("there is one unit, and yet\n%s", raw)
	}
}

func TestSummaryOfSeveralUnits(t *testing.T) {
	const text = "capacity: {cpu: 10, gpu: 4}\nshares:\n- {name: a, quota: {cpu: 10, gpu: 4}}\n"
	tr, err := readTrace("submit_s,runtime_s,team,demand\n0,100,a,gpu=2;cpu=1\n0,50,a,cpu=9\n")
	if err != nil {
		t.Fatal(err)
	}
	got := replay(t, policy(t, "p.yaml", text), tr, simulation.Options{Unit: "gpu"}).Summary
	want := map[quota.Unit]simulation.UnitSummary{
		"cpu": {Capacity: 10, Utilization: 0.55},
		"gpu": {Capacity: 4, Utilization: 0.5},
	}
	if diff := cmp.Diff(want, got.Units, cmpopts.EquateApprox(1e-12, 0)); diff != "" || got.Unit != "gpu" || got.Utilization != 0.5 {
		t.Errorf("the summary is about %s, utilization %g; units (-want +got):\n%s", got.Unit, got.Utilization, diff)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	got := replay(t, policy(t, "p.yaml", storyPolicy), trace(t, "submit_s,runtime_s,team,gpus\n"), simulation.Options{}).Summary
	if got.Jobs != 0 || got.MakespanS != 0 || got.Utilization != 0 {
		t.Errorf("nothing came to %+v", got)
	}
}

func TestReplayRefuses(t *testing.T) {
	const header = "submit_s,runtime_s,team,demand\n"
	tests := map[string]struct{ policy, trace, want string }{
		"an unknown share": {storyPolicy, header + "0,1,a,gpu=1\n0,1,d,gpu=1\n", `t.csv:3: column team: "d": must be a share of p.yaml, which has ["a" "b" "c"]`},
		"an unknown unit":  {storyPolicy, header + "0,1,a,tpu=1\n", `t.csv:2: job job-1 wants tpu, a unit that p.yaml does not have; it has ["gpu"]`},
		"no capacity":      {"capacity: {}\nshares:\n- {name: a}\n", header, "replay p.yaml: the policy has no capacity"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := simulation.Replay(t.Context(), policy(t, "p.yaml", tt.policy), trace(t, tt.trace), simulation.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReplayEndsWhenItsContextDoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := simulation.Replay(ctx, policy(t, "p.yaml", storyPolicy), trace(t, storyTrace), simulation.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReplayTellsItsProgress(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("submit_s,runtime_s,team,gpus\n")
	for i := range 1200 {
		fmt.Fprintf(&rows, "%d,1,a,1\n", i)
	}
	var told []int
	replay(t, policy(t, "p.yaml", storyPolicy), trace(t, rows.String()), simulation.Options{Progress: func(done int) { told = append(told, done) }})
	if want := []int{500, 1000}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestEvents(t *testing.T) {
	var out bytes.Buffer
	w := simulation.NewEventWriter(&out)
	replay(t, policy(t, "p.yaml", storyPolicy), trace(t, storyTrace), simulation.Options{Observe: w.Observe})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	type event struct {
		T                  float64
		Event, Job, Share  string
		For, Ground        string
		Demand, Borrowed   map[string]int64
		MoreThanIsExpected any
	}
	var got []event
	for line := range strings.Lines(out.String()) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, e)
	}
	four, two, five := map[string]int64{"gpu": 4}, map[string]int64{"gpu": 2}, map[string]int64{"gpu": 5}
	want := []event{
		{T: 0, Event: "submit", Job: "guest", Share: "a", Demand: four},
		{T: 0, Event: "grant", Job: "guest", Share: "a", Demand: four, Borrowed: two},
		{T: 60, Event: "submit", Job: "dreamer", Share: "c", Demand: five},
		{T: 5400, Event: "submit", Job: "owner", Share: "b", Demand: two},
		{T: 5400, Event: "preempt", Job: "guest", Share: "a", Demand: four, For: "owner", Ground: "reclaim"},
		{T: 5400, Event: "release", Job: "guest", Share: "a", Demand: four},
		{T: 5400, Event: "requeue", Job: "guest", Share: "a", Demand: four},
		{T: 5400, Event: "grant", Job: "owner", Share: "b", Demand: two, Borrowed: map[string]int64{}},
		{T: 9000, Event: "release", Job: "owner", Share: "b", Demand: two},
		{T: 9000, Event: "finish", Job: "owner", Share: "b", Demand: two},
		{T: 9000, Event: "grant", Job: "guest", Share: "a", Demand: four, Borrowed: two},
		{T: 12600, Event: "release", Job: "guest", Share: "a", Demand: four},
		{T: 12600, Event: "finish", Job: "guest", Share: "a", Demand: four},
	}
	ground := cmpopts.IgnoreFields(event{}, "Ground") // a grant has one too
	if diff := cmp.Diff(want, got, ground); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got[4].Ground != "reclaim" {
		t.Errorf("preempted on the ground %q", got[4].Ground)
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestEventsOnAFullDisk(t *testing.T) {
	w := simulation.NewEventWriter(fullDisk{})
	w.Observe(scenario.Event{Kind: scenario.Submitted})
	if err := w.Flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

// The summary of random histories is what a plain look at their events gives.
func TestSummaryAgreesWithPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy(t, "p.yaml", drawPolicy(t))
		tr, err := simulation.ReadTrace("t.csv", strings.NewReader(drawTrace(t)), "")
		if err != nil {
			t.Fatal(err)
		}
		var events []scenario.Event
		run, err := simulation.Replay(t.Context(), p, tr, simulation.Options{
			Unit:    "gpu",
			Assume:  simulation.Assumptions{CheckpointEvery: time.Duration(rapid.IntRange(0, 50).Draw(t, "checkpoint")) * time.Second},
			Observe: func(e scenario.Event) { events = append(events, e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		got := run.Summary
		got.Policy, got.Assumed = "", simulation.Assumed{}
		if diff := cmp.Diff(plainSummary(&p.Cohort, events), got, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
			t.Fatalf("summary (-plain +got):\n%s", diff)
		}
	})
}

func drawPolicy(t *rapid.T) string {
	draw := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	var b strings.Builder
	fmt.Fprintf(&b, "capacity: {gpu: %d, cpu: %d}\n", rapid.IntRange(1, 8).Draw(t, "gpus"), rapid.IntRange(1, 8).Draw(t, "cpus"))
	fmt.Fprintf(&b, "queueing: %s\n", draw("queueing", "Strict", "BestEffort", "Backfill"))
	fmt.Fprintf(&b, "victims: %s\n", draw("victims", "LeastLostWork", "MostOverQuota", "NewestFirst"))
	fmt.Fprintf(&b, "gracePeriod: %s\nshares:\n", draw("grace", "0s", "10s"))
	for _, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "- {name: %s, sharing: %s, inSharePreemption: %s, quota: {gpu: %d, cpu: %d}}\n", name,
			draw("sharing", "Reserve", "Lend", "LendAndBorrow"), draw("inside", "true", "false"),
			rapid.IntRange(0, 3).Draw(t, "quota"), rapid.IntRange(0, 3).Draw(t, "quota"))
	}
	return b.String()
}

func drawTrace(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("submit_s,runtime_s,team,priority,max_runtime_s,demand\n")
	for range rapid.IntRange(0, 30).Draw(t, "jobs") {
		fmt.Fprintf(&b, "%d,%d,%s,%d,%d,%s\n", rapid.IntRange(0, 200).Draw(t, "submit"), rapid.IntRange(1, 100).Draw(t, "runtime"),
			rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "team"), rapid.IntRange(0, 2).Draw(t, "priority"),
			rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "max"),
			rapid.SampledFrom([]string{"gpu=1", "gpu=2", "cpu=1", "gpu=3;cpu=1", "gpu=9"}).Draw(t, "demand"))
	}
	return b.String()
}

// plainSummary is the text of Summary's comments, word by word and slowly.
func plainSummary(c *scenario.Cohort, events []scenario.Event) simulation.Summary {
	all := func(scenario.Event) bool { return true }
	of := func(share string) func(scenario.Event) bool {
		return func(e scenario.Event) bool { return e.Share == share }
	}
	count := func(kind scenario.EventKind, wanted func(scenario.Event) bool) (n int) {
		for _, e := range events {
			if e.Kind == kind && wanted(e) {
				n++
			}
		}
		return n
	}
	// usage is what a share holds after the first n events.
	usage := func(share string, unit quota.Unit, n int) (held int64) {
		for _, e := range events[:n] {
			switch {
			case e.Share == share && e.Kind == scenario.Granted:
				held += e.Demand[unit]
			case e.Share == share && e.Kind == scenario.Released:
				held -= e.Demand[unit]
			}
		}
		return held
	}
	nominal := func(share string, unit quota.Unit) int64 {
		for _, s := range c.Shares {
			if s.Name == share {
				return s.Nominal[unit]
			}
		}
		return 0
	}
	held := func(share string, unit quota.Unit) (seconds, over float64) {
		for i := 1; i < len(events); i++ {
			lasted := (events[i].At - events[i-1].At).Seconds()
			u := usage(share, unit, i)
			seconds += float64(u) * lasted
			over += float64(max(0, u-nominal(share, unit))) * lasted
		}
		return seconds, over
	}
	lost := func(unit quota.Unit, wanted func(scenario.Event) bool) (hours float64) {
		for _, e := range events {
			if e.Kind == scenario.Released && e.Preempted && wanted(e) {
				hours += float64(e.Demand[unit]) * e.Lost.Hours()
			}
		}
		return hours
	}
	fitted := func(n int) bool {
		for unit, amount := range events[n].Demand {
			if usage(events[n].Share, unit, n)+amount > nominal(events[n].Share, unit) {
				return false
			}
		}
		return true
	}
	// waits are from every submit (or requeue) of the job to its next grant.
	waits := func(from scenario.EventKind, wanted func(n int) bool) (seconds []float64) {
		for i, e := range events {
			if e.Kind != from || !wanted(i) {
				continue
			}
			for _, later := range events[i:] {
				if later.Job == e.Job && later.Kind == scenario.Granted {
					seconds = append(seconds, (later.At - e.At).Seconds())
					break
				}
			}
		}
		return seconds
	}

	sum := simulation.Summary{
		Jobs: count(scenario.Submitted, all), Finished: count(scenario.Finished, all), Failed: count(scenario.Failed, all),
		Unit: "gpu", Preemptions: count(scenario.Preempted, all), LostGPUHours: lost("gpu", all),
		WaitS:            plainDistribution(waits(scenario.Submitted, func(int) bool { return true })),
		WaitWithinQuotaS: plainDistribution(waits(scenario.Submitted, fitted)),
		WaitAgainS:       plainDistribution(waits(scenario.Requeued, func(int) bool { return true })),
		Shares:           map[string]simulation.ShareSummary{},
		Units:            map[quota.Unit]simulation.UnitSummary{},
	}
	sum.NeverStarted = sum.Jobs - sum.WaitS.Count
	if len(events) > 0 {
		sum.MakespanS = (events[len(events)-1].At - events[0].At).Seconds()
	}
	for _, s := range c.Shares {
		seconds, over := held(s.Name, "gpu")
		sum.Shares[s.Name] = simulation.ShareSummary{
			Jobs:             count(scenario.Submitted, of(s.Name)),
			WaitS:            plainDistribution(waits(scenario.Submitted, func(n int) bool { return events[n].Share == s.Name })),
			WaitWithinQuotaS: plainDistribution(waits(scenario.Submitted, func(n int) bool { return events[n].Share == s.Name && fitted(n) })),
			Preemptions:      count(scenario.Preempted, of(s.Name)),
			LostGPUHours:     lost("gpu", of(s.Name)), HeldGPUHours: seconds / 3600, BorrowedGPUHours: over / 3600,
		}
	}
	for _, unit := range []quota.Unit{"cpu", "gpu"} {
		u := simulation.UnitSummary{Capacity: c.Capacity[unit], LostHours: lost(unit, all)}
		for _, s := range c.Shares {
			if seconds, over := held(s.Name, unit); sum.MakespanS > 0 {
				u.Utilization += seconds / (float64(u.Capacity) * sum.MakespanS)
				u.Borrowed += over / (float64(u.Capacity) * sum.MakespanS)
			}
		}
		sum.Units[unit] = u
	}
	sum.Utilization, sum.Borrowed = sum.Units["gpu"].Utilization, sum.Units["gpu"].Borrowed
	return sum
}

func plainDistribution(values []float64) simulation.Distribution {
	if len(values) == 0 {
		return simulation.Distribution{}
	}
	// percentile is the least value that at least so many percent do not exceed.
	percentile := func(percent float64) float64 {
		least := math.Inf(1)
		for _, candidate := range values {
			notMore := 0
			for _, v := range values {
				if v <= candidate {
					notMore++
				}
			}
			if float64(notMore)*100 >= percent*float64(len(values)) {
				least = min(least, candidate)
			}
		}
		return least
	}
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return simulation.Distribution{
		Count: len(values), Mean: mean,
		P50: percentile(50), P90: percentile(90), P99: percentile(99), Max: percentile(100),
	}
}
