package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// prepared is the content of attempt.json.
type prepared struct {
	Workers int `json:"workers"`
}

// launch is what a shim is to start, and how.
type launch struct {
	Argv     []string      `json:"argv"`
	Env      []string      `json:"env"`
	Dir      string        `json:"dir"`
	Isolate  isolation     `json:"isolate"`
	Grace    time.Duration `json:"grace"`
	LogLimit int64         `json:"logLimit"`
	LogFiles int           `json:"logFiles"`
}

// up says since when a worker has been running.
type up struct {
	At time.Time `json:"at"`
}

// exit is how a worker ended. Code is its status, 128+signal when a signal
// killed it. Stopped is set when it had been told to stop before it ended.
// Error says why it could not be started; StartedAt is then zero.
type exit struct {
	Code      int       `json:"code"`
	Signal    int       `json:"signal,omitempty"`
	Stopped   bool      `json:"stopped,omitempty"`
	Error     string    `json:"error,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	StoppedAt time.Time `json:"stoppedAt"`
}

// failedItself reports whether the worker failed on its own account.
func (e exit) failedItself() bool { return !e.Stopped && e.Code != 0 }

// readRecord reads a record. found is false when there is none.
func readRecord[T any](path string) (record T, found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record, false, nil
	}
	if err != nil {
		return record, false, fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return record, true, fmt.Errorf("read record %s: %w", path, err)
	}
	return record, true, nil
}

// writeRecord puts a record in place as a whole: a reader sees the old one or
// the new one.
func writeRecord(path string, record any) error {
	return placeRecord(path, record, false, os.Rename)
}

// writeDurableRecord is writeRecord for what must outlive the machine's crash.
func writeDurableRecord(path string, record any) error {
	if err := placeRecord(path, record, true, os.Rename); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// createRecord puts a record in place unless there is one; the error is then
// fs.ErrExist.
func createRecord(path string, record any) error {
	return placeRecord(path, record, false, os.Link)
}

// placeRecord writes a file beside path and lets place give it its name. The
// name beside is the writer's own, as several shims may compete.
func placeRecord(path string, record any, durable bool, place func(from, to string) error) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write record %s: %w", path, err)
	}
	beside := path + "." + strconv.Itoa(os.Getpid())
	if err := writeFile(beside, data, durable); err != nil {
		return err
	}
	err = place(beside, path)
	if removal := os.Remove(beside); err == nil && !errors.Is(removal, fs.ErrNotExist) {
		err = removal
	}
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func writeFile(path string, data []byte, durable bool) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if !durable {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write file durably: %w", err)
	}
	return nil
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
