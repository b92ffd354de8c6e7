package mirror

// kind is a way in which the engine differs from the other scheduler, as
// docs/compared.md lists it.
type kind string

// The kinds.
const (
	reclaimsAnyPriority kind = "what was lent is taken back whatever its priority"
	noThreshold         kind = "no priority is too high to be outbid"
	equalsRun           kind = "equal priorities never preempt each other inside a share"
	judgedAfterwards    kind = "fairness is judged after the preemption only"
)

// rules are the rules of the scheduling semantics that make the kinds.
func rules() map[kind]string {
	return map[kind]string{
		reclaimsAnyPriority: "Section 3, step 1: a head that fits within its share's headroom reclaims where the pool has too " +
			"little. Section 5 (a): all it takes to be a victim is that its share uses more than its nominal in a short unit.",
		noThreshold: "Section 3, step 4: a head that would borrow may preempt any borrower of strictly lower priority; " +
			"the policy has no priority above which a borrower is safe.",
		equalsRun: "Section 2, I7: a job never preempts one of equal or higher priority inside its own share. " +
			"Section 5 (b): in the same share only strictly lower priorities are victims.",
		judgedAfterwards: "Section 3, step 5: borrowed work may be preempted only if afterwards the preemptor's value is " +
			"not above the victim share's. What the victim's share borrowed before does not count.",
	}
}

// difference is what the engine decides in a case where the other scheduler
// decides otherwise.
type difference struct {
	kind kind
	ours outcome
}

// differences are the cases, by name, in which the two differ.
func differences() map[string]difference {
	return map[string]difference{
		// They reclaim from lower priorities only, if the queue says so.
		"do not reclaim borrowed quota from same priority for withinCohort=ReclaimFromLowerPriority": {
			reclaimsAnyPriority, outcome{"c2-1: reclaim"},
		},
		// They let a queue name the highest priority that it may outbid.
		"use BorrowWithinCohort; don't allow preempting a lower-priority workload with priority above MaxPriorityThreshold, " +
			"if borrowing is required even after the preemption": {
			noThreshold, outcome{"b_standard: borrower"},
		},
		// They let a queue prefer older workloads to newer ones of equal priority.
		"preempt newer workloads with the same priority": {equalsRun, outcome{}},

		// They also accept a preemption, some only as their second strategy, after
		// which the preemptor borrows less than the victim's queue did before.
		"preempt lower priority first, even if big":                                       {judgedAfterwards, outcome{"b_high: rebalance"}},
		"preempt from different cluster queues if the end result has a smaller max share": {judgedAfterwards, outcome{}},
		"preempt from target and others even if over nominal":                             {judgedAfterwards, outcome{}},

		// To them a queue of weight 0 is worth least even when nothing is left of
		// what it borrowed; then its value is 0, and nobody's is lower.
		"can preempt anything borrowing from CQ with 0 weight": {judgedAfterwards, outcome{}},
	}
}
