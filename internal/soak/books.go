package soak

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// breach is a promise that was broken.
type breach struct{ check, detail string }

func (b *breach) Error() string { return b.check + ": " + b.detail }

func breaks(check, format string, args ...any) error {
	return &breach{check: check, detail: fmt.Sprintf(format, args...)}
}

// books are what the journal says, line by line: what is declared, what every
// job does, and what every share uses. They check each line against the rules.
type books struct {
	pools    map[string]*pool
	policies map[string]*resource.Policy
	queues   map[string]*resource.Queue
	lanes    map[string]*lane // by queue, queue/share, or queue/identifier
	jobs     map[string]*entry
	accepted []*entry                // all jobs, in order of acceptance
	waiting  map[*entry]bool         // jobs that wait
	holding  map[*entry]bool         // jobs that hold capacity
	tokens   map[string]string       // jobs by client token
	by       map[string]*store.Entry // commands, by who gave them

	seq     int64
	at      time.Time
	touched map[*entry]bool // jobs of which the present batch must have a record

	// outranked is, for I8, whom a job was preempted for, since quotas,
	// priorities and capacity last changed.
	outranked map[*entry]*outranking
	changes   int // how many jobs have come, or ended without being preempted
	preempted int
}

// pool is an environment.
type pool struct {
	resource.Environment
	lanes map[string]*lane
	held  map[string]int64 // by unit
}

// lane is a quota share, a share identifier of a fair-share queue, or a queue
// without policy.
type lane struct {
	name       string
	queue      *resource.Queue
	share      *resource.Share // nil: it is none
	identifier string          // empty: it is none
	pool       *pool
	held       map[string]int64 // by unit, of jobs that hold capacity
	stopping   map[string]int64 // the part of held that is on its way back
	used       []*use           // by the jobs of a share identifier
}

// entry is a job.
type entry struct {
	governor.Submission
	id        string
	seq       int64
	created   time.Time
	lane      *lane
	demand    map[string]int64 // by unit of its pool
	priority  int32
	status    job.Status
	run       int
	startedAt time.Time
	stop      *stop
	failures  int
	preempted int
	evictions int
	lost      bool // its workers, in the attempt that has just ended
	notBefore time.Time
	record    job.Job

	moved   time.Time // when it last changed its state
	granted bool      // and not yet in state SCHEDULED
	since   time.Time // when it was last granted
	use     *use      // of its present attempt, in a fair-share queue
	next    *stage    // what must become of it now
}

// stop is an order to stop.
type stop struct {
	cause job.Cause
	text  string // known of some causes only
}

// stage is what a job must become.
type stage struct {
	status job.Status
	reason string    // empty: whatever it is
	at     time.Time // zero: now
}

func newBooks() *books {
	return &books{
		pools: map[string]*pool{}, policies: map[string]*resource.Policy{}, queues: map[string]*resource.Queue{},
		lanes: map[string]*lane{}, jobs: map[string]*entry{}, tokens: map[string]string{}, by: map[string]*store.Entry{},
		waiting: map[*entry]bool{}, holding: map[*entry]bool{},
		touched: map[*entry]bool{}, outranked: map[*entry]*outranking{},
	}
}

// take reads a commit.
func (b *books) take(batch store.Batch) error {
	clear(b.touched)
	if err := b.lines(batch.Entries); err != nil {
		return err
	}
	return b.compare(batch)
}

// lines reads entries of the journal, in order.
func (b *books) lines(entries []store.Entry) error {
	row := 0 // up to where victims have been checked
	for i := range entries {
		e := &entries[i]
		if err := b.follows(e); err != nil {
			return err
		}
		if i >= row {
			together, err := b.victims(entries[i:])
			if err != nil {
				return err
			}
			if err := b.checkVictims(together); err != nil {
				return err
			}
			row = i + len(together)
		}
		if err := b.read(e); err != nil {
			return fmt.Errorf("entry %d, %s %s of %s: %w", e.Seq, e.Kind, e.Name, e.Subject, err)
		}
	}
	return nil
}

// follows checks that an entry is the one that comes next.
func (b *books) follows(e *store.Entry) error {
	if e.Seq != b.seq+1 {
		return breaks("the journal has no gaps", "entry %d comes after entry %d", e.Seq, b.seq)
	}
	if e.At.Before(b.at) {
		return breaks("the journal goes forward in time", "entry %d is of %v, the one before of %v", e.Seq, e.At, b.at)
	}
	b.seq, b.at = e.Seq, e.At
	return nil
}

