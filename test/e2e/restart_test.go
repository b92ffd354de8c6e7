package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/test/live"
)

// waiter is a program that says that it runs, and ends with status 0 once a
// file is there.
func waiter(file string) []string {
	return []string{"/bin/sh", "-c", `echo started; until [ -e "$0" ]; do sleep 0.05; done`, file}
}

func TestStoppedServerLeavesJobsRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	release := filepath.Join(t.TempDir(), "release")
	s := live.Start(t, dir)
	live.Prepare(t, s.Batch(), threeShares)
	id := submit(t, s.Batch(), "outlives", "QS1", 1, nil, waiter(release)...)
	live.Eventually(t, "the job runs", func() bool { return strings.Contains(startedOutput(t, s, id), "started") })

	followed, err := s.Bursar().Log(t.Context(), bursarapi.LogQuery{Job: id, Follow: true})
	live.Must(t, err)
	defer followed.Close()

	// Whoever follows a log does not keep a server from stopping.
	if status := s.Stop(); status != 0 {
		t.Errorf("the server ended with status %d", status)
	}
	if _, err := app.ReadServerFile(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stopped server still tells how to reach it (%v)", err)
	}

	s = live.Start(t, dir)
	t.Cleanup(func() { s.EndJobs(context.WithoutCancel(t.Context())) })
	if got := describe(t, s.Batch(), id); got.Status != types.ServiceJobStatusRunning {
		t.Errorf("after the restart the job is %s: %s", got.Status, aws.ToString(got.StatusReason))
	}
	live.Must(t, os.WriteFile(release, nil, 0o600))
	live.Eventually(t, "the job ends", func() bool { return describe(t, s.Batch(), id).Status == types.ServiceJobStatusSucceeded })
	if text := output(t, s, id, 0); text != "started\n" {
		t.Errorf("the job printed %q; it was to start once", text)
	}
	if attempts := describe(t, s.Batch(), id).Attempts; len(attempts) != 1 {
		t.Errorf("the job has %d attempts, want 1", len(attempts))
	}
}

func TestJobThatEndsWhileNoServerRunsIsSeenToHaveEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	release, ended := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "ended")
	s := live.Start(t, dir)
	live.Prepare(t, s.Batch(), threeShares)
	program := waiter(release)
	program[2] += `; touch "$1"`
	id := submit(t, s.Batch(), "alone", "QS1", 1, nil, append(program, ended)...)
	live.Eventually(t, "the job runs", func() bool { return strings.Contains(startedOutput(t, s, id), "started") })
	s.Kill()

	live.Must(t, os.WriteFile(release, nil, 0o600))
	live.Eventually(t, "the job ends by itself", func() bool { _, err := os.Stat(ended); return err == nil })
	s = live.Start(t, dir)
	live.Eventually(t, "the server sees that it did", func() bool { return describe(t, s.Batch(), id).Status == types.ServiceJobStatusSucceeded })
}

// startedOutput is what a job printed, or nothing if it does not run yet.
func startedOutput(t *testing.T, s *live.Server, id string) string {
	t.Helper()
	if describe(t, s.Batch(), id).Status != types.ServiceJobStatusRunning {
		return ""
	}
	return output(t, s, id, 0)
}

func TestSecondServerOnADataDirectoryIsRefused(t *testing.T) {
	s := start(t)
	stdout, stderr, status := live.RunCLI(t.Context(), t, os.Environ(), "serve", "--data-dir", s.Dir, "--listen", "127.0.0.1:0")
	if status != 1 || stdout != "" || !strings.Contains(stderr, s.Dir) || !strings.Contains(stderr, "another") {
		t.Errorf("status %d, stdout %q, stderr %q; want status 1 and a message that names the directory and another server", status, stdout, stderr)
	}
	if _, err := s.Bursar().Queues(t.Context()); err != nil {
		t.Errorf("the first server: %v", err)
	}
	if _, err := app.ReadServerFile(s.Dir); err != nil {
		t.Errorf("the first server's file: %v", err)
	}
}

func TestServeRefusesWhatCannotBe(t *testing.T) {
	tests := []struct {
		flags []string
		want  string
	}{
		{[]string{"--account-id", "12"}, `the account id is "12"; it must be 12 digits`},
		{[]string{"--listen", "nowhere:none"}, "listening on nowhere:none"},
		{[]string{"--data-dir", "/dev/null/data"}, "/dev/null"},
	}
	for _, tt := range tests {
		args := append([]string{"serve", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, tt.flags...)
		_, stderr, status := live.RunCLI(t.Context(), t, os.Environ(), args...)
		if status != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: status %d, stderr %q; want 1 and %q", tt.flags, status, stderr, tt.want)
		}
	}
}
