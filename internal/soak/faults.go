package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store"
)

var (
	errDisk = errors.New("no space left on device")
	errDead = errors.New("the process is dead")
)

// faults says what goes wrong and how often: for each kind, one time in so
// many; 0: never.
type faults struct {
	rng    *rand.Rand
	off    bool
	outage int // commits that are still to fail

	commitFails, commitLies, crashBefore, crashAfter int
	readFails, orderCrash, attachFails               int
	late, twice                                      int // news
}

// newFaults draws a day's own mixture: some days are calm, some have one kind
// of failure only.
func newFaults(rng *rand.Rand) *faults {
	f := &faults{rng: rng}
	for _, kind := range []struct {
		oneIn *int
		usual int
	}{
		{&f.commitFails, 100}, {&f.commitLies, 200}, {&f.crashBefore, 300}, {&f.crashAfter, 300},
		{&f.readFails, 80}, {&f.orderCrash, 300}, {&f.attachFails, 4}, {&f.late, 4}, {&f.twice, 6},
	} {
		*kind.oneIn = []int{0, kind.usual, kind.usual, kind.usual / 3}[rng.IntN(4)]
	}
	return f
}

func (f *faults) happens(oneIn int) bool { return !f.off && oneIn > 0 && f.rng.IntN(oneIn) == 0 }

// commitFailsNow reports whether a commit is to fail; failures come in rows.
func (f *faults) commitFailsNow() bool {
	if f.happens(f.commitFails) {
		f.outage = 1 + f.rng.IntN(6)
	}
	if f.off || f.outage == 0 {
		return false
	}
	f.outage--
	return true
}

// disk is the store as one life of the governor sees it.
type disk struct {
	store.Store
	life *life
}

// Commit may fail, crash before the commit or after it, or claim a failure that
// was none: a governor must get along with all of them.
func (s *disk) Commit(ctx context.Context, b store.Batch) error {
	d, f := s.life.day, s.life.day.faults
	switch {
	case s.life.dead:
		return errDead
	case f.commitFailsNow():
		d.tally.Outages++
		d.note("a commit of %d entries fails", len(b.Entries))
		return errDisk
	case f.happens(f.crashBefore):
		d.note("the governor dies before a commit of %d entries", len(b.Entries))
		s.life.dead = true
		return errDead
	}
	if err := s.Store.Commit(ctx, b); err != nil {
		return err
	}
	copied, err := b.Checked()
	if err != nil {
		return err
	}
	d.landed = append(d.landed, copied)
	switch {
	case f.happens(f.crashAfter):
		d.note("the governor dies after a commit of %d entries", len(b.Entries))
		s.life.dead, s.life.lied = true, true
		return errDead
	case f.happens(f.commitLies):
		d.tally.Outages++
		d.note("a commit of %d entries is called a failure", len(b.Entries))
		s.life.lied = true
		return errDisk
	}
	return nil
}

// Load may fail.
func (s *disk) Load(ctx context.Context, tokensSince time.Time) (store.Contents, error) {
	if err := s.readable("load"); err != nil {
		return store.Contents{}, err
	}
	return s.Store.Load(ctx, tokensSince)
}

// Job may fail.
func (s *disk) Job(ctx context.Context, id string) (job.Job, error) {
	if err := s.readable("job"); err != nil {
		return job.Job{}, err
	}
	return s.Store.Job(ctx, id)
}

// Ended may fail.
func (s *disk) Ended(ctx context.Context, queue string, since time.Time) ([]job.Job, error) {
	if err := s.readable("ended jobs"); err != nil {
		return nil, err
	}
	return s.Store.Ended(ctx, queue, since)
}

// Payload may fail.
func (s *disk) Payload(ctx context.Context, id string) (string, error) {
	if err := s.readable("payload"); err != nil {
		return "", err
	}
	return s.Store.Payload(ctx, id)
}

func (s *disk) readable(what string) error {
	d := s.life.day
	if s.life.dead {
		return errDead
	}
	if d.faults.happens(d.faults.readFails) {
		d.tally.Outages++
		d.note("reading fails: %s", what)
		return errDisk
	}
	return nil
}

// hands are the runner as one life of the governor has it: they may die between
// two orders.
type hands struct {
	runner.Runner
	life *life
}

