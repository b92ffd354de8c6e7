// Package crash kills a server at random moments while clients submit, change
// and end jobs and workers come to their ends, and checks after each restart
// that nothing acknowledged was lost, nothing ran twice at once, and
// scheduling goes on.
package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/aws-sdk-go-v2/service/batch/types"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/test/live"
)

const (
	kills     = 50
	clients   = 4
	longest   = 400 * time.Millisecond // that a server lives
	workLimit = 150                    // milliseconds that a worker works
)

var shares = []live.Share{
	{Name: "QS1", Instances: 2, Strategy: types.QuotaShareResourceSharingStrategyLendAndBorrow, InSharePreemption: true},
	{Name: "QS2", Instances: 2, Strategy: types.QuotaShareResourceSharingStrategyLend, InSharePreemption: true},
	{Name: "QS3", Instances: 2, Strategy: types.QuotaShareResourceSharingStrategyReserve, InSharePreemption: true},
}

// capacity is what the shares have together.
const capacity = 6

func TestKilledServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, notes := filepath.Join(t.ArtifactDir(), "data"), t.TempDir() // go test -artifacts keeps the data directory

	s := live.Start(t, dir)
	live.Prepare(t, s.Batch(), shares)
	books := newBooks()
	for kill := range kills {
		load := startLoad(t, s, books, notes, random.Uint64())
		<-time.After(time.Duration(random.Int64N(int64(longest)))) // the server lives until a random moment
		s.Kill()
		load.stop()
		s = live.Start(t, dir)
		check(t, s, books)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			tellUnfinished(t, s)
		}
	})
	for left := len(unfinished(t, s)); left > 0; {
		live.Eventually(t, "one job after the other comes to its end", func() bool {
			before := left
			left = len(unfinished(t, s))
			return left < before
		})
	}
	checkEnds(t, s, books)
	checkWorkers(t, s, books, notes)
}

// books is what the clients were told, and asked for.
type books struct {
	mu         sync.Mutex
	submitted  map[string]string // job id, by the name of each job whose submission was acknowledged
	priorities map[string]int32  // the last priority acknowledged, by job id; absent while a change is under way
	terminated map[string]bool   // ids of jobs whose end was acknowledged
	fails      map[string]bool   // names of jobs whose workers end with a status other than 0
	doubled    []string          // jobs that are one submission
}

func newBooks() *books {
	return &books{submitted: map[string]string{}, priorities: map[string]int32{}, terminated: map[string]bool{}, fails: map[string]bool{}}
}

// load is clients at work on one server, until it is gone.
type load struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup
}

func startLoad(t *testing.T, s *live.Server, b *books, notes string, seed uint64) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	for n := range clients {
		c := &client{t: t, api: s.Batch(), books: b, notes: notes, random: rand.New(rand.NewPCG(seed, uint64(n)))}
		l.clients.Go(func() {
			for ctx.Err() == nil {
				if err := c.act(ctx); err != nil {
					return // the server is gone
				}
			}
		})
	}
	return l
}

func (l *load) stop() {
	l.cancel()
	l.clients.Wait()
}

// client does one thing after the other.
type client struct {
	t      *testing.T
	api    *batch.Client
	books  *books
	notes  string
	random *rand.Rand
	mine   []string // ids of jobs that this client submitted
}

// submitAtMost bounds what one client submits to one server, and so the jobs
// that pile up.
const submitAtMost = 2

func (c *client) act(ctx context.Context) error {
	switch n := c.random.IntN(100); {
	case n < 30 && len(c.mine) < submitAtMost:
		return c.submit(ctx)
	case n < 99:
		return c.update(ctx)
	default:
		return c.terminate(ctx)
	}
}

