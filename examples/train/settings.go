package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// settings is what the environment tells a worker.
type settings struct {
	steps           int
	stepTime        time.Duration // the least time that a step takes: what a larger model would need
	checkpointEvery int           // steps
	logEvery        int           // steps
	features        int
	samples         int // over all workers
	batch           int
	learningRate    float64
	seed            uint64

	rank, workers int

	checkpointDir string
	modelDir      string
}

// readSettings reads the SM_* variables; what is not set has a default.
func readSettings(getenv func(string) string) (settings, error) {
	h := hyperparameters{getenv: getenv}
	s := settings{
		steps:           h.positive("STEPS", 500),
		stepTime:        time.Duration(h.positive("STEP_MS", 20)) * time.Millisecond,
		checkpointEvery: h.positive("CHECKPOINT_EVERY", 50),
		logEvery:        h.positive("LOG_EVERY", 10),
		features:        h.positive("FEATURES", 16),
		samples:         h.positive("SAMPLES", 2000),
		batch:           h.positive("BATCH", 32),
		learningRate:    h.rate("LEARNING_RATE", 0.1),
		seed:            uint64(h.positive("SEED", 1)),
		checkpointDir:   cmp.Or(getenv("SM_CHECKPOINT_DIR"), "/opt/ml/checkpoints"),
		modelDir:        cmp.Or(getenv("SM_MODEL_DIR"), "/opt/ml/model"),
	}
	if h.err != nil {
		return settings{}, h.err
	}
	var err error
	s.rank, s.workers, err = readRank(getenv)
	if err == nil && s.samples < s.workers {
		err = fmt.Errorf("hyperparameter samples is %d; %d workers need at least one each", s.samples, s.workers)
	}
	return s, err
}

// readRank finds this worker's place among SM_HOSTS.
func readRank(getenv func(string) string) (rank, workers int, err error) {
	list, host := getenv("SM_HOSTS"), getenv("SM_CURRENT_HOST")
	if list == "" {
		return 0, 1, nil
	}
	var hosts []string
	if err := json.Unmarshal([]byte(list), &hosts); err != nil {
		return 0, 0, fmt.Errorf("SM_HOSTS is %q, which is no JSON list of names: %w", list, err)
	}
	rank = slices.Index(hosts, host)
	if rank < 0 {
		return 0, 0, fmt.Errorf("SM_CURRENT_HOST is %q, which is none of SM_HOSTS %v", host, hosts)
	}
	return rank, len(hosts), nil
}

// hyperparameters reads SM_HP_* and keeps the first error.
type hyperparameters struct {
	getenv func(string) string
	err    error
}

func (h *hyperparameters) positive(name string, otherwise int) int {
	text := h.getenv("SM_HP_" + name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		h.fail(name, text, "a positive whole number")
	}
	return n
}

func (h *hyperparameters) rate(name string, otherwise float64) float64 {
	text := h.getenv("SM_HP_" + name)
	if text == "" {
		return otherwise
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) {
		h.fail(name, text, "a positive number")
	}
	return x
}

func (h *hyperparameters) fail(name, text, want string) {
	if h.err == nil {
		h.err = fmt.Errorf("SM_HP_%s is %q; it must be %s", name, text, want)
	}
}
