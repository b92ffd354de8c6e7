package clock

import (
	"container/heap"
	"sync"
	"time"
)

// Manual is a clock that stands still until it is turned. Callbacks run one
// after the other in the goroutine that turns it: in order of their times, and
// those of one instant in the order in which they were asked for. It may be
// used from several goroutines.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	asked  int64
	alarms alarms
}

// NewManual returns a clock that shows start.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now returns the time to which the clock was turned.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc calls f once the clock has been turned by d, unless stop is called
// before. Even where d is not positive, f waits for the next turn.
func (m *Manual) AfterFunc(d time.Duration, f func()) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	a := &alarm{at: m.now.Add(max(d, 0)), order: m.asked, call: f}
	heap.Push(&m.alarms, a)
	return func() { m.cancel(a) }
}

// Step turns the clock to the next callback that is due no later than limit
// and runs that one callback. With none left it turns the clock to limit and
// returns false. A limit in the past turns nothing back.
func (m *Manual) Step(limit time.Time) bool {
	a := m.next(limit)
	if a == nil {
		return false
	}
	a.call()
	return true
}

// Advance turns the clock by d, running every callback on the way.
func (m *Manual) Advance(d time.Duration) {
	limit := m.Now().Add(d)
	for m.Step(limit) {
		continue
	}
}

func (m *Manual) next(limit time.Time) *alarm {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.alarms) == 0 || m.alarms[0].at.After(limit) {
		m.turnTo(limit)
		return nil
	}
	a := heap.Pop(&m.alarms).(*alarm)
	m.turnTo(a.at)
	return a
}

func (m *Manual) turnTo(t time.Time) {
	if t.After(m.now) {
		m.now = t
	}
}

func (m *Manual) cancel(a *alarm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.index >= 0 {
		heap.Remove(&m.alarms, a.index)
	}
}

// alarm is a callback to come. index is its place in the heap, -1 outside.
type alarm struct {
	at    time.Time
	order int64
	call  func()
	index int
}

// alarms is a heap by time, then by the order in which they were asked for.
type alarms []*alarm

func (h alarms) Len() int { return len(h) }

func (h alarms) Less(i, k int) bool {
	if !h[i].at.Equal(h[k].at) {
		return h[i].at.Before(h[k].at)
	}
	return h[i].order < h[k].order
}

func (h alarms) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

// Push is heap.Interface's.
func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

// Pop is heap.Interface's.
func (h *alarms) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.index = -1
	return a
}