func (b *books) read(e *store.Entry) error {
	switch e.Kind {
	case store.Command:
		return b.command(e)
	case store.Decision:
		return b.decision(e)
	case store.Seen:
		return b.seen(e)
	case store.State:
		return b.state(e)
	}
	return breaks("the journal has four kinds of entries", "it has %q", e.Kind)
}

// compare checks the records that were committed with a batch of entries.
func (b *books) compare(batch store.Batch) error {
	for i := range batch.Jobs {
		j := &batch.Jobs[i]
		e := b.jobs[j.ID]
		if e == nil {
			return breaks("only accepted jobs are stored", "job %s was never accepted", j.ID)
		}
		e.record = *j
		delete(b.touched, e)
		if err := e.agrees(j); err != nil {
			return err
		}
	}
	for e := range b.touched {
		return breaks("what the journal says is stored with it", "job %s changed, and its record was not committed", e.id)
	}
	return nil
}

func (e *entry) agrees(j *job.Job) error {
	said := fmt.Sprint(e.status, e.priority, e.run, e.failures, e.preempted, e.evictions, e.stop != nil, e.status.Holds(), e.seq)
	is := fmt.Sprint(j.Status, j.Priority, j.Runs, j.Failures, j.PreemptionCount, j.Evictions, j.Stopping(), j.Current != nil, j.Seq)
	if said != is {
		return breaks("records agree with the journal", "job %s is by the journal (status, priority, runs, failures, preemptions, evictions, stopping, holds, number) %s, by its record %s", e.id, said, is)
	}
	if e.stop != nil && j.Current.Stop.Cause != e.stop.cause {
		return breaks("records agree with the journal", "job %s stops by the journal because %s, by its record because %s", e.id, e.stop.cause, j.Current.Stop.Cause)
	}
	if !e.notBefore.Equal(j.NotBefore) {
		return breaks("who loses its workers waits 60 s · 2^(n−1), at most an hour", "job %s, lost %d times, waits until %v, by its record until %v", e.id, e.evictions, e.notBefore, j.NotBefore)
	}
	if !e.moved.Equal(j.UpdatedAt) {
		return breaks("records agree with the journal", "job %s is %s since %v, by its record since %v", e.id, e.status, e.moved, j.UpdatedAt)
	}
	if e.granted || e.next != nil {
		return breaks("a job that was decided about changes its state", "job %s is still %s", e.id, e.status)
	}
	if _, gone := e.lane.deleted(); gone && e.status == job.Runnable {
		return breaks("who waits in something that is deleted ends", "job %s still waits", e.id)
	}
	return nil
}

func decode[T any](e *store.Entry) (v T, err error) {
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return v, fmt.Errorf("decode: %w", err)
	}
	return v, nil
}

// decision checks and books what was decided.
func (b *books) decision(e *store.Entry) error {
	j := b.jobs[e.Subject]
	if j == nil {
		return breaks("only accepted jobs are decided about", "there is none")
	}
	switch e.Name {
	case string(quota.Grant):
		return b.grant(j, e)
	case string(quota.Preempt):
		return b.tell(j, stop{cause: job.Preempted})
	case string(quota.Park):
		b.touched[j] = true
		return nil
	case "timeout":
		return b.timeout(j, e)
	case "time-limit":
		return b.timeLimit(j)
	}
	return breaks("decisions have names", "%s is none", e.Name)
}

// tell books an order to stop. It overrides one under way if the job comes back
// less readily after it.
func (b *books) tell(j *entry, s stop) error {
	if !j.status.Holds() {
		return breaks("only who holds capacity is told to stop", "job %s is %s", j.id, j.status)
	}
	if s.cause != job.Preempted {
		b.changes++ // what it holds is on its way back, for anybody
	}
	if j.stop != nil && finality(s.cause) <= finality(j.stop.cause) {
		return nil
	}
	b.touched[j] = true
	if j.stop == nil {
		plus(j.lane.stopping, j.demand, 1)
	}
	j.stop = &s
	return nil
}

