package batchapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/governor"
)

const (
	// maxRequest is the most bytes of any request: enough for fifty tags of
	// the longest kind.
	maxRequest = 128 << 10
	// maxSubmission is the most bytes of a SubmitServiceJob request (A9).
	maxSubmission = 30 << 10

	prefix     = "/v1/"
	tagsPrefix = "/v1/tags/"
)

// operation answers one kind of request. What it returns is the reply's body.
type operation func(context.Context, document.Object) (any, error)

// empty is the reply of operations that have nothing to say.
type empty struct{}

// ServeHTTP answers one request.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := d.NewID()
	w.Header().Set("X-Amzn-Requestid", id)
	reply, err := d.answer(w, r)
	status := http.StatusOK
	if err != nil {
		f := failureOf(err)
		if f.status == http.StatusInternalServerError {
			d.Log.ErrorContext(r.Context(), "a request failed", "request", id, "path", r.URL.Path, "error", err)
		}
		w.Header().Set("X-Amzn-Errortype", f.Code)
		status, reply = f.status, f
	}
	if err := write(w, status, reply); err != nil {
		d.Log.DebugContext(r.Context(), "a client did not take its reply", "request", id, "path", r.URL.Path, "error", err)
	}
}

// answer authenticates a request before it looks at what is asked.
func (d *door) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	principal, err := d.Verifier.Verify(r, body)
	if err != nil {
		return nil, err
	}
	ctx := governor.WithPrincipal(r.Context(), principal.Name)
	if arn, ok := strings.CutPrefix(r.URL.Path, tagsPrefix); ok {
		return d.answerTags(ctx, r, arn, body)
	}
	name, ok := strings.CutPrefix(r.URL.Path, prefix)
	op, known := d.operations[name]
	if !ok || !known || r.Method != http.MethodPost {
		return nil, unknownOperation(r)
	}
	if name == "submitservicejob" && len(body) > maxSubmission {
		return nil, invalid("the request has %d bytes; a SubmitServiceJob request may have %d", len(body), maxSubmission)
	}
	in, err := read(body)
	if err != nil {
		return nil, err
	}
	return op(ctx, in)
}

func (d *door) answerTags(ctx context.Context, r *http.Request, arn string, body []byte) (any, error) {
	switch r.Method {
	case http.MethodGet:
		return d.listTags(ctx, arn)
	case http.MethodPost:
		in, err := read(body)
		if err != nil {
			return nil, err
		}
		return d.tag(ctx, arn, in)
	case http.MethodDelete:
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return nil, invalid("the query string %s cannot be read; write it as tagKeys=KEY&tagKeys=KEY", document.Quote(r.URL.RawQuery))
		}
		return d.untag(ctx, arn, query["tagKeys"])
	}
	return nil, unknownOperation(r)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxRequest)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxRequest))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &failure{http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", fmt.Sprintf("the request has more than %d bytes, the most that any operation takes", maxRequest)}
	}
	if err != nil {
		return nil, invalid("the request's body could not be read: %v", err)
	}
	return body.Bytes(), nil
}

// read decodes a request. No body is an object without members, as some clients
// send it for operations without parameters.
func read(body []byte) (document.Object, error) {
	if len(body) == 0 {
		body = []byte("{}")
	}
	return document.Read(body)
}

func write(w http.ResponseWriter, status int, reply any) error {
	body, err := json.Marshal(reply)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return fmt.Errorf("encode the reply: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// The codes of refusals other than those for requests not authenticated.
const (
	clientException  = "ClientException"
	serverException  = "ServerException"
	unknownException = "UnknownOperationException"
)

// failure is an error as clients see it: AWS's SDKs find the code in a header
// or in either member of the body (A1).
type failure struct {
	status  int
	Code    string
	Message string
}

func (f *failure) Error() string { return f.Message }

// MarshalJSON encodes the body of the reply.
func (f *failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Message string `json:"message"`
		Code    string `json:"code"`
		Type    string `json:"__type"`
	}{f.Message, f.Code, f.Code})
}

// invalid is the error of a request that cannot be: it names the field, the
// value and what would be right.
func invalid(format string, args ...any) error {
	return &failure{http.StatusBadRequest, clientException, fmt.Sprintf(format, args...)}
}

func unknownOperation(r *http.Request) error {
	return &failure{http.StatusNotFound, unknownException,
		fmt.Sprintf("there is no operation %s %s; operations are POST %s<lower-case name>, and GET, POST and DELETE of %s<resource ARN>",
			r.Method, document.Quote(r.URL.Path), prefix, tagsPrefix)}
}

// failureOf says what a client may know of an error.
func failureOf(err error) *failure {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f
	}
	if unreadable := (*document.Error)(nil); errors.As(err, &unreadable) {
		return &failure{http.StatusBadRequest, clientException, unreadable.Message}
	}
	if refusal := (*governor.Refusal)(nil); errors.As(err, &refusal) {
		return &failure{http.StatusBadRequest, clientException, refusal.Message}
	}
	if unauthenticated := (*auth.Error)(nil); errors.As(err, &unauthenticated) {
		return &failure{auth.StatusCode, unauthenticated.Code, unauthenticated.Message}
	}
	if errors.Is(err, governor.ErrUnavailable) {
		return &failure{http.StatusInternalServerError, serverException, "the server cannot take requests now, and changed nothing; try again"}
	}
	return &failure{http.StatusInternalServerError, serverException, "the server failed to answer; its log says why, under the id in the header x-amzn-requestid"}
}
