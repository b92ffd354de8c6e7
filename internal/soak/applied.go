package soak

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// apply books that all that is under one name was declared as a whole.
func (b *books) apply(e *store.Entry) error {
	want, err := decode[governor.Declaration](e)
	if err != nil {
		return err
	}
	if b.queues[want.Name] == nil {
		b.makeDeclared(want.Name, e.At)
	}
	q := b.queues[want.Name]
	env, policy := b.pools[q.Environment], b.policies[q.Policy]
	env.Limits = changedTo(want.Limits, env.Limits)
	if policy.IdleAssignment != want.IdleAssignment || asMeant(policy.Rules) != asMeant(want.Rules) {
		policy.IdleAssignment, policy.Rules = want.IdleAssignment, asMeant(want.Rules)
	}
	for _, s := range want.Shares {
		b.applyShare(q, s, e.At)
	}
	if want.Prune {
		return b.prune(q, want.Shares)
	}
	return nil
}

// asMeant leaves out an assumed checkpoint interval of an hour, which is what
// none means.
func asMeant(r resource.Rules) resource.Rules {
	if r.AssumedCheckpointInterval == time.Hour {
		r.AssumedCheckpointInterval = 0
	}
	return r
}

// makeDeclared makes what is not there yet of a queue, its environment and its
// policy, which all have the same name.
func (b *books) makeDeclared(name string, now time.Time) {
	if b.pools[name] == nil {
		b.pools[name] = &pool{
			Environment: resource.Environment{Name: name, State: resource.Enabled, Status: resource.Valid, CreatedAt: now},
			lanes:       map[string]*lane{}, held: map[string]int64{},
		}
	}
	if b.policies[name] == nil {
		b.policies[name] = &resource.Policy{Name: name, CreatedAt: now}
	}
	b.addQueue(&resource.Queue{
		Name: name, Priority: 1, State: resource.Enabled, Status: resource.Valid,
		Environment: name, EnvironmentOrder: 1, Policy: name, CreatedAt: now,
	})
}

func (b *books) applyShare(q *resource.Queue, want resource.Share, now time.Time) {
	l := b.lanes[q.Name+"/"+want.Name]
	if l == nil {
		b.addShare(&resource.Share{Queue: q.Name, Name: want.Name, Status: resource.Valid, CreatedAt: now})
		l = b.lanes[q.Name+"/"+want.Name]
	}
	s := l.share
	s.Limits = changedTo(want.Limits, s.Limits)
	s.BorrowLimits = changedTo(want.BorrowLimits, s.BorrowLimits)
	s.LendLimits = changedTo(want.LendLimits, s.LendLimits)
	s.Sharing, s.BorrowLimit, s.Weight = want.Sharing, want.BorrowLimit, want.Weight
	s.InSharePreemption, s.State = want.InSharePreemption, want.State
	forgetLimits(s)
}

// changedTo returns the limits wanted, in the order of those that are there if
// they are the same.
func changedTo(want, is []resource.Limit) []resource.Limit {
	same := len(want) == len(is)
	for _, l := range want {
		same = same && slices.Contains(is, l)
	}
	if same {
		return is
	}
	return want
}

// prune books that the shares that are not declared are deleted.
func (b *books) prune(q *resource.Queue, declared []resource.Share) error {
	for _, l := range b.lanesOf(q) {
		stays := slices.ContainsFunc(declared, func(s resource.Share) bool { return s.Name == l.share.Name })
		if stays || l.share.Status == resource.Deleting {
			continue
		}
		l.share.State, l.share.Status = resource.Disabled, resource.Deleting
		if err := b.end(l); err != nil {
			return err
		}
	}
	return nil
}

// declared is all that a plan for a name is upon, as text.
func (b *books) declared(name string) string {
	q := b.queues[name]
	environment, policy := name, name
	var shares []resource.Share
	if q != nil {
		environment, policy = q.Environment, q.Policy
		shares = b.sharesOf(q)
	}
	text, _ := json.Marshal([]any{q, b.pools[environment], b.policies[policy], shares}) //nolint:errchkjson // records always have a JSON form
	return string(text)
}

// sharesOf returns the shares of a queue that are not being deleted.
func (b *books) sharesOf(q *resource.Queue) []resource.Share {
	var shares []resource.Share
	for _, l := range b.lanesOf(q) {
		if l.share != nil && l.share.Status != resource.Deleting {
			shares = append(shares, *l.share)
		}
	}
	return shares
}
