// Package runnertest holds what every runner must do, as tests. A runner's own
// package runs them on its engine, which a Harness stands for.
//
// It knows runners only through their contract; what is special to one engine
// is tested beside it.
package runnertest

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// Worker is what a worker is to do.
type Worker struct {
	Waits   bool           // does not end before Job.Release
	Ignores bool           // goes on when it is told to stop
	Code    int            // status it ends with by itself
	Signal  syscall.Signal // signal that ends it instead; 0: none
	Message string         // what it says of its failure
}

// Job is a job made of workers that do as they are told.
type Job struct {
	Payload string
	Ready   func(worker int) // returns once the worker, counted from 1, does what it is to do
	Release func(worker int) // lets a worker that waits end by itself
}

// Harness is one engine. What its runners know survives them, as on a machine
// whose server is restarted.
type Harness interface {
	// New returns a runner that gives workers a grace period of Grace.
	New(t *testing.T, report runner.Report) runner.Runner
	// Job returns a job with the workers given.
	Job(t *testing.T, workers ...Worker) Job
	// Lose makes a running worker vanish, as if its machine had gone down.
	Lose(t *testing.T, key runner.Key, worker int)
}

// Grace is the grace period in these tests.
const Grace = 300 * time.Millisecond

// patience is how long anything is waited for.
const patience = 30 * time.Second

// Run runs the suite on the engine.
func Run(t *testing.T, h Harness) {
	t.Helper()
	t.Run("ends", func(t *testing.T) { testEnds(t, h) })
	t.Run("stops", func(t *testing.T) { testStops(t, h) })
	t.Run("gangs", func(t *testing.T) { testGangs(t, h) })
	t.Run("restarts", func(t *testing.T) { testRestarts(t, h) })
}

func testEnds(t *testing.T, h Harness) {
	t.Helper()
	tests := []struct {
		name   string
		worker Worker
		want   runner.Observation
	}{
		{"success", Worker{}, runner.Observation{Outcome: runner.Succeeded}},
		{"failure", Worker{Code: 3, Message: "the loss is not a number"},
			runner.Observation{Outcome: runner.Failed, ExitCode: 3, Message: "the loss is not a number"}},
		{"death by a signal", Worker{Signal: syscall.SIGKILL, Message: "out of memory"},
			runner.Observation{Outcome: runner.Failed, ExitCode: 137, Message: "out of memory"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := watch(t, h)
			a := w.start(h.Job(t, tt.worker).Payload)
			w.expect(a.Key, runner.Starting, runner.Running)
			w.expectEnd(a.Key, tt.want)
			w.close(a.Key, 3)
		})
	}
	t.Run("a payload that cannot run", func(t *testing.T) {
		w := watch(t, h)
		a := w.start(`{"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 0}}`)
		end := w.end(a.Key)
		if end.Outcome != runner.Failed || end.Message == "" {
			t.Errorf("ended as %+v, want Failed with a message", end)
		}
	})
	t.Run("attempts of one job are apart", func(t *testing.T) {
		w := watch(t, h)
		first := w.start(h.Job(t, Worker{Code: 1, Message: "no"}).Payload)
		w.expectEnd(first.Key, runner.Observation{Outcome: runner.Failed, ExitCode: 1, Message: "no"})
		second := first
		second.Run, second.Payload = 2, h.Job(t, Worker{}).Payload
		w.r.Start(second)
		w.expectEnd(second.Key, runner.Observation{Outcome: runner.Succeeded})
	})
}

func testStops(t *testing.T, h Harness) {
	t.Helper()
	stopped := runner.Observation{Outcome: runner.Stopped}
	t.Run("gracefully", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true})
		a := w.start(job.Payload)
		job.Ready(1)
		w.expect(a.Key, runner.Starting, runner.Running)
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, stopped)
		w.close(a.Key, 3)
	})
	t.Run("by force, after the grace period", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true, Ignores: true})
		a := w.start(job.Payload)
		job.Ready(1)
		told := time.Now()
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, stopped)
		if took := time.Since(told); took < Grace {
			t.Errorf("was killed after %v, which is within the grace period of %v", took, Grace)
		}
	})
	t.Run("by force, after a grace period of its own", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true, Ignores: true})
		a := NewAttempt(t, job.Payload)
		a.Grace = 3 * Grace
		w.r.Start(a)
		job.Ready(1)
		told := time.Now()
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, stopped)
		if took := time.Since(told); took < a.Grace {
			t.Errorf("was killed after %v, which is within its grace period of %v", took, a.Grace)
		}
	})
	t.Run("before it runs", func(t *testing.T) {
		w := watch(t, h)
		a := w.start(h.Job(t, Worker{Waits: true}).Payload)
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, stopped)
	})
	t.Run("twice, and started twice", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true})
		a := w.start(job.Payload)
		w.r.Start(a)
		job.Ready(1)
		w.expect(a.Key, runner.Starting, runner.Running)
		w.r.Start(a)
		w.r.Stop(a.Key)
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, stopped)
		w.r.Stop(a.Key)
		w.close(a.Key, 3)
	})
	t.Run("after it has ended", func(t *testing.T) {
		w := watch(t, h)
		a := w.start(h.Job(t, Worker{}).Payload)
		w.expectEnd(a.Key, runner.Observation{Outcome: runner.Succeeded})
		w.r.Stop(a.Key)
		w.close(a.Key, 3)
	})
	t.Run("what it never started", func(t *testing.T) {
		w := watch(t, h)
		w.r.Stop(runner.Key{Job: "never", Run: 1})
		w.close(runner.Key{Job: "never", Run: 1}, 0)
	})
	t.Run("as it ends by itself", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true})
		a := w.start(job.Payload)
		job.Ready(1)
		w.expect(a.Key, runner.Starting, runner.Running)
		job.Release(1)
		w.r.Stop(a.Key)
		if end := w.end(a.Key); end.Outcome != runner.Succeeded && end.Outcome != runner.Stopped {
			t.Errorf("ended as %+v, want Succeeded or Stopped", end)
		}
		w.close(a.Key, 3)
	})
}

