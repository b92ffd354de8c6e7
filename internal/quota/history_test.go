package quota_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
)

// cohort is what the engine and the plain pass have in common.
type cohort interface {
	SetPolicy(quota.Policy)
	SetCapacity(quota.Amounts)
	SetShare(quota.Share)
	RemoveShare(string) error
	Add(quota.Job) error
	Restore(quota.Job, quota.Holding) error
	SetPriority(quota.JobID, int32) error
	Checkpointed(quota.JobID, time.Time) error
	Stop(quota.JobID) error
	Requeue(quota.JobID, time.Time) error
	Remove(quota.JobID) error
	Pass(time.Time) []quota.Decision
	Reason(quota.JobID, time.Time) (quota.Reason, bool)
	Heads(string, int) []quota.JobID
	Counts(string) (waiting, holding int)
	Wake() (time.Time, bool)
	Promised() []quota.JobID
	Charge(share string, amount int64, from, to time.Time) error
	Balances(string) []quota.Balance
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// history does the same to the engine and to the plain pass, and watches what
// both decide.
type history struct {
	*rapid.T
	fast  cohort
	plain *plain
	units []quota.Unit
	now   time.Time
	next  quota.JobID

	// What was done, and what the engine decided in each pass, for I10.
	policy  quota.Policy
	calls   []call
	decided [][]quota.Decision

	// script is all of it once more, for people, and event what the next call
	// is called there.
	fair   quota.Fair // of its one fair-share queue
	script *script
	event  string

	// outranked is, for I8, whom a waiting job was preempted for, since
	// quotas, priorities and capacity last changed.
	outranked map[quota.JobID]*outranking
}

// call is a call that changes a cohort, or a pass.
type call struct {
	do   func(cohort) error
	pass time.Time
}

func newHistory(t *rapid.T, queueing quota.Queueing) *history {
	policy := drawPolicy(t, queueing)
	h := &history{
		T: t, fast: quota.NewCohort(policy), plain: newPlain(policy), policy: policy, now: epoch, next: 1,
		units:     []quota.Unit{"a", "b", "c"}[:rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "units")],
		outranked: map[quota.JobID]*outranking{},
	}
	h.Logf("policy %+v", policy)
	for i := range rapid.SampledFrom([]int{1, 2, 3, 3, 4}).Draw(t, "shares") {
		h.setShare(fmt.Sprintf("s%d", i))
	}
	h.setCapacity()
	h.drawFairQueue()
	h.script = newScript(h.plain)
	return h
}

func drawPolicy(t *rapid.T, queueing quota.Queueing) quota.Policy {
	duration := func(label string, of ...time.Duration) time.Duration { return rapid.SampledFrom(of).Draw(t, label) }
	return quota.Policy{
		Queueing:                  queueing,
		IdleAssignment:            rapid.SampledFrom([]quota.IdleAssignment{quota.FairShare, quota.FairShare, quota.FIFO}).Draw(t, "idle assignment"),
		PriorityScope:             rapid.SampledFrom([]quota.PriorityScope{quota.InEachShare, quota.InCohort}).Draw(t, "priority scope"),
		Victims:                   rapid.SampledFrom([]quota.Victims{quota.LeastLostWork, quota.MostOverQuota, quota.NewestFirst}).Draw(t, "victims"),
		BorrowerPreemption:        rapid.Bool().Draw(t, "borrower preemption"),
		Rebalance:                 rapid.SampledFrom([]bool{true, true, false}).Draw(t, "rebalance"),
		ShareUnallocated:          rapid.Bool().Draw(t, "share unallocated"),
		MinRuntime:                duration("minimum runtime", 0, 0, 0, 0, 0, time.Minute, 10*time.Minute),
		AssumedCheckpointInterval: duration("interval", 0, time.Minute, 10*time.Minute),
	}
}

