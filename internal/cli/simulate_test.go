package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder is a directory with a policy, another one, and a trace.
type folder struct{ dir string }

func newFolder(t *testing.T) folder {
	t.Helper()
	w := folder{t.TempDir()}
	for name, text := range map[string]string{
		"p.yaml":     "capacity: {gpu: 4}\nshares:\n- {name: a, quota: {gpu: 2}}\n- {name: b, quota: {gpu: 2}}\n",
		"other.yaml": "capacity: {gpu: 6}\nshares:\n- {name: a, quota: {gpu: 4}}\n- {name: b, quota: {gpu: 2}}\n",
		"wrong.yaml": "capacity: {gpu: 4}\nshares:\n- {name: a, quotas: {gpu: 2}}\n",
		"t.csv":      "submit_s,runtime_s,team,gpus\n0,7200,a,4\n5400,3600,b,2\n",
		"unfit.csv":  "submit_s,runtime_s,team,gpus\n0,7200,z,4\n",
	} {
		if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w folder) path(name string) string { return filepath.Join(w.dir, name) }

// simulate runs the command with files of the folder where an argument has
// the extension of one.
func (w folder) simulate(ctx context.Context, args ...string) (out, complaint string, status int) {
	line := []string{"simulate"}
	for _, arg := range args {
		if strings.Contains(arg, ".") && !strings.HasPrefix(arg, "0") {
			arg = w.path(arg)
		}
		line = append(line, arg)
	}
	var stdout, stderr bytes.Buffer
	status = Run(ctx, System{Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }}, line)
	return stdout.String(), stderr.String(), status
}

func TestSimulateComparesPolicies(t *testing.T) {
	w := newFolder(t)
	out, complaint, status := w.simulate(t.Context(),
		"--policy", "p.yaml", "--policy", "other.yaml", "--trace", "t.csv", "--gpus-unit", "gpu", "--checkpoint-every", "1h", "--report", "r.html")
	if status != 0 || complaint != "" {
		t.Fatalf("status %d: %s", status, complaint)
	}
	fields := map[string][]string{}
	for line := range strings.Lines(out) {
		name, values, _ := strings.Cut(strings.TrimSpace(line), "  ")
		fields[name] = append(fields[name], strings.Join(strings.Fields(values), " "))
	}
	for name, want := range map[string]string{
		"Preemptions": "1 0 −1 (−100 %) better", "gpu-hours lost": "2 h 0 h −2 h (−100 %) better", "Makespan": "3h 30m 2h 30m −1h (−29 %) better",
	} {
		if got := fields[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := fields["a"]; len(got) != 2 || got[0] != "1 0s 0s 0s 0s 1 10 5 2" || got[1] != "1 0s 0s 0s 0s 0 8 0 0" {
		t.Errorf("share a: got %q", got)
	}
	page, err := os.ReadFile(w.path("r.html"))
	if err != nil || !bytes.Contains(page, []byte("t.csv under p.yaml and other.yaml")) {
		t.Errorf("the report: %v", err)
	}
}

func TestSimulateForPrograms(t *testing.T) {
	w := newFolder(t)
	out, complaint, status := w.simulate(t.Context(), "--policy", "p.yaml", "--trace", "t.csv", "--gpus-unit", "gpu", "-o", "json", "--events", "e.jsonl")
	if status != 0 {
		t.Fatalf("status %d: %s", status, complaint)
	}
	var summary struct {
		Jobs         int
		LostGPUHours float64 `json:"lost_gpu_hours"`
		WaitS        struct{ Mean float64 }
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil || summary.Jobs != 2 || summary.LostGPUHours != 6 {
		t.Errorf("got %+v, %v, of\n%s", summary, err, out)
	}
	events, err := os.ReadFile(w.path("e.jsonl"))
	if first, _, _ := strings.Cut(string(events), "\n"); err != nil || first != `{"t":0,"event":"submit","job":"job-1","share":"a","demand":{"gpu":4}}` {
		t.Errorf("events begin with %s: %v", first, err)
	}
}

func TestSimulateSaysWhatIsWrong(t *testing.T) {
	w := newFolder(t)
	good := []string{"--policy", "p.yaml", "--trace", "t.csv", "--gpus-unit", "gpu"}
	for want, args := range map[string][]string{
		`--policy is given 0 times`:           {"--trace", "t.csv"},
		`--policy is given 3 times`:           append(good, "--policy", "p.yaml", "--policy", "other.yaml"),
		`--trace is missing`:                  {"--policy", "p.yaml"},
		`--output is "xml"; it must be table`: append(good, "-o", "xml"),
		`--events takes one --policy`:         append(good, "--policy", "other.yaml", "--events", "e.jsonl"),
		`--checkpoint-every is -1s`:           append(good, "--checkpoint-every", "-1s"),
		`--declared-runtime is 0.5; it must`:  append(good, "--declared-runtime", "0.5"),
		`wrong.yaml:3:`:                       {"--policy", "wrong.yaml", "--trace", "t.csv", "--gpus-unit", "gpu"},
		`read the policy: open `:              {"--policy", "none.yaml", "--trace", "t.csv", "--gpus-unit", "gpu"},
		`read the trace: open `:               {"--policy", "p.yaml", "--trace", "none.csv", "--gpus-unit", "gpu"},
		`--gpus-unit`:                         {"--policy", "p.yaml", "--trace", "t.csv"},
		`unfit.csv:2: column team: "z"`:       {"--policy", "p.yaml", "--trace", "unfit.csv", "--gpus-unit", "gpu"},
		`no/such/place.html`:                  append(good, "--report", "no/such/place.html"),
		`no/such/place.jsonl`:                 append(good, "--events", "no/such/place.jsonl"),
	} {
		if _, complaint, status := w.simulate(t.Context(), args...); status == 0 || !strings.Contains(complaint, want) {
			t.Errorf("%v: status %d, %q, want %q", args, status, complaint, want)
		}
	}
}

func TestSimulateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, complaint, status := newFolder(t).simulate(ctx, "--policy", "p.yaml", "--trace", "t.csv", "--gpus-unit", "gpu")
	if status == 0 || !strings.Contains(complaint, "interrupted") {
		t.Errorf("status %d: %q", status, complaint)
	}
}
