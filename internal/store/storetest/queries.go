package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

// Few values, so that jobs are often alike: names that differ in case only, in
// ASCII and beyond; names with the wildcards of SQL; the same instant.
var (
	someNames  = []string{"train", "Train", "TRAIN-2", "train%", "tra_n", "trä", "TRÄ", "straße", "\u212aelvin", "kelvin", ""}
	somePrefix = []string{"", "t", "T", "train", "TRAIN", "trÄ", "%", "tra_", "train%", "k", "strasse", "x"}
	someShares = []string{"", "a", "A", "b"}
	someOwners = []string{"", "a", "A", "b"} // share identifiers
)

// anyQuery compares random queries of random jobs with a plain reference.
func (e Engine) anyQuery(t *testing.T) {
	t.Helper()
	s := e.open(t)
	var queues, seq int64
	rapid.Check(t, func(rt *rapid.T) {
		queues++
		queue := fmt.Sprintf("queue-%d", queues) // of this check alone
		var b store.Batch
		for range rapid.IntRange(0, 40).Draw(rt, "jobs") {
			seq++
			b.Jobs = append(b.Jobs, someJob(rt, queue, seq))
		}
		noError(rt, s.Commit(t.Context(), b))
		for range 5 {
			q := someQuery(rt, queue, b.Jobs)
			got, err := s.Jobs(t.Context(), q)
			noError(rt, err)
			equal(rt, fmt.Sprintf("Jobs(%+v)", q), reference(b.Jobs, q), got)
			checkPages(rt, s, q)
		}
		checkEnded(rt, s, queue, b.Jobs)
	})
}

func someJob(rt *rapid.T, queue string, seq int64) job.Job {
	return job.Job{
		ID: fmt.Sprintf("job-%d", seq), Seq: seq, Queue: queue,
		Name:      rapid.SampledFrom(someNames).Draw(rt, "name"),
		Share:     rapid.SampledFrom(someShares).Draw(rt, "share"),
		Status:    statuses().Draw(rt, "status"),
		CreatedAt: someInstant(rt),
		StoppedAt: someInstant(rt),

		ShareIdentifier: rapid.SampledFrom(someOwners).Draw(rt, "identifier"),
	}
}

func someInstant(rt *rapid.T) time.Time {
	return epoch.Add(time.Duration(rapid.IntRange(0, 6).Draw(rt, "ms")) * time.Millisecond)
}

func someQuery(rt *rapid.T, queue string, jobs []job.Job) store.JobQuery {
	q := store.JobQuery{
		Queue:      queue,
		Statuses:   rapid.SliceOfN(statuses(), 0, 4).Draw(rt, "statuses"),
		NamePrefix: rapid.SampledFrom(somePrefix).Draw(rt, "prefix"),
		NameExact:  rapid.Bool().Draw(rt, "exact"),
		Limit:      rapid.IntRange(1, 50).Draw(rt, "limit"),
	}
	if rapid.Bool().Draw(rt, "by share") {
		share := rapid.SampledFrom(someShares).Draw(rt, "share")
		q.Share = &share
	}
	if rapid.Bool().Draw(rt, "by identifier") {
		q.Identifier = rapid.SampledFrom(someOwners).Draw(rt, "identifier")
	}
	if rapid.Bool().Draw(rt, "before") {
		q.CreatedBefore = someInstant(rt)
	}
	if rapid.Bool().Draw(rt, "after") {
		q.CreatedAfter = someInstant(rt)
	}
	if len(jobs) > 0 && rapid.Bool().Draw(rt, "continue") {
		last := rapid.SampledFrom(jobs).Draw(rt, "last of the page before")
		q.BeforeSeq, q.BeforeTime = last.Seq, last.CreatedAt
	}
	return q
}

// checkEnded asks for the jobs that ended since a time, which may be between
// two milliseconds.
func checkEnded(rt *rapid.T, s store.Store, queue string, jobs []job.Job) {
	since := someInstant(rt).Add(time.Duration(rapid.IntRange(0, 1).Draw(rt, "microseconds")) * time.Microsecond)
	var want []job.Job
	for _, j := range jobs {
		if j.ShareIdentifier != "" && j.Status.Finished() && !j.StoppedAt.Before(since) {
			want = append(want, j)
		}
	}
	got, err := s.Ended(rt.Context(), queue, since)
	noError(rt, err)
	equal(rt, fmt.Sprintf("Ended since %v", since), want, got)
}

// checkPages checks that the pages of a query, put together, are what one large
// page has.
func checkPages(rt *rapid.T, s store.Store, q store.JobQuery) {
	q.Limit = 1000
	want, err := s.Jobs(rt.Context(), q)
	noError(rt, err)
	q.Limit = 7
	var got []job.Job
	for {
		page, err := s.Jobs(rt.Context(), q)
		noError(rt, err)
		got = append(got, page...)
		if len(page) < q.Limit {
			break
		}
		last := page[len(page)-1]
		q.BeforeSeq, q.BeforeTime = last.Seq, last.CreatedAt
	}
	equal(rt, "pages put together", want, got)
}

