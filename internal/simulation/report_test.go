package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/simulation"
)

// otherPolicy has more capacity than the story's, and takes it back otherwise.
const otherPolicy = `
capacity: {gpu: 6}
victims: NewestFirst
shares:
- {name: a, quota: {gpu: 4}}
- {name: b, quota: {gpu: 2}}
- {name: c, quota: {gpu: 0}, sharing: Reserve}
`

func report(t *testing.T, tr *simulation.Trace, runs ...*simulation.Run) string {
	t.Helper()
	var page bytes.Buffer
	if err := simulation.WriteReport(&page, tr, runs...); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// storyReport is a page that compares the story under two policies.
func storyReport(t *testing.T) string {
	t.Helper()
	tr := trace(t, storyTrace)
	o := simulation.Options{Assume: simulation.Assumptions{CheckpointEvery: time.Hour, DeclaredRuntime: 1.5}}
	return report(t, tr, replay(t, policy(t, "first.yaml", storyPolicy), tr, o), replay(t, policy(t, "other.yaml", otherPolicy), tr, o))
}

func TestReportOfOneRun(t *testing.T) {
	tr := trace(t, storyTrace)
	page := report(t, tr, replay(t, policy(t, "first.yaml", storyPolicy), tr, simulation.Options{}))
	for _, part := range []string{
		"<title>t.csv under first.yaml</title>", "85.7 %", "3h 30m", "2 h", "The policy in words",
		"4 gpu in 3 shares.", "Nothing passes a blocked job of its share (Strict).", `"owned":[`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is missing", part)
		}
	}
	for _, part := range []string{"Difference", "Assumed", "ZgotmplZ"} {
		if strings.Contains(page, part) {
			t.Errorf("%q is there", part)
		}
	}
}

func TestReportComparesTwoRuns(t *testing.T) {
	page := storyReport(t)
	for _, part := range []string{
		"<title>t.csv under first.yaml and other.yaml</title>", "The policies in words",
		`−1 (−100 %) <small>better</small>`, // preemptions
		`−2 h (−100 %) <small>better</small>`,
		"jobs checkpoint every 1h; jobs declare 1.5 times their runtime as the most they need",
		`<li class="differs">6 gpu in 3 shares.</li>`, `<li class="differs">Who gives capacity back: first jobs that were started last (NewestFirst).</li>`,
		`<tr class="differs"><th scope="row">c</th><td>0 gpu</td><td>keeps its quota to itself</td></tr>`,
		`<tr><th scope="row">b</th>`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is missing", part)
		}
	}
}

// The page must work where nothing else can be reached.
func TestReportNeedsNothingElse(t *testing.T) {
	page := strings.ReplaceAll(storyReport(t), "http://www.w3.org/2000/svg", "") // a name, not an address
	for _, pattern := range []string{`https?://`, `<link`, `src=`, `@import`, `url\((?:[^#"\x60]|"[^#])`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
}

func TestReportKeepsNamesHarmless(t *testing.T) {
	tr := trace(t, "submit_s,runtime_s,team,gpus\n0,60,</script><script>alert(1)</script>,1\n")
	text := "capacity: {gpu: 1}\nshares:\n- {name: '</script><script>alert(1)</script>', quota: {gpu: 1}}\n"
	page := report(t, tr, replay(t, policy(t, "<b>.yaml", text), tr, simulation.Options{}))
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<b>") {
		t.Error("a name became part of the page")
	}
}

func TestReportStaysSmall(t *testing.T) {
	var policyText, rows strings.Builder
	policyText.WriteString("capacity: {gpu: 300, cpu: 300, tpu: 300}\nshares:\n")
	rows.WriteString("submit_s,runtime_s,team,demand\n")
	for i := range 200 {
		fmt.Fprintf(&policyText, "- {name: share-%d, quota: {gpu: 1, cpu: 1, tpu: 1}}\n", i)
	}
	for i := range 5000 {
		fmt.Fprintf(&rows, "%d,%d,share-%d,gpu=%d;cpu=%d;tpu=%d\n", i*60, 1000+i*7919%5000, i*31%200, 1+i%3, 1+i%5, 1+i%7)
	}
	tr, err := readTrace(rows.String())
	if err != nil {
		t.Fatal(err)
	}
	run := replay(t, policy(t, "first.yaml", policyText.String()), tr, simulation.Options{})
	if page := report(t, tr, run, run); len(page) > 2<<20 {
		t.Errorf("the page has %d bytes, more than 2 MiB", len(page))
	}
}

func TestReportOfTooManyRuns(t *testing.T) {
	tr := trace(t, storyTrace)
	run := replay(t, policy(t, "first.yaml", storyPolicy), tr, simulation.Options{})
	for _, runs := range [][]*simulation.Run{nil, {run, run, run}} {
		if err := simulation.WriteReport(&bytes.Buffer{}, tr, runs...); !errors.Is(err, simulation.ErrRuns) {
			t.Errorf("%d runs: got %v", len(runs), err)
		}
	}
	if err := simulation.WriteReport(fullDisk{}, tr, run); !errors.Is(err, errFull) {
		t.Errorf("on a full disk: got %v", err)
	}
}

func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.25: "0.25s", 1: "1s", 59.6: "1m", 90: "1m 30s", 3600: "1h", 3661: "1h 1m", 86400 * 3: "3d", 86400*3 + 7200: "3d 2h",
	} {
		if got := simulation.Seconds(seconds); got != want {
			t.Errorf("%g seconds are %q, want %q", seconds, got, want)
		}
	}
}

// In a browser the script draws every chart, at both widths, and shows what is
// under the pointer.
func TestReportInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	browser := findBrowser()
	if browser == "" {
		t.Skip("no Chromium or Chrome on the PATH")
	}
	// The policy of the page allows inline scripts, so the test adds one: it
	// points at every chart and writes down what that showed.
	const probe = `<script>
	const shown = [...document.querySelectorAll(".hit")].map((hit) => {
		const box = hit.getBoundingClientRect();
		hit.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 3, clientY: box.top + 2 }));
		return document.getElementById("tip").textContent;
	});
	const result = document.createElement("pre");
	result.id = "result";
	result.textContent = [
		"charts=" + document.querySelectorAll("main svg[role=img]").length,
		"shown=" + shown.filter((text) => text.length > 0).length,
		"overflow=" + (document.documentElement.scrollWidth > innerWidth),
		"first=" + shown[0], "invalid=" + /NaN|undefined|Infinity/.test(document.querySelector("main").innerHTML)].join(";");
	document.body.append(result);
	</script></body>`
	page := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(page, []byte(strings.Replace(storyReport(t), "</body>", probe, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1280, 800} {
		dom := dump(t, browser, page, width)
		// Of each run: utilization, three strips, five waits and two bar charts.
		for _, want := range []string{"charts=22;", "shown=22;", "overflow=false;", "owned2", "borrowed2", "invalid=false"} {
			if _, result, _ := strings.Cut(dom, `id="result"`); !strings.Contains(result, want) {
				t.Errorf("%d pixels wide: %q is missing in %q", width, want, result)
			}
		}
	}
}

func findBrowser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// dump returns the page's document after its scripts have run.
func dump(t *testing.T, browser, page string, width int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,1000", width), "--dump-dom", "file://"+page)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	return string(out)
}
