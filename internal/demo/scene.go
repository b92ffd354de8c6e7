package demo

import (
	"slices"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/terminal"
)

// scene is all that has been seen so far.
type scene struct {
	mu      sync.Mutex
	changed chan struct{} // closed when anything changes

	began    time.Time
	caption  string
	jobs     []bursarapi.Job // oldest first
	balances []bursarapi.Balance
	journal  []bursarapi.Entry
	training map[string]*training // by job name
	events   []event              // what happened, in words
	printed  int                  // events that were printed, where frames cannot be drawn
}

// event is something that happened, in words.
type event struct {
	at   time.Time
	line terminal.Line
}

func newScene(now time.Time) *scene {
	return &scene{began: now, changed: make(chan struct{}), training: map[string]*training{}}
}

// change changes the scene, and wakes whoever waits for that.
func (s *scene) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// look asks about the scene. changed is closed once it is another one.
func (s *scene) look(shown func(*scene) bool) (ok bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shown(s), s.changed
}

// announce says what the story shows now.
func (s *scene) announce(text string) {
	s.change(func() {
		s.caption = text
		s.happened(time.Now(), terminal.Text(terminal.Bold, text))
	})
}

// happened adds an event in its place: some are heard of later than others.
// The journal's times are whole milliseconds, and so must others be.
func (s *scene) happened(at time.Time, line terminal.Line) {
	s.events = append(s.events, event{at.Truncate(time.Millisecond), line})
	slices.SortStableFunc(s.events[s.printed:], func(a, b event) int { return a.at.Compare(b.at) })
}

// job returns a job by its name.
func (s *scene) job(name string) (found bursarapi.Job, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Job.Name == name {
			return j, true
		}
	}
	return bursarapi.Job{}, false
}
