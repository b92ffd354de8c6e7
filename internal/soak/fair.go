package soak

import (
	"math"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/resource"
)

// This file is the order between lanes of queues without quota shares: queue
// priorities, and in fair-share queues who used least lately, for its weight.
// How finely use is counted is up to the product: it may weigh an instant as if
// it were a grain of the window earlier or later. So only what is clear is
// checked.

// grain is the part of a window that use is counted by.
const grain = 1.0 / 60

// use is what an attempt holds, and from when to when; to is zero while it does.
type use struct {
	amount   int64 // of whatever unit
	from, to time.Time
}

// startUse has what the job was granted count, if it has a share identifier.
func (e *entry) startUse(at time.Time) {
	if e.lane.identifier == "" {
		return
	}
	e.use = &use{from: at}
	for _, n := range e.demand {
		e.use.amount += n
	}
	e.lane.used = append(e.lane.used, e.use)
}

// until is the end of the use as of now.
func (u *use) until(now time.Time) time.Time {
	if u.to.IsZero() {
		return now
	}
	return u.to
}

// fairShare is how the share identifiers of a queue are weighed; nil: it has none.
func (b *books) fairShare(q *resource.Queue) *resource.FairShare {
	if p := b.policies[q.Policy]; p != nil {
		return p.FairShare
	}
	return nil
}

// window is for how long use counts.
func window(f *resource.FairShare) time.Duration {
	if f.Decay == 0 {
		return 10 * time.Minute
	}
	return f.Decay
}

// weight is the factor of a share identifier, in ten-thousandths.
func weight(f *resource.FairShare, identifier string) float64 {
	for _, w := range f.Distribution {
		prefix, all := strings.CutSuffix(w.Identifier, "*")
		if w.Identifier == identifier || all && strings.HasPrefix(identifier, prefix) {
			return float64(w.WeightFactor)
		}
	}
	return 10_000
}

// burden is the least and the most that the identifier's use comes to, in
// unit-seconds times its weight: each instant weighs less the longer ago it was,
// down to nothing where the window begins.
func (l *lane) burden(f *resource.FairShare, now time.Time) (least, most float64) {
	w := window(f).Seconds()
	var sum, doubt float64
	for _, u := range l.used {
		amount := float64(u.amount)
		newest := now.Sub(u.until(now)).Seconds()
		if oldest := min(w, now.Sub(u.from).Seconds()); oldest > newest {
			sum += amount * ((oldest - newest) - (oldest*oldest-newest*newest)/(2*w))
			doubt += amount * (oldest - newest) * grain
		}
		if u.to.IsZero() {
			doubt += amount * w * grain // it may count as in use for a grain more
		}
	}
	factor := weight(f, l.identifier)
	return (sum - doubt) * factor, (sum + doubt) * factor
}

// before reports whether a lane clearly goes before another one of its pool.
func (b *books) before(l, other *lane, now time.Time) bool {
	f := b.fairShare(l.queue)
	switch {
	case l.queue.Priority != other.queue.Priority:
		return l.queue.Priority > other.queue.Priority
	case l.queue != other.queue || f == nil:
		return false
	}
	_, most := l.burden(f, now)
	least, _ := other.burden(f, now)
	return most < least
}

// inTurn checks that a job without quota share takes nothing that somebody who
// goes before it could have, nor what is reserved. While jobs stop, others may
// claim what there is.
func (b *books) inTurn(j *entry, now time.Time) error {
	if j.lane.share != nil {
		return nil
	}
	if u, left := b.taken(j, now, (*lane).mustBeActive, (*lane).mayBeActive); u != "" {
		return breaks("capacity is reserved for identifiers that use nothing", "job %s of %s leaves %d %s", j.id, j.lane.name, left, u)
	}
	if j.lane.pool.releasing() {
		return nil
	}
	for _, l := range inOrder(j.lane.pool.lanes, func(l *lane) *lane { return l }) {
		if first := b.head(l, now); first != nil && b.before(l, j.lane, now) && b.fits(first, now) {
			return breaks("who goes first is granted first", "job %s of %s is granted before job %s of %s", j.id, j.lane.name, first.id, l.name)
		}
	}
	return nil
}

// fits reports whether a job that waits could clearly start now.
func (b *books) fits(j *entry, now time.Time) bool {
	reserved, _ := b.taken(j, now, (*lane).mayBeActive, (*lane).mustBeActive)
	return reserved == "" && b.checkGrant(j, b.ground(j)) == nil
}

// taken is a unit of which a grant to an identifier that uses something would
// leave too little for those that do not: capacity · (reservation ÷ 100) to the
// power of how many are active. What is on its way back is as good as free. At the beginning of the window it is in doubt who
// is: self says what to take it for whom it is about, and others for the rest.
func (b *books) taken(j *entry, now time.Time, self, others func(*lane, time.Duration, time.Time) bool) (unit string, left int64) {
	f := b.fairShare(j.lane.queue)
	if f == nil || f.Reservation == 0 || !self(j.lane, window(f), now) {
		return "", 0
	}
	active := 1
	for _, l := range j.lane.pool.lanes {
		if l != j.lane && l.queue == j.lane.queue && others(l, window(f), now) {
			active++
		}
	}
	part := math.Pow(float64(f.Reservation)/100, float64(active))
	for _, u := range units(j.demand) {
		left := j.lane.pool.free(u) + j.lane.pool.stopping(u) - j.demand[u]
		if left < int64(float64(j.lane.pool.capacity(u))*part) {
			return u, left
		}
	}
	return "", 0
}

// mayBeActive reports whether the identifier holds something, or used something
// within the window.
func (l *lane) mayBeActive(window time.Duration, now time.Time) bool {
	for _, u := range l.used {
		if u.to.IsZero() || u.to.After(u.from) && u.to.After(now.Add(-window)) {
			return true
		}
	}
	return false
}

// mustBeActive reports the same where there is no doubt.
func (l *lane) mustBeActive(window time.Duration, now time.Time) bool {
	return l.mayBeActive(window-time.Duration(grain*float64(window)), now)
}
