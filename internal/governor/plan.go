package governor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
)

// Plan is what applying a declaration would change, or has changed.
type Plan struct {
	Name string `json:"name"`
	// Version stands for what is declared before the changes. Apply refuses one
	// that no longer does.
	Version string   `json:"version"`
	Changes []Change `json:"changes"`
	// Effect is that of all changes together.
	Effect Effect `json:"effect"`
	// Kept are the shares that are there and not declared, and stay.
	Kept []string `json:"kept,omitempty"`
}

// Action is what happens to a resource.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is what happens to one resource, field by field, and the effect of
// this change alone.
type Change struct {
	Action Action        `json:"action"`
	Kind   resource.Kind `json:"kind"`
	Name   string        `json:"name"`
	Fields []FieldChange `json:"fields,omitempty"`
	Effect Effect        `json:"effect"`
}

// FieldChange is a field's old and new value, in the words of policy files. An
// empty one is not there, as all old ones of what is created.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Plan says what applying a declaration would change and what that would do to
// the jobs there are, and changes nothing. Refusals: Invalid, Limit, Conflict.
func (g *Governor) Plan(ctx context.Context, d Declaration) (Plan, error) {
	p, err := query(ctx, g, func(s *state) (proposal, error) { return s.propose(d) })
	if err != nil {
		return Plan{}, err
	}
	return p.plan(g.cfg.Clock.Now()), nil
}

// proposal is a declaration beside what there is.
type proposal struct {
	name          string
	version       string
	before, after declared
	kept          []string
	jobs          []standing
}

// propose checks that a declaration can be applied, all of it.
func (s *state) propose(want Declaration) (proposal, error) {
	if err := want.validate(); err != nil {
		return proposal{}, err
	}
	before, err := s.declared(want.Name)
	if err != nil {
		return proposal{}, err
	}
	after := before.would(want)
	if before.queue == nil {
		err = s.creatable(before, after)
	} else {
		err = s.changeable(before, after)
	}
	if err != nil {
		return proposal{}, err
	}
	p := proposal{name: want.Name, version: before.version(s.lastEntry), before: before, after: after}
	for _, name := range inNameOrder(before.shares) {
		if !want.declares(name) && !want.Prune {
			p.kept = append(p.kept, name)
		}
	}
	if before.queue != nil {
		p.jobs = s.standingIn(want.Name)
	}
	return p, nil
}

// creatable checks whether the queue can be made, with what is not there yet.
func (s *state) creatable(before, after declared) error {
	if len(s.queues) >= resource.MaxQueues {
		return refuse(Limit, "There are %d job queues, the most there may be. Delete one that is not needed.", len(s.queues))
	}
	if before.environment == nil && len(s.environments) >= resource.MaxEnvironments {
		return refuse(Limit, "There are %d service environments, the most there may be. Delete one that is not needed.", len(s.environments))
	}
	if before.policy != nil && before.policy.FairShare != nil {
		return refuse(Conflict, "Scheduling policy %s is one of fair-share queues, and its kind never changes. Use another name.", before.policy.Name)
	}
	if before.environment != nil {
		if err := s.attachable(*after.queue); err != nil {
			return err
		}
	}
	return s.policyChangeable(before, after)
}

// changeable checks whether the queue's shares, policy and environment can
// become what they are to be.
func (s *state) changeable(before, after declared) error {
	q := s.queues[before.queue.Name]
	count := len(after.shares)
	for _, name := range inNameOrder(q.shares) {
		l := q.shares[name]
		_, stays := after.shares[name]
		if stays && l.share.Status == resource.Deleting {
			return refuse(Conflict, "Quota share %s of job queue %s has status %s. Wait until it is gone, or use another name.", name, q.Name, l.share.Status)
		}
		if !stays && l.jobs > 0 {
			count++ // until its jobs have ended
		}
	}
	if count > resource.MaxSharesPerQueue {
		return refuse(Limit, "Job queue %s would have %d quota shares, with those whose jobs must end first; there may be %d. Delete some that are not needed.", q.Name, count, resource.MaxSharesPerQueue)
	}
	return s.policyChangeable(before, after)
}

// policyChangeable checks that a change of the policy governs nothing else.
func (s *state) policyChangeable(before, after declared) error {
	if before.policy == nil || len(policyChanges(before.policy, after.policy)) == 0 {
		return nil
	}
	var others []string
	for _, name := range inNameOrder(s.queues) {
		if name != after.queue.Name && s.queues[name].Policy == after.policy.Name {
			others = append(others, name)
		}
	}
	if others != nil {
		return refuse(Conflict, "Scheduling policy %s is used by job queue %s too: it would be governed otherwise as well. Give job queue %s a policy of its own first.",
			after.policy.Name, strings.Join(others, ", "), after.queue.Name)
	}
	return nil
}

// plan says what the proposal changes, and what that does at a time.
func (p proposal) plan(now time.Time) Plan {
	plan := Plan{Name: p.name, Version: p.version, Changes: p.changes(), Kept: p.kept}
	p.addEffects(&plan, now)
	return plan
}

