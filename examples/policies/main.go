// Command policies compares orders of victims and kinds of queueing on a trace
// of jobs: it gives each team a quota in proportion to what it used, writes the
// policy files that follow, replays the trace under each, and prints a table.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
	"github.com/bursar-io/bursar/internal/simulation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}

// comparison is what the flags say.
type comparison struct {
	trace      string
	policies   string // directory
	unit       quota.Unit
	capacities []int64
	assume     simulation.Assumptions
}

func run(ctx context.Context, args []string, out io.Writer) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	trace, err := c.read()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.policies, 0o755); err != nil {
		return fmt.Errorf("make a directory for the policies: %w", err)
	}
	fmt.Fprintln(out, "| GPUs | queueing | victims | wait, mean | p99 | within quota, mean | p99 | preemptions | GPU-hours lost | utilization |")
	fmt.Fprintln(out, "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, capacity := range c.capacities {
		quotas, err := quotas(trace, c.unit, capacity)
		if err != nil {
			return err
		}
		for _, ch := range choices(capacity) {
			if err := c.compare(ctx, ch, quotas, trace, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func parse(args []string) (comparison, error) {
	var c comparison
	var unit, capacities string
	flags := flag.NewFlagSet("policies", flag.ContinueOnError)
	flags.StringVar(&c.trace, "trace", "", "trace file, CSV, plain or gzip")
	flags.StringVar(&c.policies, "policies", "bin/policies", "directory to write the policy files to")
	flags.StringVar(&unit, "gpus-unit", "gpu", "the unit that the trace's column gpus counts")
	flags.StringVar(&capacities, "gpus", "616,696", "capacities to compare at")
	flags.DurationVar(&c.assume.CheckpointEvery, "checkpoint-every", time.Hour, "how often jobs checkpoint")
	flags.Float64Var(&c.assume.DeclaredRuntime, "declared-runtime", 1.5, "what jobs declare as their maximum runtime, times their runtime")
	if err := flags.Parse(args); err != nil {
		return comparison{}, err
	}
	if c.trace == "" {
		return comparison{}, errors.New("-trace is missing; name a trace file")
	}
	c.unit = quota.Unit(unit)
	for s := range strings.SplitSeq(capacities, ",") {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 {
			return comparison{}, fmt.Errorf("-gpus has %q; it must be whole numbers of more than 0, with commas between", s)
		}
		c.capacities = append(c.capacities, n)
	}
	return c, nil
}

func (c *comparison) read() (*simulation.Trace, error) {
	f, err := os.Open(c.trace)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	return simulation.ReadTrace(c.trace, f, c.unit)
}

// choice is what the policies compared differ in.
type choice struct {
	capacity          int64
	queueing, victims string
}

func (c choice) file() string {
	return fmt.Sprintf("%d-%s-%s.yaml", c.capacity, c.victims, c.queueing)
}

// choices are every order of victims with every kind of queueing.
func choices(capacity int64) []choice {
	var all []choice
	for _, queueing := range []string{"Strict", "Backfill"} {
		for _, victims := range []string{"LeastLostWork", "MostOverQuota", "NewestFirst"} {
			all = append(all, choice{capacity, queueing, victims})
		}
	}
	return all
}

// policyFile is the policy of a choice.
func policyFile(c choice, unit quota.Unit, quotas []teamQuota) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "capacity: {%s: %d}\nqueueing: %s\nvictims: %s\nshares:\n", unit, c.capacity, c.queueing, c.victims)
	for _, q := range quotas {
		fmt.Fprintf(&b, "- {name: %s, quota: {%s: %d}, sharing: LendAndBorrow}\n", q.team, unit, q.amount)
	}
	return b.Bytes()
}

// teamQuota is what one team may use.
type teamQuota struct {
	team   string
	exact  float64
	amount int64
}

// quotas divides a capacity between the teams of a trace, in proportion to the
// product of amount and runtime of their jobs. What rounding down leaves goes to
// those who lost most by it.
func quotas(trace *simulation.Trace, unit quota.Unit, capacity int64) ([]teamQuota, error) {
	used, total := map[string]float64{}, 0.0
	for i := range trace.Jobs {
		j := &trace.Jobs[i]
		hours := float64(j.Demand[unit]) * j.Runtime.Hours()
		used[j.Team] += hours
		total += hours
	}
	if total == 0 {
		return nil, fmt.Errorf("no job of %s wants any %s; -gpus-unit must be a unit of the trace", trace.Name, unit)
	}
	var quotas []teamQuota
	left := capacity
	for team, hours := range used {
		exact := hours / total * float64(capacity)
		quotas = append(quotas, teamQuota{team, exact, int64(exact)})
		left -= int64(exact)
	}
	slices.SortFunc(quotas, func(a, b teamQuota) int {
		return cmp.Or(cmp.Compare(b.exact-math.Floor(b.exact), a.exact-math.Floor(a.exact)), cmp.Compare(a.team, b.team))
	})
	for i := range quotas[:left] {
		quotas[i].amount++
	}
	slices.SortFunc(quotas, func(a, b teamQuota) int { return cmp.Compare(a.team, b.team) })
	return quotas, nil
}

// compare writes a policy's file, replays the trace under it, and prints its row.
func (c *comparison) compare(ctx context.Context, ch choice, quotas []teamQuota, trace *simulation.Trace, out io.Writer) error {
	file := filepath.Join(c.policies, ch.file())
	text := policyFile(ch, c.unit, quotas)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	cohort, err := scenario.ParseCohort(file, text)
	if err != nil {
		return err
	}
	replayed, err := simulation.Replay(ctx, simulation.Policy{Name: file, Cohort: cohort}, trace, simulation.Options{Unit: c.unit, Assume: c.assume})
	if err != nil {
		return err
	}
	s := &replayed.Summary
	_, err = fmt.Fprintf(out, "| %d | %s | %s | %s | %s | %s | %s | %d | %.0f | %.1f %% |\n",
		ch.capacity, ch.queueing, ch.victims,
		simulation.Seconds(s.WaitS.Mean), simulation.Seconds(s.WaitS.P99),
		simulation.Seconds(s.WaitWithinQuotaS.Mean), simulation.Seconds(s.WaitWithinQuotaS.P99),
		s.Preemptions, s.LostGPUHours, 100*s.Utilization)
	return err
}
