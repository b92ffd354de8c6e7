package resource

import (
	"math"
	"strings"
	"time"
)

// FairShare makes a policy one of fair-share queues (A3 of the facts): jobs say
// whose they are by a share identifier, and whoever used least lately, for its
// weight factor, goes first.
type FairShare struct {
	// Decay is how long what an identifier used counts, less the longer ago it
	// was; 0: DefaultDecay. AWS's shareDecaySeconds.
	Decay time.Duration `json:"decay"`
	// Reservation keeps capacity for identifiers that use nothing yet, in
	// percent: the part that is kept is Reservation/100 to the power of how many
	// use something. AWS's computeReservation.
	Reservation int64 `json:"reservation"`
	// Distribution has the identifiers that do not weigh DefaultWeightFactor.
	Distribution []WeightedShare `json:"distribution,omitempty"`
}

// WeightedShare gives a share identifier a weight factor, in ten-thousandths:
// DefaultWeightFactor is 1.0, and a lower one gets more. With an asterisk at its
// end Identifier stands for all that begin with what comes before.
type WeightedShare struct {
	Identifier   string `json:"identifier"`
	WeightFactor int64  `json:"weightFactor"`
}

// DefaultDecay is the window of a fair-share policy that names none.
const DefaultDecay = 600 * time.Second

// DefaultWeightFactor is the weight factor of identifiers that a policy does
// not name.
const DefaultWeightFactor = 10_000

// The bounds of fair-share policies (A3 and A9).
const (
	MaxDecay            = 604_800 * time.Second
	MaxReservation      = 99
	MaxShareIdentifiers = 500 // in one policy, and active in one queue
	MaxIdentifierLength = 255
	MinWeightFactor     = 1         // 0.0001
	MaxWeightFactor     = 9_999_999 // 999.9999
)

// anyEnd is what an identifier ends with that stands for all that begin alike.
const anyEnd = "*"

// WeightFactorOf is a factor in ten-thousandths, to the nearest. One that is
// out of bounds stays so: it is not rounded into them.
func WeightFactorOf(factor float32) int64 {
	switch {
	case factor < 0.0001:
		return MinWeightFactor - 1
	case factor > 999.9999:
		return MaxWeightFactor + 1
	}
	return int64(math.Round(float64(factor) * DefaultWeightFactor))
}

// ValidShareIdentifier reports whether a job may have the identifier: 1 to 255
// letters and digits.
func ValidShareIdentifier(identifier string) bool {
	return identifier != "" && isIdentifier(identifier)
}

func isIdentifier(text string) bool {
	for _, c := range []byte(text) {
		if !isNameByte(c) || c == '-' || c == '_' {
			return false
		}
	}
	return len(text) <= MaxIdentifierLength
}

// Window is for how long use counts.
func (f FairShare) Window() time.Duration {
	if f.Decay == 0 {
		return DefaultDecay
	}
	return f.Decay
}

// WeightFactor is an identifier's, in ten-thousandths.
func (f FairShare) WeightFactor(identifier string) int64 {
	for _, w := range f.Distribution { // at most one matches: entries do not overlap
		if w.matches(identifier) {
			return w.WeightFactor
		}
	}
	return DefaultWeightFactor
}

// matches reports whether the entry is for an identifier, or, as its beginning
// is, for all that an entry with an asterisk is for.
func (w WeightedShare) matches(identifier string) bool {
	prefix, isPrefix := strings.CutSuffix(w.Identifier, anyEnd)
	if isPrefix {
		return strings.HasPrefix(identifier, prefix)
	}
	return identifier == w.Identifier
}

// validate returns an error that names the first field with a value that cannot
// be, and what would be right.
func (f FairShare) validate() error {
	if f.Decay < 0 || f.Decay > MaxDecay {
		return invalid("shareDecaySeconds is %d; use 0 to %d, with 0 for %d",
			int64(f.Decay/time.Second), int64(MaxDecay/time.Second), int64(DefaultDecay/time.Second))
	}
	if f.Reservation < 0 || f.Reservation > MaxReservation {
		return invalid("computeReservation is %d; use 0 to %d", f.Reservation, MaxReservation)
	}
	if n := len(f.Distribution); n > MaxShareIdentifiers {
		return invalid("ShareDistribution size cannot be greater than %d. shareDistribution has %d entries", MaxShareIdentifiers, n)
	}
	for _, w := range f.Distribution {
		if err := w.validate(); err != nil {
			return err
		}
	}
	return validateOverlap(f.Distribution)
}

func (w WeightedShare) validate() error {
	if w.Identifier == "" || !isIdentifier(strings.TrimSuffix(w.Identifier, anyEnd)) {
		return invalid("ShareIdentifier name should match a valid pattern. shareIdentifier is %q; use 1 to %d letters and digits, and an asterisk at the end for all that begin with them",
			w.Identifier, MaxIdentifierLength)
	}
	if w.WeightFactor < MinWeightFactor || w.WeightFactor > MaxWeightFactor {
		return invalid("Weight factor should be between 0.0001 and 999.9999. That of shareIdentifier %s is not", w.Identifier)
	}
	return nil
}

// validateOverlap checks that no identifier is given two weight factors.
func validateOverlap(distribution []WeightedShare) error {
	seen := make(map[string]bool, len(distribution))
	for _, w := range distribution {
		if seen[w.Identifier] {
			return invalid("Cannot have two or more identical shareIdentifiers. shareDistribution has %s twice", w.Identifier)
		}
		seen[w.Identifier] = true
	}
	for _, w := range distribution {
		for _, other := range distribution {
			if other != w && other.matches(strings.TrimSuffix(w.Identifier, anyEnd)) {
				return invalid("Share identifier %s matches another share identifier %s. Give each identifier one weightFactor", w.Identifier, other.Identifier)
			}
		}
	}
	return nil
}
