package quota_test

import (
	"math/big"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// ---- A3 of the facts: share identifiers of fair-share job queues

// use is what a fair share used: in every span of time so much, of whatever unit.
type use struct {
	spans []span
	since int64 // Unix milliseconds of the last pass; 0: there was none
	rate  int64 // what was used since then
}

type span struct{ amount, from, to int64 }

const partsOfWindow = 60

// widthOf is how long a part of the window is, in milliseconds.
func widthOf(f *quota.Fair) int64 {
	window := f.Window
	if window <= 0 {
		window = quota.DefaultFairWindow
	}
	return max(1, window.Milliseconds()/partsOfWindow)
}

// keepUse has the use of a fair share counted; in another window from the start.
func (p *plain) keepUse(name string, before, after *quota.Fair) {
	switch {
	case after == nil:
		delete(p.use, name)
	case before == nil || widthOf(before) != widthOf(after):
		p.use[name] = &use{}
	}
}

// count adds what was used since the last pass.
func (p *plain) count() {
	now := p.now.UnixMilli()
	for name, u := range p.use {
		if u.since > 0 {
			u.spans = append(u.spans, span{u.rate, u.since, now})
		}
		u.since, u.rate = now, p.inUse(name)
	}
}

func (p *plain) Charge(share string, amount int64, from, to time.Time) error {
	u, ok := p.use[share]
	if !ok {
		return quota.ErrNoShare
	}
	u.spans = append(u.spans, span{amount, from.UnixMilli(), to.UnixMilli()})
	return nil
}

func (p *plain) inUse(share string) (sum int64) {
	for _, j := range p.jobs {
		if j.Share == share && j.holding != nil {
			for _, amount := range j.Demand {
				sum += amount
			}
		}
	}
	return sum
}

// recentUse is what the share used in its window, each part of it counting less
// the older it is. What it uses now counts to the end of the newest part.
func (p *plain) recentUse(share string) int64 {
	now, width := p.now.UnixMilli(), widthOf(p.shares[share].Fair)
	newest := now / width
	sum := p.inUse(share) * ((newest+1)*width - now) * partsOfWindow
	for age := range int64(partsOfWindow) {
		begin := (newest - age) * width
		for _, s := range p.use[share].spans {
			sum += s.amount * max(0, min(s.to, begin+width)-max(s.from, begin)) * (partsOfWindow - age)
		}
	}
	return sum
}

// byUse: of fair shares, who used least lately for its weight goes first, after
// all others.
func (p *plain) byUse(x, y *plainJob) int {
	return p.weightedUse(x.Share).Cmp(p.weightedUse(y.Share))
}

func (p *plain) weightedUse(share string) *big.Int {
	f := p.shares[share].Fair
	if f == nil {
		return new(big.Int)
	}
	return new(big.Int).Mul(big.NewInt(p.recentUse(share)), big.NewInt(f.WeightFactor))
}

func (p *plain) isActive(share string) bool { return p.inUse(share) > 0 || p.recentUse(share) > 0 }

// reservedFor is how much the job's grant would leave too little of a unit for
// the identifiers of its queue that use nothing; one of those may have all.
func (p *plain) reservedFor(j *plainJob) (unit quota.Unit, lacks int64) {
	f := p.shares[j.Share].Fair
	if f == nil || f.Reservation == 0 || !p.isActive(j.Share) {
		return "", 0
	}
	for _, u := range j.units {
		const fine = 1_000_000
		reserved := p.capacity[u] * fine
		for name, s := range p.shares {
			if s.Fair != nil && s.Fair.Queue == f.Queue && p.isActive(name) {
				reserved = reserved / 100 * f.Reservation
			}
		}
		if lacks := j.Demand[u] + reserved/fine - p.free(p.projected(), u); lacks > 0 {
			return u, lacks
		}
	}
	return "", 0
}

// whenForgotten is when what the share used will first count less.
func (p *plain) whenForgotten(share string) time.Time {
	width := widthOf(p.shares[share].Fair)
	return time.UnixMilli((p.now.UnixMilli()/width + 1) * width).UTC()
}

// setFairShare declares an identifier of the one fair-share queue: it owns the
// whole pool, and lends it.
func (h *history) setFairShare(name string) {
	f := h.fair
	f.WeightFactor = h.oneOf("weight factor", 10_000, 5_000, 30_000)
	s := quota.Share{
		Name: name, Rank: h.oneOf("rank", 0, 0, 1, -1), Sharing: quota.Lend, Fair: &f,
		Nominal: h.amounts("nominal", 6, 9, 4),
	}
	clear(h.outranked)
	h.both("fair share "+name, func(c cohort) error { c.SetShare(s); return nil })
}

// drawFairQueue has some histories have a fair-share queue, too.
func (h *history) drawFairQueue() {
	identifiers := h.oneOf("identifiers", 0, 0, 0, 2, 3)
	h.fair = quota.Fair{
		Queue: "fair", Reservation: h.oneOf("reservation", 0, 0, 50, 90),
		Window: time.Duration(h.oneOf("window", 0, 1, 60)) * time.Minute,
	}
	for _, name := range []string{"f0", "f1", "f2"}[:identifiers] {
		h.setFairShare(name)
	}
}

// recharge tells a new engine what fair shares used until now, as it is told
// after a restart, with a pass at once.
func (h *history) recharge() {
	if len(h.plain.use) == 0 {
		return
	}
	h.plain.now = h.now
	h.plain.count()
	for name, u := range h.plain.use {
		for _, s := range u.spans {
			if err := h.fast.Charge(name, s.amount, time.UnixMilli(s.from), time.UnixMilli(s.to)); err != nil {
				h.Fatal(err)
			}
		}
	}
	h.pass()
}

// clone is a copy that can be added to.
func (u *use) clone() *use {
	copied := *u
	copied.spans = slices.Clone(u.spans)
	return &copied
}
