package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
	"github.com/bursar-io/bursar/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashingDir); dir != "" {
		commitUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// inDir is a store that knows where it is.
type inDir struct {
	*Store
	dir string
}

func TestConformance(t *testing.T) {
	open := func(t *testing.T, dir string) store.Store {
		t.Helper()
		s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return inDir{s, dir}
	}
	storetest.Run(t, storetest.Engine{
		Open: func(t *testing.T) store.Store {
			t.Helper()
			return open(t, t.TempDir())
		},
		Reopen: func(t *testing.T, s store.Store) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(inDir).dir)
		},
	})
}

func openIn(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// numbered returns a batch of n jobs and two journal entries for each, with the
// numbers after seq. Payloads have the size given.
func numbered(seq int64, n, payload int) store.Batch {
	at := time.UnixMilli(1_700_000_000_000 + seq)
	b := store.Batch{Payloads: map[string]string{}}
	for i := range int64(n) {
		k := seq + i + 1
		j := job.Job{
			ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(k*2654435761), k), Seq: k, Name: fmt.Sprintf("train-%d", k),
			Queue: "queue", Share: fmt.Sprintf("share-%d", k%20), Priority: 5, Workers: 1, TrainingJobName: "train",
			Demand: []job.Amount{{Unit: "ml.g5.xlarge", Quantity: 1}}, MaxRuntime: time.Hour,
			Strategy: &job.Strategy{Attempts: 1, Rules: []job.Rule{{Action: job.Exit, Pattern: "*"}}},
			Status:   job.Runnable, CreatedAt: at, UpdatedAt: at, Token: fmt.Sprintf("token-%d", k), TokenHash: strings.Repeat("5", 64),
		}
		b.Jobs = append(b.Jobs, j)
		b.Payloads[j.ID] = strings.Repeat("p", payload)
		b.Entries = append(b.Entries,
			store.Entry{Seq: 2*k - 1, At: at, Kind: store.Command, Name: "SubmitServiceJob", Subject: j.ID, By: "admin", Data: []byte(`{"name":"train"}`)},
			store.Entry{Seq: 2 * k, At: at, Kind: store.State, Name: string(job.Runnable), Subject: j.ID})
	}
	return b
}

// count returns how many rows a table has.
func count(t *testing.T, s *Store, table string) (n int64) {
	t.Helper()
	if err := s.reading.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// checkWhole checks that the store has exactly the first n numbered jobs, with
// all that belongs to them, and that the database is sound.
func checkWhole(t *testing.T, s *Store, n int64) {
	t.Helper()
	for table, want := range map[string]int64{"jobs": n, "payloads": n, "journal": 2 * n} {
		if got := count(t, s, table); got != want {
			t.Errorf("%s has %d rows, want %d", table, got, want)
		}
	}
	if c, err := s.Load(t.Context(), time.Now()); err != nil || c.LastJobSeq != n || c.LastEntrySeq != 2*n {
		t.Errorf("last job %d and entry %d, %v; want %d and %d", c.LastJobSeq, c.LastEntrySeq, err, n, 2*n)
	}
	var verdict string
	if err := s.reading.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity check: %q, %v", verdict, err)
	}
}

func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)

	_, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if !errors.Is(err, store.ErrLocked) {
		t.Fatalf("second Open: %v, want %v", err, store.ErrLocked)
	}
	for _, part := range []string{dir, fmt.Sprintf("pid %d", os.Getpid()), "another data directory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openIn(t, dir)
}

func TestFilesAreTheirOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	s := openIn(t, dir)
	if err := s.Commit(t.Context(), numbered(0, 1, 10)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Characters that mean something in a database's URI are nothing special in the
// name of a directory.
func TestAnyDirectoryName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a ?b=c&d#e%20f;ü")
	s := openIn(t, dir)
	if err := s.Commit(t.Context(), numbered(0, 1, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
		t.Error(err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, FileName), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{file: file, garbage: filepath.Join(garbage, FileName)} {
		if _, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v; the error should name %q", dir, err, want)
		}
	}
}

// A database that may not grow is full for SQLite, on any machine.
func TestFullDatabase(t *testing.T) {
	s := openIn(t, t.TempDir())
	if err := s.Commit(t.Context(), numbered(0, 10, 100)); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		if _, err := s.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // as many as there are
	checkFull(t, s, 10)
	limit(1_000_000)
	checkRoom(t, s, 10)
}

// checkFull checks that a batch fails for want of room, more than once, and
// leaves nothing.
func checkFull(t *testing.T, s *Store, jobs int64) {
	t.Helper()
	for range 3 {
		err := s.Commit(t.Context(), numbered(jobs, 20, 200_000))
		if err == nil || !strings.Contains(err.Error(), "full") {
			t.Fatalf("commit without room: %v; want an error that says full", err)
		}
		checkWhole(t, s, jobs)
	}
}

// checkRoom checks that the same batch is committed once there is room.
func checkRoom(t *testing.T, s *Store, jobs int64) {
	t.Helper()
	if err := s.Commit(t.Context(), numbered(jobs, 20, 200_000)); err != nil {
		t.Fatalf("commit once there is room: %v", err)
	}
	checkWhole(t, s, jobs+20)
}

// A disk that is really full fails in other calls than a full database: when
// the log is written.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("this machine does not let the test mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := openIn(t, dir)
	if err := s.Commit(t.Context(), numbered(0, 10, 100)); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := fill(ballast); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	checkFull(t, s, 10)

	// What was committed can be read again from a disk that is still full.
	if err := s.Close(); err != nil {
		t.Errorf("close on a full disk: %v", err)
	}
	s = openIn(t, dir)
	checkFull(t, s, 10)

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	checkRoom(t, s, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, openIn(t, dir), 30)
}

// fill writes a file until there is no room for another byte.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return err
		}
	}
}

func TestFailingStatementLeavesNothing(t *testing.T) {
	s := openIn(t, t.TempDir())
	if err := s.Commit(t.Context(), numbered(0, 5, 100)); err != nil {
		t.Fatal(err)
	}
	_, err := s.writer.ExecContext(t.Context(), `CREATE TRIGGER broken BEFORE INSERT ON journal BEGIN SELECT raise(ABORT, 'a broken disk'); END`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), numbered(5, 5, 100)); err == nil || !strings.Contains(err.Error(), "a broken disk") {
		t.Errorf("commit: %v, want what broke", err)
	}
	checkWhole(t, s, 5)
	if _, err := s.writer.ExecContext(t.Context(), `DROP TRIGGER broken`); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), numbered(5, 5, 100)); err != nil {
		t.Error(err)
	}
	checkWhole(t, s, 10)
}

// What this machine cannot show by itself: that SQLite was told to sync.
func TestCommitsAreDurableBeforeTheyReturn(t *testing.T) {
	s := openIn(t, t.TempDir())
	pragmas := map[string]string{"journal_mode": "wal", "synchronous": "2"}
	got := map[string]string{}
	for name := range pragmas {
		var value string
		if err := s.writer.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		got[name] = value
	}
	if diff := cmp.Diff(pragmas, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
