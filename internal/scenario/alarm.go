package scenario

import (
	"container/heap"
	"time"
)

// alarm is when something is to happen to a job.
type alarm struct {
	at    time.Duration
	of    *member
	index int // in its alarms, or -1
}

// alarms are in order of time, at one time in order of the jobs.
type alarms []*alarm

// set has a ring at a time, instead of when it was to.
func (as *alarms) set(a *alarm, at time.Duration) {
	a.at = at
	if a.index >= 0 {
		heap.Fix(as, a.index)
		return
	}
	heap.Push(as, a)
}

// clear has a not ring.
func (as *alarms) clear(a *alarm) {
	if a.index >= 0 {
		heap.Remove(as, a.index)
	}
}

// due returns the first alarm if it is to ring by now.
func (as alarms) due(now time.Duration) (a *alarm, ok bool) {
	if len(as) == 0 || as[0].at > now {
		return nil, false
	}
	return as[0], true
}

// Len, Less, Swap, Push and Pop are for package heap.
func (as alarms) Len() int { return len(as) }

func (as alarms) Less(i, j int) bool {
	if as[i].at != as[j].at {
		return as[i].at < as[j].at
	}
	return as[i].of.Seq < as[j].of.Seq
}

func (as alarms) Swap(i, j int) {
	as[i], as[j] = as[j], as[i]
	as[i].index, as[j].index = i, j
}

// Push is for package heap.
func (as *alarms) Push(x any) {
	a, _ := x.(*alarm)
	a.index = len(*as)
	*as = append(*as, a)
}

// Pop is for package heap.
func (as *alarms) Pop() any {
	last := len(*as) - 1
	a := (*as)[last]
	(*as)[last] = nil
	*as = (*as)[:last]
	a.index = -1
	return a
}
