package governor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/memory"
)

const g5 = "ml.g5.xlarge"

// start is when the clock of every test begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// house is a governor with a store in memory, virtual workers and a clock that
// the test turns.
type house struct {
	tb       testing.TB
	store    *memory.Store
	clock    *clock.Manual
	world    *simulated.World
	governor *governor.Governor
	grace    time.Duration
	runners  func(runner.Report) (runner.Runner, error) // the world's, unless a test comes between

	mu       sync.Mutex
	programs map[string]simulated.Program // by job name
	ids      map[string]string            // by job name, of the newest job of that name
	given    int
}

func newHouse(tb testing.TB, options ...func(*house)) *house {
	tb.Helper()
	h := &house{
		tb: tb, store: memory.New(), clock: clock.NewManual(start),
		programs: map[string]simulated.Program{}, ids: map[string]string{},
	}
	for _, option := range options {
		option(h)
	}
	h.world = simulated.NewWorld(h.clock, h.grace, func(a runner.Attempt) simulated.Program {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.programs[a.JobName]
	})
	h.runners = h.world.Attach
	h.open()
	tb.Cleanup(h.close) // closing twice does no harm
	return h
}

// grace gives workers time to stop.
func grace(d time.Duration) func(*house) { return func(h *house) { h.grace = d } }

func (h *house) open() {
	h.tb.Helper()
	h.governor = governor.New(governor.Config{
		Store: h.store, NewRunner: h.runners, Clock: h.clock,
		NewID:          h.nextID,
		NewSuffix:      func() string { return "0123456789abcdef0123456789abcdef" },
		TrainingJobARN: func(name string) string { return "arn:aws:sagemaker:us-east-1:000000000000:training-job/" + name },
		Log:            slog.New(slog.DiscardHandler),
	})
	must(h.tb, h.governor.Start(h.ctx()))
}

func (h *house) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.governor.Stop(ctx); err != nil {
		h.tb.Errorf("stop: %v", err)
	}
}

// restart ends the governor and starts another on the same store and world.
func (h *house) restart() {
	h.tb.Helper()
	h.close()
	h.open()
	h.turn(0)
}

func (h *house) ctx() context.Context {
	return governor.WithPrincipal(h.tb.Context(), "tester")
}

func (h *house) nextID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", h.given)
}

// turn turns the clock by d, letting the governor finish what each event on
// the way brings about.
func (h *house) turn(d time.Duration) {
	h.tb.Helper()
	h.settle()
	for limit := h.clock.Now().Add(d); h.clock.Step(limit); {
		h.settle()
	}
}

// turnTo turns the clock to a time since the start.
func (h *house) turnTo(since time.Duration) {
	h.tb.Helper()
	h.turn(start.Add(since).Sub(h.clock.Now()))
}

// settle waits until the governor has done all that it was told, and reports
// whether it can: not while its store fails.
func (h *house) settle() bool {
	h.tb.Helper()
	_, err := h.governor.Environments(h.ctx())
	if err != nil && !errors.Is(err, governor.ErrUnavailable) {
		h.tb.Fatalf("settle: %v", err)
	}
	return err == nil
}

// getOver turns the clock until the governor has got over an outage.
func (h *house) getOver() {
	h.tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !h.settle(); {
		if time.Now().After(deadline) {
			h.tb.Fatal("the governor does not recover though its store does")
		}
		h.clock.Step(h.clock.Now().Add(time.Second))
	}
	h.turn(0)
}

// environment declares an environment with one unit.
func (h *house) environment(name, unit string, capacity int64) {
	h.tb.Helper()
	must(h.tb, h.governor.CreateEnvironment(h.ctx(), resource.Environment{Name: name, Limits: limits(unit, capacity)}))
}

// quotaQueue declares an environment of g5 and a queue with shares on it.
func (h *house) quotaQueue(capacity int64, shares ...resource.Share) {
	h.tb.Helper()
	h.environment("env", g5, capacity)
	must(h.tb, h.governor.CreatePolicy(h.ctx(), resource.Policy{Name: "quota", IdleAssignment: resource.IdleFIFO}))
	must(h.tb, h.governor.CreateQueue(h.ctx(), resource.Queue{Name: "q", Priority: 1, Environment: "env", EnvironmentOrder: 1, Policy: "quota"}))
	for _, s := range shares {
		s.Queue = "q"
		must(h.tb, h.governor.CreateShare(h.ctx(), s))
	}
}

