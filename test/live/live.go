// Package live runs the real programs for tests: it builds them once, starts
// servers, and gives tests the clients of their doors.
//
// It is for tests alone; nothing of the product may import it.
package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
)

// Patience is how long a test waits for what should happen soon.
const Patience = 60 * time.Second

// lookEvery is how often it looks whether it has.
const lookEvery = 20 * time.Millisecond

// programs is where Main built them.
var programs string

// Bursar and Train are the paths of the programs.
func Bursar() string { return filepath.Join(programs, "bursar") }

// Train is the path of the training program.
func Train() string { return filepath.Join(programs, "train") }

// Main builds the programs, runs the tests, and removes the programs. It
// returns the status for os.Exit.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bursar-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary directory
	programs = dir
	build := exec.Command("go", "build", "-o", dir, "github.com/bursar-io/bursar/cmd/bursar", "github.com/bursar-io/bursar/examples/train") //nolint:noctx // as long as it takes
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

// Server is a running server program.
type Server struct {
	Dir string // its data directory
	URL string

	t       testing.TB
	command *exec.Cmd
	exited  chan struct{} // closed once the program has ended
	log     *os.File
}

// Start starts a server on a data directory and returns once it is ready. Its
// log goes to a file beside the directory, which is shown if the test fails.
// It is killed at the end of the test, if it runs then.
func Start(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	s, err := start(t, dir, flags)
	if err != nil {
		t.Fatalf("starting a server on %s: %v\n%s", dir, err, logOf(dir))
	}
	t.Cleanup(s.Kill)
	return s
}

func logPath(dir string) string { return dir + ".log" }

func logOf(dir string) string {
	text, err := os.ReadFile(logPath(dir))
	if err != nil {
		return err.Error()
	}
	const most = 8 << 10
	return string(text[max(0, len(text)-most):])
}

func start(t testing.TB, dir string, flags []string) (*Server, error) {
	log, err := os.OpenFile(logPath(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--grace", "5s"}, flags...)
	command := exec.Command(Bursar(), args...) //nolint:noctx // it is stopped or killed, as the test wants
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &Server{Dir: dir, t: t, command: command, exited: make(chan struct{}), log: log}
	ready := make(chan string, 1)
	go func() {
		defer close(s.exited)
		line, _ := bufio.NewReader(output).ReadString('\n') // an empty line is no URL
		ready <- line
		_ = command.Wait() // its status is in ProcessState
	}()
	select {
	case line := <-ready:
		_, url, found := strings.Cut(strings.TrimSpace(line), "bursar is ready at ")
		if !found {
			s.Kill()
			return nil, fmt.Errorf("it printed %q", line)
		}
		s.URL = url
		return s, nil
	case <-time.After(Patience):
		s.Kill()
		return nil, errors.New("it is not ready")
	}
}

// Kill kills the server as a crash would, and returns once it is gone.
func (s *Server) Kill() {
	_ = s.command.Process.Kill() // fails if it has ended, which is what is wanted
	<-s.exited
	_ = s.log.Close()
}

// Stop tells the server to stop, and returns its exit status.
func (s *Server) Stop() int {
	s.t.Helper()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("stopping the server: %v", err)
	}
	select {
	case <-s.exited:
	case <-time.After(Patience):
		s.t.Fatalf("the server does not stop\n%s", logOf(s.Dir))
	}
	return s.command.ProcessState.ExitCode()
}

// Credentials is the administrator's access key.
func (s *Server) Credentials() aws.Credentials {
	s.t.Helper()
	keys, err := auth.LoadKeys(filepath.Join(s.Dir, app.CredentialsFile))
	if err != nil {
		s.t.Fatal(err)
	}
	credentials, ok := keys.Credentials(auth.AdministratorProfile)
	if !ok {
		s.t.Fatalf("the server made no key for profile %q", auth.AdministratorProfile)
	}
	return credentials
}

// Batch is AWS's own client of the server.
func (s *Server) Batch() *batch.Client {
	s.t.Helper()
	credentials := s.Credentials()
	return batch.New(batch.Options{
		BaseEndpoint: aws.String(s.URL),
		Region:       app.DefaultRegion,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
	})
}

// Bursar is a client of Bursar's own door.
func (s *Server) Bursar() *bursarapi.Client {
	s.t.Helper()
	credentials := s.Credentials()
	return bursarapi.NewClient(s.URL, &http.Client{}, func(r *http.Request, body []byte) error {
		return auth.Sign(r, body, credentials, bursarapi.Service, app.DefaultRegion, time.Now())
	})
}

// EndJobs ends every job and returns once none is left, so that no worker
// outlives the test.
func (s *Server) EndJobs(ctx context.Context) {
	s.t.Helper()
	api, client := s.Batch(), s.Bursar()
	ended := map[string]bool{}
	Eventually(s.t, "every job ends", func() bool {
		jobs, err := client.Jobs(ctx, bursarapi.JobQuery{Limit: bursarapi.MaxList, Statuses: []job.Status{job.Runnable, job.Scheduled, job.Starting, job.Running}})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, j := range jobs {
			if ended[j.Job.ID] {
				continue
			}
			ended[j.Job.ID] = true
			if _, err := api.TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: &j.Job.ID, Reason: aws.String("the test is over")}); err != nil {
				s.t.Fatal(err)
			}
		}
		return len(jobs) == 0
	})
}

// CLI runs a command of the bursar program against the server, and returns
// what it printed and its exit status.
func (s *Server) CLI(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	s.t.Helper()
	return RunCLI(ctx, s.t, append(os.Environ(), "BURSAR_DATA_DIR="+s.Dir, "AWS_ACCESS_KEY_ID=", "AWS_SHARED_CREDENTIALS_FILE="), args...)
}

// RunCLI runs a command of the bursar program in an environment.
func RunCLI(ctx context.Context, t testing.TB, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, problems strings.Builder
	command := exec.CommandContext(ctx, Bursar(), args...)
	command.Env = env
	command.Stdout, command.Stderr = &out, &problems
	err := command.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("running bursar %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}

// Eventually waits until something is so, and fails the test if that takes too
// long.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.After(Patience)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("it did not happen within %s that %s", Patience, what)
		}
	}
}
