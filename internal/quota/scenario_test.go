package quota_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// script writes a history down as a scenario, as far as one can say it: what
// it cannot say becomes a comment. Every pass has an instant of its own.
type script struct {
	policy   quota.Policy
	capacity quota.Amounts
	shares   map[string]quota.Share // as they were first declared
	lines    []string
	passes   int
}

func newScript(p *plain) *script {
	return &script{policy: p.policy, capacity: maps.Clone(p.capacity), shares: maps.Clone(p.shares)}
}

// at is the instant of what happens now, and of the pass that follows it.
func (s *script) at(now time.Time) time.Duration {
	return now.Sub(epoch) + time.Duration(s.passes)*time.Millisecond
}

func (s *script) event(now time.Time, event string) {
	s.lines = append(s.lines, fmt.Sprintf("- {at: %v, %s}", s.at(now), event))
}

func (s *script) comment(now time.Time, what string) {
	s.lines = append(s.lines, fmt.Sprintf("# %v: %s", s.at(now), what))
}

// declare is a change of a share, or a new one, which a scenario has from the
// start, owning nothing.
func (s *script) declare(share quota.Share) (event string) {
	if _, ok := s.shares[share.Name]; !ok {
		s.shares[share.Name] = quota.Share{Name: share.Name}
	}
	return fmt.Sprintf("setShare: {share: %s, %s}", share.Name, shareKeys(share))
}

func (s *script) submit(now time.Time, j quota.Job) (event string) {
	keys := []string{"job: " + jobName(j.ID), "share: " + j.Share, fmt.Sprintf("priority: %d", j.Priority), "demand: " + flow(j.Demand)}
	if j.MaxRuntime > 0 {
		keys = append(keys, fmt.Sprintf("maxRuntime: %v", j.MaxRuntime))
	}
	if !j.Created.Equal(now) || !j.NotBefore.IsZero() {
		s.comment(now, fmt.Sprintf("%s was created %v ago, and waits until %v", jobName(j.ID), now.Sub(j.Created), max(0, j.NotBefore.Sub(epoch))))
	}
	return "submit: {" + strings.Join(keys, ", ") + "}"
}

func jobName(id quota.JobID) string { return fmt.Sprintf("j%d", id) }

func flow(amounts quota.Amounts) string {
	var each []string
	for _, u := range slices.Sorted(maps.Keys(amounts)) {
		each = append(each, fmt.Sprintf("%s: %d", u, amounts[u]))
	}
	return "{" + strings.Join(each, ", ") + "}"
}

func shareKeys(s quota.Share) string {
	sharing := []string{quota.Reserve: "Reserve", quota.Lend: "Lend", quota.LendAndBorrow: "LendAndBorrow"}[s.Sharing]
	keys := fmt.Sprintf("quota: %s, sharing: %s, borrowLimit: %d, inSharePreemption: %v, weight: %d",
		flow(s.Nominal), sharing, s.BorrowPercent, s.InSharePreemption, s.Weight)
	if len(s.BorrowLimits) > 0 {
		keys += ", borrowLimits: " + flow(s.BorrowLimits)
	}
	if len(s.LendLimits) > 0 {
		keys += ", lendLimits: " + flow(s.LendLimits)
	}
	return keys
}

// write returns the scenario, expecting in the end what there is in the plain pass.
func (s *script) write(name string, p *plain) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ncohort:\n  capacity: %s\n", name, flow(s.capacity))
	fmt.Fprintf(&b, "  idleAssignment: %s\n", []string{quota.FIFO: "FIFO", quota.FairShare: "FairShare"}[s.policy.IdleAssignment])
	fmt.Fprintf(&b, "  queueing: %s\n", []string{quota.Strict: "Strict", quota.BestEffort: "BestEffort", quota.Backfill: "Backfill"}[s.policy.Queueing])
	fmt.Fprintf(&b, "  priorityScope: %s\n", []string{quota.InEachShare: "Share", quota.InCohort: "Cohort"}[s.policy.PriorityScope])
	fmt.Fprintf(&b, "  victims: %s\n", []string{
		quota.LeastLostWork: "LeastLostWork", quota.MostOverQuota: "MostOverQuota", quota.NewestFirst: "NewestFirst",
	}[s.policy.Victims])
	fmt.Fprintf(&b, "  borrowerPreemption: %v\n  rebalance: %v\n  shareUnallocated: %v\n  minRuntime: %v\n",
		s.policy.BorrowerPreemption, s.policy.Rebalance, s.policy.ShareUnallocated, s.policy.MinRuntime)
	if s.policy.AssumedCheckpointInterval > 0 {
		fmt.Fprintf(&b, "  assumedCheckpointInterval: %v\n", s.policy.AssumedCheckpointInterval)
	}
	b.WriteString("  shares:\n")
	for _, name := range slices.Sorted(maps.Keys(s.shares)) {
		fmt.Fprintf(&b, "  - {name: %s, %s}\n", name, shareKeys(s.shares[name]))
	}
	fmt.Fprintf(&b, "events:\n%s\nexpect:\n", strings.Join(s.lines, "\n"))
	names := func(is func(*plainJob) bool) string {
		var names []string
		for _, id := range slices.Sorted(maps.Keys(p.jobs)) {
			if is(p.jobs[id]) {
				names = append(names, jobName(id))
			}
		}
		return "[" + strings.Join(names, ", ") + "]"
	}
	fmt.Fprintf(&b, "- {at: %v, running: %s, waiting: %s, stopping: %s}\n",
		s.at(p.now), names((*plainJob).running), names(waits), names(stops))
	return b.String()
}

// keep writes the history down for a test that fails. The last that fails is
// the shortest.
func (h *history) keep(test string) {
	name := strings.ReplaceAll(test, "/", "_")
	file := filepath.Join("testdata", "failed", name+".yaml")
	text := h.script.write("what "+test+" found", h.plain)
	h.Logf("as a scenario, also in %s:\n%s", file, text)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.Log(err)
		return
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.Log(err)
	}
}
