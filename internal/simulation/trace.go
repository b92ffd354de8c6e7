package simulation

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/scenario"
)

// Trace is a history of jobs.
type Trace struct {
	Name string // of its file
	Jobs []Job  // by when they were submitted; those of one instant as in the file
}

// Job is one row of a trace.
type Job struct {
	Line       int // of the file, from 1
	Name       string
	Team       string // the share
	Priority   int32
	Submit     time.Duration // since the start of the trace
	Runtime    time.Duration // how long it needs in all
	MaxRuntime time.Duration // what it declares to need at most; 0: it declares nothing
	// CheckpointEvery is how long it runs from one checkpoint to the next;
	// 0: it never completes one.
	CheckpointEvery time.Duration
	// Demand is shared by jobs that want the same, and must not be changed.
	Demand quota.Amounts
	// PreemptionRetries is how often it returns when it is preempted; nil: always.
	PreemptionRetries *int
	// Standing is where it stands when the trace begins; nil: it is not there
	// until Submit.
	Standing *scenario.Standing
}

// RowError says what is wrong in a trace, where, and what would be right.
type RowError struct {
	File   string
	Line   int    // 0: it is no row of a file
	Column string // empty: the line as a whole
	Value  string // of the column
	Right  string
}

// Error names the file, the line, the column and its value.
func (e *RowError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Right)
	}
	if e.Column == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Right)
	}
	return fmt.Sprintf("%s:%d: column %s: %q: %s", e.File, e.Line, e.Column, e.Value, e.Right)
}

// The columns of a trace.
const (
	columnSubmit     = "submit_s"
	columnRuntime    = "runtime_s"
	columnTeam       = "team"
	columnGPUs       = "gpus"
	columnDemand     = "demand"
	columnJob        = "job"
	columnPriority   = "priority"
	columnMaxRuntime = "max_runtime_s"
	columnCheckpoint = "checkpoint_s"
)

var columns = [...]string{
	columnSubmit, columnRuntime, columnTeam, columnGPUs, columnDemand,
	columnJob, columnPriority, columnMaxRuntime, columnCheckpoint,
}

// maxSeconds is the longest time that a trace may name: some 31 years.
const maxSeconds = 1e9

// ReadTrace reads a trace: CSV, plain or compressed with gzip, whose first line
// names the columns, in any order. gpusUnit is what the column gpus counts. name
// is what errors call the file. What is wrong in a row is a *RowError.
func ReadTrace(name string, r io.Reader, gpusUnit quota.Unit) (*Trace, error) {
	text, err := plainText(r)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	rows := csv.NewReader(text)
	rows.ReuseRecord = true
	t := traceReader{file: name, rows: rows, gpusUnit: gpusUnit, line: 1, demands: map[string]quota.Amounts{}, named: map[string]int{}}
	if err := t.readHeader(); err != nil {
		return nil, err
	}
	jobs, err := t.readJobs()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return &Trace{Name: name, Jobs: jobs}, nil
}

// plainText returns what r holds, decompressed if its first bytes are gzip's,
// and without the byte order mark that spreadsheets put first.
func plainText(r io.Reader) (*bufio.Reader, error) {
	const size = 64 << 10
	text := bufio.NewReaderSize(r, size)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, err
		}
		text = bufio.NewReaderSize(unzipped, size)
	}
	const mark = "\ufeff"
	if first, _ := text.Peek(len(mark)); string(first) == mark {
		if _, err := text.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// traceReader reads one file.
type traceReader struct {
	file     string
	rows     *csv.Reader
	gpusUnit quota.Unit
	at       [len(columns)]int // where each column is in a row; -1: it is absent
	row      []string
	line     int

	demands map[string]quota.Amounts // by how they are written
	named   map[string]int           // line of each job by its name
}

// next reads a row. At the end of the file it returns io.EOF.
func (t *traceReader) next() error {
	row, err := t.rows.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		t.row = row
		t.line, _ = t.rows.FieldPos(0)
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &parse):
		return t.wrongLine(parse.Line, "has %d fields where the first line has %d", len(row), t.rows.FieldsPerRecord)
	case errors.As(err, &parse):
		return t.wrongLine(parse.Line, "is not CSV: %v", parse.Err)
	default:
		return fmt.Errorf("read trace %s after line %d: %w", t.file, t.line, err)
	}
}

func (t *traceReader) readHeader() error {
	err := t.next()
	if errors.Is(err, io.EOF) {
		return t.wrongLine(1, "the file is empty; its first line must name the columns %s, %s, %s, and %s or %s",
			columnSubmit, columnRuntime, columnTeam, columnGPUs, columnDemand)
	}
	if err != nil {
		return err
	}
	for i := range t.at {
		t.at[i] = -1
	}
	for i, name := range t.row {
		column := slices.Index(columns[:], strings.TrimSpace(name))
		if column < 0 {
			return t.wrongLine(1, "column %q is unknown; a trace has the columns %s", name, strings.Join(columns[:], ", "))
		}
		if t.at[column] >= 0 {
			return t.wrongLine(1, "column %s is there twice", name)
		}
		t.at[column] = i
	}
	return t.checkHeader()
}

