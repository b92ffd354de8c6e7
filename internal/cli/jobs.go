package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/jobtext"
	"github.com/bursar-io/bursar/internal/terminal"
)

// unfinished are the states of jobs that wait or run.
var unfinished = []job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running}

func (c *commands) jobs() *cobra.Command {
	var query bursarapi.JobQuery
	var all bool
	var statuses []string
	command := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs that wait or run, newest first",
		Args:  cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&query.Queue, "queue", "", "only jobs of this queue")
	flags.StringVar(&query.Share, "share", "", "only jobs of this quota share")
	flags.StringVar(&query.ShareIdentifier, "share-identifier", "", "only jobs of this share identifier")
	flags.StringSliceVar(&statuses, "status", nil, "only jobs in these states, such as RUNNING,FAILED")
	flags.BoolVarP(&all, "all", "a", false, "finished jobs too")
	flags.IntVarP(&query.Limit, "limit", "n", bursarapi.DefaultList, "at most this many")
	v := &viewer{commands: c, fetch: func(ctx context.Context, s server, _ []string) (view, error) {
		asked := query
		for _, status := range statuses {
			asked.Statuses = append(asked.Statuses, job.Status(strings.ToUpper(status)))
		}
		if len(statuses) == 0 && !all {
			asked.Statuses = unfinished
		}
		jobs, err := c.asker(s).Jobs(ctx, asked)
		return view{jobs, c.jobLines(jobs)}, err
	}}
	return v.addTo(command)
}

// jobLines is a table of jobs in the order given.
func (c *commands) jobLines(jobs []bursarapi.Job) []terminal.Line {
	if len(jobs) == 0 {
		return []terminal.Line{terminal.Text(terminal.Dim, "no jobs")}
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.Job.ID
	}
	short := shortIDs(ids)
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "JOB"}, {Title: "NAME"}, {Title: "SHARE"}, {Title: "PRIORITY", Right: true}, {Title: "STATE"}, {Title: "SINCE", Right: true}, {Title: "WHY"},
	}}
	now := c.Now()
	for i, j := range jobs {
		table.Add(
			terminal.Span{Text: short[i], Style: terminal.Dim},
			terminal.Span{Text: j.Job.Name, Style: terminal.Bold},
			terminal.Span{Text: cmp.Or(j.Job.Share, j.Job.ShareIdentifier, "-")},
			terminal.Span{Text: fmt.Sprint(j.Job.Priority)},
			jobtext.State(j.Job),
			terminal.Span{Text: jobtext.Since(now, j.Job.UpdatedAt)},
			terminal.Span{Text: jobtext.Why(j)},
		)
	}
	return table.Lines()
}

// shortIDs shortens ids to as few characters as tell them apart, at least 8.
func shortIDs(ids []string) []string {
	sorted := slices.Sorted(slices.Values(ids))
	shortest := 8
	for i := 1; i < len(sorted); i++ {
		shortest = max(shortest, commonPrefix(sorted[i-1], sorted[i])+1)
	}
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = id[:min(shortest, len(id))]
	}
	return short
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (c *commands) job() *cobra.Command {
	v := &viewer{commands: c, prose: true, fetch: func(ctx context.Context, s server, args []string) (view, error) {
		j, err := c.asker(s).Job(ctx, args[0])
		return view{j, c.detailLines(j)}, err
	}}
	return v.addTo(&cobra.Command{
		Use:   "job JOB",
		Short: "Show one job and its attempts",
		Long:  "Show one job and its attempts. " + jobRefHelp,
		Args:  oneJob,
	})
}

// jobRefHelp tells what the argument JOB may be.
const jobRefHelp = "JOB is a job's id, its ARN, the beginning of its id, or its name (the newest job of that name)."

func oneJob(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments; name one JOB: %s", len(args), jobRefHelp)
	}
	return nil
}

// detailLines is everything about one job that people ask for.
func (c *commands) detailLines(j bursarapi.Job) []terminal.Line {
	now := c.Now()
	fields := fieldTable{}
	fields.add("job", j.Job.ID)
	fields.add("name", j.Job.Name)
	fields.add("queue", j.Job.Queue)
	fields.add("share", cmp.Or(j.Job.Share, j.Job.ShareIdentifier))
	fields.add("priority", fmt.Sprint(j.Job.Priority))
	fields.add("demand", jobtext.Demand(j.Job.Demand))
	fields.addSpan("state", jobtext.State(j.Job))
	fields.add("since", jobtext.Since(now, j.Job.UpdatedAt))
	fields.add("why", jobtext.Why(j))
	fields.add("submitted", jobtext.Time(j.Job.CreatedAt))
	fields.add("checkpoint", jobtext.Time(j.Job.CheckpointAt))
	if j.Job.PreemptionCount > 0 {
		fields.add("preempted", times(j.Job.PreemptionCount))
	}
	lines := fields.lines()
	if runs := runsOf(j.Job); len(runs) > 0 {
		lines = append(lines, nil)
		lines = append(lines, runLines(runs)...)
	}
	return lines
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// runsOf is every run of a job that is remembered, oldest first.
func runsOf(j job.Job) []job.Attempt {
	runs := slices.Concat(j.Attempts, j.Preemptions)
	if j.Current != nil {
		runs = append(runs, *j.Current)
	}
	slices.SortFunc(runs, func(a, b job.Attempt) int { return a.Run - b.Run })
	return runs
}

func runLines(runs []job.Attempt) []terminal.Line {
	table := terminal.Table{Columns: []terminal.Column{{Title: "RUN", Right: true}, {Title: "STARTED"}, {Title: "STOPPED"}, {Title: "BECAUSE"}}}
	for _, r := range runs {
		because := r.Reason
		if r.Stop != nil && because == "" {
			because = r.Stop.Text
		}
		table.Add(
			terminal.Span{Text: fmt.Sprint(r.Run)},
			terminal.Span{Text: cmp.Or(jobtext.Time(r.StartedAt), "-")},
			terminal.Span{Text: cmp.Or(jobtext.Time(r.StoppedAt), "-")},
			terminal.Span{Text: because},
		)
	}
	return table.Lines()
}

// fieldTable is names and values, one pair a line. Empty values are left out.
type fieldTable struct{ pairs [][2]terminal.Span }

func (f *fieldTable) add(name, value string) { f.addSpan(name, terminal.Span{Text: value}) }

func (f *fieldTable) addSpan(name string, value terminal.Span) {
	if value.Text != "" {
		f.pairs = append(f.pairs, [2]terminal.Span{{Text: name, Style: terminal.Dim}, value})
	}
}

func (f *fieldTable) lines() []terminal.Line {
	const width = 12
	lines := make([]terminal.Line, len(f.pairs))
	for i, p := range f.pairs {
		p[0].Text = fmt.Sprintf("%-*s", width, p[0].Text)
		lines[i] = p[:]
	}
	return lines
}
