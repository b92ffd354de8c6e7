package batchapi

import (
	"context"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
)

// shareReply names the share that an operation was about.
type shareReply struct {
	Name string `json:"quotaShareName"`
	ARN  string `json:"quotaShareArn"`
}

type sharingConfiguration struct {
	Strategy    resource.Sharing `json:"strategy"`
	BorrowLimit *int64           `json:"borrowLimit,omitempty"` // of shares that borrow
}

type sharePreemption struct {
	InShare string `json:"inSharePreemption"`
}

// shareDetail is a share as lists have it: without tags.
type shareDetail struct {
	shareReply
	QueueARN   string               `json:"jobQueueArn"`
	Limits     []limit              `json:"capacityLimits"`
	Sharing    sharingConfiguration `json:"resourceSharingConfiguration"`
	Preemption sharePreemption      `json:"preemptionConfiguration"`
	State      resource.State       `json:"state"`
	Status     resource.Status      `json:"status"`
}

type describedShare struct {
	shareDetail
	Tags map[string]string `json:"tags"`
}

type shareList struct {
	Shares    []shareDetail `json:"quotaShares"`
	NextToken string        `json:"nextToken,omitempty"`
}

func (d *door) shareReply(queue, name string) shareReply {
	return shareReply{Name: name, ARN: d.arns.ofShare(queue, name)}
}

func shareName(s resource.Share) string { return s.Name }

func (d *door) createShare(ctx context.Context, in document.Object) (any, error) {
	s := resource.Share{
		Queue:  d.arns.takeName(in, resource.KindQueue, "jobQueue"),
		Name:   in.NeededText("quotaShareName"),
		Limits: takeLimits(in),
		State:  takeState(in),
		Tags:   in.TextMap("tags"),
		Weight: resource.DefaultWeight,
	}
	s.Sharing, s.BorrowLimit = takeSharing(in)
	s.InSharePreemption = takeInSharePreemption(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.shareReply(s.Queue, s.Name), d.Governor.CreateShare(ctx, s)
}

func (d *door) updateShare(ctx context.Context, in document.Object) (any, error) {
	ref := d.arns.takeRef(in, resource.KindShare, "quotaShareArn")
	change := governor.ShareChange{
		Queue:  ref.Queue,
		Name:   ref.Name,
		State:  takeStateChange(in),
		Limits: takeLimits(in),
	}
	if in.Has("resourceSharingConfiguration") {
		sharing, borrowLimit := takeSharing(in)
		change.Sharing, change.BorrowLimit = &sharing, &borrowLimit
	}
	if in.Has("preemptionConfiguration") {
		preemption := takeInSharePreemption(in)
		change.InSharePreemption = &preemption
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return d.shareReply(ref.Queue, ref.Name), d.Governor.UpdateShare(ctx, change)
}

func takeSharing(in document.Object) (resource.Sharing, int64) {
	configuration := in.Object("resourceSharingConfiguration")
	strategy := resource.Sharing(configuration.NeededText("strategy"))
	if !configuration.Has("borrowLimit") {
		return strategy, resource.Unlimited
	}
	return strategy, int64(configuration.Integer("borrowLimit"))
}

func takeInSharePreemption(in document.Object) bool {
	return takeOneOf(in.Object("preemptionConfiguration"), "inSharePreemption", enabled, disabled) == enabled
}

func (d *door) deleteShare(ctx context.Context, in document.Object) (any, error) {
	ref := d.arns.takeRef(in, resource.KindShare, "quotaShareArn")
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.DeleteShare(ctx, ref.Queue, ref.Name)
}

func (d *door) describeShare(ctx context.Context, in document.Object) (any, error) {
	ref := d.arns.takeRef(in, resource.KindShare, "quotaShareArn")
	if err := in.Err(); err != nil {
		return nil, err
	}
	shares, err := d.Governor.Shares(ctx, ref.Queue)
	if err != nil {
		return nil, err
	}
	for _, s := range shares {
		if s.Name == ref.Name {
			return describedShare{shareDetail: d.shareDetail(s), Tags: tagsOf(s.Tags)}, nil
		}
	}
	return nil, invalid("quotaShareArn: quota share %s does not exist in job queue %s; ListQuotaShares lists those that do",
		document.Quote(ref.Name), document.Quote(ref.Queue))
}

func (d *door) listShares(ctx context.Context, in document.Object) (any, error) {
	queue := d.arns.takeName(in, resource.KindQueue, "jobQueue")
	p := takePage(in, "ListQuotaShares", queue)
	if err := in.Err(); err != nil {
		return nil, err
	}
	all, err := d.Governor.Shares(ctx, queue)
	if err != nil {
		return nil, err
	}
	part, next := pageOf(p, all, shareName)
	list := shareList{Shares: make([]shareDetail, len(part)), NextToken: next}
	for i, s := range part {
		list.Shares[i] = d.shareDetail(s)
	}
	return list, nil
}

func (d *door) shareDetail(s resource.Share) shareDetail {
	detail := shareDetail{
		shareReply: d.shareReply(s.Queue, s.Name),
		QueueARN:   d.arns.of(resource.KindQueue, s.Queue),
		Limits:     limitsOf(s.Limits),
		Sharing:    sharingConfiguration{Strategy: s.Sharing},
		Preemption: sharePreemption{InShare: disabled},
		State:      s.State,
		Status:     s.Status,
	}
	if s.Sharing == resource.LendAndBorrow {
		detail.Sharing.BorrowLimit = &s.BorrowLimit
	}
	if s.InSharePreemption {
		detail.Preemption.InShare = enabled
	}
	return detail
}
