package resource

import (
	"maps"
	"slices"
)

// Clone returns a deep copy.
func (e Environment) Clone() Environment {
	e.Limits, e.Tags = slices.Clone(e.Limits), maps.Clone(e.Tags)
	return e
}

// Clone returns a deep copy.
func (p Policy) Clone() Policy {
	p.Tags = maps.Clone(p.Tags)
	if p.FairShare != nil {
		f := *p.FairShare
		f.Distribution = slices.Clone(f.Distribution)
		p.FairShare = &f
	}
	return p
}

// Clone returns a deep copy.
func (q Queue) Clone() Queue {
	q.TimeLimitActions, q.Tags = slices.Clone(q.TimeLimitActions), maps.Clone(q.Tags)
	return q
}

// Clone returns a deep copy.
func (s Share) Clone() Share {
	s.Limits, s.Tags = slices.Clone(s.Limits), maps.Clone(s.Tags)
	s.BorrowLimits, s.LendLimits = slices.Clone(s.BorrowLimits), slices.Clone(s.LendLimits)
	return s
}
