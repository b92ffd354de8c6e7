package quota

import (
	"testing"
	"time"
)

func TestSentences(t *testing.T) {
	names := func(id JobID) string { return map[JobID]string{1: "first", 2: "second"}[id] }
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	const unit = "ml.g5.xlarge"
	tests := []struct {
		name     string
		sentence string
		want     string
	}{
		{"misconfiguration", Reason{Code: Misconfiguration, Text: TextShareLimit}.Sentence(names), TextShareLimit},
		{"behind", Reason{Code: Behind, Ahead: 2, Place: 3}.Sentence(names), "It has place 3 in its share; job second goes first."},
		{
			"behind others, with an earliest start", Reason{Code: Behind, Ahead: 2, Place: 3, Earliest: at, After: 2}.Sentence(names),
			"It has place 3 in its share; job second goes first. It could start by 2026-03-04T05:06:07Z, if running jobs and the 2 jobs before it take the time they declare and nobody else starts first.",
		},
		{
			"behind one other, with an earliest start", Reason{Code: Behind, Ahead: 2, Place: 2, Earliest: at, After: 1}.Sentence(names),
			"It has place 2 in its share; job second goes first. It could start by 2026-03-04T05:06:07Z, if running jobs and the job before it take the time they declare and nobody else starts first.",
		},
		{"backoff", Reason{Code: Backoff, Until: at}.Sentence(names), "It may start again at 2026-03-04T05:06:07Z, after a backoff."},
		{"disabled", Reason{Code: DisabledPool}.Sentence(names), "The environment is disabled; nothing starts on it until it is enabled."},
		{
			"quota",
			Reason{Code: InsufficientQuota, Unit: unit, Wants: 2, Lacks: 1, Holders: []Holder{
				{Role: OwnShare, Share: "a", Amount: 3}, {Role: Borrower, Share: "b", Amount: 1}, {Role: User, Share: "b", Amount: 2},
			}}.Sentence(names),
			"It needs 2 ml.g5.xlarge, 1 more than is left of its share's quota and of what may be borrowed: its own share uses 3, b borrows 1, b uses 2 of its own.",
		},
		{
			"reserved",
			Reason{Code: Reserved, Unit: unit, Wants: 1, Lacks: 1, Holders: []Holder{{Role: Keeper, Share: "c", Amount: 1}, {Role: Unshared, Amount: 2}}}.Sentence(names),
			"It needs 1 ml.g5.xlarge; enough is idle, but 1 of them are reserved for other shares: c keeps 1 unused, 2 belong to no share.",
		},
		{
			"releasing",
			Reason{Code: Releasing, Unit: unit, Wants: 4, Lacks: 2, Holders: []Holder{
				{Role: OnItsWay, Share: "b", ForShare: "a", Amount: 2}, {Role: OnItsWay, Share: "c", Amount: 1}, {Role: Nominated, Share: "d", Amount: 1},
			}}.Sentence(names),
			"It needs 4 ml.g5.xlarge; 2 of them are on their way from jobs that are stopping: b gives back 2 for a, c gives back 1, d gets the next 1.",
		},
		{
			"borrow limit, with an earliest start",
			Reason{Code: BorrowLimit, Unit: unit, Wants: 1, Lacks: 1, Earliest: at}.Sentence(names),
			"It needs 1 ml.g5.xlarge, 1 more than its share may use with its borrow limit. It could start by 2026-03-04T05:06:07Z, if running jobs take the time they declare and nobody else starts first.",
		},
		{"capacity", Reason{Code: InsufficientCapacity, Unit: unit, Wants: 5, Lacks: 4}.Sentence(names), "It needs 5 ml.g5.xlarge, 4 more than the environment has free."},
		{"not looked at yet", Reason{Code: InsufficientCapacity}.Sentence(names), "It is first in its share and starts with the next pass."},
		{"grant", Decision{Kind: Grant, Ground: Entitled}.Sentence(names), "Granted within the quota of its share."},
		{
			"borrowing grant",
			Decision{Kind: Grant, Ground: Borrow, Borrowed: Amounts{"z": 2, "a": 1}}.Sentence(names),
			"Granted, borrowing 1 a and 2 z that other shares leave idle.",
		},
		{
			"reclaim",
			Decision{Kind: Preempt, Ground: Reclaim, For: 1, ForShare: "a", LostWork: 90_000}.Sentence(names),
			"Preempted because share a takes its own capacity back for job first; it loses 90 unit-seconds of work.",
		},
		{
			"in-share",
			Decision{Kind: Preempt, Ground: InShare, For: 2, LostWork: 1_000, Candidates: 3, HasAlternative: true, Alternative: 60_000}.Sentence(names),
			"Preempted for job second, which has a higher priority in the same share; it loses 1 unit-seconds of work, and of 3 candidates the next in line would have lost 60 unit-seconds.",
		},
		{"park", Decision{Kind: Park, Reason: Reason{Code: Misconfiguration, Text: TextBorrowable}}.Sentence(names), TextBorrowable},
		{"unpark", Decision{Kind: Park}.Sentence(names), "Waits like any other job again."},
	}
	for _, tt := range tests {
		if tt.sentence != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, tt.sentence, tt.want)
		}
	}
}
