package bursarapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Governor answers the door's questions.
type Governor interface {
	Queues(context.Context) ([]resource.Queue, error)
	Policies(context.Context) ([]resource.Policy, error)
	Shares(ctx context.Context, queue string) ([]resource.Share, error)
	Balances(ctx context.Context, queue string) ([]governor.Balance, error)
	Waiting(ctx context.Context, queue string, perShare int) ([]governor.Why, error)
	Job(ctx context.Context, id string) (job.Job, error)
	Jobs(context.Context, store.JobQuery) ([]job.Job, error)
	Why(ctx context.Context, id string) (governor.Why, error)
	Journal(ctx context.Context, after int64, limit int) ([]store.Entry, error)
	Plan(context.Context, governor.Declaration) (governor.Plan, error)
	Apply(ctx context.Context, d governor.Declaration, version string) (governor.Plan, error)
	Declared(ctx context.Context, queue string) (governor.Declaration, error)
	Standing(ctx context.Context, queue string) (governor.Standing, error)
}

// Verifier says who signed a request.
type Verifier interface {
	Verify(r *http.Request, body []byte) (auth.Principal, error)
}

// Config is what a door needs.
type Config struct {
	Governor Governor
	OpenLog  OpenLog
	Verifier Verifier        // of requests signed for Service
	Grace    time.Duration   // that workers have to stop unless a policy says otherwise
	Closing  <-chan struct{} // closed when the server stops: nobody waits for news any longer
	Log      *slog.Logger
}

// door answers requests.
type door struct {
	Config
}

// New returns the door. It answers every path under Prefix.
func New(c Config) http.Handler {
	d := &door{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathQueues, answer(d, d.queues))
	mux.HandleFunc("GET "+pathBalances, answer(d, d.balances))
	mux.HandleFunc("GET "+pathWaiting, answer(d, d.waiting))
	mux.HandleFunc("GET "+pathJobs, answer(d, d.jobs))
	mux.HandleFunc("GET "+pathJob, answer(d, d.job))
	mux.HandleFunc("GET "+pathJournal, answer(d, d.journal))
	mux.HandleFunc("GET "+pathLog, d.log)
	mux.HandleFunc("GET "+pathPolicy, answer(d, d.policy))
	mux.HandleFunc("GET "+pathStanding, answer(d, d.standing))
	mux.HandleFunc("POST "+pathPlan, answer(d, d.plan))
	mux.HandleFunc("POST "+pathApply, answer(d, d.apply))
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) {
		d.refuse(w, r, &StatusError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path)})
	})
	return d.authenticated(mux)
}

// authenticated lets signed requests pass.
func (d *door) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := bodyOf(w, r)
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		principal, err := d.Verifier.Verify(r, body)
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r.WithContext(governor.WithPrincipal(r.Context(), principal.Name)))
	})
}

// bodyOf reads a request's body, which is a policy file or nothing.
func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPolicy))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, &StatusError{
			Status:  http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the policy file has more than %d bytes, the most that it may have", large.Limit),
		}
	}
	if err != nil {
		return nil, invalid("the request's body cannot be read: %v", err)
	}
	return body, nil
}

// answer makes a handler of a function from a request's parameters to a reply.
func answer[T any](d *door, f func(context.Context, parameters) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reply, err := f(r.Context(), parameters{r.URL.Query(), r.Body})
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		d.write(w, r, http.StatusOK, reply)
	}
}

func (d *door) queues(ctx context.Context, _ parameters) (queueList, error) {
	queues, err := d.Governor.Queues(ctx)
	if err != nil {
		return queueList{}, err
	}
	policies, err := d.Governor.Policies(ctx)
	if err != nil {
		return queueList{}, err
	}
	list := queueList{Queues: []Queue{}}
	for _, q := range queues {
		shares, err := d.Governor.Shares(ctx, q.Name)
		if err != nil {
			return queueList{}, err
		}
		view := queueOf(q, shares)
		view.FairShare = slices.ContainsFunc(policies, func(p resource.Policy) bool { return p.Name == q.Policy && p.FairShare != nil })
		list.Queues = append(list.Queues, view)
	}
	return list, nil
}

func queueOf(q resource.Queue, shares []resource.Share) Queue {
	view := Queue{Name: q.Name, Environment: q.Environment, Policy: q.Policy, State: string(q.State), Priority: q.Priority}
	for _, s := range shares {
		view.Shares = append(view.Shares, s.Name)
	}
	return view
}