// reference is what a query should select.
func reference(jobs []job.Job, q store.JobQuery) (out []job.Job) {
	for _, j := range jobs {
		if wanted(j, q) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, newestFirst)
	return out[:min(len(out), q.Limit)]
}

func newestFirst(a, b job.Job) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Seq, a.Seq))
}

func wanted(j job.Job, q store.JobQuery) bool {
	if len(q.Statuses) > 0 && !slices.Contains(q.Statuses, j.Status) {
		return false
	}
	if q.Share != nil && j.Share != *q.Share {
		return false
	}
	if q.Identifier != "" && j.ShareIdentifier != q.Identifier {
		return false
	}
	if q.NamePrefix != "" && !wantedName(j.Name, q.NamePrefix, q.NameExact) {
		return false
	}
	if !q.CreatedBefore.IsZero() && !j.CreatedAt.Before(q.CreatedBefore) {
		return false
	}
	if !q.CreatedAfter.IsZero() && !j.CreatedAt.After(q.CreatedAfter) {
		return false
	}
	return q.BeforeSeq == 0 || newestFirst(job.Job{Seq: q.BeforeSeq, CreatedAt: q.BeforeTime}, j) < 0
}

// wantedName compares runes, not bytes: forms of a letter differ in length.
func wantedName(name, prefix string, exact bool) bool {
	n, p := []rune(name), []rune(prefix)
	if len(n) < len(p) || exact && len(n) > len(p) {
		return false
	}
	return strings.EqualFold(string(n[:len(p)]), prefix)
}

func (e Engine) badQueries(t *testing.T) {
	t.Helper()
	s := e.open(t)
	tests := map[string]store.JobQuery{
		"Queue":      {Limit: 1},
		"Limit is 0": {Queue: "queue"},
		"Limit is -": {Queue: "queue", Limit: -1},
		"BeforeTime": {Queue: "queue", Limit: 1, BeforeSeq: 3},
	}
	for names, q := range tests {
		if _, err := s.Jobs(t.Context(), q); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("Jobs(%+v): %v; the error should name %s", q, err, names)
		}
	}
}

func (e Engine) names(t *testing.T) {
	t.Helper()
	s := e.open(t)
	var b store.Batch
	for i, name := range someNames {
		b.Jobs = append(b.Jobs, job.Job{ID: fmt.Sprint(i), Seq: int64(i + 1), Name: name, Queue: "queue", Status: job.Running})
	}
	mustCommit(t, s, b)
	tests := []struct {
		prefix string
		exact  bool
		want   string
	}{
		{"train", false, "train% TRAIN-2 Train train"},
		{"train", true, "Train train"},
		{"TRAIN-2", true, "TRAIN-2"},
		{"train%", false, "train%"},
		{"tra_", false, "tra_n"},
		{"%", false, ""},
		{"trä", true, "TRÄ trä"},
		{"KELVIN", true, "kelvin \u212aelvin"},
	}
	for _, test := range tests {
		jobs, err := s.Jobs(t.Context(), store.JobQuery{Queue: "queue", NamePrefix: test.prefix, NameExact: test.exact, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range jobs {
			got = append(got, j.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("jobs named %q (exact: %t): %q, want %q", test.prefix, test.exact, got, test.want)
		}
	}
}

// bounds asks with times between milliseconds for jobs at whole ones.
func (e Engine) bounds(t *testing.T) {
	t.Helper()
	s := e.open(t)
	at := epoch.Add(5 * time.Millisecond)
	mustCommit(t, s, store.Batch{Jobs: []job.Job{{ID: "job", Seq: 1, Queue: "queue", Status: job.Running, Token: "token", CreatedAt: at}}})
	tests := []struct {
		name string
		q    store.JobQuery
		want int
	}{
		{"created before its own time", store.JobQuery{CreatedBefore: at}, 0},
		{"created before a nanosecond later", store.JobQuery{CreatedBefore: at.Add(1)}, 1},
		{"created after its own time", store.JobQuery{CreatedAfter: at}, 0},
		{"created after a nanosecond earlier", store.JobQuery{CreatedAfter: at.Add(-1)}, 1},
		{"created after a nanosecond later", store.JobQuery{CreatedAfter: at.Add(1)}, 0},
	}
	for _, test := range tests {
		test.q.Queue, test.q.Limit = "queue", 10
		got, err := s.Jobs(t.Context(), test.q)
		if err != nil || len(got) != test.want {
			t.Errorf("%s: %d jobs, %v; want %d", test.name, len(got), err, test.want)
		}
	}
	for since, want := range map[time.Time]int{at.Add(-1): 1, at: 1, at.Add(1): 0} {
		if c, err := s.Load(t.Context(), since); err != nil || len(c.Tokens) != want {
			t.Errorf("%d tokens since %v of its own time, %v; want %d", len(c.Tokens), since.Sub(at), err, want)
		}
	}
}
