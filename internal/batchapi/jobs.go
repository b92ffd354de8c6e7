package batchapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

const (
	maxReason     = 1024 // characters
	maxTerminated = 50   // jobs of one TerminateServiceJobs
)

type attemptReference struct {
	Resource serviceResource `json:"serviceResourceId"`
}

type serviceResource struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// attemptDetail is an attempt that has ended.
type attemptDetail struct {
	attemptReference
	StartedAt    int64  `json:"startedAt,omitempty"`
	StoppedAt    int64  `json:"stoppedAt,omitempty"`
	StatusReason string `json:"statusReason,omitempty"`
}

type retryStrategy struct {
	Attempts       int         `json:"attempts"`
	EvaluateOnExit []retryRule `json:"evaluateOnExit,omitempty"`
}

type retryRule struct {
	Action  job.Action `json:"action"`
	Pattern string     `json:"onStatusReason"`
}

type timeoutConfig struct {
	Seconds int64 `json:"attemptDurationSeconds"`
}

type preemptionConfiguration struct {
	Retries int `json:"preemptionRetriesBeforeTermination"`
}

type preemptionSummary struct {
	Count  int             `json:"preemptedAttemptCount"`
	Recent []attemptDetail `json:"recentPreemptedAttempts"`
}

// jobSummary is what lists and descriptions of jobs have in common.
type jobSummary struct {
	jobReply
	Type          string            `json:"serviceJobType"`
	Share         string            `json:"quotaShareName,omitempty"`
	Identifier    string            `json:"shareIdentifier,omitempty"`
	Status        job.Status        `json:"status"`
	StatusReason  string            `json:"statusReason,omitempty"`
	CreatedAt     int64             `json:"createdAt"`
	ScheduledAt   int64             `json:"scheduledAt,omitempty"`
	StartedAt     int64             `json:"startedAt,omitempty"`
	StoppedAt     int64             `json:"stoppedAt,omitempty"`
	CapacityUsage []usage           `json:"capacityUsage"`
	LatestAttempt *attemptReference `json:"latestAttempt,omitempty"`
}

type jobDetail struct {
	jobSummary
	QueueARN   string                   `json:"jobQueue"`
	Priority   int32                    `json:"schedulingPriority"`
	Terminated bool                     `json:"isTerminated"`
	Attempts   []attemptDetail          `json:"attempts"`
	Retry      retryStrategy            `json:"retryStrategy"`
	Timeout    *timeoutConfig           `json:"timeoutConfig,omitempty"`
	Preemption *preemptionConfiguration `json:"preemptionConfiguration,omitempty"`
	Preempted  *preemptionSummary       `json:"preemptionSummary,omitempty"`
	Payload    string                   `json:"serviceRequestPayload"`
	Tags       map[string]string        `json:"tags"`
}

