// Package mirror holds the quota engine against another scheduler's own test
// cases (Kueue's, Apache-2.0). It has nothing but tests: where the engine
// decides otherwise, a rule of the scheduling semantics must say so, and
// docs/compared.md tells administrators. The cases themselves stay outside of
// the repository, and no rule of the engine may be taken from them.
package mirror

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// comparedFile explains the kinds of difference, and has the figures.
const comparedFile = "../../../docs/compared.md"

func TestDecidesAsTheOtherSchedulerOrSaysWhyNot(t *testing.T) {
	examples, all := readExamples(t)
	known := differences()
	figures := tally{"left out: other tables, about other questions": all - len(examples)}
	for _, e := range examples {
		named, differs := known[e.Name]
		delete(known, e.Name)
		theirs, ours, err := e.outcomes()
		switch {
		case !differs && (errors.Is(err, errTree) || errors.Is(err, errPodSets)):
			figures["left out: "+err.Error()]++
		case err != nil:
			t.Errorf("%s: %v", e, err)
		case !differs && cmp.Equal(theirs, ours):
			figures["the same victims, on the same grounds"]++
		case !differs:
			t.Errorf("%s: another outcome (-theirs +ours), and no rule is named that makes it so:\n%s", e, cmp.Diff(theirs, ours))
		case cmp.Equal(theirs, ours):
			t.Errorf("%s: named as a difference (%s), but the outcome is the same: %q", e, named.kind, ours)
		case !cmp.Equal(named.ours, ours):
			t.Errorf("%s: not the outcome that is named (-named +ours):\n%s", e, cmp.Diff(named.ours, ours))
		default:
			figures["differs: "+string(named.kind)]++
			t.Logf("%s\ntheirs %q, ours %q: %s\n%s", e, theirs, ours, named.kind, rules()[named.kind])
		}
	}
	for name := range known {
		t.Errorf("a difference is named for %q, but there is no such case", name)
	}
	t.Logf("%d cases:\n%s", all, figures)
	checkDocumented(t, figures)
}

// tally counts cases by what they count as.
type tally map[string]int

// String is the tally as the rows of a table, most cases first.
func (f tally) String() string {
	var rows strings.Builder
	for _, as := range slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		if f[a] != f[b] {
			return f[b] - f[a]
		}
		return strings.Compare(a, b)
	}) {
		fmt.Fprintf(&rows, "| %s | %d |\n", as, f[as])
	}
	return rows.String()
}

func checkDocumented(t *testing.T, figures tally) {
	t.Helper()
	text, err := os.ReadFile(comparedFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(figures.String())) {
		t.Errorf("%s should have these figures:\n%s", comparedFile, figures)
	}
}

func TestEveryKindNamesItsRule(t *testing.T) {
	named := map[kind]bool{}
	for name, d := range differences() {
		named[d.kind] = true
		if rules()[d.kind] == "" {
			t.Errorf("%q: no rule is named for the kind %q", name, d.kind)
		}
	}
	for kind := range rules() {
		if !named[kind] {
			t.Errorf("no case is of the kind %q", kind)
		}
	}
}

// TestReadsCases shows, with a case of our own, that a case is read and put to
// the engine as it says: b has borrowed all that a lends, and a wants it back.
func TestReadsCases(t *testing.T) {
	const ownCase = `{"test": "TestPreemption", "name": "own", "targetCQ": "a",
		"cqs": [
			{"name": "a", "cohort": "all", "quotas": {"spot": {"cpu": {"nominal": 3, "lendingLimit": 2.5}}}},
			{"name": "b", "cohort": "all", "quotas": {"spot": {"cpu": {"nominal": 2, "borrowingLimit": 2.5}}}},
			{"name": "c", "quotas": {"spot": {"cpu": {"nominal": 9}}}}],
		"cohorts": %s,
		"running": [
			{"name": "b1", "podSets": [{}], "admission": {"cq": "b", "podSets": [{"flavors": {"cpu": "spot"}, "usage": {"cpu": 2}}]}},
			{"name": "b2", "podSets": [{}], "admission": {"cq": "b", "podSets": [{"flavors": {"cpu": "spot"}, "usage": {"cpu": 2.5}}]}},
			{"name": "c1", "podSets": [{}], "admission": {"cq": "c", "podSets": [{"flavors": {"cpu": "spot"}, "usage": {"cpu": 9}}]}}],
		"incoming": {"name": "a1", "podSets": [{"count": 2, "perPod": {"cpu": 1.5, "memory": 0}}]},
		"assignment": [{"flavors": {"cpu": {"flavor": "spot"}}}],
		"expectPreempted": ["space/b1:InCohortReclamation"]}`

	cases := []struct {
		name    string
		cohorts string
		ours    outcome
		err     error
	}{
		{name: "queues only", cohorts: `[]`, ours: outcome{"b2: reclaim"}},
		{
			name:    "a cohort with enough of its own to spare",
			cohorts: `[{"name": "all", "quotas": {"spot": {"cpu": {"nominal": 2.5}}}}]`, ours: outcome{},
		},
		{
			name:    "a cohort with too little of its own",
			cohorts: `[{"name": "all", "quotas": {"spot": {"cpu": {"nominal": 0.5}}}}]`, ours: outcome{"b1: reclaim"},
		},
		{name: "a tree", cohorts: `[{"name": "all", "parent": "root"}]`, err: errTree},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			line := strings.ReplaceAll(fmt.Sprintf(ownCase, c.cohorts), "\n", " ")
			examples, all, err := parseExamples(compress(t, line+"\n"+`{"test": "TestOther", "name": "x", "raw": 1}`+"\n"))
			if err != nil || all != 2 || len(examples) != 1 {
				t.Fatalf("read %d cases of %d, want 1 of 2: %v", len(examples), all, err)
			}
			theirs, ours, err := examples[0].outcomes()
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(outcome{"b1: reclaim"}, theirs); diff != "" {
				t.Errorf("theirs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.ours, ours); diff != "" {
				t.Errorf("ours (-want +got):\n%s", diff)
			}
		})
	}
}

func compress(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &compressed
}

func TestThousandths(t *testing.T) {
	cases := []struct {
		quantity string
		want     int64
		bad      bool
	}{
		{quantity: "3", want: 3000},
		{quantity: "0.5", want: 500},
		{quantity: "3221225472", want: 3221225472000},
		{quantity: "5.36870912e+09", want: 5368709120000},
		{quantity: "0", want: 0},
		{quantity: "0.0005", bad: true},
		{quantity: "1e30", bad: true},
		{quantity: "", bad: true},
	}
	for _, c := range cases {
		got, err := thousandths(json.Number(c.quantity))
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("thousandths(%q) = %d, %v; want %d, an error: %v", c.quantity, got, err, c.want, c.bad)
		}
	}
}
