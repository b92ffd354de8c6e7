package process

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/runnertest"
)

// The test binary is its own shim, as the product is, and its own server for
// tests that kill one.
const (
	shimArgument   = "shim"
	serverArgument = "server"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case shimArgument:
			os.Exit(ShimMain(os.Args[2:]))
		case serverArgument:
			fmt.Fprintln(os.Stderr, serveForTest(os.Args[2]))
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func configFor(dir string) Config {
	return Config{
		Dir: dir,
		// A program with a race detector stays for a second after its end
		// unless told otherwise, and the shim's environment is not the test's.
		Shim:  []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", os.Args[0], shimArgument},
		Grace: runnertest.Grace, CheckpointPoll: 20 * time.Millisecond,
	}
}

func TestConformance(t *testing.T) {
	runnertest.Run(t, &harness{dir: t.TempDir()})
}

// TestConformanceWithoutIsolation is for machines that allow no namespaces.
func TestConformanceWithoutIsolation(t *testing.T) {
	runnertest.Run(t, &harness{dir: t.TempDir(), plain: true})
}

// TestConformanceInUserNamespace is for servers that do not run as root.
func TestConformanceInUserNamespace(t *testing.T) {
	h := &harness{dir: t.TempDir(), isolate: isolateUser}
	if err := isolateUser.probe(configFor(h.dir)); err != nil {
		t.Skipf("this machine allows no user namespaces: %v", err)
	}
	runnertest.Run(t, h)
}

// harness runs the conformance suite's workers as shell scripts.
type harness struct {
	dir     string
	plain   bool      // as if no isolation were possible
	isolate isolation // rather than the one found; empty: that one
}

func (h *harness) New(t *testing.T, report runner.Report) runner.Runner {
	t.Helper()
	cfg := configFor(h.dir)
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := New(cfg, report)
	if err != nil {
		t.Fatal(err)
	}
	if h.plain || h.isolate != isolateNothing {
		r.isolate = h.isolate
	}
	return r
}

func (h *harness) Job(t *testing.T, workers ...runnertest.Worker) runnertest.Job {
	t.Helper()
	dir := t.TempDir()
	ready, release := map[int]*os.File{}, map[int]*os.File{}
	for i, w := range workers {
		ready[i+1] = fifo(t, filepath.Join(dir, hostName(i+1)+".ready"))
		release[i+1] = fifo(t, filepath.Join(dir, hostName(i+1)+".release"))
		writeScript(t, filepath.Join(dir, hostName(i+1)), script(w))
	}
	return runnertest.Job{
		Payload: payload(t, len(workers), nil, "/bin/sh", "-c", `cd "$0" && exec "./$SM_CURRENT_HOST"`, dir),
		Ready:   func(worker int) { readByte(t, ready[worker]) },
		Release: func(worker int) {
			if _, err := release[worker].WriteString("\n"); err != nil {
				t.Error(err)
			}
		},
	}
}

// Lose kills the worker's shim, and so leaves no trace of how it ended.
func (h *harness) Lose(t *testing.T, key runner.Key, worker int) {
	t.Helper()
	claim, found, err := readRecord[identity](filepath.Join(workerDir(AttemptDir(h.dir, key), worker), claimFile))
	if err != nil || !found {
		t.Fatalf("claim of worker %d: found %v, %v", worker, found, err)
	}
	if err := unix.Kill(claim.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// script makes a worker do what it is to do. It waits in the background, so
// that a trap is run at once.
func script(w runnertest.Worker) string {
	lines := []string{"#!/bin/sh"}
	if w.Ignores {
		lines = append(lines, "trap '' TERM")
	} else {
		lines = append(lines, "trap 'exit 0' TERM")
	}
	lines = append(lines, `echo >"$SM_CURRENT_HOST.ready"`)
	if w.Waits {
		lines = append(lines, `read line <"$SM_CURRENT_HOST.release" &`, "wait $!")
	}
	if w.Message != "" {
		lines = append(lines, fmt.Sprintf(`printf '%%s' '%s' >"$SM_OUTPUT_FAILURE"`, w.Message))
	}
	if w.Signal != 0 {
		lines = append(lines, fmt.Sprintf("kill -%d $$", int(w.Signal)))
	}
	return strings.Join(append(lines, fmt.Sprintf("exit %d", w.Code), ""), "\n")
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// fifo makes a named pipe and keeps both of its ends open, so that neither
// side waits for the other to open it.
func fifo(t *testing.T, path string) *os.File {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func readByte(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(make([]byte, 1)); err != nil {
		t.Fatalf("waiting for %s: %v", f.Name(), err)
	}
}

// payload is a request that runs the command on a number of instances, with
// more of its fields as given.
func payload(tb testing.TB, instances int, more map[string]any, command ...string) string {
	tb.Helper()
	request := map[string]any{
		"AlgorithmSpecification": map[string]any{"ContainerEntrypoint": command},
		"ResourceConfig":         map[string]any{"InstanceType": "ml.g5.xlarge", "InstanceCount": instances},
	}
	for name, value := range more {
		request[name] = value
	}
	text, err := json.Marshal(request)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
