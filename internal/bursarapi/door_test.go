package bursarapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/store"
)

// books is a Governor that answers from lists.
type books struct {
	jobs    []job.Job // newest first
	entries func(after int64) []store.Entry
	err     error // of every question, if set

	declared governor.Declaration // that was planned or applied last
}

func (b *books) Queues(context.Context) ([]resource.Queue, error) {
	return []resource.Queue{{Name: "a", Policy: "p", Environment: "e", State: resource.Enabled, Priority: 1}, {Name: "b", Environment: "f", State: resource.Enabled}, {Name: "c", Policy: "fair", Environment: "f", State: resource.Enabled}}, b.err
}

func (b *books) Policies(context.Context) ([]resource.Policy, error) {
	return []resource.Policy{{Name: "p", IdleAssignment: resource.IdleFIFO}, {Name: "fair", FairShare: &resource.FairShare{}}}, b.err
}

func (b *books) Shares(_ context.Context, queue string) ([]resource.Share, error) {
	if queue == "a" {
		return []resource.Share{{Name: "QS1"}, {Name: "QS2"}}, b.err
	}
	return nil, b.err
}

func (b *books) Balances(_ context.Context, queue string) ([]governor.Balance, error) {
	if queue == "none" {
		return nil, &governor.Refusal{Problem: governor.Missing, Message: "Job queue none does not exist."}
	}
	return []governor.Balance{{Queue: "a", Share: "QS1", Units: []governor.UnitBalance{{Unit: "ml.g5.xlarge", Nominal: 2, Own: 1, Free: 1}}}}, b.err
}

func (b *books) Waiting(_ context.Context, _ string, perShare int) ([]governor.Why, error) {
	return []governor.Why{{Job: b.jobs[0], Sentence: fmt.Sprintf("one of %d", perShare)}}, b.err
}

func (b *books) Job(_ context.Context, id string) (job.Job, error) {
	for _, j := range b.jobs {
		if j.ID == id {
			return j, b.err
		}
	}
	return job.Job{}, errors.Join(b.err, &governor.Refusal{Problem: governor.Missing, Message: "no such job"})
}

func (b *books) Jobs(_ context.Context, q store.JobQuery) ([]job.Job, error) {
	var found []job.Job
	for _, j := range b.jobs {
		if j.Queue == q.Queue && (q.NamePrefix == "" || strings.EqualFold(j.Name, q.NamePrefix)) &&
			(q.Share == nil || j.Share == *q.Share) && (q.Identifier == "" || j.ShareIdentifier == q.Identifier) && (q.Statuses == nil || slices.Contains(q.Statuses, j.Status)) {
			found = append(found, j)
		}
	}
	return found[:min(len(found), q.Limit)], b.err
}

func (b *books) Why(ctx context.Context, id string) (governor.Why, error) {
	j, err := b.Job(ctx, id)
	return governor.Why{Job: j, Reason: &quota.Reason{Code: quota.Behind}, Sentence: "it waits", Decisions: []governor.Told{{Sentence: "it was told to wait"}}}, err
}

func (b *books) Journal(_ context.Context, after int64, _ int) ([]store.Entry, error) {
	return b.entries(after), b.err
}

func (b *books) Plan(_ context.Context, d governor.Declaration) (governor.Plan, error) {
	b.declared = d
	return governor.Plan{Name: d.Name, Version: "7-planned", Changes: []governor.Change{}}, b.err
}

func (b *books) Apply(_ context.Context, d governor.Declaration, version string) (governor.Plan, error) {
	b.declared = d
	if version == "old" {
		return governor.Plan{}, &governor.Refusal{Problem: governor.Conflict, Message: "it changed"}
	}
	return governor.Plan{Name: d.Name, Version: version, Changes: []governor.Change{}}, b.err
}

func (b *books) Declared(_ context.Context, queue string) (governor.Declaration, error) {
	if queue != b.declared.Name {
		return governor.Declaration{}, &governor.Refusal{Problem: governor.Missing, Message: "no such queue"}
	}
	return b.declared, b.err
}

func (b *books) Standing(ctx context.Context, queue string) (governor.Standing, error) {
	d, err := b.Declared(ctx, queue)
	return governor.Standing{At: at(9), Declaration: d, Jobs: b.jobs}, err
}

// shelf is an OpenLog: each log says what was asked for.
func shelf(_ context.Context, run runner.Key, worker int, stream string, follow bool, done func() bool) io.ReadCloser {
	return io.NopCloser(strings.NewReader(fmt.Sprintf("%s run %d worker %d %s follow %v ended %v", run.Job, run.Run, worker, stream, follow, done())))
}

// anyone lets requests pass that are signed at all.
type anyone struct{}

func (anyone) Verify(r *http.Request, _ []byte) (auth.Principal, error) {
	if r.Header.Get("Authorization") == "" {
		return auth.Principal{}, &auth.Error{Code: auth.MissingAuthenticationToken, Message: "unsigned"}
	}
	return auth.Principal{Name: "ada"}, nil
}

