package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/terminal"
)

const (
	// frameEvery is how often the scene is looked at and drawn.
	frameEvery = 200 * time.Millisecond
	// newsWait is how long a request for the journal waits for news.
	newsWait = 5 * time.Second
	// settleTime is how long after an event others may be heard of that
	// happened before it.
	settleTime = time.Second
)

// watch looks at what happens and shows it until ctx ends.
func (d *demo) watch(ctx context.Context) error {
	failed := make(chan error, 1)
	var followers sync.WaitGroup
	defer followers.Wait()
	following, stop := context.WithCancel(ctx)
	defer stop()
	follow := func(f func(context.Context) error) {
		followers.Go(func() {
			if err := f(following); err != nil && following.Err() == nil {
				select {
				case failed <- err:
				default: // the first one is told
				}
			}
		})
	}
	follow(d.followJournal)
	followed := map[runKey]bool{}
	for {
		// A look that is under way when the story ends is finished.
		if err := d.look(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		for _, key := range d.newRuns(followed) {
			follow(func(ctx context.Context) error { return d.followLog(ctx, key) })
		}
		if err := d.draw(settleTime); err != nil {
			return err
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(frameEvery):
		case <-ctx.Done():
			return d.draw(0)
		}
	}
}

// look asks for jobs and balances.
func (d *demo) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, newsWait)
	defer cancel()
	jobs, err := d.bursar.Jobs(ctx, bursarapi.JobQuery{})
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	balances, err := d.bursar.Balances(ctx, "")
	if err != nil {
		return fmt.Errorf("listing balances: %w", err)
	}
	slices.Reverse(jobs)
	d.scene.change(func() { d.scene.jobs, d.scene.balances = jobs, balances })
	return nil
}

// runKey names one run of a job.
type runKey struct {
	id   string
	name string
	run  int
}

// newRuns are the runs whose output is not followed yet.
func (d *demo) newRuns(followed map[runKey]bool) []runKey {
	d.scene.mu.Lock()
	defer d.scene.mu.Unlock()
	var fresh []runKey
	for _, j := range d.scene.jobs {
		key := runKey{j.Job.ID, j.Job.Name, j.Job.Runs}
		if begun := j.Job.Status == job.Running || j.Job.Status.Finished(); begun && !followed[key] {
			followed[key] = true
			fresh = append(fresh, key)
		}
	}
	return fresh
}

// followLog reads what a run prints, until it ends.
func (d *demo) followLog(ctx context.Context, key runKey) (err error) {
	output, err := d.bursar.Log(ctx, bursarapi.LogQuery{Job: key.id, Run: key.run, Follow: true})
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", key.name, err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if r, ok := readReport(lines.Text()); ok {
			d.scene.trained(key, r)
		}
	}
	return lines.Err()
}

// trained notes what a training printed.
func (s *scene) trained(key runKey, r report) {
	s.change(func() {
		if s.training[key.name] == nil {
			s.training[key.name] = &training{runs: map[int]*run{}}
		}
		if sentence := s.training[key.name].add(key.run, r); sentence != "" {
			s.happened(time.Now(), terminal.Line{{Text: key.name, Style: terminal.Bold}, {Text: "  " + sentence}})
		}
	})
}

// followJournal reads the journal as it grows.
func (d *demo) followJournal(ctx context.Context) error {
	var last int64
	for {
		entries, err := d.bursar.Journal(ctx, last, bursarapi.MaxList, newsWait)
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		d.scene.change(func() {
			for _, e := range entries {
				last = e.Seq
				d.scene.journal = append(d.scene.journal, e)
				if line := sentence(e); line != nil {
					d.scene.happened(e.At, line)
				}
			}
		})
	}
}