// both makes a call to both, which must answer alike.
func (h *history) both(what string, do func(cohort) error) {
	h.Helper()
	h.note(what)
	h.calls = append(h.calls, call{do: do})
	fast, plain := do(h.fast), do(h.plain)
	if !errors.Is(fast, plain) {
		h.Fatalf("%s: the engine says %v, the plain pass %v", what, fast, plain)
	}
}

// tell has the next call told as an event of a scenario.
func (h *history) tell(format string, args ...any) { h.event = fmt.Sprintf(format, args...) }

func (h *history) note(what string) {
	h.Log(what)
	switch {
	case h.script == nil: // it begins with what is set up now
	case h.event != "":
		h.script.event(h.now, h.event)
	default:
		h.script.comment(h.now, what)
	}
	h.event = ""
}

// pass has both decide, and compares everything that can be seen of it.
func (h *history) pass() {
	h.Helper()
	before := h.plain.clone()
	before.now = h.now
	fast, plain := h.fast.Pass(h.now), h.plain.Pass(h.now)
	h.Logf("pass at %v: %s", h.now.Sub(epoch), tell(plain))
	if len(plain) > 0 {
		h.script.comment(h.now, tell(plain))
	}
	h.script.passes++
	h.calls, h.decided = append(h.calls, call{pass: h.now}), append(h.decided, fast)
	if diff := cmp.Diff(plain, fast, cmp.Comparer(sameReason), sameCandidates, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("decisions differ (-plain +engine):\n%s\nplain:  %s\nengine: %s", diff, tell(plain), tell(fast))
	}
	for _, err := range []error{
		checkInvariants(before, fast), h.plain.broken, checkConserves(h.plain), h.checkPingPong(fast),
	} {
		if err != nil {
			h.Fatal(err)
		}
	}
	h.compareViews()
	for name, c := range map[string]cohort{"engine": h.fast, "plain pass": h.plain} {
		if more := c.Pass(h.now); len(more) > 0 {
			h.Fatalf("a second pass of the %s at once decides more: %s", name, tell(more))
		}
	}
}

// comeToRest: while nothing changes but that those are gone who were told to
// stop, there is soon nothing more to decide. A job is preempted a few times at
// most, by whoever goes before it.
func (h *history) comeToRest() {
	preempted, most := 0, 2*len(h.plain.jobs)
	for range most + 2 {
		before := len(h.calls)
		h.allGone()
		h.pass()
		decided := h.decided[len(h.decided)-1]
		for _, d := range decided {
			if d.Kind == quota.Preempt {
				preempted++
			}
		}
		if len(h.calls) == before+1 && len(decided) == 0 && preempted <= most {
			return
		}
	}
	h.Fatalf("%d jobs, %d preemptions, and no end of it", len(h.plain.jobs), preempted)
}

// sameReason compares of a reason what is settled to the last number.
func sameReason(a, b quota.Reason) bool {
	return a.Code == b.Code && a.Unit == b.Unit && a.Wants == b.Wants && a.Lacks == b.Lacks &&
		a.Text == b.Text && a.Ahead == b.Ahead && a.Until.Equal(b.Until) && a.Earliest.Equal(b.Earliest) && a.After == b.After
}

// sameCandidates leaves out how many jobs there were to choose from: the engine
// counts, too, those of the shares it chose from that hold none of what is short.
var sameCandidates = cmpopts.IgnoreFields(quota.Decision{}, "Candidates")

// checkPingPong is I8: if a preempted b, b does not preempt a. That a's share
// has borrowed since, be it for a, counts as a change in between: it put a at
// risk itself. That borrowers do not go back and forth for ever is for
// comeToRest to see.
func (h *history) checkPingPong(decisions []quota.Decision) error {
	for _, d := range decisions {
		switch {
		case d.Kind == quota.Grant && d.Ground == quota.Borrow:
			for _, o := range h.outranked {
				o.exposed = o.exposed || o.share == d.Share
			}
		case d.Kind == quota.Preempt:
			if o := h.outranked[d.For]; o != nil && o.by == d.Job && !o.exposed {
				return fmt.Errorf("I8 broken: job %d was preempted for job %d, and now preempts it", d.For, d.Job)
			}
			h.outranked[d.Job] = &outranking{by: d.For, share: d.ForShare}
		}
	}
	return nil
}

