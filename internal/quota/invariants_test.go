package quota_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-io/bursar/internal/quota"
)

// invariant looks at one decision, in the state in which it was taken
// (section 2).
type invariant struct {
	name  string
	holds func(before *plain, d quota.Decision) error
}

// invariants are those that one decision alone can break. I8 and I9 are about
// whole histories, which the type history watches, I10 about two of them; I6 is
// checked for all victims of a head together, with that no victim can be spared,
// when the plain pass tells them to stop.
var invariants = []invariant{
	{"I1", capacityHolds},
	{"I2", limitsHold},
	{"I3", reservesHold},
	{"I3b", lendingHolds},
	{"I4", gangsAreWhole},
	{"I5", nominalsHold},
	{"I7", rankHolds},
}

// checkInvariants replays decisions on a copy of the state and returns what
// they break.
func checkInvariants(before *plain, decisions []quota.Decision) error {
	state := before.clone()
	state.granted = map[quota.JobID]bool{}
	for i, d := range decisions {
		if err := gangsAreWhole(state, d); err != nil {
			return fmt.Errorf("I4 broken by decision %d, %+v: %w", i, d, err)
		}
		for _, inv := range invariants {
			if err := inv.holds(state, d); err != nil {
				return fmt.Errorf("%s broken by decision %d, %+v: %w", inv.name, i, d, err)
			}
		}
		state.apply(d)
	}
	return nil
}

// clone copies the state, without the claims of the last pass.
func (p *plain) clone() *plain {
	c := *p
	c.claims = map[quota.JobID]claim{}
	c.capacity, c.shares = maps.Clone(p.capacity), maps.Clone(p.shares)
	c.givenBack = map[string]map[quota.JobID]bool{}
	for share, promised := range p.givenBack {
		c.givenBack[share] = maps.Clone(promised)
	}
	c.use = map[string]*use{}
	for name, u := range p.use {
		c.use[name] = u.clone()
	}
	c.jobs = make(map[quota.JobID]*plainJob, len(p.jobs))
	for id, j := range p.jobs {
		copied := *j
		if j.holding != nil {
			held := *j.holding
			copied.holding = &held
		}
		c.jobs[id] = &copied
	}
	return &c
}

// I1: the usage of all shares is within capacity. Where it is not, because that
// was lowered, nothing is granted.
func capacityHolds(p *plain, d quota.Decision) error {
	return eachGranted(p, d, func(u quota.Unit, amount int64) error {
		if free := p.free(p.held(), u); amount > free {
			return fmt.Errorf("granted %d %s, free %d", amount, u, free)
		}
		return nil
	})
}

// I2: usage is within nominal + borrow limit.
func limitsHold(p *plain, d quota.Decision) error {
	s := p.shares[d.Share]
	return eachGranted(p, d, func(u quota.Unit, amount int64) error {
		if usage := p.held().usage(s.Name, u); usage > most(s, u)-amount {
			return fmt.Errorf("usage of %d %s, granted %d, limit %d", usage, u, amount, most(s, u))
		}
		return nil
	})
}

// I3: what other shares keep and do not use stays free.
func reservesHold(p *plain, d quota.Decision) error {
	if p.nothingLeftToReclaim(d) {
		return nil
	}
	return eachGranted(p, d, func(u quota.Unit, amount int64) error {
		left, reserved := p.free(p.held(), u)-amount, int64(0)
		for name, r := range p.shares {
			if name != d.Share {
				reserved += max(0, kept(r, u)-p.held().usage(name, u))
			}
		}
		if left < reserved {
			return fmt.Errorf("leaves %d %s, others keep %d unused", left, u, reserved)
		}
		return nil
	})
}

// I3b: what all use beyond what they keep is within the lend limits. Where it
// is not, because a quota was lowered, no grant adds to it.
func lendingHolds(p *plain, d quota.Decision) error {
	if p.nothingLeftToReclaim(d) {
		return nil
	}
	return eachGranted(p, d, func(u quota.Unit, amount int64) error {
		var lent, grown int64
		lendable := p.lendable(u)
		for name, r := range p.shares {
			usage := p.held().usage(name, u)
			lent += max(0, usage-kept(r, u))
			if name == d.Share {
				usage += amount
			}
			grown += max(0, usage-kept(r, u))
		}
		if grown > lendable && grown > lent {
			return fmt.Errorf("lent %s grows from %d to %d, lendable %d", u, lent, grown, lendable)
		}
		return nil
	})
}

// nothingLeftToReclaim is the exception of I3: an entitled grant where all that
// is borrowed of what is short was told to stop already.
func (p *plain) nothingLeftToReclaim(d quota.Decision) bool {
	if d.Kind != quota.Grant || d.Ground != quota.Entitled {
		return false
	}
	h := p.jobs[d.Job]
	return p.nothingBorrowed(p.projected(), h, p.unlendable(p.held(), h))
}

// I4: a job holds all of its demand or none. So what is granted held nothing,
// and what is preempted held its demand.
func gangsAreWhole(p *plain, d quota.Decision) error {
	j, ok := p.jobs[d.Job]
	switch {
	case !ok:
		return fmt.Errorf("there is no job %d", d.Job)
	case d.Share != j.Share:
		return fmt.Errorf("job %d is of share %s", d.Job, j.Share)
	case d.Kind == quota.Grant && j.holding != nil:
		return fmt.Errorf("job %d holds its demand already", d.Job)
	case d.Kind == quota.Preempt && !j.running():
		return fmt.Errorf("job %d waits, or stops already", d.Job)
	}
	return nil
}

