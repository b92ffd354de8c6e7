package quota

import (
	"cmp"
	"slices"
	"time"
)

// entry is a job as the cohort keeps it. It is in exactly one place: its
// share's line, the cohort's backoff, or its share's holders; at is its index
// there.
type entry struct {
	id         JobID
	created    int64 // Unix nanoseconds, as all times inside the package
	maxRuntime int64
	notBefore  int64
	line       *line
	held       *held // nil while it waits
	priority   int32
	at         int32
	resting    bool // in backoff
}

// held is what only a job that holds capacity needs.
type held struct {
	since      int64
	checkpoint int64 // 0: none
	stopping   *Preemption
}

func (e *entry) share() *share { return e.line.share }

// dearer is how the lists of a roll are sorted: dearest to stop first, so that
// who is new, and cheap, is appended.
func dearer(e, f *entry) int {
	return cmp.Or(
		cmp.Compare(f.priority, e.priority),
		cmp.Compare(e.held.baseline(), f.held.baseline()),
		cmp.Compare(e.id, f.id))
}

// roll lists the jobs of a share that could be told to stop, in an order that
// time does not change: those that completed a checkpoint, and those that
// never did, for whose loss there is a most.
type roll struct {
	saved   []*entry
	unsaved []*entry
}

func (r *roll) lists() [2][]*entry { return [2][]*entry{r.saved, r.unsaved} }

func (r *roll) of(e *entry) *[]*entry {
	if e.held.checkpoint != 0 {
		return &r.saved
	}
	return &r.unsaved
}

func (r *roll) add(e *entry) {
	list := r.of(e)
	at, _ := slices.BinarySearchFunc(*list, e, dearer)
	*list = slices.Insert(*list, at, e)
}

func (r *roll) strike(e *entry) {
	list := r.of(e)
	if at, ok := slices.BinarySearchFunc(*list, e, dearer); ok {
		*list = slices.Delete(*list, at, at+1)
	}
}

// baseline is when the work began that stopping the job now would lose, if it
// ever completed a checkpoint.
func (h *held) baseline() int64 { return max(h.since, h.checkpoint) }

// ahead is the order of heads within a share (section 3).
func (e *entry) ahead(f *entry) bool {
	if e.priority != f.priority {
		return e.priority > f.priority
	}
	return e.older(f)
}

// older is the order of age: creation time, then sequence number.
func (e *entry) older(f *entry) bool {
	if e.created != f.created {
		return e.created < f.created
	}
	return e.id < f.id
}

// line holds the waiting jobs of one share that have one shape, in order. What
// does not fit for its first does not fit for the rest.
type line struct {
	share *share
	shape *shape
	jobs  heap[*entry]
	at    int // in the share's lines; -1 while empty
}

func newLine(s *share, d *shape) *line {
	return &line{share: s, shape: d, at: -1, jobs: heap[*entry]{
		before: (*entry).ahead,
		place:  func(e *entry, at int) { e.at = int32(at) },
	}}
}

// join lets the job wait in the line of its shape.
func (s *share) join(e *entry) {
	l, ok := s.lineOf[e.line.shape]
	if !ok {
		l = e.line
		s.lineOf[l.shape] = l
	}
	e.line = l
	l.jobs.push(e)
	if l.at < 0 {
		s.lines.push(l)
	} else if l.jobs.first() == e {
		s.lines.fix(l.at)
	}
}

// leave takes the job out of its line.
func (s *share) leave(e *entry) {
	l := e.line
	wasFirst := l.jobs.first() == e
	if l.jobs.len() == 1 {
		s.lines.remove(l.at)
		delete(s.lineOf, l.shape)
	}
	l.jobs.remove(int(e.at))
	if wasFirst && l.at >= 0 {
		s.lines.fix(l.at)
	}
}

// head is the job that goes first in the share; nil: none waits.
func (s *share) head() *entry {
	if s.lines.len() == 0 {
		return nil
	}
	return s.lines.first().jobs.first()
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
