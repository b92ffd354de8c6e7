package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
)

// expectation is what must hold once all is settled at one instant.
type expectation struct {
	at     time.Duration
	line   int
	checks []check
}

// check is one key of an expectation.
type check struct {
	line int
	want string // the key and its value
	look func(*World) finding
}

// finding is what a check found.
type finding struct {
	holds bool
	found string   // what there is in place of what is wanted
	jobs  []string // that it concerns
}

// The states of jobs as expectations see them.
var states = map[string]func(*member) bool{
	"running":   func(m *member) bool { return m.Status.Holds() && !m.Stopping() },
	"waiting":   func(m *member) bool { return m.Status == job.Runnable },
	"stopping":  func(m *member) bool { return m.Stopping() },
	"succeeded": func(m *member) bool { return m.Status == job.Succeeded },
	"failed":    func(m *member) bool { return m.Status == job.Failed },
}

// expectation reads one element of expect.
func (r *scenarioReader) expectation(n *yaml.Node) expectation {
	e := expectation{line: n.Line}
	is := func(key string, read func(key string, n *yaml.Node) []check) func(*yaml.Node) {
		return func(n *yaml.Node) { e.checks = append(e.checks, read(key, n)...) }
	}
	known := fields{
		"at":        func(n *yaml.Node) { e.at = r.duration(n, "at") },
		"failed":    is("failed", r.expectFailed),
		"preempted": is("preempted", r.expectPreempted),
		"reason":    is("reason", r.expectReason),
		"usage":     is("usage", r.expectAmounts(func(b quota.Balance) int64 { return b.Usage })),
		"borrowed":  is("borrowed", r.expectAmounts(func(b quota.Balance) int64 { return b.Borrowed })),
	}
	for _, key := range []string{"running", "waiting", "stopping", "succeeded"} {
		known[key] = is(key, r.expectState)
	}
	r.mapping(n, "an expectation", known, "at")
	return e
}

// expectState reads the jobs that are exactly those in a state.
func (r *scenarioReader) expectState(key string, n *yaml.Node) []check {
	var want []string
	r.list(n, key, func(n *yaml.Node) {
		name := r.text(n, "a job in "+key)
		r.knownJob(n, name)
		if slices.Contains(want, name) {
			r.fail(n, "%s has job %s twice", key, name)
		}
		want = append(want, name)
	})
	return []check{{n.Line, key + ": " + names(want), func(w *World) finding {
		found := w.in(key)
		concerned := difference(want, found)
		return finding{len(concerned) == 0, key + ": " + names(found), concerned}
	}}}
}

// expectFailed reads the jobs that are exactly those that failed, each with
// what its status reason starts with.
func (r *scenarioReader) expectFailed(key string, n *yaml.Node) []check {
	var want []string
	reasons := map[string]string{}
	r.entries(n, key, func(name, reason *yaml.Node) {
		r.knownJob(name, name.Value)
		want = append(want, name.Value)
		reasons[name.Value] = r.text(reason, "the reason of "+name.Value)
	})
	return []check{{n.Line, key + ": " + pairs(want, func(name string) string { return reasons[name] }), func(w *World) finding {
		found := w.in(key)
		concerned := difference(want, found)
		for _, name := range found {
			if start, ok := reasons[name]; ok && !strings.HasPrefix(w.byName[name].Reason, start) {
				concerned = append(concerned, name)
			}
		}
		text := key + ": " + pairs(found, func(name string) string { return w.byName[name].Reason })
		return finding{len(concerned) == 0, text, concerned}
	}}}
}

// expectPreempted reads how often some jobs were preempted.
func (r *scenarioReader) expectPreempted(key string, n *yaml.Node) []check {
	var checks []check
	r.entries(n, key, func(k, value *yaml.Node) {
		name, want := k.Value, int(r.integer(value, "the number of preemptions of "+k.Value, 0, math.MaxInt32))
		r.knownJob(k, name)
		checks = append(checks, check{k.Line, fmt.Sprintf("%s: {%s: %d}", key, name, want), func(w *World) finding {
			found := 0
			if m := w.byName[name]; m != nil {
				found = m.PreemptionCount
			}
			return finding{found == want, fmt.Sprintf("%s: {%s: %d}", key, name, found), []string{name}}
		}})
	})
	return checks
}

// expectReason reads why some jobs wait: a code, or the start of the sentence.
func (r *scenarioReader) expectReason(key string, n *yaml.Node) []check {
	var checks []check
	r.entries(n, key, func(k, value *yaml.Node) {
		name, want := k.Value, r.text(value, "the reason of "+k.Value)
		r.knownJob(k, name)
		checks = append(checks, check{k.Line, fmt.Sprintf("%s: {%s: %s}", key, name, want), func(w *World) finding {
			code, sentence, waits := w.reason(name)
			holds := waits && (string(code) == want || strings.HasPrefix(sentence, want))
			found := fmt.Sprintf("%s: {%s: %s}", key, name, code)
			if !waits {
				found = name + " does not wait"
			}
			return finding{holds, found, []string{name}}
		}})
	})
	return checks
}

// expectAmounts reads, for some shares and units, what part of a balance is.
func (r *scenarioReader) expectAmounts(of func(quota.Balance) int64) func(string, *yaml.Node) []check {
	return func(key string, n *yaml.Node) []check {
		var checks []check
		r.entries(n, key, func(k, value *yaml.Node) {
			share := k.Value
			r.knownShare(k, share)
			want := r.amounts(value, key+" of "+share, 0, r.known)
			checks = append(checks, check{k.Line, fmt.Sprintf("%s: {%s: %s}", key, share, amountsText(want)), func(w *World) finding {
				found := quota.Amounts{}
				for unit := range want {
					found[unit] = 0
				}
				for _, b := range w.cohort.Balances(share) {
					if _, wanted := want[b.Unit]; wanted {
						found[b.Unit] = of(b)
					}
				}
				text := fmt.Sprintf("%s: {%s: %s}", key, share, amountsText(found))
				return finding{amountsText(found) == amountsText(want), text, w.activeIn(share)}
			}})
		})
		return checks
	}
}

// in returns the jobs in a state, in order of submission.
func (w *World) in(state string) []string {
	return w.namesOf(states[state])
}

// activeIn returns the jobs of a share that have not finished, in order of
// submission.
func (w *World) activeIn(share string) []string {
	return w.namesOf(func(m *member) bool { return m.Share == share && !m.Status.Finished() })
}

func (w *World) namesOf(which func(*member) bool) []string {
	var found []string
	for _, m := range w.members {
		if which(m) {
			found = append(found, m.Name)
		}
	}
	return found
}

// difference returns what is in one of two lists only.
func difference(a, b []string) []string {
	var only []string
	for _, name := range a {
		if !slices.Contains(b, name) {
			only = append(only, name)
		}
	}
	for _, name := range b {
		if !slices.Contains(a, name) {
			only = append(only, name)
		}
	}
	return only
}

// names writes a list as files do.
func names(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

// pairs writes a mapping as files do.
func pairs(keys []string, value func(key string) string) string {
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = key + ": " + value(key)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func amountsText(amounts quota.Amounts) string {
	return pairs(unitsInOrder(amounts), func(unit string) string { return fmt.Sprint(amounts[quota.Unit(unit)]) })
}
