package simulation_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/simulation"
)

func readTrace(text string) (*simulation.Trace, error) {
	return simulation.ReadTrace("t.csv", strings.NewReader(text), "gpu")
}

func TestReadTrace(t *testing.T) {
	tests := map[string]struct {
		text string
		want []simulation.Job
	}{
		"gpus": {
			"submit_s,runtime_s,gpus,team\n0,60,8,a\n1.5,0.25,1,b\n",
			[]simulation.Job{
				{Line: 2, Name: "job-1", Team: "a", Runtime: time.Minute, Demand: quota.Amounts{"gpu": 8}},
				{Line: 3, Name: "job-2", Team: "b", Submit: 1500 * time.Millisecond, Runtime: 250 * time.Millisecond, Demand: quota.Amounts{"gpu": 1}},
			},
		},
		"every other column, in another order, with spaces, and some values left out": {
			" team,demand,checkpoint_s,max_runtime_s , priority,job,runtime_s,submit_s\r\n" +
				"a, x=2 ; y=3 ,600,7200,-4,\"first, of all\",3600,10\r\n" +
				"\r\n" +
				"b,y=1,,,,second,1,10\r\n",
			[]simulation.Job{
				{
					Line: 2, Name: "first, of all", Team: "a", Priority: -4, Submit: 10 * time.Second, Runtime: time.Hour,
					MaxRuntime: 2 * time.Hour, CheckpointEvery: 10 * time.Minute, Demand: quota.Amounts{"x": 2, "y": 3},
				},
				{Line: 4, Name: "second", Team: "b", Submit: 10 * time.Second, Runtime: time.Second, Demand: quota.Amounts{"y": 1}},
			},
		},
		"out of order, with a byte order mark": {
			"\ufeffsubmit_s,runtime_s,gpus,team\n7,1,1,a\n3,1,1,b\n7,1,1,c\n3,1,1,d\n",
			[]simulation.Job{
				{Line: 3, Name: "job-2", Team: "b", Submit: 3 * time.Second, Runtime: time.Second, Demand: quota.Amounts{"gpu": 1}},
				{Line: 5, Name: "job-4", Team: "d", Submit: 3 * time.Second, Runtime: time.Second, Demand: quota.Amounts{"gpu": 1}},
				{Line: 2, Name: "job-1", Team: "a", Submit: 7 * time.Second, Runtime: time.Second, Demand: quota.Amounts{"gpu": 1}},
				{Line: 4, Name: "job-3", Team: "c", Submit: 7 * time.Second, Runtime: time.Second, Demand: quota.Amounts{"gpu": 1}},
			},
		},
		"no jobs": {"submit_s,runtime_s,gpus,team\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{tt.text, zipped(t, tt.text)} {
				got, err := readTrace(text)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got.Jobs); diff != "" {
					t.Errorf("jobs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadTraceSaysWhatIsWrong(t *testing.T) {
	const header = "submit_s,runtime_s,gpus,team,priority,max_runtime_s,checkpoint_s,job\n"
	const demandHeader = "submit_s,runtime_s,demand,team\n"
	tests := map[string]struct{ text, want string }{
		"empty":             {"", `t.csv:1: the file is empty; its first line must name the columns submit_s, runtime_s, team, and gpus or demand`},
		"unknown column":    {"submit_s,runtime,gpus,team\n", `t.csv:1: column "runtime" is unknown; a trace has the columns submit_s, runtime_s, team, gpus, demand, job, priority, max_runtime_s, checkpoint_s`},
		"column twice":      {"submit_s,team,gpus,team\n", `t.csv:1: column team is there twice`},
		"no runtime":        {"submit_s,gpus,team\n", `t.csv:1: column runtime_s is missing`},
		"no demand":         {"submit_s,runtime_s,team\n", `t.csv:1: exactly one of the columns gpus and demand must be there`},
		"two demands":       {"submit_s,runtime_s,team,gpus,demand\n", `t.csv:1: exactly one of the columns gpus and demand must be there`},
		"fields missing":    {demandHeader + "1,2,x=1,a\n1,2,x=1\n", `t.csv:3: has 3 fields where the first line has 4`},
		"open quote":        {demandHeader + "1,2,\"x=1,a\n", "t.csv:2: is not CSV: extraneous or missing \" in quoted-field"},
		"submit":            {header + "soon,1,1,a,,,,j\n", `t.csv:2: column submit_s: "soon": must be seconds since the start of the trace, such as 0 or 90.5, and at most 1000000000`},
		"negative submit":   {header + "-1,1,1,a,,,,j\n", `t.csv:2: column submit_s: "-1": must be seconds since`},
		"submit missing":    {header + ",1,1,a,,,,j\n", `t.csv:2: column submit_s: "": must be seconds since`},
		"no runtime at all": {header + "1,0,1,a,,,,j\n", `t.csv:2: column runtime_s: "0": must be seconds, more than 0, such as 3600, and at most`},
		"endless":           {header + "1,inf,1,a,,,,j\n", `t.csv:2: column runtime_s: "inf": must be seconds`},
		"not a number":      {header + "1,NaN,1,a,,,,j\n", `t.csv:2: column runtime_s: "NaN": must be seconds`},
		"too long":          {header + "1,1000000001,1,a,,,,j\n", `t.csv:2: column runtime_s: "1000000001": must be seconds, more than 0, such as 3600, and at most 1000000000`},
		"gpus":              {header + "1,1,0.5,a,,,,j\n", `t.csv:2: column gpus: "0.5": must be a whole number, more than 0, such as 8`},
		"no gpus":           {header + "1,1,0,a,,,,j\n", `t.csv:2: column gpus: "0": must be a whole number`},
		"team":              {header + "1,1,1, ,,,,j\n", `t.csv:2: column team: "": must name the share of the job`},
		"priority":          {header + "1,1,1,a,high,,,j\n", `t.csv:2: column priority: "high": must be a whole number, higher first, or nothing for 0`},
		"max runtime":       {header + "1,1,1,a,,-2,,j\n", `t.csv:2: column max_runtime_s: "-2": must be seconds, such as 7200, or nothing where a job declares none`},
		"checkpoint":        {header + "1,1,1,a,,,1h,j\n", `t.csv:2: column checkpoint_s: "1h": must be seconds from one checkpoint to the next`},
		"job missing":       {header + "1,1,1,a,,,,\n", `t.csv:2: column job: "": must name the job; without the column jobs are numbered`},
		"job twice":         {header + "1,1,1,a,,,,j\n1,1,1,a,,,,k\n\n1,1,1,a,,,,j\n", `t.csv:5: column job: "j": must differ from all others, and line 2 has it too`},
		"demand":            {demandHeader + "1,1,x:2,a\n", `t.csv:2: column demand: "x:2": must be unit=amount, each amount a whole number of more than 0, with ; between several`},
		"demand of nothing": {demandHeader + "1,1,x=0,a\n", `t.csv:2: column demand: "x=0": must be unit=amount`},
		"demand empty":      {demandHeader + "1,1,,a\n", `t.csv:2: column demand: "": must be unit=amount`},
		"unit twice":        {demandHeader + "1,1,x=1;y=1;x=2,a\n", `t.csv:2: column demand: "x=1;y=1;x=2": must name each unit once, and names x again`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readTrace(tt.text)
			var row *simulation.RowError
			if !errors.As(err, &row) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReadTraceWantsTheUnitOfGPUs(t *testing.T) {
	_, err := simulation.ReadTrace("t.csv", strings.NewReader("submit_s,runtime_s,gpus,team\n"), "")
	if err == nil || !strings.Contains(err.Error(), "--gpus-unit") {
		t.Errorf("got %v, want what to do", err)
	}
}

func TestReadTraceOfABrokenFile(t *testing.T) {
	whole := zipped(t, "submit_s,runtime_s,gpus,team\n"+strings.Repeat("1,1,1,a\n", 1000))
	for _, text := range []string{whole[:4], whole[:len(whole)-9]} {
		if _, err := readTrace(text); err == nil || !strings.Contains(err.Error(), "read trace t.csv") {
			t.Errorf("got %v, want which file could not be read", err)
		}
	}
}

// What is written as a trace is read as it was, whatever the order of columns.
func TestReadTraceReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) simulation.Job {
			whole := func(label string, least int) time.Duration {
				return time.Duration(rapid.IntRange(least, 1e9).Draw(t, label)) * time.Second
			}
			return simulation.Job{
				Team: rapid.StringMatching(`[a-z," ]*[a-z]`).Draw(t, "team"), Priority: rapid.Int32().Draw(t, "priority"),
				Submit: whole("submit", 0), Runtime: whole("runtime", 1),
				MaxRuntime: whole("max", 0), CheckpointEvery: whole("checkpoint", 0),
				Demand: quota.Amounts{"x": rapid.Int64Range(1, 99).Draw(t, "x"), "y": rapid.Int64Range(1, 99).Draw(t, "y")},
			}
		})).Draw(t, "jobs")
		order := rapid.Permutation([]string{"submit_s", "runtime_s", "team", "demand", "priority", "max_runtime_s", "checkpoint_s"}).Draw(t, "columns")
		var b strings.Builder
		b.WriteString(strings.Join(order, ",") + "\n")
		for i, j := range jobs {
			j.Team = strings.TrimSpace(j.Team)
			jobs[i].Team, jobs[i].Line, jobs[i].Name = j.Team, i+2, fmt.Sprint("job-", i+1)
			value := map[string]string{
				"submit_s": whole(j.Submit), "runtime_s": whole(j.Runtime), "max_runtime_s": whole(j.MaxRuntime), "checkpoint_s": whole(j.CheckpointEvery),
				"team": `"` + strings.ReplaceAll(j.Team, `"`, `""`) + `"`, "priority": fmt.Sprint(j.Priority),
				"demand": fmt.Sprintf("x=%d;y=%d", j.Demand["x"], j.Demand["y"]),
			}
			for n, column := range order {
				if n > 0 {
					b.WriteByte(',')
				}
				b.WriteString(value[column])
			}
			b.WriteByte('\n')
		}
		got, err := readTrace(b.String())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(jobs, func(a, b simulation.Job) int { return int(a.Submit/time.Second - b.Submit/time.Second) })
		if len(jobs) == 0 {
			jobs = nil
		}
		if diff := cmp.Diff(jobs, got.Jobs); diff != "" {
			t.Fatalf("read (-written +read):\n%s", diff)
		}
	})
}

