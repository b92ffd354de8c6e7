// Package quota decides who may use scarce capacity: it keeps a cohort (a pool
// of capacity and the shares that live on it), and in a pass decides which
// waiting jobs are granted capacity, which running ones give theirs back, and
// why every other job waits. It is the one place where lending is added up.
//
// The package is pure: no clock, no I/O, no goroutine, no randomness, and no
// result depends on the order of a map. The same calls in the same order give
// the same decisions (invariant I10). It imports no other room of the house.
//
// Section numbers in comments are those of the scheduling semantics.
package quota

import "time"

// Unit is what capacity is counted in: a whole instance of a type
// (ml.g5.xlarge) or one resource of an instance type (ml.g5.12xlarge/vcpu).
type Unit string

// Amounts is an amount per unit, in the unit's smallest step. A unit that is
// absent has amount 0. Amounts handed to the package are copied.
type Amounts map[Unit]int64

// Unlimited is the borrow limit that limits nothing.
const Unlimited = -1

// Sharing is a share's strategy (section 1).
type Sharing int8

// The strategies.
const (
	Reserve       Sharing = iota // neither lends nor borrows
	Lend                         // lends, never borrows
	LendAndBorrow                // both
)

// Share is a virtual queue with a quota: a Batch quota share, a HyperPod team,
// or the whole of a job queue without quotas.
type Share struct {
	Name string

	// Rank orders shares of different job queues on one pool: those of a
	// higher rank are visited first. Shares of one queue have one rank.
	Rank int64

	Nominal Amounts
	Sharing Sharing

	// BorrowPercent is how much of its own nominal the share may use in
	// addition to it, per unit, in percent rounded down; or Unlimited. It
	// matters under LendAndBorrow only (section 4).
	BorrowPercent int64
	// BorrowLimits caps, per unit named, what BorrowPercent allows.
	BorrowLimits Amounts
	// LendLimits is the most that the share lends of its nominal, per unit
	// named. A unit that is not named is lent whole, and nothing under Reserve.
	LendLimits Amounts

	// InSharePreemption lets a head of the share preempt strictly lower
	// priorities inside it.
	InSharePreemption bool
	// Weight is the share's part in FairShare idle assignment.
	Weight int64

	// Fair makes the share an identifier of a fair-share job queue; nil: it
	// is none.
	Fair *Fair
}

// IdleAssignment says which borrower gets idle capacity first.
type IdleAssignment int8

// The idle assignments.
const (
	FIFO      IdleAssignment = iota // the oldest waiting head
	FairShare                       // the share that would then borrow least for its weight
)

// Queueing says what may happen behind a blocked head.
type Queueing int8

// The kinds of queueing.
const (
	Strict     Queueing = iota // nothing passes it, in its own share
	BestEffort                 // later jobs that fit
	Backfill                   // later jobs that fit and cannot delay it
)

// PriorityScope says between whom priorities compare.
type PriorityScope int8

// The scopes.
const (
	InEachShare PriorityScope = iota // inside a share only (Batch)
	InCohort                         // across shares too (HyperPod)
)

// Victims is the order in which equals are preempted (section 5).
type Victims int8

// The orders of victims.
const (
	LeastLostWork Victims = iota // who loses least work
	MostOverQuota                // whose share is furthest over its nominal, relative to it
	NewestFirst                  // who was granted last
)

// DefaultCheckpointInterval is what a job that never completed a checkpoint is
// assumed to lose at most (section 5).
const DefaultCheckpointInterval = time.Hour

// Policy is how a cohort is governed. The zero value is Batch's: FIFO idle
// assignment, Strict queueing, victims by LeastLostWork.
type Policy struct {
	IdleAssignment IdleAssignment
	Queueing       Queueing
	PriorityScope  PriorityScope
	Victims        Victims
	// BorrowerPreemption lets a head that would borrow preempt strictly lower
	// priorities that borrow in other shares (section 3, step 4).
	BorrowerPreemption bool
	// Rebalance lets a head that would borrow preempt what others borrow, as
	// long as it borrows no more for its weight than they then do (step 5).
	// It matters under FairShare only.
	Rebalance bool
	// ShareUnallocated makes capacity that no share owns borrowable.
	ShareUnallocated bool
	// MinRuntime protects a job that was granted less than this ago from
	// everything but reclaim.
	MinRuntime time.Duration
	// AssumedCheckpointInterval is 0 for DefaultCheckpointInterval.
	AssumedCheckpointInterval time.Duration
	// Paused stops all grants and preemptions: a disabled environment.
	Paused bool
}

