package resource

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The most there may be of each kind of thing (A9 and A1 of the facts).
const (
	MaxEnvironments   = 50
	MaxQueues         = 50
	MaxSharesPerQueue = 20
	MaxLimits         = 5
	MaxTags           = 50
)

// The bounds of fields.
const (
	MaxNameLength     = 128
	MaxTagKeyLength   = 128
	MaxTagValueLength = 256
	MaxQueuePriority  = 1000
	MaxLimit          = math.MaxInt32
	MaxBorrowLimit    = math.MaxInt32
	MaxWeight         = 1000
	MinTimeLimit      = 600 * time.Second
	MaxTimeLimit      = 86400 * time.Second
	MaxRuleDuration   = 365 * 24 * time.Hour
)

// FieldError is the error of a field whose value cannot be. Its message is
// shown to clients as it is: a text that AWS has for the case comes first, then
// field, value and what would be right.
type FieldError struct{ Message string }

func (e *FieldError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &FieldError{Message: fmt.Sprintf(format, args...) + "."}
}

// ValidName reports whether a name has 1 to 128 letters, digits, hyphens and
// underscores, as the names of all resources and jobs must.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxNameLength {
		return false
	}
	for _, c := range []byte(name) {
		if !isNameByte(c) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// ValidInstanceType reports whether a unit reads as a SageMaker training
// instance type, such as ml.g5.xlarge or ml.p6-b200.48xlarge.
func ValidInstanceType(unit string) bool {
	parts := strings.Split(unit, ".")
	if len(parts) != 3 || parts[0] != "ml" || len(unit) > MaxNameLength {
		return false
	}
	return isTypePart(parts[1]) && isTypePart(parts[2])
}

// ValidUnit reports whether a unit reads as an instance type, or as one resource
// of it: ml.g5.12xlarge/accelerators, /vcpu or /memory. Only whole instances
// have a name in AWS Batch.
func ValidUnit(unit string) bool {
	instance, part, of := strings.Cut(unit, "/")
	if of && part != "accelerators" && part != "vcpu" && part != "memory" {
		return false
	}
	return ValidInstanceType(instance)
}

func isTypePart(part string) bool {
	for _, c := range []byte(part) {
		if !isNameByte(c) || c == '_' || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return part != ""
}

// Validate returns an error that names the first field of the environment
// with a value that cannot be, and what would be right.
func (e Environment) Validate() error {
	if !ValidName(e.Name) {
		return badName("Service environment", "serviceEnvironmentName", e.Name)
	}
	return first(
		func() error { return validateState(e.State) },
		func() error { return validateEnvironmentLimits(e.Limits) },
		func() error { return ValidateTags(e.Tags) },
	)
}

// Validate returns an error that names the first field of the policy with a
// value that cannot be, and what would be right.
func (p Policy) Validate() error {
	if !ValidName(p.Name) {
		return badName("Scheduling policy", "name", p.Name)
	}
	return first(
		p.validateKind,
		p.Rules.validate,
		func() error { return ValidateTags(p.Tags) },
	)
}

func (p Policy) validateKind() error {
	if p.FairShare == nil {
		if p.IdleAssignment != IdleFIFO && p.IdleAssignment != IdleFairShare {
			return invalid("idleAssignment is %q; use %s or %s", p.IdleAssignment, IdleFIFO, IdleFairShare)
		}
		return nil
	}
	if p.IdleAssignment != "" || p.Rules != (Rules{}) {
		return invalid("A scheduling policy can have either fairsharePolicy or quotaSharePolicy. Policy %s has both", p.Name)
	}
	return p.FairShare.validate()
}

// Validate returns an error that names the first field of the queue with a
// value that cannot be, and what would be right.
func (q Queue) Validate() error {
	if !ValidName(q.Name) {
		return badName("Job Queue", "jobQueueName", q.Name)
	}
	if q.Priority < 0 || q.Priority > MaxQueuePriority {
		return invalid("priority is %d; use 0 to %d", q.Priority, MaxQueuePriority)
	}
	if q.Environment == "" {
		return invalid("Job queues of type SAGEMAKER_TRAINING must have serviceEnvironmentOrder. Name one service environment in it")
	}
	return first(
		func() error { return validateState(q.State) },
		func() error { return validateTimeLimitActions(q.TimeLimitActions) },
		func() error { return ValidateTags(q.Tags) },
	)
}

// Validate returns an error that names the first field of the share with a
// value that cannot be, and what would be right.
func (s Share) Validate() error {
	if !ValidName(s.Name) {
		return badName("Quota share", "quotaShareName", s.Name)
	}
	return first(
		func() error { return validateState(s.State) },
		func() error { return validateUnitLimits(s.Limits) },
		s.validateSharing,
		s.validateCaps,
		s.validateWeight,
		func() error { return ValidateTags(s.Tags) },
	)
}

func (s Share) validateSharing() error {
	switch s.Sharing {
	case LendAndBorrow:
		if s.BorrowLimit < Unlimited || s.BorrowLimit > MaxBorrowLimit {
			return invalid("borrowLimit is %d; use a percentage of the share's own capacity limits from 0 to %d, or -1 for no limit",
				s.BorrowLimit, MaxBorrowLimit)
		}
	case Reserve, Lend:
		if s.BorrowLimit > 0 || s.BorrowLimit < Unlimited {
			return invalid("borrowLimit is %d, but a share with strategy %s does not borrow; leave borrowLimit out or use strategy %s",
				s.BorrowLimit, s.Sharing, LendAndBorrow)
		}
	default:
		return invalid("resource sharing strategy is %q; use %s, %s or %s", s.Sharing, Reserve, Lend, LendAndBorrow)
	}
	return nil
}

// validateCaps checks the absolute limits of lending and borrowing.
func (s Share) validateCaps() error {
	if len(s.BorrowLimits) > 0 && s.Sharing != LendAndBorrow {
		return invalid("borrowLimits has %d entries, but a share with strategy %s does not borrow; leave borrowLimits out or use strategy %s",
			len(s.BorrowLimits), s.Sharing, LendAndBorrow)
	}
	if len(s.LendLimits) > 0 && s.Sharing == Reserve {
		return invalid("lendLimits has %d entries, but a share with strategy %s does not lend; leave lendLimits out or use strategy %s or %s",
			len(s.LendLimits), s.Sharing, Lend, LendAndBorrow)
	}
	return first(
		func() error { return validateCap("borrowLimits", s.BorrowLimits) },
		func() error { return validateCap("lendLimits", s.LendLimits) },
	)
}

func validateCap(field string, limits []Limit) error {
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		if !ValidUnit(l.Unit) {
			return invalid("%s names %q; use an instance type such as ml.g5.xlarge, or a resource of one such as ml.g5.xlarge/vcpu", field, l.Unit)
		}
		if seen[l.Unit] {
			return invalid("%s has %s twice; give each unit once", field, l.Unit)
		}
		seen[l.Unit] = true
		if l.Max < 0 || l.Max > MaxLimit {
			return invalid("%s of %s is %d; use 0 to %d", field, l.Unit, l.Max, int64(MaxLimit))
		}
	}
	return nil
}

func (s Share) validateWeight() error {
	if s.Weight < 0 || s.Weight > MaxWeight {
		return invalid("weight is %d; use 0 to %d", s.Weight, MaxWeight)
	}
	return nil
}

// ValidateTags returns an error that names the first tag that cannot be: at
// most 50, keys of 1 to 128 and values of up to 256 characters.
func ValidateTags(tags map[string]string) error {
	if len(tags) > MaxTags {
		return invalid("tags has %d entries; use at most %d", len(tags), MaxTags)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if n := utf8.RuneCountInString(key); n == 0 || n > MaxTagKeyLength {
			return invalid("tag key %q has %d characters; use 1 to %d", key, n, MaxTagKeyLength)
		}
		if n := utf8.RuneCountInString(tags[key]); n > MaxTagValueLength {
			return invalid("the value of tag %q has %d characters; use at most %d", key, n, MaxTagValueLength)
		}
	}
	return nil
}

func validateState(s State) error {
	if s != Enabled && s != Disabled {
		return invalid("state is %q; use %s or %s", s, Enabled, Disabled)
	}
	return nil
}

func validateEnvironmentLimits(limits []Limit) error {
	counts := slices.ContainsFunc(limits, func(l Limit) bool { return l.Unit == NumInstances })
	if counts && len(limits) > 1 {
		return invalid("Capacity units must specify either number of instances OR instance type. capacityLimits has %s beside %s; use %[2]s alone, or instance types alone",
			otherUnits(limits), NumInstances)
	}
	if counts {
		return validateMax(limits[0])
	}
	return validateUnitLimits(limits)
}

func otherUnits(limits []Limit) string {
	var others []string
	for _, l := range limits {
		if l.Unit != NumInstances {
			others = append(others, l.Unit)
		}
	}
	if others == nil {
		return "another " + NumInstances
	}
	return strings.Join(others, ", ")
}

// validateUnitLimits checks limits by unit, which are the only ones that a
// share may have.
func validateUnitLimits(limits []Limit) error {
	if len(limits) == 0 {
		return invalid("Capacitylimits are required. Give 1 to %d capacityLimits", MaxLimits)
	}
	if len(limits) > MaxLimits {
		return invalid("Number of capacity limits exceeds %d. capacityLimits has %d", MaxLimits, len(limits))
	}
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		if !ValidUnit(l.Unit) {
			return invalid("%s is unknown capacity unit. Use an instance type such as ml.g5.xlarge as capacityUnit", l.Unit)
		}
		if seen[l.Unit] {
			return invalid("capacityLimits has %s twice; give each capacityUnit once", l.Unit)
		}
		seen[l.Unit] = true
		if err := validateMax(l); err != nil {
			return err
		}
	}
	return nil
}

