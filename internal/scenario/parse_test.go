package scenario

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/quota"
)

// sound is a scenario file in which tests spoil one thing.
const sound = `name: sound
cohort:
  capacity: {gpu: 2}
  shares:
  - {name: a, quota: {gpu: 1}}
  - {name: b, quota: {gpu: 1}}
events:
- {at: 0s, submit: {job: x, share: a, demand: {gpu: 1}}}
- {at: 1m, succeed: {job: x}}
expect:
- {at: 1m, succeeded: [x]}
`

func TestMalformedFilesAreRefused(t *testing.T) {
	tests := []struct {
		name      string
		old, with string // old is replaced in the sound file; empty: the file is with
		want      string
	}{
		{"nothing", "", "", "f.yaml: the file is empty"},
		{"only a comment", "", "# nothing\n", "f.yaml: the file is empty"},
		{"not YAML", "", "name: [\n", "f.yaml:2: the file is not YAML: did not find expected node content"},
		{"not UTF-8", "", "name: \xff\n", "f.yaml: the file is not valid UTF-8; encode it as UTF-8"},
		{"two documents", "expect:\n", "---\n", "f.yaml:10: a second document begins here; a file holds one"},
		{"a list", "", "- a\n", "f.yaml:1: the scenario is a list; it must be a mapping, such as {key: value}"},
		{"no cohort", "", "name: x\n", "f.yaml:1: the scenario lacks cohort"},

		{"unknown key", "name: sound", "nam: sound", "f.yaml:1: the scenario has no key nam; its keys are cohort, events, expect, name"},
		{"unknown key of the cohort", "capacity:", "capacities:", "f.yaml:3: the cohort has no key capacities; its keys are assumedCheckpointInterval, borrowerPreemption, capacity, gang, gracePeriod, idleAssignment, minRuntime, name, priorityScope, queueing, rebalance, shareUnallocated, shares, victims"},
		{"unknown key of a share", "name: b, quota", "name: b, quotas", "f.yaml:6: share b has no key quotas; its keys are borrowLimit, borrowLimits, disabled, inSharePreemption, lendLimits, name, quota, sharing, weight"},
		{"unknown event", "succeed:", "succeeds:", "f.yaml:9: an event has no key succeeds; its keys are at, fail, loseWorker, neverReady, ready, restoreWorker, setCapacity, setPriority, setShare, submit, succeed, terminate"},
		{"unknown key of a submission", "share: a, demand", "share: a, gpus", "f.yaml:8: submit has no key gpus; its keys are attempts, checkpointEvery, demand, job, maxRuntime, preemptionRetries, priority, runtime, share, workers"},
		{"unknown expectation", "succeeded:", "success:", "f.yaml:11: an expectation has no key success; its keys are at, borrowed, failed, preempted, reason, running, stopping, succeeded, usage, waiting"},
		{"key given twice", "name: a, quota", "name: a, name: c, quota", "f.yaml:5: share a has name twice, first in line 5; give it once"},
		{"merge key", "{name: a, quota", "{<<: {weight: 2}, name: a, quota", "f.yaml:5: share a has no key <<; its keys are borrowLimit, borrowLimits, disabled, inSharePreemption, lendLimits, name, quota, sharing, weight"},
		{"key that is a list", "name: a, quota", "[n]: a, quota", "f.yaml:5: a key of a share is a list; it must be a single value"},

		{"no capacity", "  capacity: {gpu: 2}\n", "", "f.yaml:3: the cohort lacks capacity"},
		{"capacity is not a mapping", "{gpu: 2}", "2", "f.yaml:3: capacity is 2; it must be a mapping, such as {key: value}"},
		{"negative capacity", "{gpu: 2}", "{gpu: -2}", "f.yaml:3: gpu in capacity is -2; it must be 0 to 281474976710656"},
		{"fractional quota", "name: a, quota: {gpu: 1}", "name: a, quota: {gpu: 1.5}", "f.yaml:5: gpu in quota of share a is 1.5; it must be a whole number"},
		{"octal quota", "name: a, quota: {gpu: 1}", "name: a, quota: {gpu: 010}", "f.yaml:5: gpu in quota of share a is 010; it must be a whole number"},
		{"quota in words", "name: a, quota: {gpu: 1}", "name: a, quota: {gpu: '1'}", `f.yaml:5: gpu in quota of share a is "1"; it must be a whole number`},
		{"quota of nothing", "name: a, quota: {gpu: 1}", "name: a, quota: {gpu: }", "f.yaml:5: gpu in quota of share a is empty; it must be a single value"},
		{"unit without name", "name: a, quota: {gpu: 1}", "name: a, quota: {'': 1}", "f.yaml:5: a unit in quota of share a is empty"},
		{"amount beyond all bounds", "{gpu: 2}", "{gpu: 99999999999999999999}", "f.yaml:3: gpu in capacity is 99999999999999999999; it must be a whole number"},
		{"shares are not a list", "shares:\n  - {name: a, quota: {gpu: 1}}\n  -", "shares:", "f.yaml:4: shares is a mapping; it must be a list, such as [a, b]"},
		{"share without name", "{name: b, quota", "{quota", "f.yaml:6: a share lacks name"},
		{"share there twice", "name: b,", "name: a,", "f.yaml:6: share a is there twice, first in line 5; names must differ"},
		{"unknown sharing", "name: b,", "name: b, sharing: Borrow,", "f.yaml:6: sharing of share b is Borrow; it must be one of Lend, LendAndBorrow, Reserve"},
		{"borrow limit", "name: b,", "name: b, borrowLimit: -2,", "f.yaml:6: borrowLimit of share b is -2; it must be -1 to 2147483647"},
		{"weight", "name: b,", "name: b, weight: -1,", "f.yaml:6: weight of share b is -1; it must be 0 to 1000"},
		{"unit of a limit", "name: b,", "name: b, lendLimits: {cpu: 1},", "f.yaml:6: unit cpu is in neither the capacity nor a quota; known are gpu"},
		{"not a boolean", "name: b,", "name: b, disabled: 1,", "f.yaml:6: disabled of share b is 1; it must be true or false"},
		{"unknown queueing", "capacity:", "queueing: strict\n  capacity:", "f.yaml:3: queueing is strict; it must be one of Backfill, BestEffort, Strict"},
		{"a duration without unit", "capacity:", "gracePeriod: 120\n  capacity:", "f.yaml:3: gracePeriod is 120; it must be a duration, such as 90s or 1h30m"},
		{"a negative duration", "capacity:", "minRuntime: -1s\n  capacity:", "f.yaml:3: minRuntime is -1s; it must not be negative"},
		{"a duration beyond all bounds", "capacity:", "minRuntime: 1000000h\n  capacity:", "f.yaml:3: minRuntime is 1000000h; it must be 876000h or less"},
		{"no checkpoint interval", "capacity:", "assumedCheckpointInterval: 0s\n  capacity:", "f.yaml:3: assumedCheckpointInterval is 0; it must be more, such as 1h"},
		{"gang", "capacity:", "gang: {timeouts: 1m}\n  capacity:", "f.yaml:3: gang has no key timeouts; its keys are blockAdmission, recoveryTimeout, requeue, timeout"},
		{"gang backoff", "capacity:", "gang: {requeue: {backoffBase: 2h}}\n  capacity:", "f.yaml:3: backoffMax of requeue is 1h, less than its backoffBase of 2h"},

		{"events that are not a list", "", "cohort: {capacity: {}, shares: []}\nevents: {at: 0s}\n", "f.yaml:2: events is a mapping; it must be a list, such as [a, b]"},
		{"event without time", "{at: 1m, succeed", "{succeed", "f.yaml:9: an event lacks at"},
		{"event without anything", "{at: 1m, succeed: {job: x}}", "{at: 1m}", "f.yaml:9: an event has 0 things that happen; it must have one beside its time"},
		{"two events in one", "{at: 1m, succeed: {job: x}}", "{at: 1m, succeed: {job: x}, fail: {job: x}}", "f.yaml:9: an event has 2 things that happen; it must have one beside its time"},
		{"events out of order", "at: 0s, submit", "at: 2m, submit", "f.yaml:9: at is 1m, before the event above it at 2m; events are in order of time"},
		{"submission without share", "share: a, demand", "demand", "f.yaml:8: submit lacks share"},
		{"submission of no demand", "demand: {gpu: 1}", "demand: {}", "f.yaml:8: demand is empty; it must name what the job holds when it runs"},
		{"demand of nothing", "demand: {gpu: 1}", "demand: {gpu: 0}", "f.yaml:8: gpu in demand is 0; it must be 1 to 281474976710656"},
		{"unknown unit", "demand: {gpu: 1}", "demand: {cpu: 1}", "f.yaml:8: unit cpu is in neither the capacity nor a quota; known are gpu"},
		{"unknown share", "share: a,", "share: c,", "f.yaml:8: share c is not in the cohort; its shares are a, b"},
		{"job submitted twice", "{at: 1m, succeed: {job: x}}", "{at: 1m, submit: {job: x, share: a, demand: {gpu: 1}}}", "f.yaml:9: job x is submitted twice, first in line 8; names must differ"},
		{"job without name", "job: x, share", "job: '', share", "f.yaml:8: job is empty"},
		{"attempts", "share: a, demand", "share: a, attempts: 11, demand", "f.yaml:8: attempts is 11; it must be 1 to 10"},
		{"workers", "share: a, demand", "share: a, workers: 0, demand", "f.yaml:8: workers is 0; it must be 1 to 2147483647"},
		{"priority", "share: a, demand", "share: a, priority: high, demand", "f.yaml:8: priority is high; it must be a whole number"},
		{"preemption retries", "share: a, demand", "share: a, preemptionRetries: -1, demand", "f.yaml:8: preemptionRetries is -1; it must be 0 to 2147483647"},
		{"maximum runtime", "share: a, demand", "share: a, maxRuntime: 0s, demand", "f.yaml:8: maxRuntime is 0; it must be more, or be left out"},
		{"job of an event", "succeed: {job: x}", "succeed: {job: y}", "f.yaml:9: job y is not submitted by any event above"},
		{"priority of an unknown job", "succeed: {job: x}", "setPriority: {job: y, priority: 1}", "f.yaml:9: job y is not submitted by any event above"},
		{"change of no share", "succeed: {job: x}", "setShare: {quota: {gpu: 1}}", "f.yaml:9: setShare lacks share"},
		{"change of a share's name", "succeed: {job: x}", "setShare: {share: a, name: c}", "f.yaml:9: setShare has no key name; its keys are borrowLimit, borrowLimits, disabled, inSharePreemption, lendLimits, quota, share, sharing, weight"},
		{"change of an unknown share", "succeed: {job: x}", "setShare: {share: c}", "f.yaml:9: share c is not in the cohort; its shares are a, b"},
		{"quota of an unknown unit", "succeed: {job: x}", "setShare: {share: a, quota: {cpu: 1}}", "f.yaml:9: unit cpu is in neither the capacity nor a quota; known are gpu"},
		{"capacity of an unknown unit", "succeed: {job: x}", "setCapacity: {cpu: 1}", "f.yaml:9: unit cpu is in neither the capacity nor a quota; known are gpu"},
		{"gang event", "succeed: {job: x}", "neverReady: {job: x}", "f.yaml:9: neverReady cannot be simulated yet: all workers of a job are ready at once and stay so"},

		{"expectation without time", "{at: 1m, succeeded", "{succeeded", "f.yaml:11: an expectation lacks at"},
		{"expectation of an unknown job", "succeeded: [x]", "running: [x, y]", "f.yaml:11: job y is not submitted by any event above"},
		{"expectation of a job twice", "succeeded: [x]", "running: [x, x]", "f.yaml:11: running has job x twice"},
		{"expectation that is not a list", "succeeded: [x]", "running: x", "f.yaml:11: running is x; it must be a list, such as [a, b]"},
		{"failure of an unknown job", "succeeded: [x]", "failed: {y: because}", "f.yaml:11: job y is not submitted by any event above"},
		{"preemptions of an unknown job", "succeeded: [x]", "preempted: {y: 1}", "f.yaml:11: job y is not submitted by any event above"},
		{"reason of an unknown job", "succeeded: [x]", "reason: {y: BEHIND}", "f.yaml:11: job y is not submitted by any event above"},
		{"usage of an unknown share", "succeeded: [x]", "usage: {c: {gpu: 1}}", "f.yaml:11: share c is not in the cohort; its shares are a, b"},
		{"usage of an unknown unit", "succeeded: [x]", "usage: {a: {cpu: 1}}", "f.yaml:11: unit cpu is in neither the capacity nor a quota; known are gpu"},
		{"negative usage", "succeeded: [x]", "borrowed: {a: {gpu: -1}}", "f.yaml:11: gpu in borrowed of a is -1; it must be 0 to 281474976710656"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := test.with
			if test.old != "" {
				if !strings.Contains(sound, test.old) {
					t.Fatalf("the sound file has no %q", test.old)
				}
				text = strings.Replace(sound, test.old, test.with, 1)
			}
			_, err := Parse("f.yaml", []byte(text))
			if err == nil || err.Error() != test.want {
				t.Fatalf("error: %v\n want: %s\nof:\n%s", err, test.want, text)
			}
			if where := (*FileError)(nil); !errors.As(err, &where) {
				t.Errorf("the error is a %T", err)
			}
		})
	}
	if _, err := Parse("f.yaml", []byte(sound)); err != nil {
		t.Errorf("the sound file: %v", err)
	}
}

