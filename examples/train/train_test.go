package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment is a worker's environment with directories of its own and the
// quickest of steps.
func environment(t *testing.T, more map[string]string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{
		"SM_CHECKPOINT_DIR": filepath.Join(dir, "checkpoints"),
		"SM_MODEL_DIR":      filepath.Join(dir, "model"),
		"SM_HP_STEPS":       "200",
		"SM_HP_STEP_MS":     "1",
	}
	maps.Copy(env, more)
	return func(name string) string { return env[name] }
}

func TestTrainingLearns(t *testing.T) {
	var out bytes.Buffer
	env := environment(t, nil)
	if err := run(t.Context(), env, &out); err != nil {
		t.Fatal(err)
	}
	var step int
	var loss, accuracy float64
	if _, err := fmt.Sscanf(lastLine(&out), "finished step=%d loss=%f accuracy=%f", &step, &loss, &accuracy); err != nil {
		t.Fatalf("last line %q: %v", lastLine(&out), err)
	}
	if step != 200 || loss > 0.4 || accuracy < 0.85 {
		t.Errorf("finished at step %d with loss %v and accuracy %v; a model that learned has less than 0.4 and more than 0.85", step, loss, accuracy)
	}
	if _, err := os.Stat(filepath.Join(env("SM_MODEL_DIR"), "model.json")); err != nil {
		t.Error(err)
	}
}

// stopper ends a training when it prints its first progress.
type stopper struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("progress")) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestStoppedTrainingGoesOnWhereItWas(t *testing.T) {
	env := environment(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := &stopper{stop: cancel}
	if err := run(ctx, env, first); !errors.Is(err, errStopped) {
		t.Fatalf("got error %v, want errStopped", err)
	}
	var stopped, saved int
	if _, err := fmt.Sscanf(lastLine(&first.Buffer), "stopped step=%d checkpoint=%d", &stopped, &saved); err != nil || stopped != saved || stopped == 0 {
		t.Fatalf("last line %q (%v); want a checkpoint at the step it stopped at", lastLine(&first.Buffer), err)
	}

	var second, whole bytes.Buffer
	if err := run(t.Context(), env, &second); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("resumes step=%d ", stopped); !strings.HasPrefix(second.String(), want) {
		t.Errorf("second run begins with %q, want %q", second.String(), want)
	}
	if err := run(t.Context(), environment(t, nil), &whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lastLine(&whole), lastLine(&second)); diff != "" {
		t.Errorf("an interrupted training ends otherwise than an uninterrupted one (-whole +resumed):\n%s", diff)
	}
}

func TestWorkersShareTheData(t *testing.T) {
	hosts := `["algo-1","algo-2","algo-3"]`
	total := 0
	for rank, host := range []string{"algo-1", "algo-2", "algo-3"} {
		env := environment(t, map[string]string{"SM_HOSTS": hosts, "SM_CURRENT_HOST": host, "SM_HP_STEPS": "3", "SM_HP_SAMPLES": "100"})
		s, err := readSettings(env)
		if err != nil {
			t.Fatal(err)
		}
		total += len(makeData(s))
		if err := run(t.Context(), env, new(bytes.Buffer)); err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(env("SM_CHECKPOINT_DIR"), "checkpoint.json"))
		if wrote := err == nil; wrote != (rank == 0) {
			t.Errorf("rank %d wrote a checkpoint: %v", rank, wrote)
		}
	}
	if total != 100 {
		t.Errorf("the workers' parts have %d samples together, want 100", total)
	}
}

func TestWrongSettings(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"no number", map[string]string{"SM_HP_STEPS": "many"}, `SM_HP_STEPS is "many"; it must be a positive whole number`},
		{"negative", map[string]string{"SM_HP_BATCH": "-1"}, `SM_HP_BATCH is "-1"; it must be a positive whole number`},
		{"no rate", map[string]string{"SM_HP_LEARNING_RATE": "NaN"}, `SM_HP_LEARNING_RATE is "NaN"; it must be a positive number`},
		{"unknown host", map[string]string{"SM_HOSTS": `["a"]`, "SM_CURRENT_HOST": "b"}, `SM_CURRENT_HOST is "b", which is none of SM_HOSTS [a]`},
		{"no host list", map[string]string{"SM_HOSTS": `a,b`}, `SM_HOSTS is "a,b", which is no JSON list`},
		{"too few samples", map[string]string{"SM_HOSTS": `["a","b"]`, "SM_CURRENT_HOST": "b", "SM_HP_SAMPLES": "1"}, `hyperparameter samples is 1; 2 workers need at least one each`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := run(t.Context(), environment(t, tt.env), new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestCheckpointOfAnotherModelIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, features := range []string{"4", "5"} {
		env := environment(t, map[string]string{"SM_CHECKPOINT_DIR": dir, "SM_HP_FEATURES": features, "SM_HP_STEPS": "2"})
		err := run(t.Context(), env, new(bytes.Buffer))
		if refused := err != nil && strings.Contains(err.Error(), "has 4 weights, but hyperparameter features is 5"); refused != (features == "5") {
			t.Errorf("with %s features: error %v", features, err)
		}
	}
}

func lastLine(b *bytes.Buffer) string {
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	return lines[len(lines)-1]
}