func validateMax(l Limit) error {
	if l.Max < 1 {
		return invalid("Max capacity must be more than 0. maxCapacity of %s is %d", l.Unit, l.Max)
	}
	if l.Max > MaxLimit {
		return invalid("maxCapacity of %s is %d; use at most %d", l.Unit, l.Max, int64(MaxLimit))
	}
	return nil
}

func validateTimeLimitActions(actions []TimeLimitAction) error {
	reasons := []string{ // A7
		"CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
		"MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE",
		"MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED",
	}
	seen := make(map[string]bool, len(actions))
	for _, a := range actions {
		if !slices.Contains(reasons, a.Reason) {
			return invalid("reason %q of a jobStateTimeLimitAction is unknown; use one of %s", a.Reason, strings.Join(reasons, ", "))
		}
		if seen[a.Reason] {
			return invalid("Duplicate job state limit actions are not allowed. Reason %s has more than one", a.Reason)
		}
		seen[a.Reason] = true
		if a.After < MinTimeLimit || a.After > MaxTimeLimit {
			return invalid("maxTimeSeconds of the action for %s is %d; use %d to %d",
				a.Reason, int64(a.After/time.Second), int64(MinTimeLimit/time.Second), int64(MaxTimeLimit/time.Second))
		}
	}
	return nil
}

// badName begins with AWS's text and goes on with the field, its value and the
// remedy.
func badName(kind, field, value string) error {
	return invalid("%s name should match a valid pattern. %s is %q; use 1 to %d letters, digits, hyphens and underscores",
		kind, field, value, MaxNameLength)
}

func first(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
