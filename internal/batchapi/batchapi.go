// Package batchapi is the AWS Batch door: it answers the operations on service
// environments, scheduling policies, job queues, quota shares and service jobs
// in AWS's wire forms, so that AWS's own clients work unchanged (A1 to A9 and D
// of the facts).
//
// It authenticates, decodes, translates and encodes. It holds no state and no
// rule about what may exist, change or run: those are the governor's, and what
// a field's value may be is package resource's.
package batchapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Service is the name of the service that requests are signed for.
const Service = "batch"

// Governor is what the door passes requests on to. The lists it returns are
// sorted by name. A *governor.Refusal is the client's to see; every other
// error is not.
type Governor interface {
	CreateEnvironment(context.Context, resource.Environment) error
	UpdateEnvironment(context.Context, governor.EnvironmentChange) error
	DeleteEnvironment(ctx context.Context, name string) error
	Environments(context.Context) ([]resource.Environment, error)

	CreatePolicy(context.Context, resource.Policy) error
	UpdatePolicy(context.Context, governor.PolicyChange) error
	DeletePolicy(ctx context.Context, name string) error
	Policies(context.Context) ([]resource.Policy, error)

	CreateQueue(context.Context, resource.Queue) error
	UpdateQueue(context.Context, governor.QueueChange) error
	DeleteQueue(ctx context.Context, name string) error
	Queues(context.Context) ([]resource.Queue, error)

	CreateShare(context.Context, resource.Share) error
	UpdateShare(context.Context, governor.ShareChange) error
	DeleteShare(ctx context.Context, queue, name string) error
	Shares(ctx context.Context, queue string) ([]resource.Share, error)

	Submit(context.Context, governor.Submission) (job.Job, error)
	SetPriority(ctx context.Context, id string, priority int32) (job.Job, error)
	Terminate(ctx context.Context, id, reason string) error
	Job(ctx context.Context, id string) (job.Job, error)
	Jobs(context.Context, store.JobQuery) ([]job.Job, error)
	Payload(ctx context.Context, id string) (string, error)
	Snapshot(ctx context.Context, queue string) (governor.Snapshot, error)

	Tag(context.Context, resource.Ref, map[string]string) error
	Untag(ctx context.Context, ref resource.Ref, keys []string) error
	Tags(context.Context, resource.Ref) (map[string]string, error)
}

// Verifier says who signed a request. An *auth.Error is the client's to see.
type Verifier interface {
	Verify(r *http.Request, body []byte) (auth.Principal, error)
}

// Config is what a door needs. All fields are required.
type Config struct {
	Governor Governor
	Verifier Verifier // of requests signed for Service
	// Partition, Region and AccountID are those of every ARN: aws,
	// us-east-1, twelve digits.
	Partition string
	Region    string
	AccountID string
	NewID     func() string // an id for a request: a UUID
	Log       *slog.Logger
}

// New returns the door. It answers every path, since AWS's clients take any
// answer to be one of AWS's.
func New(c Config) http.Handler {
	d := &door{Config: c, arns: arns{partition: c.Partition, region: c.Region, account: c.AccountID}}
	d.operations = map[string]operation{
		"createserviceenvironment":    d.createEnvironment,
		"updateserviceenvironment":    d.updateEnvironment,
		"deleteserviceenvironment":    d.deleteEnvironment,
		"describeserviceenvironments": d.describeEnvironments,
		"createschedulingpolicy":      d.createPolicy,
		"updateschedulingpolicy":      d.updatePolicy,
		"deleteschedulingpolicy":      d.deletePolicy,
		"describeschedulingpolicies":  d.describePolicies,
		"listschedulingpolicies":      d.listPolicies,
		"createjobqueue":              d.createQueue,
		"updatejobqueue":              d.updateQueue,
		"deletejobqueue":              d.deleteQueue,
		"describejobqueues":           d.describeQueues,
		"getjobqueuesnapshot":         d.snapshot,
		"createquotashare":            d.createShare,
		"updatequotashare":            d.updateShare,
		"deletequotashare":            d.deleteShare,
		"describequotashare":          d.describeShare,
		"listquotashares":             d.listShares,
		"submitservicejob":            d.submitJob,
		"updateservicejob":            d.updateJob,
		"terminateservicejob":         d.terminateJob,
		"terminateservicejobs":        d.terminateJobs,
		"describeservicejob":          d.describeJob,
		"listservicejobs":             d.listJobs,
	}
	return d
}

// door answers requests.
type door struct {
	Config
	arns       arns
	operations map[string]operation // by the name in their path
}