func finality(c job.Cause) int {
	return slices.Index([]job.Cause{job.Preempted, job.MaxRuntime, job.AttemptTimeout, job.Terminated}, c)
}

func (b *books) timeout(j *entry, e *store.Entry) error {
	data, err := decode[struct{ Cause job.Cause }](e)
	if err != nil {
		return err
	}
	limit := map[job.Cause]time.Duration{job.AttemptTimeout: j.Timeout, job.MaxRuntime: j.MaxRuntime}[data.Cause]
	if limit == 0 || j.status != job.Running || e.At.Before(j.startedAt.Add(limit)) {
		return breaks("attempts have the time they were given", "job %s, %s since %v, is stopped at %v for a limit of %s (%s)", j.id, j.status, j.startedAt, e.At, limit, data.Cause)
	}
	text := job.ReasonAttemptTimeout
	if data.Cause == job.MaxRuntime {
		text = job.ReasonMaxRuntime
	}
	return b.tell(j, stop{cause: data.Cause, text: text})
}

func (b *books) timeLimit(j *entry) error {
	at, reason, ok := j.timeLimit()
	if !ok || at.After(b.at) || j.status != job.Runnable {
		return breaks("time limits end who was parked for so long", "job %s, %s and parked since %v with %q, ends", j.id, j.status, j.record.ReasonSince, j.record.Reason)
	}
	j.next = &stage{status: job.Failed, reason: job.TimeLimitReason(reason)}
	return nil
}

// timeLimit is when the first of the actions of its queue ends a parked job.
func (e *entry) timeLimit() (at time.Time, reason string, ok bool) {
	if e.status != job.Runnable || e.record.Reason == "" {
		return at, "", false
	}
	for _, a := range e.lane.queue.TimeLimitActions {
		t := e.record.ReasonSince.Add(a.After)
		if strings.HasPrefix(e.record.Reason, a.Reason) && (!ok || t.Before(at)) {
			at, reason, ok = t, a.Reason, true
		}
	}
	return at, reason, ok
}

// seen books what a runner saw.
func (b *books) seen(e *store.Entry) error {
	o, err := decode[runner.Observation](e)
	if err != nil {
		return err
	}
	j := b.jobs[e.Subject]
	if j == nil || o.Job != j.id || !j.status.Holds() || o.Run != j.run {
		return breaks("only news of the present attempt count", "%s of run %d of job %s", o.Event, o.Run, e.Subject)
	}
	b.touched[j] = true
	var next stage
	switch o.Event {
	case runner.Starting:
		next.status = job.Starting
	case runner.Running:
		next.status = job.Running
	case runner.Ended:
		if j.stop == nil || j.stop.cause != job.Preempted {
			b.changes++
		}
		b.release(j)
		next = j.end(o)
		j.stop = nil
	default:
		return nil
	}
	next.at = j.seenAt(o.At, e.At)
	j.next = &next
	return nil
}

// seenAt is when something happened to the job, as far as the runner's clock can
// be believed: not before what happened before, and not in the future.
func (e *entry) seenAt(at, now time.Time) time.Time {
	at = at.Truncate(time.Millisecond)
	switch {
	case at.After(now):
		return now
	case at.Before(e.moved):
		return e.moved
	}
	return at
}

// end is what becomes of a job whose attempt has ended (sections 5 to 7).
func (e *entry) end(o runner.Observation) stage {
	var cause job.Cause
	if e.stop != nil {
		cause = e.stop.cause
	}
	switch {
	case o.Outcome == runner.Succeeded:
		return stage{status: job.Succeeded, reason: job.ReasonCompleted}
	case o.Outcome == runner.Failed && cause != job.Terminated:
		return e.fail(fmt.Sprintf("%sAlgorithmError: %s, exit code: %d", job.FromSageMaker, o.Message, o.ExitCode))
	case o.Outcome == runner.Lost && cause == "":
		e.evictions++
		e.lost = true
		return stage{status: job.Runnable}
	case cause == "":
		return e.fail(job.ReasonStopped)
	case cause == job.Preempted:
		e.preempted++
		if e.PreemptionRetries != nil && e.preempted > *e.PreemptionRetries {
			return stage{status: job.Failed, reason: "Preemption retries exhausted"}
		}
		return stage{status: job.Runnable}
	case cause == job.MaxRuntime:
		return e.fail(job.ReasonMaxRuntime)
	default:
		return stage{status: job.Failed, reason: e.stop.text}
	}
}

