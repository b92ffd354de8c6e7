package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/terminal"
)

// summary is what really happened, from the journal and the workers' output.
type summary struct {
	jobs        int
	stepsDone   int
	preemptions []preemption
	borrowed    time.Duration // instances borrowed × time
	took        time.Duration
}

// preemption is one run cut short, and how its job went on.
type preemption struct {
	job       string
	ground    quota.Ground
	stoppedAt int // step
	resumedAt int // step
}

func (p preemption) lost() int { return p.stoppedAt - p.resumedAt }

// summary sums up the story. It returns an error that names everything which
// should have happened and did not.
func (s *scene) summary() (summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := summary{jobs: len(s.jobs), took: time.Since(s.began)}
	var missing []error
	for _, j := range s.jobs {
		t := s.training[j.Job.Name]
		if j.Job.Status != job.Succeeded || !t.ended() {
			missing = append(missing, fmt.Errorf("job %s is %s: %s", j.Job.Name, j.Job.Status, j.Job.Reason))
			continue
		}
		sum.stepsDone += t.step()
	}
	told, err := readDecisions(s.journal)
	missing = append(missing, err)
	sum.borrowed = told.borrowed
	for _, p := range told.preemptions {
		found, err := s.cutShort(p)
		sum.preemptions = append(sum.preemptions, found)
		missing = append(missing, err)
	}
	missing = append(missing, sum.check())
	if err := errors.Join(missing...); err != nil {
		return sum, fmt.Errorf("the story did not happen as it should:\n%w", err)
	}
	return sum, nil
}

// cutShort finds, in what a training printed, where a preempted run stopped
// and where the next one began.
func (s *scene) cutShort(p decided) (preemption, error) {
	found := preemption{job: p.Name, ground: p.Ground}
	t := s.training[p.Name]
	if t == nil || t.runs[p.run] == nil || t.runs[p.run+1] == nil {
		return found, fmt.Errorf("run %d of %s was preempted, but it or the run after it printed nothing", p.run, p.Name)
	}
	found.stoppedAt, found.resumedAt = t.runs[p.run].step, t.runs[p.run+1].first
	if !t.runs[p.run].stopped || !t.runs[p.run+1].resumed {
		return found, fmt.Errorf("%s did not resume from the checkpoint that it wrote when it was told to stop", p.Name)
	}
	return found, nil
}

// check says what the story is about: one reclaim of med, one in-share
// preemption of high, and something borrowed.
func (s summary) check() error {
	grounds := map[string]quota.Ground{}
	for _, p := range s.preemptions {
		grounds[p.job] = p.ground
	}
	want := map[string]quota.Ground{"med": quota.Reclaim, "high": quota.InShare}
	if !maps.Equal(grounds, want) || len(s.preemptions) != len(want) {
		return fmt.Errorf("preempted were %v; the story has %v", grounds, want)
	}
	if s.borrowed == 0 {
		return errors.New("nothing was borrowed")
	}
	return nil
}

// decided is a decision in the journal, and the run that it is on.
type decided struct {
	Name     string        `json:"name"`
	Share    string        `json:"share"`
	Ground   quota.Ground  `json:"ground"`
	Borrowed quota.Amounts `json:"borrowed"`
	run      int
}

// decisions is what the journal tells of a whole story.
type decisions struct {
	preemptions []decided
	borrowed    time.Duration
}

// readDecisions goes through the journal. Each share owns one instance and each
// job runs on one, so a share borrows what its running jobs are beyond one.
func readDecisions(journal []bursarapi.Entry) (decisions, error) {
	const owned = 1
	var all decisions
	runs := map[string]int{}       // grants so far, by job id
	holding := map[string]string{} // share, by the id of each job that holds an instance
	var last time.Time
	for _, e := range journal {
		all.borrowed += time.Duration(beyond(holding, owned)) * e.At.Sub(last)
		last = e.At
		switch {
		case e.Kind == store.Seen && e.Name == string(runner.Ended):
			delete(holding, e.Subject)
		case e.Kind == store.Decision:
			var d decided
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return all, fmt.Errorf("journal entry %d: %w", e.Seq, err)
			}
			switch quota.Kind(e.Name) {
			case quota.Grant:
				runs[e.Subject]++
				holding[e.Subject] = d.Share
			case quota.Preempt:
				d.run = runs[e.Subject]
				all.preemptions = append(all.preemptions, d)
			case quota.Park:
			}
		}
	}
	return all, nil
}

// beyond is how many instances shares hold beyond what each owns.
func beyond(holding map[string]string, owned int) int {
	held := map[string]int{}
	for _, share := range holding {
		held[share]++
	}
	borrowed := 0
	for _, n := range held {
		borrowed += max(0, n-owned)
	}
	return borrowed
}

func (s summary) lines() []terminal.Line {
	plain := func(format string, args ...any) terminal.Line {
		return terminal.Text(terminal.Plain, fmt.Sprintf(format, args...))
	}
	lost := 0
	lines := []terminal.Line{nil, terminal.Text(terminal.Bold, "What happened")}
	for _, p := range s.preemptions {
		lost += p.lost()
		lines = append(lines, plain("  %-5s stopped at step %d (%s), resumed at step %d", p.job, p.stoppedAt, p.ground, p.resumedAt))
	}
	return append(lines,
		plain("  %d jobs did %d training steps in %.0f s; %d steps were lost to %d preemptions", s.jobs, s.stepsDone, s.took.Seconds(), lost, len(s.preemptions)),
		plain("  %.1f GPU-seconds were borrowed that would have been idle", s.borrowed.Seconds()),
	)
}
