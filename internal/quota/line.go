package quota

import (
	"cmp"
	"slices"
	"time"
)

// entry is a job as the cohort keeps it. It is in exactly one place: its
// share's line, among its share's nominated, the cohort's backoff, or its
// share's holders; at is its index there.
type entry struct {
	id         JobID
	created    int64 // Unix nanoseconds, as all times inside the package
	maxRuntime int64
	notBefore  int64
	checkpoint int64 // newest completed, of any attempt; 0: none
	line       *line
	held       *held // nil while it waits
	priority   int32
	at         int32
	resting    bool // in backoff
	nominated  bool
}

// held is what only a job that holds capacity needs.
type held struct {
	since    int64
	key      int64 // its place in the roll
	saved    bool  // and in which of its lists
	granted  int32 // its grant's place, from 1, among the decisions of the pass that granted it
	stopping *Preemption
}

func (e *entry) share() *share { return e.line.share }

// dearer is how the lists of a roll are sorted: dearest to stop first, so that
// who is new, and cheap, is appended.
func dearer(e, f *entry) int {
	return cmp.Or(
		cmp.Compare(f.priority, e.priority),
		cmp.Compare(e.held.key, f.held.key),
		cmp.Compare(e.id, f.id))
}

// roll lists the jobs of a share that could be told to stop, in an order that
// time does not change: those that completed a checkpoint, and those that
// never did, for whose loss there is a most. Where lost work does not count,
// all are in one list.
type roll struct {
	saved   []*entry
	unsaved []*entry
}

func (r *roll) lists() [2][]*entry { return [2][]*entry{r.saved, r.unsaved} }

func (r *roll) of(e *entry) *[]*entry {
	if e.held.saved {
		return &r.saved
	}
	return &r.unsaved
}

// anyBelow reports whether somebody has a lower priority.
func (r *roll) anyBelow(priority int32) bool {
	for _, list := range r.lists() {
		if n := len(list); n > 0 && list[n-1].priority < priority {
			return true
		}
	}
	return false
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
func (e *entry) baseline() int64 { return max(e.held.since, e.checkpoint) }

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
	short *entry // who may be next where its first would last too long behind a blocked job; nil: its first
	at    int    // in the share's open lines; -1: it is not there
	shut  bool   // its first was found blocked; it is among the share's shut lines
	never bool   // shut because no job of the shape can ever start
	later bool   // shut because the share's blocked head could be delayed
}

func newLine(s *share, d *shape) *line {
	return &line{share: s, shape: d, at: -1, jobs: heap[*entry]{
		before: (*entry).ahead,
		place:  func(e *entry, at int) { e.at = int32(at) },
	}}
}

// next is the job of the line that is to be looked at next.
func (l *line) next() *entry {
	if l.short != nil {
		return l.short
	}
	return l.jobs.first()
}

// skip goes on to the first job of the line that declares to last no longer, if
// there is one.
func (s *share) skip(l *line, longest int64) bool {
	l.short = nil // for it, too, less time may be left than before
	for _, e := range l.jobs.items {
		if e.maxRuntime > 0 && e.maxRuntime <= longest && (l.short == nil || e.ahead(l.short)) {
			l.short = e
		}
	}
	if l.short == nil {
		return false
	}
	s.skipped = append(s.skipped, l)
	s.open.fix(l.at)
	return true
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
	switch {
	case l.shut:
	case l.at < 0:
		s.open.push(l)
	case l.jobs.first() == e:
		s.open.fix(l.at)
	}
}

// leave takes the job out of its line.
func (s *share) leave(e *entry) {
	l := e.line
	if l.jobs.len() > 1 {
		wasNext := l.next() == e
		l.jobs.remove(int(e.at))
		if l.short == e {
			l.short = nil
		}
		if wasNext && !l.shut {
			s.open.fix(l.at)
		}
		return
	}
	if l.shut {
		l.open()
		s.shut = slices.DeleteFunc(s.shut, func(o *line) bool { return o == l })
	} else {
		s.open.remove(l.at)
	}
	l.jobs.remove(int(e.at))
	l.short = nil
	delete(s.lineOf, l.shape)
}

// front is the job that is to be looked at next; nil: none of the open lines
// has any.
func (s *share) front() *entry {
	if s.open.len() == 0 {
		return nil
	}
	return s.open.first().next()
}

// head is the job that goes first in the share; nil: none waits.
func (s *share) head() *entry {
	head := s.front()
	for _, l := range s.shut {
		if first := l.jobs.first(); head == nil || first.ahead(head) {
			head = first
		}
	}
	for _, n := range s.nominated {
		if head == nil || n.job.ahead(head) {
			head = n.job
		}
	}
	return head
}

// setAside shuts the line of the front.
func (s *share) setAside() *line {
	l := s.open.pop()
	l.shut = true
	s.shut = append(s.shut, l)
	return l
}

// reopen has every shape looked at again.
func (s *share) reopen() {
	for _, l := range s.shut {
		l.open()
		s.open.push(l)
	}
	for _, l := range s.skipped {
		if l.short != nil && l.at >= 0 {
			l.short = nil
			s.open.fix(l.at)
		}
	}
	s.skipped = s.skipped[:0]
	s.shut, s.behind, s.next, s.wants, s.tried, s.late = s.shut[:0], nil, nil, false, false, false
}

// reconsider has those looked at again, in the later steps, that were found
// blocked in the earlier ones, and reports whether there are any.
func (s *share) reconsider() bool {
	s.late = true
	s.shut = slices.DeleteFunc(s.shut, func(l *line) bool {
		if l.never || l.later {
			return false
		}
		l.open()
		s.open.push(l)
		return true
	})
	return s.open.len() > 0
}

func (l *line) open() { l.shut, l.never, l.later, l.short = false, false, false, nil }

// waitingLines calls f for every line, open or shut.
func (s *share) waitingLines(f func(*line)) {
	for _, l := range s.open.items {
		f(l)
	}
	for _, l := range s.shut {
		f(l)
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
