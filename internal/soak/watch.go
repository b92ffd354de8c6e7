package soak

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// watchWorkers checks what must hold of the workers at every instant, whether a
// governor is up or not.
func (d *day) watchWorkers() {
	if twice := d.world.Twice(); twice != nil {
		d.broken("I9: no job runs twice at once", "%v", twice)
	}
	for _, k := range d.world.Alive() {
		j := d.books.jobs[k.Job]
		if j == nil || !j.status.Holds() || j.run != k.Run {
			d.broken("no worker is orphaned", "run %d of job %s is alive, and nobody knows of it", k.Run, k.Job)
			return
		}
	}
}

// look checks what must hold once everything has happened that was to happen
// by now, if the governor is well.
func (d *day) look() {
	if !d.settle() || !d.ok() {
		return
	}
	d.lookAtHolders()
	d.lookAtTimes(d.clock.Now())
}

// lookAtHolders: what holds capacity is alive, or word of its end is on its way.
func (d *day) lookAtHolders() {
	alive := map[string]bool{}
	for _, k := range d.world.Alive() {
		alive[k.Job] = true
	}
	for _, j := range d.books.accepted {
		m := d.present.mail[runner.Key{Job: j.id, Run: j.run}]
		if j.status.Holds() && !alive[j.id] && (m == nil || !m.ended || m.waiting == 0) {
			d.broken("no worker is forgotten", "job %s is %s, and nothing of it is alive", j.id, j.status)
		}
	}
}

// lookAtTimes: nobody has had more time than it may have, and nobody still waits
// who could start.
func (d *day) lookAtTimes(now time.Time) {
	d.must(d.books.idle(now))
	for _, j := range d.books.accepted {
		if limit := j.limit(); limit > 0 && j.status == job.Running && j.stop == nil && !j.startedAt.Add(limit).After(now) {
			d.broken("timeouts are honoured", "job %s runs since %v, and may for %s", j.id, j.startedAt, limit)
		}
		if at, reason, ok := j.timeLimit(); ok && !at.After(now) {
			d.broken("time limit actions are honoured", "job %s is parked since %v because of %s", j.id, j.record.ReasonSince, reason)
		}
	}
}

// limit is how long an attempt may run; 0: for ever.
func (e *entry) limit() time.Duration {
	if e.Timeout > 0 && e.MaxRuntime > 0 {
		return min(e.Timeout, e.MaxRuntime)
	}
	return max(e.Timeout, e.MaxRuntime)
}

// compareAnswers checks that the governor answers what the journal says.
func (d *day) compareAnswers() {
	if !d.settle() || !d.ok() {
		return
	}
	for _, j := range d.books.accepted {
		d.compareJob(j)
	}
	d.compareDeclared()
}

func (d *day) compareJob(j *entry) {
	is, err := d.governor.Job(d.ctx, j.id)
	if errors.Is(err, errDisk) {
		return
	}
	if err != nil {
		d.broken("everything acknowledged is there", "job %s: %v", j.id, err)
		return
	}
	if diff := cmp.Diff(j.record, is); diff != "" {
		d.broken("answers are what was committed", "job %s (-committed +answered):\n%s", j.id, diff)
	}
}

// compareDeclared checks what administrators declared.
func (d *day) compareDeclared() {
	g, b := d.governor, d.books
	environments, err := g.Environments(d.ctx)
	d.must(err)
	compare(d, "environments", inOrder(b.pools, func(p *pool) resource.Environment { return p.Environment }), environments)
	policies, err := g.Policies(d.ctx)
	d.must(err)
	compare(d, "scheduling policies", inOrder(b.policies, func(p *resource.Policy) resource.Policy { return *p }), policies)
	queues, err := g.Queues(d.ctx)
	d.must(err)
	compare(d, "job queues", inOrder(b.queues, func(q *resource.Queue) resource.Queue { return *q }), queues)
	var shares []resource.Share
	for _, q := range queues {
		of, err := g.Shares(d.ctx, q.Name)
		d.must(err)
		shares = append(shares, of...)
	}
	var declared []resource.Share
	for _, l := range inOrder(b.lanes, func(l *lane) *lane { return l }) {
		if l.share != nil {
			declared = append(declared, *l.share)
		}
	}
	compare(d, "quota shares", declared, shares)
}

