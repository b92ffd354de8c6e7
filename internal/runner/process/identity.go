package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// identity names a process for good. A process id alone is given to another
// process some time after its own has ended.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
	Boot  string `json:"boot"`  // the kernel's id of this boot of the machine
}

func ownIdentity() (identity, error) {
	boot, err := bootID()
	if err != nil {
		return identity{}, err
	}
	start, err := startTime(os.Getpid())
	return identity{PID: os.Getpid(), Start: start, Boot: boot}, err
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the machine's boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// startTime reads field 22 of /proc/<pid>/stat. The fields are counted from
// the end of the second, a name in parentheses that may itself contain any.
func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	_, after, _ := cutLast(string(stat), ")")
	fields := strings.Fields(after)
	const start = 22 - 3 // the first field after the name is the third
	if len(fields) <= start {
		return 0, fmt.Errorf("read start time of process %d: %q has too few fields", pid, stat)
	}
	return strconv.ParseUint(fields[start], 10, 64)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// errGone is returned for a process that has ended, or whose id another
// process has now.
var errGone = errors.New("the process is gone")

// handle holds on to one process, even after it has ended: while a handle is
// open, what it waits for and signals is that process and no other.
type handle struct{ pidfd *os.File }

// openProcess returns a handle on a process, or errGone.
func openProcess(id identity, boot string) (*handle, error) {
	if id.Boot != boot || id.PID <= 0 {
		return nil, errGone
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", id.PID, err)
	}
	h := newHandle(fd)
	// Only now that the handle holds the process can its start time not
	// become another's.
	if start, err := startTime(id.PID); err != nil || start != id.Start {
		h.close()
		return nil, errGone
	}
	return h, nil
}

// newHandle takes over a pidfd that does not block.
func newHandle(pidfd int) *handle { return &handle{pidfd: os.NewFile(uintptr(pidfd), "pidfd")} }

// wait returns nil once the process has ended. It costs no thread.
func (h *handle) wait(ctx context.Context) error {
	conn, err := h.pidfd.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for a process: %w", err)
	}
	// The deadline, already past when it is set, ends the wait.
	release := context.AfterFunc(ctx, func() { _ = h.pidfd.SetReadDeadline(time.Unix(1, 0)) })
	defer release()
	err = conn.Read(ended)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("wait for a process: %w", err)
	}
	return nil
}

// hasEnded reports whether the process has ended, without waiting.
func (h *handle) hasEnded() bool {
	conn, err := h.pidfd.SyscallConn()
	if err != nil {
		return false
	}
	result := false
	_ = conn.Control(func(fd uintptr) { result = ended(fd) })
	return result
}

func ended(pidfd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// signal sends a signal. A process that has ended is none to complain about.
func (h *handle) signal(s unix.Signal) error {
	conn, err := h.pidfd.SyscallConn()
	if err != nil {
		return fmt.Errorf("signal a process: %w", err)
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), s, nil, 0) }); err != nil {
		return fmt.Errorf("signal a process: %w", err)
	}
	if sent != nil && !errors.Is(sent, unix.ESRCH) {
		return fmt.Errorf("signal a process: %w", sent)
	}
	return nil
}

func (h *handle) close() { _ = h.pidfd.Close() }

// killMarked kills every process that has the variable name=value in its
// environment, as all descendants of a worker do, and returns once none is
// left.
func killMarked(ctx context.Context, variable, boot string) error {
	for ctx.Err() == nil {
		marked, err := processesWith(variable, boot)
		if err != nil || len(marked) == 0 {
			return err
		}
		for _, id := range marked {
			if err := killAndWait(ctx, id, boot); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func killAndWait(ctx context.Context, id identity, boot string) error {
	h, err := openProcess(id, boot)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.signal(unix.SIGKILL); err != nil {
		return err
	}
	return h.wait(ctx)
}

// processesWith finds the processes whose environment has the variable. Those
// that may not be looked into are not of this user, and so of no worker.
func processesWith(variable, boot string) ([]identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []identity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		start, err := startTime(pid) // before the environment: one of a later process is then no match
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && strings.Contains("\x00"+string(environ), "\x00"+variable+"\x00") {
			found = append(found, identity{PID: pid, Start: start, Boot: boot})
		}
	}
	return found, nil
}