// submit submits a job twice under one token, as a client does that missed the
// first reply.
func (c *client) submit(ctx context.Context) error {
	name := "job-" + uuid.NewString()[:13]
	status := c.random.IntN(5) / 4 // one in five fails
	milliseconds := strconv.Itoa(c.random.IntN(workLimit))
	share := shares[c.random.IntN(len(shares))].Name
	input := live.Submission(c.t, name, share, nil, os.Args[0], workerArgument, c.notes, milliseconds, strconv.Itoa(status))
	input.ClientToken = &name
	input.SchedulingPriority = aws.Int32(c.random.Int32N(5))
	first, err := c.api.SubmitServiceJob(ctx, input)
	if err != nil {
		return err
	}
	id := *first.JobId
	c.books.mu.Lock()
	c.books.submitted[name], c.books.priorities[id], c.books.fails[name] = id, *input.SchedulingPriority, status != 0
	c.books.mu.Unlock()
	c.mine = append(c.mine, id)
	again, err := c.api.SubmitServiceJob(ctx, input)
	if err != nil {
		return err
	}
	if *again.JobId != id {
		c.books.mu.Lock()
		c.books.doubled = append(c.books.doubled, fmt.Sprintf("%s and %s", id, *again.JobId))
		c.books.mu.Unlock()
	}
	return nil
}

func (c *client) update(ctx context.Context) error {
	if len(c.mine) == 0 {
		return nil
	}
	id, priority := c.mine[c.random.IntN(len(c.mine))], c.random.Int32N(5)
	c.books.mu.Lock()
	delete(c.books.priorities, id) // until it is known which of the two holds
	c.books.mu.Unlock()
	_, err := c.api.UpdateServiceJob(ctx, &batch.UpdateServiceJobInput{JobId: &id, SchedulingPriority: &priority})
	var refused *types.ClientException
	switch {
	case errors.As(err, &refused): // it has finished
		return nil
	case err != nil:
		return err
	}
	c.books.mu.Lock()
	c.books.priorities[id] = priority
	c.books.mu.Unlock()
	return nil
}

const terminateReason = "enough"

func (c *client) terminate(ctx context.Context) error {
	if len(c.mine) == 0 {
		return nil
	}
	id := c.mine[c.random.IntN(len(c.mine))]
	if _, err := c.api.TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: &id, Reason: aws.String(terminateReason)}); err != nil {
		return err
	}
	c.books.mu.Lock()
	c.books.terminated[id] = true
	c.books.mu.Unlock()
	return nil
}

// check checks a server that was started after a crash.
func check(t *testing.T, s *live.Server, b *books) {
	t.Helper()
	if len(b.doubled) > 0 {
		t.Errorf("submissions that were sent twice became two jobs: %v", b.doubled)
	}
	jobs := everyJob(t, s)
	for name, id := range b.submitted {
		if j, ok := jobs[id]; !ok {
			t.Errorf("job %s, %s, was acknowledged and is lost", name, id)
		} else if priority, known := b.priorities[id]; known && j.Priority != priority {
			t.Errorf("job %s has priority %d; %d was acknowledged", name, j.Priority, priority)
		}
	}
	checkBalances(t, s)
}

// checkBalances checks what must hold at every instant.
func checkBalances(t *testing.T, s *live.Server) {
	t.Helper()
	balances, err := s.Bursar().Balances(t.Context(), live.Queue)
	live.Must(t, err)
	var used, borrowed, lent int64
	for i, b := range balances {
		for _, u := range b.Units {
			used += u.Own + u.Borrowed
			borrowed += u.Borrowed
			lent += u.Lent
			if u.Own > u.Nominal || u.Own+u.Lent+u.Free != u.Nominal {
				t.Errorf("share %s: own %d, lent %d and free %d are not its quota %d", b.Share, u.Own, u.Lent, u.Free, u.Nominal)
			}
			if u.Borrowed > 0 && shares[i].Strategy != types.QuotaShareResourceSharingStrategyLendAndBorrow {
				t.Errorf("I5: share %s borrows %d, which its strategy does not allow", b.Share, u.Borrowed)
			}
		}
	}
	if used > capacity {
		t.Errorf("I1: the shares use %d of %d", used, capacity)
	}
	if borrowed > lent {
		t.Errorf("I3b: %d are borrowed and %d lent", borrowed, lent)
	}
}

