package batchapi

import (
	"context"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

// Texts and values of job queues that AWS has (A4).
const (
	queueHealthy       = "JobQueue Healthy"
	onlyOneEnvironment = "Job queue can only have 1 service environment."
	needsEnvironment   = "Job queues of type SAGEMAKER_TRAINING must have serviceEnvironmentOrder."
	actionTerminate    = "TERMINATE"
	defaultQueueType   = "ECS" // of a request that names none
)

// queueReply names the queue that an operation was about.
type queueReply struct {
	Name string `json:"jobQueueName"`
	ARN  string `json:"jobQueueArn"`
}

type environmentOrder struct {
	Order       int64  `json:"order"`
	Environment string `json:"serviceEnvironment"`
}

type timeLimitAction struct {
	Reason  string `json:"reason"`
	State   string `json:"state"`
	Seconds int64  `json:"maxTimeSeconds"`
	Action  string `json:"action"`
}

type queueDetail struct {
	queueReply
	State               resource.State     `json:"state"`
	PolicyARN           string             `json:"schedulingPolicyArn,omitempty"`
	Status              resource.Status    `json:"status"`
	StatusReason        string             `json:"statusReason,omitempty"`
	Priority            int64              `json:"priority"`
	ComputeEnvironments []empty            `json:"computeEnvironmentOrder"` // there are none, and the list is required
	ServiceEnvironments []environmentOrder `json:"serviceEnvironmentOrder"`
	Type                string             `json:"jobQueueType"`
	Tags                map[string]string  `json:"tags"`
	TimeLimitActions    []timeLimitAction  `json:"jobStateTimeLimitActions,omitempty"`
}

type queueList struct {
	Queues    []queueDetail `json:"jobQueues"`
	NextToken string        `json:"nextToken,omitempty"`
}

func (d *door) queueReply(name string) queueReply {
	return queueReply{Name: name, ARN: d.arns.of(resource.KindQueue, name)}
}

func (d *door) createQueue(ctx context.Context, in document.Object) (any, error) {
	q := resource.Queue{
		Name:             in.NeededText("jobQueueName"),
		Priority:         int64(in.Integer("priority")),
		State:            takeState(in),
		TimeLimitActions: takeTimeLimitActions(in),
		Tags:             in.TextMap("tags"),
	}
	takeQueueType(in)
	if order, ok := d.takeEnvironmentOrder(in); ok {
		q.Environment, q.EnvironmentOrder = order.Environment, order.Order
	}
	if in.Text("schedulingPolicyArn") != "" {
		q.Policy = d.arns.takeRef(in, resource.KindPolicy, "schedulingPolicyArn").Name
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.queueReply(q.Name), d.Governor.CreateQueue(ctx, q)
}

func (d *door) updateQueue(ctx context.Context, in document.Object) (any, error) {
	change := governor.QueueChange{
		Name:  d.arns.takeName(in, resource.KindQueue, "jobQueue"),
		State: takeStateChange(in),
	}
	if in.Has("priority") {
		priority := int64(in.Integer("priority"))
		change.Priority = &priority
	}
	if in.Has("schedulingPolicyArn") {
		policy := d.arns.takeRef(in, resource.KindPolicy, "schedulingPolicyArn").Name
		change.Policy = &policy
	}
	if order, ok := d.takeEnvironmentOrder(in); ok {
		change.Environment, change.EnvironmentOrder = &order.Environment, &order.Order
	}
	if actions := takeTimeLimitActions(in); actions != nil {
		change.TimeLimitActions = &actions
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.queueReply(change.Name), d.Governor.UpdateQueue(ctx, change)
}

func (d *door) deleteQueue(ctx context.Context, in document.Object) (any, error) {
	name := d.arns.takeName(in, resource.KindQueue, "jobQueue")
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.DeleteQueue(ctx, name)
}

// takeQueueType refuses the types for containers, in AWS's words.
func takeQueueType(in document.Object) {
	got := defaultQueueType
	if in.Has("jobQueueType") {
		got = in.Text("jobQueueType")
	}
	if got != sageMakerTraining {
		in.Fail("The jobQueueType provided is %s, which is incompatible with the provided serviceEnvironmentOrder. This server has queues of type %s only; send it as jobQueueType", got, sageMakerTraining)
	}
}

// takeEnvironmentOrder takes the one service environment of a queue; ok is
// false if the request names none. computeEnvironmentOrder may be there, empty.
func (d *door) takeEnvironmentOrder(in document.Object) (order environmentOrder, ok bool) {
	if n := len(in.Objects("computeEnvironmentOrder")); n > 0 {
		in.Fail("computeEnvironmentOrder has %d entries, but compute environments are not supported by this server; send an empty list, or leave it out", n)
	}
	members := in.Objects("serviceEnvironmentOrder")
	if members == nil {
		return environmentOrder{}, false
	}
	switch len(members) {
	case 0:
		in.Fail("%s serviceEnvironmentOrder is empty; name one service environment in it", needsEnvironment)
		return environmentOrder{}, false
	case 1:
		return environmentOrder{
			Order:       int64(members[0].Integer("order")),
			Environment: d.arns.takeName(members[0], resource.KindEnvironment, "serviceEnvironment"),
		}, true
	}
	in.Fail("%s serviceEnvironmentOrder has %d entries", onlyOneEnvironment, len(members))
	return environmentOrder{}, false
}

// takeTimeLimitActions takes jobStateTimeLimitActions: nil if they are absent.
func takeTimeLimitActions(in document.Object) []resource.TimeLimitAction {
	members := in.Objects("jobStateTimeLimitActions")
	if members == nil {
		return nil
	}
	actions := make([]resource.TimeLimitAction, len(members))
	for i, member := range members {
		actions[i] = resource.TimeLimitAction{
			Reason: member.NeededText("reason"),
			After:  time.Duration(member.Integer("maxTimeSeconds")) * time.Second,
		}
		takeOneOf(member, "state", string(job.Runnable))
		if action := member.NeededText("action"); action != actionTerminate {
			member.Fail("Invalid job action. Valid job actions: [%s]. %s is %s", actionTerminate, member.At("action"), document.Quote(action))
		}
	}
	return actions
}

func (d *door) describeQueues(ctx context.Context, in document.Object) (any, error) {
	names := d.arns.takeNames(in, resource.KindQueue, "jobQueues")
	p := takePage(in, "DescribeJobQueues", strings.Join(names, "\x00"))
	if err := in.Err(); err != nil {
		return nil, err
	}
	all, err := d.Governor.Queues(ctx)
	if err != nil {
		return nil, err
	}
	name := func(q resource.Queue) string { return q.Name }
	part, next := pageOf(p, only(all, names, name), name)
	list := queueList{Queues: make([]queueDetail, len(part)), NextToken: next}
	for i, q := range part {
		list.Queues[i] = d.queueDetail(q)
	}
	return list, nil
}

func (d *door) queueDetail(q resource.Queue) queueDetail {
	detail := queueDetail{
		queueReply:          d.queueReply(q.Name),
		State:               q.State,
		PolicyARN:           d.arns.ofPolicy(q.Policy),
		Status:              q.Status,
		Priority:            q.Priority,
		ComputeEnvironments: []empty{},
		ServiceEnvironments: []environmentOrder{{Order: q.EnvironmentOrder, Environment: d.arns.of(resource.KindEnvironment, q.Environment)}},
		Type:                sageMakerTraining,
		Tags:                tagsOf(q.Tags),
	}
	if q.Status == resource.Valid {
		detail.StatusReason = queueHealthy
	}
	for _, a := range q.TimeLimitActions {
		detail.TimeLimitActions = append(detail.TimeLimitActions, timeLimitAction{
			Reason: a.Reason, State: string(job.Runnable), Seconds: int64(a.After / time.Second), Action: actionTerminate,
		})
	}
	return detail
}
