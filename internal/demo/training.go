package demo

import (
	"fmt"
	"strings"
)

// training is what one job's training printed, run by run.
type training struct {
	runs map[int]*run
	last int // the newest run that printed anything
	loss string
}

// run is what one run of a training printed.
type run struct {
	first    int  // step it began at
	step     int  // last step that it told of
	resumed  bool // it began from a checkpoint
	stopped  bool // it was told to stop, and wrote a checkpoint
	saved    int  // the step of that checkpoint
	finished bool
}

// report is one line of the training program: an event and its numbers.
type report struct {
	event  string
	step   int
	fields map[string]string
}

// readReport reads a line such as "progress step=40 loss=0.31 accuracy=0.91".
func readReport(line string) (report, bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return report{}, false
	}
	r := report{event: words[0], fields: map[string]string{}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		r.fields[name] = value
	}
	_, err := fmt.Sscan(r.fields["step"], &r.step)
	return r, err == nil
}

// add notes what a run printed. It returns a sentence if that is worth telling.
func (t *training) add(number int, r report) string {
	current := t.runs[number]
	if current == nil {
		current = &run{first: r.step}
		t.runs[number] = current
	}
	t.last = max(t.last, number)
	current.step = r.step
	if loss, ok := r.fields["loss"]; ok {
		t.loss = loss
	}
	switch r.event {
	case "resumes":
		current.resumed = true
		return fmt.Sprintf("resumes from its checkpoint at step %d", r.step)
	case "stopped":
		current.stopped = true
		_, err := fmt.Sscan(r.fields["checkpoint"], &current.saved)
		if err != nil {
			return fmt.Sprintf("stopped at step %d", r.step)
		}
		return fmt.Sprintf("wrote a checkpoint at step %d and stopped", current.saved)
	case "finished":
		current.finished = true
		return fmt.Sprintf("finished at step %d with loss %s", r.step, r.fields["loss"])
	}
	return ""
}

// stepping reports whether a run has told of a step that it took.
func (t *training) stepping(number int) bool {
	if t == nil || t.runs[number] == nil {
		return false
	}
	return t.runs[number].step > t.runs[number].first
}

// ended reports whether the training told that it is complete.
func (t *training) ended() bool {
	return t != nil && t.runs[t.last] != nil && t.runs[t.last].finished
}

// step is the step that the training has reached.
func (t *training) step() int {
	if t == nil || t.runs[t.last] == nil {
		return 0
	}
	return t.runs[t.last].step
}