func (d *door) balances(ctx context.Context, p parameters) (balanceList, error) {
	balances, err := d.Governor.Balances(ctx, p.Get("queue"))
	if balances == nil {
		balances = []Balance{}
	}
	return balanceList{Balances: balances}, err
}

func (d *door) waiting(ctx context.Context, p parameters) (jobList, error) {
	queue := p.Get("queue")
	if queue == "" {
		return jobList{}, invalid("queue is missing; name a job queue")
	}
	limit, err := p.count("limit", MaxWaiting, MaxWaiting)
	if err != nil {
		return jobList{}, err
	}
	jobs, err := d.Governor.Waiting(ctx, queue, limit)
	return listOf(jobs), err
}

func (d *door) job(ctx context.Context, p parameters) (Job, error) {
	id, err := d.resolve(ctx, p.Get("job"))
	if err != nil {
		return Job{}, err
	}
	return d.Governor.Why(ctx, id)
}

// journal returns entries, waiting for the first of them if asked to.
func (d *door) journal(ctx context.Context, p parameters) (entryList, error) {
	after, err := p.number("after", 0)
	if err != nil {
		return entryList{}, err
	}
	limit, err := p.count("limit", DefaultList, MaxList)
	if err != nil {
		return entryList{}, err
	}
	wait, err := p.duration("wait", MaxWait)
	if err != nil {
		return entryList{}, err
	}
	return d.entriesAfter(ctx, after, limit, wait)
}

// pollEvery is how often the door looks for news that a client waits for.
const pollEvery = 100 * time.Millisecond

func (d *door) entriesAfter(ctx context.Context, after int64, limit int, wait time.Duration) (entryList, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		entries, err := d.Governor.Journal(ctx, after, limit)
		if err != nil {
			return entryList{}, err
		}
		if len(entries) > 0 {
			return entryList{Entries: entries}, nil
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return entryList{Entries: []Entry{}}, nil
		case <-d.Closing:
			return entryList{Entries: []Entry{}}, nil
		case <-ctx.Done():
			return entryList{}, ctx.Err()
		}
	}
}

// queueNames is the queue given, or all of them.
func (d *door) queueNames(ctx context.Context, queue string) ([]string, error) {
	if queue != "" {
		return []string{queue}, nil
	}
	queues, err := d.Governor.Queues(ctx)
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	return names, err
}

// refuse answers with an error's status and message.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	gone := r.Context().Err() != nil // the client has, and with it whoever would read the reply
	if status >= http.StatusInternalServerError && !gone {
		d.Log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "error", err)
	}
	d.write(w, r, status, problem{Message: err.Error()})
}

func (d *door) write(w http.ResponseWriter, r *http.Request, status int, reply any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(reply); err != nil {
		d.Log.DebugContext(r.Context(), "a client did not take its reply", "path", r.URL.Path, "error", err)
	}
}

func statusOf(err error) int {
	var status *StatusError
	var refusal *governor.Refusal
	var unauthenticated *auth.Error
	switch {
	case errors.As(err, &status):
		return status.Status
	case errors.As(err, &unauthenticated):
		return auth.StatusCode
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound
	case errors.As(err, &refusal) && refusal.Problem == governor.Missing:
		return http.StatusNotFound
	case errors.As(err, &refusal) && refusal.Problem == governor.Conflict:
		return http.StatusConflict
	case errors.As(err, &refusal):
		return http.StatusBadRequest
	case errors.Is(err, governor.ErrUnavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func invalid(format string, args ...any) error {
	return &StatusError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// parameters are a request's: those of its query, and its body.
type parameters struct {
	url.Values
	body io.Reader
}

func (p parameters) number(name string, otherwise int64) (int64, error) {
	text := p.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("%s is %q; it must be a whole number that is not negative", name, text)
	}
	return n, nil
}

// count reads a number from 1 to most.
func (p parameters) count(name string, otherwise, most int) (int, error) {
	n, err := p.number(name, int64(otherwise))
	if err != nil || n < 1 || n > int64(most) {
		return 0, invalid("%s is %q; it must be a whole number from 1 to %d", name, p.Get(name), most)
	}
	return int(n), nil
}

func (p parameters) flag(name string) (bool, error) {
	text := p.Get(name)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid("%s is %q; it must be true or false", name, text)
	}
	return b, nil
}

func (p parameters) duration(name string, most time.Duration) (time.Duration, error) {
	text := p.Get(name)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, invalid("%s is %q; it must be a duration such as 5s, at most %s", name, text, most)
	}
	return d, nil
}
