// Package app builds the whole product out of its rooms and takes it down
// again: the store, the governor with its runner, the doors, and the HTTP
// server that they stand behind. The server program, the demonstration and the
// tests all use it.
//
// It joins rooms; what any of them does has no place here.
package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/batchapi"
	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/clock"
	"github.com/bursar-io/bursar/internal/governor"
	"github.com/bursar-io/bursar/internal/runner"
	"github.com/bursar-io/bursar/internal/runner/process"
	"github.com/bursar-io/bursar/internal/store/sqlite"
)

// Defaults of a Config.
const (
	DefaultRegion    = "us-east-1"
	DefaultAccountID = "000000000000"
	DefaultGrace     = 120 * time.Second
)

// partition is that of every ARN.
const partition = "aws"

// Limits of the HTTP server. Doors that stream lift the write timeout for
// their own replies.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Config is what the product is built from. DataDir, Listen, Shim and Log are
// required; the rest has defaults.
type Config struct {
	DataDir   string        // made if it is not there
	Listen    string        // address, such as 127.0.0.1:8080; port 0: any that is free
	Region    string        // DefaultRegion
	AccountID string        // 12 digits; DefaultAccountID
	Grace     time.Duration // from SIGTERM to SIGKILL; DefaultGrace if 0
	Shim      []string      // the command that runs process.ShimMain with the arguments added to it
	Log       *slog.Logger
}

// App is one product, started once.
type App struct {
	config Config
	url    string
	failed chan error
	undo   []func(context.Context) error
}

// New returns a product that has not been started.
func New(c Config) *App {
	if c.Region == "" {
		c.Region = DefaultRegion
	}
	if c.AccountID == "" {
		c.AccountID = DefaultAccountID
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	return &App{config: c, failed: make(chan error, 1)}
}

// URL is where the started product answers.
func (a *App) URL() string { return a.url }

// Failed yields an error if the started product can no longer answer.
func (a *App) Failed() <-chan error { return a.failed }

// CredentialsPath is the file with the access keys, in AWS's shared format.
func (a *App) CredentialsPath() string { return filepath.Join(a.config.DataDir, CredentialsFile) }

var accountIDs = regexp.MustCompile(`^[0-9]{12}$`)

// Start starts everything and returns once requests are answered. After an
// error nothing is left running. The error wraps store.ErrLocked if another
// server has the data directory.
func (a *App) Start(ctx context.Context) (err error) {
	if !accountIDs.MatchString(a.config.AccountID) {
		return fmt.Errorf("the account id is %q; it must be 12 digits", a.config.AccountID)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(a.config.DataDir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	st, err := sqlite.Open(ctx, a.config.DataDir, a.config.Log)
	if err != nil {
		return fmt.Errorf("opening data directory %s: %w", a.config.DataDir, err)
	}
	a.onStop(func(context.Context) error { return st.Close() })

	keys, err := a.keys()
	if err != nil {
		return err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", a.config.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", a.config.Listen, err)
	}
	a.onStop(func(context.Context) error { return closeListener(listener) })

	g := governor.New(governor.Config{
		Store:          st,
		NewRunner:      a.newRunner,
		Clock:          clock.System{},
		NewID:          uuid.NewString,
		NewSuffix:      newSuffix,
		TrainingJobARN: a.trainingJobARN,
		Log:            a.config.Log,
	})
	if err := g.Start(ctx); err != nil {
		return fmt.Errorf("starting the governor: %w", err)
	}
	a.onStop(g.Stop)

	a.url = urlOf(listener)
	a.serve(listener, g, keys)
	return a.announce()
}

// Stop undoes Start, last things first: it stops accepting requests, finishes
// those it has, stops deciding, and closes the store. Running jobs go on. It
// returns what could not be undone in time before ctx ended.
func (a *App) Stop(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(a.undo) {
		errs = append(errs, undo(ctx))
	}
	a.undo = nil
	return errors.Join(errs...)
}

func (a *App) onStop(undo func(context.Context) error) { a.undo = append(a.undo, undo) }

// keys makes an administrator's access key at the first start.
func (a *App) keys() (*auth.Keys, error) {
	made, err := auth.EnsureCredentials(a.CredentialsPath())
	if err != nil {
		return nil, err
	}
	if made {
		a.config.Log.Info("made an administrator's access key", "path", a.CredentialsPath())
	}
	return auth.LoadKeys(a.CredentialsPath())
}

func (a *App) newRunner(report runner.Report) (runner.Runner, error) {
	return process.New(process.Config{
		Dir:   a.config.DataDir,
		Shim:  a.config.Shim,
		Grace: a.config.Grace,
		Log:   a.config.Log,
	}, report)
}

func (a *App) openLog(ctx context.Context, run runner.Key, worker int, stream string, follow bool, done func() bool) io.ReadCloser {
	return process.OpenLog(ctx, a.config.DataDir, run, worker, stream, follow, done)
}

func (a *App) trainingJobARN(name string) string {
	return fmt.Sprintf("arn:%s:sagemaker:%s:%s:training-job/%s", partition, a.config.Region, a.config.AccountID, name)
}

// serve answers requests on the listener from now on.
func (a *App) serve(listener net.Listener, g *governor.Governor, keys *auth.Keys) {
	closing := make(chan struct{})
	server := &http.Server{
		Handler:           a.doors(g, keys, closing),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.config.Log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(func() { close(closing) })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("answering requests: %w", err)
		}
	}()
	a.onStop(func(ctx context.Context) error {
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("finishing requests: %w", err), server.Close())
		}
		return nil
	})
}

// doors is what answers each path.
func (a *App) doors(g *governor.Governor, keys *auth.Keys, closing <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", batchapi.New(batchapi.Config{
		Governor:  g,
		Verifier:  a.verifier(keys, batchapi.Service),
		Partition: partition,
		Region:    a.config.Region,
		AccountID: a.config.AccountID,
		NewID:     uuid.NewString,
		Log:       a.config.Log,
	}))
	mux.Handle(bursarapi.Prefix, bursarapi.New(bursarapi.Config{
		Governor: g,
		OpenLog:  a.openLog,
		Verifier: a.verifier(keys, bursarapi.Service),
		Grace:    a.config.Grace,
		Closing:  closing,
		Log:      a.config.Log,
	}))
	return mux
}

func (a *App) verifier(keys *auth.Keys, service string) *auth.Verifier {
	return &auth.Verifier{Keys: keys, Region: a.config.Region, Services: []string{service}, Now: time.Now}
}

// announce tells in the data directory how to reach the server, until Stop.
func (a *App) announce() error {
	f := ServerFile{URL: a.url, Region: a.config.Region, PID: os.Getpid()}
	a.onStop(func(context.Context) error {
		err := os.Remove(filepath.Join(a.config.DataDir, serverFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return f.write(a.config.DataDir)
}

// urlOf is the listener's URL for clients on this machine.
func urlOf(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// closeListener closes a listener that a server may have closed before.
func closeListener(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the listener: %w", err)
	}
	return nil
}

// newSuffix is what makes a training job's name unique.
func newSuffix() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return hex.EncodeToString(b)
}