func whole(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// Whatever the bytes, reading ends with jobs that are fit to run, or with an
// error that names the file.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte("submit_s,runtime_s,gpus,team\n0,60,8,a\n1.5,0.25,1,b\n"))
	f.Add([]byte("team,demand,checkpoint_s,max_runtime_s,priority,job,runtime_s,submit_s\na,x=2;y=3,600,7200,-4,j,3600,10\n"))
	f.Add([]byte("\ufeffsubmit_s,runtime_s,demand,team\n1e3,1,\"x=1\",\"a\"\"b\"\n"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := simulation.ReadTrace("t.csv", bytes.NewReader(data), "gpu")
		if err != nil {
			if !strings.Contains(err.Error(), "t.csv") {
				t.Fatalf("%v does not name the file", err)
			}
			return
		}
		names := map[string]bool{}
		for i, j := range trace.Jobs {
			if j.Submit < 0 || j.Runtime <= 0 || j.MaxRuntime < 0 || j.CheckpointEvery < 0 || j.Team == "" || j.Line < 2 || names[j.Name] {
				t.Fatalf("job %+v", j)
			}
			if i > 0 && j.Submit < trace.Jobs[i-1].Submit {
				t.Fatalf("job %+v comes after one submitted later", j)
			}
			names[j.Name] = true
			if len(j.Demand) == 0 {
				t.Fatalf("job %+v wants nothing", j)
			}
			for unit, amount := range j.Demand {
				if unit == "" || amount <= 0 {
					t.Fatalf("job %+v", j)
				}
			}
		}
	})
}

func BenchmarkReadTrace(b *testing.B) {
	var text strings.Builder
	text.WriteString("submit_s,runtime_s,gpus,team\n")
	for i := range 82_247 {
		fmt.Fprintf(&text, "%d,%d,%d,vc%02d\n", i*100, i*37%9000+1, 1<<(i%4), i%15)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readTrace(text.String()); err != nil {
			b.Fatal(err)
		}
	}
}
