package batchapi

import (
	"context"
	"strconv"
	"time"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
)

// policyReply names the policy that an operation was about.
type policyReply struct {
	Name string `json:"name"`
	ARN  string `json:"arn"`
}

type quotaSharePolicy struct {
	IdleAssignment string `json:"idleResourceAssignmentStrategy"`
}

type fairSharePolicy struct {
	DecaySeconds int64           `json:"shareDecaySeconds"`
	Reservation  int64           `json:"computeReservation"`
	Distribution []weightedShare `json:"shareDistribution"`
}

type weightedShare struct {
	Identifier   string       `json:"shareIdentifier"`
	WeightFactor weightFactor `json:"weightFactor"`
}

// policyDetail has one of the two kinds.
type policyDetail struct {
	policyReply
	QuotaShare *quotaSharePolicy `json:"quotaSharePolicy,omitempty"`
	FairShare  *fairSharePolicy  `json:"fairsharePolicy,omitempty"`
	Tags       map[string]string `json:"tags"`
}

type policyDetails struct {
	Policies []policyDetail `json:"schedulingPolicies"`
}

type policyListing struct {
	ARN string `json:"arn"`
}

type policyList struct {
	Policies  []policyListing `json:"schedulingPolicies"`
	NextToken string          `json:"nextToken,omitempty"`
}

func (d *door) policyReply(name string) policyReply {
	return policyReply{Name: name, ARN: d.arns.of(resource.KindPolicy, name)}
}

// eitherKind is AWS's message about a policy of both kinds, or of none.
const eitherKind = "A scheduling policy can have either fairsharePolicy or quotaSharePolicy"

func policyName(p resource.Policy) string { return p.Name }

func (d *door) createPolicy(ctx context.Context, in document.Object) (any, error) {
	p := resource.Policy{
		Name: in.NeededText("name"),
		Tags: in.TextMap("tags"),
	}
	if in.Has("fairsharePolicy") == in.Has("quotaSharePolicy") {
		in.Fail("%s. Give one of them", eitherKind)
	}
	if in.Has("fairsharePolicy") {
		p.FairShare = takeFairShare(in)
	} else {
		p.IdleAssignment = takeIdleAssignment(in)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.policyReply(p.Name), d.Governor.CreatePolicy(ctx, p)
}

func (d *door) updatePolicy(ctx context.Context, in document.Object) (any, error) {
	change := governor.PolicyChange{Name: d.arns.takeRef(in, resource.KindPolicy, "arn").Name}
	if in.Has("fairsharePolicy") && in.Has("quotaSharePolicy") {
		in.Fail("%s. Give the one that the policy has", eitherKind)
	}
	if in.Has("fairsharePolicy") {
		change.FairShare = takeFairShare(in)
	}
	if in.Has("quotaSharePolicy") {
		strategy := takeIdleAssignment(in)
		change.IdleAssignment = &strategy
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.UpdatePolicy(ctx, change)
}

// takeIdleAssignment takes the one idle assignment that AWS has.
func takeIdleAssignment(in document.Object) string {
	strategy := in.Object("quotaSharePolicy").Text("idleResourceAssignmentStrategy")
	if strategy != resource.IdleFIFO {
		in.Fail("Idle resource assignment strategy must be one of [FIFO]. idleResourceAssignmentStrategy is %s.", document.Quote(strategy))
	}
	return strategy
}

// takeFairShare takes a fairsharePolicy as a whole: what it does not say is as
// if it were new.
func takeFairShare(in document.Object) *resource.FairShare {
	in = in.Object("fairsharePolicy")
	f := &resource.FairShare{}
	if in.Has("shareDecaySeconds") {
		f.Decay = time.Duration(in.Integer("shareDecaySeconds")) * time.Second
	}
	if in.Has("computeReservation") {
		f.Reservation = int64(in.Integer("computeReservation"))
	}
	for _, member := range in.Objects("shareDistribution") {
		w := resource.WeightedShare{Identifier: member.NeededText("shareIdentifier"), WeightFactor: resource.DefaultWeightFactor}
		if member.Has("weightFactor") {
			w.WeightFactor = resource.WeightFactorOf(member.Float("weightFactor"))
		}
		f.Distribution = append(f.Distribution, w)
	}
	return f
}

func (d *door) deletePolicy(ctx context.Context, in document.Object) (any, error) {
	name := d.arns.takeRef(in, resource.KindPolicy, "arn").Name
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.DeletePolicy(ctx, name)
}

func (d *door) describePolicies(ctx context.Context, in document.Object) (any, error) {
	names := d.takePolicies(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	details := policyDetails{Policies: []policyDetail{}}
	if len(names) == 0 {
		return details, nil
	}
	all, err := d.Governor.Policies(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range only(all, names, policyName) {
		details.Policies = append(details.Policies, d.policyDetail(p))
	}
	return details, nil
}

func (d *door) policyDetail(p resource.Policy) policyDetail {
	detail := policyDetail{policyReply: d.policyReply(p.Name), Tags: tagsOf(p.Tags)}
	if p.FairShare == nil {
		detail.QuotaShare = &quotaSharePolicy{IdleAssignment: p.IdleAssignment}
	} else {
		detail.FairShare = fairSharePolicyOf(*p.FairShare)
	}
	return detail
}

func fairSharePolicyOf(f resource.FairShare) *fairSharePolicy {
	wire := &fairSharePolicy{DecaySeconds: int64(f.Decay / time.Second), Reservation: f.Reservation, Distribution: make([]weightedShare, len(f.Distribution))}
	for i, w := range f.Distribution {
		wire.Distribution[i] = weightedShare{Identifier: w.Identifier, WeightFactor: weightFactor(w.WeightFactor)}
	}
	return wire
}

// takePolicies takes the required list of ARNs.
func (d *door) takePolicies(in document.Object) []string {
	arns := in.Texts("arns")
	if arns == nil {
		in.Fail("arns is missing; give a list of up to %d ARNs of scheduling policies", maxNames)
	}
	if len(arns) > maxNames {
		in.Fail("arns has %d entries; give at most %d", len(arns), maxNames)
	}
	names := make([]string, len(arns))
	for i, arn := range arns {
		ref, err := d.arns.refOf(resource.KindPolicy, "arns["+strconv.Itoa(i)+"]", arn)
		if err != nil {
			in.Fail("%v", err)
		}
		names[i] = ref.Name
	}
	return names
}

func (d *door) listPolicies(ctx context.Context, in document.Object) (any, error) {
	p := takePage(in, "ListSchedulingPolicies")
	if err := in.Err(); err != nil {
		return nil, err
	}
	all, err := d.Governor.Policies(ctx)
	if err != nil {
		return nil, err
	}
	part, next := pageOf(p, all, policyName)
	list := policyList{Policies: make([]policyListing, len(part)), NextToken: next}
	for i, policy := range part {
		list.Policies[i] = policyListing{ARN: d.arns.of(resource.KindPolicy, policy.Name)}
	}
	return list, nil
}
