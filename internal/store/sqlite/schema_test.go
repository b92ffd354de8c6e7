package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// A recorded database is the text of one of that version, made by the program
// of that version. Once a release has that version, its file never changes.
var record = flag.Bool("record", false, "record a database of this version of the schema in testdata")

// recordedJobs are the first five numbered jobs, the first of them running and
// the last of them finished.
func recordedJobs() store.Batch {
	b := numbered(0, 5, 10)
	at := b.Jobs[0].CreatedAt
	b.Jobs[0].Status = job.Running
	b.Jobs[0].Current = &job.Attempt{Run: 1, TrainingJobName: "AWSBatchtrain0", ScheduledAt: at, StartedAt: at}
	b.Jobs[4].Status = job.Failed
	b.Jobs[4].Attempts = []job.Attempt{{Run: 1, StoppedAt: at, Reason: job.ReasonStopped}}
	b.Environments = []resource.Environment{{Name: "environment", State: resource.Enabled, Limits: []resource.Limit{{Unit: "ml.g5.xlarge", Max: 3}}, CreatedAt: at}}
	b.Policies = []resource.Policy{{Name: "policy", IdleAssignment: resource.IdleFIFO, CreatedAt: at}}
	b.Queues = []resource.Queue{{Name: "queue", Environment: "environment", Policy: "policy", CreatedAt: at}}
	b.Shares = []resource.Share{{Queue: "queue", Name: "share-1", Sharing: resource.LendAndBorrow, BorrowLimit: resource.Unlimited, Weight: resource.DefaultWeight, CreatedAt: at}}
	return b
}

func recordedFile(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("version%d.sql", version))
}

func TestEveryVersionCanBeOpened(t *testing.T) {
	if *record {
		s := openIn(t, t.TempDir())
		if err := s.Commit(t.Context(), recordedJobs()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recordedFile(len(steps)), []byte(dump(t, s)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := openIn(t, t.TempDir())
	for version := 1; version <= len(steps); version++ {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			text, err := os.ReadFile(recordedFile(version))
			if err != nil {
				t.Fatalf("every version needs a recorded database, see -record: %v", err)
			}
			dir := t.TempDir()
			restore(t, filepath.Join(dir, FileName), string(text))
			s := openIn(t, dir)
			if diff := cmp.Diff(schemaOf(t, fresh), schemaOf(t, s)); diff != "" {
				t.Errorf("its schema is not that of a new database (-new +upgraded):\n%s", diff)
			}
			checkRecorded(t, s)
			if err := s.Commit(t.Context(), numbered(5, 5, 10)); err != nil {
				t.Errorf("commit: %v", err)
			}
			checkWhole(t, s, 10)
		})
	}
}

func checkRecorded(t *testing.T, s *Store) {
	t.Helper()
	b := recordedJobs()
	want := store.Contents{
		Environments: b.Environments, Policies: b.Policies, Queues: b.Queues, Shares: b.Shares,
		Jobs: b.Jobs[:4], LastJobSeq: 5, LastEntrySeq: 10,
	}
	for _, j := range b.Jobs {
		want.Tokens = append(want.Tokens, store.Token{Token: j.Token, Hash: j.TokenHash, JobID: j.ID, CreatedAt: j.CreatedAt})
	}
	same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)}
	if got, err := s.Load(t.Context(), time.Time{}); err != nil || !cmp.Equal(want, got, same) {
		t.Errorf("Load: %v, (-want +got):\n%s", err, cmp.Diff(want, got, same))
	}
	if got, err := s.Job(t.Context(), b.Jobs[4].ID); err != nil || !cmp.Equal(b.Jobs[4], got, same) {
		t.Errorf("finished job: %v, (-want +got):\n%s", err, cmp.Diff(b.Jobs[4], got, same))
	}
	if got, err := s.Journal(t.Context(), 0, 100); err != nil || !cmp.Equal(b.Entries, got, same) {
		t.Errorf("Journal: %v, (-want +got):\n%s", err, cmp.Diff(b.Entries, got, same))
	}
	if got, err := s.Payload(t.Context(), b.Jobs[0].ID); err != nil || got != b.Payloads[b.Jobs[0].ID] {
		t.Errorf("Payload: %q, %v", got, err)
	}
}

func TestMigrate(t *testing.T) {
	const column, broken = `ALTER TABLE payloads ADD COLUMN note TEXT NOT NULL DEFAULT 'none'`, `UPDATE payloads SET payload = ''; DELETE FROM nowhere`
	tests := []struct {
		name    string
		next    []string // steps after those there are
		version int      // after steps there are
		err     string
	}{
		{name: "nothing to do"},
		{name: "one step", next: []string{column}, version: 1},
		{name: "two steps", next: []string{column, `UPDATE payloads SET note = payload`}, version: 2},
		{name: "broken step", next: []string{column, broken}, version: 1, err: fmt.Sprintf("version %d to %d", len(steps)+1, len(steps)+2)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := openIn(t, t.TempDir())
			if err := s.Commit(t.Context(), numbered(0, 5, 10)); err != nil {
				t.Fatal(err)
			}
			from, to, err := migrate(t.Context(), s.writer, append(steps[:len(steps):len(steps)], test.next...))
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("migrate: %v, want %q", err, test.err)
			}
			if from != len(steps) || to != len(steps)+test.version {
				t.Errorf("migrated from %d to %d, want %d to %d", from, to, len(steps), len(steps)+test.version)
			}
			checkWhole(t, s, 5)
			if got, err := s.Payload(t.Context(), numbered(0, 1, 10).Jobs[0].ID); err != nil || len(got) != 10 {
				t.Errorf("payload %q, %v", got, err)
			}
		})
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	if _, err := s.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", len(steps)+3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the refusal gives the lock back
		_, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err == nil || errors.Is(err, store.ErrLocked) {
			t.Fatalf("Open: %v, want a refusal", err)
		}
		for _, part := range []string{dir, fmt.Sprintf("version %d", len(steps)+3), fmt.Sprintf("up to %d", len(steps)), "or a later one"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
}

func restore(t *testing.T, path, text string) {
	t.Helper()
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// schemaOf returns the definition of every table and index.
func schemaOf(t *testing.T, s *Store) []string {
	t.Helper()
	return lines(t, s.reading, `SELECT name || ': ' || sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name`)
}

// dump returns a database as SQL.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	out := lines(t, s.reading, `SELECT sql || ';' FROM sqlite_schema WHERE sql NOT NULL ORDER BY type DESC, name`)
	for _, table := range lines(t, s.reading, `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`) {
		values := lines(t, s.reading, `SELECT group_concat('quote("' || name || '")', ' || '', '' || ') FROM pragma_table_info('`+table+`')`)
		out = append(out, lines(t, s.reading, `SELECT 'INSERT INTO `+table+` VALUES (' || `+values[0]+` || ');' FROM `+table)...)
	}
	out = append(out, lines(t, s.reading, `SELECT 'PRAGMA user_version = ' || user_version || ';' FROM pragma_user_version`)...)
	return strings.Join(out, "\n") + "\n"
}

func lines(t *testing.T, db *sql.DB, query string) (out []string) {
	t.Helper()
	out, err := queryLines(t.Context(), db, query)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func queryLines(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, rows.Err()
}
