package soak

import (
	"context"
	"errors"
	"runtime/pprof"
	"strconv"
	"sync"
)

// Days lives through n days, the first of the seed given and the others of those
// that follow, so many at once. It tells progress after each, one call at a time,
// and stops with the first that fails: it returns how many were lived through,
// what happened in them, and the failure with the lowest seed of those found.
func Days(ctx context.Context, first uint64, n, atOnce int, progress func(done int, sum Tally)) (done int, sum Tally, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for i := range uint64(n) {
			select {
			case seeds <- first + i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for seed := range seeds {
				tally, failure := labelled(ctx, seed)
				mu.Lock()
				if failure != nil {
					err = firstFailure(err, failure)
					stop()
				} else {
					done++
					sum.Add(tally)
					progress(done, sum)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return done, sum, err
}

// labelled lives through a day whose goroutines carry its seed: where the product
// panics, GODEBUG=tracebacklabels=1 has the trace name it.
func labelled(ctx context.Context, seed uint64) (tally Tally, err error) {
	pprof.Do(ctx, pprof.Labels("seed", strconv.FormatUint(seed, 10)), func(ctx context.Context) {
		tally, err = Day(ctx, seed, nil)
	})
	return tally, err
}

// firstFailure prefers a broken promise to a day that was given up, and a lower
// seed to a higher one.
func firstFailure(a, b error) error {
	var x, y *Failure
	switch {
	case a == nil, !errors.As(a, &x) && errors.As(b, &y):
		return b
	case errors.As(b, &y) && y.Seed < x.Seed:
		return b
	default:
		return a
	}
}
