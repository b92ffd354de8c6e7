package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// steps are the versions of the schema: applying the n-th makes version n of
// version n−1. A step that was released is never edited; a change of the schema
// is a new step, and testdata gets a database of the version before it.
var steps = []string{
	// Columns repeat what queries select by; record is the whole job. Every
	// jobs_ index ends with what pages are ordered by, so that a page is read
	// off the end of an index range, whatever the number of jobs (seq, the
	// table's key, is the last column of every index). After it, jobs_queue has
	// the name: a page of jobs whose names have a prefix is found by walking
	// that index alone.
	`CREATE TABLE jobs (
		seq        INTEGER PRIMARY KEY,
		id         TEXT    NOT NULL UNIQUE,
		queue      TEXT    NOT NULL,
		share      TEXT    NOT NULL,
		name       TEXT    NOT NULL,
		folded     TEXT    NOT NULL, -- the name, without differences in case
		created_ms INTEGER NOT NULL,
		token      TEXT    NOT NULL,
		token_hash TEXT    NOT NULL,
		status     TEXT    NOT NULL,
		finished   INTEGER NOT NULL, -- 1 if status is final
		record     TEXT    NOT NULL
	) STRICT;
	CREATE INDEX jobs_queue        ON jobs (queue, created_ms, seq, folded);
	CREATE INDEX jobs_status       ON jobs (queue, status, created_ms);
	CREATE INDEX jobs_share        ON jobs (queue, share, created_ms);
	CREATE INDEX jobs_share_status ON jobs (queue, share, status, created_ms);
	CREATE INDEX jobs_name         ON jobs (queue, folded, created_ms);
	CREATE INDEX jobs_active       ON jobs (finished) WHERE finished = 0;
	CREATE INDEX jobs_token        ON jobs (created_ms) WHERE token <> '';

	CREATE TABLE payloads (
		seq     INTEGER PRIMARY KEY, -- of the job
		payload TEXT    NOT NULL
	) STRICT;

	CREATE TABLE journal (
		seq       INTEGER PRIMARY KEY,
		at_ms     INTEGER NOT NULL,
		kind      TEXT    NOT NULL,
		name      TEXT    NOT NULL,
		subject   TEXT    NOT NULL,
		principal TEXT    NOT NULL,
		data      TEXT
	) STRICT;

	CREATE TABLE resources (
		kind   TEXT NOT NULL,
		queue  TEXT NOT NULL, -- of a share; else empty
		name   TEXT NOT NULL,
		record TEXT NOT NULL,
		PRIMARY KEY (kind, queue, name)
	) STRICT, WITHOUT ROWID;`,

	// Share identifiers, for jobs of fair-share queues. Other jobs have none, and
	// are in none of these indexes.
	`ALTER TABLE jobs ADD COLUMN identifier TEXT    NOT NULL DEFAULT '';
	ALTER TABLE jobs ADD COLUMN stopped_ms INTEGER NOT NULL DEFAULT 0; -- when it finished
	CREATE INDEX jobs_identifier        ON jobs (queue, identifier, created_ms)         WHERE identifier <> '';
	CREATE INDEX jobs_identifier_status ON jobs (queue, identifier, status, created_ms) WHERE identifier <> '';
	CREATE INDEX jobs_ended             ON jobs (queue, stopped_ms)                     WHERE identifier <> '' AND finished = 1;`,
}

// migrate brings a database to the newest version that steps know, one
// transaction for each step, and returns the versions it was and is at.
// It refuses a database that is newer than that.
func migrate(ctx context.Context, conn *sql.Conn, steps []string) (from, to int, err error) {
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&from); err != nil {
		return 0, 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if from > len(steps) {
		return from, from, fmt.Errorf("the database has schema version %d, this program knows versions up to %d: run the release that made it, or a later one",
			from, len(steps))
	}
	for to = from; to < len(steps); to++ {
		if err := migrateOne(ctx, conn, steps[to], to+1); err != nil {
			return from, to, fmt.Errorf("bring the schema from version %d to %d: %w", to, to+1, err)
		}
	}
	return from, to, nil
}

func migrateOne(ctx context.Context, conn *sql.Conn, step string, version int) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after Commit; otherwise there is an error to return already
	if _, err := tx.ExecContext(ctx, step); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}