// outranking is whom a job was preempted for and why, and whether that one was
// put at risk since.
type outranking struct {
	by      quota.JobID
	share   string
	exposed bool
}

// compareViews is, among others, I9: both have the same jobs waiting and
// holding, none lost, none twice.
func (h *history) compareViews() {
	h.Helper()
	for _, name := range slices.Sorted(maps.Keys(h.plain.shares)) {
		fastWaiting, fastHolding := h.fast.Counts(name)
		waiting, holding := h.plain.Counts(name)
		if fastWaiting != waiting || fastHolding != holding {
			h.Fatalf("I9 broken: share %s of the engine has %d waiting and %d holding, of the plain pass %d and %d",
				name, fastWaiting, fastHolding, waiting, holding)
		}
		if fast, plain := h.fast.Heads(name, 100), h.plain.Heads(name, 100); !slices.Equal(fast, plain) {
			h.Fatalf("heads of %s: the engine says %v, the plain pass %v", name, fast, plain)
		}
		h.compareBalances(name)
	}
	for _, id := range slices.Sorted(maps.Keys(h.plain.jobs)) {
		fast, ok := h.fast.Reason(id, h.now)
		plain, want := h.plain.Reason(id, h.now)
		if ok != want {
			h.Fatalf("job %d has a reason in the engine: %v, in the plain pass: %v", id, ok, want)
		}
		if sameReason(plain, fast) && plain.Place == fast.Place {
			continue
		}
		if diff := cmp.Diff(plain, fast); diff != "" {
			h.Fatalf("reasons of job %d differ (-plain +engine):\n%s", id, diff)
		}
	}
	if fast, plain := h.fast.Promised(), h.plain.Promised(); !slices.Equal(fast, plain) {
		h.Fatalf("the engine promised what was given back to %v, the plain pass to %v", fast, plain)
	}
	h.compareWake()
}

// compareWake: the engine may be woken to decide nothing, but not too late.
func (h *history) compareWake() {
	h.Helper()
	fast, ok := h.fast.Wake()
	if ok && !fast.After(h.now) {
		h.Fatalf("the engine wakes at %v, before it is later", fast.Sub(epoch))
	}
	if plain, want := h.plain.Wake(); want && (!ok || fast.After(plain)) {
		h.Fatalf("the engine wakes at %v (%v), but decides something at %v", fast.Sub(epoch), ok, plain.Sub(epoch))
	}
}

// compareBalances leaves open who lends to whom, but not the sums.
func (h *history) compareBalances(name string) {
	h.Helper()
	balances := h.fast.Balances(name)
	alike := func(a, b quota.Balance) bool {
		a.Lent, a.Free = b.Lent, b.Free
		return a == b
	}
	if plain := h.plain.Balances(name); !slices.EqualFunc(plain, balances, alike) {
		h.Fatalf("balances of %s: the engine says %+v, the plain pass %+v", name, balances, plain)
	}
	for _, b := range balances {
		if h.plain.shares[name].Fair != nil {
			continue // its nominal is everybody's
		}
		limit := lendLimit(h.plain.shares[name], b.Unit)
		if unused := max(0, b.Nominal-b.Usage); b.Lent+b.Free != unused || b.Lent < 0 || b.Free < 0 || b.Lent > limit {
			h.Fatalf("balance of %s: lends %d of at most %d and has %d free, of %d unused: %+v", name, b.Lent, limit, b.Free, unused, b)
		}
	}
}

