package batchapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/job"
)

// failing is a governor that fails at every submission, priority and listing.
type failing struct {
	Governor
	err error
}

func (f *failing) Submit(context.Context, governor.Submission) (job.Job, error) {
	return job.Job{}, f.err
}

func TestErrorsOfTheGovernor(t *testing.T) {
	const secret = "disk sda1 at /srv/private"
	for name, c := range map[string]struct {
		err           error
		status        int
		code, message string
		logged        bool
	}{
		"a refusal":     {&governor.Refusal{Problem: governor.Conflict, Message: "Job queue q has state DISABLED."}, 400, "ClientException", "Job queue q has state DISABLED.", false},
		"a wrapped one": {fmt.Errorf("submit: %w", &governor.Refusal{Message: "no"}), 400, "ClientException", "no", false},
		"unavailable":   {fmt.Errorf("%w: %s", governor.ErrUnavailable, secret), 500, "ServerException", "the server cannot take requests now, and changed nothing; try again", true},
		"a failure":     {errors.New(secret), 500, "ServerException", "its log says why", true},
		"a gone client": {context.Canceled, 500, "ServerException", "its log says why", true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			door := New(Config{Governor: &failing{err: c.err}, Verifier: trusting{}, Partition: "aws", Region: testRegion, AccountID: testAccount,
				NewID: counter("request-%d"), Log: slog.New(slog.NewTextHandler(&log, nil))})
			r := send(door, "POST", "/v1/submitservicejob", submission("a", "queue", "QS1", ""))
			wantRefusal(t, r, c.status, c.code, c.message)
			if strings.Contains(r.body, secret) {
				t.Errorf("the reply tells what the server is made of: %s", r.body)
			}
			if logged := strings.Contains(log.String(), c.err.Error()) && strings.Contains(log.String(), "request-1"); logged != c.logged {
				t.Errorf("logged: %v, want %v: %s", logged, c.logged, log.String())
			}
		})
	}
}

// refusing is a verifier that knows nobody.
type refusing struct{ err error }

func (v refusing) Verify(*http.Request, []byte) (auth.Principal, error) {
	return auth.Principal{}, v.err
}

func TestRequestsThatAreNotAuthenticated(t *testing.T) {
	door := New(Config{Governor: nil, // must not be reached
		Verifier: refusing{&auth.Error{Code: auth.MissingAuthenticationToken, Message: "Missing Authentication Token"}},
		NewID:    counter("request-%d"), Log: slog.New(slog.DiscardHandler)})
	for _, target := range []string{"/v1/submitservicejob", "/v1/tags/x", "/v1/nothing", "/"} {
		wantRefusal(t, send(door, "POST", target, "nonsense"), http.StatusForbidden, auth.MissingAuthenticationToken, "Missing Authentication Token")
	}
}

// Commands are the principal's: the governor journals them by name.
func TestCommandsAreByTheirPrincipal(t *testing.T) {
	h := newHouse(t)
	h.fifo(t)
	entries, err := h.store.Journal(context.Background(), 0, 100)
	if err != nil || len(entries) == 0 {
		t.Fatalf("journal: %v, %v", entries, err)
	}
	if entries[0].By != "tester" {
		t.Errorf("the command is by %q, want tester", entries[0].By)
	}
}

func TestABodyThatCannotBeRead(t *testing.T) {
	h := newHouse(t)
	r := httptest.NewRequest(http.MethodPost, "/v1/describejobqueues", iotest.ErrReader(errors.New("connection reset")))
	w := httptest.NewRecorder()
	h.door.ServeHTTP(w, r)
	wantRefusal(t, reply{w.Code, w.Header(), w.Body.String()}, http.StatusBadRequest, "ClientException", "connection reset")
}

// Whatever a client sends, it gets an answer in the right form, and nothing is
// the server's fault.
func FuzzOperations(f *testing.F) {
	h := newHouse(f)
	h.quota(f)
	h.fifo(f)
	ops := make([]string, 0, len(h.door.(*door).operations))
	for op := range h.door.(*door).operations {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	for i := range ops {
		f.Add(uint8(i), []byte(`{}`))
		f.Add(uint8(i), []byte(submission("job", "queue", "QS1", `,"retryStrategy":{"attempts":3,"evaluateOnExit":[{"action":"exit","onStatusReason":"*"}]},"tags":{"a":"b"},"clientToken":"t"`)))
		f.Add(uint8(i), []byte(`{"jobQueue":"queue","jobQueues":["queue"],"serviceEnvironments":["env"],"arns":["`+arnPrefix+`scheduling-policy/policy"],"quotaShareArn":"`+arnPrefix+`job-queue/queue/quota-share/QS1","maxResults":1}`))
		f.Add(uint8(i), []byte(`{"jobId":"x","schedulingPriority":1,"reason":"r","jobs":["x"],"filters":[{"name":"AFTER_CREATED_AT","values":["1"]}],"jobQueue":"fifo"}`))
		f.Add(uint8(i), []byte(`{"name":"p","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"},"state":"DISABLED","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}],"serviceEnvironment":"env"}`))
	}
	f.Fuzz(func(t *testing.T, op uint8, body []byte) {
		r := send(h.door, "POST", "/v1/"+ops[int(op)%len(ops)], string(body))
		if r.status != http.StatusOK && r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		members := decode(t, r.body)
		if r.status == http.StatusOK {
			return
		}
		if message, _ := members["message"].(string); message == "" || members["__type"] != r.header.Get("X-Amzn-Errortype") {
			t.Fatalf("a refusal in another form: %s", r.body)
		}
	})
}

func FuzzTags(f *testing.F) {
	h := newHouse(f)
	h.quota(f)
	f.Add(uint8(0), arnPrefix+"job-queue/queue", "tagKeys=a", []byte(`{}`))
	f.Add(uint8(1), arnPrefix+"job-queue/queue/quota-share/QS1", "", []byte(`{"tags":{"a":"b"}}`))
	f.Add(uint8(2), arnPrefix+"scheduling-policy/policy", "tagKeys=a&tagKeys=b;c", []byte(nil))
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut}
	f.Fuzz(func(t *testing.T, method uint8, arn, query string, body []byte) {
		r := httptest.NewRequest(methods[int(method)%len(methods)], "/", bytes.NewReader(body))
		r.URL = &url.URL{Path: tagsPrefix + arn, RawQuery: query}
		w := httptest.NewRecorder()
		h.door.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		decode(t, w.Body.String())
	})
}

func BenchmarkSubmit(b *testing.B) {
	door := doorTo(&failing{})
	body := submission("train", "queue", "QS1", `,"schedulingPriority":5,"clientToken":"0d7d8c36-5a3d-4b87-b7e9-90c6b8a61a0f",
		"retryStrategy":{"attempts":2,"evaluateOnExit":[{"action":"RETRY","onStatusReason":"*"}]},"timeoutConfig":{"attemptDurationSeconds":3600},"tags":{"team":"a"}`)
	b.ReportAllocs()
	for b.Loop() {
		if r := send(door, "POST", "/v1/submitservicejob", body); r.status != http.StatusOK {
			b.Fatal(r.body)
		}
	}
}
