package batchapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/trainingjob"
)

// maxPayload is the most bytes of a serviceRequestPayload (A9).
const maxPayload = 10 << 10

// jobReply names the job that an operation was about.
type jobReply struct {
	ARN  string `json:"jobArn"`
	Name string `json:"jobName"`
	ID   string `json:"jobId"`
}

func (d *door) jobReply(j job.Job) jobReply {
	return jobReply{ARN: d.arns.of(resource.KindJob, j.ID), Name: j.Name, ID: j.ID}
}

func (d *door) submitJob(ctx context.Context, in document.Object) (any, error) {
	s := governor.Submission{
		Name:              in.NeededText("jobName"),
		Queue:             d.arns.takeName(in, resource.KindQueue, "jobQueue"),
		Share:             in.Text("quotaShareName"),
		ShareIdentifier:   in.Text("shareIdentifier"),
		Timeout:           takeTimeout(in.Object("timeoutConfig")),
		Strategy:          takeStrategy(in),
		PreemptionRetries: takePreemptionRetries(in.Object("preemptionConfiguration")),
		Tags:              in.TextMap("tags"),
		Token:             in.Text("clientToken"),
	}
	if in.Has("schedulingPriority") {
		s.Priority = in.Integer("schedulingPriority")
	}
	takeOneOf(in, "serviceJobType", sageMakerTraining)
	takePayload(in, &s)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if s.Token != "" {
		hash, err := hashOf(s)
		if err != nil {
			return nil, err
		}
		s.Hash = hash
	}
	j, err := d.Governor.Submit(ctx, s)
	return d.jobReply(j), err
}

// takePayload takes the training job's request, and from it what the governor
// must know.
func takePayload(in document.Object, s *governor.Submission) {
	const field = "serviceRequestPayload"
	s.Payload = in.NeededText(field)
	if len(s.Payload) > maxPayload {
		in.Fail("%s has %d bytes; it may have %d", field, len(s.Payload), maxPayload)
	}
	if in.Err() != nil {
		return
	}
	request, err := trainingjob.Parse(s.Payload)
	if err != nil {
		in.Fail("%s: %v", field, err)
		return
	}
	s.Demand, s.Workers, s.MaxRuntime = request.Demand(), request.Workers(), request.MaxRuntime()
	s.TrainingJobName = request.TrainingJobName
	if s.TrainingJobName == "" {
		s.TrainingJobName = s.Name
	}
}

func takeTimeout(in document.Object) time.Duration {
	if !in.Has("attemptDurationSeconds") {
		return 0
	}
	return time.Duration(in.Integer("attemptDurationSeconds")) * time.Second
}

func takePreemptionRetries(in document.Object) *int {
	if !in.Has("preemptionRetriesBeforeTermination") {
		return nil
	}
	n := int(in.Integer("preemptionRetriesBeforeTermination"))
	return &n
}

// takeStrategy takes retryStrategy: nil if it is absent. AWS takes actions in
// any case.
func takeStrategy(in document.Object) *job.Strategy {
	if !in.Has("retryStrategy") {
		return nil
	}
	in = in.Object("retryStrategy")
	s := &job.Strategy{Attempts: int(in.Integer("attempts"))}
	for _, rule := range in.Objects("evaluateOnExit") {
		s.Rules = append(s.Rules, job.Rule{
			Action:  job.Action(strings.ToUpper(rule.NeededText("action"))),
			Pattern: rule.NeededText("onStatusReason"),
		})
	}
	return s
}

// hashOf is a hash of everything a submission says, so that the same client
// token with other parameters can be told.
func hashOf(s governor.Submission) (string, error) {
	parameters, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("hash the submission: %w", err)
	}
	sum := sha256.Sum256(append(parameters, s.Payload...)) // the first part ends where its brace closes
	return hex.EncodeToString(sum[:]), nil
}
