// Package soak lets the whole control plane live through simulated days, and
// watches whether it keeps its promises: the governor, the life of jobs and the
// engine as they are in the product, on a store that fails and crashes at its
// writes, with workers that die, hang, ignore what they are told, and whose news
// come late, twice, and with the time of a clock that is wrong.
//
// One seed reproduces a day. Nothing in a day depends on the machine's clock, on
// the order of a map or on when goroutines run: one thing happens at a time, and
// the next only once the governor has done all that the last brought about.
//
// What must hold is written here a second time, from the text of the rules, and
// not read from the product: nothing that decides in the product may enter, and
// nothing in the product may need this package.
package soak

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Length is how long a simulated day is, until its failures cease.
const Length = 24 * time.Hour

// Tally is what happened in a day.
type Tally struct {
	Jobs        int // accepted
	Finished    int
	Preemptions int
	Commands    int // tried, refused ones too
	Refused     int
	Commits     int    // that took place
	Outages     int    // commits, and reads, that failed
	Crashes     int    // of the governor, between or within commits
	Entries     int    // of the journal
	Digest      uint64 // of the journal: the same for the same seed
}

// Add adds another day's numbers; a sum has no digest.
func (t *Tally) Add(o Tally) {
	t.Jobs += o.Jobs
	t.Finished += o.Finished
	t.Preemptions += o.Preemptions
	t.Commands += o.Commands
	t.Refused += o.Refused
	t.Commits += o.Commits
	t.Outages += o.Outages
	t.Crashes += o.Crashes
	t.Entries += o.Entries
	t.Digest = 0
}

// Failure is the error of a day in which a promise was broken.
type Failure struct {
	Seed   uint64
	At     time.Duration // since the day began
	Check  string        // the promise, by name
	Detail string
	Events []string // the last that happened before
}

func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s into the day: %s: %s\n", f.Seed, f.At, f.Check, f.Detail)
	fmt.Fprintf(&b, "what happened last:\n")
	for _, e := range f.Events {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	fmt.Fprintf(&b, "again: make soak SEED=%d", f.Seed)
	return b.String()
}

// Day lives through the day of a seed: a day with failures, then an evening in
// which they cease and all is brought to its end. It returns a *Failure if a
// promise was broken, and ctx's error if that ended first. It tells every event,
// unless tell is nil.
func Day(ctx context.Context, seed uint64, tell func(event string)) (Tally, error) {
	d := newDay(ctx, seed, tell)
	defer d.close()
	d.found() //nolint:contextcheck // its calls have a context of the day's own, so that it ends between two of them
	d.live()
	d.end()    //nolint:contextcheck // its calls have a context of the day's own, so that it ends between two of them
	d.replay() //nolint:contextcheck // its calls have a context of the day's own, so that it ends between two of them
	return d.tally, d.err
}
