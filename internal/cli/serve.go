package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/app"
)

// ShimCommand is the hidden subcommand that is the parent of a worker. Main
// runs it before anything else: there is one for every worker.
const ShimCommand = "shim"

// stopTime bounds how long a server that was told to stop finishes requests.
const stopTime = 30 * time.Second

func (c *commands) serve() *cobra.Command {
	var config app.Config
	var verbose bool
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server, until SIGTERM or an interrupt. Running jobs go on without it; the
next server on the same data directory finds them again.

The first start makes an administrator's access key, in the file credentials of
the data directory.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			config.Log = slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: level}))
			return c.runServer(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.DataDir, "data-dir", cmp.Or(c.Getenv(envDataDir), defaultDataDir), "directory of everything the server keeps")
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:8080", "address to listen on")
	flags.StringVar(&config.Region, "region", app.DefaultRegion, "region that requests are signed for")
	flags.StringVar(&config.AccountID, "account-id", app.DefaultAccountID, "account in ARNs, 12 digits")
	flags.DurationVar(&config.Grace, "grace", app.DefaultGrace, "time from SIGTERM to SIGKILL for a job that is stopped")
	flags.BoolVarP(&verbose, "verbose", "v", false, "log details")
	return command
}

func (c *commands) runServer(ctx context.Context, config app.Config) error {
	self, err := c.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	config.Shim = []string{self, ShimCommand}
	a := app.New(config)
	if err := a.Start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "bursar is ready at %s\n", a.URL())
	select {
	case <-ctx.Done():
	case err = <-a.Failed():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if stopErr := a.Stop(stopping); stopErr != nil {
		return stopErr
	}
	return err
}