// I5: no grant takes a Reserve or Lend share beyond its nominal; nor any share,
// if it is an entitled one.
func nominalsHold(p *plain, d quota.Decision) error {
	s := p.shares[d.Share]
	if s.Sharing == quota.LendAndBorrow && d.Ground == quota.Borrow {
		return nil
	}
	return eachGranted(p, d, func(u quota.Unit, amount int64) error {
		if usage := p.held().usage(s.Name, u); usage+amount > s.Nominal[u] {
			return fmt.Errorf("usage of %d %s, granted %d, nominal %d", usage, u, amount, s.Nominal[u])
		}
		return nil
	})
}

// I7: a job never preempts one of equal or higher priority inside its share.
func rankHolds(p *plain, d quota.Decision) error {
	if d.Kind != quota.Preempt || d.Share != d.ForShare {
		return nil
	}
	victim, head, s := p.jobs[d.Job], p.jobs[d.For], p.shares[d.Share]
	if d.Ground != quota.InShare || !s.InSharePreemption || victim.Priority >= head.Priority {
		return fmt.Errorf("ground %s, allowed %v, priority %d of the head, %d of the victim",
			d.Ground, s.InSharePreemption, head.Priority, victim.Priority)
	}
	return nil
}

func eachGranted(p *plain, d quota.Decision, check func(quota.Unit, int64) error) error {
	if d.Kind != quota.Grant {
		return nil
	}
	demand := p.jobs[d.Job].Demand
	for _, u := range slices.Sorted(maps.Keys(demand)) {
		if err := check(u, demand[u]); err != nil {
			return err
		}
	}
	return nil
}

// checkConserves: nobody waits who could start as things are. Strict: no head;
// BestEffort: no job; Backfill: no job that cannot delay its share's first
// blocked one. Who is nominated waits for what is on its way.
func checkConserves(after *plain) error {
	if after.policy.Paused {
		return nil
	}
	b := after.projected()
	for name := range after.shares {
		line, behind := after.line(name), after.turns[name].behind
		for i, j := range line {
			if i > 0 && after.policy.Queueing == quota.Strict {
				break
			}
			if after.claimed(j) || after.neverFits(j).Text != "" {
				continue
			}
			if after.policy.Queueing == quota.Backfill && behind != nil && behind != j && !after.mayBackfill(behind, j) {
				continue
			}
			if _, lacks := after.reservedFor(j); lacks > 0 {
				continue
			}
			if _, ok := after.fits(b, j); ok {
				return fmt.Errorf("job %d of share %s fits, and waits", j.ID, j.Share)
			}
		}
	}
	return nil
}

// check looks at those that a job makes stop, all together, as things are then.
func (p *plain) check(j *plainJob, victims []victim) {
	if len(victims) == 0 || p.broken != nil {
		return
	}
	c := choice{p: p, books: p.projected(), job: j, short: j.units}
	p.broken = cmp.Or(c.noShareLosesItsOwn(victims), c.noneCanBeSpared(victims))
}

// noShareLosesItsOwn is I6: a share within its nominal never loses a job to
// another share. They can stop one after the other, in some order, each of a
// share that still uses more than its nominal of what the job holds; whoever was
// told to stop before is lost already.
func (c *choice) noShareLosesItsOwn(victims []victim) error {
	over := map[string]bool{}
	for i, v := range victims {
		switch {
		case v.Share == c.job.Share:
			continue
		case v.own():
			return fmt.Errorf("I6 broken: job %d of share %s stops on ground %s for share %s", v.ID, v.Share, v.ground, c.job.Share)
		}
		left := c.books.without(slices.Concat(victims[:i], victims[i+1:]))
		over[v.Share] = over[v.Share] || c.p.over(left, v.Share, demandedOf(v.plainJob, c.short))
	}
	for share, lastWasOver := range over {
		if !lastWasOver {
			return fmt.Errorf("I6 broken: share %s loses what is within its nominal to job %d", share, c.job.ID)
		}
	}
	return nil
}

// noneCanBeSpared: the set of victims is minimal.
func (c *choice) noneCanBeSpared(victims []victim) error {
	if !c.wouldFit(victims) {
		return fmt.Errorf("job %d does not fit even without its %d victims", c.job.ID, len(victims))
	}
	for i, v := range victims {
		if c.wouldFit(slices.Concat(victims[:i], victims[i+1:])) {
			return fmt.Errorf("job %d fits if victim %d is spared", c.job.ID, v.ID)
		}
	}
	return nil
}

// wouldFit: what is reclaimed must leave the job entitled, and what is taken
// from borrowers must leave it borrow.
func (c *choice) wouldFit(victims []victim) bool {
	left := c.books.without(victims)
	if !slices.ContainsFunc(victims, func(v victim) bool { return v.ground == quota.Reclaim }) {
		left = c.books.withoutBorrowed(victims, c.p)
	}
	w, ok := c.p.fits(left, c.job)
	for _, v := range victims {
		if v.ground == quota.Reclaim && w.ground != quota.Entitled || !c.balances(left, v) {
			return false
		}
	}
	return ok
}
