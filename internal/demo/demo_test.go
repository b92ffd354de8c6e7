package demo

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/bursarapi"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/quota"
	"github.com/bursar-io/bursar/internal/store"
)

// history is a scene as the story leaves it: the journal, and what the
// workers printed.
func history(t *testing.T) *scene {
	t.Helper()
	began := time.UnixMilli(0)
	s := newScene(began)
	decide := func(second int, name, id string, d decided) {
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		s.journal = append(s.journal, bursarapi.Entry{At: began.Add(time.Duration(second) * time.Second), Kind: store.Decision, Name: name, Subject: id, Data: data})
	}
	ended := func(second int, id string) {
		s.journal = append(s.journal, bursarapi.Entry{At: began.Add(time.Duration(second) * time.Second), Kind: store.Seen, Name: "ended", Subject: id})
	}
	decide(0, "grant", "1", decided{Name: "high", Share: "QS1"})
	decide(1, "grant", "2", decided{Name: "med", Share: "QS1", Borrowed: quota.Amounts{instance: 1}})
	decide(10, "preempt", "2", decided{Name: "med", Share: "QS1", Ground: quota.Reclaim})
	ended(11, "2")
	decide(11, "grant", "4", decided{Name: "owner", Share: "QS2"})
	decide(20, "preempt", "1", decided{Name: "high", Share: "QS1", Ground: quota.InShare})
	ended(21, "1")
	decide(21, "grant", "3", decided{Name: "low", Share: "QS1"})
	ended(25, "4")
	decide(25, "grant", "1", decided{Name: "high", Share: "QS1", Borrowed: quota.Amounts{instance: 1}})
	ended(30, "3")
	decide(30, "grant", "2", decided{Name: "med", Share: "QS1", Borrowed: quota.Amounts{instance: 1}})
	ended(31, "1")
	ended(32, "2")
	for id, name := range map[string]string{"1": "high", "2": "med", "3": "low", "4": "owner"} {
		s.jobs = append(s.jobs, bursarapi.Job{Job: job.Job{ID: id, Name: name, Status: job.Succeeded}})
	}
	for _, line := range []struct {
		name string
		run  int
		text string
	}{
		{"high", 1, "begins step=0 of=300"}, {"high", 1, "stopped step=210 checkpoint=210"},
		{"high", 2, "resumes step=210 of=300"}, {"high", 2, "finished step=300 loss=0.1 accuracy=0.9"},
		{"med", 1, "begins step=0 of=200"}, {"med", 1, "stopped step=105 checkpoint=100"},
		{"med", 2, "resumes step=100 of=200"}, {"med", 2, "finished step=200 loss=0.1 accuracy=0.9"},
		{"low", 1, "begins step=0 of=50"}, {"low", 1, "finished step=50 loss=0.2 accuracy=0.9"},
		{"owner", 1, "begins step=0 of=60"}, {"owner", 1, "finished step=60 loss=0.2 accuracy=0.9"},
	} {
		r, ok := readReport(line.text)
		if !ok {
			t.Fatalf("%q is not a report", line.text)
		}
		s.trained(runKey{name: line.name, run: line.run}, r)
	}
	return s
}

func TestSummaryAddsUpWhatHappened(t *testing.T) {
	sum, err := history(t).summary()
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, p := range sum.preemptions {
		lost += p.lost()
	}
	if want := 300 + 200 + 50 + 60; sum.stepsDone != want || lost != 5 {
		t.Errorf("steps done %d and lost %d; want %d and 5", sum.stepsDone, lost, want)
	}
	// 1 to 11, 25 to 30, 30 to 31.
	if want := 16 * time.Second; sum.borrowed != want {
		t.Errorf("borrowed %s, want %s", sum.borrowed, want)
	}
}

func TestSummaryOfAnotherStoryIsAnError(t *testing.T) {
	tests := map[string]func(*scene){
		"a job failed":            func(s *scene) { s.jobs[0].Job.Status = job.Failed },
		"nothing was preempted":   func(s *scene) { s.journal = s.journal[:2] },
		"nobody was outranked":    func(s *scene) { s.journal = append(s.journal[:5:5], s.journal[6:]...) },
		"med began from scratch":  func(s *scene) { s.training["med"].runs[2].resumed = false },
		"high did not checkpoint": func(s *scene) { s.training["high"].runs[1].stopped = false },
		"med printed nothing":     func(s *scene) { delete(s.training["med"].runs, 1) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := history(t)
			spoil(s)
			if sum, err := s.summary(); err == nil {
				t.Errorf("got no error, and %+v", sum)
			}
		})
	}
}

func TestReadReportLeavesOtherLinesAlone(t *testing.T) {
	for _, line := range []string{"", "hello", "progress without numbers", "progress step=many", "Traceback (most recent call last):"} {
		if r, ok := readReport(line); ok {
			t.Errorf("%q was read as %+v", line, r)
		}
	}
}