func tell(decisions []quota.Decision) string {
	var told []string
	for _, d := range decisions {
		switch d.Kind {
		case quota.Grant:
			told = append(told, fmt.Sprintf("grant %d (%s, %s)", d.Job, d.Share, d.Ground))
		case quota.Preempt:
			told = append(told, fmt.Sprintf("preempt %d (%s, %s) for %d (%s)", d.Job, d.Share, d.Ground, d.For, d.ForShare))
		case quota.Park:
			told = append(told, fmt.Sprintf("park %d (%s): %q", d.Job, d.Share, d.Reason.Text))
		}
	}
	return strings.Join(told, ", ")
}

// ---- What may happen

func (h *history) oneOf(label string, values ...int64) int64 {
	return rapid.SampledFrom(values).Draw(h.T, label)
}

// amounts draws an amount for every unit; a negative one leaves the unit out.
func (h *history) amounts(label string, values ...int64) quota.Amounts {
	amounts := quota.Amounts{}
	for _, u := range h.units {
		if n := h.oneOf(label+" "+string(u), values...); n >= 0 {
			amounts[u] = n
		}
	}
	return amounts
}

// setCapacity is about what all shares own: the pool is undersubscribed,
// oversubscribed, or neither. It is little, for the plain pass tries every set of
// jobs.
func (h *history) setCapacity() {
	capacity := quota.Amounts{}
	for _, u := range h.units {
		for _, s := range h.plain.shares {
			if s.Fair == nil {
				capacity[u] += s.Nominal[u]
			}
		}
		capacity[u] = min(9, max(0, capacity[u]+h.oneOf("spare "+string(u), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, -1, -2, -9)))
	}
	clear(h.outranked)
	h.tell("setCapacity: %s", flow(capacity))
	h.both(fmt.Sprintf("capacity %v", capacity), func(c cohort) error { c.SetCapacity(capacity); return nil })
}

func (h *history) setShare(name string) {
	if h.plain.shares[name].Fair != nil {
		h.setFairShare(name)
		return
	}
	s := quota.Share{
		Name:              name,
		Rank:              h.oneOf("rank", 0, 0, 0, 1),
		Nominal:           h.amounts("nominal", 2, 3, 1, 2, 4, 1, 2, 0, -1),
		Sharing:           quota.Sharing(h.oneOf("sharing", int64(quota.LendAndBorrow), int64(quota.LendAndBorrow), int64(quota.LendAndBorrow), int64(quota.Lend), int64(quota.Reserve))),
		BorrowPercent:     h.oneOf("percent", quota.Unlimited, quota.Unlimited, quota.Unlimited, 200, 100, 50, 0),
		InSharePreemption: rapid.Bool().Draw(h.T, "in-share preemption"),
		Weight:            h.oneOf("weight", 1, 1, 2, 3, 0),
	}
	if h.oneOf("absolute limits", 0, 0, 0, 1) == 1 {
		s.BorrowLimits, s.LendLimits = h.amounts("borrow limit", -1, 0, 1, 3), h.amounts("lend limit", -1, 0, 1, 3)
	}
	clear(h.outranked)
	if h.script != nil {
		h.tell("%s", h.script.declare(s))
	}
	h.both(fmt.Sprintf("share %+v", s), func(c cohort) error { c.SetShare(s); return nil })
}

func (h *history) share() string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(h.plain.shares))).Draw(h.T, "share")
}

// busyShare leaves the last one idle mostly, so that there is something to
// borrow.
func (h *history) busyShare() string {
	names := slices.Sorted(maps.Keys(h.plain.shares))
	if len(names) > 1 && h.oneOf("busy", 1, 1, 1, 0) == 1 {
		names = names[:len(names)-1]
	}
	return rapid.SampledFrom(names).Draw(h.T, "share")
}

