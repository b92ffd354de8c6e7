package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// instances are the instance types there are.
var instances = []string{"ml.g5.xlarge", "ml.p5.48xlarge"}

// between is the mean time from one thing that people do to the next.
const between = 5 * time.Minute

// live is the day: people do something, now and then, and something breaks.
func (d *day) live() {
	for evening := dawn.Add(Length); d.ok(); {
		next := d.clock.Now().Add(d.pause())
		if next.After(evening) {
			d.advance(evening)
			return
		}
		d.advance(next)
		d.look()
		d.act()
	}
}

// pause is how long nobody does anything; a third of what is done comes together.
func (d *day) pause() time.Duration {
	if d.people.IntN(3) == 0 {
		return 0
	}
	return time.Duration(d.people.ExpFloat64() * 1.5 * float64(between)).Truncate(time.Second)
}

// act has somebody do something. It may well be refused.
func (d *day) act() {
	acts := []struct {
		weight int
		do     func()
	}{
		{50, d.submit}, {8, d.submitAgain}, {6, d.terminate}, {9, d.setPriority},
		{8, d.changeShare}, {6, d.changeEnvironment}, {4, d.changeQueue}, {2, d.changePolicy},
		{3, d.createShare}, {1, d.deleteShare}, {2, d.createQueue}, {1, d.deleteQueue}, {6, d.applyPolicy},
		{1, d.createEnvironment}, {1, d.deleteEnvironment}, {1, d.deletePolicy}, {2, d.tag},
		{6, d.strike}, {3, d.checkpoint}, {1, d.crash}, {1, d.restart}, {4, d.compareWithReload}, {4, d.compareAnswers},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	n := d.people.IntN(total)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.do()
			break
		}
	}
	d.settle()
	d.watchWorkers()
}

func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// anyOf returns a name, now and then one that does not exist.
func anyOf[V any](rng *rand.Rand, m map[string]V) string {
	names := slices.Sorted(maps.Keys(m))
	if len(names) == 0 || rng.IntN(40) == 0 {
		return "nobody"
	}
	return one(rng, names...)
}

// outcome is what came of a command.
type outcome struct {
	entry   *store.Entry // in the journal; nil: none
	refusal *governor.Refusal
	down    bool // nobody was there to take it, or it could not be made durable
}

func (o outcome) accepted() bool { return o.refusal == nil && !o.down }

// command gives the governor a command, and checks what must hold whatever came
// of it: what was acknowledged is in the journal, what was refused has left no
// trace, and what failed has not been carried out, unless a crash or the store
// has hidden from everybody that it was. What is acknowledged though nothing was
// to be done, idle says.
func (d *day) command(operation string, what any, idle func() bool, do func(context.Context, *governor.Governor) error) outcome {
	d.tally.Commands++
	by := fmt.Sprintf("%s %d", operation, d.tally.Commands)
	if !d.ok() || d.governor == nil {
		return outcome{down: true}
	}
	d.note("%s: %+v", by, what)
	d.present.lied = false
	l, commits := d.present, len(d.all)
	err := do(governor.WithPrincipal(d.ctx, by), d.governor)
	d.settle()
	if err != nil {
		d.note("%s: %v", by, err)
	}
	o := outcome{entry: d.books.by[by]}
	switch {
	case err == nil:
		if o.entry == nil && !idle() {
			d.broken("what is acknowledged is durable", "%s was, and is not in the journal", by)
		}
	case errors.As(err, &o.refusal):
		d.tally.Refused++
		if len(d.all) != commits && !l.dead && !l.lied {
			d.broken("what is refused leaves no trace", "%s was followed by a commit", by)
		}
		if o.entry != nil {
			d.broken("what is refused leaves no trace", "%s is in the journal", by)
		}
		if d.people.IntN(8) == 0 {
			d.compareWithReload()
		}
	case errors.Is(err, governor.ErrUnavailable):
		o.down = true
		if o.entry != nil && !l.lied {
			d.broken("what fails leaves no trace", "%s is in the journal", by)
		}
	default:
		d.broken("errors are refusals, or say that nothing can be accepted now", "%s: %v", by, err)
	}
	return o
}

