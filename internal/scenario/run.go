package scenario

import (
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// Result is what became of a scenario.
type Result struct {
	Checks   int // expectations looked at, each key of each instant being one
	Failures []Failure
}

// Failure is an expectation that does not hold, or an event that could not
// happen.
type Failure struct {
	At   time.Duration
	Line int
	Want string // what was expected, or to happen
	Got  string // what was found instead, or what was in the way
	Jobs []JobState
}

// JobState is where a job stands and why.
type JobState struct {
	Job string `json:"job"`
	Why string `json:"why"`
}

// Run lives through the scenario and looks whether its expectations hold. It
// tells observe, if that is not nil, of every event. An error means that the
// engine's books went wrong.
func (s *Scenario) Run(observe func(Event)) (Result, error) {
	w := NewWorld(s.Cohort, observe)
	result := Result{}
	happenings, expectations := s.happenings, s.expectations
	for len(happenings) > 0 || len(expectations) > 0 {
		if err := w.Advance(nextInstant(happenings, expectations)); err != nil {
			return result, fmt.Errorf("run %s: %w", s.File, err)
		}
		for len(happenings) > 0 && happenings[0].at == w.now {
			result.apply(w, happenings[0])
			happenings = happenings[1:]
		}
		if err := w.Settle(); err != nil {
			return result, fmt.Errorf("run %s: %w", s.File, err)
		}
		for len(expectations) > 0 && expectations[0].at == w.now {
			result.look(w, expectations[0])
			expectations = expectations[1:]
		}
	}
	return result, nil
}

func nextInstant(happenings []happening, expectations []expectation) time.Duration {
	switch {
	case len(happenings) == 0:
		return expectations[0].at
	case len(expectations) == 0:
		return happenings[0].at
	}
	return min(happenings[0].at, expectations[0].at)
}

func (r *Result) apply(w *World, h happening) {
	if err := h.apply(w); err != nil {
		r.Failures = append(r.Failures, Failure{At: w.now, Line: h.line, Want: h.what, Got: err.Error()})
	}
}

func (r *Result) look(w *World, e expectation) {
	for _, c := range e.checks {
		r.Checks++
		f := c.look(w)
		if f.holds {
			continue
		}
		failure := Failure{At: w.now, Line: c.line, Want: c.want, Got: f.found}
		for _, name := range f.jobs {
			failure.Jobs = append(failure.Jobs, JobState{name, w.explain(name)})
		}
		r.Failures = append(r.Failures, failure)
	}
}

// explain says where a job stands and why.
func (w *World) explain(name string) string {
	m := w.byName[name]
	switch {
	case m == nil:
		return "is not submitted yet"
	case m.Status == job.Runnable:
		code, sentence, _ := w.reason(name)
		return fmt.Sprintf("waits, %s: %s", code, sentence)
	case m.Stopping():
		return fmt.Sprintf("stops since %s: %s", since(m.Current.Stop.At), m.Current.Stop.Text)
	case m.Status.Holds():
		granted := quota.Decision{Kind: quota.Grant, Borrowed: m.borrowed}
		return fmt.Sprintf("runs since %s: %s", since(m.ScheduledAt), granted.Sentence(w.jobName))
	case m.Status == job.Succeeded:
		return "succeeded at " + since(m.StoppedAt)
	default:
		return fmt.Sprintf("failed at %s: %s", since(m.StoppedAt), m.Reason)
	}
}

// reason returns why a job waits; waits is false if it does not.
func (w *World) reason(name string) (code quota.Code, sentence string, waits bool) {
	m := w.byName[name]
	if m == nil {
		return "", "", false
	}
	r, waits := w.cohort.Reason(m.id(), instant(w.now))
	if !waits {
		return "", "", false
	}
	bounded := r
	r.Earliest = time.Time{} // written below as the scenario writes times
	sentence = r.Sentence(w.jobName)
	if !bounded.Earliest.IsZero() {
		sentence += " " + bounded.Bound(since(bounded.Earliest))
	}
	return r.Code, sentence, true
}

func (w *World) jobName(id quota.JobID) string {
	if id < 1 || int(id) > len(w.members) {
		return "another job"
	}
	return w.members[id-1].Name
}

// since writes an instant as scenarios do.
func since(t time.Time) string { return Spell(t.Sub(instant(0))) }
