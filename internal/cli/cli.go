// Package cli is the command line of Bursar: the server, and the commands with
// which people talk to a running one. It reads flags, asks a server through
// its HTTP doors, and writes what comes back for people (aligned tables) or
// for programs (-o json).
//
// It decides nothing about jobs, and reads nothing of a data directory but
// what tells how to reach its server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/terminal"
)

// System is what the commands use of the machine they run on.
type System struct {
	Out, Err   io.Writer
	Getenv     func(string) string
	Getwd      func() (string, error)
	Executable func() (string, error) // this program's path
	Now        func() time.Time
}

// Run runs one command line, without the program's name, and returns its exit
// status. It ends early when ctx does.
func Run(ctx context.Context, s System, args []string) int {
	c := &commands{System: s, http: &http.Client{}}
	root := c.root()
	root.SetArgs(args)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return statusInterrupted
	}
	fmt.Fprintln(s.Err, "bursar:", err)
	return 1
}

// statusInterrupted is a shell's status of a program that was interrupted.
const statusInterrupted = 130

// commands holds what the commands share.
type commands struct {
	System
	http *http.Client

	endpoint string
	dataDir  string
	region   string
	output   string
}

func (c *commands) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bursar",
		Short: "Share scarce accelerators between teams, fairly and in the open",
		Long: `Bursar shares scarce accelerators between teams. Each team's quota share owns
some instances, lends what it leaves idle, and gets it back when it needs it.

"bursar serve" runs the server. The other commands talk to one, and find it by
--endpoint, by BURSAR_ENDPOINT, or by its data directory.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(c.serve(), c.policy())
	for _, command := range []*cobra.Command{
		c.submit(), c.jobs(), c.job(), c.logs(), c.stop(), c.priority(), c.shares(), c.queue(), c.why(),
		c.plan(), c.apply(), c.export(), c.simulate(),
	} {
		c.addConnectionFlags(command)
		root.AddCommand(command)
	}
	return root
}

// addOutputFlag adds -o to a command that prints something.
func (c *commands) addOutputFlag(command *cobra.Command) {
	command.Flags().StringVarP(&c.output, "output", "o", "table", "table, or json")
}

func (c *commands) screen() *terminal.Screen { return terminal.New(c.Out, c.Getenv) }