func never() bool { return false }

// found declares what there is when the day begins.
func (d *day) found() {
	rng := d.people
	d.faults.off = true
	for i := range 1 + rng.IntN(2) {
		d.newPolicy(fmt.Sprintf("other-%d", i))
		d.newPolicy(fmt.Sprintf("policy-%d", i))
		name := fmt.Sprintf("quotas-%d", i)
		d.newEnvironment(name, d.capacity())
		d.newQueue(resource.Queue{Name: name, Environment: name, Policy: fmt.Sprintf("policy-%d", i)})
		for s := range 2 + rng.IntN(3) {
			d.newShare(name, fmt.Sprintf("share-%d", s))
		}
	}
	d.newEnvironment("plain", []resource.Limit{{Unit: resource.NumInstances, Max: 2 + rng.Int64N(8)}})
	for i := range 1 + rng.IntN(3) {
		d.newQueue(resource.Queue{Name: fmt.Sprintf("plain-%d", i), Environment: "plain"})
	}
	d.foundFairShares()
	d.faults.off = false
}

// foundFairShares declares fair-share queues: beside the plain ones, or beside
// one on an environment of its own.
func (d *day) foundFairShares() {
	environment := one(d.people, "plain", "mixed")
	if environment == "mixed" {
		d.newEnvironment("mixed", d.capacity())
		d.newQueue(resource.Queue{Name: "plain-3", Environment: "mixed"})
	}
	for i := range 2 {
		name := fmt.Sprintf("fair-%d", i)
		d.newFairShare(name)
		if i == 0 || d.people.IntN(2) == 0 {
			d.newQueue(resource.Queue{Name: name, Environment: environment, Policy: name})
		}
	}
}

// identifiers are the share identifiers there are.
var identifiers = []string{"ada", "bob", "team1", "team2", "team3"}

func (d *day) newFairShare(name string) {
	p := resource.Policy{Name: name, FairShare: d.fairShare()}
	d.command("CreateSchedulingPolicy", p, never, func(ctx context.Context, g *governor.Governor) error { return g.CreatePolicy(ctx, p) })
}

// fairShare weighs some of the identifiers. Now and then it weighs one twice,
// and is refused.
func (d *day) fairShare() *resource.FairShare {
	rng := d.people
	f := &resource.FairShare{
		Decay:       one(rng, 0, 10*time.Minute, time.Hour, 6*time.Hour),
		Reservation: one[int64](rng, 0, 0, 25, 50, 90),
	}
	for _, identifier := range []string{"ada", "team*", "team1"} {
		if rng.IntN(4) < 1+len(identifier)%2 {
			f.Distribution = append(f.Distribution, resource.WeightedShare{Identifier: identifier, WeightFactor: one[int64](rng, 1, 5_000, 20_000, 1_000_000)})
		}
	}
	return f
}

// capacity is of one instance type, or two.
func (d *day) capacity() []resource.Limit {
	var limits []resource.Limit
	for _, unit := range instances[:one(d.people, 1, 2, 2)] {
		limits = append(limits, resource.Limit{Unit: unit, Max: 3 + d.people.Int64N(8)})
	}
	return limits
}

func (d *day) newEnvironment(name string, limits []resource.Limit) {
	e := resource.Environment{Name: name, State: resource.Enabled, Limits: limits}
	d.command("CreateServiceEnvironment", e, never, func(ctx context.Context, g *governor.Governor) error { return g.CreateEnvironment(ctx, e) })
}

func (d *day) newPolicy(name string) {
	rng := d.people
	p := resource.Policy{Name: name, IdleAssignment: d.idleAssignment()}
	if d.habits.contested || rng.IntN(2) == 0 {
		p.Rules = d.rules()
	}
	d.command("CreateSchedulingPolicy", p, never, func(ctx context.Context, g *governor.Governor) error { return g.CreatePolicy(ctx, p) })
}

func (d *day) idleAssignment() string {
	if d.habits.contested {
		return one(d.people, resource.IdleFairShare, resource.IdleFairShare, resource.IdleFIFO)
	}
	return one(d.people, resource.IdleFIFO, resource.IdleFIFO, resource.IdleFairShare)
}

