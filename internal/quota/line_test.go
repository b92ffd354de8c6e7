package quota

import (
	"testing"
	"time"
)

// TestSkipWithLessTime: the time that is left to jobs behind a blocked one can
// shrink in the middle of a pass, and then rules out whom it let pass before.
func TestSkipWithLessTime(t *testing.T) {
	c := NewCohort(Policy{Queueing: Backfill})
	c.SetShare(Share{Name: "s"})
	for id, most := range map[JobID]time.Duration{1: time.Hour, 2: 20 * time.Minute, 3: 10 * time.Minute} {
		if err := c.Add(Job{ID: id, Share: "s", Demand: Amounts{"gpu": 1}, MaxRuntime: most}); err != nil {
			t.Fatal(err)
		}
	}
	s := c.shares["s"]
	l := s.open.first()
	for _, tt := range []struct {
		left time.Duration
		want JobID // 0: nobody
	}{{30 * time.Minute, 2}, {15 * time.Minute, 3}, {5 * time.Minute, 0}} {
		passed := s.skip(l, int64(tt.left))
		if passed != (tt.want != 0) || passed && l.next().id != tt.want {
			t.Errorf("with %v left, job %d may pass (%v), want %d", tt.left, l.next().id, passed, tt.want)
		}
	}
}
