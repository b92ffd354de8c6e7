package sqlite

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

// A page must cost the same however many jobs there are: it may neither scan a
// table nor sort what it found.
func TestPagesAreIndexRanges(t *testing.T) {
	s := openIn(t, t.TempDir())
	share, at := "share", time.Unix(1, 0)
	tests := map[string]store.JobQuery{
		"all":                   {},
		"share":                 {Share: &share},
		"status":                {Statuses: []job.Status{job.Running}},
		"statuses":              {Statuses: []job.Status{job.Running, job.Failed, job.Succeeded}},
		"share and status":      {Share: &share, Statuses: []job.Status{job.Running}},
		"share and statuses":    {Share: &share, Statuses: []job.Status{job.Running, job.Failed}},
		"name":                  {NamePrefix: "train-1", NameExact: true},
		"name prefix":           {NamePrefix: "train"},
		"name and status":       {NamePrefix: "train-1", NameExact: true, Statuses: []job.Status{job.Running}},
		"name prefix and share": {NamePrefix: "train", Share: &share},
		"identifier":            {Identifier: "team"},
		"identifier and status": {Identifier: "team", Statuses: []job.Status{job.Running, job.Failed}},
		"identifier and share":  {Identifier: "team", Share: &share},
		"name and identifier":   {NamePrefix: "train", Identifier: "team"},
		"created":               {CreatedBefore: at, CreatedAfter: at},
	}
	for name, q := range tests {
		for _, continued := range []bool{false, true} {
			q.Queue, q.Limit = "queue", 100
			if continued {
				q.BeforeSeq, q.BeforeTime = 7, at
			}
			plan := explain(t, s, q)
			if strings.Contains(plan, "SCAN jobs") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s, continued: %t:\n%s", name, continued, plan)
			}
			bounded := continued || !q.CreatedBefore.IsZero()
			if bounded && !strings.Contains(plan, "created_ms<?") {
				t.Errorf("%s, continued: %t: does not begin where the page does:\n%s", name, continued, plan)
			}
		}
	}
}

// What ended within a window is found without looking at what ended before.
func TestEndedIsAnIndexRange(t *testing.T) {
	plan := explainQuery(t, openIn(t, t.TempDir()), endedJobs, "queue", 5)
	if !strings.Contains(plan, "SEARCH jobs USING INDEX jobs_ended (queue=? AND stopped_ms>?)") {
		t.Error(plan)
	}
}

func explain(t *testing.T, s *Store, q store.JobQuery) string {
	t.Helper()
	query, args := page(q)
	return explainQuery(t, s, query, args...)
}

func explainQuery(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.reading.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}
