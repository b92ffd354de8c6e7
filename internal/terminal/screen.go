package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen writes lines to a terminal, or to a file or pipe as plain text.
type Screen struct {
	out   io.Writer
	size  func() (width, height int, ok bool)
	live  bool // frames can be redrawn in place
	style bool // colours are wanted and shown
	drawn int  // lines of the frame that stands at the end of the output
}

// New returns the screen of an output. It is live if that is a terminal which
// can move its cursor, and has colour unless the environment variable NO_COLOR
// is set.
func New(out io.Writer, getenv func(string) string) *Screen {
	f, isFile := out.(*os.File)
	live := isFile && term.IsTerminal(int(f.Fd())) && getenv("TERM") != "dumb"
	s := &Screen{out: out, live: live, style: live && getenv("NO_COLOR") == ""}
	s.size = func() (int, int, bool) {
		if !live {
			return 0, 0, false
		}
		width, height, err := term.GetSize(int(f.Fd()))
		return width, height, err == nil && width > 0 && height > 0
	}
	return s
}

// Live reports whether frames are redrawn in place.
func (s *Screen) Live() bool { return s.live }

// Print writes lines below what is there.
func (s *Screen) Print(lines ...Line) error {
	s.drawn = 0
	return s.write("", lines, "\n")
}

// Cut cuts lines to the width of the terminal, if there is one.
func (s *Screen) Cut(lines []Line) []Line {
	return s.fitted(lines, func(l Line, width int) []Line { return []Line{l.Cut(width)} })
}

// Wrap breaks lines at the width of the terminal, if there is one.
func (s *Screen) Wrap(lines []Line) []Line { return s.fitted(lines, Line.Wrap) }

func (s *Screen) fitted(lines []Line, fit func(Line, int) []Line) []Line {
	width, _, known := s.size()
	if !known {
		return lines
	}
	var fits []Line
	for _, l := range lines {
		fits = append(fits, fit(l, width)...)
	}
	return fits
}

// Draw writes a frame in place of the frame before it. What does not fit the
// terminal is cut. Where nothing can be redrawn, it writes the frame below.
func (s *Screen) Draw(frame []Line) error {
	_, height, known := s.size()
	if !s.live || !known {
		return s.Print(frame...)
	}
	fits := s.Cut(frame[:min(len(frame), height-1)])
	up := ""
	if s.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA", min(s.drawn, height-1))
	}
	err := s.write(up+"\r", fits, "\x1b[K\n")
	if err == nil && len(fits) < s.drawn {
		_, err = io.WriteString(s.out, "\x1b[J")
	}
	s.drawn = len(fits)
	return err
}

// write writes everything at once, so that a frame does not flicker.
func (s *Screen) write(before string, lines []Line, end string) error {
	var b strings.Builder
	b.WriteString(before)
	for _, line := range lines {
		if s.style {
			b.WriteString(line.styled())
		} else {
			b.WriteString(line.String())
		}
		b.WriteString(end)
	}
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}
