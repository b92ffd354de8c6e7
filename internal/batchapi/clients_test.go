package batchapi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program returns the path of a program that make test installs: the one that
// a variable names, or else the one in the virtual environment that is left
// from a former run. Without it the test is skipped, except where all tests
// must run.
func program(t *testing.T, name, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = "../../.venv/bin/" + name
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		return path
	}
	message := fmt.Sprintf("%s with test/requirements.txt is not there (%v): make test installs it, or set %s to the path of one", name, err, variable)
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}

// command is a command of an AWS client that knows the server by its endpoint,
// region and credentials file, and nothing of the machine's own configuration.
func (s server) command(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, arguments...)
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_CONFIG_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
		"AWS_ENDPOINT_URL_BATCH=" + s.url, "AWS_DEFAULT_REGION=" + testRegion, "AWS_SHARED_CREDENTIALS_FILE=" + s.credentials,
	}
	return c
}

func TestBoto3(t *testing.T) {
	t.Parallel()
	python := program(t, "python", "BURSAR_TEST_PYTHON")
	output, err := newServer(t).command(t, python, "testdata/boto3_client.py").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
}

// shell runs aws batch commands.
type shell struct {
	server
	aws string
}

// run runs a command that must succeed and returns what it prints.
func (s shell) run(t *testing.T, line string, more ...string) map[string]any {
	t.Helper()
	c := s.command(t, s.aws, append(append([]string{"batch"}, strings.Fields(line)...), more...)...)
	var complaints strings.Builder
	c.Stderr = &complaints
	output, err := c.Output()
	if err != nil {
		t.Fatalf("aws batch %s: %v\n%s", line, err, complaints.String())
	}
	reply := map[string]any{}
	if len(output) > 0 {
		if err := json.Unmarshal(output, &reply); err != nil {
			t.Fatalf("aws batch %s printed %s: %v", line, output, err)
		}
	}
	return reply
}

// fails runs a command that must fail with a complaint that has a part.
func (s shell) fails(t *testing.T, part, line string, environment ...string) {
	t.Helper()
	c := s.command(t, s.aws, append([]string{"batch"}, strings.Fields(line)...)...)
	c.Env = append(c.Env, environment...)
	output, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(output), part) {
		t.Errorf("aws batch %s: %v, want a complaint with %q\n%s", line, err, part, output)
	}
}

