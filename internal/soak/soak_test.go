package soak_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/bursar-io/bursar/internal/soak"
)

// TestDays lives through a few days, watched by the race detector where that is
// on. make soak lives through many.
func TestDays(t *testing.T) {
	done, sum, err := soak.Days(t.Context(), 0, 30, runtime.GOMAXPROCS(0), func(int, soak.Tally) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d days: %+v", done, sum)
}

// TestOneSeedIsOneDay lives through the same days several times at once, and
// compares all that happened.
func TestOneSeedIsOneDay(t *testing.T) {
	for seed := range uint64(4) {
		var tallies [2]soak.Tally
		var errs [2]error
		var lives sync.WaitGroup
		for i := range tallies {
			lives.Go(func() { tallies[i], errs[i] = soak.Day(t.Context(), seed, nil) })
		}
		lives.Wait()
		for i := range tallies {
			if tallies[i] != tallies[0] {
				t.Errorf("seed %d: %+v, and again %+v (%v %v)", seed, tallies[0], tallies[i], errs[0], errs[i])
			}
		}
	}
}
