package governor

import "context"

// Waiting returns the jobs in front of a queue in the order in which they go,
// at most perShare of each quota share, and why each of them waits. Jobs in a
// backoff have no place yet and are left out. Refusal: Missing.
func (g *Governor) Waiting(ctx context.Context, queueName string, perShare int) ([]Why, error) {
	return query(ctx, g, func(s *state) (waiting []Why, err error) {
		q, err := s.queue(queueName)
		if err != nil {
			return nil, err
		}
		for _, l := range q.lanes() {
			for _, id := range q.environment.cohort.Heads(l.name, perShare) {
				waiting = append(waiting, s.why(s.bySeq[id]))
			}
		}
		return waiting, nil
	})
}