// changes are in the order in which they are made, without their effects.
func (p proposal) changes() []Change {
	changes := []Change{}
	add := func(r resource.Ref, there bool, fields []FieldChange) {
		c := Change{Action: Update, Kind: r.Kind, Name: r.Name, Fields: fields}
		if !there {
			c.Action = Create
		}
		if len(fields) > 0 {
			changes = append(changes, c)
		}
	}
	b, a := p.before, p.after
	add(environmentRef(a.environment.Name), b.environment != nil, environmentChanges(b.environment, a.environment))
	add(policyRef(a.policy.Name), b.policy != nil, policyChanges(b.policy, a.policy))
	add(queueRef(a.queue.Name), b.queue != nil, queueChanges(b.queue, a.queue))
	for _, name := range inNameOrder(a.shares) {
		old, there := b.shares[name]
		if !there {
			old = resource.Share{State: resource.Enabled, BorrowLimit: resource.Unlimited, Weight: resource.DefaultWeight}
		}
		add(shareRef(p.name, name), there, differences(there, shareFields(old), shareFields(a.shares[name])))
	}
	for _, name := range inNameOrder(b.shares) {
		if _, stays := a.shares[name]; !stays {
			changes = append(changes, Change{Action: Delete, Kind: resource.KindShare, Name: name})
		}
	}
	return changes
}

func (p proposal) ref(c Change) resource.Ref {
	if c.Kind == resource.KindShare {
		return shareRef(p.name, c.Name)
	}
	return resource.Ref{Kind: c.Kind, Name: c.Name}
}

// field is a field's value in the words of policy files; empty: not there.
type field struct{ name, value string }

func environmentChanges(before, after *resource.Environment) []FieldChange {
	var old []field
	if before != nil {
		old = limitFields("capacity", before.Limits)
	}
	return differences(before != nil, old, limitFields("capacity", after.Limits))
}

func policyChanges(before, after *resource.Policy) []FieldChange {
	old := policyFields(resource.Policy{})
	if before != nil {
		old = policyFields(*before)
	}
	return differences(before != nil, old, policyFields(*after))
}

func policyFields(p resource.Policy) []field {
	idle := map[string]string{resource.IdleFIFO: "FIFO", resource.IdleFairShare: "FairShare"}
	queueing := map[resource.Queueing]string{resource.Strict: "Strict", resource.BestEffort: "BestEffort", resource.Backfill: "Backfill"}
	scope := map[resource.PriorityScope]string{resource.InEachShare: "Share", resource.InCohort: "Cohort"}
	victims := map[resource.Victims]string{
		resource.LeastLostWork: "LeastLostWork", resource.MostOverQuota: "MostOverQuota", resource.NewestFirst: "NewestFirst",
	}
	r := p.Rules
	return []field{
		{"idleAssignment", idle[p.IdleAssignment]},
		{"queueing", queueing[r.Queueing]},
		{"priorityScope", scope[r.PriorityScope]},
		{"borrowerPreemption", strconv.FormatBool(r.BorrowerPreemption)},
		{"rebalance", strconv.FormatBool(r.Rebalance)},
		{"shareUnallocated", strconv.FormatBool(r.ShareUnallocated)},
		{"victims", victims[r.Victims]},
		{"assumedCheckpointInterval", cmp.Or(r.AssumedCheckpointInterval, quota.DefaultCheckpointInterval).String()},
		{"minRuntime", r.MinRuntime.String()},
		{"gracePeriod", r.GracePeriod.String()},
	}
}

func queueChanges(before, after *resource.Queue) []FieldChange {
	if before != nil {
		return nil // a declaration says nothing of a queue that is there
	}
	return differences(false, nil, []field{
		{"environment", after.Environment},
		{"policy", after.Policy},
		{"priority", strconv.FormatInt(after.Priority, 10)},
	})
}

func shareFields(s resource.Share) []field {
	sharing := map[resource.Sharing]string{resource.Reserve: "Reserve", resource.Lend: "Lend", resource.LendAndBorrow: "LendAndBorrow"}
	return slices.Concat(
		limitFields("quota", s.Limits),
		[]field{
			{"sharing", sharing[s.Sharing]},
			{"borrowLimit", strconv.FormatInt(s.BorrowLimit, 10)},
		},
		limitFields("borrowLimits", s.BorrowLimits),
		limitFields("lendLimits", s.LendLimits),
		[]field{
			{"inSharePreemption", strconv.FormatBool(s.InSharePreemption)},
			{"weight", strconv.FormatInt(s.Weight, 10)},
			{"disabled", strconv.FormatBool(s.State == resource.Disabled)},
		},
	)
}

// limitFields are by unit: each amount is a field of its own.
func limitFields(name string, limits []resource.Limit) []field {
	var fields []field
	for _, l := range limits {
		fields = append(fields, field{fmt.Sprintf("%s %s", name, l.Unit), strconv.FormatInt(l.Max, 10)})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// differences are the fields that change. Of something that was not there,
// the old fields are what one is that says nothing.
func differences(there bool, before, after []field) []FieldChange {
	old := map[string]string{}
	for _, f := range before {
		old[f.name] = f.value
	}
	var changes []FieldChange
	for _, f := range after {
		was := old[f.name]
		delete(old, f.name)
		if was == f.value {
			continue
		}
		if !there {
			was = ""
		}
		changes = append(changes, FieldChange{Field: f.name, Old: was, New: f.value})
	}
	for _, f := range before {
		if was, gone := old[f.name]; gone {
			changes = append(changes, FieldChange{Field: f.name, Old: was})
		}
	}
	return changes
}
