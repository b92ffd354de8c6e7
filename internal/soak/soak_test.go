package soak_test

import (
	"runtime"
	"testing"

	"github.com/bursar-io/bursar/internal/soak"
)

func TestDays(t *testing.T) {
	done, sum, err := soak.Days(t.Context(), 0, 20, runtime.GOMAXPROCS(0), func(int, soak.Tally) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d days: %+v", done, sum)
}
