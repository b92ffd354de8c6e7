package demo

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/jobtext"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/terminal"
)

// newestEvents is how many events a frame shows.
const newestEvents = 10

// draw shows the scene: as a frame on a terminal, elsewhere as the events that
// are new and at least as old as given.
func (d *demo) draw(age time.Duration) error {
	d.scene.mu.Lock()
	defer d.scene.mu.Unlock()
	if d.screen.Live() {
		return d.screen.Draw(d.scene.frame(time.Now(), d.url))
	}
	settled := time.Now().Add(-age)
	for _, e := range d.scene.events[d.scene.printed:] {
		if e.at.After(settled) {
			return nil
		}
		if err := d.screen.Print(d.scene.eventLine(e)); err != nil {
			return err
		}
		d.scene.printed++
	}
	return nil
}

// frame is the whole scene.
func (s *scene) frame(now time.Time, url string) []terminal.Line {
	lines := []terminal.Line{
		{{Text: "Bursar", Style: terminal.Bold}, {Text: fmt.Sprintf("  at %s, for %s", url, jobtext.Since(now, s.began)), Style: terminal.Dim}},
		nil,
		terminal.Text(terminal.Cyan, s.caption),
		nil,
	}
	lines = append(lines, jobtext.Shares(s.balances)...)
	lines = append(lines, nil)
	lines = append(lines, s.jobLines(now)...)
	lines = append(lines, nil)
	for _, e := range s.events[max(0, len(s.events)-newestEvents):] {
		lines = append(lines, s.eventLine(e))
	}
	return lines
}

func (s *scene) jobLines(now time.Time) []terminal.Line {
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "JOB"}, {Title: "SHARE"}, {Title: "PRIORITY", Right: true}, {Title: "STATE"}, {Title: "SINCE", Right: true},
		{Title: "STEP", Right: true}, {Title: "LOSS", Right: true}, {Title: "WHY"},
	}}
	for _, j := range s.jobs {
		step, loss := "-", "-"
		if t := s.training[j.Job.Name]; t != nil {
			step, loss = fmt.Sprint(t.step()), t.loss
		}
		table.Add(
			terminal.Span{Text: j.Job.Name, Style: terminal.Bold},
			terminal.Span{Text: j.Job.Share},
			terminal.Span{Text: fmt.Sprint(j.Job.Priority)},
			jobtext.State(j.Job),
			terminal.Span{Text: jobtext.Since(now, j.Job.UpdatedAt)},
			terminal.Span{Text: step},
			terminal.Span{Text: loss},
			terminal.Span{Text: jobtext.Why(j), Style: terminal.Dim},
		)
	}
	return table.Lines()
}

func (s *scene) eventLine(e event) terminal.Line {
	after := fmt.Sprintf("%5.1fs  ", max(e.at.Sub(s.began), 0).Seconds())
	return append(terminal.Line{{Text: after, Style: terminal.Dim}}, e.line...)
}

// sentence is a decision in words; nil for every other entry.
func sentence(e bursarapi.Entry) terminal.Line {
	var told struct {
		Name     string `json:"name"`
		Sentence string `json:"sentence"`
	}
	if e.Kind != store.Decision || json.Unmarshal(e.Data, &told) != nil {
		return nil
	}
	style := terminal.Green
	if quota.Kind(e.Name) == quota.Preempt {
		style = terminal.Yellow
	}
	return terminal.Line{{Text: told.Name, Style: style}, {Text: "  " + told.Sentence}}
}

// howToUse tells how to point AWS clients at the product.
func howToUse(product *app.App) []terminal.Line {
	plain := func(format string, args ...any) terminal.Line {
		return terminal.Text(terminal.Plain, fmt.Sprintf(format, args...))
	}
	return []terminal.Line{
		nil,
		terminal.Text(terminal.Bold, "Bursar stays up. Point any AWS client at it:"),
		nil,
		plain("  export AWS_ENDPOINT_URL_BATCH=%s", product.URL()),
		plain("  export AWS_SHARED_CREDENTIALS_FILE=%s", product.CredentialsPath()),
		plain("  export AWS_DEFAULT_REGION=%s", app.DefaultRegion),
		plain("  aws batch list-service-jobs --job-queue %s --job-status SUCCEEDED", queue),
		nil,
		plain("or Bursar's own command line:"),
		nil,
		plain("  bin/bursar jobs --all --data-dir %s", filepath.Dir(product.CredentialsPath())),
		nil,
		terminal.Text(terminal.Dim, "Ctrl-C ends it."),
	}
}
