package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sentence is the reason in a sentence or two for people; names gives a job's
// name.
func (r Reason) Sentence(names func(JobID) string) string {
	switch r.Code {
	case Misconfiguration:
		return r.Text
	case Behind:
		return fmt.Sprintf("It has place %d in its share; job %s goes first.", r.Place, names(r.Ahead)) + r.start()
	case Backoff:
		return fmt.Sprintf("It may start again at %s, after a backoff.", instant(r.Until))
	case DisabledPool:
		return "The environment is disabled; nothing starts on it until it is enabled."
	}
	return r.shortage() + r.held() + r.start()
}

// shortage says what is missing, and why that is not to be had.
func (r Reason) shortage() string {
	if r.Unit == "" {
		return "It is first in its share and starts with the next pass"
	}
	wants := fmt.Sprintf("It needs %d %s", r.Wants, r.Unit)
	switch r.Code {
	case Releasing:
		return fmt.Sprintf("%s; %d of them are on their way from jobs that are stopping", wants, r.Lacks)
	case Reserved:
		return fmt.Sprintf("%s; enough is idle, but %d of them are reserved for other shares", wants, r.Lacks)
	case BorrowLimit:
		return fmt.Sprintf("%s, %d more than its share may use with its borrow limit", wants, r.Lacks)
	case InsufficientQuota:
		return fmt.Sprintf("%s, %d more than is left of its share's quota and of what may be borrowed", wants, r.Lacks)
	default:
		return fmt.Sprintf("%s, %d more than the environment has free", wants, r.Lacks)
	}
}

func (r Reason) held() string {
	if len(r.Holders) == 0 {
		return "."
	}
	holders := make([]string, len(r.Holders))
	for i, h := range r.Holders {
		holders[i] = h.phrase()
	}
	return ": " + strings.Join(holders, ", ") + "."
}

func (h Holder) phrase() string {
	switch h.Role {
	case OwnShare:
		return fmt.Sprintf("its own share uses %d", h.Amount)
	case Borrower:
		return fmt.Sprintf("%s borrows %d", h.Share, h.Amount)
	case Keeper:
		return fmt.Sprintf("%s keeps %d unused", h.Share, h.Amount)
	case Nominated:
		return fmt.Sprintf("%s gets the next %d", h.Share, h.Amount)
	case Unshared:
		return fmt.Sprintf("%d belong to no share", h.Amount)
	case OnItsWay:
		if h.ForShare != "" {
			return fmt.Sprintf("%s gives back %d for %s", h.Share, h.Amount, h.ForShare)
		}
		return fmt.Sprintf("%s gives back %d", h.Share, h.Amount)
	default:
		return fmt.Sprintf("%s uses %d of its own", h.Share, h.Amount)
	}
}

func (r Reason) start() string {
	if r.Earliest.IsZero() {
		return ""
	}
	return " " + r.Bound(instant(r.Earliest))
}

// Bound says, where Earliest is set, what it assumes; at is how to write it.
func (r Reason) Bound(at string) string {
	jobs := "running jobs"
	switch {
	case r.After == 1:
		jobs += " and the job before it"
	case r.After > 1:
		jobs += fmt.Sprintf(" and the %d jobs before it", r.After)
	}
	return fmt.Sprintf("It could start by %s, if %s take the time they declare and nobody else starts first.", at, jobs)
}

// Sentence is the decision in one sentence for people; names gives a job's
// name.
func (d Decision) Sentence(names func(JobID) string) string {
	switch d.Kind {
	case Grant:
		if len(d.Borrowed) > 0 {
			return fmt.Sprintf("Granted, borrowing %s that other shares leave idle.", d.Borrowed)
		}
		return "Granted within the quota of its share."
	case Preempt:
		return d.preemption(names(d.For))
	default:
		if d.Reason.Code == "" {
			return "Waits like any other job again."
		}
		return d.Reason.Text
	}
}

func (d Decision) preemption(forJob string) string {
	switch d.Ground {
	case InShare:
		return fmt.Sprintf("Preempted for job %s, which has a higher priority in the same share%s.", forJob, d.cost())
	case FromBorrower:
		return fmt.Sprintf("Preempted while it borrowed, for job %s of share %s, which has a higher priority%s.", forJob, d.ForShare, d.cost())
	case Rebalance:
		return fmt.Sprintf("Preempted while it borrowed, for job %s of share %s, which borrows less for its weight%s.", forJob, d.ForShare, d.cost())
	default:
		return fmt.Sprintf("Preempted because share %s takes its own capacity back for job %s%s.", d.ForShare, forJob, d.cost())
	}
}

// cost says what a preemption loses, beside what was passed over.
func (d Decision) cost() string {
	text := fmt.Sprintf("; it loses %s of work", d.LostWork)
	if d.HasAlternative {
		text += fmt.Sprintf(", and of %d candidates the next in line would have lost %s", d.Candidates, d.Alternative)
	}
	return text
}

// String returns the lost work in amount-seconds, as 90 unit-seconds.
func (w LostWork) String() string {
	return strconv.FormatFloat(w.UnitSeconds(), 'f', 0, 64) + " unit-seconds"
}

// String returns the amounts in order of their units, as 2 ml.g5.xlarge and 1
// ml.p5.48xlarge.
func (a Amounts) String() string {
	parts := make([]string, 0, len(a))
	for _, u := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, fmt.Sprintf("%d %s", a[u], u))
	}
	return strings.Join(parts, " and ")
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
