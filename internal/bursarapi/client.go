package bursarapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Signer signs a request with the body given, for Service.
type Signer func(r *http.Request, body []byte) error

// Client asks a server's door.
type Client struct {
	endpoint string
	http     *http.Client
	sign     Signer
}

// NewClient returns a client of the server at endpoint, such as
// http://127.0.0.1:8080.
func NewClient(endpoint string, client *http.Client, sign Signer) *Client {
	return &Client{endpoint: strings.TrimSuffix(endpoint, "/"), http: client, sign: sign}
}

// StatusError is a server's refusal.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string { return e.Message }

// Queues returns every job queue.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	var reply queueList
	err := c.get(ctx, pathQueues, nil, &reply)
	return reply.Queues, err
}

// Balances returns the balances of a queue's shares, or of all shares where
// queue is empty.
func (c *Client) Balances(ctx context.Context, queue string) ([]Balance, error) {
	var reply balanceList
	err := c.get(ctx, pathBalances, url.Values{"queue": {queue}}, &reply)
	return reply.Balances, err
}

// Waiting returns a queue's waiting jobs in their order, at most limit of each
// share.
func (c *Client) Waiting(ctx context.Context, queue string, limit int) ([]Job, error) {
	var reply jobList
	err := c.get(ctx, pathWaiting, url.Values{"queue": {queue}, "limit": {strconv.Itoa(limit)}}, &reply)
	return reply.Jobs, err
}

// Jobs returns the jobs that a query selects.
func (c *Client) Jobs(ctx context.Context, q JobQuery) ([]Job, error) {
	values := url.Values{}
	if q.Queue != "" {
		values.Set("queue", q.Queue)
	}
	if q.Share != "" {
		values.Set("share", q.Share)
	}
	if q.ShareIdentifier != "" {
		values.Set("shareIdentifier", q.ShareIdentifier)
	}
	for _, s := range q.Statuses {
		values.Add("status", string(s))
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var reply jobList
	err := c.get(ctx, pathJobs, values, &reply)
	return reply.Jobs, err
}

// Job returns one job, named by its id, its ARN, a prefix of its id that no
// other job has, or its name (the newest of that name).
func (c *Client) Job(ctx context.Context, ref string) (Job, error) {
	var reply Job
	err := c.get(ctx, pathJob, url.Values{"job": {ref}}, &reply)
	return reply, err
}

// Log returns what a worker printed. The caller closes it.
func (c *Client) Log(ctx context.Context, q LogQuery) (io.ReadCloser, error) {
	values := url.Values{
		"job":    {q.Job},
		"stderr": {strconv.FormatBool(q.Stderr)},
		"follow": {strconv.FormatBool(q.Follow)},
	}
	if q.Run != 0 {
		values.Set("run", strconv.Itoa(q.Run))
	}
	if q.Worker != 0 {
		values.Set("worker", strconv.Itoa(q.Worker))
	}
	return c.open(ctx, pathLog, values)
}

// Journal returns up to limit entries after the one with sequence number
// after. If there is none yet it waits for one, for at most wait.
func (c *Client) Journal(ctx context.Context, after int64, limit int, wait time.Duration) ([]Entry, error) {
	values := url.Values{
		"after": {strconv.FormatInt(after, 10)},
		"limit": {strconv.Itoa(limit)},
		"wait":  {wait.String()},
	}
	var reply entryList
	err := c.get(ctx, pathJournal, values, &reply)
	return reply.Entries, err
}

// Plan says what applying a policy file would change, and changes nothing.
// With prune, shares that are not in the file are to be deleted.
func (c *Client) Plan(ctx context.Context, policy []byte, prune bool) (Plan, error) {
	var plan Plan
	err := c.post(ctx, pathPlan, url.Values{"prune": {strconv.FormatBool(prune)}}, policy, &plan)
	return plan, err
}

// Apply applies a policy file, and returns what that changed. A version that
// is not empty is that of the plan that it carries out.
func (c *Client) Apply(ctx context.Context, policy []byte, prune bool, version string) (Plan, error) {
	var plan Plan
	err := c.post(ctx, pathApply, url.Values{"prune": {strconv.FormatBool(prune)}, "version": {version}}, policy, &plan)
	return plan, err
}

// Policy returns what governs a job queue with quota shares, as a policy file.
func (c *Client) Policy(ctx context.Context, queue string) (string, error) {
	var reply policyFile
	err := c.get(ctx, pathPolicy, url.Values{"queue": {queue}}, &reply)
	return reply.Policy, err
}

// Standing returns where a job queue with quota shares stands.
func (c *Client) Standing(ctx context.Context, queue string) (Standing, error) {
	var reply Standing
	err := c.get(ctx, pathStanding, url.Values{"queue": {queue}}, &reply)
	return reply, err
}

func (c *Client) get(ctx context.Context, path string, values url.Values, reply any) error {
	body, err := c.open(ctx, path, values)
	return c.read(path, body, err, reply)
}

func (c *Client) post(ctx context.Context, path string, values url.Values, content []byte, reply any) error {
	body, err := c.ask(ctx, http.MethodPost, path, values, content)
	return c.read(path, body, err, reply)
}

// read decodes a reply, if there is one.
func (c *Client) read(path string, body io.ReadCloser, err error, reply any) error {
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read to the end, or its error is returned
	if err := json.NewDecoder(body).Decode(reply); err != nil {
		return fmt.Errorf("reading the reply of %s%s: %w", c.endpoint, path, err)
	}
	return nil
}

func (c *Client) open(ctx context.Context, path string, values url.Values) (io.ReadCloser, error) {
	return c.ask(ctx, http.MethodGet, path, values, nil)
}

func (c *Client) ask(ctx context.Context, method, path string, values url.Values, content []byte) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.endpoint+path+"?"+values.Encode(), bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", c.endpoint, err)
	}
	if err := c.sign(r, content); err != nil {
		return nil, fmt.Errorf("signing a request: %w", err)
	}
	resp, err := c.http.Do(r)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the request, which says nothing to people
	}
	if err != nil {
		return nil, fmt.Errorf("asking the server at %s: %w", c.endpoint, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is left to lose
	return nil, refusal(resp)
}

// refusal reads why a server refused. Not every refusal comes from this door:
// its body may be anything.
func refusal(resp *http.Response) error {
	const most = 1 << 16
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	var p problem
	if err != nil || json.Unmarshal(body, &p) != nil || p.Message == "" {
		p.Message = "the server answered " + resp.Status
	}
	return &StatusError{Status: resp.StatusCode, Message: p.Message}
}
