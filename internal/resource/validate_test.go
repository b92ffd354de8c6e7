package resource

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	const g5 = "ml.g5.xlarge"
	one := []Limit{{Unit: g5, Max: 1}}
	environment := func(change func(*Environment)) error {
		e := Environment{Name: "e", State: Enabled, Limits: one}
		change(&e)
		return e.Validate()
	}
	queue := func(change func(*Queue)) error {
		q := Queue{Name: "q", State: Enabled, Environment: "e"}
		change(&q)
		return q.Validate()
	}
	share := func(change func(*Share)) error {
		s := Share{Name: "s", Queue: "q", State: Enabled, Limits: one, Sharing: LendAndBorrow, BorrowLimit: Unlimited}
		change(&s)
		return s.Validate()
	}
	policy := func(change func(*Policy)) error {
		p := Policy{Name: "p", IdleAssignment: IdleFIFO}
		change(&p)
		return p.Validate()
	}
	fair := func(change func(*FairShare)) error {
		return policy(func(p *Policy) {
			p.IdleAssignment, p.FairShare = "", &FairShare{}
			change(p.FairShare)
		})
	}
	weighted := func(identifiers ...string) func(*FairShare) {
		return func(f *FairShare) {
			for _, identifier := range identifiers {
				f.Distribution = append(f.Distribution, WeightedShare{Identifier: identifier, WeightFactor: DefaultWeightFactor})
			}
		}
	}
	factor := func(n int64) func(*FairShare) {
		return func(f *FairShare) { f.Distribution = []WeightedShare{{Identifier: "a", WeightFactor: n}} }
	}
	action := func(reason string, after time.Duration) TimeLimitAction {
		return TimeLimitAction{Reason: reason, After: after}
	}
	const misconfigured = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED"
	tests := []struct {
		name string
		err  error
		want string // empty: valid
	}{
		{"environment", environment(func(*Environment) {}), ""},
		{"environment that counts", environment(func(e *Environment) { e.Limits = []Limit{{NumInstances, 40}} }), ""},
		{"environment with five limits", environment(func(e *Environment) {
			e.Limits = []Limit{{"ml.a.b", 1}, {"ml.c.d", 1}, {"ml.e.f", 1}, {"ml.p6-b200.48xlarge", 1}, {"ml.trn1n.32xlarge", MaxLimit}}
		}), ""},
		{
			"environment name", environment(func(e *Environment) { e.Name = "my env" }),
			`Service environment name should match a valid pattern. serviceEnvironmentName is "my env"; use 1 to 128 letters, digits, hyphens and underscores.`,
		},
		{
			"name too long", environment(func(e *Environment) { e.Name = strings.Repeat("x", 129) }),
			`Service environment name should match a valid pattern. serviceEnvironmentName is "` + strings.Repeat("x", 129) + `"; use 1 to 128 letters, digits, hyphens and underscores.`,
		},
		{"environment state", environment(func(e *Environment) { e.State = "ON" }), `state is "ON"; use ENABLED or DISABLED.`},
		{"no limits", environment(func(e *Environment) { e.Limits = nil }), "Capacitylimits are required. Give 1 to 5 capacityLimits."},
		{
			"six limits", environment(func(e *Environment) { e.Limits = make([]Limit, 6) }),
			"Number of capacity limits exceeds 5. capacityLimits has 6.",
		},
		{
			"mixed limits", environment(func(e *Environment) { e.Limits = []Limit{{g5, 1}, {NumInstances, 1}} }),
			"Capacity units must specify either number of instances OR instance type. capacityLimits has ml.g5.xlarge beside NUM_INSTANCES; use NUM_INSTANCES alone, or instance types alone.",
		},
		{
			"counting twice", environment(func(e *Environment) { e.Limits = []Limit{{NumInstances, 1}, {NumInstances, 1}} }),
			"Capacity units must specify either number of instances OR instance type. capacityLimits has another NUM_INSTANCES beside NUM_INSTANCES; use NUM_INSTANCES alone, or instance types alone.",
		},
		{"counting none", environment(func(e *Environment) { e.Limits = []Limit{{NumInstances, 0}} }), "Max capacity must be more than 0. maxCapacity of NUM_INSTANCES is 0."},
		{"negative limit", environment(func(e *Environment) { e.Limits = []Limit{{g5, -1}} }), "Max capacity must be more than 0. maxCapacity of ml.g5.xlarge is -1."},
		{"limit too high", environment(func(e *Environment) { e.Limits = []Limit{{g5, MaxLimit + 1}} }), "maxCapacity of ml.g5.xlarge is 2147483648; use at most 2147483647."},
		{
			"unknown unit", environment(func(e *Environment) { e.Limits = []Limit{{"ml.G5.xlarge", 1}} }),
			"ml.G5.xlarge is unknown capacity unit. Use an instance type such as ml.g5.xlarge as capacityUnit.",
		},
		{
			"unit twice", environment(func(e *Environment) { e.Limits = []Limit{{g5, 1}, {g5, 2}} }),
			"capacityLimits has ml.g5.xlarge twice; give each capacityUnit once.",
		},
		{"tag value", environment(func(e *Environment) { e.Tags = map[string]string{"k": strings.Repeat("ä", 257)} }), `the value of tag "k" has 257 characters; use at most 256.`},

		{"policy", policy(func(*Policy) {}), ""},
		{
			"policy name", policy(func(p *Policy) { p.Name = "" }),
			`Scheduling policy name should match a valid pattern. name is ""; use 1 to 128 letters, digits, hyphens and underscores.`,
		},
		{
			"idle assignment", policy(func(p *Policy) { p.IdleAssignment = "" }),
			`idleAssignment is ""; use FIFO or FAIR_SHARE.`,
		},

		{"policy with every rule", policy(func(p *Policy) {
			p.IdleAssignment = IdleFairShare
			p.Rules = Rules{
				Queueing: Backfill, PriorityScope: InCohort, Victims: NewestFirst, BorrowerPreemption: true, Rebalance: true,
				ShareUnallocated: true, AssumedCheckpointInterval: time.Hour, MinRuntime: time.Minute, GracePeriod: time.Second,
			}
		}), ""},
		{
			"queueing", policy(func(p *Policy) { p.Rules.Queueing = "STRICT" }),
			`queueing is "STRICT"; use BEST_EFFORT or BACKFILL, or leave it out for strict order.`,
		},
		{
			"priority scope", policy(func(p *Policy) { p.Rules.PriorityScope = "WORLD" }),
			`priorityScope is "WORLD"; use COHORT, or leave it out for priorities that compare inside a share.`,
		},
		{
			"victims", policy(func(p *Policy) { p.Rules.Victims = "OLDEST" }),
			`victims is "OLDEST"; use MOST_OVER_QUOTA or NEWEST_FIRST, or leave it out for least lost work.`,
		},
		{
			"a rule's duration", policy(func(p *Policy) { p.Rules.MinRuntime = -time.Second }),
			"minRuntime is -1s; use 0s to 8760h0m0s.",
		},

		{"fair-share policy", fair(func(*FairShare) {}), ""},
		{"fair-share policy with everything", fair(func(f *FairShare) {
			f.Decay, f.Reservation = MaxDecay, MaxReservation
			f.Distribution = []WeightedShare{{"teamA", MinWeightFactor}, {"teamB*", MaxWeightFactor}, {strings.Repeat("9", 255) + "*", 1}}
		}), ""},
		{"a weight factor for all", fair(weighted("*")), ""},
		{"alike, but for case", fair(weighted("a", "A", "ab", "Ab*")), ""},
		{
			"policy of both kinds", policy(func(p *Policy) { p.FairShare = &FairShare{} }),
			"A scheduling policy can have either fairsharePolicy or quotaSharePolicy. Policy p has both.",
		},
		{
			"fair-share policy with a rule of the other kind", policy(func(p *Policy) {
				p.IdleAssignment, p.FairShare, p.Rules.Rebalance = "", &FairShare{}, true
			}),
			"A scheduling policy can have either fairsharePolicy or quotaSharePolicy. Policy p has both.",
		},
		{"decay", fair(func(f *FairShare) { f.Decay = MaxDecay + time.Second }), "shareDecaySeconds is 604801; use 0 to 604800, with 0 for 600."},
		{"negative decay", fair(func(f *FairShare) { f.Decay = -time.Second }), "shareDecaySeconds is -1; use 0 to 604800, with 0 for 600."},
		{"reservation", fair(func(f *FairShare) { f.Reservation = 100 }), "computeReservation is 100; use 0 to 99."},
		{"negative reservation", fair(func(f *FairShare) { f.Reservation = -1 }), "computeReservation is -1; use 0 to 99."},
		{
			"501 identifiers", fair(func(f *FairShare) { f.Distribution = make([]WeightedShare, 501) }),
			"ShareDistribution size cannot be greater than 500. shareDistribution has 501 entries.",
		},
		{
			"identifier", fair(weighted("team-a")),
			`ShareIdentifier name should match a valid pattern. shareIdentifier is "team-a"; use 1 to 255 letters and digits, and an asterisk at the end for all that begin with them.`,
		},
		{
			"no identifier", fair(weighted("")),
			`ShareIdentifier name should match a valid pattern. shareIdentifier is ""; use 1 to 255 letters and digits, and an asterisk at the end for all that begin with them.`,
		},
		{
			"asterisk within", fair(weighted("a*b")),
			`ShareIdentifier name should match a valid pattern. shareIdentifier is "a*b"; use 1 to 255 letters and digits, and an asterisk at the end for all that begin with them.`,
		},
		{
			"identifier too long", fair(weighted(strings.Repeat("a", 256))),
			`ShareIdentifier name should match a valid pattern. shareIdentifier is "` + strings.Repeat("a", 256) + `"; use 1 to 255 letters and digits, and an asterisk at the end for all that begin with them.`,
		},
		{
			"identifier twice", fair(weighted("a", "b", "a")),
			"Cannot have two or more identical shareIdentifiers. shareDistribution has a twice.",
		},
		{
			"identifier under a prefix", fair(weighted("UserA1", "UserB", "UserA*")),
			"Share identifier UserA1 matches another share identifier UserA*. Give each identifier one weightFactor.",
		},
		{
			"prefix of a prefix", fair(weighted("UserA*", "User*")),
			"Share identifier UserA* matches another share identifier User*. Give each identifier one weightFactor.",
		},
		{
			"prefix that is an identifier", fair(weighted("UserA", "UserA*")),
			"Share identifier UserA matches another share identifier UserA*. Give each identifier one weightFactor.",
		},
		{"no weight", fair(factor(0)), "Weight factor should be between 0.0001 and 999.9999. That of shareIdentifier a is not."},
		{"too much weight", fair(factor(MaxWeightFactor + 1)), "Weight factor should be between 0.0001 and 999.9999. That of shareIdentifier a is not."},

		{"queue", queue(func(q *Queue) { q.TimeLimitActions = []TimeLimitAction{action(misconfigured, MinTimeLimit)} }), ""},
		{
			"queue name", queue(func(q *Queue) { q.Name = "a/b" }),
			`Job Queue name should match a valid pattern. jobQueueName is "a/b"; use 1 to 128 letters, digits, hyphens and underscores.`,
		},
		{"queue priority", queue(func(q *Queue) { q.Priority = -1 }), "priority is -1; use 0 to 1000."},
		{"queue state", queue(func(q *Queue) { q.State = "" }), `state is ""; use ENABLED or DISABLED.`},
		{
			"action twice", queue(func(q *Queue) {
				q.TimeLimitActions = []TimeLimitAction{action(misconfigured, time.Hour), action(misconfigured, time.Hour)}
			}),
			"Duplicate job state limit actions are not allowed. Reason MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED has more than one.",
		},
		{
			"action too soon", queue(func(q *Queue) { q.TimeLimitActions = []TimeLimitAction{action(misconfigured, time.Minute)} }),
			"maxTimeSeconds of the action for MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED is 60; use 600 to 86400.",
		},
		{
			"action for an unknown reason", queue(func(q *Queue) { q.TimeLimitActions = []TimeLimitAction{action("BORED", time.Hour)} }),
			`reason "BORED" of a jobStateTimeLimitAction is unknown; use one of CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY, MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE, MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED.`,
		},

		{"share", share(func(*Share) {}), ""},
		{"share that borrows nothing", share(func(s *Share) { s.BorrowLimit = 0 }), ""},
		{"share that does not borrow", share(func(s *Share) { s.Sharing = Reserve }), ""},
		{
			"share name", share(func(s *Share) { s.Name = "é" }),
			`Quota share name should match a valid pattern. quotaShareName is "é"; use 1 to 128 letters, digits, hyphens and underscores.`,
		},
		{
			"share that counts", share(func(s *Share) { s.Limits = []Limit{{NumInstances, 1}} }),
			"NUM_INSTANCES is unknown capacity unit. Use an instance type such as ml.g5.xlarge as capacityUnit.",
		},
		{
			"borrow limit", share(func(s *Share) { s.BorrowLimit = -2 }),
			"borrowLimit is -2; use a percentage of the share's own capacity limits from 0 to 2147483647, or -1 for no limit.",
		},
		{
			"borrow limit of a reserve", share(func(s *Share) { s.Sharing, s.BorrowLimit = Reserve, 5 }),
			"borrowLimit is 5, but a share with strategy RESERVE does not borrow; leave borrowLimit out or use strategy LEND_AND_BORROW.",
		},
		{"share with everything", share(func(s *Share) {
			s.BorrowLimits, s.LendLimits, s.Weight = []Limit{{g5, 0}}, []Limit{{g5 + "/vcpu", 4}}, MaxWeight
		}), ""},
		{
			"borrow limits of a lender", share(func(s *Share) { s.Sharing, s.BorrowLimits = Lend, one }),
			"borrowLimits has 1 entries, but a share with strategy LEND does not borrow; leave borrowLimits out or use strategy LEND_AND_BORROW.",
		},
		{
			"lend limits of a reserve", share(func(s *Share) { s.Sharing, s.LendLimits = Reserve, one }),
			"lendLimits has 1 entries, but a share with strategy RESERVE does not lend; leave lendLimits out or use strategy LEND or LEND_AND_BORROW.",
		},
		{
			"lend limit of an unknown unit", share(func(s *Share) { s.LendLimits = []Limit{{"gpu", 1}} }),
			`lendLimits names "gpu"; use an instance type such as ml.g5.xlarge, or a resource of one such as ml.g5.xlarge/vcpu.`,
		},
		{
			"lend limit twice", share(func(s *Share) { s.LendLimits = []Limit{{g5, 1}, {g5, 2}} }),
			"lendLimits has ml.g5.xlarge twice; give each unit once.",
		},
		{"negative lend limit", share(func(s *Share) { s.LendLimits = []Limit{{g5, -1}} }), "lendLimits of ml.g5.xlarge is -1; use 0 to 2147483647."},
		{"weight", share(func(s *Share) { s.Weight = MaxWeight + 1 }), "weight is 1001; use 0 to 1000."},
		{"strategy", share(func(s *Share) { s.Sharing = "GIVE" }), `resource sharing strategy is "GIVE"; use RESERVE, LEND or LEND_AND_BORROW.`},
	}
	for _, tt := range tests {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestValidInstanceType(t *testing.T) {
	for unit, want := range map[string]bool{
		"ml.g5.xlarge": true, "ml.p6-b200.48xlarge": true, "ml.u-6tb1.112xlarge": true,
		"": false, "ml": false, "ml.": false, "ml..": false, "ml.g5.": false, "g5.xlarge": false, "ml.g5.xlarge.x": false, "ml.g 5.xlarge": false, "ML.g5.xlarge": false,
	} {
		if got := ValidInstanceType(unit); got != want {
			t.Errorf("ValidInstanceType(%q) = %v, want %v", unit, got, want)
		}
	}
}

func TestValidUnit(t *testing.T) {
	for unit, want := range map[string]bool{
		"ml.g5.xlarge": true, "ml.g5.xlarge/accelerators": true, "ml.g5.xlarge/vcpu": true, "ml.g5.xlarge/memory": true,
		"ml.g5.xlarge/": false, "ml.g5.xlarge/disk": false, "g5/vcpu": false, "ml.g5.xlarge/vcpu/vcpu": false, NumInstances: false,
	} {
		if got := ValidUnit(unit); got != want {
			t.Errorf("ValidUnit(%q) = %v, want %v", unit, got, want)
		}
	}
}

func TestShareFromBeforeThereWereWeights(t *testing.T) {
	for text, want := range map[string]int64{`{"name":"s"}`: DefaultWeight, `{"name":"s","weight":0}`: 0, `{"name":"s","weight":7}`: 7} {
		var s Share
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Name != "s" || s.Weight != want {
			t.Errorf("%s is read as %+v, %v; want weight %d", text, s, err, want)
		}
	}
	var s Share
	if err := json.Unmarshal([]byte(`{"name":1}`), &s); err == nil {
		t.Error("a name that is no text is read")
	}
}
