package runnertest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/runner"
)

// Recorder keeps what a runner reports, for tests to wait for.
type Recorder struct {
	tb testing.TB

	mu   sync.Mutex
	seen map[runner.Key][]runner.Observation
	more chan struct{} // closed when there is something new
}

// NewRecorder returns an empty recorder.
func NewRecorder(tb testing.TB) *Recorder {
	tb.Helper()
	return &Recorder{tb: tb, seen: map[runner.Key][]runner.Observation{}, more: make(chan struct{})}
}

// Report is a runner.Report.
func (r *Recorder) Report(o runner.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[o.Key] = append(r.seen[o.Key], o)
	close(r.more)
	r.more = make(chan struct{})
}

// Seen returns what was reported of an attempt so far.
func (r *Recorder) Seen(key runner.Key) []runner.Observation {
	seen, _ := r.look(key)
	return seen
}

func (r *Recorder) look(key runner.Key) ([]runner.Observation, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen[key]), r.more
}

// Await waits for the first observation of the attempt that is as wanted.
func (r *Recorder) Await(key runner.Key, what string, wanted func(runner.Observation) bool) runner.Observation {
	r.tb.Helper()
	late := time.After(patience)
	for {
		seen, more := r.look(key)
		if i := slices.IndexFunc(seen, wanted); i >= 0 {
			return seen[i]
		}
		if len(seen) > 0 && seen[len(seen)-1].Event == runner.Ended {
			r.tb.Fatalf("no %s before the end; reported were %+v", what, seen)
		}
		select {
		case <-more:
		case <-late:
			r.tb.Fatalf("no %s within %v; reported were %+v", what, patience, seen)
		}
	}
}

// AwaitEvent waits for an event of the attempt.
func (r *Recorder) AwaitEvent(key runner.Key, event runner.Event) runner.Observation {
	r.tb.Helper()
	return r.Await(key, string(event), func(o runner.Observation) bool { return o.Event == event })
}

// watched is a runner under test, with what it reports.
type watched struct {
	*Recorder
	t *testing.T
	r runner.Runner
}

func watch(t *testing.T, h Harness) *watched {
	t.Helper()
	recorder := NewRecorder(t)
	w := &watched{Recorder: recorder, t: t, r: h.New(t, recorder.Report)}
	t.Cleanup(func() {
		if err := w.r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *watched) start(payload string) runner.Attempt {
	w.t.Helper()
	a := NewAttempt(w.t, payload)
	w.r.Start(a)
	return a
}

// events are those of an attempt, without checkpoints, which come when they
// come.
func (w *watched) events(key runner.Key) []runner.Event {
	var events []runner.Event
	for _, o := range w.Seen(key) {
		if o.Event != runner.Checkpointed {
			events = append(events, o.Event)
		}
	}
	return events
}

// expect waits for the last of the events, before which the others must have
// come, in order and nothing else.
func (w *watched) expect(key runner.Key, events ...runner.Event) {
	w.t.Helper()
	w.AwaitEvent(key, events[len(events)-1])
	got := w.events(key)
	if diff := cmp.Diff(events, got[:min(len(events), len(got))]); diff != "" {
		w.t.Fatalf("events (-want +got):\n%s", diff)
	}
}

func (w *watched) end(key runner.Key) runner.Observation {
	w.t.Helper()
	return w.AwaitEvent(key, runner.Ended)
}

func (w *watched) expectEnd(key runner.Key, want runner.Observation) {
	w.t.Helper()
	want.Key, want.Event = key, runner.Ended
	if diff := cmp.Diff(want, w.end(key), cmpopts.IgnoreFields(runner.Observation{}, "At", "Checkpoint")); diff != "" {
		w.t.Fatalf("end (-want +got):\n%s", diff)
	}
}

// close closes the runner, after which nothing more may be reported, and
// checks how many events (checkpoints aside) were; a negative number stands
// for any. In any case they are in the order of an attempt's life and time.
func (w *watched) close(key runner.Key, events int) {
	w.t.Helper()
	if err := w.r.Close(); err != nil {
		w.t.Fatalf("close: %v", err)
	}
	got := w.events(key)
	if events >= 0 && len(got) != events {
		w.t.Errorf("events are %v, want %d of them", got, events)
	}
	order := []runner.Event{runner.Starting, runner.Running, runner.Ended}
	last := -1
	for _, event := range got {
		place := slices.Index(order, event)
		if place <= last {
			w.t.Errorf("events %v are out of order", got)
		}
		last = place
	}
	var before time.Time
	for _, o := range w.Seen(key) {
		if o.At.IsZero() || o.At.Before(before) {
			w.t.Errorf("%s is at %v, after what was at %v", o.Event, o.At, before)
		}
		before = o.At
	}
}
