package clock

import (
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestManualRunsCallbacksInOrder(t *testing.T) {
	m := NewManual(noon)
	var rang []string
	ring := func(name string) func() {
		return func() { rang = append(rang, name+" "+m.Now().Sub(noon).String()) }
	}
	m.AfterFunc(2*time.Second, ring("late"))
	m.AfterFunc(time.Second, ring("first"))
	m.AfterFunc(time.Second, ring("second"))
	m.AfterFunc(-time.Hour, ring("overdue"))
	stop := m.AfterFunc(time.Second, ring("stopped"))
	m.AfterFunc(time.Hour, ring("never"))
	stop()
	stop() // again: nothing happens
	if rang != nil {
		t.Errorf("rang before the clock was turned: %v", rang)
	}
	m.AfterFunc(1500*time.Millisecond, func() { m.AfterFunc(0, ring("from within")) })
	m.Advance(3 * time.Second)
	want := []string{"overdue 0s", "first 1s", "second 1s", "from within 1.5s", "late 2s"}
	if !slices.Equal(rang, want) {
		t.Errorf("rang %v, want %v", rang, want)
	}
	if got := m.Now(); !got.Equal(noon.Add(3 * time.Second)) {
		t.Errorf("the clock shows %v", got)
	}
}

func TestManualStepsOneByOne(t *testing.T) {
	m := NewManual(noon)
	n := 0
	for range 2 {
		m.AfterFunc(time.Second, func() { n++ })
	}
	for want := 1; want <= 2; want++ {
		if !m.Step(noon.Add(time.Minute)) || n != want || !m.Now().Equal(noon.Add(time.Second)) {
			t.Errorf("after step %d: %d callbacks at %v", want, n, m.Now())
		}
	}
	if m.Step(noon.Add(time.Minute)) || !m.Now().Equal(noon.Add(time.Minute)) {
		t.Errorf("with nothing left the clock shows %v, want the limit", m.Now())
	}
	if m.Step(noon) || !m.Now().Equal(noon.Add(time.Minute)) {
		t.Errorf("the clock was turned back to %v", m.Now())
	}
}

func TestSystem(t *testing.T) {
	var s System
	rang := make(chan time.Time, 1)
	before := s.Now()
	s.AfterFunc(time.Millisecond, func() { rang <- s.Now() })
	stop := s.AfterFunc(time.Hour, func() { t.Error("a stopped callback ran") })
	stop()
	select {
	case at := <-rang:
		if at.Sub(before) < time.Millisecond {
			t.Errorf("rang after %v", at.Sub(before))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("never rang")
	}
}
