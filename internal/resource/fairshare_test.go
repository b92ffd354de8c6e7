package resource

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWeightFactorOf(t *testing.T) {
	for factor, want := range map[float32]int64{
		1: 10_000, 0.5: 5_000, 0.1: 1_000, 0.0001: MinWeightFactor, 0.00015: 2, 999.9999: MaxWeightFactor, 999.9998: MaxWeightFactor - 1, 333.3333: 3_333_333,
		0: MinWeightFactor - 1, 0.00009: MinWeightFactor - 1, -1: MinWeightFactor - 1, 1000: MaxWeightFactor + 1, 3e38: MaxWeightFactor + 1,
	} {
		if got := WeightFactorOf(factor); got != want {
			t.Errorf("WeightFactorOf(%v) = %d, want %d", factor, got, want)
		}
	}
}

// TestEveryWeightFactorSurvives has every factor that there is sent as a
// decimal fraction of 32 bits, as AWS's model has it.
func TestEveryWeightFactorSurvives(t *testing.T) {
	for n := int64(MinWeightFactor); n <= MaxWeightFactor; n += 7 {
		factor, err := strconv.ParseFloat(fmt.Sprintf("%d.%04d", n/10_000, n%10_000), 32)
		if err != nil {
			t.Fatal(err)
		}
		if got := WeightFactorOf(float32(factor)); got != n {
			t.Fatalf("WeightFactorOf(%v) = %d, want %d", factor, got, n)
		}
	}
}

func TestWeightFactor(t *testing.T) {
	f := FairShare{Distribution: []WeightedShare{{"a", 1}, {"team*", 2}, {"teal", 3}}}
	for identifier, want := range map[string]int64{
		"a": 1, "ab": DefaultWeightFactor, "A": DefaultWeightFactor, "team": 2, "teamX9": 2, "tea": DefaultWeightFactor, "teal": 3, "teals": DefaultWeightFactor,
	} {
		if got := f.WeightFactor(identifier); got != want {
			t.Errorf("WeightFactor(%q) = %d, want %d", identifier, got, want)
		}
	}
	if got := (FairShare{Distribution: []WeightedShare{{"*", 5}}}).WeightFactor("anybody"); got != 5 {
		t.Errorf("under an asterisk alone the weight factor is %d, want 5", got)
	}
}

// TestAtMostOneEntryIsForAnIdentifier checks that what overlaps is refused, and
// nothing else.
func TestAtMostOneEntryIsForAnIdentifier(t *testing.T) {
	identifiers := rapid.StringMatching(`[ab]{1,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		entries := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,3}\*?`), 1, 5).Draw(rt, "entries")
		f := FairShare{}
		for _, e := range entries {
			f.Distribution = append(f.Distribution, WeightedShare{e, DefaultWeightFactor})
		}
		overlaps := false
		for _, a := range entries {
			for _, b := range entries {
				overlaps = overlaps || a != b && strings.HasSuffix(b, "*") && strings.HasPrefix(strings.TrimSuffix(a, "*"), strings.TrimSuffix(b, "*"))
			}
		}
		twice := len(setOf(entries)) < len(entries)
		if err := f.validate(); (err == nil) == (overlaps || twice) {
			rt.Fatalf("%v: %v; overlaps: %v, twice: %v", entries, err, overlaps, twice)
		}
		if overlaps || twice {
			return
		}
		identifier, matches := identifiers.Draw(rt, "identifier"), 0
		for _, w := range f.Distribution {
			if w.matches(identifier) {
				matches++
			}
		}
		if matches > 1 {
			rt.Fatalf("%d entries of %v are for %s", matches, entries, identifier)
		}
	})
}

func setOf(texts []string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		set[text] = true
	}
	return set
}

func TestValidShareIdentifier(t *testing.T) {
	for identifier, want := range map[string]bool{
		"a": true, "TeamA7": true, strings.Repeat("a", 255): true,
		"": false, strings.Repeat("a", 256): false, "a*": false, "team-a": false, "team_a": false, "é": false, "a/b": false, "a b": false,
	} {
		if got := ValidShareIdentifier(identifier); got != want {
			t.Errorf("ValidShareIdentifier(%q) = %v, want %v", identifier, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	if got := (FairShare{}).Window(); got != 600*time.Second {
		t.Errorf("a policy that names no decay has a window of %v", got)
	}
	if got := (FairShare{Decay: time.Second}).Window(); got != time.Second {
		t.Errorf("a decay of a second is a window of %v", got)
	}
}

func TestCloneIsDeep(t *testing.T) {
	p := Policy{FairShare: &FairShare{Distribution: []WeightedShare{{"a", 1}}}}
	c := p.Clone()
	c.FairShare.Decay, c.FairShare.Distribution[0].WeightFactor = time.Hour, 7
	if p.FairShare.Decay != 0 || p.FairShare.Distribution[0].WeightFactor != 1 {
		t.Errorf("a change of the copy changed the policy to %+v", p.FairShare)
	}
}
