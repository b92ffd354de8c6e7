package governor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
)

// Declaration is a cohort that is declared as a whole: what a policy file says.
// Name is that of its job queue. Where there is such a queue, the rest is about
// its quota shares, its scheduling policy and its service environment, whatever
// those are called; where there is none, all three are made with this name.
type Declaration struct {
	Name           string           `json:"name"`
	Limits         []resource.Limit `json:"limits"` // of the environment
	IdleAssignment string           `json:"idleAssignment"`
	Rules          resource.Rules   `json:"rules,omitzero"`
	// Shares are by name. Of each its own settings matter, and its State.
	Shares []resource.Share `json:"shares"`
	// Prune has shares deleted that are there and not declared. Without it
	// they stay as they are.
	Prune bool `json:"prune,omitempty"`
}

// declaredPriority is the priority of a queue that a declaration makes. It
// means nothing while the queue is alone on its environment.
const declaredPriority = 1

// Declared returns what is declared under the name of a job queue with quota
// shares. Shares that are being deleted are left out. Refusals: Missing,
// Invalid.
func (g *Governor) Declared(ctx context.Context, name string) (Declaration, error) {
	return query(ctx, g, func(s *state) (Declaration, error) { return s.declaration(name) })
}

// Standing is a job queue at one instant: what is declared under its name, and
// its jobs that have not finished, in order of acceptance.
type Standing struct {
	At          time.Time
	Declaration Declaration
	Jobs        []job.Job
}

// Standing returns where a job queue with quota shares stands. Refusals:
// Missing, Invalid.
func (g *Governor) Standing(ctx context.Context, name string) (Standing, error) {
	return query(ctx, g, func(s *state) (st Standing, err error) {
		if st.Declaration, err = s.declaration(name); err != nil {
			return Standing{}, err
		}
		st.At = g.cfg.Clock.Now().UTC()
		for _, a := range s.jobs {
			if a.Queue == name && !a.Status.Finished() {
				st.Jobs = append(st.Jobs, a.Clone())
			}
		}
		slices.SortFunc(st.Jobs, func(a, b job.Job) int { return cmp.Compare(a.Seq, b.Seq) })
		return st, nil
	})
}

func (s *state) declaration(name string) (Declaration, error) {
	if _, err := s.queue(name); err != nil {
		return Declaration{}, err
	}
	now, err := s.declared(name)
	if err != nil {
		return Declaration{}, err
	}
	d := Declaration{
		Name: name, Limits: now.environment.Limits,
		IdleAssignment: now.policy.IdleAssignment, Rules: now.policy.Rules,
	}
	for _, share := range inNameOrder(now.shares) {
		d.Shares = append(d.Shares, now.shares[share])
	}
	return d, nil
}

// Engine is the declaration as the engine knows it, its shares by their own
// names and in the same order.
func (d Declaration) Engine() (quota.Policy, []quota.Share) {
	policy := cohortPolicy(&resource.Policy{IdleAssignment: d.IdleAssignment, Rules: d.Rules})
	shares := make([]quota.Share, len(d.Shares))
	for i, s := range d.Shares {
		shares[i] = cohortShare(s)
	}
	return policy, shares
}

// validate refuses a declaration with a value that cannot be, whatever there
// is in the house.
func (d *Declaration) validate() error {
	if !resource.ValidName(d.Name) {
		return refuse(Invalid, "name is %q; use 1 to %d letters, digits, hyphens and underscores.", d.Name, resource.MaxNameLength)
	}
	if len(d.Limits) == 0 {
		return refuse(Invalid, "capacity is empty; name an amount for 1 to %d units.", resource.MaxLimits)
	}
	for _, l := range d.Limits {
		if l.Unit == resource.NumInstances {
			return refuse(Invalid, "capacity names %s; quota shares need capacity by instance type, such as ml.g5.xlarge.", l.Unit)
		}
	}
	environment := resource.Environment{Name: d.Name, State: resource.Enabled, Limits: d.Limits}
	if err := environment.Validate(); err != nil {
		return refuse(Invalid, "capacity of %s: %s", d.Name, err)
	}
	policy := resource.Policy{Name: d.Name, IdleAssignment: d.IdleAssignment, Rules: d.Rules}
	if err := policy.Validate(); err != nil {
		return refuse(Invalid, "policy of %s: %s", d.Name, err)
	}
	return d.validateShares()
}

