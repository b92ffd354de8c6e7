package scenario

import (
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/bursar-io/bursar/internal/quota"
)

// Bounds of what a policy file may say.
const (
	maxDuration = 100 * 365 * 24 * time.Hour // far from overflow when added to
	maxWeight   = 1000
)

// Cohort is a policy in a file: a pool of capacity, how it is governed, and
// the shares that live on it. It is what `cohort:` holds in a scenario file,
// and a policy file as a whole.
type Cohort struct {
	Name     string // of the pool on a server; may be empty
	Capacity quota.Amounts
	// Policy has its AssumedCheckpointInterval always set.
	Policy quota.Policy
	// GracePeriod is how long a worker that is told to stop has until it is
	// killed (section 6).
	GracePeriod time.Duration
	Gang        Gang
	Shares      []Share // in the order of the file, which decides nothing
}

// Share is a share in a policy file.
type Share struct {
	quota.Share
	// Disabled shares take no new jobs; those they have go on (section 4).
	Disabled bool
}

// Timestamp is from which time on an evicted gang is queued again.
type Timestamp string

// The timestamps.
const (
	AtEviction Timestamp = "Eviction"
	AtCreation Timestamp = "Creation"
)

// Gang is what happens to gangs that are not whole (section 7).
type Gang struct {
	Timeout         time.Duration // from the grant until every worker must be ready
	RecoveryTimeout time.Duration // from the loss of a worker until it must be back; 0: for ever
	BlockAdmission  bool          // nothing else is granted until the gang is ready
	Requeue         GangRequeue
}

// StandardGang is that of a file which names no settings.
func StandardGang() Gang { return defaultCohort().Gang }

// GangRequeue is how evicted gangs wait again.
type GangRequeue struct {
	Timestamp   Timestamp
	BackoffBase time.Duration // doubled with each eviction in a row
	BackoffMax  time.Duration
	Limit       int64         // of evictions in a row; quota.Unlimited: none
	Jitter      time.Duration // added to a backoff, at most
}

// The words of policy files.
var (
	idleAssignments = map[string]quota.IdleAssignment{"FIFO": quota.FIFO, "FairShare": quota.FairShare}
	queueings       = map[string]quota.Queueing{"Strict": quota.Strict, "BestEffort": quota.BestEffort, "Backfill": quota.Backfill}
	priorityScopes  = map[string]quota.PriorityScope{"Share": quota.InEachShare, "Cohort": quota.InCohort}
	victimOrders    = map[string]quota.Victims{"LeastLostWork": quota.LeastLostWork, "MostOverQuota": quota.MostOverQuota, "NewestFirst": quota.NewestFirst}
	sharings        = map[string]quota.Sharing{"Reserve": quota.Reserve, "Lend": quota.Lend, "LendAndBorrow": quota.LendAndBorrow}
	timestamps      = map[string]Timestamp{"Eviction": AtEviction, "Creation": AtCreation}
)

// defaultCohort is what a policy file that says nothing says.
func defaultCohort() Cohort {
	return Cohort{
		Policy: quota.Policy{AssumedCheckpointInterval: quota.DefaultCheckpointInterval},
		Gang: Gang{
			Timeout: 5 * time.Minute, RecoveryTimeout: 5 * time.Minute,
			Requeue: GangRequeue{
				Timestamp: AtEviction, BackoffBase: time.Minute, BackoffMax: time.Hour, Limit: quota.Unlimited,
			},
		},
	}
}

func defaultShare() Share {
	return Share{Share: quota.Share{Sharing: quota.LendAndBorrow, BorrowPercent: quota.Unlimited, Weight: 1}}
}

// ParseCohort reads a policy file: a cohort, as it is or below the key
// `cohort`, then with its name beside it. file is the name for errors, which
// are *FileError.
func ParseCohort(file string, text []byte) (Cohort, error) {
	r := &reader{file: file}
	root := r.document(text)
	if r.err != nil {
		return Cohort{}, r.err
	}
	name, cohort := "", root
	if r.value(root, "cohort") != nil {
		r.mapping(root, "the file", fields{
			"name":   func(n *yaml.Node) { name = r.text(n, "name") },
			"cohort": func(n *yaml.Node) { cohort = n },
		}, "cohort")
	}
	c, _ := r.cohort(cohort)
	if name != "" && c.Name != "" && name != c.Name {
		r.fail(root, "the file has the names %s and %s; give it one", name, c.Name)
	}
	if name != "" {
		c.Name = name
	}
	if r.err != nil {
		return Cohort{}, r.err
	}
	return c, nil
}

// units are those that a cohort knows: of its capacity and of its shares'
// quotas, which may be for what the pool does not have yet (section 4).
type units map[quota.Unit]bool

// check fails for a unit that the cohort does not know.
func (u units) check(r *reader, unit *yaml.Node) {
	if !u[quota.Unit(unit.Value)] {
		r.fail(unit, "unit %s is in neither the capacity nor a quota; known are %s", unit.Value, strings.Join(unitsInOrder(u), ", "))
	}
}

