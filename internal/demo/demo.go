// Package demo is a demonstration: it starts the whole product with a data
// directory of its own and lets real training processes live a story, which
// shows lending, taking back, resuming and ranking. Everything goes through the
// product's HTTP doors, as any client's requests would.
//
// It holds nothing that the product needs.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"

	"github.com/bursar-io/bursar/internal/app"
	"github.com/bursar-io/bursar/internal/auth"
	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/terminal"
)

const (
	// storyTime is the longest that the story may take.
	storyTime = 90 * time.Second
	// grace is how long a job that is told to stop may take.
	grace = 10 * time.Second
	// stopTime bounds how long the product is taken down.
	stopTime = grace + 10*time.Second
)

// Config is what the demonstration needs.
type Config struct {
	Shim   []string // the command that runs a worker's parent
	Train  string   // path of the training program
	Listen string   // address, such as 127.0.0.1:0
	Stay   bool     // stay up after the story until the context ends
	Out    io.Writer
	Getenv func(string) string
}

// Run runs the demonstration. It returns an error if the story did not happen
// as it should, and leaves nothing behind unless it failed: then the data
// directory stays, and the error names it.
func Run(ctx context.Context, c Config) (err error) {
	dir, err := os.MkdirTemp("", "bursar-demo-")
	if err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	defer func() {
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%w\nwhat happened is in %s", err, dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	return runIn(ctx, c, dir)
}

func runIn(ctx context.Context, c Config, dir string) (err error) {
	logFile, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return fmt.Errorf("making a log file: %w", err)
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()

	product := app.New(app.Config{
		DataDir: filepath.Join(dir, "data"),
		Listen:  c.Listen,
		Grace:   grace,
		Shim:    c.Shim,
		Log:     slog.New(slog.NewTextHandler(logFile, nil)),
	})
	if err := product.Start(ctx); err != nil {
		return fmt.Errorf("starting the product: %w", err)
	}
	d, err := connect(c, product)
	if err != nil {
		return errors.Join(err, product.Stop(ctx))
	}
	defer func() { err = errors.Join(err, d.takeDown(context.WithoutCancel(ctx), product)) }()

	if err := d.tell(ctx); err != nil {
		return err
	}
	if !c.Stay {
		return nil
	}
	if err := d.screen.Print(howToUse(product)...); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// demo is a demonstration under way.
type demo struct {
	Config
	batch  *batch.Client
	bursar *bursarapi.Client
	screen *terminal.Screen
	scene  *scene
	url    string
}

// connect makes clients of the product, with the key that it made.
func connect(c Config, product *app.App) (*demo, error) {
	keys, err := auth.LoadKeys(product.CredentialsPath())
	if err != nil {
		return nil, err
	}
	credentials, ok := keys.Credentials(auth.AdministratorProfile)
	if !ok {
		return nil, fmt.Errorf("%s has no profile %q", product.CredentialsPath(), auth.AdministratorProfile)
	}
	return &demo{
		Config: c,
		batch: batch.New(batch.Options{
			BaseEndpoint: aws.String(product.URL()),
			Region:       app.DefaultRegion,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return credentials, nil
			}),
		}),
		bursar: bursarapi.NewClient(product.URL(), http.DefaultClient, func(r *http.Request, body []byte) error {
			return auth.Sign(r, body, credentials, bursarapi.Service, app.DefaultRegion, time.Now())
		}),
		screen: terminal.New(c.Out, c.Getenv),
		scene:  newScene(time.Now()),
		url:    product.URL(),
	}, nil
}

// tell lets the story happen, shows it, and sums it up.
func (d *demo) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, storyTime, fmt.Errorf("the story did not end within %s", storyTime))
	defer cancel()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched := make(chan error, 1)
	go func() { watched <- d.watch(watching) }()

	told := make(chan error, 1)
	go func() { told <- d.story(ctx) }()
	var err error
	select {
	case err = <-told:
		stopWatching()
		err = errors.Join(err, <-watched)
	case err = <-watched:
		cancel()
		err = errors.Join(err, <-told)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	sum, err := d.scene.summary()
	if err != nil {
		return err
	}
	return d.screen.Print(sum.lines()...)
}

// takeDown ends every job, which would otherwise go on, and then the product.
func (d *demo) takeDown(ctx context.Context, product *app.App) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return errors.Join(d.endJobs(ctx), product.Stop(ctx))
}

func (d *demo) endJobs(ctx context.Context) error {
	ended := map[string]bool{}
	for {
		jobs, err := d.bursar.Jobs(ctx, bursarapi.JobQuery{Statuses: unfinished, Limit: bursarapi.MaxList})
		if err != nil {
			return fmt.Errorf("looking for jobs to end: %w", err)
		}
		if len(jobs) == 0 {
			return nil
		}
		for _, j := range jobs {
			if ended[j.Job.ID] {
				continue
			}
			_, err := d.batch.TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: &j.Job.ID, Reason: aws.String("the demonstration is over")})
			if err != nil {
				return fmt.Errorf("ending job %s: %w", j.Job.Name, err)
			}
			ended[j.Job.ID] = true
		}
		if err := pause(ctx, frameEvery); err != nil {
			return fmt.Errorf("waiting for %d jobs to end: %w", len(jobs), err)
		}
	}
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
