package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/scenario"
	"github.com/bursar-io/bursar/internal/terminal"
)

// policyCommand is a command about a policy file and a running server.
type policyCommand struct {
	*commands
	file    string
	prune   bool
	version string
}

func (c *commands) plan() *cobra.Command {
	p := &policyCommand{commands: c}
	command := &cobra.Command{
		Use:   "plan -f COHORT.yaml",
		Short: "Show what applying a policy file would change, and what that does to jobs",
		Long: `Show what applying a policy file would change on the server, field by field, and
for each change which running jobs could then be taken back by others, and which
waiting ones could start. Nothing is changed.

The file's name is that of a job queue. What is not there yet is made.`,
		Args: cobra.NoArgs,
	}
	p.addFlags(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return p.run(command.Context(), p.planned)
	}
	return command
}

func (c *commands) apply() *cobra.Command {
	p := &policyCommand{commands: c}
	command := &cobra.Command{
		Use:   "apply -f COHORT.yaml [--plan-version VERSION]",
		Short: "Have a policy file govern a running server",
		Long: `Have a policy file govern a running server: all of it at once, or nothing. The
file's name is that of a job queue; its service environment, scheduling policy and
quota shares become what the file says, and what is not there yet is made.

With the version that a plan printed, it is refused if anything that was planned
upon has changed since.`,
		Args: cobra.NoArgs,
	}
	p.addFlags(command)
	command.Flags().StringVar(&p.version, "plan-version", "", "version of the plan to carry out")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return p.run(command.Context(), p.applied)
	}
	return command
}

func (p *policyCommand) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&p.file, "file", "f", "", "policy file (required)")
	command.Flags().BoolVar(&p.prune, "prune", false, "delete shares that are not in the file; their jobs end")
	p.addOutputFlag(command)
}

// run reads the file, asks the server, and shows what it says.
func (p *policyCommand) run(ctx context.Context, ask func(context.Context, *bursarapi.Client, []byte) (bursarapi.Plan, []terminal.Line, error)) error {
	if err := p.checkOutput(); err != nil {
		return err
	}
	text, err := p.read()
	if err != nil {
		return err
	}
	s, err := p.connect()
	if err != nil {
		return err
	}
	plan, lines, err := ask(ctx, p.asker(s), text)
	if err != nil {
		return err
	}
	if p.output == "json" {
		return p.writeJSON(plan)
	}
	screen := p.screen()
	return screen.Print(screen.Wrap(lines)...)
}

// read reads the file, and finds what is wrong in it before the server does:
// the server does not know what it is called.
func (p *policyCommand) read() ([]byte, error) {
	if p.file == "" {
		return nil, errors.New("--file is missing; name a policy file, as in -f cohort.yaml")
	}
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	_, err = scenario.ParseCohort(p.file, text)
	return text, err
}

func (p *policyCommand) planned(ctx context.Context, client *bursarapi.Client, text []byte) (bursarapi.Plan, []terminal.Line, error) {
	plan, err := client.Plan(ctx, text, p.prune)
	if err != nil {
		return plan, nil, err
	}
	lines := planLines(plan)
	if len(plan.Changes) > 0 {
		prune := ""
		if p.prune {
			prune = " --prune"
		}
		lines = append(lines, nil,
			terminal.Line{{Text: "version ", Style: terminal.Dim}, {Text: plan.Version}},
			terminal.Text(terminal.Dim, fmt.Sprintf("Apply exactly this with: bursar apply -f %s%s --plan-version %s", p.file, prune, plan.Version)))
	}
	return plan, lines, nil
}

func (p *policyCommand) applied(ctx context.Context, client *bursarapi.Client, text []byte) (bursarapi.Plan, []terminal.Line, error) {
	plan, err := client.Apply(ctx, text, p.prune, p.version)
	if err != nil {
		return plan, nil, err
	}
	lines := planLines(plan)
	if len(plan.Changes) > 0 {
		lines = append(lines, nil, terminal.Text(terminal.Green, fmt.Sprintf("applied %s to %s", counted(len(plan.Changes), "change"), plan.Name)))
	}
	return plan, lines, nil
}

// planLines shows changes like a difference between two files, each with what
// it does to jobs.
func planLines(plan bursarapi.Plan) []terminal.Line {
	var lines []terminal.Line
	for _, c := range plan.Changes {
		lines = append(lines, changeLines(c)...)
	}
	if len(plan.Changes) == 0 {
		lines = append(lines, terminal.Text(terminal.Dim, fmt.Sprintf("%s is as the file says; nothing changes", plan.Name)))
	}
	if len(plan.Changes) > 1 {
		if effects := effectLines(plan.Effect); effects != nil {
			lines = append(lines, terminal.Text(terminal.Bold, "all changes together"))
			lines = append(lines, effects...)
		}
	}
	for _, share := range plan.Kept {
		lines = append(lines, terminal.Text(terminal.Yellow, fmt.Sprintf("quota share %s is not in the file, and stays as it is; --prune deletes it", share)))
	}
	return lines
}

