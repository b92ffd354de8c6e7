// Package jobtext puts jobs and balances into a few words for a terminal: the
// command line and the demonstration say the same thing the same way.
//
// It formats what the governor tells, and decides and adds up nothing.
package jobtext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/terminal"
)

// State is a job's state in Batch's words; STOPPING while its run was told to
// stop.
func State(j job.Job) terminal.Span {
	switch {
	case j.Stopping():
		return terminal.Span{Text: "STOPPING", Style: terminal.Yellow}
	case j.Status == job.Failed:
		return terminal.Span{Text: string(j.Status), Style: terminal.Red}
	case j.Status == job.Succeeded:
		return terminal.Span{Text: string(j.Status), Style: terminal.Blue}
	case j.Status.Holds():
		return terminal.Span{Text: string(j.Status), Style: terminal.Green}
	}
	return terminal.Span{Text: string(j.Status), Style: terminal.Cyan}
}

// Why is why a job is where it is, in one sentence; empty if there is nothing
// to say.
func Why(w governor.Why) string {
	switch {
	case w.Job.Stopping():
		return w.Job.Current.Stop.Text
	case w.Job.Status.Holds() && len(w.Borrowed) > 0:
		return "its share borrows " + Amounts(w.Borrowed)
	case w.Job.Reason != "":
		return w.Job.Reason
	}
	return w.Sentence
}

// Amounts is an amount per unit, by unit: "1 ml.g5.xlarge, 2 ml.p5.48xlarge".
func Amounts(a quota.Amounts) string {
	var parts []string
	for _, unit := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, fmt.Sprintf("%d %s", a[unit], unit))
	}
	return strings.Join(parts, ", ")
}

// Demand is what a job needs: "2 ml.g5.xlarge".
func Demand(demand []job.Amount) string {
	parts := make([]string, len(demand))
	for i, d := range demand {
		parts[i] = fmt.Sprintf("%d %s", d.Quantity, d.Unit)
	}
	return strings.Join(parts, ", ")
}

// Since is how long ago something was, in one unit: 12s, 5m, 3h, 2d.
func Since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := max(now.Sub(at), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Time is an instant in the reader's time zone, to the second; empty for the
// zero time.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

// Shares is a table of balances: what each share owns, and of that uses, lends
// and has free, and what it borrows besides. Queues are named if there are
// several.
func Shares(balances []governor.Balance) []terminal.Line {
	if len(balances) == 0 {
		return []terminal.Line{terminal.Text(terminal.Dim, "no shares")}
	}
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "SHARE"}, {Title: "UNIT"}, {Title: "QUOTA", Right: true}, {Title: "OWN", Right: true}, {Title: "BORROWED", Right: true},
		{Title: "LENT", Right: true}, {Title: "FREE", Right: true}, {Title: "RUNNING", Right: true}, {Title: "WAITING", Right: true},
	}}
	queues := slices.ContainsFunc(balances, func(b governor.Balance) bool { return b.Queue != balances[0].Queue })
	if queues {
		table.Columns = append(table.Columns, terminal.Column{Title: "QUEUE"})
	}
	for _, b := range balances {
		for i := range b.Units {
			row := shareRow(b, i)
			if queues {
				row = append(row, terminal.Span{Text: b.Queue, Style: terminal.Dim})
			}
			table.Add(row...)
		}
	}
	return table.Lines()
}

// shareRow is a share's balance in its i-th unit. What is the share's and not
// the unit's stands in the first row only.
func shareRow(b governor.Balance, i int) []terminal.Span {
	name, running, waiting := cmp.Or(b.Share, b.ShareIdentifier, "(whole queue)"), fmt.Sprint(b.Running), fmt.Sprint(b.Waiting)
	if i > 0 {
		name, running, waiting = "", "", ""
	}
	u := b.Units[i]
	return []terminal.Span{
		{Text: name, Style: terminal.Bold},
		{Text: string(u.Unit)},
		{Text: fmt.Sprint(u.Nominal)},
		count(u.Own, terminal.Green),
		count(u.Borrowed, terminal.Yellow),
		count(u.Lent, terminal.Blue),
		count(u.Free, terminal.Plain),
		{Text: running},
		{Text: waiting},
	}
}

// count is a number that stands out unless it is 0.
func count(n int64, style terminal.Style) terminal.Span {
	if n == 0 {
		return terminal.Span{Text: "·", Style: terminal.Dim}
	}
	return terminal.Span{Text: fmt.Sprint(n), Style: style}
}
