package quota

import (
	"errors"
	"time"
)

// Errors of the calls that change a cohort. They say that the caller's books
// and the cohort's differ; the cohort is unchanged.
var (
	ErrNoShare   = errors.New("no such share")
	ErrNoJob     = errors.New("no such job")
	ErrJobExists = errors.New("job exists")
	ErrHolds     = errors.New("job holds capacity")
	ErrWaits     = errors.New("job waits")
	ErrDemand    = errors.New("demand must have positive amounts")
)

// Cohort is a pool of capacity, the shares that live on it, and their jobs.
type Cohort struct{}

// NewCohort returns a cohort without capacity, shares and jobs.
func NewCohort(p Policy) *Cohort { return &Cohort{} }

// SetPolicy changes how the cohort is governed, from the next pass on.
func (c *Cohort) SetPolicy(p Policy) {}

// SetCapacity sets the pool's capacity per unit; a unit not named has none.
// Lowering it preempts nothing; it stops new grants (I1).
func (c *Cohort) SetCapacity(capacity Amounts) {}

// SetShare creates the share or changes it, its jobs staying as they are.
func (c *Cohort) SetShare(s Share) {}

// RemoveShare removes a share. ErrHolds: it still has jobs.
func (c *Cohort) RemoveShare(name string) error { return nil }

// Add adds a waiting job. It returns ErrNoShare, ErrJobExists or ErrDemand.
func (c *Cohort) Add(j Job) error { return nil }

// Restore adds a job that holds capacity already, after a restart. It returns
// ErrNoShare, ErrJobExists or ErrDemand, and never looks at limits.
func (c *Cohort) Restore(j Job, h Holding) error { return nil }

// SetPriority changes a job's priority, whether it waits or holds capacity.
func (c *Cohort) SetPriority(id JobID, priority int32) error { return nil }

// Checkpointed records when a job that holds capacity last completed a
// checkpoint. It returns ErrWaits for one that does not.
func (c *Cohort) Checkpointed(id JobID, at time.Time) error { return nil }

// Stop records that a job which holds capacity was told to stop for a reason
// of its own: what it holds is on its way back. A job that was preempted
// before keeps being on its way for whom it was preempted.
func (c *Cohort) Stop(id JobID) error { return nil }

// Requeue takes back what the job holds and lets it wait again in its old
// place, not before notBefore.
func (c *Cohort) Requeue(id JobID, notBefore time.Time) error { return nil }

// Remove forgets a job, and takes back what it holds.
func (c *Cohort) Remove(id JobID) error { return nil }

// Pass decides, at now, everything that can be decided (section 3), and
// applies its decisions to the cohort: what it grants is held from now on, what
// it preempts is stopping. A second pass at once decides nothing more.
func (c *Cohort) Pass(now time.Time) []Decision { return nil }

// Wake returns when time alone will next change what a pass decides (a
// backoff ends). ok is false when it will not.
func (c *Cohort) Wake() (at time.Time, ok bool) { return time.Time{}, false }

// Reason returns why a waiting job waits, as of the last pass; ok is false for
// a job that does not wait.
func (c *Cohort) Reason(id JobID) (r Reason, ok bool) { return Reason{}, false }

// Heads returns the first n waiting jobs of a share, in order: those in
// backoff are left out.
func (c *Cohort) Heads(share string, n int) []JobID { return nil }

// Balance is what a share owns, uses, borrows, lends and has free in one unit.
type Balance struct {
	Unit     Unit
	Nominal  int64
	Usage    int64
	Borrowed int64 // max(0, Usage − Nominal)
	Lent     int64 // the part of the unused nominal that borrowers use
	Free     int64 // the part of the unused nominal that nobody uses
	Stopping int64 // the part of Usage that stopping jobs give back
}

// Balances returns a share's balance in every unit in which it has a nominal
// or a usage, sorted by unit.
func (c *Cohort) Balances(share string) []Balance { return nil }

// Counts returns how many jobs of a share wait (in backoff too) and how many hold capacity.
func (c *Cohort) Counts(share string) (waiting, holding int) { return 0, 0 }