// JobID is a job's sequence number: unique, and in order of acceptance.
type JobID int64

// Job is a gang that wants Demand, wholly or not at all (I4).
type Job struct {
	ID       JobID
	Share    string
	Priority int32
	Created  time.Time
	Demand   Amounts // at least one unit, all amounts positive
	// NotBefore is the end of a backoff; until then the job is no candidate.
	NotBefore time.Time
	// MaxRuntime is what the job declares it needs at most after its grant;
	// 0: it declares nothing.
	MaxRuntime time.Duration
	// Parked is the text of the last Park decision on a waiting job, before a
	// restart; empty: it was not parked.
	Parked string
	// Promised says of a waiting job, before a restart, that others have
	// stopped for it and are gone, and that it waits for the rest of what it
	// claims (see Cohort.Promised).
	Promised bool
}

// Holding is what a job that holds capacity adds to Job.
type Holding struct {
	Since      time.Time   // of the grant
	Checkpoint time.Time   // of the job's newest completed checkpoint, of any attempt; zero: none
	Stopping   *Preemption // set if it was told to stop and is not yet gone
}

// Ground is why a job may have capacity, or must give it back.
type Ground string

// The grounds of grants and of preemptions (sections 3 and 5).
const (
	Entitled Ground = "entitled" // grant within the share's own quota
	Borrow   Ground = "borrow"   // grant that borrows

	Reclaim      Ground = "reclaim"   // preempted for a share entitled to the capacity
	InShare      Ground = "in-share"  // preempted for a higher priority of its own share
	FromBorrower Ground = "borrower"  // it borrowed, and so will a higher priority of another share
	Rebalance    Ground = "rebalance" // it borrowed, and its share borrowed more for its weight

	// Ended marks a job that stops for a reason of its own (terminated, out
	// of time): its capacity is on its way back, for nobody in particular.
	Ended Ground = "ended"
)

// Preemption is why a job stops: on which ground, and for which job.
type Preemption struct {
	Ground   Ground
	For      JobID  // 0 with Ended
	ForShare string // empty with Ended
}

// Kind is the kind of a decision.
type Kind string

// The kinds of decisions.
const (
	Grant   Kind = "grant"   // the job holds its demand from now on
	Preempt Kind = "preempt" // the job must stop; it holds its demand until it is gone
	Park    Kind = "park"    // a head's reason changed to, or from, one it can never get rid of by waiting
)

// Decision is one outcome of a pass, with what it was decided on.
type Decision struct {
	Kind  Kind
	Job   JobID
	Share string

	// Ground of a Grant (Entitled, Borrow) or a Preempt (all others but Ended).
	Ground Ground

	// Borrowed is the part of a granted demand that is beyond the share's
	// nominal; nil when nothing is.
	Borrowed Amounts

	// For and ForShare are whom a Preempt makes room for.
	For      JobID
	ForShare string
	// LostWork of a Preempt is what stopping the job costs: the amount it
	// holds in the short unit times the time since its last checkpoint.
	LostWork LostWork
	// Candidates is how many running jobs the choice was made from;
	// Alternative is the lost work of the first of them, in the order of
	// section 5, that was passed over, and is set if HasAlternative.
	Candidates     int
	Alternative    LostWork
	HasAlternative bool

	// Reason of a Park: code MISCONFIGURATION, or the zero Reason when the
	// job is no longer parked.
	Reason Reason
}

// LostWork is an amount times a duration, in unit-milliseconds, saturating.
type LostWork int64

// UnitSeconds returns the lost work in amount-seconds.
func (w LostWork) UnitSeconds() float64 { return float64(w) / 1000 }
