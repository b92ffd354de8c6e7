package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/store"
)

// lock takes the data directory for this process until the file that it
// returns is closed, or the process ends however it ends. The error wraps
// store.ErrLocked if another has it, and names that process if it is known.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory %q: %w", dir, err)
	}
	if err := flock(f); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w%s: stop that one, or choose another data directory", store.ErrLocked, owner(f))
		}
		return nil, errors.Join(fmt.Errorf("data directory %q: %w", dir, err), f.Close())
	}
	if err := sign(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory %q: %w", dir, err), f.Close())
	}
	return f, nil
}

// A child that a process was starting when it was killed keeps its files, and so
// its lock, until it has become another program: an instant, for which a new
// server waits.
const (
	lockPatience = time.Second
	lockRetry    = 10 * time.Millisecond
)

func flock(f *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; <-time.After(lockRetry) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}

// sign writes who holds the lock into its file, for people and for owner.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// owner returns " (pid N)" of the process that signed a lock file, or nothing
// if it has not signed yet.
func owner(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0) // a short read is how the file ends
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
