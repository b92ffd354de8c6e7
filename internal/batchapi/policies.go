package batchapi

import (
	"context"
	"strconv"

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

type policyDetail struct {
	policyReply
	QuotaShare quotaSharePolicy  `json:"quotaSharePolicy"`
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

func policyName(p resource.Policy) string { return p.Name }

func (d *door) createPolicy(ctx context.Context, in document.Object) (any, error) {
	p := resource.Policy{
		Name: in.NeededText("name"),
		Tags: in.TextMap("tags"),
	}
	if in.Has("fairsharePolicy") == in.Has("quotaSharePolicy") {
		in.Fail("A scheduling policy can have either fairsharePolicy or quotaSharePolicy. Give one of them")
	}
	if in.Has("fairsharePolicy") {
		in.Fail("fairsharePolicy: %s", fairShareUnsupported)
	}
	p.IdleAssignment = takeIdleAssignment(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.policyReply(p.Name), d.Governor.CreatePolicy(ctx, p)
}

func (d *door) updatePolicy(ctx context.Context, in document.Object) (any, error) {
	change := governor.PolicyChange{Name: d.arns.takeRef(in, resource.KindPolicy, "arn").Name}
	if in.Has("fairsharePolicy") {
		in.Fail("fairsharePolicy cannot be set: the kind of a policy does not change, and %s", fairShareUnsupported)
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
		details.Policies = append(details.Policies, policyDetail{
			policyReply: d.policyReply(p.Name),
			QuotaShare:  quotaSharePolicy{IdleAssignment: p.IdleAssignment},
			Tags:        tagsOf(p.Tags),
		})
	}
	return details, nil
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
