// Package store says what the governor keeps, and how: the present state of
// everything declared and submitted, and an append-only journal of all that
// was accepted, decided and seen. Engines live in packages below it;
// storetest holds the conformance suite they all pass.
//
// A store decides nothing. It never sees half of a batch: what is committed is
// there after a crash at any instant, what is not has never been.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

// ErrNotFound is returned for a job that the store does not have.
var ErrNotFound = errors.New("not found")

// ErrLocked is returned by an engine whose data another process has open.
var ErrLocked = errors.New("locked by another process")

// EntryKind is the kind of a journal entry.
type EntryKind string

// The kinds of journal entries.
const (
	Command  EntryKind = "command"  // accepted from a client; Name is the operation
	Decision EntryKind = "decision" // of a pass: Name is grant, preempt or park; of time: timeout or time-limit
	State    EntryKind = "state"    // a job or resource changed; Name is the new state
	Seen     EntryKind = "seen"     // reported by a runner; Name is the event
)

// Entry is one line of the journal. Seq orders all entries, without gaps, and
// is given by the governor.
type Entry struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Kind    EntryKind       `json:"kind"`
	Name    string          `json:"name"`
	Subject string          `json:"subject"`      // a job's id, or kind/name of a resource
	By      string          `json:"by,omitempty"` // the principal whose command it was
	Data    json.RawMessage `json:"data,omitempty"`
}

// Batch is what one commit makes durable, all of it or nothing. Records replace
// those of the same name or id, after the resources that Removed names are
// gone; jobs are never removed. What identifies a job never changes: its ID,
// Seq, Name, Queue, Share, ShareIdentifier, CreatedAt, Token and TokenHash.
type Batch struct {
	Environments []resource.Environment
	Policies     []resource.Policy
	Queues       []resource.Queue
	Shares       []resource.Share
	Removed      []resource.Ref
	Jobs         []job.Job
	Payloads     map[string]string // by job id, of jobs new in this batch
	Entries      []Entry
}

// Contents is what a governor starts from: every resource (in order of queue
// and name), every job that has not finished (in order of Seq), and where the
// counters stand.
type Contents struct {
	Environments []resource.Environment
	Policies     []resource.Policy
	Queues       []resource.Queue
	Shares       []resource.Share
	Jobs         []job.Job
	Tokens       []Token // of jobs created since the time given, finished ones too, oldest first
	LastJobSeq   int64   // 0 when there was never a job
	LastEntrySeq int64   // 0 when the journal is empty
}

// Token is a client token that came with a submission.
type Token struct {
	Token     string
	Hash      string
	JobID     string
	CreatedAt time.Time
}

// JobQuery selects jobs of one queue, newest first (by creation time, then by
// Seq, both descending). Zero fields select everything.
type JobQuery struct {
	Queue         string       // required
	Statuses      []job.Status // any of these
	Share         *string      // exactly this
	Identifier    string       // exactly this share identifier
	NamePrefix    string       // case-insensitive; with NameExact the whole name
	NameExact     bool
	CreatedBefore time.Time // exclusive
	CreatedAfter  time.Time // exclusive
	BeforeSeq     int64     // continues after the job with this Seq; 0: from the newest. Needs BeforeTime
	BeforeTime    time.Time // CreatedAt of that job
	Limit         int       // at most this many; required, positive
}

// Store keeps a governor's state. Commit is called from one goroutine; the
// queries may be called from any number at once, and see what was committed
// before they were called. Times are kept to the millisecond, in UTC.
type Store interface {
	// Load returns the present state, with the tokens of jobs created at or
	// after tokensSince.
	Load(ctx context.Context, tokensSince time.Time) (Contents, error)
	// Commit makes the batch durable. After an error nothing of it is. It
	// minds ctx until it begins to write, and then runs to its end, so that
	// its outcome is never in doubt.
	Commit(ctx context.Context, b Batch) error
	// Job returns one job, finished or not, or ErrNotFound.
	Job(ctx context.Context, id string) (job.Job, error)
	// Payload returns a job's payload, or ErrNotFound.
	Payload(ctx context.Context, id string) (string, error)
	// Jobs returns the jobs that the query selects.
	Jobs(ctx context.Context, q JobQuery) ([]job.Job, error)
	// Ended returns the jobs of a queue with a share identifier that finished
	// at or after since, in order of Seq.
	Ended(ctx context.Context, queue string, since time.Time) ([]job.Job, error)
	// Journal returns up to limit entries with a Seq above after, in order.
	Journal(ctx context.Context, after int64, limit int) ([]Entry, error)
	// Close releases the store. What was committed stays.
	Close() error
}
