package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// inWords says what a policy does, a sentence for each thing it decides.
func inWords(c *scenario.Cohort) []string {
	p := c.Policy
	words := []string{
		fmt.Sprintf("%s in %s.", amountsInWords(c.Capacity), counted(len(c.Shares), "share")),
		queueingInWords(p.Queueing),
		idleInWords(p.IdleAssignment),
		victimsInWords(p),
	}
	if p.PriorityScope == quota.InCohort {
		words = append(words, "Priorities compare across shares.")
	}
	if p.BorrowerPreemption {
		words = append(words, "A job that would borrow may preempt jobs of lower priority that borrow in other shares.")
	}
	if p.Rebalance && p.IdleAssignment == quota.FairShare {
		words = append(words, "What is borrowed moves to shares that borrow less for their weight.")
	}
	if p.ShareUnallocated {
		words = append(words, "Capacity that no share owns may be borrowed.")
	}
	if p.MinRuntime > 0 {
		words = append(words, fmt.Sprintf("Who started less than %s ago is preempted only to give capacity back to its owner.", inWordsOf(p.MinRuntime)))
	}
	grace := "A preempted job is stopped at once."
	if c.GracePeriod > 0 {
		grace = fmt.Sprintf("A preempted job has %s to stop.", inWordsOf(c.GracePeriod))
	}
	return append(words, grace)
}

func queueingInWords(q quota.Queueing) string {
	switch q {
	case quota.BestEffort:
		return "Behind a blocked job, later ones of its share that fit may pass (BestEffort)."
	case quota.Backfill:
		return "Behind a blocked job, later ones of its share may pass if they cannot delay it (Backfill)."
	default:
		return "Nothing passes a blocked job of its share (Strict)."
	}
}

func idleInWords(a quota.IdleAssignment) string {
	if a == quota.FairShare {
		return "Idle capacity is lent to the share that borrows least for its weight (FairShare)."
	}
	return "Idle capacity is lent to the job that has waited longest (FIFO)."
}

func victimsInWords(p quota.Policy) string {
	switch p.Victims {
	case quota.MostOverQuota:
		return "Who gives capacity back: first jobs of the share furthest over its quota (MostOverQuota)."
	case quota.NewestFirst:
		return "Who gives capacity back: first jobs that were started last (NewestFirst)."
	default:
		return fmt.Sprintf("Who gives capacity back: first jobs that lose least work (LeastLostWork); one without a checkpoint counts as losing %s at most.",
			inWordsOf(p.AssumedCheckpointInterval))
	}
}

// shareInWords says how a share shares.
func shareInWords(s scenario.Share) string {
	var words []string
	switch s.Sharing {
	case quota.Reserve:
		words = append(words, "keeps its quota to itself")
	case quota.Lend:
		words = append(words, "lends what it leaves idle")
	case quota.LendAndBorrow:
		words = append(words, "lends what it leaves idle, and borrows "+borrowInWords(s))
	}
	if s.Sharing != quota.Reserve && len(s.LendLimits) > 0 {
		words = append(words, "lends at most "+amountsInWords(s.LendLimits))
	}
	if s.InSharePreemption {
		words = append(words, "lets higher priorities preempt lower ones")
	}
	if s.Weight != 1 {
		words = append(words, fmt.Sprintf("has weight %d", s.Weight))
	}
	return strings.Join(words, "; ")
}

func borrowInWords(s scenario.Share) string {
	limit := "without limit"
	if s.BorrowPercent != quota.Unlimited {
		limit = fmt.Sprintf("up to %d %% of its quota", s.BorrowPercent)
	}
	if len(s.BorrowLimits) > 0 {
		limit += ", at most " + amountsInWords(s.BorrowLimits)
	}
	return limit
}

// amountsInWords names amounts by unit: 616 gpu.
func amountsInWords(a quota.Amounts) string {
	if len(a) == 0 {
		return "nothing"
	}
	var words []string
	for _, u := range slices.Sorted(maps.Keys(a)) {
		words = append(words, fmt.Sprintf("%d %s", a[u], u))
	}
	return strings.Join(words, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// inWordsOf writes a duration without parts that are 0: 1h, not 1h0m0s.
func inWordsOf(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
