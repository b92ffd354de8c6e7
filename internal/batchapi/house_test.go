package batchapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/simulated"
	"github.com/bursar-io/bursar/internal/store/memory"
)

const (
	testRegion  = "us-east-1"
	testAccount = "123456789012"
	arnPrefix   = "arn:aws:batch:us-east-1:123456789012:"
)

var testStart = time.UnixMilli(1_774_000_000_000)

// house is a whole house in memory behind the door.
type house struct {
	door     http.Handler
	clock    *clock.Manual
	store    *memory.Store
	governor *governor.Governor
}

// trusting takes everybody's word.
type trusting struct{}

func (trusting) Verify(*http.Request, []byte) (auth.Principal, error) {
	return auth.Principal{Name: "tester"}, nil
}

// newHouse starts a house whose jobs run for an hour from the moment the clock
// is turned, and which makes identifiers by counting.
func newHouse(tb testing.TB) *house {
	tb.Helper()
	h := &house{clock: clock.NewManual(testStart), store: memory.New()}
	h.governor = startGovernor(tb, h.store, h.clock, func(runner.Attempt) simulated.Program {
		return simulated.Program{Runtime: time.Hour}
	})
	h.door = doorTo(h.governor)
	return h
}

func startGovernor(tb testing.TB, store *memory.Store, clock simulated.Clock, program func(runner.Attempt) simulated.Program) *governor.Governor {
	tb.Helper()
	g := governor.New(governor.Config{
		Store:          store,
		NewRunner:      simulated.NewWorld(clock, 2*time.Minute, program).Attach,
		Clock:          clock,
		NewID:          counter("00000000-0000-4000-8000-%012d"),
		NewSuffix:      counter("%032d"),
		TrainingJobARN: func(name string) string { return "arn:aws:sagemaker:us-east-1:123456789012:training-job/" + name },
		Log:            slog.New(slog.DiscardHandler),
	})
	if err := g.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func counter(format string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf(format, n.Add(1)) }
}

func doorTo(g Governor) http.Handler {
	return New(Config{
		Governor: g, Verifier: trusting{}, Partition: "aws", Region: testRegion, AccountID: testAccount,
		NewID: counter("request-%d"), Log: slog.New(slog.DiscardHandler),
	})
}

// reply is what a client sees.
type reply struct {
	status int
	header http.Header
	body   string
}

func send(door http.Handler, method, target, body string) reply {
	r := httptest.NewRequest(method, "http://bursar.test"+target, strings.NewReader(body))
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

// call calls an operation that must succeed, and returns its reply.
func (h *house) call(tb testing.TB, op, body string) map[string]any {
	tb.Helper()
	r := send(h.door, "POST", "/v1/"+op, body)
	if r.status != http.StatusOK {
		tb.Fatalf("%s %s: status %d, %s", op, body, r.status, r.body)
	}
	return decode(tb, r.body)
}

// decode keeps numbers as they are written: 9.0 is not 9.
func decode(tb testing.TB, body string) map[string]any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(body)))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		tb.Fatalf("reply %s: %v", body, err)
	}
	return m
}

// wantJSON compares a reply with the one that is right.
func wantJSON(tb testing.TB, got map[string]any, want string) {
	tb.Helper()
	if diff := cmp.Diff(decode(tb, want), got); diff != "" {
		tb.Errorf("reply differs (-want +got):\n%s", diff)
	}
}

// wantRefusal checks the shape of a refusal, and that its message has a part.
func wantRefusal(tb testing.TB, r reply, status int, code, part string) {
	tb.Helper()
	if r.status != status {
		tb.Errorf("status %d, want %d: %s", r.status, status, r.body)
	}
	for _, header := range []string{"X-Amzn-Errortype", "X-Amzn-Requestid", "Content-Type"} {
		if r.header.Get(header) == "" {
			tb.Errorf("no header %s", header)
		}
	}
	if got := r.header.Get("X-Amzn-Errortype"); got != code {
		tb.Errorf("X-Amzn-Errortype %q, want %q", got, code)
	}
	body := decode(tb, r.body)
	if body["code"] != code || body["__type"] != code {
		tb.Errorf("code %v and __type %v, want %q", body["code"], body["__type"], code)
	}
	if message, _ := body["message"].(string); message == "" || !strings.Contains(message, part) {
		tb.Errorf("message %q, want one with %q", message, part)
	}
}

