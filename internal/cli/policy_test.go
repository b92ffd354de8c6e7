package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/scenario"
)

const sharedGPUs = `name: two teams
cohort:
  capacity: {gpu: 2}
  shares:
  - {name: a, quota: {gpu: 1}}
  - {name: b, quota: {gpu: 1}}
events:
- {at: 0s, submit: {job: x, share: a, demand: {gpu: 2}}}
- {at: 1m, submit: {job: y, share: a, demand: {gpu: 1}}}
expect:
- {at: 5m, running: [x], waiting: [y]}
`

// run runs one command line in a directory with the files given.
func run(t *testing.T, files map[string]string, args ...string) (status int, out, errors string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	status = Run(t.Context(), System{
		Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" },
		Getwd: os.Getwd, Executable: os.Executable, Now: time.Now,
	}, args)
	return status, stdout.String(), stderr.String()
}

func TestPolicyTestSaysWhatHolds(t *testing.T) {
	status, out, errors := run(t, map[string]string{"good.yaml": sharedGPUs}, "policy", "test", "good.yaml")
	const want = `FILE       CHECKS  RESULT  SHOWS
good.yaml       2  holds   two teams
`
	if diff := cmp.Diff(want, out); diff != "" || status != 0 || errors != "" {
		t.Errorf("status %d, %s\n(-want +got):\n%s", status, errors, diff)
	}
}

func TestPolicyTestSaysWhatDoesNot(t *testing.T) {
	files := map[string]string{
		"good.yaml":  sharedGPUs,
		"wrong.yaml": strings.Replace(sharedGPUs, "running: [x], waiting: [y]", "running: [x, y], waiting: []", 1),
		"typo.yaml":  strings.Replace(sharedGPUs, "submit: {job: y", "submit: {jobs: y", 1),
	}
	status, out, errors := run(t, files, "policy", "test", "good.yaml", "wrong.yaml", "typo.yaml", "none.yaml")
	const want = `FILE        CHECKS  RESULT   SHOWS
good.yaml        2  holds    two teams
wrong.yaml       2  2 wrong  two teams
typo.yaml        0  error    -
none.yaml        0  error    -

wrong.yaml:11: at 5m
  expected  running: [x, y]
  found     running: [x]
wrong.yaml:11: at 5m
  expected  waiting: []
  found     waiting: [y]
  y waits, INSUFFICIENT_QUOTA: It needs 1 gpu, 1 more than is left of its share's quota and of what may be borrowed: its own share uses 2.

typo.yaml:9: submit has no key jobs; its keys are attempts, checkpointEvery, demand, job, maxRuntime, preemptionRetries, priority, runtime, share, workers

open none.yaml: no such file or directory
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if status != 1 || errors != "bursar: 3 of 4 files do not hold\n" {
		t.Errorf("status %d, %q", status, errors)
	}
}

func TestPolicyTestWritesJSON(t *testing.T) {
	wrong := strings.Replace(sharedGPUs, "running: [x], waiting: [y]", "running: [y]", 1)
	status, out, errors := run(t, map[string]string{"wrong.yaml": wrong}, "policy", "test", "-o", "json", "wrong.yaml")
	var got []policyTest
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []policyTest{{
		File: "wrong.yaml", Name: "two teams", Checks: 1,
		Failures: []policyFailure{{
			Line: 11, At: "5m", Seconds: 300, Expected: "running: [y]", Found: "running: [x]",
			Jobs: []scenario.JobState{
				{Job: "y", Why: "waits, INSUFFICIENT_QUOTA: It needs 1 gpu, 1 more than is left of its share's quota and of what may be borrowed: its own share uses 2."},
				{Job: "x", Why: "runs since 0s: Granted, borrowing 1 gpu that other shares leave idle."},
			},
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || status != 1 || errors != "bursar: wrong.yaml does not hold\n" {
		t.Errorf("status %d, %q (-want +got):\n%s", status, errors, diff)
	}
}

func TestPolicyTestRefusesFlags(t *testing.T) {
	for _, args := range [][]string{{"policy", "test"}, {"policy", "test", "-o", "yaml", filepath.Join("a", "b")}} {
		if status, _, errors := run(t, nil, args...); status != 1 || errors == "" {
			t.Errorf("%v: status %d, %q", args, status, errors)
		}
	}
}