func TestPolicyFiles(t *testing.T) {
	bare := defaultCohort()
	bare.Capacity = quota.Amounts{"gpu": 3}
	a := defaultShare()
	a.Name, a.Nominal = "a", quota.Amounts{"gpu": 1}
	bare.Shares = []Share{a}
	named := bare
	named.Name = "training"
	full := Cohort{
		Name:     "all",
		Capacity: quota.Amounts{"gpu": 3, "cpu": 0},
		Policy: quota.Policy{
			IdleAssignment: quota.FairShare, Queueing: quota.Backfill, PriorityScope: quota.InCohort, Victims: quota.NewestFirst,
			BorrowerPreemption: true, Rebalance: true, ShareUnallocated: true,
			MinRuntime: 90 * time.Second, AssumedCheckpointInterval: 30 * time.Minute,
		},
		GracePeriod: 2 * time.Minute,
		Gang: Gang{
			Timeout: 10 * time.Minute, RecoveryTimeout: 10 * time.Minute, BlockAdmission: true,
			Requeue: GangRequeue{Timestamp: AtCreation, BackoffBase: time.Second, BackoffMax: time.Minute, Limit: 3, Jitter: time.Second},
		},
		Shares: []Share{{
			Share: quota.Share{
				Name: "b", Nominal: quota.Amounts{"gpu": 1}, Sharing: quota.Lend, BorrowPercent: 50,
				BorrowLimits: quota.Amounts{"gpu": 2}, LendLimits: quota.Amounts{"gpu": 0}, InSharePreemption: true, Weight: 0,
			},
			Disabled: true,
		}},
	}
	tests := []struct {
		name, text string
		want       Cohort
	}{
		{"a cohort as it is", "capacity: {gpu: 3}\nshares: [{name: a, quota: {gpu: 1}}]", bare},
		{"below its key", "cohort:\n  capacity: {gpu: 3}\n  shares: [{name: a, quota: {gpu: 1}}]", bare},
		{"with a name", "name: training\ncapacity: {gpu: 3}\nshares: [{name: a, quota: {gpu: 1}}]", named},
		{"with its name beside it", "name: training\ncohort: {capacity: {gpu: 3}, shares: [{name: a, quota: {gpu: 1}}]}", named},
		{"by aliases", "capacity: &c {gpu: 3}\nshares:\n- {name: a, quota: {gpu: 1}, lendLimits: {}, borrowLimits: {}}", bare},
		{"everything", `
name: all
capacity: {gpu: 3, cpu: 0}
idleAssignment: FairShare
queueing: Backfill
priorityScope: Cohort
borrowerPreemption: true
rebalance: True
shareUnallocated: true
victims: NewestFirst
assumedCheckpointInterval: 30m
gracePeriod: 2m0s
minRuntime: 90s
gang: {timeout: 10m, blockAdmission: true, requeue: {timestamp: Creation, backoffBase: 1s, backoffMax: 60s, limit: 3, jitter: 1s}}
shares:
- name: b
  quota: {gpu: 1}
  sharing: Lend
  borrowLimit: 50
  borrowLimits: {gpu: 2}
  lendLimits: {gpu: 0}
  inSharePreemption: true
  weight: 0
  disabled: true
`, full},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseCohort("p.yaml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			checkEncodes(t, got)
		})
	}
	for text, want := range map[string]string{
		"name: x\ncohort: {name: y, capacity: {}, shares: []}":  "p.yaml:1: the file has the names x and y; give it one",
		"cohort: {capacity: {}, shares: []}\nevents: []":        "p.yaml:2: the file has no key events; its keys are cohort, name",
		"capacity: {gpu: 1}\nshares: [{name: a, quota: {gpu}}]": "p.yaml:2: gpu in quota of share a is empty; it must be a single value",
		"":   "p.yaml: the file is empty",
		"17": "p.yaml:1: the cohort is 17; it must be a mapping, such as {key: value}",
	} {
		if _, err := ParseCohort("p.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("of %q: error %v, want %s", text, err, want)
		}
	}
}