// everyJob is all jobs, by id.
func everyJob(t *testing.T, s *live.Server) map[string]job.Job {
	t.Helper()
	jobs, err := s.Bursar().Jobs(t.Context(), bursarapi.JobQuery{Limit: bursarapi.MaxList})
	live.Must(t, err)
	if len(jobs) == bursarapi.MaxList {
		t.Fatalf("there are more jobs than the %d that one list has", bursarapi.MaxList)
	}
	all := map[string]job.Job{}
	for _, j := range jobs {
		all[j.Job.ID] = j.Job
	}
	return all
}

// tellUnfinished tells what the jobs do that have not come to their end.
func tellUnfinished(t *testing.T, s *live.Server) {
	t.Helper()
	for _, j := range unfinished(t, s) {
		t.Logf("job %s (%s) is %s in run %d, after %d evictions: %s %s", j.Job.Name, j.Job.ID, j.Job.Status, j.Job.Runs, j.Job.Evictions, j.Job.Reason, j.Sentence)
		for _, a := range j.Job.Attempts {
			t.Logf("  run %d, %s to %s: %s", a.Run, a.ScheduledAt, a.StoppedAt, a.Reason)
		}
	}
}

func unfinished(t *testing.T, s *live.Server) []bursarapi.Job {
	t.Helper()
	jobs, err := s.Bursar().Jobs(context.WithoutCancel(t.Context()), bursarapi.JobQuery{Limit: bursarapi.MaxList, Statuses: []job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running}})
	live.Must(t, err)
	return jobs
}

// checkEnds checks that every job ended as it had to.
func checkEnds(t *testing.T, s *live.Server, b *books) {
	t.Helper()
	jobs := everyJob(t, s)
	t.Logf("%d jobs were acknowledged, %d of them terminated; %d exist", len(b.submitted), len(b.terminated), len(jobs))
	for name, id := range b.submitted {
		j := jobs[id]
		want := job.Succeeded
		if b.fails[name] {
			want = job.Failed
		}
		ended := j.Status == want || j.Terminated && j.Status == job.Failed && j.Reason == terminateReason
		if !ended {
			t.Errorf("job %s ended %s, %q; its worker was to end %s (terminated: %v)", name, j.Status, j.Reason, want, b.terminated[id])
		}
		if lost := withReason(j.Attempts, job.ReasonLost); lost > 0 {
			t.Errorf("job %s lost its worker %d times", name, lost)
		}
	}
}

func withReason(attempts []job.Attempt, reason string) int {
	n := 0
	for _, a := range attempts {
		if a.Reason == reason {
			n++
		}
	}
	return n
}

// checkWorkers checks, by what the workers noted, that no job ran twice at
// once, that no run was started twice or is unknown, and that no worker is left.
func checkWorkers(t *testing.T, s *live.Server, b *books, notes string) {
	t.Helper()
	if twice, err := os.ReadFile(filepath.Join(notes, overlaps)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("jobs that ran twice at once: %q (%v)", twice, err)
	}
	jobs := everyJob(t, s)
	runs := 0
	for name, id := range b.submitted {
		seen := map[string]bool{}
		for _, run := range notedRuns(t, notes, id) {
			runs++
			if n, err := strconv.Atoi(run); err != nil || n < 1 || n > jobs[id].Runs {
				t.Errorf("a worker of job %s noted run %q; the server knows of %d", name, run, jobs[id].Runs)
			}
			if seen[run] {
				t.Errorf("run %s of job %s was started twice", run, name)
			}
			seen[run] = true
		}
		if jobs[id].Status == job.Succeeded && len(seen) == 0 {
			t.Errorf("job %s succeeded and never ran", name)
		}
		checkUnlocked(t, notes, id)
	}
	t.Logf("their workers ran %d times", runs)
}

func notedRuns(t *testing.T, notes, id string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(notes, id+runsSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	live.Must(t, err)
	return strings.Fields(string(text))
}

// checkUnlocked checks that no worker of a job is left.
func checkUnlocked(t *testing.T, notes, id string) {
	t.Helper()
	lock, err := os.Open(filepath.Join(notes, id+lockSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	live.Must(t, err)
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("a worker of job %s still runs after its end", id)
	}
}
