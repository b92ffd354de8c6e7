package quota

import "time"

// Code says in one word why a job waits (section 8).
type Code string

// The codes.
const (
	InsufficientQuota    Code = "INSUFFICIENT_QUOTA"    // quota and what may be borrowed are used up
	BorrowLimit          Code = "BORROW_LIMIT"          // the share's own borrow limit is reached
	Reserved             Code = "RESERVED"              // idle, but kept by others
	InsufficientCapacity Code = "INSUFFICIENT_CAPACITY" // the pool has too little free
	Behind               Code = "BEHIND"                // another job of the share goes first
	Releasing            Code = "RELEASING"             // nominated; waits for stopping jobs
	Backoff              Code = "BACKOFF"               // waits out a backoff
	DisabledPool         Code = "DISABLED"              // the environment is disabled
	Misconfiguration     Code = "MISCONFIGURATION"      // can never fit
)

// The exact texts of jobs that can never fit (A7 of the facts).
const (
	TextEnvironmentMax      = "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE - Service environment(s) associated with the job queue cannot meet the capacity requirement of the job."
	TextShareLimit          = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - Job requirements exceed quota share capacity limits."
	TextShareAndBorrowLimit = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - Job requirements exceed quota share capacity limits and borrow limits."
	TextBorrowable          = "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED - Job requires borrowing that exceeds all configured borrowable capacity."
)

// Role is how somebody holds the capacity that a job waits for.
type Role string

// The roles.
const (
	OwnShare  Role = "own-share" // the job's own share uses it
	Borrower  Role = "borrower"  // the share uses it beyond its nominal
	User      Role = "user"      // the share uses it within its nominal
	Keeper    Role = "keeper"    // the share keeps it unused
	OnItsWay  Role = "releasing" // stopping jobs of the share give it back, for ForShare
	Unshared  Role = "unshared"  // capacity that no share owns and that may not be borrowed
	Nominated Role = "nominated" // claimed by a job of the share that waits for it to be free
)

// Holder says who has how much of the unit that a job waits for.
type Holder struct {
	Role     Role   `json:"role"`
	Share    string `json:"share,omitempty"`
	ForShare string `json:"forShare,omitempty"`
	Amount   int64  `json:"amount"`
}

// Reason is why a job waits: one code, the unit that is short and by how much,
// who holds it, and where the job stands in its share.
type Reason struct {
	Code Code `json:"code"`
	Unit Unit `json:"unit,omitempty"`
	// Wants is the job's demand in Unit; Lacks is how much of it is missing.
	Wants int64 `json:"wants,omitempty"`
	Lacks int64 `json:"lacks,omitempty"`
	// Place is the job's place in its share, from 1.
	Place int `json:"place,omitempty"`
	// Ahead is, with BEHIND, the job at the head of the share.
	Ahead JobID `json:"ahead,omitempty"`
	// Until is, with BACKOFF, when it ends.
	Until time.Time `json:"until,omitzero"`
	// Earliest is when the job could start if jobs use the maximum runtimes that
	// they declare and nobody else starts first but After jobs that go before it;
	// zero where that bounds nothing.
	Earliest time.Time `json:"earliest,omitzero"`
	After    int       `json:"after,omitempty"`
	Holders  []Holder  `json:"holders,omitempty"`
	// Text is, with MISCONFIGURATION, the exact text of A7.
	Text string `json:"text,omitempty"`
}
