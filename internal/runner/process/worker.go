package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// How often the files of a worker that is about to start are looked at: soon
// at first, and less often the longer it takes.
const (
	firstLook = 2 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// news is what happened to a worker: it is up since a time, or it has ended.
type news struct {
	worker int
	up     time.Time
	end    *ending
}

// ending is how a worker ended; lost: without a trace. wasUp says that its
// coming up was told before.
type ending struct {
	exit
	lost  bool
	wasUp bool
}

// worker is one worker being watched, through the shim that is its parent.
type worker struct {
	a      *attempt
	number int
	dir    string
	shim   *handle // nil: none was found or started
	pid    int     // of the shim
}

func newWorker(a *attempt, number int) *worker {
	return &worker{a: a, number: number, dir: workerDir(a.dir, number)}
}

// find takes hold of the worker's shim, if it has one. claimed without a shim
// is a worker whose shim is gone.
func (w *worker) find(ctx context.Context) (claimed bool) {
	w.a.r.persist(ctx, "find a worker's shim", func() (err error) {
		var claim identity
		claim, claimed, err = readRecord[identity](filepath.Join(w.dir, claimFile))
		switch {
		case claimed && err != nil:
			return nil //nolint:nilerr // it was cut short by the machine's crash, and the shim with it
		case !claimed:
			return err
		}
		return w.hold(claim)
	})
	return claimed
}

// hold takes hold of the shim with the identity, unless it is gone.
func (w *worker) hold(claim identity) error {
	h, err := openProcess(claim, w.a.r.boot)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	w.shim, w.pid = h, claim.PID
	return nil
}

// start starts a shim. An earlier server may have started one that has not
// claimed the worker yet; only one of the two will.
func (w *worker) start() error {
	pidfd := -1
	attr := w.a.r.isolate.attributes()
	attr.PidFD = &pidfd
	argv := append(slices.Clone(w.a.r.cfg.Shim), w.dir)
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: w.dir, Env: shimEnvironment(), Sys: attr})
	if err != nil {
		return fmt.Errorf("start the shim: %w", err)
	}
	w.pid = child.Pid
	if err := errors.Join(child.Release(), unix.SetNonblock(pidfd, true)); err != nil {
		return fmt.Errorf("start the shim: %w", err)
	}
	w.shim = newHandle(pidfd)
	return nil
}

// watch tells what happens to the worker until it has ended or ctx has.
func (w *worker) watch(ctx context.Context, told chan<- news) {
	defer w.letGo()
	w.awaitClaim(ctx)
	wasUp := w.awaitUp(ctx, told)
	if w.shim != nil && w.shim.wait(ctx) != nil {
		return
	}
	if end := w.ending(ctx); end != nil {
		end.wasUp = wasUp
		w.tell(ctx, told, news{worker: w.number, end: end})
	}
}

// awaitClaim waits until a shim has claimed the worker, and takes hold of it
// if it is another than the one started here.
func (w *worker) awaitClaim(ctx context.Context) {
	claim, found := lookFor[identity](ctx, filepath.Join(w.dir, claimFile), w.shim)
	if !found || w.shim == nil || claim.PID == w.pid {
		return
	}
	if w.shim.wait(ctx) == nil {
		w.letGo()
		w.a.r.persist(ctx, "find a worker's shim", func() error { return w.hold(claim) })
	}
}

func (w *worker) awaitUp(ctx context.Context, told chan<- news) (wasUp bool) {
	record, found := lookFor[up](ctx, filepath.Join(w.dir, upFile), w.shim)
	if found {
		w.tell(ctx, told, news{worker: w.number, up: record.At})
	}
	return found
}

// lookFor waits for a record of a shim, as long as there is a shim.
func lookFor[T any](ctx context.Context, path string, shim *handle) (record T, found bool) {
	for look := firstLook; ; look = min(2*look, lastLook) {
		over := shim == nil || shim.hasEnded() // before looking: what it wrote last is then there
		record, found, err := readRecord[T](path)
		if over || found && err == nil {
			return record, found && err == nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return record, false
		}
	}
}

// ending is how a worker ended whose shim is gone; nil: ctx ended before that
// was known. A shim without a record of it has left the worker to die, and
// whatever the worker started to be killed here.
func (w *worker) ending(ctx context.Context) *ending {
	e, found, err := readRecord[exit](filepath.Join(w.dir, exitFile))
	if found && err == nil {
		return &ending{exit: e}
	}
	mark := workerVariable + "=" + workerMark(w.a.Key, w.number)
	gone := w.a.r.persist(ctx, "kill what a lost worker left", func() error { return killMarked(ctx, mark, w.a.r.boot) })
	if !gone {
		return nil
	}
	w.a.r.cfg.Log.Warn("a worker was lost", "job", w.a.Job, "run", w.a.Run, "worker", w.number)
	return &ending{exit: exit{StoppedAt: time.Now()}, lost: true}
}

// letGo closes the hold on the shim. If that is a child of this process and
// has ended, it is reaped.
func (w *worker) letGo() {
	if w.shim == nil {
		return
	}
	if w.shim.hasEnded() {
		_, _ = unix.Wait4(w.pid, nil, unix.WNOHANG, nil) // ECHILD: an earlier server's child
	}
	w.shim.close()
	w.shim = nil
}

func (w *worker) tell(ctx context.Context, told chan<- news, n news) {
	select {
	case told <- n:
	case <-ctx.Done():
	}
}