func (d *day) rules() resource.Rules {
	rng := d.people
	r := resource.Rules{
		Queueing:                  one(rng, resource.Strict, resource.BestEffort, resource.Backfill),
		PriorityScope:             one(rng, resource.InEachShare, resource.InCohort),
		Victims:                   one(rng, resource.LeastLostWork, resource.MostOverQuota, resource.NewestFirst),
		BorrowerPreemption:        rng.IntN(2) == 0,
		Rebalance:                 rng.IntN(2) == 0,
		ShareUnallocated:          rng.IntN(2) == 0,
		AssumedCheckpointInterval: one(rng, 0, 10*time.Minute, time.Hour),
		MinRuntime:                one(rng, 0, 0, 10*time.Minute),
		GracePeriod:               one(rng, 0, 0, time.Minute),
	}
	if d.habits.contested {
		r.BorrowerPreemption = r.BorrowerPreemption || rng.IntN(2) == 0
		r.Rebalance = r.Rebalance || rng.IntN(2) == 0
	}
	return r
}

func (d *day) newQueue(q resource.Queue) {
	q.State, q.Priority, q.EnvironmentOrder = resource.Enabled, d.people.Int64N(4), 1
	q.TimeLimitActions = d.timeLimits()
	d.command("CreateJobQueue", q, never, func(ctx context.Context, g *governor.Governor) error { return g.CreateQueue(ctx, q) })
}

func (d *day) timeLimits() []resource.TimeLimitAction {
	if d.people.IntN(2) == 0 {
		return []resource.TimeLimitAction{}
	}
	return []resource.TimeLimitAction{
		{Reason: "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE", After: time.Duration(600+d.people.IntN(1800)) * time.Second},
		{Reason: "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED", After: time.Duration(600+d.people.IntN(1800)) * time.Second},
	}
}

func (d *day) newShare(queue, name string) {
	s := d.share(queue, name)
	d.command("CreateQuotaShare", s, never, func(ctx context.Context, g *governor.Governor) error { return g.CreateShare(ctx, s) })
}

func (d *day) share(queue, name string) resource.Share {
	rng := d.people
	s := resource.Share{
		Queue: queue, Name: name, State: resource.Enabled, Limits: d.quota(),
		Sharing:     one(rng, resource.Reserve, resource.Lend, resource.LendAndBorrow, resource.LendAndBorrow, resource.LendAndBorrow),
		BorrowLimit: resource.Unlimited, InSharePreemption: rng.IntN(2) == 0, Weight: rng.Int64N(4),
	}
	if d.habits.contested && rng.IntN(4) > 0 {
		s.Sharing, s.Weight = resource.LendAndBorrow, 1+rng.Int64N(3)
		return s
	}
	if s.Sharing == resource.LendAndBorrow {
		s.BorrowLimit = one[int64](rng, resource.Unlimited, resource.Unlimited, 0, 50, 100, 200)
		if rng.IntN(4) == 0 {
			s.BorrowLimits = []resource.Limit{{Unit: instances[0], Max: rng.Int64N(4)}}
		}
	}
	if s.Sharing != resource.Reserve && rng.IntN(4) == 0 {
		s.LendLimits = []resource.Limit{{Unit: instances[0], Max: rng.Int64N(4)}}
	}
	return s
}

func (d *day) quota() []resource.Limit {
	limits := []resource.Limit{{Unit: instances[0], Max: 1 + d.people.Int64N(4)}}
	if d.habits.contested {
		limits[0].Max = 1 + d.people.Int64N(2)
	}
	if d.people.IntN(3) > 0 {
		limits = append(limits, resource.Limit{Unit: instances[1], Max: 1 + d.people.Int64N(3)})
	}
	return limits
}

// submit hands in a new job, or several to one share or queue.
func (d *day) submit() {
	to := anyOf(d.people, d.books.takers())
	if d.habits.contested && d.people.IntN(3) > 0 {
		to = anyOf(d.people, d.books.shares())
	}
	for range one(d.people, 1, 1, 2, 5) {
		d.send(d.submission(to))
	}
}

