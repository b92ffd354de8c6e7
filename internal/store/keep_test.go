package store_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

func TestFoldIsEqualFold(t *testing.T) {
	// Letters with more than two forms, and with forms of different lengths.
	letters := rapid.SampledFrom([]rune("aAzZ09_-kK\u212asS\u017fäÄßẞσςΣİiIı\ufffd"))
	names := rapid.OneOf(rapid.StringOfN(letters, 0, 3, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if got, want := store.Fold(a) == store.Fold(b), strings.EqualFold(a, b); got != want {
			t.Errorf("Fold has %q and %q the same: %t, want %t", a, b, got, want)
		}
		if store.Fold(a) != store.Fold(strings.ToUpper(a)) && strings.EqualFold(a, strings.ToUpper(a)) {
			t.Errorf("Fold of %q is not that of its upper case", a)
		}
	})
}

func TestInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, rapid.Int64().Draw(t, "nanoseconds")).In(time.FixedZone("", 3600*rapid.IntRange(-12, 12).Draw(t, "zone")))
		kept := store.Instant(at)
		if lost := at.Sub(kept); lost < 0 || lost >= time.Millisecond || kept.UnixMilli() != at.UnixMilli() {
			t.Errorf("%v is kept as %v", at, kept)
		}
		if kept.Location() != time.UTC || store.Instant(kept) != kept {
			t.Errorf("%v is not in UTC and to the millisecond", kept)
		}
	})
	if !store.Instant(time.Time{}).IsZero() {
		t.Error("the zero time is not kept")
	}
}

func TestCheckedSaysWhatIsWrong(t *testing.T) {
	tests := map[string]store.Batch{
		`remove service-job "job"`: {Removed: []resource.Ref{{Kind: resource.KindJob, Name: "job"}}},
		`remove  "nothing"`:        {Removed: []resource.Ref{{Name: "nothing"}}},
		`2 payloads for 1 jobs`:    {Jobs: []job.Job{{ID: "a"}}, Payloads: map[string]string{"a": "", "b": ""}},
	}
	for want, b := range tests {
		if _, err := b.Checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Checked: %v, want %q", err, want)
		}
	}
}
