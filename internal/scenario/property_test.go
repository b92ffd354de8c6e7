package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
)

// witness follows a world by its events alone, and objects to what cannot be.
type witness struct {
	diary
	*rapid.T
	capacity quota.Amounts
	used     quota.Amounts
	jobs     map[string]*testimony
}

// testimony is what a witness knows of one job.
type testimony struct {
	Submission
	submitted, finished, failed bool
	waits, holds                bool
	present                     attempt
	done                        time.Duration // work that is kept
	preemptions                 int
}

// attempt is what a witness knows of an attempt.
type attempt struct {
	granted   time.Duration
	halted    *time.Duration // when it was told to stop
	preempted bool           // and nothing worse came of it
	succeeded bool           // because it was told to
}

// halt notes that the attempt works no more.
func (a *attempt) halt(at time.Duration) {
	if a.halted == nil {
		a.halted = &at
	}
}

func (w *witness) note(e Event) {
	w.diary.note(e)
	j := w.jobs[e.Job]
	if j == nil || j.finished || j.failed {
		w.Fatalf("%s of job %s, which is over or was never handed in", e.Kind, e.Job)
	}
	switch e.Kind {
	case Submitted:
		w.require(!j.submitted, e)
		j.submitted, j.waits = true, true
	case Granted:
		w.require(j.waits, e)
		j.waits, j.holds, j.present = false, true, attempt{granted: e.At}
		w.use(j.Demand, 1)
	case Preempted:
		w.require(j.holds && j.present.halted == nil, e)
		j.present.halt(e.At)
		j.present.preempted = true
	case Released:
		w.require(j.holds && e.Preempted == j.present.preempted, e)
		w.use(j.Demand, -1)
		w.released(j, e)
		j.holds = false
	case Requeued:
		w.require(!j.holds && !j.waits, e)
		j.waits = true
	case Finished:
		w.require(!j.holds && !j.waits, e)
		if !j.present.succeeded && j.done != j.Runtime {
			w.Fatalf("job %s succeeded after %s of %s", e.Job, j.done, j.Runtime)
		}
		j.finished = true
	case Failed:
		w.require(!j.holds, e)
		j.failed, j.waits = true, false
	}
}

// released accounts for the work of an attempt: what checkpoints keep is never
// done again, what is lost is what came after the last of them.
func (w *witness) released(j *testimony, e Event) {
	ran := e.At - j.present.granted
	if j.present.halted != nil {
		ran = *j.present.halted - j.present.granted
	}
	if j.MaxRuntime > 0 {
		ran = min(ran, j.MaxRuntime)
	}
	kept := time.Duration(0)
	if j.CheckpointEvery > 0 {
		kept = ran.Truncate(j.CheckpointEvery)
	}
	if j.present.succeeded || j.present.halted == nil && j.done+ran == j.Runtime {
		kept = ran
	}
	if e.Lost != ran-kept {
		w.Fatalf("at %s job %s lost %s; its checkpoints every %s kept %s of %s", e.At, e.Job, e.Lost, j.CheckpointEvery, kept, ran)
	}
	j.done += kept
	if e.Preempted {
		j.preemptions++
	}
}

func (w *witness) require(holds bool, e Event) {
	if !holds {
		w.Fatalf("at %s job %s cannot %s:\n%s", e.At, e.Job, e.Kind, strings.Join(w.lines, "\n"))
	}
}

// use books what is held, and objects to more than there is (I1), unless
// capacity was taken away from under it.
func (w *witness) use(demand quota.Amounts, sign int64) {
	for unit, amount := range demand {
		w.used[unit] += sign * amount
		if sign > 0 && w.used[unit] > w.capacity[unit] {
			w.Fatalf("I1 broken: %d %s are used of %d", w.used[unit], unit, w.capacity[unit])
		}
	}
}

// story is a random history: a policy, and what happens when.
type story struct {
	policy string
	steps  []step
}

type step struct {
	at       time.Duration
	submit   *Submission
	priority *int32
	capacity quota.Amounts
	end      string // terminate, fail or succeed
	job      string // that priority and end are of
}

