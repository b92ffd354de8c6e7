package mirror

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// Why a case has no counterpart here.
var (
	errTree    = errors.New("cohorts in a tree")
	errPodSets = errors.New("several pod sets in one workload")
)

// grounds are the other scheduler's words for why somebody is preempted, and
// the engine's.
var grounds = map[string]quota.Ground{
	"InClusterQueue":                quota.InShare,
	"InCohortReclamation":           quota.Reclaim,
	"InCohortReclaimWhileBorrowing": quota.FromBorrower,
	"InCohortFairSharing":           quota.Rebalance,
}

// outcome is who is preempted on which ground, as "name: ground", sorted.
type outcome []string

// outcomes is what the other scheduler decides, and what the engine does in the
// same situation. It returns errTree or errPodSets where there is no same
// situation.
func (e example) outcomes() (theirs, ours outcome, err error) {
	if theirs, err = e.theirs(); err != nil {
		return nil, nil, err
	}
	ours, err = e.ours()
	return theirs, ours, err
}

// theirs is what the other scheduler decides.
func (e example) theirs() (outcome, error) {
	out := outcome{}
	for _, p := range e.Preempted {
		name, reason, _ := strings.Cut(p[strings.Index(p, "/")+1:], ":")
		ground, ok := grounds[reason]
		if !ok {
			return nil, fmt.Errorf("%s: preempted for an unknown reason: %q", e, p)
		}
		out = append(out, victim(name, ground))
	}
	slices.Sort(out)
	return out, nil
}

func victim(name string, ground quota.Ground) string { return name + ": " + string(ground) }

// ours is what one pass of the engine decides.
func (e example) ours() (outcome, error) {
	s, err := e.situation()
	if err != nil {
		return nil, err
	}
	out := outcome{}
	for _, d := range s.Pass(s.now) {
		if d.Kind == quota.Preempt {
			out = append(out, victim(s.names[d.Job], d.Ground))
		}
	}
	slices.Sort(out)
	return out, nil
}

// situation is a cohort as a case describes it.
type situation struct {
	*quota.Cohort
	now   time.Time
	names map[quota.JobID]string
}

func (e example) situation() (*situation, error) {
	target, err := e.target()
	if err != nil {
		return nil, err
	}
	if err := e.hasCounterpart(); err != nil {
		return nil, err
	}
	s := &situation{
		Cohort: quota.NewCohort(e.policy(target)), now: e.now(),
		names: map[quota.JobID]string{},
	}
	queues := e.cohortOf(target)
	if err := s.addShares(queues); err != nil {
		return nil, err
	}
	if err := s.setCapacity(queues, e.Cohorts); err != nil {
		return nil, err
	}
	return s, s.addJobs(e, queues)
}

// hasCounterpart returns errTree or errPodSets if the case has none here.
func (e example) hasCounterpart() error {
	if slices.ContainsFunc(e.Cohorts, func(c cohort) bool { return c.Parent != "" }) {
		return errTree
	}
	several := func(w workload) bool { return len(w.PodSets) != 1 }
	if several(e.Incoming) || slices.ContainsFunc(e.Running, several) {
		return errPodSets
	}
	return nil
}

// now is the latest time that the case speaks of.
func (e example) now() time.Time {
	now := e.Incoming.Created
	for _, w := range e.Running {
		if w.ReservedAt.At.After(now) {
			now = w.ReservedAt.At
		}
	}
	return now
}

// cohortOf returns the queues that can lend to the queue, and the queue
// itself: one without a cohort is alone.
func (e example) cohortOf(target queue) []queue {
	return slices.DeleteFunc(slices.Clone(e.Queues), func(q queue) bool {
		return q.Name != target.Name && (q.Cohort == "" || q.Cohort != target.Cohort)
	})
}

// policy is the nearest to what the target queue says that its workloads may
// preempt: the other scheduler has it per queue, but only the target's has to
// be known. Of equals the newest are preempted, under fair sharing those of the
// queue that borrows most. What a cohort has beside its queues is borrowable.
func (e example) policy(target queue) quota.Policy {
	p := quota.Policy{
		Queueing:         quota.BestEffort,
		PriorityScope:    quota.InCohort,
		ShareUnallocated: true,
	}
	if e.Table == fair { // where borrowWithinCohort is without effect
		p.IdleAssignment = quota.FairShare
		p.Victims = quota.MostOverQuota
		p.Rebalance = permits(target.Preemption.ReclaimWithinCohort)
		return p
	}
	p.Victims = quota.NewestFirst
	p.BorrowerPreemption = permits(target.Preemption.BorrowWithinCohort.Policy)
	return p
}

// permits reports whether a preemption policy allows any.
func permits(policy string) bool { return policy != "" && policy != "Never" }

// addShares makes a share of each queue.
func (s *situation) addShares(queues []queue) error {
	for _, q := range queues {
		share, err := q.share()
		if err != nil {
			return fmt.Errorf("queue %q: %w", q.Name, err)
		}
		s.SetShare(share)
	}
	return nil
}

