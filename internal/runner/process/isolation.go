package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolation is how a shim and its worker are kept apart from the rest of the
// machine, so that /opt/ml can be the worker's own.
type isolation string

const (
	isolateNothing isolation = ""
	isolateMounts  isolation = "a mount namespace"
	isolateUser    isolation = "a user and a mount namespace"
)

// attributes are those a shim is started with: always in a session of its own,
// so that neither the server's terminal nor its end reaches it.
func (i isolation) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	switch i {
	case isolateMounts:
		attr.Cloneflags = unix.CLONE_NEWNS
	case isolateUser:
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		// The user stays who it is, and so would lose, in becoming the shim,
		// what lets it mount in its own namespace.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	case isolateNothing:
	}
	return attr
}

// probeCommand is the shim's argument that makes it try out an isolation.
const probeCommand = "probe"

// probeIsolation finds the first isolation that works here, by doing all that
// a shim does for its worker. The error says why none does.
func probeIsolation(cfg Config) (isolation, error) {
	var failures []error
	for _, i := range []isolation{isolateMounts, isolateUser} {
		err := i.probe(cfg)
		if err == nil {
			return i, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", i, err))
	}
	return isolateNothing, errors.Join(failures...)
}

func (i isolation) probe(cfg Config) (err error) {
	attemptDir, err := os.MkdirTemp(cfg.Dir, "probe-")
	if err != nil {
		return fmt.Errorf("make a directory to try it: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(attemptDir)) }()
	worker := workerDir(attemptDir, 1)
	if err := errors.Join(makeContainer(attemptDir, worker), writeHosts(attemptDir, nil)); err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(attemptDir, "said"))
	if err != nil {
		return fmt.Errorf("make a file for what it says: %w", err)
	}
	defer func() { err = errors.Join(err, said.Close()) }()
	argv := append(append([]string{}, cfg.Shim...), probeCommand, worker)
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Files: []*os.File{nil, nil, said}, Env: shimEnvironment(), Sys: i.attributes(),
	})
	if err != nil {
		return fmt.Errorf("start a process in it: %w", err)
	}
	state, err := child.Wait()
	if err != nil {
		return fmt.Errorf("wait for a process in it: %w", err)
	}
	if !state.Success() {
		reason, _ := os.ReadFile(said.Name())
		return fmt.Errorf("%s: %s", state, strings.TrimSpace(string(reason)))
	}
	return nil
}

// probeHere is the shim's part in a probe.
func probeHere(worker string) error {
	if err := enterContainer(worker); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(containerRoot, "model", "probe"), nil, 0o600)
}

// enterContainer gives the calling process, which must be alone in its mount
// namespace, /opt/ml and an /etc/hosts of the worker's own. The rest of the
// machine does not see them.
func enterContainer(worker string) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_SLAVE); err != nil {
		return err
	}
	ml := filepath.Join(worker, containerDir)
	if isDir(containerRoot) {
		if err := bind(ml, containerRoot); err != nil {
			return err
		}
	} else if err := replaceOpt(ml, filepath.Join(worker, stagingDir)); err != nil {
		return err
	}
	return bind(filepath.Join(filepath.Dir(worker), hostsFile), "/etc/hosts")
}

// replaceOpt is for a machine without /opt/ml, where none is to be made: what
// /opt has is shown again in a file system in memory, together with ml, and
// that is put in the place of /opt.
func replaceOpt(ml, staging string) error {
	opt := filepath.Dir(containerRoot)
	entries, err := os.ReadDir(opt)
	if err != nil {
		return fmt.Errorf("list what is to be kept: %w", err)
	}
	if err := mount("tmpfs", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := showAgain(filepath.Join(opt, entry.Name()), filepath.Join(staging, entry.Name()), entry.Type()); err != nil {
			return err
		}
	}
	if err := showAgain(ml, filepath.Join(staging, filepath.Base(containerRoot)), os.ModeDir); err != nil {
		return err
	}
	return bind(staging, opt)
}

func showAgain(from, to string, kind os.FileMode) error {
	switch {
	case kind&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return fmt.Errorf("show %s again: %w", from, err)
		}
		return os.Symlink(target, to)
	case kind.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return fmt.Errorf("show %s again: %w", from, err)
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return fmt.Errorf("show %s again: %w", from, err)
		}
	}
	return bind(from, to)
}

func bind(from, to string) error { return mount(from, to, "", unix.MS_BIND|unix.MS_REC) }

func mount(from, to, kind string, flags uintptr) error {
	if err := unix.Mount(from, to, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", from, to, err)
	}
	return nil
}

// dropCapabilities takes from the calling thread, and so from what it starts,
// what let it mount.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
