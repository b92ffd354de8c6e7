package scenario

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// Scenario is a scenario file: a cohort, what happens to it, and what must hold.
type Scenario struct {
	File   string
	Name   string // of what it shows; the file's name where it has none
	Cohort Cohort

	happenings   []happening   // in order of time
	expectations []expectation // in order of time
}

// happening is what a scenario adds to a world.
type happening struct {
	at    time.Duration
	line  int
	what  string
	apply func(*World) error
}

// maxAttempts is the most attempts that a job may have (A9 of the facts).
const maxAttempts = 10

// Parse reads a scenario file. file is its name in errors, which are *FileError.
func Parse(file string, text []byte) (*Scenario, error) {
	r := &scenarioReader{reader: reader{file: file}, jobs: map[string]int{}}
	root := r.document(text)
	if r.err != nil {
		return nil, r.err
	}
	s := &Scenario{File: file, Name: file}
	parts := map[string]*yaml.Node{}
	part := func(key string) func(*yaml.Node) { return func(n *yaml.Node) { parts[key] = n } }
	r.mapping(root, "the scenario", fields{
		"name":   func(n *yaml.Node) { s.Name = r.text(n, "name") },
		"cohort": part("cohort"),
		"events": part("events"),
		"expect": part("expect"),
	}, "cohort")
	if r.err != nil {
		return nil, r.err
	}
	s.Cohort, r.units = r.cohort(parts["cohort"])
	r.shares = s.Cohort.Shares
	if n := parts["events"]; n != nil {
		r.list(n, "events", func(n *yaml.Node) { s.happenings = append(s.happenings, r.happening(n)) })
	}
	if n := parts["expect"]; n != nil {
		r.list(n, "expect", func(n *yaml.Node) { s.expectations = append(s.expectations, r.expectation(n)) })
	}
	if r.err != nil {
		return nil, r.err
	}
	slices.SortStableFunc(s.expectations, func(a, b expectation) int { return cmp.Compare(a.at, b.at) })
	return s, nil
}

// scenarioReader reads a scenario file, and knows what was read of it.
type scenarioReader struct {
	reader
	units  units
	shares []Share        // as they are after the events read so far
	jobs   map[string]int // the line of each job's submission
	last   time.Duration  // of the events read so far
}

// gangEvents are about gangs that are not whole.
var gangEvents = []string{"neverReady", "ready", "loseWorker", "restoreWorker"}

// happening reads one element of events: when it happens, and one thing.
func (r *scenarioReader) happening(n *yaml.Node) happening {
	h := happening{line: n.Line}
	things := 0
	thing := func(key string, read func(*yaml.Node) func(*World) error) func(*yaml.Node) {
		return func(n *yaml.Node) {
			things++
			h.what, h.apply = key, read(n)
		}
	}
	known := fields{
		"at":          func(n *yaml.Node) { h.at = r.time(n) },
		"submit":      thing("submit", r.submit),
		"setPriority": thing("setPriority", r.setPriority),
		"setShare":    thing("setShare", r.setShare),
		"setCapacity": thing("setCapacity", r.setCapacity),
		"terminate":   thing("terminate", r.terminate),
		"fail":        thing("fail", r.failAttempt),
		"succeed":     thing("succeed", r.succeed),
	}
	for _, key := range gangEvents {
		known[key] = func(n *yaml.Node) {
			r.fail(n, "%s cannot be simulated yet: all workers of a job are ready at once and stay so", key)
		}
	}
	r.mapping(n, "an event", known, "at")
	if things != 1 {
		r.fail(n, "an event has %d things that happen; it must have one beside its time", things)
	}
	return h
}

// time reads when an event happens, which is not before the event above it.
func (r *scenarioReader) time(n *yaml.Node) time.Duration {
	at := r.duration(n, "at")
	if at < r.last {
		r.fail(n, "at is %s, before the event above it at %s; events are in order of time", Spell(at), Spell(r.last))
	}
	r.last = at
	return at
}

func (r *scenarioReader) submit(n *yaml.Node) func(*World) error {
	s := Submission{Runtime: Endless}
	r.mapping(n, "submit", fields{
		"job":      func(n *yaml.Node) { s.Job = r.newJob(n) },
		"share":    func(n *yaml.Node) { s.Share = r.share(n) },
		"priority": func(n *yaml.Node) { s.Priority = r.priority(n) },
		"demand":   func(n *yaml.Node) { s.Demand = r.amounts(n, "demand", 1, r.known) },
		"workers":  func(n *yaml.Node) { s.Workers = int(r.integer(n, "workers", 1, math.MaxInt32)) },
		"runtime":  func(n *yaml.Node) { s.Runtime = r.duration(n, "runtime") },
		"maxRuntime": func(n *yaml.Node) {
			if s.MaxRuntime = r.duration(n, "maxRuntime"); s.MaxRuntime == 0 {
				r.fail(n, "maxRuntime is 0; it must be more, or be left out")
			}
		},
		"checkpointEvery": func(n *yaml.Node) { s.CheckpointEvery = r.duration(n, "checkpointEvery") },
		"preemptionRetries": func(n *yaml.Node) {
			retries := int(r.integer(n, "preemptionRetries", 0, math.MaxInt32))
			s.PreemptionRetries = &retries
		},
		"attempts": func(n *yaml.Node) { s.Attempts = int(r.integer(n, "attempts", 1, maxAttempts)) },
	}, "job", "share", "demand")
	if s.Demand == nil {
		r.fail(n, "demand is empty; it must name what the job holds when it runs")
	}
	return func(w *World) error { return w.Submit(s) }
}

