// Command bursar is the server, the command line, and the parent of every
// worker, in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bursar-io/bursar/internal/cli"
	"github.com/bursar-io/bursar/internal/runner/process"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == cli.ShimCommand {
		os.Exit(process.ShimMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	system := cli.System{
		Out:        os.Stdout,
		Err:        os.Stderr,
		Getenv:     os.Getenv,
		Getwd:      os.Getwd,
		Executable: os.Executable,
		Now:        time.Now,
	}
	status := cli.Run(ctx, system, os.Args[1:])
	stop()
	os.Exit(status)
}