func TestAWSCLI(t *testing.T) {
	t.Parallel()
	s := shell{newServer(t), program(t, "aws", "BURSAR_TEST_AWS")}
	const (
		policy = arnPrefix + "scheduling-policy/policy"
		queue  = arnPrefix + "job-queue/queue"
		share  = queue + "/quota-share/QS1"
		env    = "create-service-environment --service-environment-name env --service-environment-type SAGEMAKER_TRAINING --capacity-limits capacityUnit=ml.g5.xlarge,maxCapacity=1"
	)
	s.run(t, "create-scheduling-policy --name policy --quota-share-policy idleResourceAssignmentStrategy=FIFO")
	s.run(t, env)
	s.fails(t, "(ClientException) when calling the CreateServiceEnvironment operation: Object already exists", env)
	s.run(t, "create-job-queue --job-queue-name queue --job-queue-type SAGEMAKER_TRAINING --priority 1 --scheduling-policy-arn "+policy+" --service-environment-order order=1,serviceEnvironment=env")
	s.run(t, "create-quota-share --quota-share-name QS1 --job-queue queue --capacity-limits capacityUnit=ml.g5.xlarge,maxCapacity=1 --resource-sharing-configuration strategy=RESERVE --preemption-configuration inSharePreemption=DISABLED --tags a=b")

	s.run(t, "update-service-environment --service-environment env --capacity-limits capacityUnit=ml.g5.xlarge,maxCapacity=2")
	s.run(t, "update-scheduling-policy --arn "+policy+" --quota-share-policy idleResourceAssignmentStrategy=FIFO")
	s.run(t, "update-job-queue --job-queue "+queue+" --priority 3")
	s.run(t, "update-quota-share --quota-share-arn "+share+" --capacity-limits capacityUnit=ml.g5.xlarge,maxCapacity=2")
	s.run(t, "tag-resource --resource-arn "+share+" --tags c=d")
	s.run(t, "untag-resource --resource-arn "+share+" --tag-keys a")
	for line, member := range map[string]string{
		"describe-service-environments":                     "serviceEnvironments",
		"list-scheduling-policies":                          "schedulingPolicies",
		"describe-scheduling-policies --arns " + policy:     "schedulingPolicies",
		"describe-job-queues --job-queues queue":            "jobQueues",
		"list-quota-shares --job-queue queue --page-size 1": "quotaShares",
		"list-tags-for-resource --resource-arn " + share:    "tags",
		"describe-quota-share --quota-share-arn " + share:   "capacityLimits",
		"get-job-queue-snapshot --job-queue queue":          "frontOfQuotaShares",
	} {
		if found := s.run(t, line)[member]; found == nil || fmt.Sprint(found) == "[]" {
			t.Errorf("aws batch %s: no %s", line, member)
		}
	}

	submitted := s.run(t, "submit-service-job --job-name job --job-queue queue --quota-share-name QS1 --service-job-type SAGEMAKER_TRAINING --scheduling-priority 5 --timeout-config attemptDurationSeconds=3600 --service-request-payload", testPayload)
	id, _ := submitted["jobId"].(string)
	eventually(t, "the job to run", func() bool { return s.run(t, "describe-service-job --job-id "+id)["status"] == "RUNNING" })
	s.run(t, "update-service-job --scheduling-priority 6 --job-id "+id)
	if jobs, _ := s.run(t, "list-service-jobs --job-queue queue --filters name=JOB_NAME,values=job")["jobSummaryList"].([]any); len(jobs) != 1 {
		t.Errorf("listed jobs %v, want one", jobs)
	}
	s.run(t, "terminate-service-job --reason enough --job-id "+id)
	eventually(t, "the job to end", func() bool { return s.run(t, "describe-service-job --job-id "+id)["statusReason"] == "enough" })

	s.fails(t, "(MissingAuthenticationTokenException)", "describe-job-queues --no-sign-request")
	s.fails(t, "(InvalidSignatureException)", "describe-job-queues", "AWS_ACCESS_KEY_ID="+s.administrator(t).AccessKeyID, "AWS_SECRET_ACCESS_KEY=wrong")
	s.fails(t, "(UnrecognizedClientException)", "describe-job-queues", "AWS_ACCESS_KEY_ID=AKIAUNKNOWN", "AWS_SECRET_ACCESS_KEY=wrong")

	byUse, _ := s.run(t, "create-scheduling-policy --name byuse --fairshare-policy shareDecaySeconds=600,computeReservation=5,shareDistribution=[{shareIdentifier=a*,weightFactor=0.5}]")["arn"].(string)
	s.run(t, "update-scheduling-policy --arn "+byUse+" --fairshare-policy shareDecaySeconds=0")
	s.run(t, "create-service-environment --service-environment-name counted --service-environment-type SAGEMAKER_TRAINING --capacity-limits capacityUnit=NUM_INSTANCES,maxCapacity=1")
	s.run(t, "create-job-queue --job-queue-name fair --job-queue-type SAGEMAKER_TRAINING --priority 1 --scheduling-policy-arn "+byUse+" --service-environment-order order=1,serviceEnvironment=counted")
	s.run(t, "submit-service-job --job-name fairly --job-queue fair --share-identifier a1 --service-job-type SAGEMAKER_TRAINING --service-request-payload", testPayload)
	if jobs, _ := s.run(t, "list-service-jobs --job-queue fair --filters name=SHARE_IDENTIFIER,values=a1")["jobSummaryList"].([]any); len(jobs) != 1 {
		t.Errorf("listed jobs %v, want one", jobs)
	}

	s.run(t, "update-quota-share --state DISABLED --quota-share-arn "+share)
	s.run(t, "delete-quota-share --quota-share-arn "+share)
	s.fails(t, "does not exist", "describe-quota-share --quota-share-arn "+share)
	s.run(t, "update-job-queue --state DISABLED --job-queue queue")
	s.run(t, "delete-job-queue --job-queue queue")
	s.run(t, "delete-scheduling-policy --arn "+policy)
	s.run(t, "update-service-environment --state DISABLED --service-environment env")
	s.run(t, "delete-service-environment --service-environment env")
}
