package governor

import (
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
)

// This file keeps the share identifiers of fair-share queues (A3). Nobody
// declares them: a lane is made for one when its first job is submitted, and
// forgotten when it has no jobs and used nothing within the policy's window.
//
// What identifiers used is nowhere stored: it follows from the attempts of
// jobs. The engine counts it while it watches, and is told of it where it did
// not, so that a restart changes no order.

// identifier returns the lane of a share identifier, which it makes if there
// is none.
func (q *queue) identifier(name string) *lane {
	l := q.identifiers[name]
	if l == nil {
		l = &lane{name: q.Name + "/" + name, queue: q, identifier: name, usage: usage{}}
		q.identifiers[name] = l
		q.environment.cohort.SetShare(l.quota())
	}
	return l
}

// fair is the lane's share identifier as the engine knows it; nil: it is none.
func (l *lane) fair() *quota.Fair {
	if l.identifier == "" {
		return nil
	}
	f := l.queue.policy.FairShare
	return &quota.Fair{
		Queue:        l.queue.Name,
		WeightFactor: f.WeightFactor(l.identifier),
		Window:       f.Window(),
		Reservation:  f.Reservation,
	}
}

// laneForIdentifier returns where a job of a fair-share queue goes.
func (t *turn) laneForIdentifier(q *queue, sub Submission) (*lane, error) {
	switch id := sub.ShareIdentifier; {
	case sub.Share != "":
		return nil, refuse(Invalid, "quotaShareName is %q, but job queue %s has no quota shares. Leave it out, and say by shareIdentifier whose the job is.", sub.Share, q.Name)
	case id == "":
		return nil, refuse(Invalid, "shareIdentifier is required for job queue %s, which has a fair-share policy. Say by 1 to %d letters and digits whose the job is.", q.Name, resource.MaxIdentifierLength)
	case !resource.ValidShareIdentifier(id):
		return nil, refuse(Invalid, "ShareIdentifier name should match a valid pattern. shareIdentifier is %q; use 1 to %d letters and digits.", id, resource.MaxIdentifierLength)
	case q.identifiers[id] != nil:
		return q.identifiers[id], nil
	}
	t.forgetIdle(q)
	if n := len(q.identifiers); n >= resource.MaxShareIdentifiers {
		return nil, refuse(Limit, "Job queue %s has %d active share identifiers, and there may be %d. Wait until one has no jobs and has used nothing for %s, or use one of them.",
			q.Name, n, resource.MaxShareIdentifiers, q.policy.FairShare.Window())
	}
	return q.identifier(sub.ShareIdentifier), nil
}

// isIdle reports whether nothing would be lost if the lane of a share
// identifier were forgotten.
func (l *lane) isIdle(now time.Time) bool {
	return l.jobs == 0 && !l.queue.environment.cohort.Charged(l.name, now)
}

// forgetIdle forgets the share identifiers that are no longer active.
func (t *turn) forgetIdle(q *queue) {
	for _, name := range inNameOrder(q.identifiers) {
		if l := q.identifiers[name]; l.isIdle(t.now) {
			t.check("remove share "+l.name, q.environment.cohort.RemoveShare(l.name))
			delete(q.identifiers, name)
		}
	}
}

// shown returns the lanes of a queue that people are shown, in order of their
// names: share identifiers only while they are active.
func (q *queue) shown(now time.Time) []*lane {
	return slices.DeleteFunc(q.lanes(), func(l *lane) bool { return l.identifier != "" && l.isIdle(now) })
}

// reweigh tells the engine how the queue's lanes are weighed now. If it forgets
// what they used by that, it is told again.
func (t *turn) reweigh(q *queue, forgets bool) {
	q.install()
	if forgets {
		t.recount(q)
	}
}

// sameWindow reports whether use counts for as long under both policies, which
// are of one kind: the engine forgets what it counted in another window.
func sameWindow(a, b *resource.Policy) bool {
	return a == nil || a.FairShare == nil || a.FairShare.Window() == b.FairShare.Window()
}

// recount tells the engine what the share identifiers of a queue used within
// its window until now. It looks at every job there is: for rare commands only.
func (t *turn) recount(q *queue) {
	if q.identifiers == nil {
		return
	}
	ended, err := t.cfg.Store.Ended(t.ctx, q.Name, t.now.Add(-q.policy.FairShare.Window()))
	t.check("read what job queue "+q.Name+" used", err)
	for i := range ended {
		// A queue that had the name before may have left jobs behind.
		if j := &ended[i]; t.jobs[j.ID] == nil && !j.CreatedAt.Before(q.CreatedAt) {
			t.recountJob(q, j)
		}
	}
	for _, a := range t.jobs {
		if a.Queue == q.Name { // in any order: charges add up
			t.recountJob(q, &a.Job)
		}
	}
}

func (t *turn) recountJob(q *queue, j *job.Job) {
	for _, a := range j.Attempts { // nobody is preempted in a fair-share queue
		t.charge(q.identifier(j.ShareIdentifier), instances(j.Demand), a.ScheduledAt, a.StoppedAt)
	}
	if j.Current != nil {
		t.charge(q.identifier(j.ShareIdentifier), instances(j.Demand), j.Current.ScheduledAt, t.now)
	}
}

// takeBackUse takes back what the engine counted of an attempt between its end
// and now, when that became known.
func (t *turn) takeBackUse(a *activeJob, end time.Time) {
	if a.lane.identifier != "" {
		t.charge(a.lane, -instances(a.Demand), end, t.now)
	}
}

func (t *turn) charge(l *lane, amount int64, from, to time.Time) {
	t.check("charge share "+l.name, l.queue.environment.cohort.Charge(l.name, amount, from, to))
}