// plainQueue declares a queue without policy on an environment that counts
// instances.
func (h *house) plainQueue(capacity int64, options ...func(*resource.Queue)) {
	h.tb.Helper()
	h.environment("env", resource.NumInstances, capacity)
	q := resource.Queue{Name: "q", Priority: 1, Environment: "env", EnvironmentOrder: 1}
	for _, option := range options {
		option(&q)
	}
	must(h.tb, h.governor.CreateQueue(h.ctx(), q))
}

func limits(unit string, amount int64) []resource.Limit {
	return []resource.Limit{{Unit: unit, Max: amount}}
}

func share(name string, quota int64, sharing resource.Sharing, borrow int64, inShare bool) resource.Share {
	return resource.Share{Name: name, Limits: limits(g5, quota), Sharing: sharing, BorrowLimit: borrow, InSharePreemption: inShare}
}

// submission is one of a job for n instances; workers run by program.
func submission(name string, n int64, options ...func(*governor.Submission)) governor.Submission {
	s := governor.Submission{
		Name: name, Queue: "q", Demand: []job.Amount{{Unit: g5, Quantity: n}}, Workers: int(n),
		TrainingJobName: "train", Payload: `{"of":"` + name + `"}`,
	}
	for _, option := range options {
		option(&s)
	}
	return s
}

func in(shareName string) func(*governor.Submission) {
	return func(s *governor.Submission) { s.Share = shareName }
}

func priority(p int32) func(*governor.Submission) {
	return func(s *governor.Submission) { s.Priority = p }
}

// submit submits a job whose workers run by the program, and lets it start.
func (h *house) submit(p simulated.Program, s governor.Submission) job.Job {
	h.tb.Helper()
	h.mu.Lock()
	h.programs[s.Name] = p
	h.mu.Unlock()
	j, err := h.governor.Submit(h.ctx(), s)
	must(h.tb, err)
	h.mu.Lock()
	h.ids[s.Name] = j.ID
	h.mu.Unlock()
	h.turn(0)
	return j
}

func (h *house) id(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids[name]
}

func (h *house) job(name string) job.Job {
	h.tb.Helper()
	j, err := h.governor.Job(h.ctx(), h.id(name))
	must(h.tb, err)
	return j
}

// expect checks which of the jobs named run, wait, stop and have finished.
func (h *house) expect(want map[string]string) {
	h.tb.Helper()
	for _, name := range sortedKeys(want) {
		j := h.job(name)
		got := string(j.Status)
		if j.Stopping() {
			got = "stopping"
		}
		if got != want[name] {
			h.tb.Errorf("at %v: job %s is %s (%s), want %s", h.clock.Now().Sub(start), name, got, j.Reason, want[name])
		}
	}
}

// journal returns all entries, after checking that none is missing.
func (h *house) journal() []store.Entry {
	h.tb.Helper()
	entries, err := h.governor.Journal(h.ctx(), 0, 1_000_000)
	must(h.tb, err)
	for i, e := range entries {
		if e.Seq != int64(i)+1 {
			h.tb.Fatalf("journal entry %d has sequence number %d", i, e.Seq)
		}
	}
	return entries
}

// lines returns the journal of one subject as kind and name.
func (h *house) lines(subject string) []string {
	h.tb.Helper()
	var lines []string
	for _, e := range h.journal() {
		if e.Subject == subject {
			lines = append(lines, string(e.Kind)+" "+e.Name)
		}
	}
	return lines
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// mustRefuse checks that a command was refused with a message.
func mustRefuse(tb testing.TB, err error, problem governor.Problem, message string) {
	tb.Helper()
	var r *governor.Refusal
	switch {
	case !errors.As(err, &r):
		tb.Errorf("got error %v, want a refusal: %s", err, message)
	case r.Problem != problem || r.Message != message:
		tb.Errorf("refused (%d) %s\n    want (%d) %s", r.Problem, r.Message, problem, message)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func ptr[T any](v T) *T { return &v }
