package batchapi

import (
	"context"
	"strings"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
)

// environmentReply names the environment that an operation was about.
type environmentReply struct {
	Name string `json:"serviceEnvironmentName"`
	ARN  string `json:"serviceEnvironmentArn"`
}

type environmentDetail struct {
	environmentReply
	Type   string            `json:"serviceEnvironmentType"`
	State  resource.State    `json:"state"`
	Status resource.Status   `json:"status"`
	Limits []limit           `json:"capacityLimits"`
	Tags   map[string]string `json:"tags"`
}

type environmentList struct {
	Environments []environmentDetail `json:"serviceEnvironments"`
	NextToken    string              `json:"nextToken,omitempty"`
}

func (d *door) environmentReply(name string) environmentReply {
	return environmentReply{Name: name, ARN: d.arns.of(resource.KindEnvironment, name)}
}

func (d *door) createEnvironment(ctx context.Context, in document.Object) (any, error) {
	e := resource.Environment{
		Name:   in.NeededText("serviceEnvironmentName"),
		State:  takeState(in),
		Limits: takeLimits(in),
		Tags:   in.TextMap("tags"),
	}
	takeOneOf(in, "serviceEnvironmentType", sageMakerTraining)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.environmentReply(e.Name), d.Governor.CreateEnvironment(ctx, e)
}

func (d *door) updateEnvironment(ctx context.Context, in document.Object) (any, error) {
	change := governor.EnvironmentChange{
		Name:   d.arns.takeName(in, resource.KindEnvironment, "serviceEnvironment"),
		State:  takeStateChange(in),
		Limits: takeLimits(in),
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.environmentReply(change.Name), d.Governor.UpdateEnvironment(ctx, change)
}

func (d *door) deleteEnvironment(ctx context.Context, in document.Object) (any, error) {
	name := d.arns.takeName(in, resource.KindEnvironment, "serviceEnvironment")
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.DeleteEnvironment(ctx, name)
}

func (d *door) describeEnvironments(ctx context.Context, in document.Object) (any, error) {
	names := d.arns.takeNames(in, resource.KindEnvironment, "serviceEnvironments")
	p := takePage(in, "DescribeServiceEnvironments", strings.Join(names, "\x00"))
	if err := in.Err(); err != nil {
		return nil, err
	}
	all, err := d.Governor.Environments(ctx)
	if err != nil {
		return nil, err
	}
	name := func(e resource.Environment) string { return e.Name }
	part, next := pageOf(p, only(all, names, name), name)
	list := environmentList{Environments: make([]environmentDetail, len(part)), NextToken: next}
	for i, e := range part {
		list.Environments[i] = environmentDetail{
			environmentReply: d.environmentReply(e.Name),
			Type:             sageMakerTraining,
			State:            e.State,
			Status:           e.Status,
			Limits:           limitsOf(e.Limits),
			Tags:             tagsOf(e.Tags),
		}
	}
	return list, nil
}
