package mirror

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"testing"
	"time"
)

// casesFile holds the cases, one JSON object a line. It lies beside the
// checkout, with its notice and its licence, and is not part of it.
const casesFile = "../../../../shared/oracle/kueue-cases.jsonl.gz"

// The tables whose cases are one waiting workload and who is preempted for it.
const (
	classical = "TestPreemption"
	fair      = "TestFairPreemptions"
)

// example is a case: queues, who runs in them, who waits, and whom the other
// scheduler preempts.
type example struct {
	Table            string `json:"test"`
	Name             string
	Queues           []queue  `json:"cqs"`
	Cohorts          []cohort // with quota or a parent of their own
	Running          []workload
	Incoming         workload
	Target           string             `json:"targetCQ"` // queue of Incoming
	Assignment       []podSetAssignment // flavors of Incoming by resource; or
	AssignmentFlavor string             // one for all
	Preempted        []string           `json:"expectPreempted"` // as [namespace/]name:reason
}

func (e example) String() string { return e.Table + ": " + e.Name }

// target is the queue in which Incoming waits.
func (e example) target() (queue, error) {
	for _, q := range e.Queues {
		if q.Name == e.Target {
			return q, nil
		}
	}
	return queue{}, fmt.Errorf("%s: no queue %q", e, e.Target)
}

// queue is one with quotas, by flavor and resource.
type queue struct {
	Name       string
	Cohort     string
	Quotas     quotas
	Weight     json.Number
	Preemption struct {
		WithinClusterQueue  string
		ReclaimWithinCohort string
		BorrowWithinCohort  struct{ Policy string }
	}
}

type quotas map[string]map[string]limits

type limits struct {
	Nominal        json.Number
	BorrowingLimit json.Number // none: unlimited
	LendingLimit   json.Number // none: everything
}

type cohort struct {
	Name, Parent string
	Quotas       quotas
}

type workload struct {
	Name       string
	Priority   int32
	PodSets    []podSet
	Created    time.Time
	Admission  admission
	ReservedAt struct{ At time.Time }
}

type podSet struct {
	Count  int64
	PerPod map[string]json.Number
}

type admission struct {
	Queue   string `json:"cq"`
	PodSets []struct {
		Flavors map[string]string
		Usage   map[string]json.Number
	}
}

type podSetAssignment struct {
	Flavors map[string]struct{ Flavor string }
}

// readExamples returns the cases of the two tables, and how many the file has
// in all. The test is left out where the file is not there.
func readExamples(t *testing.T) (examples []example, all int) {
	t.Helper()
	file, err := os.Open(casesFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("left out: the other scheduler's cases are not beside this checkout (%s)", casesFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	examples, all, err = parseExamples(file)
	if err != nil {
		t.Fatalf("%s: %v", casesFile, err)
	}
	return examples, all
}

func parseExamples(compressed io.Reader) (examples []example, all int, err error) {
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, 0, err
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		all++
		var head struct{ Test string }
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", all, err)
		}
		if head.Test != classical && head.Test != fair {
			continue
		}
		var e example
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", all, err)
		}
		examples = append(examples, e)
	}
	return examples, all, lines.Err()
}

// thousandths is a quantity, in cores, bytes or whatever is counted, in
// thousandths of it: none of the cases counts finer.
func thousandths(quantity json.Number) (int64, error) {
	q, ok := new(big.Rat).SetString(quantity.String())
	if !ok {
		return 0, fmt.Errorf("quantity %q is no decimal number", quantity)
	}
	q.Mul(q, big.NewRat(1000, 1))
	if !q.IsInt() || !q.Num().IsInt64() {
		return 0, fmt.Errorf("quantity %q is no number of thousandths", quantity)
	}
	return q.Num().Int64(), nil
}
