package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/test/live"
)

// changing is what differs from run to run in what the commands print.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{8,}\b`), "SHORTID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b\d+s\b`), "AGO"},
	{regexp.MustCompile(`It needs .*`), "SENTENCE"}, // the engine's, tested with it
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func settle(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}

// run runs a command that must succeed, and returns what it printed.
func run(t *testing.T, s *live.Server, args ...string) string {
	t.Helper()
	stdout, stderr, status := s.CLI(t.Context(), args...)
	if status != 0 {
		t.Fatalf("bursar %s ended with status %d: %s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

func expectPrinted(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), settle(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestCommandsOfPeople(t *testing.T) {
	s := start(t)
	live.Prepare(t, s.Batch(), threeShares)
	release := filepath.Join(t.TempDir(), "release")
	wait := waiter(release)
	runs := func(name string) func() bool {
		return func() bool {
			return strings.Contains(run(t, s, "jobs"), name) && strings.Contains(run(t, s, "job", name), "RUNNING")
		}
	}

	expectPrinted(t, "jobs of an empty queue", run(t, s, "jobs"), "no jobs\n")
	expectPrinted(t, "an empty queue", run(t, s, "queue"), "nothing waits in training\n")

	expectPrinted(t, "submit", run(t, s, append([]string{"submit", "--share", "QS2", "--instances", "ml.g5.xlarge:1", "--name", "first", "--priority", "2", "--"}, wait...)...),
		"submitted first as ID\n")
	live.Eventually(t, "first runs", runs("first"))
	run(t, s, append([]string{"submit", "--share", "QS2", "--instances", "ml.g5.xlarge", "--name", "second", "--"}, wait...)...)

	expectPrinted(t, "jobs", run(t, s, "jobs"), `
JOB  NAME  SHARE  PRIORITY  STATE  SINCE  WHY
SHORTID  second  QS2  0  RUNNABLE  AGO  SENTENCE
SHORTID  first  QS2  2  RUNNING  AGO
`)
	expectPrinted(t, "shares", run(t, s, "shares"), `
SHARE  UNIT  QUOTA  OWN  BORROWED  LENT  FREE  RUNNING  WAITING
QS1  ml.g5.xlarge  1  ·  ·  ·  1  0  0
QS2  ml.g5.xlarge  1  1  ·  ·  ·  1  1
QS3  ml.g5.xlarge  1  ·  ·  ·  1  0  0
`)
	expectPrinted(t, "queue", run(t, s, "queue", "training"), `
SHARE  PLACE  JOB  NAME  PRIORITY  NEEDS  WAITS  FOR
QS2  1  SHORTID  second  0  1 ml.g5.xlarge  AGO  SENTENCE
`)
	why := run(t, s, "why", "second")
	for _, want := range []string{"second is RUNNABLE", "INSUFFICIENT_QUOTA", "own-share"} {
		if !strings.Contains(why, want) {
			t.Errorf("why does not say %q:\n%s", want, why)
		}
	}
	if logs := run(t, s, "logs", "first"); logs != "started\n" {
		t.Errorf("logs printed %q", logs)
	}
	expectPrinted(t, "priority", run(t, s, "priority", "second", "7"), "second (ID) has priority 7 now; it was 0\n")
	expectPrinted(t, "stop", run(t, s, "stop", "second", "--reason", "changed my mind"), "stopping second (ID)\n")
	checkJSON(t, s)

	follow := exec.CommandContext(t.Context(), live.Bursar(), "logs", "-f", "first", "--data-dir", s.Dir)
	followed, err := follow.StdoutPipe()
	live.Must(t, err)
	live.Must(t, follow.Start())
	line := make([]byte, len("started\n"))
	_, err = followed.Read(line)
	live.Must(t, err)
	live.Must(t, os.WriteFile(release, nil, 0o600))
	if err := follow.Wait(); err != nil {
		t.Errorf("following the log of a job that ends: %v", err)
	}
	live.Eventually(t, "first succeeds", func() bool { return strings.Contains(run(t, s, "jobs", "--all"), "SUCCEEDED") })
	expectPrinted(t, "all jobs", run(t, s, "jobs", "--all"), `
JOB  NAME  SHARE  PRIORITY  STATE  SINCE  WHY
SHORTID  second  QS2  7  FAILED  AGO  changed my mind
SHORTID  first  QS2  2  SUCCEEDED  AGO  Received status from SageMaker: Training job completed
`)
}

// checkJSON checks that -o json prints what programs can read.
func checkJSON(t *testing.T, s *live.Server) {
	t.Helper()
	var jobs []bursarapi.Job
	live.Must(t, json.Unmarshal([]byte(run(t, s, "jobs", "--all", "-o", "json")), &jobs))
	if len(jobs) != 2 || jobs[0].Job.Name != "second" || jobs[0].Job.Status != job.Failed || jobs[0].Job.Priority != 7 {
		t.Errorf("jobs as JSON: %+v", jobs)
	}
	var balances []bursarapi.Balance
	live.Must(t, json.Unmarshal([]byte(run(t, s, "shares", "-o", "json")), &balances))
	if len(balances) != 3 || balances[1].Running != 1 {
		t.Errorf("shares as JSON: %+v", balances)
	}
}

func TestSubmitRunsWhereItsUserIs(t *testing.T) {
	s := start(t)
	live.Prepare(t, s.Batch(), threeShares)
	here := t.TempDir()
	live.Must(t, os.WriteFile(filepath.Join(here, "hello.sh"), []byte(`echo "$1, $NAME and $SM_HP_LR"`), 0o600))
	submit := exec.CommandContext(t.Context(), live.Bursar(), "submit", "--data-dir", s.Dir, "--share", "QS1", "--instances", "ml.g5.xlarge:1",
		"--env", "NAME=world, again", "--hyperparameter", "lr=0.1", "--retries", "1", "--preemption-retries", "3", "--timeout", "1h", "--tag", "team=ml", "--", "sh", "hello.sh", "hello")
	submit.Dir = here
	if output, err := submit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	live.Eventually(t, "it succeeds", func() bool { return strings.Contains(run(t, s, "job", "hello"), "SUCCEEDED") })
	if got := run(t, s, "logs", "hello"); got != "hello, world, again and 0.1\n" {
		t.Errorf("it printed %q", got)
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	s := start(t)
	live.Prepare(t, s.Batch(), threeShares)
	nowhere := t.TempDir()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no server", []string{"jobs", "--data-dir", nowhere}, "no server found: none runs on data directory " + nowhere + "; start one with \"bursar serve\""},
		{"nobody answers", []string{"jobs", "--endpoint", "http://127.0.0.1:1"}, "connection refused"},
		{"another region", []string{"jobs", "--region", "eu-west-1"}, "Credential should be scoped to a valid region, not 'eu-west-1'. This server is in 'us-east-1'."},
		{"no such job", []string{"why", "nobody"}, `there is no job with id, ARN or name "nobody"`},
		{"no job named", []string{"why"}, "got 0 arguments; name one JOB"},
		{"no such share", []string{"submit", "--share", "QS9", "--instances", "ml.g5.xlarge:1", "--", "true"}, `--share is "QS9", which no queue has; it must be one of QS1, QS2, QS3`},
		{"no instances", []string{"submit", "--share", "QS1", "--", "true"}, "--instances is missing"},
		{"a pair that is none", []string{"submit", "--env", "NAME", "--", "true"}, `invalid argument "NAME" for "--env" flag: it must be NAME=VALUE`},
		{"no program", []string{"submit", "--share", "QS1", "--instances", "ml.g5.xlarge:1"}, "no program given; name it after --"},
		{"a name that is none", []string{"submit", "--share", "QS1", "--instances", "ml.g5.xlarge:1", "--name", "a b", "--", "true"}, "a b"},
		{"a priority that is none", []string{"priority", "nobody", "high"}, `the priority is "high"; it must be a whole number from 0 to 9999`},
		{"an output that is none", []string{"jobs", "-o", "xml"}, `--output is "xml"; it must be table or json`},
		{"no such queue", []string{"queue", "nothing"}, "nothing"},
		{"no such command", []string{"schedule"}, `unknown command "schedule"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, status := s.CLI(t.Context(), tt.args...)
			if status != 1 || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, stdout %q, stderr %q; want status 1 and %q", status, stdout, stderr, tt.want)
			}
		})
	}
}