// pick draws a job that is like that; without one the step is skipped.
func (h *history) pick(is func(*plainJob) bool) quota.JobID {
	var ids []quota.JobID
	for _, id := range slices.Sorted(maps.Keys(h.plain.jobs)) {
		if is(h.plain.jobs[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		h.Skip("no such job")
	}
	return rapid.SampledFrom(ids).Draw(h.T, "job")
}

func anyJob(*plainJob) bool  { return true }
func waits(j *plainJob) bool { return j.holding == nil }
func holds(j *plainJob) bool { return j.holding != nil }
func stops(j *plainJob) bool { return j.holding != nil && j.holding.Stopping != nil }

func (h *history) newJob() quota.Job {
	j := quota.Job{
		ID: h.next, Share: h.busyShare(), Priority: int32(h.oneOf("priority", 0, 1, 2, 3)),
		Created:    h.now.Add(-time.Duration(h.oneOf("older", 0, 0, 0, 1, 2)) * time.Minute),
		Demand:     quota.Amounts{},
		MaxRuntime: time.Duration(h.oneOf("maximum runtime", 0, 0, 1, 5, 10, 60)) * time.Minute,
	}
	h.next++
	for _, u := range h.units {
		if n := h.oneOf("demand "+string(u), 1, 1, 0, 1, 1, 2, 0, 3); n > 0 {
			j.Demand[u] = n
		}
	}
	if len(j.Demand) == 0 {
		j.Demand[h.units[0]] = 1
	}
	return j
}

// actions are what may happen, the most frequent several times. After most of
// them a pass runs.
func (h *history) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){}
	often := func(times int, name string, do func()) {
		for i := range times {
			actions[fmt.Sprintf("%s %d", name, i)] = func(*rapid.T) {
				do()
				if h.oneOf("then a pass", 1, 1, 1, 0) == 1 {
					h.pass()
				}
			}
		}
	}
	often(4, "submit", h.submit)
	often(4, "submit several", h.submitSeveral)
	often(2, "restore", h.restore)
	often(2, "end", func() { h.remove(holds) })
	often(1, "give up", func() { h.remove(waits) })
	often(1, "gone", func() { h.gone(h.pick(stops)) })
	often(3, "all gone", h.allGone)
	often(1, "back off", h.backOff)
	often(1, "stop", h.stop)
	often(2, "priority", h.setPriority)
	often(2, "checkpoint", h.checkpoint)
	often(3, "time", h.advance)
	often(1, "wake", h.wake)
	often(1, "capacity", h.setCapacity)
	often(12, "contend", h.contend)
	often(2, "share", func() { h.setShare(h.share()) })
	often(1, "shares", h.addOrRemoveShare)
	often(1, "policy", h.setPolicy)
	often(2, "restart", h.restart)
	often(1, "mistake", h.mistake)
	return actions
}

func (h *history) add(j quota.Job) {
	h.tell("%s", h.script.submit(h.now, j))
	h.both(fmt.Sprintf("add %+v", j), func(c cohort) error { return c.Add(j) })
}

func (h *history) submit() {
	j := h.newJob()
	if h.oneOf("backs off", 0, 0, 0, 0, 0, 0, 0, 1) == 1 {
		j.NotBefore = h.now.Add(time.Minute)
	}
	h.add(j)
}

// submitSeveral has a share ask for more than it owns, while others may idle.
func (h *history) submitSeveral() {
	j := h.newJob()
	for range h.oneOf("jobs", 2, 3, 4, 5) {
		h.add(j)
		j.ID = h.next
		h.next++
	}
}

// contend has every share but the last ask for little, of different priorities:
// what that one lends goes from one to the other.
func (h *history) contend() {
	for _, name := range slices.Sorted(maps.Keys(h.plain.shares))[:max(1, len(h.plain.shares)-1)] {
		j := quota.Job{ID: h.next, Share: name, Created: h.now, Priority: int32(h.oneOf("priority", 0, 1, 2, 3))}
		j.Demand = quota.Amounts{h.units[0]: h.oneOf("demand", 1, 1, 2)}
		h.next++
		h.add(j)
	}
}