func (d *day) submission(to string) governor.Submission {
	rng := d.people
	s := governor.Submission{
		Name: fmt.Sprintf("job-%d", d.tally.Commands), Priority: int32(rng.IntN(5)), TrainingJobName: "train",
		Demand:  []job.Amount{{Unit: instances[0], Quantity: one[int64](rng, 1, 1, 2, 3)}},
		Timeout: one(rng, 0, 0, 20*time.Minute), MaxRuntime: one(rng, 0, 0, 30*time.Minute, 2*time.Hour),
		Payload: fmt.Sprintf("payload of %d", d.tally.Commands),
	}
	switch rng.IntN(20) {
	case 0:
		s.Demand[0].Quantity = 12
	case 1, 2:
		s.Demand[0].Unit = instances[1]
	case 3, 4:
		s.Demand = append(s.Demand, job.Amount{Unit: instances[1], Quantity: 1 + rng.Int64N(2)})
	}
	for _, a := range s.Demand {
		s.Workers += int(a.Quantity)
	}
	s.Queue = to
	if l := d.books.lanes[to]; l != nil && l.share != nil {
		s.Queue, s.Share = l.queue.Name, l.share.Name
	}
	if q := d.books.queues[to]; q != nil && d.books.fairShare(q) != nil || rng.IntN(60) == 0 {
		s.ShareIdentifier = one(rng, identifiers...)
	}
	if rng.IntN(2) == 0 {
		s.Strategy = &job.Strategy{Attempts: 1 + rng.IntN(4)}
		if rng.IntN(3) == 0 {
			s.Strategy.Rules = []job.Rule{{Action: job.Exit, Pattern: "*exit code: 2"}, {Action: job.Retry, Pattern: "*"}}
		}
	}
	if rng.IntN(3) == 0 {
		n := rng.IntN(3)
		s.PreemptionRetries = &n
	}
	if rng.IntN(3) == 0 {
		s.Token = fmt.Sprintf("token-%d", d.tally.Commands)
		s.Hash = s.Name
	}
	return s
}

// submitAgain sends a submission with a client token again, as clients do that
// got no answer; now and then with other parameters.
func (d *day) submitAgain() {
	if len(d.tokens) == 0 {
		return
	}
	s := one(d.people, d.tokens...)
	if d.people.IntN(4) == 0 {
		s.Hash = "of other parameters"
	}
	d.send(s)
}

// send submits, and checks what client tokens promise.
func (d *day) send(s governor.Submission) {
	first := d.books.tokens[s.Token]
	var same bool
	if first != "" {
		same = d.books.jobs[first].Hash == s.Hash
	} else if s.Token != "" {
		d.tokens = append(d.tokens, s)
	}
	var reply job.Job
	o := d.command("SubmitServiceJob", s, func() bool { return same }, func(ctx context.Context, g *governor.Governor) (err error) {
		reply, err = g.Submit(ctx, s)
		return err
	})
	switch {
	case first != "" && o.entry != nil:
		d.broken("a client token makes one job", "token %s made %s, and job %s before", s.Token, o.entry.Subject, first)
	case first != "" && !same && o.accepted():
		d.broken("a client token is for the same parameters", "token %s was taken again with others", s.Token)
	case first != "" && same && o.refusal != nil:
		d.broken("a repeated submission gets the first reply", "token %s was refused", s.Token)
	case first != "" && o.accepted() && reply.ID != first:
		d.broken("a repeated submission gets the first reply", "token %s made job %s, and the reply is job %s", s.Token, first, reply.ID)
	case first == "" && o.accepted() && o.entry != nil && reply.ID != o.entry.Subject:
		d.broken("a submission is answered with its job", "the reply is job %s, in the journal is %s", reply.ID, o.entry.Subject)
	}
}

// anyone is a job, rather a recent one.
func (d *day) anyone() string {
	n := len(d.books.accepted)
	if n == 0 {
		return "nobody"
	}
	return d.books.accepted[n-1-d.people.IntN(min(n, 40))].id
}

func (d *day) terminate() {
	id := d.anyone()
	d.command("TerminateServiceJob", id, func() bool {
		j := d.books.jobs[id]
		return j.status.Finished() || j.stop != nil && j.stop.cause == job.Terminated
	}, func(ctx context.Context, g *governor.Governor) error {
		return g.Terminate(ctx, id, "somebody gave it up")
	})
}

