package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"
	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/bursarapi"
)

// submission is what the flags of submit say.
type submission struct {
	name, queue, share string
	shareIdentifier    string
	instances          []string
	priority           int32
	environment        pairs
	hyperparameters    pairs
	channels           pairs
	tags               pairs
	timeout            time.Duration
	retries            int32
	preemptionRetries  int32
	here               bool
	command            []string
}

// pairs is a flag that may be repeated, each time as NAME=VALUE.
type pairs map[string]string

// Set implements pflag.Value.
func (p pairs) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("it must be NAME=VALUE")
	}
	p[name] = value
	return nil
}

// Type implements pflag.Value: it is what --help calls the value.
func (pairs) Type() string { return "NAME=VALUE" }

// String implements pflag.Value: there is no default to tell.
func (pairs) String() string { return "" }

func (c *commands) submit() *cobra.Command {
	s := submission{environment: pairs{}, hyperparameters: pairs{}, channels: pairs{}, tags: pairs{}}
	command := &cobra.Command{
		Use:   "submit [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Submit a training job",
		Long: `Submit a training job: PROGRAM runs once on each instance, in the directory that
submit was called in.`,
		Example: "  bursar submit --share QS1 --instances ml.g5.xlarge:1 -- python train.py",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no program given; name it after --, as in: bursar submit --share QS1 --instances ml.g5.xlarge:1 -- python train.py")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			s.command = args
			return c.submitJob(command.Context(), s, command.Flags().Changed)
		},
	}
	flags := command.Flags()
	flags.SetInterspersed(false) // what follows PROGRAM is its own
	flags.StringVar(&s.name, "name", "", "name of the job (default: the program's)")
	flags.StringVar(&s.queue, "queue", "", "job queue (default: the one that fits)")
	flags.StringVar(&s.share, "share", "", "quota share, of a job queue that has some")
	flags.StringVar(&s.shareIdentifier, "share-identifier", "", "whose the job is, in a fair-share job queue")
	flags.StringSliceVar(&s.instances, "instances", nil, "`TYPE:COUNT` of the instances wanted; more than one type makes instance groups (required)")
	flags.Int32Var(&s.priority, "priority", 0, "scheduling priority, 0 to 9999, higher first")
	flags.Var(s.environment, "env", "an environment variable; may be repeated")
	flags.Var(s.hyperparameters, "hyperparameter", "a hyperparameter; may be repeated")
	flags.Var(s.channels, "channel", "an input channel and its URI, such as train=file:///data/train; may be repeated")
	flags.Var(s.tags, "tag", "a tag; may be repeated")
	flags.DurationVar(&s.timeout, "timeout", 0, "longest that one attempt may run, such as 2h")
	flags.Int32Var(&s.retries, "retries", 0, "how often a failed job is tried again")
	flags.Int32Var(&s.preemptionRetries, "preemption-retries", 0, "how often a preempted job comes back (default: always)")
	flags.BoolVar(&s.here, "here", true, "run the program in the present directory; otherwise in the job's own")
	c.addOutputFlag(command)
	return command
}

func (c *commands) submitJob(ctx context.Context, s submission, given func(flag string) bool) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	if s.queue == "" {
		if s.queue, err = c.findQueue(ctx, server, s); err != nil {
			return err
		}
	}
	input, err := c.submitInput(s, given)
	if err != nil {
		return err
	}
	reply, err := c.batch(server).SubmitServiceJob(ctx, input)
	if err != nil {
		return c.batchError(server, err)
	}
	if c.output == "json" {
		return json.NewEncoder(c.Out).Encode(map[string]*string{"jobId": reply.JobId, "jobArn": reply.JobArn, "jobName": reply.JobName})
	}
	fmt.Fprintf(c.Out, "submitted %s as %s\n", aws.ToString(reply.JobName), aws.ToString(reply.JobId))
	return nil
}

// findQueue is the one queue that has the job's share, or is a fair-share one
// where a share identifier is given, or has no policy where neither is.
func (c *commands) findQueue(ctx context.Context, server server, s submission) (string, error) {
	queues, err := c.asker(server).Queues(ctx)
	if err != nil {
		return "", err
	}
	return chooseQueue(queues, s.share, s.shareIdentifier)
}

func chooseQueue(queues []bursarapi.Queue, share, identifier string) (string, error) {
	if share != "" && identifier != "" {
		return "", errors.New("--share and --share-identifier are of queues of different kinds; give one of them")
	}
	var found, fair, known []string
	for _, q := range queues {
		known = append(known, q.Shares...)
		if q.FairShare {
			fair = append(fair, q.Name)
		}
		if q.FairShare && identifier != "" || q.Policy == "" && share == "" && identifier == "" || slices.Contains(q.Shares, share) {
			found = append(found, q.Name)
		}
	}
	switch {
	case len(queues) == 0:
		return "", errors.New("there is no job queue yet; an administrator creates one, with its quota shares, through the AWS Batch API")
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("several queues fit (%s); choose one with --queue", strings.Join(found, ", "))
	case identifier != "":
		return "", fmt.Errorf("--share-identifier is %q, but no queue has a fair-share policy; leave it out", identifier)
	case share == "" && len(known) == 0:
		return "", fmt.Errorf("--share-identifier is missing; it says whose the job is in queue %s", strings.Join(fair, ", "))
	case share == "":
		return "", fmt.Errorf("--share is missing; it must be one of %s", strings.Join(known, ", "))
	}
	return "", fmt.Errorf("--share is %q, which no queue has; it must be one of %s", share, strings.Join(known, ", "))
}