// cohort reads a cohort, and returns the units that it knows.
func (r *reader) cohort(n *yaml.Node) (Cohort, units) {
	c, known := defaultCohort(), units{}
	define := func(unit *yaml.Node) { known[quota.Unit(unit.Value)] = true }
	var limits []*yaml.Node // units that limits name, which may be defined below them
	limit := func(unit *yaml.Node) { limits = append(limits, unit) }
	names := map[string]int{}
	p := &c.Policy
	r.mapping(n, "the cohort", fields{
		"name":                      func(n *yaml.Node) { c.Name = r.text(n, "name") },
		"capacity":                  func(n *yaml.Node) { c.Capacity = r.amounts(n, "capacity", 0, define) },
		"idleAssignment":            func(n *yaml.Node) { p.IdleAssignment = oneOf(r, n, "idleAssignment", idleAssignments) },
		"queueing":                  func(n *yaml.Node) { p.Queueing = oneOf(r, n, "queueing", queueings) },
		"priorityScope":             func(n *yaml.Node) { p.PriorityScope = oneOf(r, n, "priorityScope", priorityScopes) },
		"borrowerPreemption":        func(n *yaml.Node) { p.BorrowerPreemption = r.boolean(n, "borrowerPreemption") },
		"rebalance":                 func(n *yaml.Node) { p.Rebalance = r.boolean(n, "rebalance") },
		"shareUnallocated":          func(n *yaml.Node) { p.ShareUnallocated = r.boolean(n, "shareUnallocated") },
		"victims":                   func(n *yaml.Node) { p.Victims = oneOf(r, n, "victims", victimOrders) },
		"assumedCheckpointInterval": func(n *yaml.Node) { p.AssumedCheckpointInterval = r.checkpointInterval(n) },
		"gracePeriod":               func(n *yaml.Node) { c.GracePeriod = r.duration(n, "gracePeriod") },
		"minRuntime":                func(n *yaml.Node) { p.MinRuntime = r.duration(n, "minRuntime") },
		"gang":                      func(n *yaml.Node) { r.gang(n, &c.Gang) },
		"shares": func(n *yaml.Node) {
			r.list(n, "shares", func(n *yaml.Node) {
				s := defaultShare()
				what := r.shareNamed(n, names)
				r.mapping(n, what, r.shareFields(&s, what, define, limit), "name")
				c.Shares = append(c.Shares, s)
			})
		},
	}, "capacity", "shares")
	for _, unit := range limits {
		known.check(r, unit)
	}
	return c, known
}

// checkpointInterval reads one that must not be 0, which would make every
// job without a checkpoint lose nothing.
func (r *reader) checkpointInterval(n *yaml.Node) time.Duration {
	d := r.duration(n, "assumedCheckpointInterval")
	if d == 0 {
		r.fail(n, "assumedCheckpointInterval is 0; it must be more, such as 1h")
	}
	return d
}

// shareNamed is what errors call the share that a node describes. It fails if
// another one has its name.
func (r *reader) shareNamed(n *yaml.Node, lines map[string]int) string {
	name := r.value(n, "name")
	if name == nil || name.Kind != yaml.ScalarNode {
		return "a share"
	}
	if line, twice := lines[name.Value]; twice {
		r.fail(name, "share %s is there twice, first in line %d; names must differ", name.Value, line)
	}
	lines[name.Value] = name.Line
	return "share " + name.Value
}

// shareFields reads the keys of a share into s.
func (r *reader) shareFields(s *Share, what string, define, limit func(unit *yaml.Node)) fields {
	of := func(key string) string { return key + " of " + what }
	return fields{
		"name":              func(n *yaml.Node) { s.Name = r.text(n, of("name")) },
		"quota":             func(n *yaml.Node) { s.Nominal = r.amounts(n, of("quota"), 0, define) },
		"sharing":           func(n *yaml.Node) { s.Sharing = oneOf(r, n, of("sharing"), sharings) },
		"borrowLimit":       func(n *yaml.Node) { s.BorrowPercent = r.integer(n, of("borrowLimit"), quota.Unlimited, math.MaxInt32) },
		"borrowLimits":      func(n *yaml.Node) { s.BorrowLimits = r.amounts(n, of("borrowLimits"), 0, limit) },
		"lendLimits":        func(n *yaml.Node) { s.LendLimits = r.amounts(n, of("lendLimits"), 0, limit) },
		"inSharePreemption": func(n *yaml.Node) { s.InSharePreemption = r.boolean(n, of("inSharePreemption")) },
		"weight":            func(n *yaml.Node) { s.Weight = r.integer(n, of("weight"), 0, maxWeight) },
		"disabled":          func(n *yaml.Node) { s.Disabled = r.boolean(n, of("disabled")) },
	}
}

func (r *reader) gang(n *yaml.Node, g *Gang) {
	recovery := false
	r.mapping(n, "gang", fields{
		"timeout":         func(n *yaml.Node) { g.Timeout = r.duration(n, "timeout of gang") },
		"recoveryTimeout": func(n *yaml.Node) { g.RecoveryTimeout, recovery = r.duration(n, "recoveryTimeout of gang"), true },
		"blockAdmission":  func(n *yaml.Node) { g.BlockAdmission = r.boolean(n, "blockAdmission of gang") },
		"requeue":         func(n *yaml.Node) { r.gangRequeue(n, &g.Requeue) },
	})
	if !recovery {
		g.RecoveryTimeout = g.Timeout
	}
}

func (r *reader) gangRequeue(n *yaml.Node, q *GangRequeue) {
	r.mapping(n, "requeue of gang", fields{
		"timestamp":   func(n *yaml.Node) { q.Timestamp = oneOf(r, n, "timestamp of requeue", timestamps) },
		"backoffBase": func(n *yaml.Node) { q.BackoffBase = r.duration(n, "backoffBase of requeue") },
		"backoffMax":  func(n *yaml.Node) { q.BackoffMax = r.duration(n, "backoffMax of requeue") },
		"limit":       func(n *yaml.Node) { q.Limit = r.integer(n, "limit of requeue", quota.Unlimited, math.MaxInt32) },
		"jitter":      func(n *yaml.Node) { q.Jitter = r.duration(n, "jitter of requeue") },
	})
	if q.BackoffMax < q.BackoffBase {
		r.fail(n, "backoffMax of requeue is %s, less than its backoffBase of %s", Spell(q.BackoffMax), Spell(q.BackoffBase))
	}
}
