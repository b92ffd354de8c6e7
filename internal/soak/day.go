package soak

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/memory"
)

// dawn is when every day begins.
var dawn = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const (
	suffix     = "0123456789abcdef0123456789abcdef"
	keptEvents = 60
)

// day is a world with a governor in it, those who use it, and those who watch.
type day struct {
	ctx    context.Context // of all calls; it never ends
	until  context.Context // the day goes on until it ends
	seed   uint64
	people *rand.Rand
	faults *faults
	clock  *clock.Manual
	store  *memory.Store // what is durable
	landed []store.Batch // commits that nobody has looked at yet
	all    []store.Batch // commits that were looked at
	world  *simulated.World
	habits habits
	calm   bool // failures have ceased

	governor *governor.Governor // nil while it is down
	present  *life              // of the governor
	well     bool               // the governor was, when it was last looked at
	given    int                // ids

	books  *books
	tokens []governor.Submission // that were sent with a client token
	tally  Tally
	err    error
	events []string // the last ones
	tell   func(event string)
}

func newDay(ctx context.Context, seed uint64, tell func(string)) *day {
	d := &day{
		ctx: context.WithoutCancel(ctx), until: ctx, seed: seed, tell: tell, people: stream(seed, "people"),
		clock: clock.NewManual(dawn), store: memory.New(), books: newBooks(),
	}
	d.faults = newFaults(stream(seed, "faults"))
	d.faults.off = true // until there is something to go wrong
	d.habits = newHabits(stream(seed, "habits"))
	d.world = simulated.NewWorld(d.clock, d.habits.grace, d.program)
	d.start()
	return d
}

// stream is a source of chance of its own, so that one more draw for one
// purpose does not change all others.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func (d *day) since() time.Duration { return d.clock.Now().Sub(dawn) }

// ok reports whether the day goes on.
func (d *day) ok() bool {
	if d.err == nil {
		d.err = d.until.Err()
	}
	return d.err == nil
}

// broken ends the day: a promise was broken.
func (d *day) broken(check, format string, args ...any) {
	if d.err == nil {
		d.err = &Failure{Seed: d.seed, At: d.since(), Check: check, Detail: fmt.Sprintf(format, args...), Events: d.events}
	}
}

// must ends the day if err is not nil: with the promise that was broken, if it is
// a breach.
func (d *day) must(err error) {
	var b *breach
	switch {
	case err == nil:
	case errors.As(err, &b):
		d.broken(b.check, "%s", b.detail)
	default:
		d.broken("no unexpected error", "%v", err)
	}
}

func (d *day) note(format string, args ...any) {
	if len(d.events) == keptEvents {
		d.events = d.events[:copy(d.events, d.events[1:])]
	}
	event := d.since().String() + " " + fmt.Sprintf(format, args...)
	d.events = append(d.events, event)
	if d.tell != nil {
		d.tell(event)
	}
}

// life is one process: a governor from its start to its end or crash. Once it
// is dead it reaches neither store nor workers.
type life struct {
	day  *day
	dead bool
	lied bool // a commit that took place was called a failure
	mail map[runner.Key]*mail
}

// start brings the governor up. Where that fails, it is tried again later.
func (d *day) start() {
	if d.governor != nil || !d.ok() {
		return
	}
	l := &life{day: d, mail: map[runner.Key]*mail{}}
	d.present = l
	g := governor.New(d.config(&disk{Store: d.store, life: l}, d.clock, l.attach, d.nextID))
	err := g.Start(d.ctx)
	d.collect()
	if err != nil {
		l.dead = true
		d.note("the governor does not start: %v", err)
		d.clock.AfterFunc(time.Minute, d.start)
		return
	}
	d.governor = g
	d.note("the governor is up")
	d.settle()
}

func (d *day) config(s store.Store, c governor.Clock, runners func(runner.Report) (runner.Runner, error), id func() string) governor.Config {
	return governor.Config{
		Store: s, NewRunner: runners, Clock: c, NewID: id,
		NewSuffix:      func() string { return suffix },
		TrainingJobARN: func(name string) string { return "arn:aws:sagemaker:us-east-1:000000000000:training-job/" + name },
		Log:            slog.New(slog.DiscardHandler),
	}
}

func (d *day) nextID() string {
	d.given++
	return fmt.Sprintf("j%04d", d.given)
}

// stop ends the governor; one that is dead just goes.
func (d *day) stop() {
	if d.governor == nil {
		return
	}
	if err := d.governor.Stop(d.ctx); err != nil {
		d.broken("a governor can be stopped", "%v", err)
	}
	d.collect()
	d.present.dead = true
	d.governor = nil
}

// crash kills the governor between two turns.
func (d *day) crash() {
	if d.governor == nil {
		return
	}
	d.present.dead = true
	d.bury()
}

// bury takes away a governor that has died, and has it started again later.
func (d *day) bury() {
	d.tally.Crashes++
	d.stop()
	down := time.Duration(d.people.IntN(600)) * time.Second
	d.note("the governor is dead; back in %s", down)
	d.clock.AfterFunc(down, d.start)
}

func (d *day) close() { d.stop() }

// settle waits until the governor has done all that it was told, and reports
// whether it is well: up, and in step with its store.
func (d *day) settle() bool {
	d.well = false
	if d.governor == nil {
		return false
	}
	// Twice: what is asked while it waits out an outage that has just ended may
	// be refused before it goes on; what is asked then is answered after it.
	var err error
	for range 2 {
		_, err = d.governor.Environments(d.ctx)
		if err != nil && !errors.Is(err, governor.ErrUnavailable) {
			d.must(err)
		}
	}
	d.collect()
	if d.present.dead {
		d.bury()
		return false
	}
	d.well = err == nil
	return d.well
}

// commits is how many there were so far.
func (d *day) commits() int { return len(d.all) + len(d.landed) }

// collect looks at the commits that took place.
func (d *day) collect() {
	batches := d.landed
	d.landed = nil
	for _, b := range batches {
		for _, e := range b.Entries {
			d.note("%s %s %s by %q %s", e.Kind, e.Name, e.Subject, e.By, e.Data)
		}
		if d.err == nil {
			d.must(d.books.take(b))
		}
		d.all = append(d.all, b)
		d.tally.Commits++
		d.tally.Entries += len(b.Entries)
	}
}

// advance lets time go by, one thing after the other.
func (d *day) advance(to time.Time) {
	for d.ok() && d.clock.Step(to) {
		d.settle()
		d.watchWorkers()
	}
	if d.well {
		// It wakes by itself for what is due, a moment later at most. What is
		// asked of it would wake it, too, and so nothing is asked before.
		d.lookAtTimes(d.clock.Now().Add(-2 * time.Millisecond))
	}
	d.settle()
}

// program says how the workers of an attempt spend their time.
func (d *day) program(a runner.Attempt) simulated.Program {
	p := d.habits.program(stream(d.seed, fmt.Sprintf("%s run %d", a.JobName, a.Run)), d.calm)
	d.note("run %d of %s: %+v", a.Run, a.JobName, p)
	return p
}
