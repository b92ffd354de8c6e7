package quota

import (
	"fmt"
	"math/bits"
	"time"
)

// This file orders the share identifiers of fair-share job queues (A3 of the
// facts): who used least lately, for its weight, goes first.
//
// Use is counted in unit-milliseconds over a window that ends now. It is cut
// into slices, and a slice weighs less the older it is, down to nothing where
// the window begins. All of it is whole numbers, so that the same history gives
// the same order on any machine.

// Fair makes a share one identifier of a fair-share job queue. Such a share
// has the whole pool for its nominal, and lends it (section 3).
type Fair struct {
	// Queue names the job queue; its identifiers are weighed against each
	// other.
	Queue string
	// WeightFactor multiplies what the identifier used, in ten-thousandths:
	// 10,000 is 1.0. A lower one gets more.
	WeightFactor int64
	// Window is how long use counts; 0 is DefaultFairWindow.
	Window time.Duration
	// Reservation keeps capacity for identifiers that use nothing yet: of the
	// pool, (Reservation/100) to the power of how many do use something.
	Reservation int64
}

// DefaultFairWindow is the window of a queue that names none.
const DefaultFairWindow = 600 * time.Second

// slices is into how many parts a window is cut.
const fairSlices = 60

// record is what a fair share used in its window.
type record struct {
	width  int64 // of a slice, in milliseconds
	latest int64 // number of the newest slice, counted from the epoch
	used   [fairSlices]int64
	since  int64 // Unix milliseconds up to which use was counted
	rate   int64 // what was in use since then
}

func newRecord(window time.Duration) *record {
	if window <= 0 {
		window = DefaultFairWindow
	}
	return &record{width: max(1, window.Milliseconds()/fairSlices)}
}

// charge counts the use of an amount from one time to another.
func (r *record) charge(amount, from, to int64) {
	r.advance(to / r.width)
	from = max(from, (r.latest-fairSlices+1)*r.width)
	for from < to {
		slice := from / r.width
		end := min(to, (slice+1)*r.width)
		r.used[slice%fairSlices] += amount * (end - from)
		from = end
	}
}

// advance forgets the slices that leave the window when slice becomes its newest.
func (r *record) advance(slice int64) {
	if slice <= r.latest {
		return
	}
	for s := max(r.latest+1, slice-fairSlices+1); s <= slice; s++ {
		r.used[s%fairSlices] = 0
	}
	r.latest = slice
}

// settle counts what was in use until now.
func (r *record) settle(now int64) {
	if now > r.since {
		if r.since > 0 {
			r.charge(r.rate, r.since, now)
		}
		r.since = now
	}
	r.advance(now / r.width)
}

// weighted is the use in the window, its slices weighed by age. What is in use
// counts to the end of the present slice, so that of several grants at one
// instant each makes the next less likely.
func (r *record) weighted(now int64) int64 {
	sum := int64(0)
	for age := range int64(fairSlices) {
		if slice := r.latest - age; slice >= 0 {
			sum += r.used[slice%fairSlices] * (fairSlices - age)
		}
	}
	return sum + r.rate*((r.latest+1)*r.width-now)*fairSlices
}

// Charge counts what jobs of a fair share used before the cohort knew of them,
// after a restart: an amount of capacity from one time to another. A negative
// amount takes back what the cohort counted of a job that had stopped before
// it was told. Charge returns ErrNoShare if there is no such share, or it is not
// a fair one.
func (c *Cohort) Charge(share string, amount int64, from, to time.Time) error {
	s, ok := c.shares[share]
	if !ok || s.record == nil {
		return fmt.Errorf("charge share %q: %w", share, ErrNoShare)
	}
	s.record.charge(amount, from.UnixMilli(), to.UnixMilli())
	c.touch(s)
	return nil
}

// Charged reports whether a fair share used anything within its window before
// at: while it did, forgetting the share would forget its use.
func (c *Cohort) Charged(share string, at time.Time) bool {
	s, ok := c.shares[share]
	if !ok || s.record == nil {
		return false
	}
	return s.record.settled(at.UnixMilli()).weighted(at.UnixMilli()) > 0
}

// settled is the record as it will be at a time if nothing changes until then.
func (r *record) settled(now int64) *record {
	later := *r
	later.settle(now)
	return &later
}

// settleRecords counts what fair shares used until now, with what they held
// until now, and begins to count with what they hold from now on.
func (c *Cohort) settleRecords(now int64) {
	c.nowMillis = now
	for _, s := range c.fair {
		s.record.settle(now)
		s.settleUse()
	}
}

// settleUse counts, from now on, with what a fair share uses now.
func (s *share) settleUse() {
	if s.record != nil {
		s.record.rate = s.inUse()
	}
}

// inUse is all that the share's jobs hold, of whatever unit.
func (s *share) inUse() int64 {
	sum := int64(0)
	for i := range s.units {
		sum += s.units[i].usage
	}
	return sum
}

// due is what a fair share's use comes to; 0 for all others.
func (c *Cohort) due(s *share) burden {
	if s.record == nil {
		return burden{}
	}
	return s.record.burden(c.nowMillis, s.def.Fair.WeightFactor)
}

func (r *record) burden(now, weightFactor int64) burden {
	hi, lo := bits.Mul64(uint64(r.weighted(now)), uint64(weightFactor))
	return burden{hi, lo}
}

// burden is a use times a weight factor.
type burden struct{ hi, lo uint64 }

func (b burden) less(o burden) bool { return b.hi < o.hi || b.hi == o.hi && b.lo < o.lo }

// reserved is how much too little a grant would leave of a unit for the
// identifiers of its queue that use nothing yet; nothing, if it goes to one of
// them. The unit is the first by name.
func (c *Cohort) reserved(s *share, d *shape, now int64) (n need, lacks int64) {
	f := s.def.Fair
	if f == nil || f.Reservation == 0 || !s.active(now) {
		return need{}, 0
	}
	active := 0
	for _, o := range c.fair {
		if o.def.Fair.Queue == f.Queue && o.active(now) {
			active++
		}
	}
	for _, n := range d.needs {
		p := &c.pools[n.unit]
		lacks := n.amount + reserve(p.capacity, f.Reservation, active) - p.free(&p.projected)
		if lacks > 0 {
			return n, lacks
		}
	}
	return need{}, 0
}

// active reports whether the share holds something, or used something lately.
func (s *share) active(now int64) bool {
	r := s.record
	if r.since != now {
		r = r.settled(now)
	}
	return s.inUse() > 0 || r.weighted(now) > 0
}

// reserve is capacity·(percent/100)^active, each step rounded down to a
// millionth.
func reserve(capacity, percent int64, active int) int64 {
	const fine = 1_000_000
	r := capacity * fine
	for range active {
		if r /= 100; r == 0 {
			return 0
		}
		r *= percent
	}
	return r / fine
}
