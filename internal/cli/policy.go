package cli

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/scenario"
	"github.com/bursar-io/bursar/internal/terminal"
)

func (c *commands) policy() *cobra.Command {
	command := &cobra.Command{
		Use:   "policy",
		Short: "Try policies before they are rolled out",
	}
	command.AddCommand(c.policyTest())
	return command
}

func (c *commands) policyTest() *cobra.Command {
	command := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run scenario files and say whether what they expect holds",
		Long: `Run scenario files and say whether what they expect holds.

A scenario file states a cohort (capacity, policy and shares), what happens to
it, and what must hold at which time. It runs on the server's own engine, with
simulated workers and a simulated clock, and needs no server. The command
succeeds only if every expectation of every file holds.`,
		Args: cobra.MinimumNArgs(1),
	}
	c.addOutputFlag(command)
	command.RunE = func(_ *cobra.Command, files []string) error {
		if err := c.checkOutput(); err != nil {
			return err
		}
		return c.testPolicies(files)
	}
	return command
}

func (c *commands) testPolicies(files []string) error {
	tests := make([]policyTest, len(files))
	wrong := 0
	for i, file := range files {
		tests[i] = testPolicy(file)
		if !tests[i].Holds {
			wrong++
		}
	}
	if err := c.putPolicyTests(tests); err != nil {
		return err
	}
	switch {
	case wrong == 0:
		return nil
	case len(files) == 1:
		return fmt.Errorf("%s does not hold", files[0])
	}
	return fmt.Errorf("%d of %d files do not hold", wrong, len(files))
}

// policyTest is what became of one scenario file.
type policyTest struct {
	File     string          `json:"file"`
	Name     string          `json:"name,omitempty"`
	Holds    bool            `json:"holds"`
	Checks   int             `json:"checks"` // expectations looked at
	Failures []policyFailure `json:"failures,omitempty"`
	Error    string          `json:"error,omitempty"` // why it could not be run
}

// policyFailure is an expectation that does not hold.
type policyFailure struct {
	Line     int                 `json:"line"`
	At       string              `json:"at"`
	Seconds  float64             `json:"t"`
	Expected string              `json:"expected"`
	Found    string              `json:"found"`
	Jobs     []scenario.JobState `json:"jobs,omitempty"`
}

func testPolicy(file string) policyTest {
	test := policyTest{File: file}
	text, err := os.ReadFile(file)
	if err != nil {
		test.Error = err.Error()
		return test
	}
	s, err := scenario.Parse(file, text)
	if err != nil {
		test.Error = err.Error()
		return test
	}
	test.Name = s.Name
	result, err := s.Run(nil)
	if err != nil {
		test.Error = err.Error()
		return test
	}
	test.Checks = result.Checks
	test.Holds = len(result.Failures) == 0
	for _, f := range result.Failures {
		test.Failures = append(test.Failures, policyFailure{
			Line: f.Line, At: scenario.Spell(f.At), Seconds: f.At.Seconds(), Expected: f.Want, Found: f.Got, Jobs: f.Jobs,
		})
	}
	return test
}

func (c *commands) putPolicyTests(tests []policyTest) error {
	if c.output == "json" {
		return c.writeJSON(tests)
	}
	screen := c.screen()
	if err := screen.Print(screen.Cut(policyTable(tests))...); err != nil {
		return err
	}
	for _, test := range tests {
		if !test.Holds {
			if err := screen.Print(screen.Wrap(test.lines())...); err != nil {
				return err
			}
		}
	}
	return nil
}

func policyTable(tests []policyTest) []terminal.Line {
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "FILE"}, {Title: "CHECKS", Right: true}, {Title: "RESULT"}, {Title: "SHOWS"},
	}}
	for _, test := range tests {
		table.Add(
			terminal.Span{Text: test.File, Style: terminal.Bold},
			terminal.Span{Text: fmt.Sprint(test.Checks)},
			test.result(),
			terminal.Span{Text: cmp.Or(test.Name, "-")},
		)
	}
	return table.Lines()
}

func (t policyTest) result() terminal.Span {
	switch {
	case t.Holds:
		return terminal.Span{Text: "holds", Style: terminal.Green}
	case t.Error != "":
		return terminal.Span{Text: "error", Style: terminal.Red}
	}
	return terminal.Span{Text: fmt.Sprintf("%d wrong", len(t.Failures)), Style: terminal.Red}
}

// lines tell what is wrong with a file.
func (t policyTest) lines() []terminal.Line {
	lines := []terminal.Line{nil}
	if t.Error != "" {
		return append(lines, terminal.Text(terminal.Red, t.Error))
	}
	for i, f := range t.Failures {
		lines = append(lines,
			terminal.Line{{Text: fmt.Sprintf("%s:%d: ", t.File, f.Line), Style: terminal.Bold}, {Text: "at " + f.At}},
			terminal.Line{{Text: "  expected  ", Style: terminal.Dim}, {Text: f.Expected, Style: terminal.Green}},
			terminal.Line{{Text: "  found     ", Style: terminal.Dim}, {Text: f.Found, Style: terminal.Red}},
		)
		if last := i == len(t.Failures)-1; last || t.Failures[i+1].Seconds != f.Seconds {
			lines = append(lines, t.jobsAt(f.Seconds)...)
		}
	}
	return lines
}

// jobsAt tell of each job that the failures of one instant concern, once.
func (t policyTest) jobsAt(seconds float64) []terminal.Line {
	var lines []terminal.Line
	told := map[string]bool{}
	for _, f := range t.Failures {
		for _, j := range f.Jobs {
			if f.Seconds == seconds && !told[j.Job] {
				told[j.Job] = true
				lines = append(lines, terminal.Line{{Text: "  "}, {Text: j.Job, Style: terminal.Bold}, {Text: " " + j.Why}})
			}
		}
	}
	return lines
}
