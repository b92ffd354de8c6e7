package bursarapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/runner"
)

// Streams of a worker.
const (
	stdout = "stdout"
	stderr = "stderr"
)

// OpenLog returns what a worker, counted from 1, has written to a stream
// (stdout or stderr) so far, or nothing if it has not written yet. With follow
// it goes on with what is written until done says that the run has ended, or
// ctx ends. The caller closes it.
type OpenLog func(ctx context.Context, run runner.Key, worker int, stream string, follow bool, done func() bool) io.ReadCloser

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
	output, err := d.openLog(ctx, parameters{Values: r.URL.Query()})
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
	j, err := d.Governor.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	run, err := runOf(j, p)
	if err != nil {
		return nil, err
	}
	worker, err := p.count("worker", 1, j.Workers)
	if err != nil {
		return nil, err
	}
	follow, err := p.flag("follow")
	if err != nil {
		return nil, err
	}
	from, err := streamOf(p)
	if err != nil {
		return nil, err
	}
	return d.OpenLog(ctx, runner.Key{Job: id, Run: run}, worker, from, follow, d.hasEnded(ctx, id, run)), nil
}

// runOf is the run that a request asks for, or the job's newest.
func runOf(j job.Job, p parameters) (int, error) {
	if j.Runs == 0 {
		return 0, &StatusError{http.StatusNotFound, fmt.Sprintf("job %s (%s) has not run yet", j.Name, j.ID)}
	}
	return p.count("run", j.Runs, j.Runs)
}

func streamOf(p parameters) (string, error) {
	wanted, err := p.flag("stderr")
	if wanted {
		return stderr, err
	}
	return stdout, err
}

// hasEnded says whether a run has, or nobody can tell.
func (d *door) hasEnded(ctx context.Context, id string, run int) func() bool {
	return func() bool {
		j, err := d.Governor.Job(ctx, id)
		return err != nil || j.Current == nil || j.Current.Run != run
	}
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
