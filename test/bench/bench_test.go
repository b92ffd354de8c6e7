// Package bench measures the product from outside: a real server program on
// this machine, whose load comes from this machine too.
package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/test/live"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing is measured, and no program needed
	}
	os.Exit(live.Main(m))
}

// BenchmarkSubmit measures durable, signed SubmitServiceJob requests, by how
// many connections send them at once. Nothing runs meanwhile.
func BenchmarkSubmit(b *testing.B) {
	for _, connections := range []int{1, 32} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			s := live.Start(b, filepath.Join(b.TempDir(), "data"))
			live.Prepare(b, s.Batch(), oneShare)
			_, err := s.Batch().UpdateServiceEnvironment(b.Context(), &batch.UpdateServiceEnvironmentInput{
				ServiceEnvironment: aws.String(live.Environment), State: types.ServiceEnvironmentStateDisabled,
			})
			live.Must(b, err)
			sender := newSender(b, s, connections)
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var senders sync.WaitGroup
			b.ResetTimer()
			for range connections {
				senders.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						began := time.Now()
						if err := sender.submit(b.Context()); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(began)
					}
				})
			}
			senders.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
			reportQuantiles(b, took)
		})
	}
}

// BenchmarkSubmitToStart measures the time from the acceptance of a job on an
// idle server to the start of its process.
func BenchmarkSubmitToStart(b *testing.B) {
	s := live.Start(b, filepath.Join(b.TempDir(), "data"))
	api := s.Batch()
	live.Prepare(b, api, oneShare)
	took := make([]time.Duration, b.N)
	for i := range b.N {
		reply, err := api.SubmitServiceJob(b.Context(), submission(b))
		live.Must(b, err)
		var ended *batch.DescribeServiceJobOutput
		live.Eventually(b, "the job ends", func() bool {
			ended, err = api.DescribeServiceJob(b.Context(), &batch.DescribeServiceJobInput{JobId: reply.JobId})
			live.Must(b, err)
			return ended.Status == types.ServiceJobStatusSucceeded
		})
		took[i] = time.Duration(*ended.StartedAt-*ended.CreatedAt) * time.Millisecond
	}
	reportQuantiles(b, took)
}

func reportQuantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*q/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", q))
	}
}

var oneShare = []live.Share{{Name: "QS1", Instances: 1, Strategy: types.QuotaShareResourceSharingStrategyLend}}

// submission is the job that is submitted.
func submission(b *testing.B) *batch.SubmitServiceJobInput {
	b.Helper()
	return live.Submission(b, "bench", "QS1", nil, "/bin/true")
}

// sender sends one request again and again, each time signed anew: it costs
// less than AWS's client, which shares the machine with the server.
type sender struct {
	url         string
	body        []byte
	hash        string
	credentials aws.Credentials
	signer      *v4.Signer
	http        *http.Client
}

func newSender(b *testing.B, s *live.Server, connections int) *sender {
	b.Helper()
	job := submission(b)
	body, err := json.Marshal(map[string]any{
		"jobName": job.JobName, "jobQueue": job.JobQueue, "quotaShareName": job.QuotaShareName,
		"serviceJobType": job.ServiceJobType, "serviceRequestPayload": job.ServiceRequestPayload,
	})
	live.Must(b, err)
	sum := sha256.Sum256(body)
	return &sender{
		url:         s.URL + "/v1/submitservicejob",
		body:        body,
		hash:        hex.EncodeToString(sum[:]),
		credentials: s.Credentials(),
		signer:      v4.NewSigner(),
		http:        &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}},
	}
}

func (s *sender) submit(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if err := s.signer.SignHTTP(ctx, s.credentials, r, s.hash, "batch", app.DefaultRegion, time.Now()); err != nil {
		return err
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, reply)
	}
	return err
}
