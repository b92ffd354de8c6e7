package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/trainingjob"
)

// refusal is why an attempt cannot run as its request has it. It is written
// for the job's owner; any other error is the machine's.
type refusal struct{ message string }

func (e *refusal) Error() string { return e.message }

func refuse(format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...)}
}

// prepare makes everything that the attempt's shims need, and returns how many
// workers there are. It may be repeated until it has succeeded; once it has,
// shims may have been started, and it changes nothing any more.
func (r *Runner) prepare(ctx context.Context, a runner.Attempt) (workers int, err error) {
	dir := AttemptDir(r.cfg.Dir, a.Key)
	request, err := trainingjob.Parse(a.Payload)
	if err != nil {
		return 0, refuse("%v", err)
	}
	command := request.Algorithm.Command()
	if len(command) == 0 {
		return 0, refuse("AlgorithmSpecification.ContainerEntrypoint is missing; jobs here run as processes, not from images, " +
			"so it must be the command to run, such as [\"python3\", \"/path/to/train.py\"]")
	}
	if err := makeInputs(dir, request.Channels); err != nil {
		return 0, err
	}
	if err := r.makeWorkers(ctx, dir, a, request); err != nil {
		return 0, err
	}
	workers = request.Workers()
	return workers, writeRecord(filepath.Join(dir, attemptFile), prepared{Workers: workers})
}

func (r *Runner) makeWorkers(ctx context.Context, dir string, a runner.Attempt, request *trainingjob.Request) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	instances := request.Instances()
	shared := newCluster(a, request, instances, port)
	checkpoints := CheckpointDir(r.cfg.Dir, a.Job)
	if err := makeDirs(dir, checkpoints); err != nil {
		return err
	}
	if err := writeHosts(dir, shared.hosts); err != nil {
		return err
	}
	for n, instance := range instances {
		worker := workerDir(dir, n+1)
		if err := makeContainer(dir, worker); err != nil {
			return err
		}
		seenAt, err := linkCheckpoints(checkpoints, filepath.Join(worker, containerDir), request.Checkpoints.LocalPath)
		if err != nil {
			return err
		}
		if err := r.writeLaunch(worker, shared.member(n+1, instance, r.rootOf(worker), seenAt), cmp.Or(a.Grace, r.cfg.Grace)); err != nil {
			return err
		}
	}
	return nil
}

// rootOf is where a worker finds what is in /opt/ml in a training container.
func (r *Runner) rootOf(worker string) string {
	if r.ContainerPaths() {
		return containerRoot
	}
	return filepath.Join(worker, containerDir)
}

func (r *Runner) writeLaunch(worker string, m member, grace time.Duration) error {
	config := filepath.Join(worker, containerDir, "input", "config")
	for name, content := range m.configFiles() {
		data, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := writeFile(filepath.Join(config, name), data, false); err != nil {
			return err
		}
	}
	return writeRecord(filepath.Join(worker, launchFile), launch{
		Argv:     m.request.Algorithm.Command(),
		Env:      environment(r.environ, m),
		Dir:      m.path("code"),
		Isolate:  r.isolate,
		Grace:    grace,
		LogLimit: r.cfg.LogLimit,
		LogFiles: r.cfg.LogFiles,
	})
}

// makeContainer makes what a worker sees below /opt/ml: its own configuration
// and working directory, and links to what the attempt's workers share.
func makeContainer(attemptDir, worker string) error {
	ml := filepath.Join(worker, containerDir)
	shared := []string{"model", "output", filepath.Join("input", "data")}
	err := makeDirs(
		filepath.Join(attemptDir, "model"), filepath.Join(attemptDir, "output", "data"), filepath.Join(attemptDir, "input", "data"),
		filepath.Join(ml, "input", "config"), filepath.Join(ml, "code"), filepath.Join(worker, stagingDir),
	)
	if err != nil {
		return err
	}
	for _, name := range shared {
		if err := link(filepath.Join(attemptDir, name), filepath.Join(ml, name)); err != nil {
			return err
		}
	}
	return nil
}