// fail uses up an attempt.
func (e *entry) fail(reason string) stage {
	e.failures++
	if e.Strategy == nil || e.failures >= e.Strategy.Attempts {
		return stage{status: job.Failed, reason: reason}
	}
	for _, r := range e.Strategy.Rules {
		// Submissions have patterns of this one form.
		if strings.HasSuffix(reason, strings.TrimPrefix(r.Pattern, "*")) {
			if r.Action == job.Exit {
				return stage{status: job.Failed, reason: reason}
			}
			break
		}
	}
	return stage{status: job.Runnable}
}

// moves are the allowed changes of state.
var moves = map[job.Status][]job.Status{
	job.Runnable:  {job.Scheduled, job.Failed},
	job.Scheduled: {job.Starting, job.Running, job.Runnable, job.Succeeded, job.Failed},
	job.Starting:  {job.Running, job.Runnable, job.Succeeded, job.Failed},
	job.Running:   {job.Runnable, job.Succeeded, job.Failed},
}

// state checks and books a change of state.
func (b *books) state(e *store.Entry) error {
	j := b.jobs[e.Subject]
	if j == nil {
		return b.gone(e)
	}
	data, err := decode[struct {
		Run    int
		Reason string
	}](e)
	if err != nil {
		return err
	}
	status := job.Status(e.Name)
	if !slices.Contains(moves[j.status], status) {
		return breaks("states move along allowed edges only", "job %s goes from %s to %s", j.id, j.status, status)
	}
	if err := j.expected(status, data.Reason); err != nil {
		return err
	}
	b.enter(j, status)
	if data.Run != j.run {
		return breaks("runs are counted", "job %s is in run %d, by the journal in %d", j.id, j.run, data.Run)
	}
	return nil
}

// expected checks that a change of state is the one that had to come.
func (e *entry) expected(status job.Status, reason string) error {
	want := e.next
	if want == nil && e.granted {
		want = &stage{status: job.Scheduled}
	}
	if want == nil {
		if text, gone := e.lane.deleted(); gone && e.status == job.Runnable {
			want = &stage{status: job.Failed, reason: text}
		}
	}
	if want == nil {
		return breaks("states change for a reason", "job %s becomes %s (%s) for none", e.id, status, reason)
	}
	e.next, e.moved = nil, want.at
	if want.status != status || want.reason != "" && want.reason != reason {
		return breaks("jobs become what the rules say", "job %s becomes %s (%s), and should %s (%s)", e.id, status, reason, want.status, want.reason)
	}
	return nil
}

// enter books the new state.
func (b *books) enter(j *entry, status job.Status) {
	b.touched[j] = true
	if j.moved.IsZero() {
		j.moved = b.at
	}
	lost := j.status.Holds() && j.lost
	if j.use != nil && !status.Holds() {
		j.use.to, j.use = j.moved, nil
	}
	j.status, j.lost, j.notBefore = status, false, time.Time{}
	delete(b.waiting, j)
	switch status {
	case job.Scheduled:
		j.granted = false
		j.run++
	case job.Running:
		j.startedAt, j.evictions = j.moved, 0
	case job.Runnable:
		b.waiting[j] = true
		if lost {
			j.notBefore = j.moved.Add(backoff(j.evictions))
		}
	}
}

// backoff is how long a job waits that has lost its workers n times in a row
// (section 7).
func backoff(n int) time.Duration {
	d := time.Minute
	for ; n > 1 && d < time.Hour; n-- {
		d *= 2
	}
	return min(d, time.Hour)
}

// release takes back what a job holds.
func (b *books) release(j *entry) {
	plus(j.lane.held, j.demand, -1)
	plus(j.lane.pool.held, j.demand, -1)
	if j.stop != nil {
		plus(j.lane.stopping, j.demand, -1)
	}
	delete(b.holding, j)
}

func plus(to, demand map[string]int64, sign int64) {
	for unit, n := range demand {
		to[unit] += sign * n
	}
}

// ahead orders the jobs of one lane: priority, then creation, then number.
func ahead(x, y *entry) int {
	return cmp.Or(cmp.Compare(y.priority, x.priority), x.created.Compare(y.created), cmp.Compare(x.seq, y.seq))
}
