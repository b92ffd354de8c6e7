package bursarapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// allStatuses are the values of the parameter status.
var allStatuses = []job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running, job.Succeeded, job.Failed}

// jobs lists jobs of one queue or all, newest first.
func (d *door) jobs(ctx context.Context, p parameters) (jobList, error) {
	query, err := jobQueryOf(p)
	if err != nil {
		return jobList{}, err
	}
	queues, err := d.queueNames(ctx, p.Get("queue"))
	if err != nil {
		return jobList{}, err
	}
	found, err := d.jobsOf(ctx, queues, query)
	if err != nil {
		return jobList{}, err
	}
	return d.explained(ctx, found)
}

func jobQueryOf(p parameters) (store.JobQuery, error) {
	limit, err := p.count("limit", DefaultList, MaxList)
	if err != nil {
		return store.JobQuery{}, err
	}
	query := store.JobQuery{Limit: limit, Identifier: p.Get("shareIdentifier")}
	for _, text := range p.Values["status"] {
		status := job.Status(strings.ToUpper(text))
		if !slices.Contains(allStatuses, status) {
			return query, invalid("status is %q; it must be one of %v", text, allStatuses)
		}
		query.Statuses = append(query.Statuses, status)
	}
	if p.Has("share") {
		share := p.Get("share")
		query.Share = &share
	}
	return query, nil
}

// jobsOf asks the same of several queues, and returns the newest of all.
func (d *door) jobsOf(ctx context.Context, queues []string, query store.JobQuery) ([]job.Job, error) {
	var found []job.Job
	for _, q := range queues {
		query.Queue = q
		jobs, err := d.Governor.Jobs(ctx, query)
		if err != nil {
			return nil, err
		}
		found = append(found, jobs...)
	}
	slices.SortFunc(found, func(a, b job.Job) int {
		if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 {
			return order
		}
		return int(b.Seq - a.Seq)
	})
	return found[:min(len(found), query.Limit)], nil
}

// explained adds to each unfinished job why it is where it is, without what
// was decided on it before.
func (d *door) explained(ctx context.Context, jobs []job.Job) (jobList, error) {
	explained := make([]Job, 0, len(jobs))
	for _, j := range jobs {
		if j.Status.Finished() {
			explained = append(explained, Job{Job: j})
			continue
		}
		why, err := d.Governor.Why(ctx, j.ID)
		if err != nil {
			return jobList{}, err
		}
		why.Decisions = nil
		explained = append(explained, why)
	}
	return listOf(explained), nil
}

func listOf(jobs []governor.Why) jobList {
	if jobs == nil {
		jobs = []Job{}
	}
	return jobList{Jobs: jobs}
}

const (
	// shortestPrefix of an id is taken for one; anything shorter is a name.
	shortestPrefix = 4
	// searched is how many of a queue's newest jobs a prefix may mean.
	searched = MaxList
)

// resolve returns the id of the job that people call ref: its id, its ARN, its
// name (the newest job of that name), or the beginning of its id.
func (d *door) resolve(ctx context.Context, ref string) (string, error) {
	if ref == "" {
		return "", invalid("job is missing; name a job by its id, ARN or name")
	}
	if _, id, isARN := strings.Cut(ref, ":"+string(resource.KindJob)+"/"); isARN {
		ref = id
	}
	j, err := d.Governor.Job(ctx, ref)
	if err == nil {
		return j.ID, nil
	}
	if statusOf(err) != http.StatusNotFound {
		return "", err
	}
	queues, err := d.queueNames(ctx, "")
	if err != nil {
		return "", err
	}
	id, err := d.byName(ctx, queues, ref)
	if errors.Is(err, store.ErrNotFound) {
		return d.byPrefix(ctx, queues, ref)
	}
	return id, err
}

func (d *door) byName(ctx context.Context, queues []string, name string) (string, error) {
	named, err := d.jobsOf(ctx, queues, store.JobQuery{NamePrefix: name, NameExact: true, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(named) == 0 {
		return "", store.ErrNotFound
	}
	return named[0].ID, nil
}

func (d *door) byPrefix(ctx context.Context, queues []string, prefix string) (string, error) {
	unknown := &StatusError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no job with id, ARN or name %q", prefix)}
	if len(prefix) < shortestPrefix {
		return "", unknown
	}
	newest, err := d.jobsOf(ctx, queues, store.JobQuery{Limit: searched})
	if err != nil {
		return "", err
	}
	var id string
	for _, j := range newest {
		if !strings.HasPrefix(j.ID, prefix) {
			continue
		}
		if id != "" {
			return "", invalid("%q is the beginning of the ids of several jobs, such as %s and %s; give more of it", prefix, id, j.ID)
		}
		id = j.ID
	}
	if id == "" {
		return "", unknown
	}
	return id, nil
}
