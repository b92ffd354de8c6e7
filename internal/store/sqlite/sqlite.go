// Package sqlite is the durable store of one server: SQLite, embedded, in a
// data directory that it locks. It holds the schema, its migrations, and the
// SQL; nothing outside it knows that there is any, and no rule about jobs or
// resources may enter it.
//
// The database is in WAL mode with full synchronisation: a commit that returned
// has been synced. One connection writes; a few others read, each query from
// one snapshot, without waiting for the writer.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// FileName is the name of the database in the data directory.
const FileName = "bursar.db"

// readers is how many queries read at once; more wait for one of them. Reading
// is bound by the processor, so that more would only take it from the writer.
const readers = 4

// Store is a store.Store in a SQLite database.
type Store struct {
	path    string
	lock    *os.File
	writing *sql.DB
	reading *sql.DB
	writer  *sql.Conn // the one connection of writing
	put     statements
}

// Open opens the store in a data directory, creating both if there are none,
// and brings its schema to the version of this program. The error wraps
// store.ErrLocked if another process has the directory open.
func Open(ctx context.Context, dir string, log *slog.Logger) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open store: make data directory: %w", err)
	}
	locked, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{path: filepath.Join(dir, FileName), lock: locked}
	if err := s.open(ctx, log); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", s.path, err), s.Close())
	}
	return s, nil
}

// makeDir makes a directory for its owner alone: payloads may hold secrets. Its
// entry is synced, or a power failure could take the directory, and with it
// commits that were synced.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

func (s *Store) open(ctx context.Context, log *slog.Logger) error {
	// SQLite gives its other files the mode of the database.
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.openWriter(ctx, log); err != nil {
		return err
	}
	s.reading, err = connect(s.path, readers, "query_only(1)", "cache_size(-4096)")
	return err
}

func (s *Store) openWriter(ctx context.Context, log *slog.Logger) (err error) {
	// A larger log than SQLite's own 1000 pages writes pages that many commits
	// change back to the database less often.
	s.writing, err = connect(s.path, 1, "journal_mode(wal)", "synchronous(full)", "cache_size(-32768)", "wal_autocheckpoint(4000)")
	if err != nil {
		return err
	}
	if s.writer, err = s.writing.Conn(ctx); err != nil {
		return err
	}
	from, to, err := migrate(ctx, s.writer, steps)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "opened store", "path", s.path, "schema", to, "schema_was", from)
	return s.put.prepare(ctx, s.writer)
}

// connect returns up to n connections to a database, each opened with the
// pragmas given.
func connect(path string, n int, pragmas ...string) (*sql.DB, error) {
	// No lock is held for long; what waits for one waits for a checkpoint or
	// a recovery of the log.
	query := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...), "_txlock": {"immediate"}}
	name := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// Close waits for queries that are running, closes the database, and gives up
// the data directory.
func (s *Store) Close() error {
	var errs []error
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	errs = append(errs, s.put.close())
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	errs = append(errs, s.lock.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %q: %w", s.path, err)
	}
	return nil
}

// millis returns a time as the tables have it. Rounding down is how stores
// keep times; see ceilMillis for bounds.
func millis(t time.Time) int64 { return t.UnixMilli() }

// ceilMillis returns the first whole millisecond that is not before t: a time
// that is kept is before t exactly if it is before that.
func ceilMillis(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
