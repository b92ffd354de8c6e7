package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func noenv(string) string { return "" }

func TestTableAligns(t *testing.T) {
	table := Table{Columns: []Column{{Title: "SHARE"}, {Title: "OWN", Right: true}, {Title: "WHY"}}}
	table.Add(Span{Text: "QS1"}, Span{Text: "12"}, Span{Text: "runs"})
	table.Add(Span{Text: "research", Style: Bold}, Span{Text: "3"}, Span{Text: "waits"})
	var out bytes.Buffer
	if err := New(&out, noenv).Print(table.Lines()...); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"SHARE     OWN  WHY\n" +
		"QS1        12  runs\n" +
		"research    3  waits\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCutNeverExceedsTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line Line
		for _, s := range rapid.SliceOf(rapid.String()).Draw(t, "spans") {
			line = append(line, Span{Text: s})
		}
		width := rapid.IntRange(1, 40).Draw(t, "width")
		cut := line.Cut(width)
		if cut.Width() > width {
			t.Fatalf("cut to %d columns it has %d", width, cut.Width())
		}
		if line.Width() <= width && cut.String() != line.String() {
			t.Fatalf("%q fits %d columns but became %q", line, width, cut)
		}
		if line.Width() > width && !strings.HasSuffix(cut.String(), "…") {
			t.Fatalf("%q was cut to %q without a sign of it", line, cut)
		}
	})
}

func TestWrapKeepsEveryWordThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,8}`)).Draw(t, "words")
		width := rapid.IntRange(9, 30).Draw(t, "width")
		var wrapped []string
		for _, line := range Text(Plain, strings.Join(words, " ")).Wrap(width) {
			if line.Width() > width {
				t.Fatalf("%q has more than %d columns", line, width)
			}
			wrapped = append(wrapped, line.String())
		}
		if got, want := strings.Join(wrapped, " "), strings.Join(words, " "); got != want {
			t.Fatalf("wrapped to %q, want %q", got, want)
		}
	})
}

// liveScreen is a screen as on a terminal of the size given.
func liveScreen(out *bytes.Buffer, width, height int) *Screen {
	return &Screen{out: out, live: true, style: true, size: func() (int, int, bool) { return width, height, true }}
}

func TestFramesReplaceEachOther(t *testing.T) {
	var out bytes.Buffer
	s := liveScreen(&out, 8, 4)
	frames := [][]Line{
		{Text(Red, "one"), Text(Plain, "a line too long"), Text(Plain, "three"), Text(Plain, "does not fit")},
		{Text(Plain, "short")},
	}
	for _, frame := range frames {
		if err := s.Draw(frame); err != nil {
			t.Fatal(err)
		}
	}
	want := "\r\x1b[31mone\x1b[0m\x1b[K\na line …\x1b[K\nthree\x1b[K\n" +
		"\x1b[3A\rshort\x1b[K\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPrintedLinesAreNotDrawnOver(t *testing.T) {
	var out bytes.Buffer
	s := liveScreen(&out, 80, 24)
	s.style = false
	for _, write := range []func() error{
		func() error { return s.Draw([]Line{Text(Plain, "frame")}) },
		func() error { return s.Print(Text(Plain, "kept")) },
		func() error { return s.Draw([]Line{Text(Plain, "frame")}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if want := "\rframe\x1b[K\nkept\n\rframe\x1b[K\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestFilesGetPlainText(t *testing.T) {
	var out bytes.Buffer
	s := New(&out, noenv)
	if s.Live() {
		t.Error("a buffer is no terminal")
	}
	if err := s.Draw([]Line{Text(Red, "plain")}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "plain\n" {
		t.Errorf("got %q", out.String())
	}
}