func changeLines(c governor.Change) []terminal.Line {
	sign, style := "~ ", terminal.Yellow
	switch c.Action {
	case governor.Create:
		sign, style = "+ ", terminal.Green
	case governor.Delete:
		sign, style = "- ", terminal.Red
	default:
	}
	lines := []terminal.Line{{{Text: sign + kindInWords(c.Kind) + " ", Style: style}, {Text: c.Name, Style: terminal.Bold}}}
	width := 0
	for _, f := range c.Fields {
		width = max(width, len(f.Field))
	}
	for _, f := range c.Fields {
		line := terminal.Line{{Text: fmt.Sprintf("    %-*s  ", width, f.Field)}}
		if c.Action != governor.Create {
			line = append(line, terminal.Span{Text: cmp.Or(f.Old, "none"), Style: terminal.Red}, terminal.Span{Text: " → "})
		}
		lines = append(lines, append(line, terminal.Span{Text: cmp.Or(f.New, "none"), Style: terminal.Green}))
	}
	return append(lines, effectLines(c.Effect)...)
}

func kindInWords(k resource.Kind) string { return strings.ReplaceAll(string(k), "-", " ") }

// effectLines says what changes do to jobs.
func effectLines(e governor.Effect) []terminal.Line {
	var lines []terminal.Line
	add := func(a governor.Affected, style terminal.Style, singular, plural string) {
		if a.Count == 0 {
			return
		}
		what := plural
		if a.Count == 1 {
			what = singular
		}
		lines = append(lines, terminal.Line{
			{Text: "    "},
			{Text: fmt.Sprintf("%d %s: ", a.Count, what), Style: style},
			{Text: affectedNames(a)},
		})
	}
	add(e.Ended, terminal.Red, "job ends", "jobs end")
	add(e.Preempted, terminal.Red, "running job is preempted", "running jobs are preempted")
	add(e.Reclaimable, terminal.Yellow, "running job becomes reclaimable", "running jobs become reclaimable")
	add(e.Startable, terminal.Green, "waiting job could start", "waiting jobs could start")
	return lines
}

// shownJobs is how many jobs a line names.
const shownJobs = 8

func affectedNames(a governor.Affected) string {
	var names []string
	for _, j := range a.Jobs[:min(len(a.Jobs), shownJobs)] {
		names = append(names, fmt.Sprintf("%s (%s)", j.Name, j.Share))
	}
	if more := a.Count - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (c *commands) export() *cobra.Command {
	var queue, output string
	command := &cobra.Command{
		Use:   "export [--queue QUEUE]",
		Short: "Write the running policy as a policy file",
		Long: `Write what governs a job queue with quota shares as a policy file, which apply
takes, and simulate. With -o json it is the same file as JSON, which they take too.`,
		Args: cobra.NoArgs,
	}
	command.Flags().StringVar(&queue, "queue", "", "job queue (default: the one with quota shares)")
	command.Flags().StringVarP(&output, "output", "o", "yaml", "yaml, or json")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if output != "yaml" && output != "json" {
			return fmt.Errorf("--output is %q; it must be yaml or json", output)
		}
		return c.exportPolicy(command.Context(), queue, output)
	}
	return command
}

func (c *commands) exportPolicy(ctx context.Context, queue, output string) error {
	s, err := c.connect()
	if err != nil {
		return err
	}
	if queue == "" {
		if queue, err = c.governedQueue(ctx, s); err != nil {
			return err
		}
	}
	text, err := c.asker(s).Policy(ctx, queue)
	if err != nil {
		return err
	}
	if output == "json" {
		var policy any
		if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
			return fmt.Errorf("read the policy that the server sent: %w", err)
		}
		return c.writeJSON(policy)
	}
	_, err = fmt.Fprint(c.Out, text)
	return err
}

// governedQueue is the one queue that has a policy with quota shares.
func (c *commands) governedQueue(ctx context.Context, s server) (string, error) {
	queues, err := c.asker(s).Queues(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, q := range queues {
		if q.Policy != "" && !q.FairShare {
			found = append(found, q.Name)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("there is no job queue with quota shares yet; apply a policy file, or create one through the AWS Batch API")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("several queues have quota shares; choose one with --queue: %s", strings.Join(found, ", "))
}
