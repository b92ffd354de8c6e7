package bursarapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/bursar-io/bursar/internal/runner"
)

// Stream is one of the two that a worker writes to.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Logs reads what workers print.
type Logs interface {
	// Open returns what a worker, counted from 1, has written to a stream so
	// far. With follow it goes on with what is written until the worker has
	// ended or ctx has. The error wraps fs.ErrNotExist where there is no such
	// worker. The caller closes it.
	Open(ctx context.Context, run runner.Key, worker int, stream Stream, follow bool) (io.ReadCloser, error)
}

// log answers with what a worker prints, as it prints it.
func (d *door) log(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-d.Closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	output, err := d.openLog(ctx, parameters{r.URL.Query()})
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	err = stream(w, output)
	if err = errors.Join(err, output.Close()); err != nil && ctx.Err() == nil {
		d.Log.DebugContext(ctx, "a log was not read to its end", "error", err)
	}
}

func (d *door) openLog(ctx context.Context, p parameters) (io.ReadCloser, error) {
	id, err := d.resolve(ctx, p.Get("job"))
	if err != nil {
		return nil, err
	}
	run, err := d.runOf(ctx, id, p)
	if err != nil {
		return nil, err
	}
	worker, err := p.number("worker", 1)
	if err != nil {
		return nil, err
	}
	stderr, err := p.flag("stderr")
	if err != nil {
		return nil, err
	}
	follow, err := p.flag("follow")
	if err != nil {
		return nil, err
	}
	from := Stdout
	if stderr {
		from = Stderr
	}
	key := runner.Key{Job: id, Run: run}
	output, err := d.Logs.Open(ctx, key, max(int(worker), 1), from, follow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &StatusError{http.StatusNotFound, fmt.Sprintf("run %d of job %s has no worker %d", run, id, max(worker, 1))}
	}
	return output, err
}

// runOf is the run that a request asks for, or the job's newest.
func (d *door) runOf(ctx context.Context, id string, p parameters) (int, error) {
	j, err := d.Governor.Job(ctx, id)
	if err != nil {
		return 0, err
	}
	run, err := p.number("run", 0)
	switch {
	case err != nil:
		return 0, err
	case j.Runs == 0:
		return 0, &StatusError{http.StatusNotFound, fmt.Sprintf("job %s (%s) has not run yet", j.Name, id)}
	case run > int64(j.Runs):
		return 0, &StatusError{http.StatusNotFound, fmt.Sprintf("run is %d; job %s (%s) has run %d times", run, j.Name, id, j.Runs)}
	case run == 0:
		return j.Runs, nil
	}
	return int(run), nil
}

// stream passes on what is read as soon as it is there, for as long as it takes.
func stream(w http.ResponseWriter, output io.Reader) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the write timeout: %w", err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	buffer := make([]byte, 32<<10)
	for {
		// The client sees the headers at once, even if nothing is printed yet.
		if err := control.Flush(); err != nil {
			return err
		}
		n, err := output.Read(buffer)
		if _, writing := w.Write(buffer[:n]); writing != nil {
			return writing
		}
		if errors.Is(err, io.EOF) {
			return control.Flush()
		}
		if err != nil {
			return err
		}
	}
}
