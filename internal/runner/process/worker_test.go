package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/runnertest"
)

// bench is a runner with a directory of its own, and what it reports.
type bench struct {
	*runnertest.Recorder
	*harness
	t *testing.T
	r *Runner
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Recorder: runnertest.NewRecorder(t), harness: &harness{dir: t.TempDir()}, t: t}
	b.open()
	return b
}

// open opens a runner on the directory, which outlives it.
func (b *bench) open() {
	b.t.Helper()
	r, ok := b.New(b.t, b.Report).(*Runner)
	if !ok {
		b.t.Fatal("the harness makes other runners")
	}
	b.r = r
	b.t.Cleanup(func() { r.Close() })
}

func (b *bench) start(payload string) runner.Attempt {
	b.t.Helper()
	a := runnertest.NewAttempt(b.t, payload)
	b.r.Start(a)
	return a
}

// run runs a job to its end.
func (b *bench) run(payload string) (runner.Attempt, runner.Observation) {
	b.t.Helper()
	a := b.start(payload)
	return a, b.AwaitEvent(a.Key, runner.Ended)
}

// output is what a worker has written to its stdout.
func (b *bench) output(key runner.Key, worker int) string {
	b.t.Helper()
	return readAll(b.t, OpenLog(b.t.Context(), b.dir, key, worker, Stdout, false, nil))
}

// shell is a payload that runs a script in each of a number of workers.
func shell(t *testing.T, workers int, more map[string]any, script string) string {
	t.Helper()
	return payload(t, workers, more, "/bin/sh", "-c", script)
}

