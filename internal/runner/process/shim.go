package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Statuses of a worker that could not be started, as a shell has them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// drainTime is how long the end of a worker's output is waited for once all of
// its processes are gone: only what passed the pipe to a stranger makes it wait.
const drainTime = 2 * time.Second

// ShimMain is the shim: a process that runs one worker, and outlives the
// server that started it. args are those the runner added to Config.Shim. It
// returns the status to exit with. The caller must do nothing else before, and
// must call it on the main goroutine.
func ShimMain(args []string) int {
	// A worker is killed when the thread that started it ends, which this
	// goroutine therefore keeps until the end.
	runtime.LockOSThread()
	var err error
	switch {
	case len(args) == 1:
		err = runShim(args[0])
	case len(args) == 2 && args[0] == probeCommand:
		err = probeHere(args[1])
	default:
		err = errors.New("this command is for the server alone, which starts it as the parent of a worker")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// shimEnvironment is all that a shim gets of an environment. It has next to
// nothing to do, and there may be thousands.
func shimEnvironment() []string { return []string{"GOMAXPROCS=1", "GOGC=50"} }

// runShim runs the worker whose directory it is given, unless another shim has
// it already.
func runShim(dir string) error {
	// From here on a signal is kept, so that none is lost between the claim,
	// which lets others find this process, and the worker's start.
	s := &shim{dir: dir, told: notify(unix.SIGTERM), child: notify(unix.SIGCHLD)}
	notify(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT) // not for the shim, nor to be ignored by the worker
	l, found, err := readRecord[launch](filepath.Join(dir, launchFile))
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("read what to start: there is no %s in %s", launchFile, dir)
	}
	s.launch = l
	self, err := ownIdentity()
	if err != nil {
		return err
	}
	if err := createRecord(filepath.Join(dir, claimFile), self); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return fmt.Errorf("claim the worker: %w", err)
	}
	return recordExit(filepath.Join(dir, exitFile), s.run())
}

// recordExit does not give up for want of space: without the record, work that
// was done would count as lost.
func recordExit(path string, e exit) error {
	for {
		err := writeDurableRecord(path, e)
		if err == nil || errors.Is(err, fs.ErrNotExist) { // nobody wants to know any more
			return err
		}
		<-time.After(retryAfter)
	}
}

func notify(signals ...os.Signal) <-chan os.Signal {
	c := make(chan os.Signal, 1) // that there was one is enough to know
	signal.Notify(c, signals...)
	return c
}

type shim struct {
	dir         string
	launch      launch
	told, child <-chan os.Signal

	pid       int // of the worker, and of its process group
	startedAt time.Time
	stopped   bool // SIGTERM was passed on
	pumps     chan struct{}
}

// run starts the worker and stays until none of its processes is left.
func (s *shim) run() exit {
	if s.isStopped() {
		return exit{Stopped: true, Code: 128 + int(unix.SIGTERM), Signal: int(unix.SIGTERM), StoppedAt: time.Now()}
	}
	if code, err := s.start(); err != nil {
		return exit{Code: code, Error: err.Error(), StoppedAt: time.Now()}
	}
	// Without this record a server sees no more than that the worker is not
	// up yet; there is nothing better to do about it.
	_ = writeRecord(filepath.Join(s.dir, upFile), up{At: s.startedAt})
	s.attend()
	return s.finish()
}

// isStopped reports whether the attempt was told to stop before its worker
// started: whoever stops it writes the file first and looks for shims after,
// and this shim has claimed its worker before it looks for the file.
func (s *shim) isStopped() bool {
	select {
	case <-s.told:
		return true
	default:
		return exists(filepath.Join(filepath.Dir(s.dir), stopFile))
	}
}