// restore adds a job that holds capacity, which may break every limit; but
// few, for the plain pass tries every set of them.
func (h *history) restore() {
	if len(h.plain.held()) > 6 {
		h.Skip("enough")
	}
	j, held := h.newJob(), quota.Holding{Since: h.ago(0, 1, 5, 30, 90)}
	if h.oneOf("checkpoint", 0, 1) == 1 {
		held.Checkpoint = h.ago(0, 2, 20)
	}
	if h.oneOf("stops", 0, 0, 1) == 1 {
		held.Stopping = &quota.Preemption{Ground: quota.Ended}
	}
	clear(h.outranked) // it may take its share over its quota by itself
	h.tell("%s", h.script.submit(h.now, j))
	h.both(fmt.Sprintf("restore %+v with %+v", j, held), func(c cohort) error {
		held := held
		return c.Restore(j, held)
	})
}

func (h *history) ago(minutes ...int64) time.Time {
	return h.now.Add(-time.Duration(h.oneOf("minutes ago", minutes...)) * time.Minute)
}

func (h *history) stop() {
	id := h.pick(holds)
	h.both(fmt.Sprintf("job %d must stop", id), func(c cohort) error { return c.Stop(id) })
}

func (h *history) gone(id quota.JobID) {
	h.both(fmt.Sprintf("job %d is gone, and waits", id), func(c cohort) error { return c.Requeue(id, time.Time{}) })
}

func (h *history) backOff() {
	id, until := h.pick(holds), h.now.Add(time.Duration(h.oneOf("minutes", 1, 2, 10))*time.Minute)
	h.both(fmt.Sprintf("job %d waits until %v", id, until.Sub(epoch)), func(c cohort) error { return c.Requeue(id, until) })
}

func (h *history) setPriority() {
	id, priority := h.pick(anyJob), int32(h.oneOf("priority", 0, 1, 2, 3, 4, 5))
	clear(h.outranked)
	h.tell("setPriority: {job: %s, priority: %d}", jobName(id), priority)
	h.both(fmt.Sprintf("priority of job %d: %d", id, priority), func(c cohort) error { return c.SetPriority(id, priority) })
}

func (h *history) checkpoint() {
	id, at := h.pick(holds), h.ago(0, 1, 3, 10)
	h.both(fmt.Sprintf("checkpoint of job %d at %v", id, at.Sub(epoch)), func(c cohort) error { return c.Checkpointed(id, at) })
}

func (h *history) setPolicy() {
	policy := drawPolicy(h.T, rapid.SampledFrom([]quota.Queueing{quota.Strict, quota.BestEffort, quota.Backfill}).Draw(h.T, "queueing"))
	policy.Paused = h.oneOf("paused", 0, 0, 1) == 1
	clear(h.outranked)
	h.both(fmt.Sprintf("policy %+v", policy), func(c cohort) error { c.SetPolicy(policy); return nil })
}

func (h *history) remove(is func(*plainJob) bool) {
	id := h.pick(is)
	if holds(h.plain.jobs[id]) {
		h.tell("succeed: {job: %s}", jobName(id))
	} else {
		h.tell("terminate: {job: %s, reason: given up}", jobName(id))
	}
	h.both(fmt.Sprintf("remove job %d", id), func(c cohort) error { return c.Remove(id) })
}

// allGone ends the grace period of everything that stops.
func (h *history) allGone() {
	for _, id := range slices.Sorted(maps.Keys(h.plain.jobs)) {
		if stops(h.plain.jobs[id]) {
			h.gone(id)
		}
	}
}

func (h *history) advance() {
	h.now = h.now.Add(time.Duration(h.oneOf("seconds", 1, 30, 120, 3600)) * time.Second)
}

func (h *history) wake() {
	if at, ok := h.plain.Wake(); ok && at.After(h.now) {
		h.now = at
	}
}