func (d *day) setPriority() {
	id, priority := d.anyone(), int32(d.people.IntN(6))
	d.command("UpdateServiceJob", fmt.Sprint(id, " ", priority), never, func(ctx context.Context, g *governor.Governor) error {
		_, err := g.SetPriority(ctx, id, priority)
		return err
	})
}

// state is disabled now and then; somebody enables it again later.
func (d *day) state() *resource.State {
	s := one(d.people, resource.Enabled, resource.Enabled, resource.Enabled, resource.Disabled)
	return &s
}

func (d *day) changeShare() {
	rng := d.people
	l := d.books.lanes[anyOf(rng, d.books.shares())]
	if l == nil {
		return
	}
	if l.share.State == resource.Disabled {
		d.updateShare(governor.ShareChange{Queue: l.share.Queue, Name: l.share.Name, State: d.state()})
		return
	}
	c := governor.ShareChange{Queue: l.share.Queue, Name: l.share.Name}
	switch rng.IntN(4) {
	case 0:
		c.Limits = d.quota()
	case 1:
		preempt := rng.IntN(2) == 0
		c.InSharePreemption, c.Limits = &preempt, d.quota()
		c.Limits[0].Max = one[int64](rng, 0, 1, 2) // 0 cannot be, and is refused
	case 2:
		sharing, preempt := one(rng, resource.Reserve, resource.Lend, resource.LendAndBorrow), rng.IntN(2) == 0
		c.Sharing, c.InSharePreemption = &sharing, &preempt
		if sharing == resource.LendAndBorrow {
			limit := one[int64](rng, resource.Unlimited, 0, 100)
			c.BorrowLimit = &limit
		}
	default:
		c.State = d.state()
	}
	d.updateShare(c)
}

func (d *day) updateShare(c governor.ShareChange) {
	d.command("UpdateQuotaShare", c, never, func(ctx context.Context, g *governor.Governor) error { return g.UpdateShare(ctx, c) })
}

func (d *day) changeEnvironment() {
	name := anyOf(d.people, d.books.pools)
	c := governor.EnvironmentChange{Name: name}
	switch p := d.books.pools[name]; {
	case p == nil:
	case d.people.IntN(4) == 0 || p.State == resource.Disabled:
		c.State = d.state()
	case p.CountsInstances():
		c.Limits = []resource.Limit{{Unit: resource.NumInstances, Max: d.people.Int64N(11)}}
	default:
		c.Limits = d.capacity()
	}
	d.updateEnvironment(c)
}

func (d *day) updateEnvironment(c governor.EnvironmentChange) {
	d.command("UpdateServiceEnvironment", c, never, func(ctx context.Context, g *governor.Governor) error { return g.UpdateEnvironment(ctx, c) })
}

func (d *day) changeQueue() {
	c := governor.QueueChange{Name: anyOf(d.people, d.books.queues)}
	q := d.books.queues[c.Name]
	switch n := d.people.IntN(4); {
	case n == 0 || q != nil && q.State == resource.Disabled:
		c.State = d.state()
	case n == 1:
		priority := d.people.Int64N(5)
		c.Priority = &priority
	case n == 2:
		actions := d.timeLimits()
		c.TimeLimitActions = &actions
	default:
		policy := anyOf(d.people, d.books.policies)
		c.Policy = &policy
	}
	d.updateQueue(c)
}

func (d *day) updateQueue(c governor.QueueChange) {
	d.command("UpdateJobQueue", c, never, func(ctx context.Context, g *governor.Governor) error { return g.UpdateQueue(ctx, c) })
}

// changePolicy changes what a policy of its kind has; now and then what one of
// the other has, or nobody.
func (d *day) changePolicy() {
	c := governor.PolicyChange{Name: anyOf(d.people, d.books.policies)}
	p := d.books.policies[c.Name]
	if fair := p != nil && p.FairShare != nil; fair != (d.people.IntN(10) == 0) {
		c.FairShare = d.fairShare()
	} else {
		idle := one(d.people, resource.IdleFIFO, resource.IdleFairShare, "RANDOM")
		c.IdleAssignment = &idle
	}
	d.command("UpdateSchedulingPolicy", c, never, func(ctx context.Context, g *governor.Governor) error { return g.UpdatePolicy(ctx, c) })
}