func (d *door) describeJob(ctx context.Context, in document.Object) (any, error) {
	id := d.arns.takeName(in, resource.KindJob, "jobId")
	if err := in.Err(); err != nil {
		return nil, err
	}
	j, err := d.Governor.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	payload, err := d.Governor.Payload(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.jobDetail(j, payload), nil
}

func (d *door) jobDetail(j job.Job, payload string) jobDetail {
	detail := jobDetail{
		jobSummary: d.jobSummary(j),
		QueueARN:   d.arns.of(resource.KindQueue, j.Queue),
		Priority:   j.Priority,
		Terminated: j.Terminated,
		Attempts:   attemptsOf(j.Attempts),
		Retry:      retryStrategyOf(j.Strategy),
		Payload:    payload,
		Tags:       tagsOf(j.Tags),
	}
	if j.Timeout > 0 {
		detail.Timeout = &timeoutConfig{Seconds: int64(j.Timeout / time.Second)}
	}
	if j.PreemptionRetries != nil {
		detail.Preemption = &preemptionConfiguration{Retries: *j.PreemptionRetries}
	}
	if j.PreemptionCount > 0 {
		detail.Preempted = &preemptionSummary{Count: j.PreemptionCount, Recent: attemptsOf(j.Preemptions)}
	}
	return detail
}

func (d *door) jobSummary(j job.Job) jobSummary {
	return jobSummary{
		jobReply:      d.jobReply(j),
		Type:          sageMakerTraining,
		Share:         j.Share,
		Identifier:    j.ShareIdentifier,
		Status:        j.Status,
		StatusReason:  j.Reason,
		CreatedAt:     millis(j.CreatedAt),
		ScheduledAt:   millis(j.ScheduledAt),
		StartedAt:     millis(j.StartedAt),
		StoppedAt:     millis(j.StoppedAt),
		CapacityUsage: usagesOf(j.Demand),
		LatestAttempt: latestAttempt(j),
	}
}

// latestAttempt is the attempt that was dispatched last, however it ended; nil
// when there was none.
func latestAttempt(j job.Job) *attemptReference {
	var latest job.Attempt
	if n := len(j.Attempts); n > 0 {
		latest = j.Attempts[n-1]
	}
	if len(j.Preemptions) > 0 && j.Preemptions[0].Run > latest.Run {
		latest = j.Preemptions[0]
	}
	if j.Current != nil {
		latest = *j.Current
	}
	if latest.Run == 0 {
		return nil
	}
	return &attemptReference{serviceResource{Name: trainingJobARN, Value: latest.TrainingJobARN}}
}

func attemptsOf(attempts []job.Attempt) []attemptDetail {
	wire := make([]attemptDetail, len(attempts))
	for i, a := range attempts {
		wire[i] = attemptDetail{
			attemptReference: attemptReference{serviceResource{Name: trainingJobARN, Value: a.TrainingJobARN}},
			StartedAt:        millis(a.StartedAt),
			StoppedAt:        millis(a.StoppedAt),
			StatusReason:     a.Reason,
		}
	}
	return wire
}

// retryStrategyOf is the strategy a job was submitted with, or else AWS's: one
// attempt.
func retryStrategyOf(s *job.Strategy) retryStrategy {
	if s == nil {
		return retryStrategy{Attempts: 1}
	}
	wire := retryStrategy{Attempts: s.Attempts}
	for _, r := range s.Rules {
		wire.EvaluateOnExit = append(wire.EvaluateOnExit, retryRule{Action: r.Action, Pattern: r.Pattern})
	}
	return wire
}

func (d *door) updateJob(ctx context.Context, in document.Object) (any, error) {
	id := d.arns.takeName(in, resource.KindJob, "jobId")
	priority := in.Integer("schedulingPriority")
	if err := in.Err(); err != nil {
		return nil, err
	}
	j, err := d.Governor.SetPriority(ctx, id, priority)
	return d.jobReply(j), err
}

func (d *door) terminateJob(ctx context.Context, in document.Object) (any, error) {
	id := d.arns.takeName(in, resource.KindJob, "jobId")
	reason := takeReason(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.Terminate(ctx, id, reason)
}

func takeReason(in document.Object) string {
	reason := in.NeededText("reason")
	if n := utf8.RuneCountInString(reason); n > maxReason {
		in.Fail("reason has %d characters; use at most %d", n, maxReason)
	}
	return reason
}

// terminations says of each job of a TerminateServiceJobs, as the request names
// it, whether it is or will be terminated.
type terminations struct {
	Successful []string             `json:"successful"`
	Errors     []terminationFailure `json:"errors"`
}

type terminationFailure struct {
	Job     string `json:"job"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (d *door) terminateJobs(ctx context.Context, in document.Object) (any, error) {
	jobs := in.Texts("jobs")
	if len(jobs) == 0 || len(jobs) > maxTerminated {
		in.Fail("jobs has %d entries; give 1 to %d job ids or ARNs", len(jobs), maxTerminated)
	}
	reason := takeReason(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	reply := terminations{Successful: []string{}, Errors: []terminationFailure{}}
	for i, err := range d.terminateAll(ctx, jobs, reason) {
		if err == nil {
			reply.Successful = append(reply.Successful, jobs[i])
			continue
		}
		f := failureOf(err)
		if f.status == http.StatusInternalServerError {
			d.Log.ErrorContext(ctx, "a job was not terminated", "job", jobs[i], "error", err)
		}
		reply.Errors = append(reply.Errors, terminationFailure{Job: jobs[i], Code: f.Code, Message: f.Message})
	}
	return reply, nil
}

// terminateAll terminates jobs at once, so that they share a commit.
func (d *door) terminateAll(ctx context.Context, jobs []string, reason string) []error {
	errs := make([]error, len(jobs))
	var wait sync.WaitGroup
	for i, idOrARN := range jobs {
		wait.Go(func() { errs[i] = d.terminateOne(ctx, fmt.Sprintf("jobs[%d]", i), idOrARN, reason) })
	}
	wait.Wait()
	return errs
}

// terminateOne terminates a job. One that does not exist is as good as
// terminated (A6).
func (d *door) terminateOne(ctx context.Context, field, idOrARN, reason string) error {
	id, err := d.arns.name(resource.KindJob, field, idOrARN)
	if err != nil {
		return &failure{http.StatusBadRequest, "ValidationException", err.Error()}
	}
	err = d.Governor.Terminate(ctx, id, reason)
	if refusal := (*governor.Refusal)(nil); errors.As(err, &refusal) && refusal.Problem == governor.Missing {
		return nil
	}
	return err
}
