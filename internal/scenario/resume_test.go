package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

const gpu = "gpu"

// pair is a cohort in which a owns so much of the capacity, and b 1.
func pair(capacity, a int64) scenario.Cohort {
	share := func(name string, own int64) scenario.Share {
		return scenario.Share{Share: quota.Share{Name: name, Nominal: quota.Amounts{gpu: own}, Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited}}
	}
	return scenario.Cohort{
		Capacity: quota.Amounts{gpu: capacity}, GracePeriod: time.Minute,
		Shares: []scenario.Share{share("a", a), share("b", 1)},
	}
}

// hour is a job that runs for an hour, as it declares.
func hour(name, share string) scenario.Submission {
	return scenario.Submission{Job: name, Share: share, Demand: quota.Amounts{gpu: 1}, Runtime: time.Hour, MaxRuntime: time.Hour}
}

// listen returns a world, what is to be called to have a job in it from its
// beginning, and what happens in it.
func listen(t *testing.T, c scenario.Cohort) (w *scenario.World, resume func(scenario.Submission, scenario.Standing), story *[]string) {
	t.Helper()
	story = &[]string{}
	w = scenario.NewWorld(c, func(e scenario.Event) {
		*story = append(*story, fmt.Sprintf("%s %s %s", scenario.Spell(e.At), e.Kind, e.Job))
	})
	return w, func(s scenario.Submission, at scenario.Standing) {
		t.Helper()
		if err := w.Resume(s, at); err != nil {
			t.Fatal(err)
		}
	}, story
}

// TestResumedJobsGoOn has a world begin with jobs at every point of their
// lives, and looks at what becomes of them.
func TestResumedJobsGoOn(t *testing.T) {
	cohort := pair(3, 2)
	w, resume, story := listen(t, cohort)
	resume(hour("done", "a"), scenario.Standing{Age: time.Hour, Holds: true, Held: 50 * time.Minute, Ran: 50 * time.Minute, Saved: -1})
	resume(hour("ending", "a"), scenario.Standing{
		Age: time.Hour, Holds: true, Held: time.Minute, Ran: time.Minute, Saved: -1, Stopping: &job.Stop{Cause: job.Terminated, Text: "enough"},
	})
	resume(hour("borrows", "a"), scenario.Standing{Age: time.Hour, Holds: true, Held: 30 * time.Minute, Ran: 30 * time.Minute, Saved: 10 * time.Minute})
	resume(hour("owner", "b"), scenario.Standing{Age: time.Minute, Saved: -1})
	resume(hour("rests", "a"), scenario.Standing{Age: 2 * time.Hour, Backoff: 5 * time.Minute, Preemptions: 3, Saved: -1})
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0s submit done", "0s resume done", "0s submit ending", "0s resume ending", "0s submit borrows", "0s resume borrows", "0s submit owner", "0s submit rests",
		"1m release ending", "1m fail ending", "1m grant owner",
		"10m release done", "10m finish done", "10m grant rests",
		"30m release borrows", "30m finish borrows",
		"1h1m release owner", "1h1m finish owner",
		"1h10m release rests", "1h10m finish rests",
	}
	if diff := cmp.Diff(want, *story); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for what, err := range map[error]error{
		scenario.ErrPast:      w.Resume(hour("late", "a"), scenario.Standing{}),
		scenario.ErrJobExists: scenarioTwice(cohort, hour("x", "a")),
	} {
		if !errors.Is(err, what) {
			t.Errorf("got %v, want %v", err, what)
		}
	}
	fresh := scenario.NewWorld(cohort, nil)
	if err := fresh.Resume(hour("lost", "z"), scenario.Standing{}); !errors.Is(err, scenario.ErrUnknownShare) {
		t.Errorf("got %v, want ErrUnknownShare", err)
	}
	if err := fresh.Resume(scenario.Submission{Job: "nothing", Share: "a"}, scenario.Standing{Holds: true}); !errors.Is(err, quota.ErrDemand) {
		t.Errorf("got %v, want ErrDemand", err)
	}
}

// scenarioTwice resumes a job twice.
func scenarioTwice(c scenario.Cohort, s scenario.Submission) error {
	w := scenario.NewWorld(c, nil)
	if err := w.Resume(s, scenario.Standing{}); err != nil {
		return err
	}
	return w.Resume(s, scenario.Standing{})
}

// TestResumedBorrowerKeepsItsCheckpoint has one preempted that completed a
// checkpoint 20 minutes after its start: it has 40 minutes to go again.
func TestResumedBorrowerKeepsItsCheckpoint(t *testing.T) {
	w, resume, story := listen(t, pair(2, 1))
	running := scenario.Standing{Age: time.Hour, Holds: true, Held: 30 * time.Minute, Ran: 30 * time.Minute, Saved: -1}
	resume(hour("own", "a"), running)
	running.Saved = 10 * time.Minute
	resume(hour("borrows", "a"), running)
	resume(hour("owner", "b"), scenario.Standing{Age: time.Minute, Saved: -1})
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0s submit own", "0s resume own", "0s submit borrows", "0s resume borrows", "0s submit owner",
		"0s preempt borrows", "1m release borrows", "1m requeue borrows", "1m grant owner",
		"30m release own", "30m finish own", "30m grant borrows",
		"1h1m release owner", "1h1m finish owner",
		"1h10m release borrows", "1h10m finish borrows",
	}
	if diff := cmp.Diff(want, *story); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
