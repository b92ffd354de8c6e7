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
	for id, minutes := range map[JobID]time.Duration{1: 60, 2: 20, 3: 10} {
		if err := c.Add(Job{ID: id, Share: "s", Demand: Amounts{"gpu": 1}, MaxRuntime: minutes * time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	s := c.shares["s"]
	l := s.open.first()
	for _, tt := range []struct {
		minutes time.Duration
		want    JobID // 0: nobody
	}{{30, 2}, {15, 3}, {5, 0}} {
		passed := s.skip(l, int64(tt.minutes*time.Minute))
		if passed != (tt.want != 0) || passed && l.next().id != tt.want {
			t.Errorf("with %d minutes left, job %d may pass (%v), want %d", tt.minutes, l.next().id, passed, tt.want)
		}
	}
}