func (h *history) addOrRemoveShare() {
	name := rapid.SampledFrom([]string{"s3", "s4"}).Draw(h.T, "share")
	if _, ok := h.plain.shares[name]; !ok {
		h.setShare(name)
	} else if len(h.plain.shares) > 1 {
		clear(h.outranked)
		h.both("remove share "+name, func(c cohort) error { return c.RemoveShare(name) })
	}
}

// restart builds the engine anew from what is known of its jobs, in any order:
// whatever it keeps between passes to be fast never changes an outcome.
// Checkpoints of waiting jobs must be told once more.
func (h *history) restart() {
	h.note("restart")
	order := rand.New(rand.NewPCG(rapid.Uint64().Draw(h.T, "order"), 0))
	promised := h.fast.Promised()
	h.fast = rebuilt(h.plain, promised, order)
	for _, ids := range h.plain.givenBack { // to those who have what they were promised, nothing is
		maps.DeleteFunc(ids, func(id quota.JobID, _ bool) bool { return !slices.Contains(promised, id) })
	}
	for _, j := range h.plain.jobs {
		if j.holding == nil {
			j.checkpoint = time.Time{}
		}
	}
	h.recharge()
}

func rebuilt(p *plain, promised []quota.JobID, order *rand.Rand) *quota.Cohort {
	c := quota.NewCohort(p.policy)
	names, ids := slices.Sorted(maps.Keys(p.shares)), slices.Sorted(maps.Keys(p.jobs))
	order.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	order.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, name := range names {
		c.SetShare(p.shares[name])
	}
	for _, id := range ids {
		j := p.jobs[id]
		if j.holding == nil {
			waiting := j.Job
			waiting.Parked, waiting.Promised = j.parked, slices.Contains(promised, id)
			_ = c.Add(waiting)
			continue
		}
		held := *j.holding
		held.Checkpoint = j.checkpoint
		_ = c.Restore(j.Job, held)
	}
	c.SetCapacity(p.capacity)
	return c
}

// mistake makes a call that must be refused and change nothing.
func (h *history) mistake() {
	good := h.newJob()
	mistakes := map[string]func(cohort) error{
		"no such job": func(c cohort) error {
			return errors.Join(c.Remove(good.ID), c.Stop(good.ID), c.SetPriority(good.ID, 1))
		},
		"no such share": func(c cohort) error { return c.RemoveShare("nobody") },
		"no share's job": func(c cohort) error {
			bad := good
			bad.Share = "nobody"
			return c.Add(bad)
		},
		"nothing demanded": func(c cohort) error {
			bad := good
			bad.Demand = nil
			return c.Add(bad)
		},
		"no amount demanded": func(c cohort) error {
			bad := good
			bad.Demand = quota.Amounts{h.units[0]: 0}
			return c.Restore(bad, quota.Holding{})
		},
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(mistakes))).Draw(h.T, "mistake")
	h.Log("mistake: " + name)
	fast, plain := mistakes[name](h.fast), mistakes[name](h.plain)
	for _, err := range []error{quota.ErrNoShare, quota.ErrNoJob, quota.ErrJobExists, quota.ErrHolds, quota.ErrWaits, quota.ErrDemand} {
		if errors.Is(fast, err) != errors.Is(plain, err) {
			h.Fatalf("%s: the engine says %v, the plain pass %v", name, fast, plain)
		}
	}
}

// TestHistories holds the engine against the plain pass over random histories.
// Run it with -rapid.checks=N for more of them and -rapid.steps=N for longer ones.
func TestHistories(t *testing.T) {
	for name, queueing := range map[string]quota.Queueing{
		"Strict": quota.Strict, "BestEffort": quota.BestEffort, "Backfill": quota.Backfill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			rapid.Check(t, func(t *rapid.T) {
				h := newHistory(t, queueing)
				agree := false
				defer func() {
					if !agree {
						h.keep(name)
					}
				}()
				t.Repeat(h.actions())
				h.comeToRest()
				agree = true
			})
		})
	}
}
