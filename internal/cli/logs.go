package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/bursarapi"
)

func (c *commands) logs() *cobra.Command {
	var query bursarapi.LogQuery
	command := &cobra.Command{
		Use:   "logs JOB",
		Short: "Show what a job's worker prints",
		Long:  "Show what a job's worker prints. " + jobRefHelp,
		Args:  oneJob,
		RunE: func(command *cobra.Command, args []string) (err error) {
			s, err := c.connect()
			if err != nil {
				return err
			}
			query.Job = args[0]
			output, err := c.asker(s).Log(command.Context(), query)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, output.Close()) }()
			if _, err := io.Copy(c.Out, output); err != nil {
				return fmt.Errorf("reading the log: %w", err)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&query.Follow, "follow", "f", false, "go on until the run ends")
	flags.IntVar(&query.Run, "run", 0, "which of the job's runs, from 1 (default: the newest)")
	flags.IntVar(&query.Worker, "worker", 1, "which of the run's workers, from 1")
	flags.BoolVar(&query.Stderr, "stderr", false, "what it writes to stderr, in place of stdout")
	return command
}
