package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// standingJobs are those of a queue at noon: one that runs for half an hour,
// one that stops, and three that wait.
func standingJobs(noon time.Time) []job.Job {
	ago := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
	base := func(id, name, share string) job.Job {
		return job.Job{
			ID: id, Name: name, Share: share, Status: job.Runnable, CreatedAt: ago(60),
			Demand: []job.Amount{{Unit: "ml.g5.xlarge", Quantity: 1}}, MaxRuntime: time.Hour,
		}
	}
	runs, stops := base("1", "runs", "a"), base("2", "stops", "a")
	runs.Status, runs.ScheduledAt, runs.StartedAt, runs.CheckpointAt = job.Running, ago(31), ago(30), ago(10)
	runs.Current = &job.Attempt{Run: 1}
	stops.Status, stops.ScheduledAt = job.Scheduled, ago(1)
	stops.Current = &job.Attempt{Run: 1, Stop: &job.Stop{Cause: job.Terminated, Text: "enough", At: ago(1)}}
	rests, same, other := base("3", "rests", "b"), base("4", "same", "b"), base("5", "same", "b")
	rests.NotBefore, rests.PreemptionCount, rests.Timeout = noon.Add(time.Minute), 2, 5*time.Minute
	other.MaxRuntime = 0
	return []job.Job{rests, runs, stops, same, other}
}

func TestFromStanding(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := FromStanding("the server", noon, standingJobs(noon))
	one := quota.Amounts{"ml.g5.xlarge": 1}
	want := &Trace{Name: "the server", Jobs: []Job{
		{Name: "runs", Team: "a", Runtime: time.Hour, MaxRuntime: time.Hour, Demand: one, Standing: &scenario.Standing{
			Age: time.Hour, Holds: true, Held: 31 * time.Minute, Ran: 30 * time.Minute, Saved: 10 * time.Minute,
		}},
		{Name: "stops", Team: "a", Runtime: time.Hour, MaxRuntime: time.Hour, Demand: one, Standing: &scenario.Standing{
			Age: time.Hour, Holds: true, Held: time.Minute, Saved: -1, Stopping: &job.Stop{Cause: job.Terminated, Text: "enough"},
		}},
		{Name: "rests", Team: "b", Runtime: 5 * time.Minute, MaxRuntime: 5 * time.Minute, Demand: one, Standing: &scenario.Standing{
			Age: time.Hour, Preemptions: 2, Backoff: time.Minute, Saved: -1,
		}},
		{Name: "4", Team: "b", Runtime: time.Hour, MaxRuntime: time.Hour, Demand: one, Standing: &scenario.Standing{Age: time.Hour, Saved: -1}},
		{Name: "5", Team: "b", Runtime: scenario.Endless, Demand: one, Standing: &scenario.Standing{Age: time.Hour, Saved: -1}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReplayOfWhatAServerHas(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	trace := FromStanding("the server", noon, standingJobs(noon))
	cohort, err := scenario.ParseCohort("policy", []byte(`
capacity: {ml.g5.xlarge: 2}
gracePeriod: 30s
shares: [{name: a, quota: {ml.g5.xlarge: 1}}, {name: b, quota: {ml.g5.xlarge: 1}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := Replay(t.Context(), Policy{Name: "policy", Cohort: cohort}, trace, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// At 30 s the stopped one is gone, and the first of b starts; the one that
	// runs has half an hour to go, then rests borrows for five minutes, and
	// then the one starts that never ends.
	s := run.Summary
	if s.Jobs != 5 || s.Finished != 3 || s.Failed != 1 || s.NeverStarted != 0 || s.WaitS.Count != 3 || s.WaitS.Max != 2100 {
		t.Errorf("summary: %+v", s)
	}
	cohort.Shares = cohort.Shares[:1]
	_, err = Replay(t.Context(), Policy{Name: "policy", Cohort: cohort}, trace, Options{})
	if err == nil || !strings.Contains(err.Error(), `the server: job rests is in share b, which policy does not have; it has ["a"]`) {
		t.Errorf("without the share of a job: %v", err)
	}
}
