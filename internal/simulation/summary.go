package simulation

import (
	"slices"

	"github.com/bursar-io/bursar/internal/quota"
)

// Summary is what came of a run, in figures. Every figure is of the whole run.
//
// A job holds capacity from its grant until it is released, also while it is
// told to stop. The figures that are of one unit (Utilization, LostGPUHours)
// are of Unit; where there are several, Units has them all.
type Summary struct {
	Policy  string  `json:"policy"`
	Assumed Assumed `json:"assumed,omitzero"`

	Jobs     int `json:"jobs"`
	Finished int `json:"finished"` // succeeded
	Failed   int `json:"failed"`
	// NeverStarted is how many jobs were never granted anything until nothing
	// more happened, such as those that can never fit.
	NeverStarted int `json:"never_started"`

	// MakespanS is from the first submission to the last event, in seconds.
	MakespanS float64 `json:"makespan_s"`

	// Unit is what the trace's column gpus counts; without it, the first unit
	// of the capacity by name.
	Unit quota.Unit `json:"unit"`
	// Utilization is how much of the capacity was held: the sum over all jobs
	// of amount times time held, divided by capacity times makespan.
	Utilization float64 `json:"utilization"`
	// Borrowed is the part of what was held that was beyond the quota of the
	// share that held it, as a fraction of capacity times makespan.
	Borrowed float64 `json:"borrowed"`

	// WaitS is from a job's submission to its first grant, in seconds, over the
	// jobs that were granted capacity at all; of a job that waited before the
	// run began, from then.
	WaitS Distribution `json:"wait_s"`
	// WaitWithinQuotaS is WaitS of the jobs that fitted their own quota when
	// they were submitted: their share's usage at that moment, before anything
	// was decided at it, and the job's demand were together within the share's
	// nominal quota in every unit that the job wants.
	WaitWithinQuotaS Distribution `json:"wait_within_quota_s"`
	// WaitAgainS is from each return of a job to the queue, after a preemption
	// or a failed attempt, to its next grant, in seconds.
	WaitAgainS Distribution `json:"wait_again_s"`

	Preemptions int `json:"preemptions"` // attempts told to stop for another job
	// LostGPUHours is the work that preemptions threw away: the amount of Unit
	// that the job held, times how long it had run since its last completed
	// checkpoint, or since it began, when it was told to stop; in hours.
	LostGPUHours float64 `json:"lost_gpu_hours"`

	Shares map[string]ShareSummary    `json:"shares"`
	Units  map[quota.Unit]UnitSummary `json:"units,omitempty"` // where there are several
}

// Assumed is what was made up because the trace does not say it.
type Assumed struct {
	CheckpointS     float64 `json:"checkpoint_s,omitempty"`
	DeclaredRuntime float64 `json:"declared_runtime,omitempty"` // times the runtime
}

// ShareSummary is the part of a Summary that one share has in it.
type ShareSummary struct {
	Jobs             int          `json:"jobs"`
	WaitS            Distribution `json:"wait_s"`
	WaitWithinQuotaS Distribution `json:"wait_within_quota_s"`
	Preemptions      int          `json:"preemptions"`        // of the share's jobs
	LostGPUHours     float64      `json:"lost_gpu_hours"`     // by the share's jobs
	HeldGPUHours     float64      `json:"held_gpu_hours"`     // amount of Unit times time held, in hours
	BorrowedGPUHours float64      `json:"borrowed_gpu_hours"` // the part of it beyond the share's quota
}

// UnitSummary is the part of a Summary that is of one unit.
type UnitSummary struct {
	Capacity    int64   `json:"capacity"`
	Utilization float64 `json:"utilization"`
	Borrowed    float64 `json:"borrowed"`
	LostHours   float64 `json:"lost_hours"`
}

// Distribution describes a number of values. All are 0 where there is none.
type Distribution struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	// A percentile is the least value that at least so many percent of the
	// values do not exceed (nearest rank).
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// distribution describes values, which it sorts.
func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	rank := func(percent int) float64 { return values[(len(values)*percent+99)/100-1] }
	return Distribution{
		Count: len(values), Mean: sum / float64(len(values)),
		P50: rank(50), P90: rank(90), P99: rank(99), Max: values[len(values)-1],
	}
}

const hour = 3600 // seconds

// summary is the run's, after its last event.
func (t *tally) summary() Summary {
	makespan := (t.end - t.start).Seconds()
	sum := Summary{
		Jobs: len(t.jobs), Finished: t.finished, Failed: t.failed,
		MakespanS: makespan, Unit: t.units[t.unit],
		WaitAgainS: distribution(t.waitsAgain),
		Shares:     make(map[string]ShareSummary, len(t.order)),
	}
	var waits, waitsInQuota []float64
	for _, s := range t.order {
		waits = append(waits, s.waits...)
		waitsInQuota = append(waitsInQuota, s.waitsInQuota...)
		sum.Preemptions += s.preemptions
		sum.Shares[s.name] = s.summary(t.unit)
	}
	sum.NeverStarted = sum.Jobs - len(waits) - t.resumed
	sum.WaitS, sum.WaitWithinQuotaS = distribution(waits), distribution(waitsInQuota)
	units := make(map[quota.Unit]UnitSummary, len(t.units))
	for i, u := range t.units {
		units[u] = t.unitSummary(i, makespan)
	}
	of := units[sum.Unit]
	sum.Utilization, sum.Borrowed, sum.LostGPUHours = of.Utilization, of.Borrowed, of.LostHours
	if len(units) > 1 {
		sum.Units = units
	}
	return sum
}

func (s *shareTally) summary(unit int) ShareSummary {
	u := s.units[unit]
	return ShareSummary{
		Jobs: s.jobs, WaitS: distribution(s.waits), WaitWithinQuotaS: distribution(s.waitsInQuota),
		Preemptions: s.preemptions, LostGPUHours: u.lost / hour, HeldGPUHours: u.held / hour, BorrowedGPUHours: u.over / hour,
	}
}

func (t *tally) unitSummary(unit int, makespan float64) UnitSummary {
	var held, over, lost float64
	for _, s := range t.order {
		held += s.units[unit].held
		over += s.units[unit].over
		lost += s.units[unit].lost
	}
	sum := UnitSummary{Capacity: t.capacity[unit], LostHours: lost / hour}
	if whole := float64(sum.Capacity) * makespan; whole > 0 {
		sum.Utilization, sum.Borrowed = held/whole, over/whole
	}
	return sum
}
