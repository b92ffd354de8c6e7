package simulation

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bursar-io/bursar/internal/quota"
)

// Figure is a row of a table of what came of some runs, in words.
type Figure struct {
	Name, Meaning string
	Values        []string // one for each run
	// Of two runs, Difference is the second value minus the first, and Verdict
	// is better or worse where one can say.
	Difference, Verdict string
}

// metric is a figure of a summary.
type metric struct {
	name, meaning string
	of            func(*Summary) float64
	write         func(float64) string
	good          int // +1: more is better; −1: less is
}

func metrics(unit quota.Unit) []metric {
	share := func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
	count := func(v float64) string { return grouped(int(v)) }
	hours := func(v float64) string { return fmt.Sprintf("%s h", grouped(int(math.Round(v)))) }
	const first = "From a job's submission to its first grant."
	const within = "Of jobs that fitted what their share had left of its quota when they were submitted."
	return []metric{
		{"Jobs finished", "Jobs that succeeded.", func(s *Summary) float64 { return float64(s.Finished) }, count, +1},
		{"Jobs failed", "Jobs that ended without success.", func(s *Summary) float64 { return float64(s.Failed) }, count, -1},
		{"Jobs never started", "Jobs that were granted nothing until nothing more happened.", func(s *Summary) float64 { return float64(s.NeverStarted) }, count, -1},
		{"Makespan", "From the first submission to the end of the last job.", func(s *Summary) float64 { return s.MakespanS }, Seconds, -1},
		{"Utilization", "Of the capacity, over the makespan.", func(s *Summary) float64 { return s.Utilization }, share, 0},
		{"of it borrowed", "Held beyond the share's own quota, of the capacity, over the makespan.", func(s *Summary) float64 { return s.Borrowed }, share, 0},
		{"Wait, mean", first, func(s *Summary) float64 { return s.WaitS.Mean }, Seconds, -1},
		{"Wait, half at most", first, func(s *Summary) float64 { return s.WaitS.P50 }, Seconds, -1},
		{"Wait, 90 % at most", first, func(s *Summary) float64 { return s.WaitS.P90 }, Seconds, -1},
		{"Wait, 99 % at most", first, func(s *Summary) float64 { return s.WaitS.P99 }, Seconds, -1},
		{"Wait within quota, mean", within, func(s *Summary) float64 { return s.WaitWithinQuotaS.Mean }, Seconds, -1},
		{"Wait within quota, 99 % at most", within, func(s *Summary) float64 { return s.WaitWithinQuotaS.P99 }, Seconds, -1},
		{"Wait after a preemption, mean", "From a return to the queue to the next grant.", func(s *Summary) float64 { return s.WaitAgainS.Mean }, Seconds, -1},
		{"Preemptions", "Attempts told to stop for another job.", func(s *Summary) float64 { return float64(s.Preemptions) }, count, -1},
		{string(unit) + "-hours lost", "Work since the last checkpoint of those that were preempted.", func(s *Summary) float64 { return s.LostGPUHours }, hours, -1},
	}
}

// Figures returns the figures of some runs of one trace.
func Figures(runs ...*Run) []Figure {
	var rows []Figure
	if len(runs) == 0 {
		return nil
	}
	for _, m := range metrics(runs[0].Summary.Unit) {
		row := Figure{Name: m.name, Meaning: m.meaning}
		for _, r := range runs {
			row.Values = append(row.Values, m.write(m.of(&r.Summary)))
		}
		if len(runs) == 2 {
			row.Difference, row.Verdict = m.compare(m.of(&runs[0].Summary), m.of(&runs[1].Summary))
		}
		rows = append(rows, row)
	}
	return rows
}

// compare says what b is more or less than a, and whether that is good.
func (m metric) compare(a, b float64) (difference, verdict string) {
	if m.write(a) == m.write(b) {
		return "same", ""
	}
	sign, more := "+", 1
	if b < a {
		sign, more = "−", -1
	}
	difference = sign + m.write(math.Abs(b-a))
	if a != 0 && !strings.HasSuffix(difference, "%") { // a percentage says enough by itself
		difference += fmt.Sprintf(" (%s%.0f %%)", sign, 100*math.Abs(b-a)/a)
	}
	switch more * m.good {
	case 1:
		verdict = "better"
	case -1:
		verdict = "worse"
	}
	return difference, verdict
}

// timeUnit is a unit of time, of so many seconds.
type timeUnit struct {
	size int
	name string
}

// Seconds writes a number of seconds as a duration in its two largest units: 3d 4h.
func Seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%gs", math.Round(s*100)/100)
	}
	units := []timeUnit{{86400, "d"}, {hour, "h"}, {60, "m"}, {1, "s"}}
	whole := int(math.Round(s))
	at := slices.IndexFunc(units, func(u timeUnit) bool { return whole >= u.size })
	words := fmt.Sprintf("%d%s", whole/units[at].size, units[at].name)
	if at+1 < len(units) {
		if rest := whole % units[at].size / units[at+1].size; rest > 0 {
			words += fmt.Sprintf(" %d%s", rest, units[at+1].name)
		}
	}
	return words
}

// grouped writes a number with a comma before every three digits.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
