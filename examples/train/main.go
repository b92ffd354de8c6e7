// Command train is a small but real training program: logistic regression by
// mini-batch gradient descent, on data that it makes from a seed. It lives by
// SageMaker's training container contract as any training program would:
// hyperparameters from SM_HP_*, its rank from SM_HOSTS and SM_CURRENT_HOST,
// checkpoints in SM_CHECKPOINT_DIR, the trained model in SM_MODEL_DIR.
//
// It writes a checkpoint every few steps, and another when it is told to stop
// with SIGTERM; started again, it goes on at the step that it had reached.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// exitStopped is the status of a program ended by SIGTERM, so that a run which
// was cut short is never taken for one that finished.
const exitStopped = 128 + int(syscall.SIGTERM)

// errStopped is returned by train when it was told to stop before its last step.
var errStopped = errors.New("told to stop")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Getenv, os.Stdout)
	cancel()
	switch {
	case errors.Is(err, errStopped):
		os.Exit(exitStopped)
	case err != nil:
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

// run trains as the environment says and writes its progress to out, one
// event a line: its name, then key=value pairs.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	s, err := readSettings(getenv)
	if err != nil {
		return err
	}
	t := trainer{settings: s, data: makeData(s), out: out}
	if err := t.resume(); err != nil {
		return err
	}
	if err := t.train(ctx); err != nil {
		return err
	}
	return t.finish()
}

// trainer is one worker's training under way.
type trainer struct {
	settings
	data  []sample
	model model
	step  int // steps done, in earlier runs too
	saved int // the step that the newest checkpoint holds
	out   io.Writer
}

// resume goes on from the newest checkpoint, or begins.
func (t *trainer) resume() error {
	c, found, err := readCheckpoint(t.checkpointPath())
	if err != nil {
		return err
	}
	if !found {
		t.model = newModel(t.features)
		t.say("begins step=0 of=%d rank=%d workers=%d samples=%d", t.steps, t.rank, t.workers, len(t.data))
		return nil
	}
	if len(c.Model.Weights) != t.features {
		return fmt.Errorf("checkpoint %s has %d weights, but hyperparameter features is %d", t.checkpointPath(), len(c.Model.Weights), t.features)
	}
	t.model, t.step, t.saved = c.Model, c.Step, c.Step
	t.say("resumes step=%d of=%d rank=%d workers=%d samples=%d", t.step, t.steps, t.rank, t.workers, len(t.data))
	return nil
}

// train takes the steps that are left. When ctx ends it writes a last
// checkpoint and returns errStopped.
func (t *trainer) train(ctx context.Context) error {
	pace := time.NewTicker(t.stepTime)
	defer pace.Stop()
	for t.step < t.steps {
		select {
		case <-ctx.Done():
			return t.stop()
		case <-pace.C:
		}
		t.model.descend(t.batchOf(t.step), t.learningRate)
		t.step++
		if t.step%t.logEvery == 0 {
			t.report("progress")
		}
		if t.step%t.checkpointEvery == 0 {
			if err := t.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// batchOf draws the step's mini-batch. It depends on seed and step alone, so
// that a resumed training sees what an uninterrupted one would have seen.
func (t *trainer) batchOf(step int) []sample {
	draw := rand.New(rand.NewPCG(t.seed, uint64(step)))
	batch := make([]sample, t.batch)
	for i := range batch {
		batch[i] = t.data[draw.IntN(len(t.data))]
	}
	return batch
}

func (t *trainer) stop() error {
	if err := t.save(); err != nil {
		return err
	}
	t.say("stopped step=%d checkpoint=%d", t.step, t.saved)
	return errStopped
}

// save writes a checkpoint. The workers train alike, so the first writes for all.
func (t *trainer) save() error {
	if t.rank != 0 || t.saved == t.step {
		return nil
	}
	if err := writeJSON(t.checkpointPath(), checkpoint{Step: t.step, Model: t.model}); err != nil {
		return err
	}
	t.saved = t.step
	return nil
}

func (t *trainer) finish() error {
	if err := t.save(); err != nil {
		return err
	}
	t.report("finished")
	if t.rank != 0 {
		return nil
	}
	return writeJSON(filepath.Join(t.modelDir, "model.json"), t.model)
}

func (t *trainer) report(event string) {
	loss, accuracy := t.model.evaluate(t.data)
	t.say("%s step=%d loss=%.4f accuracy=%.4f", event, t.step, loss, accuracy)
}

func (t *trainer) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *trainer) checkpointPath() string { return filepath.Join(t.checkpointDir, "checkpoint.json") }