// survivors are the processes that still carry a worker's mark.
func survivors(t *testing.T, key runner.Key, worker int) []identity {
	t.Helper()
	found, err := processesWith(workerVariable+"="+workerMark(key, worker), "any")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFailuresSayWhatWentWrong(t *testing.T) {
	dir := t.TempDir()
	writeScript(t, filepath.Join(dir, "no-interpreter"), "#!/does/not/exist\n")
	writeScript(t, filepath.Join(dir, "no-program"), "\x00\x01\x02")
	if err := os.WriteFile(filepath.Join(dir, "not-executable"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	channel := func(uri string) map[string]any {
		return map[string]any{"InputDataConfig": []any{map[string]any{
			"ChannelName": "train", "DataSource": map[string]any{"S3DataSource": map[string]any{"S3Uri": uri}},
		}}}
	}
	localPath := func(path string) map[string]any {
		return map[string]any{"CheckpointConfig": map[string]any{"S3Uri": "s3://bucket", "LocalPath": path}}
	}
	tests := []struct {
		name    string
		payload string
		code    int
		message string
	}{
		{"nothing to run", payload(t, 1, nil), 0, "AlgorithmSpecification.ContainerEntrypoint is missing"},
		{"not in PATH", payload(t, 1, nil, "pyton3"), 127, `ContainerEntrypoint names "pyton3", which is not in the PATH`},
		{"no such file", payload(t, 1, nil, "/does/not/exist"), 127, "ContainerEntrypoint names /does/not/exist, which does not exist"},
		{"no such interpreter", payload(t, 1, nil, dir+"/no-interpreter"), 127, "interpreter that its first line names does not exist"},
		{"not executable", payload(t, 1, nil, dir+"/not-executable"), 126, "may not be executed"},
		{"a directory", payload(t, 1, nil, dir), 126, "which is a directory"},
		{"no program", payload(t, 1, nil, dir+"/no-program"), 126, "neither a program for this machine nor a script"},
		{"another scheme", shell(t, 1, channel("s3://bucket/train"), "true"), 0, `the channel train of InputDataConfig is at "s3://bucket/train"; jobs here read from this machine`},
		{"no such data", shell(t, 1, channel("file:///does/not/exist"), "true"), 0, "is at /does/not/exist, which does not exist"},
		{"relative data", shell(t, 1, channel("file://data"), "true"), 0, "must be file:// and an absolute path"},
		{"checkpoints elsewhere", shell(t, 1, localPath("/ckpt"), "true"), 0, `CheckpointConfig.LocalPath is "/ckpt"; checkpoints are kept below /opt/ml`},
		{"checkpoints above", shell(t, 1, localPath("/opt/ml/../ckpt"), "true"), 0, "checkpoints are kept below /opt/ml"},
		{"checkpoints in the way", shell(t, 1, localPath("/opt/ml/input/config"), "true"), 0, "where a training job has something else"},
		{"what it said last", shell(t, 1, nil, "echo 'Traceback:' >&2; echo 'ValueError: bad shape' >&2; echo >&2; exit 1"), 1, "algo-1 ended with an error: ValueError: bad shape"},
		{"nothing said", shell(t, 1, nil, "exit 5"), 5, "algo-1 ended with an error"},
		{"a signal", shell(t, 1, nil, "kill -SEGV $$"), 139, "algo-1 was killed by SIGSEGV"},
		{"no text", shell(t, 1, nil, `printf 'a\377b' >$SM_OUTPUT_FAILURE; exit 1`), 1, "a\ufffdb"},
		{"a pipe in its place", shell(t, 1, nil, `mkfifo $SM_OUTPUT_FAILURE; exit 1`), 1, "algo-1 ended with an error"},
		{"more than is kept", shell(t, 1, nil, `printf '%05000d' 1 >$SM_OUTPUT_FAILURE; exit 1`), 1, strings.Repeat("0", 1024)},
	}
	b := newBench(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, end := b.run(tt.payload)
			if end.Outcome != runner.Failed || end.ExitCode != tt.code {
				t.Errorf("ended %s with %d, want failed with %d", end.Outcome, end.ExitCode, tt.code)
			}
			if !strings.Contains(end.Message, tt.message) || len([]rune(end.Message)) > maxMessage {
				t.Errorf("message is %q, want %q in it", end.Message, tt.message)
			}
		})
	}
}

func TestNothingOfAWorkerOutlivesIt(t *testing.T) {
	b := newBench(t)
	// One descendant stays in the group, one in a session of its own, whose
	// parent has ended, and all ignore SIGTERM.
	a, end := b.run(shell(t, 1, nil, `trap '' TERM
		sleep 1000 &
		setsid sh -c 'sleep 1000 & sleep 1000' &
		(setsid sleep 1000 &)
		exit 0`))
	if end.Outcome != runner.Succeeded {
		t.Errorf("ended %+v", end)
	}
	if left := survivors(t, a.Key, 1); len(left) > 0 {
		t.Errorf("left over: %+v", left)
	}
}

func TestALostWorkersDescendantsAreKilled(t *testing.T) {
	b := newBench(t)
	up := fifo(t, filepath.Join(t.TempDir(), "up"))
	a := b.start(shell(t, 1, nil, `trap '' TERM
		setsid sh -c 'echo >>'`+up.Name()+`'; sleep 1000' &
		sleep 1000`))
	b.AwaitEvent(a.Key, runner.Running)
	readByte(t, up)
	b.Lose(t, a.Key, 1)
	if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Lost {
		t.Errorf("ended %+v", end)
	}
	if left := survivors(t, a.Key, 1); len(left) > 0 {
		t.Errorf("left over: %+v", left)
	}
}

func TestAShimToldToEndByAnotherIsLostNotStopped(t *testing.T) {
	b := newBench(t)
	job := b.Job(t, runnertest.Worker{Waits: true})
	a := b.start(job.Payload)
	job.Ready(1)
	claim := claimOf(t, b.dir, a.Key, 1)
	if err := unix.Kill(claim.PID, unix.SIGTERM); err != nil { // as a machine does that shuts down
		t.Fatal(err)
	}
	if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Lost {
		t.Errorf("ended %+v, want lost", end)
	}
}

func claimOf(t *testing.T, dir string, key runner.Key, worker int) identity {
	t.Helper()
	claim, found, err := readRecord[identity](filepath.Join(workerDir(AttemptDir(dir, key), worker), claimFile))
	if err != nil || !found {
		t.Fatalf("claim of worker %d: found %v, %v", worker, found, err)
	}
	return claim
}

// stranger is a process that has nothing to do with any worker.
func stranger(t *testing.T) (*exec.Cmd, identity) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, identity{PID: cmd.Process.Pid, Start: start, Boot: boot}
}

