package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

// Checked returns a deep copy of the batch as engines keep it, with its times
// in UTC and to the millisecond. The error names what of the batch cannot be
// kept: a removal of something that is never removed, a payload of a job that
// is not in the batch.
func (b Batch) Checked() (Batch, error) {
	for _, r := range b.Removed {
		if !removable(r.Kind) {
			return Batch{}, fmt.Errorf("remove %s %q: only resources can be removed", r.Kind, r.Name)
		}
	}
	if err := b.checkPayloads(); err != nil {
		return Batch{}, err
	}
	return Batch{
		Environments: kept(b.Environments, keptEnvironment),
		Policies:     kept(b.Policies, keptPolicy),
		Queues:       kept(b.Queues, keptQueue),
		Shares:       kept(b.Shares, keptShare),
		Removed:      slices.Clone(b.Removed),
		Jobs:         kept(b.Jobs, keptJob),
		Payloads:     maps.Clone(b.Payloads),
		Entries:      kept(b.Entries, keptEntry),
	}, nil
}

func removable(k resource.Kind) bool {
	switch k {
	case resource.KindEnvironment, resource.KindPolicy, resource.KindQueue, resource.KindShare:
		return true
	default:
		return false
	}
}

func (b Batch) checkPayloads() error {
	found := 0
	for i := range b.Jobs {
		if _, ok := b.Payloads[b.Jobs[i].ID]; ok {
			found++
		}
	}
	if found < len(b.Payloads) {
		return fmt.Errorf("%d payloads for %d jobs of the batch: a payload comes with its job", len(b.Payloads), found)
	}
	return nil
}

func kept[T any](records []T, keep func(T) T) []T {
	out := make([]T, len(records))
	for i, r := range records {
		out[i] = keep(r)
	}
	return out
}

func keptEnvironment(e resource.Environment) resource.Environment {
	e = e.Clone()
	e.CreatedAt = Instant(e.CreatedAt)
	return e
}

func keptPolicy(p resource.Policy) resource.Policy {
	p = p.Clone()
	p.CreatedAt = Instant(p.CreatedAt)
	return p
}

func keptQueue(q resource.Queue) resource.Queue {
	q = q.Clone()
	q.CreatedAt = Instant(q.CreatedAt)
	return q
}

func keptShare(s resource.Share) resource.Share {
	s = s.Clone()
	s.CreatedAt = Instant(s.CreatedAt)
	return s
}

func keptJob(j job.Job) job.Job {
	j = j.Clone()
	for _, t := range []*time.Time{
		&j.ReasonSince, &j.CreatedAt, &j.ScheduledAt, &j.StartedAt, &j.StoppedAt, &j.UpdatedAt, &j.NotBefore, &j.CheckpointAt,
	} {
		*t = Instant(*t)
	}
	if j.Current != nil {
		keepAttempt(j.Current)
	}
	for i := range j.Attempts {
		keepAttempt(&j.Attempts[i])
	}
	for i := range j.Preemptions {
		keepAttempt(&j.Preemptions[i])
	}
	return j
}

func keepAttempt(a *job.Attempt) {
	for _, t := range []*time.Time{&a.ScheduledAt, &a.StartedAt, &a.StoppedAt} {
		*t = Instant(*t)
	}
	if a.Stop != nil {
		a.Stop.At = Instant(a.Stop.At)
	}
}

func keptEntry(e Entry) Entry {
	e.At, e.Data = Instant(e.At), slices.Clone(e.Data)
	return e
}

// Instant returns t as stores keep it: to the millisecond, in UTC.
func Instant(t time.Time) time.Time { return t.Truncate(time.Millisecond).UTC() }

// Check returns an error that names the field of a query that cannot be.
func (q JobQuery) Check() error {
	switch {
	case q.Queue == "":
		return errors.New("job query: Queue is empty; it must name a queue")
	case q.Limit <= 0:
		return fmt.Errorf("job query: Limit is %d; it must be positive", q.Limit)
	case q.BeforeSeq != 0 && q.BeforeTime.IsZero():
		return fmt.Errorf("job query: BeforeTime is zero; with BeforeSeq %d it must be the time that job was created", q.BeforeSeq)
	default:
		return nil
	}
}

// Fold returns a form of a name that is the same for names that differ in case
// only, as strings.EqualFold has it.
func Fold(name string) string { return strings.Map(foldRune, name) }

// foldRune returns the least of the runes that differ from r in case only.
func foldRune(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}