// setCapacity makes the pool what all queues have, and their cohort itself.
func (s *situation) setCapacity(queues []queue, cohorts []cohort) error {
	capacity := quota.Amounts{}
	for _, q := range queues {
		if err := q.Quotas.addTo(capacity); err != nil {
			return fmt.Errorf("queue %q: %w", q.Name, err)
		}
	}
	for _, c := range cohorts {
		if c.Name != queues[0].Cohort {
			continue
		}
		if err := c.Quotas.addTo(capacity); err != nil {
			return fmt.Errorf("cohort %q: %w", c.Name, err)
		}
	}
	s.SetCapacity(capacity)
	return nil
}

// addTo adds the nominal quotas.
func (q quotas) addTo(sum quota.Amounts) error {
	amounts, err := q.amounts(limits.nominal)
	for unit, amount := range amounts {
		sum[unit] += amount
	}
	return err
}

func (q queue) share() (quota.Share, error) {
	nominal, errNominal := q.Quotas.amounts(limits.nominal)
	borrow, errBorrow := q.Quotas.amounts(limits.borrowing)
	lend, errLend := q.Quotas.amounts(limits.lending)
	weight, errWeight := thousandths(cmp.Or(q.Weight, "1"))
	return quota.Share{
		Name: q.Name, Sharing: quota.LendAndBorrow, Nominal: nominal,
		BorrowPercent: quota.Unlimited, BorrowLimits: borrow, LendLimits: lend,
		InSharePreemption: permits(q.Preemption.WithinClusterQueue), Weight: weight,
	}, errors.Join(errNominal, errBorrow, errLend, errWeight)
}

func (l limits) nominal() json.Number   { return l.Nominal }
func (l limits) borrowing() json.Number { return l.BorrowingLimit }
func (l limits) lending() json.Number   { return l.LendingLimit }

// amounts is one of the limits, per unit where it is given.
func (q quotas) amounts(which func(limits) json.Number) (quota.Amounts, error) {
	amounts := quota.Amounts{}
	for flavor, resources := range q {
		for resource, l := range resources {
			if which(l) == "" {
				continue
			}
			amount, err := thousandths(which(l))
			if err != nil {
				return nil, err
			}
			amounts[unit(flavor, resource)] = amount
		}
	}
	return amounts, nil
}

func unit(flavor, resource string) quota.Unit { return quota.Unit(flavor + "/" + resource) }

// addJobs gives those that run in the queues what they hold, in order of when
// they got it, and lets the one that waits wait. Of those that got it at one
// time the other scheduler preempts by name; here it is the newest, so they
// come by name backwards.
func (s *situation) addJobs(e example, queues []queue) error {
	running := slices.SortedFunc(slices.Values(e.Running), func(a, b workload) int {
		return cmp.Or(a.ReservedAt.At.Compare(b.ReservedAt.At), cmp.Compare(b.Name, a.Name))
	})
	for _, w := range running {
		if !slices.ContainsFunc(queues, func(q queue) bool { return q.Name == w.Admission.Queue }) {
			continue
		}
		demand, err := w.Admission.demand()
		if err != nil {
			return fmt.Errorf("workload %q: %w", w.Name, err)
		}
		if err := s.Restore(s.job(w, w.Admission.Queue, demand), quota.Holding{Since: w.ReservedAt.At}); err != nil {
			return err
		}
	}
	demand, err := e.demand()
	if err != nil {
		return fmt.Errorf("workload %q: %w", e.Incoming.Name, err)
	}
	return s.Add(s.job(e.Incoming, e.Target, demand))
}

func (s *situation) job(w workload, share string, demand quota.Amounts) quota.Job {
	id := quota.JobID(len(s.names) + 1)
	s.names[id] = w.Name
	return quota.Job{ID: id, Share: share, Priority: w.Priority, Created: w.Created, Demand: demand}
}

// demand is what the admitted workload uses.
func (a admission) demand() (quota.Amounts, error) {
	set := a.PodSets[0]
	return demand(set.Usage, 1, func(resource string) string { return set.Flavors[resource] })
}

// demand is what Incoming would use of the flavors that the other scheduler
// has chosen for it: the engine is told the unit, it does not choose one.
func (e example) demand() (quota.Amounts, error) {
	set := e.Incoming.PodSets[0]
	return demand(set.PerPod, set.Count, func(resource string) string {
		if len(e.Assignment) > 0 {
			return e.Assignment[0].Flavors[resource].Flavor
		}
		return cmp.Or(e.AssignmentFlavor, "default")
	})
}

// demand leaves out what is asked for none of.
func demand(each map[string]json.Number, count int64, flavorOf func(string) string) (quota.Amounts, error) {
	amounts := quota.Amounts{}
	for resource, quantity := range each {
		amount, err := thousandths(quantity)
		if err != nil {
			return nil, err
		}
		if amount > 0 {
			amounts[unit(flavorOf(resource), resource)] = amount * count
		}
	}
	return amounts, nil
}
