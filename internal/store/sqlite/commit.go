package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// The statements of a commit. putJob changes no row if the job's seq is another
// job's, or if what identifies the job is not what it was.
const (
	putJob = `INSERT INTO jobs (seq, id, queue, share, identifier, name, folded, created_ms, token, token_hash, status, finished, stopped_ms, record)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (seq) DO UPDATE SET status = excluded.status, finished = excluded.finished, stopped_ms = excluded.stopped_ms, record = excluded.record
		WHERE id = excluded.id AND queue = excluded.queue AND share = excluded.share AND identifier = excluded.identifier AND name = excluded.name
			AND created_ms = excluded.created_ms AND token = excluded.token AND token_hash = excluded.token_hash`
	putPayload     = `INSERT OR REPLACE INTO payloads (seq, payload) VALUES (?, ?)`
	putEntry       = `INSERT INTO journal (seq, at_ms, kind, name, subject, principal, data) VALUES (?, ?, ?, ?, ?, ?, ?)`
	putResource    = `INSERT OR REPLACE INTO resources (kind, queue, name, record) VALUES (?, ?, ?, ?)`
	removeResource = `DELETE FROM resources WHERE kind = ? AND queue = ? AND name = ?`
)

// statements are the prepared statements of the writing connection.
type statements struct {
	job, payload, entry, resource, remove *sql.Stmt
}

func (s *statements) prepare(ctx context.Context, conn *sql.Conn) error {
	var errs [5]error
	s.job, errs[0] = conn.PrepareContext(ctx, putJob)
	s.payload, errs[1] = conn.PrepareContext(ctx, putPayload)
	s.entry, errs[2] = conn.PrepareContext(ctx, putEntry)
	s.resource, errs[3] = conn.PrepareContext(ctx, putResource)
	s.remove, errs[4] = conn.PrepareContext(ctx, removeResource)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("prepare the statements of a commit: %w", err)
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{s.job, s.payload, s.entry, s.resource, s.remove} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// Commit makes the batch durable in one transaction. See store.Store.
func (s *Store) Commit(ctx context.Context, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b, err := b.Checked()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	// The prepared statements run on the same connection, and so inside tx.
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("commit: begin: %w", err)
	}
	if err := s.put.batch(ctx, b); err != nil {
		// SQLite may have rolled back already, as when the disk is full; a
		// second time is then an error that says nothing.
		_ = tx.Rollback()
		return fmt.Errorf("commit: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (s *statements) batch(ctx context.Context, b store.Batch) error {
	if err := s.resources(ctx, b); err != nil {
		return err
	}
	for i := range b.Jobs {
		if err := s.oneJob(ctx, &b.Jobs[i]); err != nil {
			return fmt.Errorf("put job %s: %w", b.Jobs[i].ID, err)
		}
		payload, ok := b.Payloads[b.Jobs[i].ID]
		if !ok {
			continue
		}
		if _, err := s.payload.ExecContext(ctx, b.Jobs[i].Seq, payload); err != nil {
			return fmt.Errorf("put payload of job %s: %w", b.Jobs[i].ID, err)
		}
	}
	for _, e := range b.Entries {
		if _, err := s.entry.ExecContext(ctx, e.Seq, millis(e.At), e.Kind, e.Name, e.Subject, e.By, nullable(e.Data)); err != nil {
			return fmt.Errorf("put journal entry %d: %w", e.Seq, err)
		}
	}
	return nil
}

func nullable(data json.RawMessage) any {
	if len(data) == 0 {
		return nil
	}
	return string(data)
}

func (s *statements) oneJob(ctx context.Context, j *job.Job) error {
	record, err := json.Marshal(j)
	if err != nil {
		return err
	}
	result, err := s.job.ExecContext(ctx, j.Seq, j.ID, j.Queue, j.Share, j.ShareIdentifier, j.Name, store.Fold(j.Name), millis(j.CreatedAt),
		j.Token, j.TokenHash, j.Status, j.Status.Finished(), millis(j.StoppedAt), string(record))
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if changed != 1 {
		return fmt.Errorf("its Seq %d is another job's, or what identifies it has changed since it was stored", j.Seq)
	}
	return nil
}

func (s *statements) resources(ctx context.Context, b store.Batch) error {
	for _, r := range b.Removed {
		if _, err := s.remove.ExecContext(ctx, r.Kind, r.Queue, r.Name); err != nil {
			return fmt.Errorf("remove %s %q: %w", r.Kind, r.Name, err)
		}
	}
	for _, e := range b.Environments {
		if err := s.oneResource(ctx, resource.Ref{Kind: resource.KindEnvironment, Name: e.Name}, e); err != nil {
			return err
		}
	}
	for _, p := range b.Policies {
		if err := s.oneResource(ctx, resource.Ref{Kind: resource.KindPolicy, Name: p.Name}, p); err != nil {
			return err
		}
	}
	for _, q := range b.Queues {
		if err := s.oneResource(ctx, resource.Ref{Kind: resource.KindQueue, Name: q.Name}, q); err != nil {
			return err
		}
	}
	for _, sh := range b.Shares {
		if err := s.oneResource(ctx, resource.Ref{Kind: resource.KindShare, Queue: sh.Queue, Name: sh.Name}, sh); err != nil {
			return err
		}
	}
	return nil
}

func (s *statements) oneResource(ctx context.Context, r resource.Ref, what any) error {
	record, err := json.Marshal(what)
	if err == nil {
		_, err = s.resource.ExecContext(ctx, r.Kind, r.Queue, r.Name, string(record))
	}
	if err != nil {
		return fmt.Errorf("put %s %q: %w", r.Kind, r.Name, err)
	}
	return nil
}
