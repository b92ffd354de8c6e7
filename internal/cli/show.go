package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-io/bursar/internal/terminal"
)

// refreshEvery is how often --watch asks again.
const refreshEvery = time.Second

// view is something to show: as the server told it, and laid out for people.
type view struct {
	data  any
	lines []terminal.Line
}

// viewer is a command that shows one view, once or (with --watch) again and
// again.
type viewer struct {
	*commands
	watch bool
	prose bool // lines are sentences, to be wrapped, and not rows of a table, to be cut
	fetch func(context.Context, server, []string) (view, error)
}

// addTo makes a command show what fetch returns.
func (v *viewer) addTo(command *cobra.Command) *cobra.Command {
	v.addOutputFlag(command)
	command.Flags().BoolVarP(&v.watch, "watch", "w", false, "show it again every second, in place")
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := v.checkOutput(); err != nil {
			return err
		}
		s, err := v.connect()
		if err != nil {
			return err
		}
		return v.show(command.Context(), s, args)
	}
	return command
}

func (v *viewer) show(ctx context.Context, s server, args []string) error {
	screen := v.screen()
	for {
		shown, err := v.fetch(ctx, s, args)
		if err != nil {
			return err
		}
		if err := v.put(screen, shown); err != nil {
			return err
		}
		if !v.watch {
			return nil
		}
		select {
		case <-time.After(refreshEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

func (v *viewer) put(screen *terminal.Screen, shown view) error {
	if v.output == "json" {
		return v.writeJSON(shown.data)
	}
	lines := screen.Cut(shown.lines)
	if v.prose {
		lines = screen.Wrap(shown.lines)
	}
	if v.watch {
		return screen.Draw(lines)
	}
	return screen.Print(lines...)
}

func (c *commands) checkOutput() error {
	if c.output != "table" && c.output != "json" {
		return fmt.Errorf("--output is %q; it must be table or json", c.output)
	}
	return nil
}

func (c *commands) writeJSON(data any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(data)
}
