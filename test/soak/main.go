// Command soak lets the control plane live through simulated days, as many at
// once as there are cores, and stops with the first promise that is broken:
//
//	go run ./test/soak -seeds 2000
//	go run ./test/soak -seed 17
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"github.com/bursar-io/bursar/internal/soak"
)

func main() {
	seeds := flag.Int("seeds", 500, "how many days to live through")
	first := flag.Uint64("first", 0, "the seed of the first of them")
	seed := flag.String("seed", "", "live through the day of this seed only, and print all that happens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := live(ctx, *seed, *first, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

func live(ctx context.Context, seed string, first uint64, seeds int) error {
	if seed != "" {
		return one(ctx, os.Stdout, seed)
	}
	return run(ctx, os.Stdout, first, seeds)
}

// one lives through the day of one seed.
func one(ctx context.Context, w io.Writer, seed string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return fmt.Errorf("-seed is %q; use a number: %w", seed, err)
	}
	tally, err := soak.Day(ctx, n, func(event string) { fmt.Fprintln(w, event) })
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "seed %d: %+v\n", n, tally)
	return nil
}

// run lives through the days, and says how far it is once a second.
func run(ctx context.Context, w io.Writer, first uint64, n int) error {
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	report := func(done int, t soak.Tally) {
		fmt.Fprintf(w, "%d of %d days in %s: %d jobs, %d commands (%d refused), %d preemptions, %d commits, %d failures of the store, %d crashes\n",
			done, n, time.Since(began).Round(time.Second), t.Jobs, t.Commands, t.Refused, t.Preemptions, t.Commits, t.Outages, t.Crashes)
	}
	done, sum, err := soak.Days(ctx, first, n, runtime.GOMAXPROCS(0), func(done int, sum soak.Tally) {
		select {
		case <-tick.C:
			report(done, sum)
		default:
		}
	})
	report(done, sum)
	return err
}