func anyStory(t *rapid.T) story {
	of := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	var policy strings.Builder
	fmt.Fprintf(&policy, `
capacity: {gpu: %d, cpu: %d}
idleAssignment: %s
queueing: %s
priorityScope: %s
victims: %s
borrowerPreemption: %s
rebalance: %s
shareUnallocated: %s
gracePeriod: %s
minRuntime: %s
shares:
`, rapid.IntRange(1, 8).Draw(t, "gpus"), rapid.IntRange(1, 8).Draw(t, "cpus"),
		of("idle", "FIFO", "FairShare"), of("queueing", "Strict", "BestEffort", "Backfill"), of("scope", "Share", "Cohort"),
		of("victims", "LeastLostWork", "MostOverQuota", "NewestFirst"),
		of("borrower", "true", "false"), of("rebalance", "true", "false"), of("unallocated", "true", "false"),
		of("grace", "0s", "2m"), of("young", "0s", "7m"))
	shares := []string{"a", "b", "c"}
	for _, name := range shares {
		fmt.Fprintf(&policy, "- {name: %s, quota: {gpu: %d, cpu: %d}, sharing: %s, inSharePreemption: %s, weight: %d}\n",
			name, rapid.IntRange(0, 4).Draw(t, "gpu quota"), rapid.IntRange(0, 4).Draw(t, "cpu quota"),
			of("sharing", "Reserve", "Lend", "LendAndBorrow", "LendAndBorrow"), of("in-share", "true", "false"), rapid.IntRange(0, 2).Draw(t, "weight"))
	}
	s := story{policy: policy.String()}
	minutes := func(name string, least, most int) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Minute
	}
	var jobs []string
	at := time.Duration(0)
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		at += minutes("pause", 0, 6)
		next := step{at: at}
		what := rapid.IntRange(0, 9).Draw(t, "what")
		if len(jobs) > 0 {
			next.job = rapid.SampledFrom(jobs).Draw(t, "job")
		}
		switch {
		case what == 0 && next.job != "":
			next.end = of("end", "terminate", "fail", "succeed")
		case what == 1 && next.job != "":
			priority := rapid.Int32Range(0, 3).Draw(t, "priority")
			next.priority = &priority
		case what == 2:
			next.capacity = quota.Amounts{"gpu": rapid.Int64Range(0, 8).Draw(t, "gpus")}
		default:
			sub := Submission{
				Job: fmt.Sprintf("job-%d", len(jobs)), Share: rapid.SampledFrom(shares).Draw(t, "share"),
				Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
				Demand:   quota.Amounts{quota.Unit(of("unit", "gpu", "cpu")): rapid.Int64Range(1, 4).Draw(t, "demand")},
				Runtime:  minutes("runtime", 0, 40), CheckpointEvery: minutes("checkpoints", 0, 9),
				Attempts: rapid.IntRange(1, 2).Draw(t, "attempts"),
			}
			if rapid.Bool().Draw(t, "declares") {
				sub.MaxRuntime = minutes("declared", 1, 40)
			}
			if rapid.Bool().Draw(t, "retries") {
				retries := rapid.IntRange(0, 2).Draw(t, "retries")
				sub.PreemptionRetries = &retries
			}
			next.submit = &sub
			jobs = append(jobs, sub.Job)
		}
		s.steps = append(s.steps, next)
	}
	return s
}

// file is the story as a scenario file, to look at and to keep.
func (s story) file() string {
	var b strings.Builder
	b.WriteString("cohort:" + strings.ReplaceAll(s.policy, "\n", "\n  ") + "\nevents:\n")
	for _, step := range s.steps {
		what := fmt.Sprintf("%s: {job: %s}", step.end, step.job)
		switch {
		case step.submit != nil:
			j := step.submit
			what = fmt.Sprintf("submit: {job: %s, share: %s, priority: %d, demand: %s, runtime: %s, checkpointEvery: %s, attempts: %d",
				j.Job, j.Share, j.Priority, amountsText(j.Demand), j.Runtime, j.CheckpointEvery, j.Attempts)
			if j.MaxRuntime > 0 {
				what += fmt.Sprintf(", maxRuntime: %s", j.MaxRuntime)
			}
			if j.PreemptionRetries != nil {
				what += fmt.Sprintf(", preemptionRetries: %d", *j.PreemptionRetries)
			}
			what += "}"
		case step.capacity != nil:
			what = "setCapacity: " + amountsText(step.capacity)
		case step.priority != nil:
			what = fmt.Sprintf("setPriority: {job: %s, priority: %d}", step.job, *step.priority)
		}
		fmt.Fprintf(&b, "- {at: %s, %s}\n", step.at, what)
	}
	return b.String()
}

// live lives through the story and returns the world as it is at the end.
func (s story) live(t *rapid.T) (*World, *witness) {
	c, err := ParseCohort("policy.yaml", []byte(s.policy))
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{T: t, capacity: maps.Clone(c.Capacity), used: quota.Amounts{}, jobs: map[string]*testimony{}}
	world := NewWorld(c, w.note)
	for _, step := range s.steps {
		if err := world.Advance(step.at); err != nil {
			t.Fatal(err)
		}
		w.take(world, step)
	}
	if err := world.Finish(); err != nil {
		t.Fatal(err)
	}
	return world, w
}

func (w *witness) take(world *World, s step) {
	j := w.jobs[s.job]
	var err error
	switch {
	case s.submit != nil:
		w.jobs[s.submit.Job] = &testimony{Submission: *s.submit}
		err = world.Submit(*s.submit)
	case s.capacity != nil:
		maps.Copy(w.capacity, s.capacity)
		world.SetCapacity(s.capacity)
	case j.finished || j.failed:
	case s.priority != nil:
		err = world.SetPriority(s.job, *s.priority)
	case s.end == "terminate":
		j.present.halt(s.at)
		j.present.preempted = false
		err = world.Terminate(s.job, "no longer needed")
	case !j.holds:
	case s.end == "succeed":
		j.present.succeeded, j.present.preempted = true, false
		err = world.Succeed(s.job)
	case s.end == "fail":
		j.present.preempted = false
		err = world.Fail(s.job, "exit code 1")
	}
	if err != nil {
		w.Fatal(err)
	}
}

func TestWorldKeepsItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStory(t)
		t.Logf("the story:\n%s", s.file())
		world, w := s.live(t)
		for name, j := range w.jobs {
			if !j.finished && !j.failed && !j.waits {
				t.Errorf("at the end job %s is neither over nor waiting", name)
			}
			if m := world.byName[name]; m.PreemptionCount != j.preemptions {
				t.Errorf("job %s was preempted %d times, its life says %d", name, j.preemptions, m.PreemptionCount)
			}
			if j.waits {
				if code, sentence, waits := world.reason(name); !waits || code == "" || sentence == "" {
					t.Errorf("job %s waits without a reason", name)
				}
			}
		}
		for unit, amount := range w.used {
			if amount != 0 {
				t.Errorf("at the end %d %s are still used", amount, unit)
			}
		}
		if _, again := s.live(t); !slices.Equal(w.lines, again.lines) {
			t.Errorf("the same story went differently (I10):\n%s\nand then:\n%s", strings.Join(w.lines, "\n"), strings.Join(again.lines, "\n"))
		}
	})
}
