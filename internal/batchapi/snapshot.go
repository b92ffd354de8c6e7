package batchapi

import (
	"context"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

type frontJob struct {
	ARN   string `json:"jobArn"`
	Since int64  `json:"earliestTimeAtPosition"`
}

type frontOfQueue struct {
	Jobs      []frontJob `json:"jobs"`
	UpdatedAt int64      `json:"lastUpdatedAt"`
}

// frontOfShares has, by share, a list of at most one job.
type frontOfShares struct {
	Shares    map[string][]frontJob `json:"quotaShares"`
	UpdatedAt int64                 `json:"lastUpdatedAt"`
}

type shareUsage struct {
	Share string  `json:"quotaShareName"`
	Usage []usage `json:"capacityUsage"`
}

type shareUtilization struct {
	Top []shareUsage `json:"topCapacityUtilization"`
}

// identifierUsage is in NUM_INSTANCES, whatever their types.
type identifierUsage struct {
	Identifier string  `json:"shareIdentifier"`
	Usage      []usage `json:"capacityUsage"`
}

type fairShareUtilization struct {
	Active int               `json:"activeShareCount"`
	Top    []identifierUsage `json:"topCapacityUtilization"`
}

type utilization struct {
	Total     []usage               `json:"totalCapacityUsage"`
	Shares    *shareUtilization     `json:"quotaShareUtilization,omitempty"` // of queues with quota shares
	FairShare *fairShareUtilization `json:"fairshareUtilization,omitempty"`  // of fair-share queues
	UpdatedAt int64                 `json:"lastUpdatedAt"`
}

type queueSnapshot struct {
	Front       frontOfQueue   `json:"frontOfQueue"`
	ShareFronts *frontOfShares `json:"frontOfQuotaShares,omitempty"` // of queues with quota shares
	Utilization utilization    `json:"queueUtilization"`
}

func (d *door) snapshot(ctx context.Context, in document.Object) (any, error) {
	queue := d.arns.takeName(in, resource.KindQueue, "jobQueue")
	if err := in.Err(); err != nil {
		return nil, err
	}
	s, err := d.Governor.Snapshot(ctx, queue)
	if err != nil {
		return nil, err
	}
	at := millis(s.At)
	reply := queueSnapshot{
		Front:       frontOfQueue{Jobs: []frontJob{}, UpdatedAt: at},
		Utilization: utilization{Total: usagesOf(s.Total), UpdatedAt: at},
	}
	for _, front := range s.Front {
		reply.Front.Jobs = append(reply.Front.Jobs, d.frontJob(front))
	}
	switch {
	case s.FairShare != nil:
		reply.Utilization.Total = instancesOf(s.Total)
		reply.Utilization.FairShare = fairShareUtilizationOf(*s.FairShare)
	case s.Queue.Policy != "":
		reply.ShareFronts = &frontOfShares{Shares: d.shareFronts(s.ShareFronts), UpdatedAt: at}
		reply.Utilization.Shares = &shareUtilization{Top: shareUsages(s.Shares)}
	}
	return reply, nil
}

func (d *door) frontJob(f governor.Front) frontJob {
	return frontJob{ARN: d.arns.of(resource.KindJob, f.Job.ID), Since: millis(f.Since)}
}

func (d *door) shareFronts(fronts []governor.ShareFront) map[string][]frontJob {
	wire := make(map[string][]frontJob, len(fronts))
	for _, f := range fronts {
		wire[f.Share] = []frontJob{}
		if f.Front != nil {
			wire[f.Share] = append(wire[f.Share], d.frontJob(*f.Front))
		}
	}
	return wire
}

func shareUsages(shares []governor.Utilization) []shareUsage {
	wire := make([]shareUsage, len(shares))
	for i, s := range shares {
		wire[i] = shareUsage{Share: s.Share, Usage: usagesOf(s.Usage)}
	}
	return wire
}

func fairShareUtilizationOf(use governor.FairShareUse) *fairShareUtilization {
	wire := &fairShareUtilization{Active: use.Active, Top: make([]identifierUsage, len(use.Top))}
	for i, u := range use.Top {
		wire.Top[i] = identifierUsage{Identifier: u.Share, Usage: instancesOf(u.Usage)}
	}
	return wire
}

// instancesOf is a number of instances, as fair-share queues count them (A3);
// nothing, if there are none.
func instancesOf(amounts []job.Amount) []usage {
	total := double(0)
	for _, a := range amounts {
		total += double(a.Quantity)
	}
	if total == 0 {
		return []usage{}
	}
	return []usage{{Unit: resource.NumInstances, Quantity: total}}
}
