package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Load returns the present state, from one snapshot. See store.Store.
func (s *Store) Load(ctx context.Context, tokensSince time.Time) (store.Contents, error) {
	c, err := s.load(ctx, tokensSince)
	if err != nil {
		return store.Contents{}, fmt.Errorf("load: %w", err)
	}
	return c, nil
}

func (s *Store) load(ctx context.Context, tokensSince time.Time) (c store.Contents, err error) {
	tx, err := s.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return c, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	if err := loadResources(ctx, tx, &c); err != nil {
		return c, err
	}
	c.Jobs, err = records[job.Job](ctx, tx, `SELECT record FROM jobs INDEXED BY jobs_active WHERE finished = 0 ORDER BY seq`)
	if err != nil {
		return c, fmt.Errorf("jobs: %w", err)
	}
	if c.Tokens, err = tokens(ctx, tx, tokensSince); err != nil {
		return c, fmt.Errorf("client tokens: %w", err)
	}
	err = tx.QueryRowContext(ctx, `SELECT ifnull((SELECT max(seq) FROM jobs), 0), ifnull((SELECT max(seq) FROM journal), 0)`).
		Scan(&c.LastJobSeq, &c.LastEntrySeq)
	return c, err
}

func loadResources(ctx context.Context, tx *sql.Tx, c *store.Contents) error {
	var errs [4]error
	c.Environments, errs[0] = resources[resource.Environment](ctx, tx, resource.KindEnvironment)
	c.Policies, errs[1] = resources[resource.Policy](ctx, tx, resource.KindPolicy)
	c.Queues, errs[2] = resources[resource.Queue](ctx, tx, resource.KindQueue)
	c.Shares, errs[3] = resources[resource.Share](ctx, tx, resource.KindShare)
	return errors.Join(errs[:]...)
}

func resources[T any](ctx context.Context, tx *sql.Tx, kind resource.Kind) ([]T, error) {
	out, err := records[T](ctx, tx, `SELECT record FROM resources WHERE kind = ? ORDER BY queue, name`, kind)
	if err != nil {
		return nil, fmt.Errorf("%ss: %w", kind, err)
	}
	return out, nil
}

func tokens(ctx context.Context, tx *sql.Tx, since time.Time) (out []store.Token, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT token, token_hash, id, created_ms FROM jobs INDEXED BY jobs_token
		WHERE token <> '' AND created_ms >= ? ORDER BY created_ms, seq`, ceilMillis(since))
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	for rows.Next() {
		var t store.Token
		var created int64
		if err := rows.Scan(&t.Token, &t.Hash, &t.JobID, &created); err != nil {
			return nil, err
		}
		t.CreatedAt = time.UnixMilli(created).UTC()
		out = append(out, t)
	}
	return out, rows.Err()
}

// queryer is a connection or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// records returns the records in the first column of what a query finds. Other
// columns are passed over: some queries need them to put rows in order.
func records[T any](ctx context.Context, from queryer, query string, args ...any) (out []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(sql.RawBytes)
	}
	text := into[0].(*sql.RawBytes)
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		var record T
		if err := json.Unmarshal(*text, &record); err != nil {
			return nil, fmt.Errorf("record %.200q: %w", *text, err)
		}
		out = append(out, record)
	}
	return out, rows.Err()
}

func closeRows(rows *sql.Rows, err *error) {
	if e := rows.Close(); *err == nil {
		*err = e
	}
}
