// Package terminal writes what people read: lines of styled text, tables whose
// columns align, and frames that are redrawn in place. Colours and redrawing
// appear only where a terminal shows them; elsewhere the same text is plain.
//
// It knows nothing of what it writes, and reads no input.
package terminal

import (
	"strings"
	"unicode/utf8"
)

// Style is how a piece of text looks on a terminal, as the parameters of the
// escape sequence that selects it.
type Style string

// The styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Cyan   Style = "36"
)

// Span is text in one style.
type Span struct {
	Text  string
	Style Style
}

// Line is one line of spans, without an end of line. Every character counts
// as one column wide.
type Line []Span

// Text is a line in one style.
func Text(style Style, text string) Line { return Line{{Text: text, Style: style}} }

// Width is how many columns the line takes.
func (l Line) Width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.Text)
	}
	return n
}

// Cut returns the line cut to at most width columns, with an ellipsis in place
// of what is missing.
func (l Line) Cut(width int) Line {
	if l.Width() <= width {
		return l
	}
	var cut Line
	left := width - 1 // one column is the ellipsis's
	for _, s := range l {
		if n := utf8.RuneCountInString(s.Text); n <= left {
			cut = append(cut, s)
			left -= n
			continue
		}
		kept := string([]rune(s.Text)[:max(left, 0)])
		return append(cut, Span{Text: kept + "…", Style: s.Style})
	}
	return cut
}

// Wrap breaks the line between words into lines of at most width columns. A
// word that is longer is cut.
func (l Line) Wrap(width int) []Line {
	var lines []Line
	var current Line
	left := width
	for _, s := range l {
		for _, word := range strings.SplitAfter(s.Text, " ") {
			n := utf8.RuneCountInString(word)
			if utf8.RuneCountInString(strings.TrimSuffix(word, " ")) > left && len(current) > 0 {
				lines, current, left = append(lines, current), nil, width
			}
			current = append(current, Span{Text: word, Style: s.Style})
			left -= n
		}
	}
	lines = append(lines, current)
	for i, line := range lines {
		if last := len(line) - 1; last >= 0 {
			line[last].Text = strings.TrimSuffix(line[last].Text, " ")
		}
		lines[i] = line.Cut(width)
	}
	return lines
}

// String is the line's text without its styles.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

// styled is the line with escape sequences for its styles.
func (l Line) styled() string {
	var b strings.Builder
	for _, s := range l {
		if s.Style == Plain {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("\x1b[" + string(s.Style) + "m" + s.Text + "\x1b[0m")
	}
	return b.String()
}