func signed(r *http.Request, _ []byte) error {
	r.Header.Set("Authorization", "signed")
	return nil
}

const (
	id1 = "aaaa0000-0000-4000-8000-000000000001"
	id2 = "aaaa1111-0000-4000-8000-000000000002"
	id3 = "bbbb0000-0000-4000-8000-000000000003"
)

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func library() *books {
	return &books{jobs: []job.Job{
		{ID: id3, Seq: 3, Name: "train", Queue: "b", ShareIdentifier: "ada", Status: job.Succeeded, CreatedAt: at(3), Runs: 1},
		{ID: id2, Seq: 2, Name: "train", Queue: "a", Share: "QS1", Status: job.Running, CreatedAt: at(2), Runs: 2, Workers: 2, Current: &job.Attempt{Run: 2}},
		{ID: id1, Seq: 1, Name: "eval", Queue: "a", Share: "QS2", Status: job.Runnable, CreatedAt: at(1)},
	}}
}

// serve returns a client of a door over the books.
func serve(t *testing.T, b *books, closing <-chan struct{}) *Client {
	t.Helper()
	server := httptest.NewServer(New(Config{
		Governor: b, OpenLog: shelf, Verifier: anyone{}, Grace: time.Minute, Closing: closing, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	return NewClient(server.URL+"/", server.Client(), signed)
}

func TestQueuesNameTheirShares(t *testing.T) {
	got, err := serve(t, library(), nil).Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Queue{
		{Name: "a", Environment: "e", Policy: "p", State: "ENABLED", Priority: 1, Shares: []string{"QS1", "QS2"}},
		{Name: "b", Environment: "f", State: "ENABLED"},
		{Name: "c", Environment: "f", Policy: "fair", FairShare: true, State: "ENABLED"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBalancesAndWaitingPassThrough(t *testing.T) {
	c := serve(t, library(), nil)
	balances, err := c.Balances(t.Context(), "")
	if err != nil || len(balances) != 1 || balances[0].Units[0].Nominal != 2 {
		t.Errorf("balances: %v, %v", balances, err)
	}
	waiting, err := c.Waiting(t.Context(), "a", 7)
	if err != nil || len(waiting) != 1 || waiting[0].Sentence != "one of 7" {
		t.Errorf("waiting: %v, %v", waiting, err)
	}
}

func TestJobsAreTheNewestOfAllQueues(t *testing.T) {
	tests := []struct {
		name  string
		query JobQuery
		want  []string
	}{
		{"all", JobQuery{}, []string{id3, id2, id1}},
		{"one queue", JobQuery{Queue: "a"}, []string{id2, id1}},
		{"one share", JobQuery{Share: "QS2"}, []string{id1}},
		{"one share identifier", JobQuery{ShareIdentifier: "ada"}, []string{id3}},
		{"states", JobQuery{Statuses: []job.Status{job.Running, job.Runnable}}, []string{id2, id1}},
		{"at most", JobQuery{Limit: 2}, []string{id3, id2}},
	}
	c := serve(t, library(), nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			jobs, err := c.Jobs(t.Context(), tt.query)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, j := range jobs {
				ids = append(ids, j.Job.ID)
				if explained := j.Sentence != ""; explained == j.Job.Status.Finished() || j.Decisions != nil {
					t.Errorf("job %s, %s, has sentence %q and decisions %v", j.Job.Name, j.Job.Status, j.Sentence, j.Decisions)
				}
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestJobIsFoundByWhatPeopleCallIt(t *testing.T) {
	tests := []struct {
		ref  string
		want string
		err  string
	}{
		{id1, id1, ""},
		{"arn:aws:batch:us-east-1:000000000000:service-job/" + id2, id2, ""},
		{"eval", id1, ""},
		{"train", id3, ""}, // the newest
		{"TRAIN", id3, ""}, // as Batch's filter does
		{"bbbb", id3, ""},
		{"aaaa1", id2, ""},
		{"aaaa", "", "is the beginning of the ids of several jobs"},
		{"bbb", "", `there is no job with id, ARN or name "bbb"`}, // too short for a prefix
		{"other", "", `there is no job with id, ARN or name "other"`},
		{"", "", "job is missing"},
	}
	c := serve(t, library(), nil)
	for _, tt := range tests {
		got, err := c.Job(t.Context(), tt.ref)
		if got.Job.ID != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got job %q and error %v; want %q and %q", tt.ref, got.Job.ID, err, tt.want, tt.err)
		}
	}
}

func TestLogOfARun(t *testing.T) {
	tests := []struct {
		query LogQuery
		want  string
		err   string
	}{
		{LogQuery{Job: id2}, id2 + " run 2 worker 1 stdout follow false ended false", ""},
		{LogQuery{Job: id2, Run: 1, Worker: 2, Stderr: true, Follow: true}, id2 + " run 1 worker 2 stderr follow true ended true", ""},
		{LogQuery{Job: id2, Run: 3}, "", `run is "3"; it must be a whole number from 1 to 2`},
		{LogQuery{Job: id2, Worker: 3}, "", `worker is "3"; it must be a whole number from 1 to 2`},
		{LogQuery{Job: id1}, "", "job eval (" + id1 + ") has not run yet"},
		{LogQuery{Job: "nobody"}, "", "there is no job"},
	}
	c := serve(t, library(), nil)
	for _, tt := range tests {
		var got []byte
		output, err := c.Log(t.Context(), tt.query)
		if err == nil {
			got, err = io.ReadAll(output)
			output.Close()
		}
		if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: got %q and error %v; want %q and %q", tt.query, got, err, tt.want, tt.err)
		}
	}
}

func TestJournalWaitsForNews(t *testing.T) {
	asked := 0
	b := library()
	b.entries = func(after int64) []store.Entry {
		if asked++; asked < 3 {
			return nil
		}
		return []store.Entry{{Seq: after + 1, Kind: store.Decision, Name: "grant"}}
	}
	entries, err := serve(t, b, nil).Journal(t.Context(), 41, 10, 10*time.Second)
	if err != nil || len(entries) != 1 || entries[0].Seq != 42 || asked != 3 {
		t.Errorf("got %v and error %v after %d looks; want entry 42 after 3", entries, err, asked)
	}
}

func TestJournalWaitsNoLongerThanAsked(t *testing.T) {
	b := library()
	b.entries = func(int64) []store.Entry { return nil }
	entries, err := serve(t, b, nil).Journal(t.Context(), 0, 10, 0)
	if err != nil || len(entries) != 0 {
		t.Errorf("got %v and error %v, want nothing at once", entries, err)
	}
}

func TestNobodyWaitsForAServerThatStops(t *testing.T) {
	closing := make(chan struct{})
	b := library()
	b.entries = func(int64) []store.Entry {
		select {
		case <-closing:
		default:
			close(closing)
		}
		return nil
	}
	began := time.Now()
	if _, err := serve(t, b, closing).Journal(t.Context(), 0, 10, MaxWait); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited > MaxWait/2 {
		t.Errorf("waited %s although the server was stopping", waited)
	}
}

func TestRefusals(t *testing.T) {
	b := library()
	c := serve(t, b, nil)
	tests := []struct {
		name    string
		path    string
		err     error
		status  int
		message string
	}{
		{"a status that there is not", pathJobs + "?status=SLEEPING", nil, 400, `status is "SLEEPING"; it must be one of`},
		{"a limit of zero", pathJobs + "?limit=0", nil, 400, `limit is "0"; it must be a whole number from 1 to 1000`},
		{"a limit that is no number", pathJournal + "?limit=x", nil, 400, `limit is "x"`},
		{"a negative number", pathJournal + "?after=-1", nil, 400, `after is "-1"; it must be a whole number that is not negative`},
		{"a wait that is too long", pathJournal + "?wait=1h", nil, 400, `wait is "1h"; it must be a duration such as 5s, at most 30s`},
		{"a flag that is none", pathLog + "?job=" + id2 + "&follow=perhaps", nil, 400, `follow is "perhaps"; it must be true or false`},
		{"no queue", pathWaiting, nil, 400, "queue is missing"},
		{"a queue that there is not", pathBalances + "?queue=none", nil, 404, "Job queue none does not exist."},
		{"a path that there is not", Prefix + "nothing", nil, 404, "there is no GET /bursar/v1/nothing"},
		{"a governor that stops", pathBalances, governor.ErrUnavailable, 503, "cannot accept commands now"},
		{"a governor that fails", pathQueues, errors.New("the disk is gone"), 500, "the disk is gone"},
		{"a job while it fails", pathJob + "?job=x", errors.New("the disk is gone"), 500, "the disk is gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.err = tt.err
			defer func() { b.err = nil }()
			path, query, _ := strings.Cut(tt.path, "?")
			values := map[string][]string{}
			for pair := range strings.SplitSeq(query, "&") {
				if name, value, ok := strings.Cut(pair, "="); ok {
					values[name] = []string{value}
				}
			}
			_, err := c.open(t.Context(), path, values)
			var refused *StatusError
			if !errors.As(err, &refused) || refused.Status != tt.status || !strings.Contains(refused.Message, tt.message) {
				t.Errorf("got %v, want status %d and %q", err, tt.status, tt.message)
			}
		})
	}
}

func TestUnsignedRequestsAreRefused(t *testing.T) {
	c := serve(t, library(), nil)
	c.sign = func(*http.Request, []byte) error { return nil }
	_, err := c.Queues(t.Context())
	var refused *StatusError
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("got error %v, want status 403", err)
	}
}

func TestClientTellsOfAnythingThatAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>not Bursar</html>", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	_, err := NewClient(server.URL, server.Client(), signed).Queues(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the server answered 418") {
		t.Errorf("got error %v", err)
	}
}