func (r *scenarioReader) setPriority(n *yaml.Node) func(*World) error {
	var name string
	var priority int32
	r.mapping(n, "setPriority", fields{
		"job":      func(n *yaml.Node) { name = r.submittedJob(n) },
		"priority": func(n *yaml.Node) { priority = r.priority(n) },
	}, "job", "priority")
	return func(w *World) error { return w.SetPriority(name, priority) }
}

// setShare reads new values for some of a share's keys; what it does not name
// stays as the events above left it.
func (r *scenarioReader) setShare(n *yaml.Node) func(*World) error {
	named := r.value(n, "share")
	if named == nil {
		r.fail(n, "setShare lacks share")
		return nil
	}
	name := r.share(named)
	at := slices.IndexFunc(r.shares, func(s Share) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	s := r.shares[at]
	keys := r.shareFields(&s, "share "+name, r.known, r.known)
	delete(keys, "name")
	keys["share"] = func(*yaml.Node) {}
	r.mapping(n, "setShare", keys)
	r.shares = slices.Clone(r.shares)
	r.shares[at] = s
	return func(w *World) error {
		w.SetShare(s)
		return nil
	}
}

func (r *scenarioReader) setCapacity(n *yaml.Node) func(*World) error {
	changed := r.amounts(n, "setCapacity", 0, r.known)
	return func(w *World) error {
		w.SetCapacity(changed)
		return nil
	}
}

func (r *scenarioReader) terminate(n *yaml.Node) func(*World) error {
	name, reason := r.jobAndReason(n, "terminate", "terminated")
	return func(w *World) error { return w.Terminate(name, reason) }
}

func (r *scenarioReader) failAttempt(n *yaml.Node) func(*World) error {
	name, reason := r.jobAndReason(n, "fail", "failed")
	return func(w *World) error { return w.Fail(name, reason) }
}

func (r *scenarioReader) jobAndReason(n *yaml.Node, what, standard string) (name, reason string) {
	reason = standard
	r.mapping(n, what, fields{
		"job":    func(n *yaml.Node) { name = r.submittedJob(n) },
		"reason": func(n *yaml.Node) { reason = r.text(n, "reason") },
	}, "job")
	return name, reason
}

func (r *scenarioReader) succeed(n *yaml.Node) func(*World) error {
	var name string
	r.mapping(n, "succeed", fields{"job": func(n *yaml.Node) { name = r.submittedJob(n) }}, "job")
	return func(w *World) error { return w.Succeed(name) }
}

// known fails for a unit that the cohort does not know.
func (r *scenarioReader) known(unit *yaml.Node) { r.units.check(&r.reader, unit) }

func (r *scenarioReader) priority(n *yaml.Node) int32 {
	return int32(r.integer(n, "priority", math.MinInt32, math.MaxInt32))
}

// share reads the name of a share that the cohort has.
func (r *scenarioReader) share(n *yaml.Node) string {
	name := r.text(n, "share")
	r.knownShare(n, name)
	return name
}

func (r *scenarioReader) knownShare(n *yaml.Node, name string) {
	known := map[string]bool{}
	for _, s := range r.shares {
		known[s.Name] = true
	}
	if !known[name] {
		r.fail(n, "share %s is not in the cohort; its shares are %s", name, inOrder(known))
	}
}

// newJob reads the name of a job that is submitted.
func (r *scenarioReader) newJob(n *yaml.Node) string {
	name := r.text(n, "job")
	if line, twice := r.jobs[name]; twice {
		r.fail(n, "job %s is submitted twice, first in line %d; names must differ", name, line)
	}
	r.jobs[name] = n.Line
	return name
}

// submittedJob reads the name of a job that was submitted above.
func (r *scenarioReader) submittedJob(n *yaml.Node) string {
	name := r.text(n, "job")
	r.knownJob(n, name)
	return name
}

func (r *scenarioReader) knownJob(n *yaml.Node, name string) {
	if _, ok := r.jobs[name]; !ok {
		r.fail(n, "job %s is not submitted by any event above", name)
	}
}
