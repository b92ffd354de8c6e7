package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// followPoll is how often a reader that follows a log looks for more.
const followPoll = 100 * time.Millisecond

// LogFiles are the files of a worker's stream (Stdout or Stderr), oldest
// first. The worker's number counts from 1. There are none before the worker
// has written anything.
func LogFiles(dir string, key runner.Key, worker int, stream string) []string {
	if !filepath.IsLocal(key.Job) || stream != Stdout && stream != Stderr {
		return nil
	}
	newest := filepath.Join(workerDir(AttemptDir(dir, key), worker), stream+logSuffix)
	var files []string
	for n := 0; n == 0 || exists(rotated(newest, n)); n++ {
		if exists(rotated(newest, n)) {
			files = append([]string{rotated(newest, n)}, files...)
		}
	}
	return files
}

// OpenLog returns what is kept of a worker's stream, from the oldest byte on.
// With follow it goes on as the worker writes, across rotations, until done,
// which is to say whether the attempt has ended; a read ends with ctx's error
// when ctx does. Without follow done is not called and may be nil. Reading what
// there is not yet, or never was, is not an error. The reader is for one
// goroutine.
func OpenLog(ctx context.Context, dir string, key runner.Key, worker int, stream string, follow bool, done func() bool) io.ReadCloser {
	return &logReader{
		ctx: ctx, follow: follow, done: done,
		files: func() []string { return LogFiles(dir, key, worker, stream) },
	}
}

type logReader struct {
	ctx    context.Context // of the request that reads
	files  func() []string
	follow bool
	done   func() bool
	file   *os.File // being read; nil before the first
}

// Read implements io.Reader.
func (l *logReader) Read(p []byte) (int, error) {
	for {
		last := !l.follow || l.done() // before looking: nothing is written after it
		n, err := l.readSome(p)
		if n > 0 || err != nil {
			return n, err
		}
		if last {
			return 0, io.EOF
		}
		select {
		case <-time.After(followPoll):
		case <-l.ctx.Done():
			return 0, l.ctx.Err()
		}
	}
}

// readSome reads from the present file and those after it; 0: there is no more
// yet.
func (l *logReader) readSome(p []byte) (int, error) {
	for len(p) > 0 {
		n, err := l.readPresent(p)
		if n > 0 || err != nil {
			return n, err
		}
		next, err := l.next()
		if next == nil || err != nil {
			return 0, err
		}
		// The present file may have grown before the next one came.
		n, err = l.readPresent(p)
		if n > 0 || err != nil {
			return n, errors.Join(err, next.Close())
		}
		if err := errors.Join(l.Close(), l.ctx.Err()); err != nil {
			return 0, errors.Join(err, next.Close())
		}
		l.file = next
	}
	return 0, nil
}

func (l *logReader) readPresent(p []byte) (int, error) {
	if l.file == nil {
		return 0, nil
	}
	n, err := l.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("read a worker's log: %w", err)
	}
	return n, nil
}

// next opens the file after the present one; nil: there is none. Where the
// present one has been dropped, that is the oldest.
func (l *logReader) next() (*os.File, error) {
	files := l.files()
	first := 0
	for i, file := range files {
		if l.isPresent(file) {
			first = i + 1
		}
	}
	if first == len(files) {
		return nil, nil
	}
	f, err := os.Open(files[first])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // rotated away this instant; the next look finds it
	}
	if err != nil {
		return nil, fmt.Errorf("open a worker's log: %w", err)
	}
	return f, nil
}

func (l *logReader) isPresent(path string) bool {
	if l.file == nil {
		return false
	}
	present, err := l.file.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(present, other)
}

// Close implements io.Closer.
func (l *logReader) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return fmt.Errorf("close a worker's log: %w", err)
	}
	return nil
}
