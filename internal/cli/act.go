package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/batch"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"
)

func (c *commands) stop() *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use:   "stop JOB",
		Short: "End a job, whatever its state",
		Long:  "End a job, whatever its state. A running one is told to stop and may write a checkpoint. " + jobRefHelp,
		Args:  oneJob,
		RunE: func(command *cobra.Command, args []string) error {
			ctx := command.Context()
			s, err := c.connect()
			if err != nil {
				return err
			}
			j, err := c.asker(s).Job(ctx, args[0])
			if err != nil {
				return err
			}
			if j.Job.Status.Finished() {
				return fmt.Errorf("job %s (%s) has ended already: it is %s", j.Job.Name, j.Job.ID, j.Job.Status)
			}
			_, err = c.batch(s).TerminateServiceJob(ctx, &batch.TerminateServiceJobInput{JobId: &j.Job.ID, Reason: &reason})
			if err != nil {
				return c.batchError(s, err)
			}
			fmt.Fprintf(c.Out, "stopping %s (%s)\n", j.Job.Name, j.Job.ID)
			return nil
		},
	}
	command.Flags().StringVar(&reason, "reason", "Stopped by its user", "what the job then shows as its reason")
	return command
}

func (c *commands) priority() *cobra.Command {
	return &cobra.Command{
		Use:   "priority JOB N",
		Short: "Change a job's priority inside its share",
		Long:  "Change a job's priority inside its share: 0 to 9999, higher first. " + jobRefHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("got %d arguments; name a JOB and its new priority, such as: bursar priority train 10", len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			priority, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil {
				return fmt.Errorf("the priority is %q; it must be a whole number from 0 to 9999", args[1])
			}
			ctx := command.Context()
			s, err := c.connect()
			if err != nil {
				return err
			}
			j, err := c.asker(s).Job(ctx, args[0])
			if err != nil {
				return err
			}
			_, err = c.batch(s).UpdateServiceJob(ctx, &batch.UpdateServiceJobInput{JobId: &j.Job.ID, SchedulingPriority: aws.Int32(int32(priority))})
			if err != nil {
				return c.batchError(s, err)
			}
			fmt.Fprintf(c.Out, "%s (%s) has priority %d now; it was %d\n", j.Job.Name, j.Job.ID, priority, j.Job.Priority)
			return nil
		},
	}
}

// batchError is what the server said, without the client's layers around it.
func (c *commands) batchError(s server, err error) error {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return errors.New(refused.ErrorMessage())
	}
	return fmt.Errorf("asking the server at %s: %w", s.endpoint, err)
}
