package simulated

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/runner"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a world with somebody who writes down what is reported.
type scene struct {
	t     *testing.T
	clock *clock.Manual
	world *World
	seen  []string
}

func newScene(t *testing.T, p Program) *scene {
	t.Helper()
	s := &scene{t: t, clock: clock.NewManual(noon)}
	s.world = NewWorld(s.clock, 2*time.Minute, func(runner.Attempt) Program { return p })
	return s
}

func (s *scene) watch() runner.Runner {
	s.t.Helper()
	r, err := s.world.Attach(func(o runner.Observation) {
		line := fmt.Sprintf("%v %s/%d %s", o.At.Sub(noon), o.Job, o.Run, o.Event)
		if o.Event == runner.Ended {
			line += fmt.Sprintf(" %s %d %s", o.Outcome, o.ExitCode, o.Message)
		}
		if !o.Checkpoint.IsZero() {
			line += fmt.Sprintf(" checkpoint %v", o.Checkpoint.Sub(noon))
		}
		s.seen = append(s.seen, line)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// expect checks what was seen since the last time.
func (s *scene) expect(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.seen, want) {
		s.t.Errorf("seen %q\nwant %q", s.seen, want)
	}
	s.seen = nil
}

func run(n int) runner.Attempt { return runner.Attempt{Key: runner.Key{Job: "j", Run: n}} }

func TestAttemptRunsAndResumes(t *testing.T) {
	s := newScene(t, Program{Startup: time.Second, Runtime: 25 * time.Minute, CheckpointEvery: 10 * time.Minute, Stopping: time.Minute})
	r := s.watch()
	r.Start(run(1))
	s.expect() // nothing from within Start
	s.clock.Advance(time.Minute)
	s.expect("0s j/1 starting", "1s j/1 running")
	s.clock.Advance(10 * time.Minute)
	s.expect("10m1s j/1 checkpointed checkpoint 10m1s")

	r.Stop(run(1).Key)
	r.Stop(run(1).Key)
	s.clock.Advance(59 * time.Second)
	if got := s.world.Alive(); len(got) != 1 {
		t.Errorf("alive while it stops: %v", got)
	}
	s.clock.Advance(time.Second)
	s.expect("12m0s j/1 ended stopped 0  checkpoint 10m1s")
	if got := s.world.Alive(); got != nil {
		t.Errorf("alive after its end: %v", got)
	}

	r.Start(run(2))
	s.clock.Advance(time.Hour)
	s.expect("12m0s j/2 starting", "12m1s j/2 running", "22m1s j/2 checkpointed checkpoint 22m1s", "27m1s j/2 ended succeeded 0  checkpoint 22m1s")
	r.Stop(run(2).Key)
	r.Stop(runner.Key{Job: "nobody", Run: 1})
	s.clock.Advance(time.Hour)
	s.expect()
}

func TestGracePeriodEnds(t *testing.T) {
	s := newScene(t, Program{Stopping: time.Hour})
	r := s.watch()
	r.Start(run(1))
	s.clock.Advance(0)
	s.seen = nil
	r.Stop(run(1).Key)
	s.clock.Advance(time.Hour)
	s.expect("2m0s j/1 ended stopped 0 ")
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name    string
		program Program
		end     func(*World)
		want    string
	}{
		{"by itself", Program{Runtime: time.Minute, ExitCode: 3}, func(*World) {}, "1m0s j/1 ended failed 3 training failed"},
		{"success", Program{}, func(w *World) { w.Succeed("j") }, "30s j/1 ended succeeded 0 "},
		{"failure", Program{}, func(w *World) { w.Fail("j", 9, "killed") }, "30s j/1 ended failed 9 killed"},
		{"loss", Program{}, func(w *World) { w.Lose("j") }, "30s j/1 ended lost 0 "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, tt.program)
			s.watch().Start(run(1))
			s.clock.Advance(30 * time.Second)
			s.seen = nil
			tt.end(s.world)
			tt.end(s.world) // what has ended does not end again
			s.clock.Advance(time.Hour)
			s.expect(tt.want)
		})
	}
}

func TestCheckpointOnDemand(t *testing.T) {
	s := newScene(t, Program{Startup: time.Second, Runtime: time.Hour})
	s.watch().Start(run(1))
	s.world.Checkpoint("j") // it does not run yet
	s.clock.Advance(31 * time.Minute)
	s.world.Checkpoint("j")
	s.world.Lose("j")
	s.expect("0s j/1 starting", "1s j/1 running", "31m0s j/1 checkpointed checkpoint 31m0s", "31m0s j/1 ended lost 0  checkpoint 31m0s")
}

func TestWorldOutlivesItsWatchers(t *testing.T) {
	s := newScene(t, Program{Runtime: time.Hour})
	first := s.watch()
	first.Start(run(1))
	s.clock.Advance(time.Minute)
	s.seen = nil
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Hour)
	s.expect()

	second := s.watch()
	if err := first.Close(); err != nil { // the old one's end is not the new one's
		t.Fatal(err)
	}
	second.Start(run(1))
	second.Stop(run(1).Key)
	s.clock.Advance(time.Minute)
	s.expect("1h0m0s j/1 ended succeeded 0 ")
	if got := s.world.Twice(); got != nil {
		t.Errorf("started twice: %v", got)
	}

	second.Start(run(2))
	s.clock.Advance(time.Minute)
	second.Start(run(3)) // who starts a job twice at once is told on
	if got := s.world.Twice(); len(got) != 1 || got[0].Run != 3 {
		t.Errorf("started twice: %v, want run 3", got)
	}
}
