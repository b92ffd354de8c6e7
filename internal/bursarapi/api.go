// Package bursarapi is Bursar's own door: what AWS's APIs have no word for. Why
// a job waits, what each share owns, borrows and lends, a queue in its order,
// the journal of all that happened, and what workers print. JSON over HTTP
// under /bursar/v1/, signed as AWS requests are, with service name "bursar".
// The package holds both sides of it, the door and its client.
//
// The door decodes, asks and encodes. It holds no state and has no rules of its
// own, and it changes nothing but policies that are applied as files: jobs are
// submitted, changed and ended through the AWS doors.
package bursarapi

import (
	"time"

	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

// Service is the name that requests to this door are signed for.
const Service = "bursar"

// Prefix is where every path of the door begins.
const Prefix = "/bursar/v1/"

const (
	pathQueues   = Prefix + "queues"
	pathBalances = Prefix + "balances"
	pathWaiting  = Prefix + "waiting"
	pathJobs     = Prefix + "jobs"
	pathJob      = Prefix + "job"
	pathLog      = Prefix + "log"
	pathJournal  = Prefix + "journal"
	pathPolicy   = Prefix + "policy"
	pathPlan     = Prefix + "plan"
	pathApply    = Prefix + "apply"
	pathStanding = Prefix + "standing"
)

// Limits of replies: the most jobs or entries that one lists, the most waiting
// jobs of one share, and the longest that it waits for news of the journal.
const (
	DefaultList = 100
	MaxList     = 1000
	MaxWaiting  = 100
	MaxWait     = 30 * time.Second
)

// MaxPolicy is the most bytes that a policy file may have.
const MaxPolicy = 1 << 20

// Queue is a job queue, with the names of its shares. Jobs of a fair-share one
// need a share identifier.
type Queue struct {
	Name        string   `json:"name"`
	Environment string   `json:"environment"`
	Policy      string   `json:"policy,omitempty"`
	FairShare   bool     `json:"fairShare,omitempty"`
	State       string   `json:"state"`
	Priority    int64    `json:"priority"`
	Shares      []string `json:"shares,omitempty"`
}

// Job is a job and why it is where it is.
type Job = governor.Why

// Balance is what a share owns, uses, borrows, lends and has free.
type Balance = governor.Balance

// Plan is what applying a policy file would change, or has changed.
type Plan = governor.Plan

// Standing is a job queue at one instant: its policy as a policy file, and its
// jobs that have not finished, in order of acceptance.
type Standing struct {
	At     time.Time     `json:"at"`
	Policy string        `json:"policy"`
	Grace  time.Duration `json:"grace"` // that workers have to stop where the policy does not say
	Jobs   []job.Job     `json:"jobs"`
}

// Entry is one line of the journal.
type Entry = store.Entry

// JobQuery selects jobs, newest first. Zero fields select everything.
type JobQuery struct {
	Queue           string
	Share           string
	ShareIdentifier string
	Statuses        []job.Status
	Limit           int // DefaultList if 0, at most MaxList
}

// LogQuery selects what a worker printed.
type LogQuery struct {
	Job    string // an id, ARN, unique prefix of an id, or name
	Run    int    // which of the job's runs, from 1; 0: the newest
	Worker int    // from 1, as in algo-1; 0: the first
	Stderr bool   // what it wrote to stderr, in place of stdout
	Follow bool   // go on with what it prints until the run ends
}

// queueList, balanceList, jobList and entryList are the door's replies; lists
// are named so that a reply can grow.
type queueList struct {
	Queues []Queue `json:"queues"`
}

type balanceList struct {
	Balances []Balance `json:"balances"`
}

type jobList struct {
	Jobs []Job `json:"jobs"`
}

type entryList struct {
	Entries []Entry `json:"entries"`
}

// policyFile is a policy as a policy file has it.
type policyFile struct {
	Policy string `json:"policy"`
}

// problem is the body of every refusal.
type problem struct {
	Message string `json:"message"`
}
