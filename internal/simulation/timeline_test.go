package simulation

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However long a run becomes, nothing that was added to a series is lost, and
// all of it stays where it belongs in time.
func TestTimelineKeepsWhatIsAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			from, to time.Duration
			amount   float64
		}
		line := &timeline{step: time.Millisecond}
		s := line.series()
		var parts []part
		now := time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "parts") {
			next := now + time.Duration(rapid.Int64Range(0, int64(1)<<rapid.IntRange(0, 50).Draw(t, "size")).Draw(t, "lasts"))
			p := part{now, next, float64(rapid.IntRange(0, 9).Draw(t, "amount"))}
			line.hold(s, p.from, p.to, p.amount)
			parts, now = append(parts, p), next
		}
		steps := line.steps(now)
		if steps > points {
			t.Fatalf("%d steps of %v until %v", steps, line.step, now)
		}
		for i := range steps {
			from, to := time.Duration(i)*line.step, time.Duration(i+1)*line.step
			want := 0.0
			for _, p := range parts {
				want += p.amount * max(0, min(p.to, to)-max(p.from, from)).Seconds()
			}
			if math.Abs(s[i]-want) > 1e-9*(1+want) {
				t.Fatalf("step %d of %v holds %g, want %g", i, line.step, s[i], want)
			}
		}
	})
}

func TestTimelineAddsAtATime(t *testing.T) {
	line := &timeline{step: time.Millisecond}
	s := line.series()
	line.add(s, 3*time.Millisecond, 2)
	line.add(s, 1024*time.Millisecond, 5)
	if line.step != 4*time.Millisecond || s[0] != 2 || s[256] != 5 {
		t.Errorf("steps of %v hold %g and %g", line.step, s[0], s[256])
	}
}
