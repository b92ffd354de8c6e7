package batchapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// The filters of ListServiceJobs (A6).
const (
	filterJobName         = "JOB_NAME"
	filterBefore          = "BEFORE_CREATED_AT"
	filterAfter           = "AFTER_CREATED_AT"
	filterShare           = "QUOTA_SHARE_NAME"
	filterShareIdentifier = "SHARE_IDENTIFIER"
)

// AWS's states that no job of this server is ever in: one that is accepted is
// RUNNABLE at once.
const (
	submitted job.Status = "SUBMITTED"
	pending   job.Status = "PENDING"
)

// listedJob is an entry of ListServiceJobs. Terminated is there only if true.
type listedJob struct {
	jobSummary
	Terminated bool `json:"isTerminated,omitempty"`
}

type jobList struct {
	Jobs      []listedJob `json:"jobSummaryList"`
	NextToken string      `json:"nextToken,omitempty"`
}

func (d *door) listJobs(ctx context.Context, in document.Object) (any, error) {
	q := store.JobQuery{Queue: d.arns.takeName(in, resource.KindQueue, "jobQueue")}
	statuses := takeStatuses(in)
	filter, value := takeFilter(in)
	applyFilter(in, &q, statuses, filter, value)
	p := takePage(in, "ListServiceJobs", q.Queue, fmt.Sprint(q.Statuses), filter, value)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if err := p.continueAfter(&q); err != nil {
		return nil, err
	}
	q.Limit = p.size + 1 // one more, to know whether there is one
	jobs, err := d.Governor.Jobs(ctx, q)
	if err != nil {
		return nil, err
	}
	list := jobList{Jobs: []listedJob{}}
	if len(jobs) > p.size {
		jobs = jobs[:p.size]
		list.NextToken = p.token(cursorOf(jobs[p.size-1]))
	}
	for _, j := range jobs {
		list.Jobs = append(list.Jobs, listedJob{jobSummary: d.jobSummary(j), Terminated: j.Terminated})
	}
	return list, nil
}

// takeStatuses takes jobStatus: nil if it is absent.
func takeStatuses(in document.Object) []job.Status {
	if !in.Has("jobStatus") {
		return nil
	}
	known := []string{string(submitted), string(pending), string(job.Runnable), string(job.Scheduled),
		string(job.Starting), string(job.Running), string(job.Succeeded), string(job.Failed)}
	return []job.Status{job.Status(takeOneOf(in, "jobStatus", known...))}
}

// takeFilter takes the one filter with its one value; both are empty if there
// is none.
func takeFilter(in document.Object) (name, value string) {
	filters := in.Objects("filters")
	if len(filters) == 0 {
		return "", ""
	}
	if len(filters) > 1 {
		in.Fail("filters has %d entries; give one", len(filters))
		return "", ""
	}
	values := filters[0].Texts("values")
	if len(values) != 1 || values[0] == "" {
		in.Fail("%s has %d entries; give one that is not empty", filters[0].At("values"), len(values))
		return "", ""
	}
	return takeOneOf(filters[0], "name", filterJobName, filterBefore, filterAfter, filterShare, filterShareIdentifier), values[0]
}

// applyFilter makes a query of filter and status: the status counts with the
// filters by share and without a filter, where it is RUNNING unless given.
func applyFilter(in document.Object, q *store.JobQuery, statuses []job.Status, filter, value string) {
	switch filter {
	case "":
		q.Statuses = statuses
		if statuses == nil {
			q.Statuses = []job.Status{job.Running}
		}
	case filterJobName:
		prefix, isPrefix := strings.CutSuffix(value, "*")
		q.NamePrefix, q.NameExact = prefix, !isPrefix
	case filterBefore:
		q.CreatedBefore = takeTime(in, value)
	case filterAfter:
		q.CreatedAfter = takeTime(in, value)
	case filterShare:
		q.Share, q.Statuses = &value, statuses
	case filterShareIdentifier:
		q.Identifier, q.Statuses = value, statuses
	}
}

// maxMillis is the last millisecond of the year 9999.
const maxMillis = 253402300799999

func takeTime(in document.Object, value string) time.Time {
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms < 0 || ms > maxMillis {
		in.Fail("filters[0].values[0] is %s; it must be a time in milliseconds since 1970, such as 1774000000000", document.Quote(value))
	}
	return time.UnixMilli(ms)
}

// cursorOf is the place of a job in a list, for a token.
func cursorOf(j job.Job) string { return fmt.Sprintf("%d %d", j.CreatedAt.UnixMilli(), j.Seq) }

// continueAfter makes a query go on after the job of the page's cursor.
func (p page) continueAfter(q *store.JobQuery) error {
	if p.cursor == "" {
		return nil
	}
	var ms int64
	if _, err := fmt.Sscanf(p.cursor, "%d %d", &ms, &q.BeforeSeq); err != nil {
		return fmt.Errorf("read the cursor %q that was made here: %w", p.cursor, err)
	}
	q.BeforeTime = time.UnixMilli(ms)
	return nil
}
