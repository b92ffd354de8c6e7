package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMessage is how many characters of what a worker says about its failure
// are kept, as in SageMaker.
const maxMessage = 1024

// failureMessage says why a worker failed: what it wrote into output/failure,
// or else how it ended and what it said last.
func failureMessage(attemptDir string, worker int, e exit) string {
	if e.Error != "" {
		return e.Error
	}
	if said := clean(head(filepath.Join(attemptDir, failureFile))); said != "" {
		return said
	}
	how := hostName(worker) + " ended with an error"
	if e.Signal != 0 {
		how = hostName(worker) + " was killed by " + unix.SignalName(unix.Signal(e.Signal))
	}
	last := lastLine(filepath.Join(workerDir(attemptDir, worker), Stderr+logSuffix))
	if last == "" {
		return how
	}
	return clean(how + ": " + last)
}

// clean makes a text of what may be anything.
func clean(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage])
	}
	return text
}

// head is the first part of a worker's file; empty, if there is none.
func head(path string) string {
	text, _ := readPart(path, func(f *os.File, _ int64) (int64, error) { return f.Seek(0, io.SeekStart) })
	return string(text)
}

// lastLine is the last line of a worker's file that is not blank.
func lastLine(path string) string {
	text, err := readPart(path, func(f *os.File, size int64) (int64, error) {
		return f.Seek(max(0, size-maxMessage), io.SeekStart)
	})
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}

var errNoFile = errors.New("not a regular file")

// readPart reads as much as can be of use from where seek goes. It does not
// open what is no regular file: a pipe would make it wait for a writer.
func readPart(path string, seek func(f *os.File, size int64) (int64, error)) (part []byte, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("read the end of a worker: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, errNoFile)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the end of a worker: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := seek(f, info.Size()); err != nil {
		return nil, fmt.Errorf("read the end of a worker: %w", err)
	}
	const longestRune = 4
	return io.ReadAll(io.LimitReader(f, maxMessage*longestRune))
}
