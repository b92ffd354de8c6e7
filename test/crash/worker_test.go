package crash

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/test/live"
)

// workerArgument makes this test program a worker: its arguments are then the
// directory to record in, for how many milliseconds to work, and the status to
// end with.
const workerArgument = "crash-worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == workerArgument {
		status, err := work(os.Args[2], os.Args[3], os.Args[4])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(status)
	}
	os.Exit(live.Main(m))
}

const (
	lockSuffix = ".lock"
	runsSuffix = ".runs"
	overlaps   = "overlaps"
)

// work is a worker. It holds a lock of its job's own while it runs and notes
// each run, so that a second one at the same time, or of the same attempt,
// does not go unseen.
func work(dir, milliseconds, status string) (int, error) {
	duration, err := strconv.Atoi(milliseconds)
	if err != nil {
		return 0, err
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		return 0, err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)

	job := os.Getenv("BURSAR_JOB_ID")
	lock, err := os.Create(filepath.Join(dir, job+lockSuffix))
	if err != nil {
		return 0, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, errors.Join(err, note(dir, overlaps, job))
	}
	if err := note(dir, job+runsSuffix, os.Getenv("BURSAR_ATTEMPT")); err != nil {
		return 0, err
	}
	select {
	case <-told:
		return 128 + int(syscall.SIGTERM), nil
	case <-time.After(time.Duration(duration) * time.Millisecond):
		return code, nil
	}
}

// note adds a line to a file.
func note(dir, name, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
