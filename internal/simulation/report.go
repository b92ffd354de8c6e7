package simulation

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
)

var (
	//go:embed report.html
	reportHTML string
	//go:embed report.css
	reportCSS string
	//go:embed report.js
	reportJS string
)

// What a page shows at most. More would be too small to see, and too much to
// send.
const (
	maxRuns    = 2       // side by side
	colours    = 7       // that everybody can tell apart
	maxStrips  = 24      // shares with a strip of their own
	maxBars    = 96      // bars over time
	maxNumbers = 160_000 // in all series of a page
)

// ErrRuns is returned for more runs than a page has room for.
var ErrRuns = errors.New("a report shows one run, or two side by side")

// WriteReport writes a page about one run of a trace, or about two side by
// side: one HTML file that needs nothing else. It returns ErrRuns for another
// number of runs, or w's error.
func WriteReport(w io.Writer, trace *Trace, runs ...*Run) error {
	if len(runs) == 0 || len(runs) > maxRuns {
		return fmt.Errorf("report %d runs: %w", len(runs), ErrRuns)
	}
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return fmt.Errorf("parse the report's template: %w", err)
	}
	if err := t.Execute(w, newPage(trace, runs)); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// page is what the template fills in.
type page struct {
	Title, Subtitle string
	Style           template.CSS
	Script          template.JS
	Compares        bool
	Runs            []pageRun
	Figures         []Figure
	Assumptions     []string
	Data            charts
}

type pageRun struct {
	Name   string
	Words  []phrase
	Shares []pageShare
}

// phrase is a sentence about a policy; it differs if the other policy has none
// like it.
type phrase struct {
	Text    string
	Differs bool
}

type pageShare struct {
	Name, Quota, Sharing string
	Differs              bool
}

func newPage(trace *Trace, runs []*Run) page {
	p := page{
		Title:    filepath.Base(trace.Name) + " under " + runs[0].Policy.Name,
		Subtitle: fmt.Sprintf("%s jobs, replayed with the scheduler of Bursar in virtual time.", grouped(runs[0].Summary.Jobs)),
		Style:    template.CSS(reportCSS), //nolint:gosec // The project's own.
		Script:   template.JS(reportJS),   //nolint:gosec // The project's own.
		Compares: len(runs) == 2,
		Figures:  Figures(runs...),
		Data:     newCharts(runs),
	}
	if p.Compares {
		p.Title += " and " + runs[1].Policy.Name
	}
	p.Assumptions = runs[0].assumed.inWords()
	for _, r := range runs {
		p.Runs = append(p.Runs, newPageRun(r))
	}
	if p.Compares {
		markDifferences(&p.Runs[0], &p.Runs[1])
	}
	return p
}

func newPageRun(r *Run) pageRun {
	p := pageRun{Name: r.Policy.Name}
	for _, text := range inWords(&r.Policy.Cohort) {
		p.Words = append(p.Words, phrase{Text: text})
	}
	for _, s := range r.Policy.Cohort.Shares {
		p.Shares = append(p.Shares, pageShare{Name: s.Name, Quota: amountsInWords(s.Nominal), Sharing: shareInWords(s)})
	}
	return p
}

// markDifferences marks what one of two policies says and the other does not.
func markDifferences(a, b *pageRun) {
	mark := func(a, b *pageRun) {
		for i := range a.Words {
			a.Words[i].Differs = !slices.ContainsFunc(b.Words, func(o phrase) bool { return o.Text == a.Words[i].Text })
		}
		for i := range a.Shares {
			s := a.Shares[i]
			a.Shares[i].Differs = !slices.ContainsFunc(b.Shares, func(o pageShare) bool {
				return o.Name == s.Name && o.Quota == s.Quota && o.Sharing == s.Sharing
			})
		}
	}
	mark(a, b)
	mark(b, a)
}

func (a Assumptions) inWords() []string {
	var words []string
	if a.CheckpointEvery > 0 {
		words = append(words, fmt.Sprintf("jobs checkpoint every %s", inWordsOf(a.CheckpointEvery)))
	}
	if a.DeclaredRuntime > 0 {
		words = append(words, fmt.Sprintf("jobs declare %g times their runtime as the most they need", a.DeclaredRuntime))
	}
	return words
}
