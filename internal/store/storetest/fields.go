package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// arbitrary returns records with arbitrary values in every field there is, and
// so also in those that will come.
func arbitrary[T any]() *rapid.Generator[T] {
	return rapid.MakeCustom[T](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[time.Time]():       instants().AsAny(),
		reflect.TypeFor[job.Status]():      statuses().AsAny(),
		reflect.TypeFor[json.RawMessage](): documents().AsAny(),
	}})
}

func statuses() *rapid.Generator[job.Status] {
	return rapid.SampledFrom([]job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running, job.Succeeded, job.Failed})
}

// instants returns the zero time, and times to the nanosecond in several zones.
func instants() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
		return time.Unix(0, rapid.Int64Range(-1e18, 5e18).Draw(t, "nanoseconds")).In(zone)
	})
}

func documents() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		// A map of strings always has a JSON form.
		text, err := json.Marshal(map[string]string{"key": rapid.String().Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
}

// kept compares what was committed with what is kept of it: times to the
// millisecond, and nothing is told about nil and empty.
var kept = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b time.Time) bool { return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond)) }),
}

func (e Engine) everyField(t *testing.T) {
	t.Helper()
	s := e.Open(t)
	defer func() { closed(t, s) }() // as it is by then
	var n int64                     // of the records so far, so that no two are the same record
	rapid.Check(t, func(rt *rapid.T) {
		n++
		b := arbitraryBatch(rt, n)
		if err := s.Commit(t.Context(), b); err != nil {
			rt.Fatal(err)
		}
		checkKept(rt, s, b)
	})
	s = e.Reopen(t, s)
	if c, err := s.Load(t.Context(), time.Time{}); err != nil || c.LastJobSeq != n || c.LastEntrySeq != n {
		t.Errorf("after reopening: last job %d and entry %d, %v; want %d", c.LastJobSeq, c.LastEntrySeq, err, n)
	}
}

// arbitraryBatch returns one of every record, with the key n.
func arbitraryBatch(rt *rapid.T, n int64) store.Batch {
	name := fmt.Sprint(n)
	env := arbitrary[resource.Environment]().Draw(rt, "environment")
	pol := arbitrary[resource.Policy]().Draw(rt, "policy")
	que := arbitrary[resource.Queue]().Draw(rt, "queue")
	sha := arbitrary[resource.Share]().Draw(rt, "share")
	env.Name, pol.Name, que.Name, sha.Name = name, name, name, name
	j := arbitrary[job.Job]().Draw(rt, "job")
	j.ID, j.Seq, j.Queue = name, n, "queue-"+name
	entry := arbitrary[store.Entry]().Draw(rt, "entry")
	entry.Seq = n
	return store.Batch{
		Environments: []resource.Environment{env}, Policies: []resource.Policy{pol}, Queues: []resource.Queue{que}, Shares: []resource.Share{sha},
		Jobs: []job.Job{j}, Payloads: map[string]string{name: rapid.String().Draw(rt, "payload")}, Entries: []store.Entry{entry},
	}
}

// checkKept checks that every way to read a batch of arbitraryBatch gives what
// was committed.
func checkKept(rt *rapid.T, s store.Store, b store.Batch) {
	ctx, j, entry := rt.Context(), b.Jobs[0], b.Entries[0]
	c, err := s.Load(ctx, j.CreatedAt)
	if err != nil {
		rt.Fatal(err)
	}
	same(rt, "environment", b.Environments[0], find(c.Environments, func(e resource.Environment) bool { return e.Name == j.ID }))
	same(rt, "policy", b.Policies[0], find(c.Policies, func(p resource.Policy) bool { return p.Name == j.ID }))
	same(rt, "queue", b.Queues[0], find(c.Queues, func(q resource.Queue) bool { return q.Name == j.ID }))
	same(rt, "share", b.Shares[0], find(c.Shares, func(s resource.Share) bool { return s.Name == j.ID }))
	loaded := find(c.Jobs, func(a job.Job) bool { return a.ID == j.ID })
	if j.Status.Finished() {
		same(rt, "finished job", job.Job{}, loaded)
	} else {
		same(rt, "active job", j, loaded)
	}

	one, err := s.Job(ctx, j.ID)
	noError(rt, err)
	same(rt, "job", j, one)
	page, err := s.Jobs(ctx, store.JobQuery{Queue: j.Queue, Limit: 2})
	noError(rt, err)
	same(rt, "jobs", []job.Job{j}, page)
	payload, err := s.Payload(ctx, j.ID)
	noError(rt, err)
	same(rt, "payload", b.Payloads[j.ID], payload)
	journal, err := s.Journal(ctx, entry.Seq-1, 2)
	noError(rt, err)
	same(rt, "journal", []store.Entry{entry}, journal)
}

func find[T any](all []T, is func(T) bool) (none T) {
	for _, one := range all {
		if is(one) {
			return one
		}
	}
	return none
}

func noError(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// same checks that got is what is kept of want.
func same(rt *rapid.T, what string, want, got any) {
	rt.Helper()
	if diff := cmp.Diff(want, got, kept); diff != "" {
		rt.Fatalf("%s (-committed +read):\n%s", what, diff)
	}
	for _, at := range times(reflect.ValueOf(got)) {
		if at.Location() != time.UTC || at.Nanosecond()%int(time.Millisecond) != 0 {
			rt.Fatalf("%s: %v is not in UTC and to the millisecond", what, at)
		}
	}
}

// times returns every time in a value.
func times(v reflect.Value) (out []time.Time) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return []time.Time{v.Interface().(time.Time)}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out = times(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, times(v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = append(out, times(v.Field(i))...)
		}
	default: // no record has times in maps
	}
	return out
}
