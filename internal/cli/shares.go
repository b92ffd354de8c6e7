package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/jobtext"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/terminal"
)

func (c *commands) shares() *cobra.Command {
	var queue string
	command := &cobra.Command{
		Use:   "shares",
		Short: "Show what each share owns, borrows, lends and has free",
		Args:  cobra.NoArgs,
	}
	command.Flags().StringVar(&queue, "queue", "", "only shares of this queue")
	v := &viewer{commands: c, fetch: func(ctx context.Context, s server, _ []string) (view, error) {
		balances, err := c.asker(s).Balances(ctx, queue)
		return view{balances, jobtext.Shares(balances)}, err
	}}
	return v.addTo(command)
}

func (c *commands) queue() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:   "queue [QUEUE]",
		Short: "Show the jobs that wait in a queue, in order, and what they wait for",
		Args:  cobra.MaximumNArgs(1),
	}
	command.Flags().IntVarP(&limit, "limit", "n", 20, "at most this many of each quota share, or of a queue without any")
	v := &viewer{commands: c, fetch: func(ctx context.Context, s server, args []string) (view, error) {
		queue, err := c.onlyQueue(ctx, s, args)
		if err != nil {
			return view{}, err
		}
		jobs, err := c.asker(s).Waiting(ctx, queue, limit)
		return view{jobs, c.waitingLines(queue, jobs)}, err
	}}
	return v.addTo(command)
}

// onlyQueue is the queue named, or the one there is.
func (c *commands) onlyQueue(ctx context.Context, s server, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	queues, err := c.asker(s).Queues(ctx)
	if err != nil {
		return "", err
	}
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	switch len(names) {
	case 0:
		return "", errors.New("there is no job queue yet")
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("there are several queues; name one of %s", strings.Join(names, ", "))
}

// waitingLines is a table of waiting jobs, each with its place in its share.
func (c *commands) waitingLines(queue string, jobs []bursarapi.Job) []terminal.Line {
	if len(jobs) == 0 {
		return []terminal.Line{terminal.Text(terminal.Dim, "nothing waits in "+queue)}
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.Job.ID
	}
	short := shortIDs(ids)
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "SHARE"}, {Title: "PLACE", Right: true}, {Title: "JOB"}, {Title: "NAME"}, {Title: "PRIORITY", Right: true}, {Title: "NEEDS"}, {Title: "WAITS", Right: true}, {Title: "FOR"},
	}}
	now := c.Now()
	for i, j := range jobs {
		table.Add(
			terminal.Span{Text: cmp.Or(j.Job.Share, j.Job.ShareIdentifier, "-")},
			terminal.Span{Text: place(j.Reason)},
			terminal.Span{Text: short[i], Style: terminal.Dim},
			terminal.Span{Text: j.Job.Name, Style: terminal.Bold},
			terminal.Span{Text: fmt.Sprint(j.Job.Priority)},
			terminal.Span{Text: jobtext.Demand(j.Job.Demand)},
			terminal.Span{Text: jobtext.Since(now, j.Job.UpdatedAt)},
			terminal.Span{Text: jobtext.Why(j)},
		)
	}
	return table.Lines()
}

func place(r *quota.Reason) string {
	if r == nil || r.Place == 0 {
		return "-"
	}
	return fmt.Sprint(r.Place)
}

func (c *commands) why() *cobra.Command {
	v := &viewer{commands: c, prose: true, fetch: func(ctx context.Context, s server, args []string) (view, error) {
		j, err := c.asker(s).Job(ctx, args[0])
		return view{j, c.whyLines(j)}, err
	}}
	return v.addTo(&cobra.Command{
		Use:   "why JOB",
		Short: "Explain why a job waits, runs, or was stopped",
		Long:  "Explain why a job waits, runs, or was stopped, and what was decided on it. " + jobRefHelp,
		Args:  oneJob,
	})
}

func (c *commands) whyLines(j bursarapi.Job) []terminal.Line {
	lines := []terminal.Line{{
		{Text: j.Job.Name, Style: terminal.Bold},
		{Text: " is "},
		jobtext.State(j.Job),
		{Text: " for " + jobtext.Since(c.Now(), j.Job.UpdatedAt)},
	}}
	if why := jobtext.Why(j); why != "" {
		lines = append(lines, terminal.Text(terminal.Plain, why))
	}
	if j.Reason != nil {
		lines = append(lines, reasonLines(*j.Reason)...)
	}
	if len(j.Decisions) > 0 {
		lines = append(lines, nil, terminal.Text(terminal.Dim, "decided, newest first"))
	}
	for _, d := range j.Decisions {
		lines = append(lines, terminal.Line{{Text: jobtext.Time(d.At) + "  ", Style: terminal.Dim}, {Text: d.Sentence}})
	}
	return lines
}

// reasonLines says in numbers what a waiting job lacks, and who has it.
func reasonLines(r quota.Reason) []terminal.Line {
	fields := fieldTable{}
	fields.add("code", string(r.Code))
	fields.add("place", strings.TrimSuffix(place(&r), "-"))
	if r.Unit != "" {
		fields.add("wants", fmt.Sprintf("%d %s", r.Wants, r.Unit))
		fields.add("lacks", fmt.Sprintf("%d %s", r.Lacks, r.Unit))
	}
	fields.add("until", jobtext.Time(r.Until))
	fields.add("earliest", jobtext.Time(r.Earliest))
	for _, h := range r.Holders {
		fields.add(string(h.Role), strings.TrimSpace(fmt.Sprintf("%d  %s", h.Amount, holder(h))))
	}
	return fields.lines()
}

func holder(h quota.Holder) string {
	if h.ForShare != "" {
		return h.Share + " for " + h.ForShare
	}
	return h.Share
}