func (c *commands) submitInput(s submission, given func(flag string) bool) (*batch.SubmitServiceJobInput, error) {
	if s.name == "" {
		s.name = nameOf(s.command)
	}
	payload, err := c.payload(s)
	if err != nil {
		return nil, err
	}
	input := &batch.SubmitServiceJobInput{
		JobName:               aws.String(s.name),
		JobQueue:              aws.String(s.queue),
		ServiceJobType:        types.ServiceJobTypeSagemakerTraining,
		ServiceRequestPayload: aws.String(payload),
		Tags:                  s.tags,
	}
	if s.share != "" {
		input.QuotaShareName = aws.String(s.share)
	}
	if s.shareIdentifier != "" {
		input.ShareIdentifier = aws.String(s.shareIdentifier)
	}
	if given("priority") {
		input.SchedulingPriority = aws.Int32(s.priority)
	}
	if given("retries") {
		input.RetryStrategy = &types.ServiceJobRetryStrategy{Attempts: aws.Int32(s.retries + 1)}
	}
	if given("preemption-retries") {
		input.PreemptionConfiguration = &types.ServiceJobPreemptionConfiguration{PreemptionRetriesBeforeTermination: aws.Int32(s.preemptionRetries)}
	}
	if s.timeout > 0 {
		seconds := min(max(s.timeout/time.Second, 1), math.MaxInt32)
		input.TimeoutConfig = &types.ServiceJobTimeout{AttemptDurationSeconds: aws.Int32(int32(seconds))}
	}
	return input, nil
}

// payload is the CreateTrainingJob request that runs the command.
func (c *commands) payload(s submission) (string, error) {
	resources, err := resourceConfig(s.instances)
	if err != nil {
		return "", err
	}
	command := s.command
	if s.here {
		if command, err = c.inThisDirectory(command); err != nil {
			return "", err
		}
	}
	request := map[string]any{
		"TrainingJobName": trainingJobName(s.name),
		"AlgorithmSpecification": map[string]any{
			"ContainerEntrypoint": command[:1],
			"ContainerArguments":  command[1:],
			"TrainingInputMode":   "File",
		},
		"ResourceConfig": resources,
	}
	if len(s.environment) > 0 {
		request["Environment"] = s.environment
	}
	if len(s.hyperparameters) > 0 {
		request["HyperParameters"] = s.hyperparameters
	}
	if len(s.channels) > 0 {
		request["InputDataConfig"] = inputChannels(s.channels)
	}
	text, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("encoding the training job: %w", err)
	}
	return string(text), nil
}

// inThisDirectory makes a command run where submit was called, so that it
// finds what its user sees.
func (c *commands) inThisDirectory(command []string) ([]string, error) {
	here, err := c.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the present directory: %w", err)
	}
	return append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, here}, command...), nil
}

// resourceConfig reads TYPE:COUNT pairs.
func resourceConfig(instances []string) (map[string]any, error) {
	if len(instances) == 0 {
		return nil, errors.New("--instances is missing; say what the job needs as TYPE:COUNT, such as ml.g5.xlarge:1")
	}
	var groups []map[string]any
	for i, text := range instances {
		kind, number, counted := strings.Cut(text, ":")
		count := 1
		if counted {
			var err error
			if count, err = strconv.Atoi(number); err != nil {
				count = 0
			}
		}
		if kind == "" || count < 1 {
			return nil, fmt.Errorf("--instances is %q; it must be TYPE:COUNT with a count from 1, such as ml.g5.xlarge:1", text)
		}
		groups = append(groups, map[string]any{"InstanceGroupName": fmt.Sprintf("group-%d", i+1), "InstanceType": kind, "InstanceCount": count})
	}
	const volume = 1 // GB: required by the request, and nothing that Bursar counts
	if len(groups) > 1 {
		return map[string]any{"InstanceGroups": groups, "VolumeSizeInGB": volume}, nil
	}
	return map[string]any{"InstanceType": groups[0]["InstanceType"], "InstanceCount": groups[0]["InstanceCount"], "VolumeSizeInGB": volume}, nil
}

func inputChannels(uris map[string]string) []map[string]any {
	var channels []map[string]any
	for name, uri := range uris {
		channels = append(channels, map[string]any{
			"ChannelName": name,
			"DataSource":  map[string]any{"S3DataSource": map[string]any{"S3DataType": "S3Prefix", "S3Uri": uri}},
		})
	}
	slices.SortFunc(channels, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["ChannelName"]), fmt.Sprint(b["ChannelName"]))
	})
	return channels
}

// interpreters run a program that is named after them.
var interpreters = regexp.MustCompile(`^(python[0-9.]*|bash|sh|torchrun|accelerate|deepspeed)$`)

// notInName is what a job's name may not have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// nameOf is a job's name after its program: train for "python train.py".
func nameOf(command []string) string {
	program := command[0]
	if interpreters.MatchString(filepath.Base(program)) {
		for _, argument := range command[1:] {
			if !strings.HasPrefix(argument, "-") {
				program = argument
				break
			}
		}
	}
	base := filepath.Base(program)
	name := strings.Trim(notInName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "-_")
	const longest = 63
	return cmp.Or(name[:min(len(name), longest)], "job")
}

// notInTrainingJobName is what SageMaker allows in a job's name and not in a
// training job's.
var notInTrainingJobName = regexp.MustCompile(`[^A-Za-z0-9]+`)

func trainingJobName(name string) string {
	const longest = 63
	clean := strings.Trim(notInTrainingJobName.ReplaceAllString(name, "-"), "-")
	return cmp.Or(strings.TrimRight(clean[:min(len(clean), longest)], "-"), "job")
}
