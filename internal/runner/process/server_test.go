package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/runnertest"
)

// serveForTest is a server that a test can kill: it starts the attempts it
// reads from its input, and writes what it observes.
func serveForTest(dir string) error {
	observed := json.NewEncoder(os.Stdout)
	r, err := New(configFor(dir), func(o runner.Observation) { _ = observed.Encode(o) })
	if err != nil {
		return err
	}
	attempts := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var a runner.Attempt
		if err := attempts.Decode(&a); err != nil {
			return fmt.Errorf("read an attempt: %w", err)
		}
		r.Start(a)
	}
}

// TestWorkersSurviveTheServersKilling kills a server with SIGKILL, at several
// points of an attempt's start, and lets another one find its workers.
func TestWorkersSurviveTheServersKilling(t *testing.T) {
	h := &harness{dir: t.TempDir()}
	var attempts []runner.Attempt
	var jobs []runnertest.Job
	for _, point := range []runner.Event{runner.Starting, runner.Running, runner.Starting, runner.Running} {
		job := h.Job(t, runnertest.Worker{Waits: true}, runnertest.Worker{Waits: true})
		a := runnertest.NewAttempt(t, job.Payload)
		jobs, attempts = append(jobs, job), append(attempts, a)
		killServer(t, h.dir, a, point)
	}
	b := &bench{Recorder: runnertest.NewRecorder(t), harness: h, t: t}
	b.open()
	for i, a := range attempts {
		b.r.Start(a)
		jobs[i].Ready(1)
		jobs[i].Ready(2)
		b.AwaitEvent(a.Key, runner.Running)
	}
	for i, a := range attempts {
		if n := len(survivors(t, a.Key, 1)); n > 2 { // the script, and what waits for it
			t.Errorf("worker 1 of attempt %d has %d processes, want at most 2", i, n)
		}
		jobs[i].Release(1)
		jobs[i].Release(2)
		if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Succeeded {
			t.Errorf("ended %+v", end)
		}
	}
}

// killServer has a server start an attempt, and kills it as soon as it reports
// the event.
func killServer(t *testing.T, dir string, a runner.Attempt, event runner.Event) {
	t.Helper()
	server := exec.CommandContext(t.Context(), os.Args[0], serverArgument, dir)
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(a); err != nil {
		t.Error(err)
	}
	reports := json.NewDecoder(out)
	for o := (runner.Observation{}); o.Event != event; {
		if err := reports.Decode(&o); err != nil {
			t.Errorf("observation: %v", err)
			break
		}
	}
	if err := server.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = server.Wait() // it was killed
}

// BenchmarkStart measures from Start until a worker's process is there.
func BenchmarkStart(b *testing.B) {
	recorder := runnertest.NewRecorder(b)
	r, err := New(configFor(b.TempDir()), recorder.Report)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	text := payload(b, 1, nil, "/bin/true")
	var took []time.Duration
	for b.Loop() {
		a := runnertest.NewAttempt(b, text)
		from := time.Now()
		r.Start(a)
		took = append(took, recorder.AwaitEvent(a.Key, runner.Running).At.Sub(from))
		recorder.AwaitEvent(a.Key, runner.Ended)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