// linkCheckpoints lets a worker find its job's checkpoints at the path it asks
// for, and returns where that is below ml.
func linkCheckpoints(checkpoints, ml, localPath string) (relative string, err error) {
	relative, err = filepath.Rel(containerRoot, filepath.Clean(localPath))
	if err != nil || !filepath.IsLocal(relative) {
		return "", refuse("CheckpointConfig.LocalPath is %q; checkpoints are kept below %s here, as in %s",
			localPath, containerRoot, trainingjob.DefaultCheckpointPath)
	}
	at := filepath.Join(ml, relative)
	if err := makeDirs(filepath.Dir(at)); err != nil {
		return "", err
	}
	err = link(checkpoints, at)
	if errors.Is(err, fs.ErrExist) {
		return "", refuse("CheckpointConfig.LocalPath is %q, where a training job has something else; choose another, such as %s",
			localPath, trainingjob.DefaultCheckpointPath)
	}
	return relative, err
}

// makeInputs links every channel to where its data is.
func makeInputs(attemptDir string, channels []trainingjob.Channel) error {
	for _, c := range channels {
		source, err := localSource(c)
		if err != nil {
			return err
		}
		at := filepath.Join(attemptDir, "input", "data", c.Name)
		if !isDir(source) { // a channel is always a directory; one object is a file in it
			at = filepath.Join(at, filepath.Base(source))
		}
		if err := makeDirs(filepath.Dir(at)); err != nil {
			return err
		}
		if err := link(source, at); err != nil {
			return err
		}
	}
	return nil
}

// localSource is the path of a channel's data on this machine.
func localSource(c trainingjob.Channel) (string, error) {
	rest, ok := strings.CutPrefix(c.URI, "file://")
	if !ok {
		return "", refuse("the channel %s of InputDataConfig is at %q; jobs here read from this machine, so it must be a file:// URI such as file:///data/%s",
			c.Name, c.URI, c.Name)
	}
	path, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost"))
	if err != nil || !filepath.IsAbs(path) {
		return "", refuse("the channel %s of InputDataConfig is at %q; it must be file:// and an absolute path, such as file:///data/%s", c.Name, c.URI, c.Name)
	}
	path = filepath.Clean(path)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", refuse("the channel %s of InputDataConfig is at %s, which does not exist on this machine", c.Name, path)
	case err != nil:
		return "", refuse("the channel %s of InputDataConfig is at %s, which cannot be read: %v", c.Name, path, errors.Unwrap(err))
	}
	return path, f.Close()
}

// writeHosts writes an /etc/hosts in which the workers, all on this machine,
// have names.
func writeHosts(attemptDir string, names []string) error {
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read this machine's hosts: %w", err)
	}
	if len(names) > 0 {
		hosts = append(hosts, "\n127.0.0.1 "+strings.Join(names, " ")+"\n"...)
	}
	return writeFile(filepath.Join(attemptDir, hostsFile), hosts, false)
}

// freePort finds a port for the workers to meet at. Another process may take
// it before they do; then they fail, as they would on any machine.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("find a free port: %v is no TCP address", l.Addr())
	}
	return address.Port, l.Close()
}

func makeDirs(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// link makes a symbolic link, unless it is there. Anything else there is
// fs.ErrExist.
func link(target, path string) error {
	err := os.Symlink(target, path)
	if errors.Is(err, fs.ErrExist) {
		if present, _ := os.Readlink(path); present == target {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("make link: %w", err)
	}
	return nil
}

// sortedHosts are the names of n workers in SageMaker's order, which is that
// of their letters: algo-10 comes before algo-2.
func sortedHosts(n int) []string {
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = hostName(i + 1)
	}
	slices.Sort(hosts)
	return hosts
}
