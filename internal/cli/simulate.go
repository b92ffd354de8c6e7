package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
	"github.com/bursar-io/bursar/internal/simulation"
	"github.com/bursar-io/bursar/internal/terminal"
)

// errInterrupted ends a simulation that was not to be finished.
var errInterrupted = errors.New("interrupted before the end; nothing was reported")

// simulator is the command that replays a trace under policies.
type simulator struct {
	*commands
	policies []string // files
	trace    string   // file
	server   bool     // in place of a trace, what a running server has
	queue    string   // of that; empty: the one with quota shares
	unit     string
	assume   simulation.Assumptions
	events   string // file; empty: none
	report   string // file; empty: none
}

func (c *commands) simulate() *cobra.Command {
	s := &simulator{commands: c}
	command := &cobra.Command{
		Use:   "simulate --policy COHORT.yaml [--policy OTHER.yaml] {--trace FILE.csv[.gz] [--gpus-unit UNIT] | --from-server}",
		Short: "Replay a history of jobs under a policy",
		Long: `Replay a history of jobs under a policy, with the scheduler of the server in virtual
time, and say what would have come of it. With two policies it says how they differ.

A trace is CSV with the columns submit_s, runtime_s, team (the share), and gpus or
demand (unit=amount;unit=amount), and where they are known job, priority,
max_runtime_s and checkpoint_s.

With --from-server it plays forward what runs and waits on a server now, each job
for as long as it declares that it may run; waits count from now. Without
--policy it does so under the server's own policy.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringArrayVar(&s.policies, "policy", nil, "policy file; give it twice to compare two")
	flags.BoolVar(&s.server, "from-server", false, "play forward what runs and waits on a server, in place of a trace")
	flags.StringVar(&s.queue, "queue", "", "with --from-server, the job queue (default: the one with quota shares)")
	flags.StringVar(&s.trace, "trace", "", "trace file, CSV, plain or gzip")
	flags.StringVar(&s.unit, "gpus-unit", "", "the unit that the trace's column gpus counts")
	flags.DurationVar(&s.assume.CheckpointEvery, "checkpoint-every", 0, "assume it of jobs that name no checkpoint_s")
	flags.Float64Var(&s.assume.DeclaredRuntime, "declared-runtime", 0, "assume of jobs that name no max_runtime_s that they declare their runtime times this")
	flags.StringVar(&s.events, "events", "", "write every decision to this file, as JSON, one a line")
	flags.StringVar(&s.report, "report", "", "write a page to look at to this file, as HTML")
	c.addOutputFlag(command)
	return command
}

func (s *simulator) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	policies, err := readPolicies(s.policies)
	if err != nil {
		return err
	}
	var trace *simulation.Trace
	if s.server {
		trace, policies, err = s.fromServer(ctx, policies)
	} else {
		trace, err = readTrace(s.trace, quota.Unit(s.unit))
	}
	if err != nil {
		return err
	}
	var runs []*simulation.Run
	for _, p := range policies {
		run, err := s.replay(ctx, p, trace)
		if errors.Is(err, context.Canceled) {
			return errInterrupted
		}
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	if s.report != "" {
		err := writeFile(s.report, func(w io.Writer) error { return simulation.WriteReport(w, trace, runs...) })
		if err != nil {
			return err
		}
	}
	return s.print(runs)
}

// check finds what is wrong in the command line, before anything takes time.
func (s *simulator) check() error {
	switch {
	case s.output != "table" && s.output != "json":
		return fmt.Errorf("--output is %q; it must be table or json", s.output)
	case len(s.policies) > 2 || len(s.policies) == 0 && !s.server:
		return fmt.Errorf("--policy is given %d times; give it once, or twice to compare two", len(s.policies))
	case s.server && s.trace != "":
		return errors.New("--trace and --from-server are both given; use one of them")
	case s.trace == "" && !s.server:
		return errors.New("--trace is missing; name a trace file, or play forward what a server has with --from-server")
	case s.server && s.assume.DeclaredRuntime != 0:
		return errors.New("--declared-runtime goes with --trace; the jobs of a server run for as long as they declare")
	case s.queue != "" && !s.server:
		return errors.New("--queue goes with --from-server; a trace has no queues")
	case s.events != "" && len(s.policies) > 1:
		return errors.New("--events takes one --policy; run the other one on its own")
	case s.assume.CheckpointEvery < 0:
		return fmt.Errorf("--checkpoint-every is %s; it must not be negative", s.assume.CheckpointEvery)
	case s.assume.DeclaredRuntime != 0 && !(s.assume.DeclaredRuntime >= 1 && s.assume.DeclaredRuntime <= 100):
		return fmt.Errorf("--declared-runtime is %g; it must be from 1 to 100", s.assume.DeclaredRuntime)
	}
	return nil
}

// readPolicies reads policy files. They are called as their files are, without
// directories unless they would then have one name.
func readPolicies(files []string) ([]simulation.Policy, error) {
	var policies []simulation.Policy
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the policy: %w", err)
		}
		cohort, err := scenario.ParseCohort(file, text)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		if slices.ContainsFunc(files, func(o string) bool { return o != file && filepath.Base(o) == name }) {
			name = file
		}
		policies = append(policies, simulation.Policy{Name: name, Cohort: cohort})
	}
	return policies, nil
}

// fromServer is what runs and waits on a server now, and the policies to play
// that forward under: its own, if none are given.
func (s *simulator) fromServer(ctx context.Context, policies []simulation.Policy) (*simulation.Trace, []simulation.Policy, error) {
	server, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	queue := s.queue
	if queue == "" {
		if queue, err = s.governedQueue(ctx, server); err != nil {
			return nil, nil, err
		}
	}
	standing, err := s.asker(server).Standing(ctx, queue)
	if err != nil {
		return nil, nil, err
	}
	if len(policies) == 0 {
		cohort, err := scenario.ParseCohort(queue, []byte(standing.Policy))
		if err != nil {
			return nil, nil, fmt.Errorf("read the policy that the server sent: %w", err)
		}
		policies = []simulation.Policy{{Name: queue, Cohort: cohort}}
	}
	for i := range policies {
		c := &policies[i].Cohort
		c.GracePeriod = cmp.Or(c.GracePeriod, standing.Grace)
	}
	return simulation.FromStanding("job queue "+queue, standing.At, standing.Jobs), policies, nil
}

func readTrace(file string, gpusUnit quota.Unit) (*simulation.Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	return simulation.ReadTrace(file, f, gpusUnit)
}

func (s *simulator) replay(ctx context.Context, p simulation.Policy, trace *simulation.Trace) (*simulation.Run, error) {
	progress := terminal.New(s.Err, s.Getenv)
	options := simulation.Options{Unit: quota.Unit(s.unit), Assume: s.assume}
	if progress.Live() {
		options.Progress = func(done int) {
			line := fmt.Sprintf("%s: %d of %d jobs are over", p.Name, done, len(trace.Jobs))
			// What a terminal does not show is no reason to stop.
			_ = progress.Draw([]terminal.Line{terminal.Text(terminal.Dim, line)})
		}
		defer func() { _ = progress.Draw(nil) }()
	}
	if s.events == "" {
		return simulation.Replay(ctx, p, trace, options)
	}
	var run *simulation.Run
	err := writeFile(s.events, func(w io.Writer) error {
		events := simulation.NewEventWriter(w)
		options.Observe = events.Observe
		var err error
		if run, err = simulation.Replay(ctx, p, trace, options); err != nil {
			return err
		}
		return events.Flush()
	})
	return run, err
}

// writeFile creates or replaces a file.
func writeFile(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// print writes the summaries: as tables, or as one JSON object for each policy.
func (s *simulator) print(runs []*simulation.Run) error {
	if s.output == "json" {
		encoder := json.NewEncoder(s.Out)
		encoder.SetIndent("", "  ")
		for _, run := range runs {
			if err := encoder.Encode(run.Summary); err != nil {
				return err
			}
		}
		return nil
	}
	screen := s.screen()
	if err := screen.Print(screen.Cut(figureLines(runs))...); err != nil {
		return err
	}
	for _, run := range runs {
		lines := append([]terminal.Line{{}, terminal.Text(terminal.Bold, run.Policy.Name)}, shareLines(run)...)
		if err := screen.Print(screen.Cut(lines)...); err != nil {
			return err
		}
	}
	return nil
}

// figureLines is the table of figures, with a column for each run.
func figureLines(runs []*simulation.Run) []terminal.Line {
	table := terminal.Table{Columns: []terminal.Column{{}}}
	for _, run := range runs {
		table.Columns = append(table.Columns, terminal.Column{Title: run.Policy.Name, Right: true})
	}
	compares := len(runs) == 2
	if compares {
		table.Columns = append(table.Columns, terminal.Column{Title: "DIFFERENCE", Right: true}, terminal.Column{})
	}
	for _, f := range simulation.Figures(runs...) {
		cells := []terminal.Span{{Text: f.Name}}
		for _, v := range f.Values {
			cells = append(cells, terminal.Span{Text: v})
		}
		if compares {
			style := map[string]terminal.Style{"better": terminal.Green, "worse": terminal.Yellow}[f.Verdict]
			cells = append(cells, terminal.Span{Text: f.Difference, Style: style}, terminal.Span{Text: f.Verdict, Style: style})
		}
		table.Add(cells...)
	}
	return table.Lines()
}

// shareLines is the table of the shares of a run.
func shareLines(run *simulation.Run) []terminal.Line {
	unit := string(run.Summary.Unit)
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "SHARE"}, {Title: "JOBS", Right: true},
		{Title: "WAIT", Right: true}, {Title: "P99", Right: true}, {Title: "WITHIN QUOTA", Right: true}, {Title: "P99", Right: true},
		{Title: "PREEMPTED", Right: true}, {Title: unit + "-HOURS", Right: true}, {Title: "BORROWED", Right: true}, {Title: "LOST", Right: true},
	}}
	for _, share := range run.Policy.Cohort.Shares {
		s := run.Summary.Shares[share.Name]
		table.Add(
			terminal.Span{Text: share.Name}, terminal.Span{Text: fmt.Sprint(s.Jobs)},
			terminal.Span{Text: simulation.Seconds(s.WaitS.Mean)}, terminal.Span{Text: simulation.Seconds(s.WaitS.P99)},
			terminal.Span{Text: simulation.Seconds(s.WaitWithinQuotaS.Mean)}, terminal.Span{Text: simulation.Seconds(s.WaitWithinQuotaS.P99)},
			terminal.Span{Text: fmt.Sprint(s.Preemptions)}, terminal.Span{Text: fmt.Sprintf("%.0f", s.HeldGPUHours)},
			terminal.Span{Text: fmt.Sprintf("%.0f", s.BorrowedGPUHours)}, terminal.Span{Text: fmt.Sprintf("%.0f", s.LostGPUHours)},
		)
	}
	return table.Lines()
}