func testGangs(t *testing.T, h Harness) {
	t.Helper()
	t.Run("succeeds when all do", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{}, Worker{Waits: true}, Worker{})
		a := w.start(job.Payload)
		w.expect(a.Key, runner.Starting, runner.Running)
		job.Release(2)
		w.expectEnd(a.Key, runner.Observation{Outcome: runner.Succeeded})
		w.close(a.Key, 3)
	})
	t.Run("fails when one does, and stops the others", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true}, Worker{Waits: true, Code: 9, Message: "rank 1 diverged"}, Worker{Waits: true, Ignores: true})
		a := w.start(job.Payload)
		for n := 1; n <= 3; n++ {
			job.Ready(n)
		}
		job.Release(2)
		w.expectEnd(a.Key, runner.Observation{Outcome: runner.Failed, ExitCode: 9, Message: "rank 1 diverged"})
	})
	t.Run("is stopped as a whole", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{}, Worker{Waits: true})
		a := w.start(job.Payload)
		job.Ready(2)
		w.expect(a.Key, runner.Starting, runner.Running)
		w.r.Stop(a.Key)
		w.expectEnd(a.Key, runner.Observation{Outcome: runner.Stopped})
	})
	t.Run("is lost when one is", func(t *testing.T) {
		w := watch(t, h)
		job := h.Job(t, Worker{Waits: true}, Worker{Waits: true})
		a := w.start(job.Payload)
		job.Ready(1)
		job.Ready(2)
		w.expect(a.Key, runner.Starting, runner.Running)
		h.Lose(t, a.Key, 1)
		w.expectEnd(a.Key, runner.Observation{Outcome: runner.Lost})
		w.close(a.Key, 3)
	})
}

func testRestarts(t *testing.T, h Harness) {
	t.Helper()
	succeeded := runner.Observation{Outcome: runner.Succeeded}
	t.Run("finds what is running", func(t *testing.T) {
		before := watch(t, h)
		job := h.Job(t, Worker{Waits: true}, Worker{Waits: true})
		a := before.start(job.Payload)
		job.Ready(1)
		job.Ready(2)
		before.expect(a.Key, runner.Starting, runner.Running)
		before.close(a.Key, 2)

		after := watch(t, h)
		after.r.Start(a)
		after.expect(a.Key, runner.Running)
		job.Release(1)
		job.Release(2)
		after.expectEnd(a.Key, succeeded)
		after.close(a.Key, 2)
	})
	t.Run("finds what ended meanwhile", func(t *testing.T) {
		before := watch(t, h)
		job := h.Job(t, Worker{Waits: true, Code: 4, Message: "alone"})
		a := before.start(job.Payload)
		job.Ready(1)
		before.close(a.Key, -1)
		job.Release(1)

		after := watch(t, h)
		after.r.Start(a)
		after.expectEnd(a.Key, runner.Observation{Outcome: runner.Failed, ExitCode: 4, Message: "alone"})
	})
	t.Run("stops what it found", func(t *testing.T) {
		before := watch(t, h)
		job := h.Job(t, Worker{Waits: true})
		a := before.start(job.Payload)
		job.Ready(1)
		before.close(a.Key, -1)

		after := watch(t, h)
		after.r.Start(a)
		after.r.Stop(a.Key)
		after.expectEnd(a.Key, runner.Observation{Outcome: runner.Stopped})
	})
	t.Run("at once after the start", func(t *testing.T) {
		before := watch(t, h)
		job := h.Job(t, Worker{Waits: true}, Worker{Waits: true})
		a := before.start(job.Payload)
		before.close(a.Key, -1)

		after := watch(t, h)
		after.r.Start(a)
		job.Ready(1)
		job.Ready(2)
		job.Release(1)
		job.Release(2)
		after.expectEnd(a.Key, succeeded)
	})
	t.Run("tells again how an attempt ended", func(t *testing.T) {
		before := watch(t, h)
		a := before.start(h.Job(t, Worker{}).Payload)
		before.expectEnd(a.Key, succeeded)
		before.close(a.Key, 3)

		after := watch(t, h)
		after.r.Start(a)
		after.expectEnd(a.Key, succeeded)
	})
}

// NewAttempt returns the first attempt of a new job.
func NewAttempt(tb testing.TB, payload string) runner.Attempt {
	tb.Helper()
	id := fmt.Sprintf("%x", time.Now().UnixNano()) // in one process no two are taken at the same time
	return runner.Attempt{
		Key: runner.Key{Job: id, Run: 1}, JobName: "job-" + id, Queue: "queue", Share: "share",
		TrainingJobName: "AWSBatch" + id, TrainingJobARN: "arn:aws:sagemaker:us-east-1:000000000000:training-job/AWSBatch" + id,
		Payload: payload,
	}
}
