// Package trainingjob reads CreateTrainingJob requests: the payload of a job,
// as SageMaker's clients write it (A6 of the facts).
//
// It knows the request's shape and what a job asks for: how many workers on
// which instance types, for how long, and what they run. It does no I/O and
// decides nothing: whether a job fits is for quotas to say, how it runs for a
// runner.
package trainingjob

import (
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/job"
)

// DefaultMaxRuntime is how long a training job may run when its request names
// no StoppingCondition, as in SageMaker.
const DefaultMaxRuntime = 86_400 * time.Second

// MaxInstances is the most instances that one job may ask for.
const MaxInstances = 10_000_000

// DefaultCheckpointPath is where a worker finds its checkpoints when the
// request names no CheckpointConfig.LocalPath.
const DefaultCheckpointPath = "/opt/ml/checkpoints"

// HomogeneousGroup is the name that SageMaker gives to the one group of
// instances of a job that declares no InstanceGroups.
const HomogeneousGroup = "homogeneousCluster"

// Request is a CreateTrainingJob request. Fields that Bursar does not act on
// are not kept.
type Request struct {
	TrainingJobName   string // may be empty
	Algorithm         Algorithm
	HyperParameters   map[string]string
	Environment       map[string]string
	Channels          []Channel
	OutputPath        string // OutputDataConfig.S3OutputPath
	Checkpoints       Checkpoints
	Groups            []Group // at least one; the single one of a plain request is named HomogeneousGroup
	VolumeSizeInGB    int64
	StoppingCondition StoppingCondition
}

// Algorithm is the AlgorithmSpecification: what a worker runs.
type Algorithm struct {
	TrainingImage string
	AlgorithmName string
	InputMode     string // TrainingInputMode
	Entrypoint    []string
	Arguments     []string
}

// Command is the argument vector of a worker: the entrypoint and its
// arguments. It is empty when the request leaves both to the image.
func (a Algorithm) Command() []string { return slices.Concat(a.Entrypoint, a.Arguments) }

// Channel is one member of InputDataConfig.
type Channel struct {
	Name              string
	ContentType       string
	InputMode         string
	RecordWrapperType string
	Distribution      string // S3DataDistributionType
	URI               string // S3Uri of the S3DataSource, or DirectoryPath of the FileSystemDataSource
}

// Checkpoints is the CheckpointConfig. LocalPath is DefaultCheckpointPath
// where the request has none.
type Checkpoints struct {
	S3URI     string
	LocalPath string
}

// Group is a number of like instances.
type Group struct {
	Name          string
	InstanceType  string
	InstanceCount int
}

// StoppingCondition limits an attempt. A zero MaxRuntime is one the request
// does not name.
type StoppingCondition struct {
	MaxRuntime time.Duration
}

// Instance is what one worker runs on.
type Instance struct {
	Type  string
	Group string
}

// Demand is what the job needs as a whole: instances by type, sorted by it,
// summed over the groups (A2 of the facts).
func (r *Request) Demand() []job.Amount {
	var demand []job.Amount
	for _, g := range r.Groups {
		i, found := slices.BinarySearchFunc(demand, g.InstanceType, func(a job.Amount, unit string) int {
			return strings.Compare(a.Unit, unit)
		})
		if !found {
			demand = slices.Insert(demand, i, job.Amount{Unit: g.InstanceType})
		}
		demand[i].Quantity += int64(g.InstanceCount)
	}
	return demand
}

// Workers is how many workers the job has: one for each instance.
func (r *Request) Workers() int {
	n := 0
	for _, g := range r.Groups {
		n += g.InstanceCount
	}
	return n
}

// Instances says what each worker runs on, in the order of the workers: the
// groups as the request lists them.
func (r *Request) Instances() []Instance {
	instances := make([]Instance, 0, r.Workers())
	for _, g := range r.Groups {
		for range g.InstanceCount {
			instances = append(instances, Instance{Type: g.InstanceType, Group: g.Name})
		}
	}
	return instances
}

// MaxRuntime is how long an attempt may run: StoppingCondition's
// MaxRuntimeInSeconds, or DefaultMaxRuntime.
func (r *Request) MaxRuntime() time.Duration {
	if r.StoppingCondition.MaxRuntime == 0 {
		return DefaultMaxRuntime
	}
	return r.StoppingCondition.MaxRuntime
}
