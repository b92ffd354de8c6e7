package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/simulation"
	"github.com/bursar-io/bursar/test/live"
)

const twoTeams = `name: training
capacity: {ml.g5.xlarge: 3}
shares:
- {name: product, quota: {ml.g5.xlarge: 1}, sharing: Lend}
- {name: research, quota: {ml.g5.xlarge: 2}, sharing: Lend}
`

// write writes a policy file and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	live.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

var versions = regexp.MustCompile(`\d+-[0-9a-f]{16}`)

// planned runs plan, and returns what it printed, without what differs from
// run to run, and the plan's version.
func planned(t *testing.T, s *live.Server, args ...string) (text, version string) {
	t.Helper()
	text = run(t, s, append([]string{"plan"}, args...)...)
	version = versions.FindString(text)
	if version == "" {
		return text, ""
	}
	text, _, _ = strings.Cut(text, "\nversion "+version)
	return text, version
}

// TestPolicyFileGovernsAServer takes a policy file from its plan through its
// application to its export, and changes it while jobs run and wait.
func TestPolicyFileGovernsAServer(t *testing.T) {
	s := start(t)
	file := write(t, "teams.yaml", twoTeams)
	const everything = `+ service environment training
    capacity ml.g5.xlarge  3
+ scheduling policy training
    idleAssignment  FIFO
+ job queue training
    environment  training
    policy       training
    priority     1
+ quota share product
    quota ml.g5.xlarge  1
    sharing             Lend
+ quota share research
    quota ml.g5.xlarge  2
    sharing             Lend
`
	text, version := planned(t, s, "-f", file)
	same(t, "plan of everything", everything, text)
	same(t, "apply", everything+"\napplied 5 changes to training\n", run(t, s, "apply", "-f", file, "--plan-version", version))
	text, _ = planned(t, s, "-f", file)
	same(t, "plan again", "training is as the file says; nothing changes\n", text)
	for _, exported := range [][]string{{"export"}, {"export", "--queue", "training", "-o", "json"}} {
		text, _ = planned(t, s, "-f", write(t, "exported.yaml", run(t, s, exported...)), "--prune")
		same(t, "plan of an export", "training is as the file says; nothing changes\n", text)
	}

	wait := waiter(filepath.Join(t.TempDir(), "release"))
	for _, name := range []string{"r1", "r2", "r3", "p1", "p2"} {
		share := map[byte]string{'r': "research", 'p': "product"}[name[0]]
		run(t, s, append([]string{"submit", "--share", share, "--instances", "ml.g5.xlarge:1", "--name", name, "--"}, wait...)...)
	}
	runs := func(name string) func() bool {
		return func() bool { return strings.Contains(run(t, s, "job", name), "RUNNING") }
	}
	for _, name := range []string{"r1", "r2", "p1"} {
		live.Eventually(t, name+" runs", runs(name))
	}
	checkPlayedForward(t, s)

	file = write(t, "swapped.yaml", strings.NewReplacer("product, quota: {ml.g5.xlarge: 1}", "product, quota: {ml.g5.xlarge: 2}",
		"research, quota: {ml.g5.xlarge: 2}", "research, quota: {ml.g5.xlarge: 1}").Replace(twoTeams))
	text, version = planned(t, s, "-f", file)
	same(t, "plan of other quotas", `~ quota share product
    quota ml.g5.xlarge  1 → 2
~ quota share research
    quota ml.g5.xlarge  2 → 1
    2 running jobs become reclaimable: r1 (research), r2 (research)
all changes together
    1 running job is preempted: r2 (research)
    2 running jobs become reclaimable: r1 (research), r2 (research)
    1 waiting job could start: p2 (product)
`, text)

	other := write(t, "larger.yaml", strings.Replace(twoTeams, "ml.g5.xlarge: 3", "ml.g5.xlarge: 4", 1))
	run(t, s, "apply", "-f", other)
	_, stderr, status := s.CLI(t.Context(), "apply", "-f", file, "--plan-version", version)
	if want := "What is declared under training is not what was planned upon: ApplyPolicy of job-queue/training by default at "; status != 1 || !strings.Contains(stderr, want) {
		t.Errorf("applying an old plan: status %d, %s", status, stderr)
	}
	run(t, s, "apply", "-f", file)
	live.Eventually(t, "p2 runs", runs("p2"))
	live.Eventually(t, "r2 waits again", func() bool { return strings.Contains(run(t, s, "job", "r2"), "RUNNABLE") })

	alone := write(t, "alone.yaml", strings.Join(strings.Split(twoTeams, "\n")[:4], "\n"))
	text, _ = planned(t, s, "-f", alone)
	if !strings.HasSuffix(text, "quota share research is not in the file, and stays as it is; --prune deletes it\n") {
		t.Errorf("plan without a share:\n%s", text)
	}
	var plan bursarapi.Plan
	live.Must(t, json.Unmarshal([]byte(run(t, s, "apply", "-f", alone, "--prune", "-o", "json")), &plan))
	if plan.Effect.Ended.Count != 3 || len(plan.Changes) != 2 {
		t.Errorf("pruned: %+v", plan)
	}
	live.Eventually(t, "the share is gone", func() bool { return !strings.Contains(run(t, s, "shares"), "research") })
}