func (t *traceReader) checkHeader() error {
	for _, name := range []string{columnSubmit, columnRuntime, columnTeam} {
		if !t.has(name) {
			return t.wrongLine(1, "column %s is missing", name)
		}
	}
	switch {
	case t.has(columnGPUs) == t.has(columnDemand):
		return t.wrongLine(1, "exactly one of the columns %s and %s must be there", columnGPUs, columnDemand)
	case t.has(columnGPUs) && t.gpusUnit == "":
		return t.wrongLine(1, "there is a column %s: name the unit that it counts with --gpus-unit", columnGPUs)
	}
	return nil
}

func (t *traceReader) readJobs() ([]Job, error) {
	var jobs []Job
	for {
		err := t.next()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return nil, err
		}
		j, err := t.job(len(jobs) + 1)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
}

// job reads the n-th job from the row.
func (t *traceReader) job(n int) (Job, error) {
	j := Job{Line: t.line}
	for _, read := range []func(*Job, int) error{t.times, t.priority, t.demand, t.names} {
		if err := read(&j, n); err != nil {
			return Job{}, err
		}
	}
	return j, nil
}

func (t *traceReader) times(j *Job, _ int) error {
	for _, c := range [...]struct {
		column string
		least  time.Duration
		right  string
		into   *time.Duration
	}{
		{columnSubmit, 0, "must be seconds since the start of the trace, such as 0 or 90.5", &j.Submit},
		{columnRuntime, 1, "must be seconds, more than 0, such as 3600", &j.Runtime},
		{columnMaxRuntime, 0, "must be seconds, such as 7200, or nothing where a job declares none", &j.MaxRuntime},
		{columnCheckpoint, 0, "must be seconds from one checkpoint to the next, such as 600, or nothing where a job writes none", &j.CheckpointEvery},
	} {
		value := t.value(c.column)
		if value == "" && c.column != columnSubmit && c.column != columnRuntime {
			continue
		}
		d, ok := seconds(value)
		if !ok || d < c.least {
			return t.wrong(c.column, value, "%s, and at most %.0f", c.right, maxSeconds)
		}
		*c.into = d
	}
	return nil
}

// seconds reads a number of seconds, not negative and at most maxSeconds.
func seconds(s string) (time.Duration, bool) {
	if whole, err := strconv.ParseUint(s, 10, 32); err == nil && whole <= maxSeconds {
		return time.Duration(whole) * time.Second, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= maxSeconds) {
		return 0, false
	}
	return time.Duration(math.Round(f * float64(time.Second))), true
}

func (t *traceReader) priority(j *Job, _ int) error {
	value := t.value(columnPriority)
	if value == "" {
		return nil
	}
	p, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return t.wrong(columnPriority, value, "must be a whole number, higher first, or nothing for 0")
	}
	j.Priority = int32(p)
	return nil
}

func (t *traceReader) demand(j *Job, _ int) error {
	column, parse := columnDemand, parseDemand
	if t.has(columnGPUs) {
		column, parse = columnGPUs, t.parseGPUs
	}
	value := t.value(column)
	demand, ok := t.demands[value]
	if !ok {
		var right string
		if demand, right = parse(value); right != "" {
			return t.wrong(column, value, "%s", right)
		}
		t.demands[value] = demand
	}
	j.Demand = demand
	return nil
}

func (t *traceReader) parseGPUs(value string) (demand quota.Amounts, right string) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n <= 0 {
		return nil, "must be a whole number, more than 0, such as 8"
	}
	return quota.Amounts{t.gpusUnit: n}, ""
}

// parseDemand reads unit=amount;unit=amount. Where that is not what the value
// is, right says what would be.
func parseDemand(value string) (demand quota.Amounts, right string) {
	demand = quota.Amounts{}
	for part := range strings.SplitSeq(value, ";") {
		unit, amount, found := strings.Cut(part, "=")
		u := quota.Unit(strings.TrimSpace(unit))
		n, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 32)
		switch {
		case !found || u == "" || err != nil || n <= 0:
			return nil, "must be unit=amount, each amount a whole number of more than 0, with ; between several, such as ml.g5.xlarge=2"
		case demand[u] > 0:
			return nil, fmt.Sprintf("must name each unit once, and names %s again", u)
		}
		demand[u] = n
	}
	return demand, ""
}

// names reads what the job is called, and whose it is.
func (t *traceReader) names(j *Job, n int) error {
	if j.Team = t.value(columnTeam); j.Team == "" {
		return t.wrong(columnTeam, "", "must name the share of the job")
	}
	if !t.has(columnJob) {
		j.Name = "job-" + strconv.Itoa(n)
		return nil
	}
	if j.Name = t.value(columnJob); j.Name == "" {
		return t.wrong(columnJob, "", "must name the job; without the column jobs are numbered")
	}
	if line, ok := t.named[j.Name]; ok {
		return t.wrong(columnJob, j.Name, "must differ from all others, and line %d has it too", line)
	}
	t.named[j.Name] = j.Line
	return nil
}

func (t *traceReader) has(column string) bool { return t.at[slices.Index(columns[:], column)] >= 0 }

// value returns the row's value in a column; nothing if there is no such column.
func (t *traceReader) value(column string) string {
	at := t.at[slices.Index(columns[:], column)]
	if at < 0 {
		return ""
	}
	return strings.TrimSpace(t.row[at])
}

func (t *traceReader) wrong(column, value, right string, args ...any) error {
	return &RowError{File: t.file, Line: t.line, Column: column, Value: value, Right: fmt.Sprintf(right, args...)}
}

func (t *traceReader) wrongLine(line int, right string, args ...any) error {
	return &RowError{File: t.file, Line: line, Right: fmt.Sprintf(right, args...)}
}
