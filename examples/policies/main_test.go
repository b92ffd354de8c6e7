package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-io/bursar/internal/scenario"
)

// Team a used seven of ten GPU-hours, b two and a half, c the rest: of 6 GPUs
// they get 4, 2 and 0 (4.2, 1.5 and 0.3 before rounding).
const history = `submit_s,runtime_s,team,gpus
0,3600,a,7
0,9000,b,1
60,1800,c,1
`

func TestComparison(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.csv")
	if err := os.WriteFile(trace, []byte(history), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-trace", trace, "-policies", filepath.Join(dir, "p"), "-gpus", "6,8"}, &out); err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(out.String(), "\n"); rows != 2+2*3*2 {
		t.Errorf("%d rows:\n%s", rows, out.String())
	}
	file := filepath.Join(dir, "p", "6-MostOverQuota-Backfill.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := scenario.ParseCohort(file, text)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, s := range c.Shares {
		got[s.Name] = s.Nominal["gpu"]
	}
	if got["a"] != 4 || got["b"] != 2 || got["c"] != 0 || len(got) != 3 {
		t.Errorf("quotas %v", got)
	}
}

func TestComparisonRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.csv")
	if err := os.WriteFile(empty, []byte("submit_s,runtime_s,team,gpus\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"-trace is missing":         {},
		`-gpus has "0"`:             {"-trace", "t.csv", "-gpus", "6,0"},
		"read the trace: open none": {"-trace", "none"},
		"wants any gpu":             {"-trace", empty, "-policies", filepath.Dir(empty)},
	} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}