func (d *Declaration) validateShares() error {
	if n := len(d.Shares); n > resource.MaxSharesPerQueue {
		return refuse(Limit, "%s has %d shares; use at most %d.", d.Name, n, resource.MaxSharesPerQueue)
	}
	seen := map[string]bool{}
	for _, s := range d.Shares {
		if len(s.Limits) == 0 {
			return refuse(Invalid, "quota of share %s is empty; give it at least 1 of some unit.", s.Name)
		}
		if err := s.Validate(); err != nil {
			return refuse(Invalid, "share %s: %s", s.Name, err)
		}
		if seen[s.Name] {
			return refuse(Invalid, "share %s is declared twice; names must differ.", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

func (d *Declaration) declares(share string) bool {
	return slices.ContainsFunc(d.Shares, func(s resource.Share) bool { return s.Name == share })
}

// declared is what there is, or would be, under one name. What is nil is not
// there. Its records are copies.
type declared struct {
	queue       *resource.Queue
	environment *resource.Environment
	policy      *resource.Policy
	shares      map[string]resource.Share // without those that are being deleted
}

// declared returns what there is under a name. A refusal (Invalid, Conflict)
// says that the queue is not one for quota shares, or is being deleted.
func (s *state) declared(name string) (declared, error) {
	d := declared{shares: map[string]resource.Share{}}
	q := s.queues[name]
	if q == nil {
		if e := s.environments[name]; e != nil {
			d.environment = copied(e.Environment)
		}
		if p := s.policies[name]; p != nil {
			d.policy = copied(*p)
		}
		return d, nil
	}
	if _, err := s.liveQueue(name); err != nil {
		return declared{}, err
	}
	if q.whole != nil || q.policy.FairShare != nil {
		return declared{}, refuse(Invalid, "Job queue %s has no scheduling policy with quota shares, and cannot get one. Name a job queue that has, or one that does not exist.", name)
	}
	d.queue, d.environment, d.policy = copied(q.Queue), copied(q.environment.Environment), copied(*q.policy)
	for _, l := range q.shares {
		if l.share.Status != resource.Deleting {
			d.shares[l.share.Name] = l.share
		}
	}
	return d, nil
}

func copied[T any](record T) *T { return &record }

// with returns what is declared with one resource as in another declaration.
func (d declared) with(r resource.Ref, from declared) declared {
	switch r.Kind {
	case resource.KindQueue:
		d.queue = from.queue
	case resource.KindEnvironment:
		d.environment = from.environment
	case resource.KindPolicy:
		d.policy = from.policy
	default:
		d.shares = maps.Clone(d.shares)
		delete(d.shares, r.Name)
		if s, ok := from.shares[r.Name]; ok {
			d.shares[r.Name] = s
		}
	}
	return d
}

// version stands for what is declared as of a journal entry: what it is, and
// since when to look for what changed it. Tags declare nothing.
func (d declared) version(entry int64) string {
	type contents struct {
		Queue       *resource.Queue
		Environment *resource.Environment
		Policy      *resource.Policy
		Shares      []resource.Share
	}
	c := contents{Queue: d.queue, Environment: d.environment, Policy: d.policy}
	if d.queue != nil {
		c.Queue = copied(*d.queue)
		c.Queue.Tags = nil
	}
	if d.environment != nil {
		c.Environment = copied(*d.environment)
		c.Environment.Tags = nil
	}
	if d.policy != nil {
		c.Policy = copied(*d.policy)
		c.Policy.Tags = nil
	}
	for _, name := range inNameOrder(d.shares) {
		s := d.shares[name]
		s.Tags = nil
		c.Shares = append(c.Shares, s)
	}
	text, _ := json.Marshal(c) //nolint:errchkjson // records of texts and numbers always have a JSON form
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d-%s", entry, hex.EncodeToString(sum[:8]))
}

// splitVersion takes a version apart. ok is false for what is none.
func splitVersion(version string) (entry int64, sum string, ok bool) {
	head, sum, found := strings.Cut(version, "-")
	entry, err := strconv.ParseInt(head, 10, 64)
	return entry, sum, found && err == nil && entry >= 0 && len(sum) == 16
}

// cohort makes an engine of what is declared, without jobs.
func (d declared) cohort() *quota.Cohort {
	policy := quota.Policy{}
	if d.policy != nil {
		policy = cohortPolicy(d.policy)
	}
	if d.environment == nil {
		return quota.NewCohort(policy)
	}
	policy.Paused = d.environment.State == resource.Disabled
	c := quota.NewCohort(policy)
	c.SetCapacity(amounts(d.environment.Limits))
	for _, name := range inNameOrder(d.shares) {
		c.SetShare(cohortShare(d.shares[name]))
	}
	return c
}

// would is what there is once a declaration has been applied to it.
func (d declared) would(want Declaration) declared {
	after := declared{shares: map[string]resource.Share{}}
	if d.environment == nil {
		d.environment = &resource.Environment{Name: want.Name, State: resource.Enabled, Status: resource.Valid}
	}
	after.environment = copied(*d.environment)
	after.environment.Limits = changedLimits(d.environment.Limits, want.Limits)
	if d.policy == nil {
		d.policy = &resource.Policy{Name: want.Name}
	}
	after.policy = copied(*d.policy)
	after.policy.IdleAssignment, after.policy.Rules = want.IdleAssignment, want.Rules
	if want.Rules.AssumedCheckpointInterval == quota.DefaultCheckpointInterval {
		after.policy.Rules.AssumedCheckpointInterval = 0
	}
	after.queue = d.queue
	if d.queue == nil {
		after.queue = &resource.Queue{
			Name: want.Name, Priority: declaredPriority, State: resource.Enabled, Status: resource.Valid,
			Environment: after.environment.Name, EnvironmentOrder: 1, Policy: after.policy.Name,
		}
	}
	if !want.Prune {
		maps.Copy(after.shares, d.shares)
	}
	for _, s := range want.Shares {
		after.shares[s.Name] = d.shareAs(s, want.Name)
	}
	return after
}

// shareAs is the share that a declared one becomes, in a queue.
func (d declared) shareAs(want resource.Share, queueName string) resource.Share {
	s, ok := d.shares[want.Name]
	if !ok {
		s = resource.Share{Queue: queueName, Name: want.Name, Status: resource.Valid}
	}
	s.Limits = changedLimits(s.Limits, want.Limits)
	s.BorrowLimits = changedLimits(s.BorrowLimits, want.BorrowLimits)
	s.LendLimits = changedLimits(s.LendLimits, want.LendLimits)
	s.Sharing, s.BorrowLimit, s.InSharePreemption = want.Sharing, want.BorrowLimit, want.InSharePreemption
	s.Weight, s.State = want.Weight, want.State
	forgetLimits(&s)
	return s
}

// changedLimits returns the limits wanted, in the order in which they are if
// they are the same.
func changedLimits(is, want []resource.Limit) []resource.Limit {
	if len(is) == len(want) && maps.Equal(amounts(is), amounts(want)) {
		return is
	}
	return slices.Clone(want)
}
