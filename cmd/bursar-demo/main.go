// Command bursar-demo shows what Bursar does in under a minute, with real
// training processes on this machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/bursar-io/bursar/internal/cli"
	"github.com/bursar-io/bursar/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && errors.Is(err, context.Canceled):
		os.Exit(130) // as a shell has it; there is nothing to add
	default:
		fmt.Fprintln(os.Stderr, "bursar-demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	beside := filepath.Dir(self)
	flags := flag.NewFlagSet("bursar-demo", flag.ContinueOnError)
	bursar := flags.String("bursar", filepath.Join(beside, "bursar"), "the bursar program")
	train := flags.String("train", filepath.Join(beside, "train"), "the training program")
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	exit := flags.Bool("exit", os.Getenv("BURSAR_DEMO_EXIT") != "", "end after the story, rather than stay up (default $BURSAR_DEMO_EXIT)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return demo.Run(ctx, demo.Config{
		Shim:   []string{*bursar, cli.ShimCommand},
		Train:  *train,
		Listen: *listen,
		Stay:   !*exit,
		Out:    os.Stdout,
		Getenv: os.Getenv,
	})
}