func compare[T any](d *day, what string, declared, answered []T) {
	if diff := cmp.Diff(declared, answered, cmpopts.EquateEmpty()); diff != "" {
		d.broken("everything acknowledged is there", "%s (-acknowledged +answered):\n%s", what, diff)
	}
}

// inOrder returns what f makes of a map's values, in order of their names.
func inOrder[V, R any](m map[string]V, f func(V) R) []R {
	var values []R
	for _, name := range slices.Sorted(maps.Keys(m)) {
		values = append(values, f(m[name]))
	}
	return values
}

// compareWithReload checks that a governor that is started now from the store
// gives the answers that the one does which has lived through all.
func (d *day) compareWithReload() {
	if !d.settle() || !d.ok() {
		return
	}
	loaded := governor.New(d.config(mute{d.store}, still{d.clock}, idleRunner, d.nextID))
	if err := loaded.Start(d.ctx); err != nil {
		d.broken("a reload changes nothing", "a governor that loads the state: %v", err)
		return
	}
	defer func() {
		if err := loaded.Stop(d.ctx); err != nil {
			d.broken("a governor can be stopped", "%v", err)
		}
	}()
	before, after := d.answers(d.governor), d.answers(loaded)
	if before != after {
		d.broken("a reload changes no answer", "(-lived +loaded):\n%s", cmp.Diff(before, after))
	}
}

// mute is a store that can be read only.
type mute struct{ store.Store }

// Commit refuses.
func (mute) Commit(_ context.Context, b store.Batch) error {
	return breaks("a reload decides nothing", "it commits %d entries, the first is %s %s %s", len(b.Entries), b.Entries[0].Kind, b.Entries[0].Name, b.Entries[0].Subject)
}

// still is a clock on which nothing becomes due.
type still struct{ *clock.Manual }

// AfterFunc never calls.
func (still) AfterFunc(time.Duration, func()) func() { return func() {} }

// deaf is a runner that does nothing.
type deaf struct{}

func idleRunner(runner.Report) (runner.Runner, error) { return deaf{}, nil }

// Start starts nothing.
func (deaf) Start(runner.Attempt) {}

// Stop stops nothing.
func (deaf) Stop(runner.Key) {}

// Close closes nothing.
func (deaf) Close() error { return nil }

// answers is all that a governor answers from its state, as JSON.
func (d *day) answers(g *governor.Governor) string {
	all := map[string]any{}
	put := func(name string, value any, err error) {
		if err != nil && !errors.Is(err, errDisk) {
			d.broken("queries are answered", "%s: %v", name, err)
		}
		all[name] = value
	}
	environments, err := g.Environments(d.ctx)
	put("environments", environments, err)
	policies, err := g.Policies(d.ctx)
	put("policies", policies, err)
	balances, err := g.Balances(d.ctx, "")
	put("balances", balances, err)
	queues, err := g.Queues(d.ctx)
	put("queues", queues, err)
	for _, q := range queues {
		shares, err := g.Shares(d.ctx, q.Name)
		put("shares of "+q.Name, shares, err)
		snapshot, err := g.Snapshot(d.ctx, q.Name)
		put("usage of "+q.Name, []any{snapshot.Total, snapshot.Shares, snapshot.FairShare, ids(snapshot.Front)}, err)
	}
	for _, j := range d.books.accepted {
		if j.status.Finished() {
			continue
		}
		why, err := g.Why(d.ctx, j.id)
		put("job "+j.id, why, err)
	}
	text, err := json.MarshalIndent(all, "", " ")
	d.must(err)
	return string(text)
}

// ids are the jobs in front of a queue, in order.
func ids(front []governor.Front) []string {
	var ids []string
	for _, f := range front {
		ids = append(ids, f.Job.ID)
	}
	return ids
}