func (d *day) createShare() {
	d.newShare(anyOf(d.people, d.books.queues), fmt.Sprintf("share-%d", d.people.IntN(6)))
}

// deleteShare, and the like, is done as it must be: disable first.
func (d *day) deleteShare() {
	if l := d.books.shares()[anyOf(d.people, d.books.shares())]; l != nil {
		d.removeShare(l)
	}
}

func (d *day) removeShare(l *lane) {
	queue, name, disabled := l.share.Queue, l.share.Name, resource.Disabled
	d.updateShare(governor.ShareChange{Queue: queue, Name: name, State: &disabled})
	d.command("DeleteQuotaShare", name, func() bool { return l.share.Status == resource.Deleting },
		func(ctx context.Context, g *governor.Governor) error { return g.DeleteShare(ctx, queue, name) })
}

func (d *day) createQueue() {
	q := resource.Queue{Name: fmt.Sprintf("plain-%d", d.people.IntN(4)), Environment: anyOf(d.people, d.books.pools)}
	if d.people.IntN(2) == 0 {
		q.Name, q.Policy = fmt.Sprintf("fair-%d", d.people.IntN(2)), anyOf(d.people, d.books.policies)
	}
	d.newQueue(q)
}

func (d *day) deleteQueue() {
	if name := anyOf(d.people, d.books.queues); d.people.IntN(2) == 0 {
		d.removeQueue(name)
	}
}

func (d *day) removeQueue(name string) {
	q, disabled := d.books.queues[name], resource.Disabled
	d.updateQueue(governor.QueueChange{Name: name, State: &disabled})
	d.command("DeleteJobQueue", name, func() bool { return q.Status == resource.Deleting },
		func(ctx context.Context, g *governor.Governor) error { return g.DeleteQueue(ctx, name) })
}

func (d *day) createEnvironment() {
	d.newEnvironment(fmt.Sprintf("spare-%d", d.people.IntN(2)), d.capacity())
}

func (d *day) deleteEnvironment() { d.removeEnvironment(anyOf(d.people, d.books.pools)) }

func (d *day) removeEnvironment(name string) {
	if p := d.books.pools[name]; p != nil && len(p.lanes) == 0 {
		disabled := resource.Disabled
		d.updateEnvironment(governor.EnvironmentChange{Name: name, State: &disabled})
	}
	d.command("DeleteServiceEnvironment", name, never, func(ctx context.Context, g *governor.Governor) error { return g.DeleteEnvironment(ctx, name) })
}

func (d *day) deletePolicy() { d.removePolicy(anyOf(d.people, d.books.policies)) }

func (d *day) removePolicy(name string) {
	d.command("DeleteSchedulingPolicy", name, never, func(ctx context.Context, g *governor.Governor) error { return g.DeletePolicy(ctx, name) })
}

func (d *day) tag() {
	ref := resource.Ref{Kind: resource.KindJob, Name: d.anyone()}
	tags := map[string]string{"team": fmt.Sprint(d.people.IntN(9))}
	d.command("TagResource", ref, never, func(ctx context.Context, g *governor.Governor) error { return g.Tag(ctx, ref, tags) })
}

// strike has something happen to the workers of one attempt.
func (d *day) strike() {
	alive := d.world.Alive()
	if len(alive) == 0 {
		return
	}
	id := one(d.people, alive...).Job
	switch d.people.IntN(4) {
	case 0:
		d.world.Fail(id, 1+d.people.IntN(3), "a worker crashed")
	case 1:
		d.world.Succeed(id)
	default:
		d.world.Lose(id)
	}
}

func (d *day) checkpoint() {
	if alive := d.world.Alive(); len(alive) > 0 {
		d.world.Checkpoint(one(d.people, alive...).Job)
	}
}

// restart stops the governor as it should be, and starts it again.
func (d *day) restart() {
	d.stop()
	d.start()
}