// A claim whose process id another process has by now must not lead to it.
func TestAnIDGivenOutAgainIsNotTheShims(t *testing.T) {
	cmd, id := stranger(t)
	for name, forge := range map[string]func(identity) identity{
		"another start": func(id identity) identity { id.Start--; return id },
		"another boot":  func(id identity) identity { id.Boot = "before"; return id },
		"no process":    func(id identity) identity { id.PID = 0; return id },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			a := runnertest.NewAttempt(t, shell(t, 1, nil, "true"))
			if _, err := b.r.prepare(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			worker := workerDir(AttemptDir(b.dir, a.Key), 1)
			if err := createRecord(filepath.Join(worker, claimFile), forge(id)); err != nil {
				t.Fatal(err)
			}
			b.r.Start(a)
			b.r.Stop(a.Key)
			if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Lost {
				t.Errorf("ended %+v, want lost", end)
			}
			if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the other process: %v", err)
			}
		})
	}
	h, err := openProcess(id, id.Boot)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if h.hasEnded() {
		t.Error("the other process has ended")
	}
}

func TestARecordCutShortIsALostWorkers(t *testing.T) {
	for _, file := range []string{claimFile, exitFile} {
		t.Run(file, func(t *testing.T) {
			b := newBench(t)
			a := runnertest.NewAttempt(t, shell(t, 1, nil, "true"))
			if _, err := b.r.prepare(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			worker := workerDir(AttemptDir(b.dir, a.Key), 1)
			for _, name := range []string{claimFile, file} {
				if err := os.WriteFile(filepath.Join(worker, name), []byte(`{"pid": 1`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b.r.Start(a)
			if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Lost {
				t.Errorf("ended %+v, want lost", end)
			}
		})
	}
}

func TestOnlyOneShimGetsAWorker(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "started")
	a := runnertest.NewAttempt(t, shell(t, 1, nil, "echo $$ >>"+out))
	if _, err := b.r.prepare(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	worker := workerDir(AttemptDir(b.dir, a.Key), 1)
	var shims []*exec.Cmd
	for range 8 {
		argv := append(slices.Clone(b.r.cfg.Shim), worker)
		shim := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		shim.SysProcAttr = b.r.isolate.attributes()
		if err := shim.Start(); err != nil {
			t.Fatal(err)
		}
		shims = append(shims, shim)
	}
	for _, shim := range shims {
		if err := shim.Wait(); err != nil {
			t.Errorf("shim: %v", err)
		}
	}
	started, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(started), "\n"); n != 1 {
		t.Errorf("the worker was started %d times", n)
	}
	b.r.Start(a)
	if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Succeeded {
		t.Errorf("ended %+v", end)
	}
}

// A stop that comes when no shim has claimed its worker yet must reach those
// that still will.
func TestAStopBeforeTheClaimIsNotLost(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "started")
	a := runnertest.NewAttempt(t, shell(t, 1, nil, "echo >"+out))
	if _, err := b.r.prepare(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(AttemptDir(b.dir, a.Key), stopFile), nil, true); err != nil {
		t.Fatal(err)
	}
	b.r.Start(a)
	if end := b.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Stopped {
		t.Errorf("ended %+v, want stopped", end)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the worker was started: %v", err)
	}
}

func TestCheckpoints(t *testing.T) {
	b := newBench(t)
	steps := t.TempDir()
	next := fifo(t, filepath.Join(steps, "next"))
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	a := b.start(shell(t, 1, nil, `
		read line <`+next.Name()+`
		touch -d @`+fmt.Sprint(old.Unix())+` $SM_CHECKPOINT_DIR/step-1
		touch $SM_CHECKPOINT_DIR/step-2.tmp $SM_CHECKPOINT_DIR/step-2.partial
		mkdir $SM_CHECKPOINT_DIR/step-3.tmp && touch $SM_CHECKPOINT_DIR/step-3.tmp/weights
		read line <`+next.Name()+`
		mkdir $SM_CHECKPOINT_DIR/step-4 && touch $SM_CHECKPOINT_DIR/step-4/weights
		read line <`+next.Name()+`
		touch -d '2100-01-01' $SM_CHECKPOINT_DIR/step-5`))
	b.AwaitEvent(a.Key, runner.Running)
	proceed := func() {
		if _, err := next.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
	proceed()
	first := b.AwaitEvent(a.Key, runner.Checkpointed)
	if !first.Checkpoint.Equal(old) {
		t.Errorf("first checkpoint is of %v, want %v", first.Checkpoint, old)
	}
	proceed()
	second := b.Await(a.Key, "second checkpoint", func(o runner.Observation) bool {
		return o.Event == runner.Checkpointed && o.Checkpoint.After(old)
	})
	weights, err := os.Stat(filepath.Join(CheckpointDir(b.dir, a.Job), "step-4", "weights"))
	if err != nil {
		t.Fatal(err)
	}
	if !second.Checkpoint.Equal(weights.ModTime()) {
		t.Errorf("second checkpoint is of %v, want %v", second.Checkpoint, weights.ModTime())
	}
	proceed()
	end := b.AwaitEvent(a.Key, runner.Ended)
	if !end.Checkpoint.After(second.Checkpoint) || end.Checkpoint.After(time.Now()) {
		t.Errorf("last checkpoint is of %v, want the present", end.Checkpoint)
	}
}

func TestCheckpointsOutliveAttempts(t *testing.T) {
	b := newBench(t)
	first, _ := b.run(shell(t, 1, nil, "echo 7 >$SM_CHECKPOINT_DIR/step; exit 1"))
	second := first
	second.Run = 2
	second.Payload = shell(t, 1, nil, "cat $SM_CHECKPOINT_DIR/step")
	b.r.Start(second)
	if end := b.AwaitEvent(second.Key, runner.Ended); end.Outcome != runner.Succeeded || end.Checkpoint.IsZero() {
		t.Errorf("ended %+v", end)
	}
	if got := b.output(second.Key, 1); got != "7\n" {
		t.Errorf("the second attempt found %q", got)
	}
}

func TestWorkersKnowWhoAndWhereTheyAre(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("DATABASE_PASSWORD", "secret")
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "rows 1%.csv"), []byte("1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	more := map[string]any{
		"HyperParameters": map[string]any{"learning-rate": "0.1", "name": "a b", "a=b": "x"},
		"Environment":     map[string]any{"SEED": "7", "BURSAR_JOB_ID": "forged", "PATH": "/opt/venv/bin:/usr/bin:/bin"},
		"InputDataConfig": []any{
			map[string]any{"ChannelName": "train", "ContentType": "text/csv", "DataSource": map[string]any{
				"S3DataSource": map[string]any{"S3Uri": "file://" + data}}},
			map[string]any{"ChannelName": "one-file", "DataSource": map[string]any{
				"FileSystemDataSource": map[string]any{"DirectoryPath": "file://localhost" + data + "/rows 1%25.csv"}}},
		},
	}
	const script = `env -0
		for f in hyperparameters resourceconfig inputdataconfig; do printf '%s=' $f; cat $SM_INPUT_CONFIG_DIR/$f.json; printf '\0'; done
		printf 'train=';    cat "$SM_CHANNEL_TRAIN/rows 1%.csv";    printf '\0'
		printf 'one-file='; cat "$SM_CHANNEL_ONE_FILE/rows 1%.csv"; printf '\0'
		echo model >$SM_MODEL_DIR/$SM_CURRENT_HOST; echo data >$SM_OUTPUT_DATA_DIR/$SM_CURRENT_HOST
		pwd -P >&2`
	a, end := b.run(shell(t, 2, more, script))
	if end.Outcome != runner.Succeeded {
		t.Fatalf("ended %+v", end)
	}
	root := "/opt/ml"
	if !b.r.ContainerPaths() {
		root = filepath.Join(workerDir(AttemptDir(b.dir, a.Key), 2), "ml")
	}
	said := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(b.output(a.Key, 2), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		said[name] = value
	}
	for name, want := range map[string]string{
		"SEED": "7", "PATH": "/opt/venv/bin:/usr/bin:/bin", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
		"BURSAR_JOB_ID": a.Job, "BURSAR_JOB_NAME": a.JobName, "BURSAR_QUEUE": "queue", "BURSAR_SHARE": "share", "BURSAR_ATTEMPT": "1",
		"TRAINING_JOB_NAME": a.TrainingJobName, "TRAINING_JOB_ARN": a.TrainingJobARN,
		"SM_MODEL_DIR": root + "/model", "SM_OUTPUT_DIR": root + "/output", "SM_OUTPUT_DATA_DIR": root + "/output/data",
		"SM_INPUT_DIR": root + "/input", "SM_INPUT_CONFIG_DIR": root + "/input/config", "SM_CHECKPOINT_DIR": root + "/checkpoints",
		"SM_CHANNELS": `["one-file","train"]`, "SM_CHANNEL_TRAIN": root + "/input/data/train", "SM_CHANNEL_ONE_FILE": root + "/input/data/one-file",
		"SM_HPS":              `{"a=b":"x","learning-rate":0.1,"name":"a b"}`,
		"SM_HP_LEARNING_RATE": "0.1", "SM_HP_NAME": "a b",
		"SM_USER_ARGS": `["--a=b","x","--learning-rate","0.1","--name","a b"]`,
		"SM_HOSTS":     `["algo-1","algo-2"]`, "SM_CURRENT_HOST": "algo-2", "SM_CURRENT_HOST_RANK": "1", "SM_HOST_COUNT": "2",
		"SM_CURRENT_INSTANCE_TYPE": "ml.g5.xlarge", "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster", "SM_NETWORK_INTERFACE_NAME": "lo",
		"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "0", "NODE_RANK": "1",
		"PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_MASTER_PORT": said["MASTER_PORT"],
		"hyperparameters": `{"a=b":"x","learning-rate":"0.1","name":"a b"}`,
		"inputdataconfig": `{"one-file":{"TrainingInputMode":"File","S3DistributionType":"FullyReplicated","RecordWrapperType":"None"},` +
			`"train":{"ContentType":"text/csv","TrainingInputMode":"File","S3DistributionType":"FullyReplicated","RecordWrapperType":"None"}}`,
		"resourceconfig": `{"current_host":"algo-2","current_instance_type":"ml.g5.xlarge","current_group_name":"homogeneousCluster",` +
			`"hosts":["algo-1","algo-2"],"instance_groups":[{"instance_group_name":"homogeneousCluster","instance_type":"ml.g5.xlarge",` +
			`"hosts":["algo-1","algo-2"]}],"network_interface_name":"lo"}`,
		"train": "1,2\n", "one-file": "1,2\n",
	} {
		if said[name] != want {
			t.Errorf("%s is %q, want %q", name, said[name], want)
		}
	}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "DATABASE_PASSWORD"} {
		if value, ok := said[name]; ok {
			t.Errorf("%s is %q; the server's secrets must stay with it", name, value)
		}
	}
	if said["MASTER_PORT"] == "" || said["MASTER_PORT"] == "0" {
		t.Errorf("MASTER_PORT is %q", said["MASTER_PORT"])
	}
	var training map[string]any
	if err := json.Unmarshal([]byte(said["SM_TRAINING_ENV"]), &training); err != nil || training["model_dir"] != root+"/model" {
		t.Errorf("SM_TRAINING_ENV is %q: %v", said["SM_TRAINING_ENV"], err)
	}
	for _, path := range []string{"model/algo-1", "model/algo-2", "output/data/algo-2"} {
		if _, err := os.Stat(filepath.Join(AttemptDir(b.dir, a.Key), path)); err != nil {
			t.Errorf("what the workers left: %v", err)
		}
	}
}

// Shells drop variables whose names they could not set themselves.
func TestVariablesKeepTheHyphensOfNames(t *testing.T) {
	b := newBench(t)
	more := map[string]any{"HyperParameters": map[string]any{"learning-rate": "0.1"}}
	a, _ := b.run(payload(t, 1, more, "/usr/bin/env"))
	if out := b.output(a.Key, 1); !strings.Contains(out, "\nSM_HP_LEARNING-RATE=0.1\n") {
		t.Errorf("no SM_HP_LEARNING-RATE in %s", out)
	}
}

func TestAWorkerHasOptMLForItself(t *testing.T) {
	b := newBench(t)
	if !b.r.ContainerPaths() {
		t.Skip("this machine allows no mount namespaces")
	}
	before := optEntries(t)
	more := map[string]any{"CheckpointConfig": map[string]any{"S3Uri": "s3://bucket", "LocalPath": "/opt/ml/ckpt/mine"}}
	a, end := b.run(shell(t, 2, more, `set -e
		test "$SM_CHECKPOINT_DIR" = /opt/ml/ckpt/mine
		touch /opt/ml/ckpt/mine/$SM_CURRENT_HOST /opt/ml/model/$SM_CURRENT_HOST
		pwd
		ls /opt
		grep -c 'algo-1 algo-2' /etc/hosts`))
	if end.Outcome != runner.Succeeded {
		t.Fatalf("ended %+v", end)
	}
	want := append([]string{"/opt/ml/code"}, before...)
	if !slices.Contains(before, "ml") {
		i, _ := slices.BinarySearch(before, "ml")
		want = slices.Insert(want, i+1, "ml")
	}
	if diff := cmp.Diff(append(want, "1"), strings.Fields(b.output(a.Key, 1))); diff != "" {
		t.Errorf("the worker's view (-want +got):\n%s", diff)
	}
	for _, host := range []string{"algo-1", "algo-2"} {
		if _, err := os.Stat(filepath.Join(CheckpointDir(b.dir, a.Job), host)); err != nil {
			t.Errorf("checkpoint of %s: %v", host, err)
		}
	}
	if diff := cmp.Diff(before, optEntries(t)); diff != "" {
		t.Errorf("/opt of the machine (-before +after):\n%s", diff)
	}
}

func optEntries(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/opt")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestWorkersHaveNoMoreRightsThanTheServer(t *testing.T) {
	h := &harness{dir: t.TempDir(), isolate: isolateUser}
	if err := isolateUser.probe(configFor(h.dir)); err != nil {
		t.Skipf("this machine allows no user namespaces: %v", err)
	}
	b := &bench{Recorder: runnertest.NewRecorder(t), harness: h, t: t}
	b.open()
	a, end := b.run(shell(t, 1, nil, "id -u; grep CapAmb /proc/self/status"))
	if end.Outcome != runner.Succeeded {
		t.Fatalf("ended %+v", end)
	}
	want := fmt.Sprintf("%d\nCapAmb:\t0000000000000000\n", os.Getuid())
	if got := b.output(a.Key, 1); got != want {
		t.Errorf("the worker is %q, want %q", got, want)
	}
}

func TestStartTimeOfAProcessWithAnyName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a) S 1 2 (b")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), odd, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	_, earlier := stranger(t)
	start, err := startTime(cmd.Process.Pid)
	const second = 100 // clock ticks
	if err != nil || start > earlier.Start+second || start+second < earlier.Start {
		t.Errorf("start is %d, %v; another process that started now has %d", start, err, earlier.Start)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no directory": {Shim: []string{"shim"}},
		"no shim":      {Dir: t.TempDir()},
		"no place":     {Dir: "/proc/nowhere", Shim: []string{"shim"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(cfg, func(runner.Observation) {}); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestAMissingShimLosesTheAttempt(t *testing.T) {
	recorder := runnertest.NewRecorder(t)
	r, err := New(Config{Dir: t.TempDir(), Shim: []string{"/does/not/exist"}}, recorder.Report)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.ContainerPaths() {
		t.Error("isolation was tried out without a shim")
	}
	a := runnertest.NewAttempt(t, shell(t, 2, nil, "true"))
	r.Start(a)
	if end := recorder.AwaitEvent(a.Key, runner.Ended); end.Outcome != runner.Lost {
		t.Errorf("ended %+v, want lost", end)
	}
}

func TestKillMarkedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := killMarked(ctx, "BURSAR_WORKER=none", "boot"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
