package governor

import (
	"crypto/sha256"
	"time"

	"github.com/bursar-io/bursar/internal/store"
)

// tokenWindow is for how long a client token is remembered.
const tokenWindow = 24 * time.Hour

// digest stands for a token or a hash: clients send one with every submission,
// and a day's worth must be small.
type digest [16]byte

func digestOf(s string) digest {
	sum := sha256.Sum256([]byte(s))
	return digest(sum[:16])
}

// tokens remembers the client tokens of recent submissions, the oldest first.
type tokens struct {
	known map[digest]submitted
	order []spoken
}

type submitted struct {
	hash digest
	job  string
}

type spoken struct {
	token digest
	at    time.Time
}

// newTokens takes stored tokens, the oldest first.
func newTokens(stored []store.Token) tokens {
	t := tokens{known: make(map[digest]submitted, len(stored))}
	for _, k := range stored {
		t.add(k)
	}
	return t
}

func (t *tokens) add(k store.Token) {
	d := digestOf(k.Token)
	t.known[d] = submitted{hash: digestOf(k.Hash), job: k.JobID}
	t.order = append(t.order, spoken{token: d, at: k.CreatedAt})
}

// find returns the job that a token was first sent with, and whether the
// parameters were the same.
func (t *tokens) find(token, hash string) (jobID string, same, ok bool) {
	k, ok := t.known[digestOf(token)]
	return k.job, k.hash == digestOf(hash), ok
}

// forget drops the tokens that are too old.
func (t *tokens) forget(now time.Time) {
	n := 0
	for n < len(t.order) && t.order[n].at.Before(now.Add(-tokenWindow)) {
		delete(t.known, t.order[n].token)
		n++
	}
	t.order = t.order[n:]
}