func (s *shim) start() (code int, err error) {
	if s.launch.Isolate != isolateNothing {
		if err := enterContainer(s.dir); err != nil {
			return codeNotExecutable, fmt.Errorf("provide %s: %w", containerRoot, err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return codeNotExecutable, err
	}
	// Orphans of the worker become children of this process, which so can
	// see to it that none is left.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return codeNotExecutable, fmt.Errorf("adopt the worker's orphans: %w", err)
	}
	program, code, err := findProgram(s.launch.Argv[0], s.launch.Dir, s.launch.Env)
	if err != nil {
		return code, err
	}
	return s.fork(program)
}

func (s *shim) fork(program string) (code int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return codeNotExecutable, fmt.Errorf("open the worker's input: %w", err)
	}
	defer func() { _ = null.Close() }()
	s.pumps = make(chan struct{}, 2)
	stdout, err := s.pump(Stdout)
	if err != nil {
		return codeNotExecutable, err
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := s.pump(Stderr)
	if err != nil {
		return codeNotExecutable, err
	}
	defer func() { _ = stderr.Close() }()
	s.startedAt = time.Now()
	s.pid, err = syscall.ForkExec(program, s.launch.Argv, &syscall.ProcAttr{
		Dir:   s.launch.Dir,
		Env:   s.launch.Env,
		Files: []uintptr{null.Fd(), stdout.Fd(), stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, unix.ENOENT):
		return codeNotFound, fmt.Errorf("%s cannot be started: the interpreter that its first line names does not exist", program)
	case errors.Is(err, unix.ENOEXEC):
		return codeNotExecutable, fmt.Errorf("%s cannot be started: it is neither a program for this machine nor a script with an interpreter in its first line", program)
	}
	return codeNotExecutable, fmt.Errorf("%s cannot be started: %w", program, err)
}

// pump returns where the worker is to write a stream, and sees that it gets
// into the stream's log.
func (s *shim) pump(stream string) (*os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the worker's %s: %w", stream, err)
	}
	log := &rotatingLog{path: filepath.Join(s.dir, stream+logSuffix), limit: s.launch.LogLimit, keep: s.launch.LogFiles}
	go func() {
		_, _ = io.Copy(log, from) // it ends with the last process that can write
		log.close()
		s.pumps <- struct{}{}
	}()
	return to, nil
}

// attend passes SIGTERM on, kills the worker at the end of its grace, and
// returns once it has ended.
func (s *shim) attend() {
	var graceOver <-chan time.Time
	for {
		select {
		case <-s.child:
			if s.workerEnded() {
				return
			}
			s.reapOrphans()
		case <-s.told:
			if s.workerEnded() { // by itself, before
				return
			}
			if !s.stopped {
				s.stopped = true
				s.signal(unix.SIGTERM)
				graceOver = time.After(s.launch.Grace)
			}
		case <-graceOver:
			s.signal(unix.SIGKILL)
		}
	}
}

// signal reaches the worker's whole group; the worker is its leader and is not
// reaped before the end, so that the id can be no other's.
func (s *shim) signal(sig unix.Signal) { _ = unix.Kill(-s.pid, sig) }

// workerEnded leaves the worker unreaped.
func (s *shim) workerEnded() bool {
	var info unix.Siginfo
	err := ignoringEINTR(func() error {
		return unix.Waitid(unix.P_PID, s.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	return err == nil && info.Signo != 0
}

func (s *shim) reapOrphans() {
	for _, pid := range s.orphans() {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// orphans are the children of this process other than the worker.
func (s *shim) orphans() []int {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	var pids []int
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has just ended
		}
		for field := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != s.pid {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// finish kills what the worker left, and says how the worker ended. Whatever
// it started is below this process; those that die leave theirs to it, until
// there are none.
func (s *shim) finish() exit {
	s.signal(unix.SIGKILL)
	for orphans := s.orphans(); len(orphans) > 0; orphans = s.orphans() {
		for _, pid := range orphans {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = wait(pid)
		}
	}
	status, err := wait(s.pid)
	e := exit{StartedAt: s.startedAt, StoppedAt: time.Now(), Stopped: s.stopped}
	switch {
	case err != nil:
		e.Code, e.Error = codeNotExecutable, fmt.Sprintf("the worker's status cannot be known: %v", err)
	case status.Signaled():
		e.Signal = int(status.Signal())
		e.Code = 128 + e.Signal
	default:
		e.Code = status.ExitStatus()
	}
	s.drain()
	return e
}

func (s *shim) drain() {
	late := time.After(drainTime)
	for range cap(s.pumps) {
		select {
		case <-s.pumps:
		case <-late:
			return
		}
	}
}

func wait(pid int) (unix.WaitStatus, error) {
	var status unix.WaitStatus
	err := ignoringEINTR(func() error {
		_, err := unix.Wait4(pid, &status, 0, nil)
		return err
	})
	return status, err
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// findProgram finds a worker's program as a shell would: a name with a slash
// from the worker's directory, any other in the PATH of its environment. The
// code is a shell's for what went wrong.
func findProgram(name, dir string, env []string) (path string, code int, err error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		code, err := executable(name)
		return name, code, err
	}
	path = variable(env, "PATH")
	code, err = codeNotFound, fmt.Errorf("ContainerEntrypoint names %q, which is not in the PATH of the worker (%s); give its path, or set PATH in Environment", name, path)
	for _, in := range filepath.SplitList(path) {
		candidate := filepath.Join(in, name)
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		switch c, e := executable(candidate); {
		case e == nil:
			return candidate, 0, nil
		case isFile(candidate): // rather say that than that there is none
			code, err = c, e
		}
	}
	return "", code, err
}

func executable(path string) (code int, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return codeNotFound, fmt.Errorf("ContainerEntrypoint names %s, which does not exist on this machine", path)
	case err != nil:
		return codeNotExecutable, fmt.Errorf("ContainerEntrypoint names %s, which cannot be looked at: %w", path, err)
	case info.IsDir():
		return codeNotExecutable, fmt.Errorf("ContainerEntrypoint names %s, which is a directory; it must be a program", path)
	case unix.Access(path, unix.X_OK) != nil:
		return codeNotExecutable, fmt.Errorf("ContainerEntrypoint names %s, which may not be executed; make it executable, or name its interpreter first", path)
	}
	return 0, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