// checkEncodes checks that a cohort is read back as it is written, and written
// again in the same way.
func checkEncodes(t *testing.T, c Cohort) {
	t.Helper()
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseCohort("encoded.yaml", text)
	if err != nil {
		t.Fatalf("%v, of:\n%s", err, text)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("read back (-written +read):\n%s\nof:\n%s", diff, text)
	}
	again, err := back.Encode()
	if err != nil || string(again) != string(text) {
		t.Errorf("written again:\n%s\nfirst:\n%s\n(%v)", again, text, err)
	}
}

func TestCanonicalForm(t *testing.T) {
	c, err := ParseCohort("p.yaml", []byte(`
shares:
- {weight: 1, quota: {ml.g5.xlarge: 1, ml.p5.48xlarge: 2}, name: "yes", borrowLimit: 200}
- {name: 7, sharing: Reserve, quota: {}}
name: pool
gracePeriod: 120s
capacity: {ml.p5.48xlarge: 2, ml.g5.xlarge: 3}
`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: pool
capacity: {ml.g5.xlarge: 3, ml.p5.48xlarge: 2}
idleAssignment: FIFO
queueing: Strict
priorityScope: Share
victims: LeastLostWork
gracePeriod: 2m
shares:
- name: yes
  quota: {ml.g5.xlarge: 1, ml.p5.48xlarge: 2}
  sharing: LendAndBorrow
  borrowLimit: 200
- name: '7'
  quota: {}
  sharing: Reserve
`
	got, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Hour: "10h", 24*time.Hour + time.Minute: "24h1m", 1500 * time.Millisecond: "1.5s",
	} {
		if got := Spell(d); got != want {
			t.Errorf("Spell(%v) = %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(Spell(d)); err != nil || back != d {
			t.Errorf("Spell(%v) is read back as %v (%v)", d, back, err)
		}
	}
}

// FuzzParse has readers refuse what they do not understand, and understand
// what they write.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte("cohort: &c {capacity: {gpu: 1}, shares: [*c]}"))
	f.Add([]byte("cohort: {capacity: {gpu: 1}, shares: [{name: a, lendLimits: {gpu: 0}}], gang: {recoveryTimeout: 0s}}"))
	files, err := os.ReadDir("../../scenarios")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile("../../scenarios/" + file.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func(string, []byte) (Cohort, error){ParseCohort, parsedCohort} {
			c, err := parse("f.yaml", text)
			if where := (*FileError)(nil); err != nil && !errors.As(err, &where) {
				t.Errorf("the error is a %T: %v", err, err)
			}
			if err == nil {
				checkEncodes(t, c)
			}
		}
	})
}

func parsedCohort(file string, text []byte) (Cohort, error) {
	s, err := Parse(file, text)
	if err != nil {
		return Cohort{}, err
	}
	return s.Cohort, nil
}
