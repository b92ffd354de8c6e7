package process

import (
	"path/filepath"
	"strconv"

	"github.com/bursar-io/bursar/internal/runner"
)

// Names below the data directory; see the package comment.
const (
	jobsDir        = "jobs"
	attemptFile    = "attempt.json"
	stopFile       = "stop"
	hostsFile      = "hosts"
	failureFile    = "output/failure"
	containerDir   = "ml"
	stagingDir     = "opt"
	launchFile     = "launch.json"
	claimFile      = "claim.json"
	upFile         = "up.json"
	exitFile       = "exit.json"
	logSuffix      = ".log"
	containerRoot  = "/opt/ml"
	checkpointsDir = "checkpoints"
)

// The streams of a worker.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// CheckpointDir is where the checkpoints of a job lie, whatever the attempt.
func CheckpointDir(dir, job string) string {
	return filepath.Join(dir, jobsDir, job, checkpointsDir)
}

// AttemptDir is the directory of one attempt. Below it, model and output hold
// what its workers left.
func AttemptDir(dir string, key runner.Key) string {
	return filepath.Join(dir, jobsDir, key.Job, "attempts", strconv.Itoa(key.Run))
}

// workerDir is the directory of worker n, counted from 1, of an attempt.
func workerDir(attemptDir string, n int) string {
	return filepath.Join(attemptDir, "worker-"+strconv.Itoa(n))
}

// hostName is what worker n is called in its own environment, as in SageMaker.
func hostName(n int) string { return "algo-" + strconv.Itoa(n) }