func (l *life) attach(report runner.Report) (runner.Runner, error) {
	if l.day.faults.happens(l.day.faults.attachFails) {
		return nil, errDisk
	}
	r, err := l.day.world.Attach(func(o runner.Observation) { l.post(report, o) })
	if err != nil {
		return nil, err
	}
	return &hands{Runner: r, life: l}, nil
}

// Start orders an attempt's start, if the governor lives to say so.
func (h *hands) Start(a runner.Attempt) {
	if h.survives() {
		h.Runner.Start(a)
	}
}

// Stop orders an attempt's end, if the governor lives to say so.
func (h *hands) Stop(k runner.Key) {
	if h.survives() {
		h.Runner.Stop(k)
	}
}

func (h *hands) survives() bool {
	d := h.life.day
	if !h.life.dead && d.faults.happens(d.faults.orderCrash) {
		d.note("the governor dies while it gives orders")
		h.life.dead = true
	}
	return !h.life.dead
}

// mail is the news of one attempt on their way to the governor. They may be
// late, but they come in the order in which they were sent.
type mail struct {
	waiting int
	last    time.Time
	ended   bool // the attempt's end is among them, or has come
}

func (l *life) post(report runner.Report, o runner.Observation) {
	d := l.day
	o.At = o.At.Add(d.habits.skew)
	if !o.Checkpoint.IsZero() {
		o.Checkpoint = o.Checkpoint.Add(d.habits.skew)
	}
	m := l.mail[o.Key]
	if m == nil {
		m = &mail{}
		l.mail[o.Key] = m
	}
	m.ended = m.ended || o.Event == runner.Ended
	now := d.clock.Now()
	at := now
	if d.faults.happens(d.faults.late) {
		at = now.Add(time.Duration(1+d.faults.rng.IntN(300)) * time.Second)
	}
	if at.Before(m.last) {
		at = m.last
	}
	m.last = at
	if d.faults.happens(d.faults.twice) {
		d.clock.AfterFunc(at.Sub(now)+time.Duration(d.faults.rng.IntN(900))*time.Second, func() { l.deliver(report, o) })
	}
	if m.waiting == 0 && at.Equal(now) {
		l.deliver(report, o)
		return
	}
	m.waiting++
	d.clock.AfterFunc(at.Sub(now), func() {
		m.waiting--
		l.deliver(report, o)
	})
}

func (l *life) deliver(report runner.Report, o runner.Observation) {
	if !l.dead {
		report(o)
	}
}

// habits are a day's workers, and its administrators'.
type habits struct {
	grace time.Duration
	skew  time.Duration // how wrong the runner's clock is
	hangs int           // one in so many never ends by itself; 0: none
	fails int           // one in so many fails

	// contested has jobs want more than there is, of shares that own little,
	// and policies let them take it from each other.
	contested bool
}

func newHabits(rng *rand.Rand) habits {
	return habits{
		grace: []time.Duration{time.Second, 30 * time.Second, 2 * time.Minute}[rng.IntN(3)],
		skew:  []time.Duration{0, 0, 0, -time.Hour, -3 * time.Second, 3 * time.Second, time.Hour}[rng.IntN(7)],
		hangs: []int{0, 10, 25}[rng.IntN(3)],
		fails: []int{0, 4, 8}[rng.IntN(3)],

		contested: rng.IntN(3) == 0,
	}
}

// program says how one attempt's workers spend their time. Calm ones start,
// work and end.
func (h habits) program(rng *rand.Rand, calm bool) simulated.Program {
	p := simulated.Program{
		Startup:         time.Duration(rng.IntN(90)) * time.Second,
		Runtime:         time.Duration(1+rng.IntN(5400)) * time.Second,
		CheckpointEvery: []time.Duration{0, 10 * time.Minute, 25 * time.Minute}[rng.IntN(3)],
		Stopping:        []time.Duration{0, time.Second, 40 * time.Second, time.Hour}[rng.IntN(4)],
	}
	if calm {
		p.Runtime = min(p.Runtime, 10*time.Minute)
		return p
	}
	if h.fails > 0 && rng.IntN(h.fails) == 0 {
		p.ExitCode = 1 + rng.IntN(3)
	}
	if h.hangs > 0 && rng.IntN(h.hangs) == 0 {
		p.Runtime = 0
	}
	if h.hangs > 0 && rng.IntN(2*h.hangs) == 0 {
		p.Startup = 10 * time.Hour
	}
	return p
}
