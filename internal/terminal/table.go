package terminal

import (
	"strings"
	"unicode/utf8"
)

// Column is a column of a table.
type Column struct {
	Title string
	Right bool // numbers: aligned to the right
}

// Table is rows of spans under titled columns.
type Table struct {
	Columns []Column
	Rows    [][]Span
}

// columnGap separates columns.
const columnGap = 2

// Add adds a row. It has as many cells as there are columns.
func (t *Table) Add(cells ...Span) { t.Rows = append(t.Rows, cells) }

// Lines lays the table out: its titles, then its rows.
func (t *Table) Lines() []Line {
	widths := t.widths()
	titles := make([]Span, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = Span{Text: c.Title, Style: Dim}
	}
	lines := []Line{t.line(titles, widths)}
	for _, row := range t.Rows {
		lines = append(lines, t.line(row, widths))
	}
	return lines
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Title)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}

// line aligns one row. The last column is not padded, so that no line ends in
// blanks that a narrow terminal would wrap.
func (t *Table) line(row []Span, widths []int) Line {
	var line Line
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text))
		last := i == len(row)-1
		if t.Columns[i].Right {
			line = append(line, Span{Text: pad}, cell)
		} else if line = append(line, cell); !last {
			line = append(line, Span{Text: pad})
		}
		if !last {
			line = append(line, Span{Text: strings.Repeat(" ", columnGap)})
		}
	}
	return line
}
