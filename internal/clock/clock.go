// Package clock tells the time and calls back when a time has come: the
// machine's own clock, and one that tests, scenarios and simulations turn by
// hand. Who needs a clock declares the methods it uses; nothing but time may
// enter here.
package clock

import "time"

// System is the machine's clock.
type System struct{}

// Now returns the present time.
func (System) Now() time.Time { return time.Now() }

// AfterFunc calls f in a goroutine of its own once d has passed, unless stop
// is called before.
func (System) AfterFunc(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
