package jobtext

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/terminal"
)

func TestStateAndWhy(t *testing.T) {
	stopped := job.Job{Status: job.Running, Current: &job.Attempt{Stop: &job.Stop{Text: job.ReclaimedBy("QS2")}}}
	tests := []struct {
		name  string
		why   governor.Why
		state string
		want  string
	}{
		{"waits", governor.Why{Job: job.Job{Status: job.Runnable}, Sentence: "waits for 1 ml.g5.xlarge"}, "RUNNABLE", "waits for 1 ml.g5.xlarge"},
		{"parked", governor.Why{Job: job.Job{Status: job.Runnable, Reason: quota.TextShareLimit}, Sentence: "can never fit"}, "RUNNABLE", quota.TextShareLimit},
		{"runs", governor.Why{Job: job.Job{Status: job.Running}}, "RUNNING", ""},
		{"borrows", governor.Why{Job: job.Job{Status: job.Starting}, Borrowed: quota.Amounts{"ml.p5.48xlarge": 2, "ml.g5.xlarge": 1}}, "STARTING", "its share borrows 1 ml.g5.xlarge, 2 ml.p5.48xlarge"},
		{"stops", governor.Why{Job: stopped, Borrowed: quota.Amounts{"ml.g5.xlarge": 1}}, "STOPPING", "Preempted: capacity reclaimed by quota share QS2"},
		{"failed", governor.Why{Job: job.Job{Status: job.Failed, Reason: "exit code: 1"}}, "FAILED", "exit code: 1"},
	}
	for _, tt := range tests {
		if state, why := State(tt.why.Job).Text, Why(tt.why); state != tt.state || why != tt.want {
			t.Errorf("%s: %s because %q; want %s because %q", tt.name, state, why, tt.state, tt.want)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 3, 25, 12, 0, 0, 0, time.UTC)
	tests := map[time.Duration]string{
		0:                 "0s",
		-time.Second:      "0s", // the server's clock is ahead
		119 * time.Second: "119s",
		2 * time.Minute:   "2m",
		119 * time.Minute: "119m",
		2 * time.Hour:     "2h",
		72 * time.Hour:    "3d",
	}
	for ago, want := range tests {
		if got := Since(now, now.Add(-ago)); got != want {
			t.Errorf("%s ago is %q, want %q", ago, got, want)
		}
	}
	if got := Since(now, time.Time{}); got != "-" {
		t.Errorf("never is %q", got)
	}
}

func TestSharesAlign(t *testing.T) {
	balances := []governor.Balance{
		{Queue: "training", Share: "QS1", Running: 2, Waiting: 1, Units: []governor.UnitBalance{
			{Unit: "ml.g5.xlarge", Nominal: 1, Own: 1, Borrowed: 1},
			{Unit: "ml.p5.48xlarge", Nominal: 12, Own: 3, Free: 9},
		}},
		{Queue: "training", Share: "research", Units: []governor.UnitBalance{{Unit: "ml.g5.xlarge", Nominal: 1, Lent: 1}}},
		{Queue: "training", ShareIdentifier: "ada", Running: 1, Units: []governor.UnitBalance{{Unit: "NUM_INSTANCES", Nominal: 2, Own: 1, Free: 1}}},
		{Queue: "training", Waiting: 3, Units: []governor.UnitBalance{{Unit: "NUM_INSTANCES", Nominal: 2}}},
	}
	var out bytes.Buffer
	if err := terminal.New(&out, func(string) string { return "" }).Print(Shares(balances)...); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"SHARE          UNIT            QUOTA  OWN  BORROWED  LENT  FREE  RUNNING  WAITING\n" +
		"QS1            ml.g5.xlarge        1    1         1     ·     ·        2        1\n" +
		"               ml.p5.48xlarge     12    3         ·     ·     9                  \n" +
		"research       ml.g5.xlarge        1    ·         ·     1     ·        0        0\n" +
		"ada            NUM_INSTANCES       2    1         ·     ·     1        1        0\n" +
		"(whole queue)  NUM_INSTANCES       2    ·         ·     ·     ·        0        3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	balances[1].Queue = "other"
	if lines := Shares(balances); lines[1].String() != "QS1            ml.g5.xlarge        1    1         1     ·     ·        2        1  training" {
		t.Errorf("with two queues the line is %q", lines[1])
	}
}
