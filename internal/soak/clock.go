package soak

import (
	"sync"
	"time"
)

// dial is a clock that is set, and on which nothing becomes due. A gate holds up
// whoever next asks it for the time.
type dial struct {
	mu   sync.Mutex
	now  time.Time
	gate *gate
}

type gate struct{ reached, open chan struct{} }

func (c *dial) turn(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = to
}

// shut has whoever next asks for the time wait until the gate is open.
func (c *dial) shut() *gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = &gate{reached: make(chan struct{}), open: make(chan struct{})}
	return c.gate
}

// Now returns the time that was set.
func (c *dial) Now() time.Time {
	c.mu.Lock()
	g := c.gate
	c.gate = nil
	c.mu.Unlock()
	if g != nil {
		close(g.reached)
		<-g.open
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc never calls.
func (*dial) AfterFunc(time.Duration, func()) func() { return func() {} }
