package governor

import (
	"context"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
)

// Waiting returns the jobs in front of a queue in the order in which they go,
// and why each of them waits: at most perShare of each quota share, or of a
// queue that has none. Jobs in a backoff have no place yet and are left out.
// Refusal: Missing.
func (g *Governor) Waiting(ctx context.Context, queueName string, perShare int) ([]Why, error) {
	return query(ctx, g, func(s *state) (waiting []Why, err error) {
		q, err := s.queue(queueName)
		if err != nil {
			return nil, err
		}
		now := g.cfg.Clock.Now()
		for _, id := range q.inOrder(perShare, now) {
			waiting = append(waiting, s.why(s.bySeq[id], now))
		}
		return waiting, nil
	})
}

// inOrder returns the jobs that Waiting does.
func (q *queue) inOrder(perShare int, now time.Time) (ids []quota.JobID) {
	if q.identifiers != nil {
		return q.environment.cohort.FairOrder(q.Name, perShare, now)
	}
	for _, l := range q.lanes() {
		ids = append(ids, l.heads(perShare)...)
	}
	return ids
}
