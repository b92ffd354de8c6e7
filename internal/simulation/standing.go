package simulation

import (
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// FromStanding is what is still to come of jobs as a trace: unfinished jobs of
// a server's queue at an instant. Each is taken to run for as long as it
// declares that it may, running ones for what is left of that; one that
// declares nothing runs for ever. Jobs are called by their names, or by their
// ids where several have one name. name is what errors call the trace.
func FromStanding(name string, at time.Time, jobs []job.Job) *Trace {
	named := map[string]int{}
	for i := range jobs {
		named[jobs[i].Name]++
	}
	trace := &Trace{Name: name}
	// Those that run come first: whether others fit their quota depends on them.
	for _, holds := range []bool{true, false} {
		for i := range jobs {
			if j := &jobs[i]; j.Status.Holds() == holds {
				called := j.Name
				if named[called] > 1 {
					called = j.ID
				}
				trace.Jobs = append(trace.Jobs, stands(j, called, at))
			}
		}
	}
	return trace
}

func stands(j *job.Job, called string, at time.Time) Job {
	demand := make(quota.Amounts, len(j.Demand))
	for _, a := range j.Demand {
		demand[quota.Unit(a.Unit)] += a.Quantity
	}
	s := scenario.Standing{
		Age: at.Sub(j.CreatedAt), Preemptions: j.PreemptionCount, Backoff: max(0, j.NotBefore.Sub(at)),
		Holds: j.Status.Holds(), Saved: -1,
	}
	if !j.CheckpointAt.IsZero() {
		s.Saved = max(0, at.Sub(j.CheckpointAt))
	}
	if s.Holds {
		s.Held = at.Sub(j.ScheduledAt)
		if !j.StartedAt.IsZero() {
			s.Ran = at.Sub(j.StartedAt)
		}
		if j.Stopping() {
			s.Stopping = &job.Stop{Cause: j.Current.Stop.Cause, Text: j.Current.Stop.Text}
		}
	}
	declared := j.DeclaredRuntime()
	runtime := declared
	if declared == 0 {
		runtime = scenario.Endless
	}
	return Job{
		Name: called, Team: j.Share, Priority: j.Priority, Runtime: runtime, MaxRuntime: declared,
		Demand: demand, PreemptionRetries: j.PreemptionRetries, Standing: &s,
	}
}