// quota sets up a queue of three instances and three shares of one each.
func (h *house) quota(tb testing.TB) {
	tb.Helper()
	h.call(tb, "createschedulingpolicy", `{"name":"policy","quotaSharePolicy":{"idleResourceAssignmentStrategy":"FIFO"}}`)
	h.call(tb, "createserviceenvironment", `{"serviceEnvironmentName":"env","serviceEnvironmentType":"SAGEMAKER_TRAINING","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":3}]}`)
	h.call(tb, "createjobqueue", `{"jobQueueName":"queue","priority":1,"jobQueueType":"SAGEMAKER_TRAINING","computeEnvironmentOrder":[],
		"schedulingPolicyArn":"`+arnPrefix+`scheduling-policy/policy","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"env"}]}`)
	for _, share := range []string{"QS1", "QS2", "QS3"} {
		h.call(tb, "createquotashare", `{"quotaShareName":"`+share+`","jobQueue":"queue","capacityLimits":[{"capacityUnit":"ml.g5.xlarge","maxCapacity":1}],
			"resourceSharingConfiguration":{"strategy":"LEND_AND_BORROW"},"preemptionConfiguration":{"inSharePreemption":"ENABLED"}}`)
	}
}

// fifo sets up a queue without shares on an environment that counts instances.
func (h *house) fifo(tb testing.TB) {
	tb.Helper()
	h.call(tb, "createserviceenvironment", `{"serviceEnvironmentName":"counted","serviceEnvironmentType":"SAGEMAKER_TRAINING","capacityLimits":[{"capacityUnit":"NUM_INSTANCES","maxCapacity":2}]}`)
	h.call(tb, "createjobqueue", `{"jobQueueName":"fifo","priority":1,"jobQueueType":"SAGEMAKER_TRAINING","serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"counted"}]}`)
}

// fair sets up a fair-share queue on the environment of fifo, which comes first.
func (h *house) fair(tb testing.TB) {
	tb.Helper()
	h.call(tb, "createschedulingpolicy", `{"name":"byuse","fairsharePolicy":{}}`)
	h.call(tb, "createjobqueue", `{"jobQueueName":"fair","priority":2,"jobQueueType":"SAGEMAKER_TRAINING","schedulingPolicyArn":"`+arnPrefix+`scheduling-policy/byuse",
		"serviceEnvironmentOrder":[{"order":1,"serviceEnvironment":"counted"}]}`)
}

const testPayload = `{"TrainingJobName":"train","ResourceConfig":{"InstanceType":"ml.g5.xlarge","InstanceCount":1,"VolumeSizeInGB":1},"AlgorithmSpecification":{"ContainerEntrypoint":["true"],"TrainingInputMode":"File"}}`

// submission is the body of a submission: more is added to its members.
func submission(name, queue, share, more string) string {
	payload, err := json.Marshal(testPayload)
	if err != nil {
		return err.Error()
	}
	if share != "" {
		more = `,"quotaShareName":"` + share + `"` + more
	}
	return `{"jobName":"` + name + `","jobQueue":"` + queue + `","serviceJobType":"SAGEMAKER_TRAINING","serviceRequestPayload":` + string(payload) + more + `}`
}

// submit submits a job and returns its id.
func (h *house) submit(tb testing.TB, name, queue, share, more string) string {
	tb.Helper()
	id, _ := h.call(tb, "submitservicejob", submission(name, queue, share, more))["jobId"].(string)
	return id
}

// reach turns the clock until a job has a status.
func (h *house) reach(tb testing.TB, id, status string) map[string]any {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		j := h.call(tb, "describeservicejob", `{"jobId":"`+id+`"}`)
		if j["status"] == status {
			return j
		}
		if time.Now().After(deadline) {
			tb.Fatalf("job %s is %v, want %s", id, j["status"], status)
		}
		h.clock.Advance(time.Second)
	}
}

// changes is how much was ever written: it stays when nothing changes.
func (h *house) changes(tb testing.TB) int {
	tb.Helper()
	entries, err := h.store.Journal(context.Background(), 0, 1_000_000)
	if err != nil {
		tb.Fatal(err)
	}
	return len(entries)
}