// checkPlayedForward checks what becomes of what runs and waits under the
// server's policy and under one with more capacity.
func checkPlayedForward(t *testing.T, s *live.Server) {
	t.Helper()
	more := write(t, "more.yaml", strings.NewReplacer("ml.g5.xlarge: 3", "ml.g5.xlarge: 9", "ml.g5.xlarge: 1", "ml.g5.xlarge: 4").Replace(twoTeams))
	for name, tt := range map[string]struct {
		args []string
		wait int // jobs that wait at first, and do not start at once
	}{
		"its own policy": {nil, 2},
		"another policy": {[]string{"--policy", more}, 1},
	} {
		var sum simulation.Summary
		live.Must(t, json.Unmarshal([]byte(run(t, s, append([]string{"simulate", "--from-server", "-o", "json"}, tt.args...)...)), &sum))
		const day = 24 * 3600.0 // declared by default
		waits := 0
		for _, share := range sum.Shares {
			if share.WaitS.Max > day/2 {
				waits++
			}
		}
		if sum.Jobs != 5 || sum.Finished != 5 || sum.WaitS.Count != 2 || waits != tt.wait {
			t.Errorf("played forward under %s: %+v", name, sum)
		}
	}
}

func TestPolicyFilesThatAreWrong(t *testing.T) {
	s := start(t)
	run(t, s, "apply", "-f", write(t, "teams.yaml", twoTeams))
	typo := write(t, "typo.yaml", strings.Replace(twoTeams, "sharing: Lend", "sharing: Land", 1))
	nameless := write(t, "nameless.yaml", strings.TrimPrefix(twoTeams, "name: training\n"))
	unit := write(t, "unit.yaml", strings.ReplaceAll(twoTeams, "ml.g5.xlarge", "gpu"))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no file", []string{"plan"}, "--file is missing; name a policy file, as in -f cohort.yaml"},
		{"a file that is not there", []string{"apply", "-f", "nothing.yaml"}, "read the policy: open nothing.yaml"},
		{"a word that is none", []string{"plan", "-f", typo}, typo + ":4: sharing of share product is Land"},
		{"no name", []string{"apply", "-f", nameless}, "the policy has no name; give it that of its job queue, as in name: training"},
		{"a unit that is none", []string{"apply", "-f", unit}, "gpu is unknown capacity unit. Use an instance type such as ml.g5.xlarge"},
		{"a version that is none", []string{"apply", "-f", typo, "--plan-version", "1"}, "sharing"},
		{"no such queue", []string{"export", "--queue", "nothing"}, "Job queue nothing does not exist."},
		{"an output that is none", []string{"export", "-o", "table"}, `--output is "table"; it must be yaml or json`},
		{"a trace and a server", []string{"simulate", "--from-server", "--trace", "x.csv"}, "--trace and --from-server are both given; use one of them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, status := s.CLI(t.Context(), tt.args...)
			if status != 1 || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, stdout %q, stderr %q; want status 1 and %q", status, stdout, stderr, tt.want)
			}
		})
	}
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
