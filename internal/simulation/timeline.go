package simulation

import "time"

// points is how many points a series has at most: a page is hardly that many
// pixels wide.
const points = 512

// timeline divides a run, whose length is not known before its end, into equal
// steps. Whenever the steps run out it doubles their length, so that what has
// been added up so far is kept at half the resolution.
type timeline struct {
	step time.Duration
	all  []*series
}

// series is a quantity over time: per step, the sum of what was added in it.
type series [points]float64

func (l *timeline) series() *series {
	s := &series{}
	l.all = append(l.all, s)
	return s
}

// steps is how many steps a run takes that ends at t.
func (l *timeline) steps(t time.Duration) int {
	l.reach(t)
	return int(t/l.step) + 1
}

// reach makes the steps long enough for the series to hold what happens at t.
func (l *timeline) reach(t time.Duration) {
	for t >= l.step*points {
		l.step *= 2
		for _, s := range l.all {
			s.halve()
		}
	}
}

func (s *series) halve() {
	for i := range points / 2 {
		s[i] = s[2*i] + s[2*i+1]
	}
	clear(s[points/2:])
}

// add adds an amount at one time.
func (l *timeline) add(s *series, t time.Duration, amount float64) {
	l.reach(t)
	s[t/l.step] += amount
}

// hold adds an amount held from one time to another, times seconds.
func (l *timeline) hold(s *series, from, to time.Duration, amount float64) {
	if amount == 0 || to <= from {
		return
	}
	l.reach(to)
	for from < to {
		end := min(to, from-from%l.step+l.step)
		s[from/l.step] += amount * (end - from).Seconds()
		from = end
	}
}
