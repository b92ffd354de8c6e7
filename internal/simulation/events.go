package simulation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/bursar-io/bursar/internal/scenario"
)

// EventWriter writes events as JSON, one a line, in the order in which they are
// observed.
type EventWriter struct {
	out  *bufio.Writer
	json *json.Encoder
	err  error // the first
}

// NewEventWriter returns a writer of events to w.
func NewEventWriter(w io.Writer) *EventWriter {
	out := bufio.NewWriterSize(w, 1<<16)
	return &EventWriter{out: out, json: json.NewEncoder(out)}
}

// Observe writes an event. After an error it writes nothing more.
func (w *EventWriter) Observe(e scenario.Event) {
	if w.err == nil {
		w.err = w.json.Encode(e)
	}
}

// Flush writes what is left, and returns the first error that there was.
func (w *EventWriter) Flush() error {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("write events: %w", w.err)
	}
	return nil
}
