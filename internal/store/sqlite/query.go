package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/store"
)

// Job returns a job or store.ErrNotFound. See store.Store.
func (s *Store) Job(ctx context.Context, id string) (job.Job, error) {
	found, err := records[job.Job](ctx, s.reading, `SELECT record FROM jobs WHERE id = ?`, id)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("job %q: %w", id, err)
	}
	return found[0], nil
}

// Payload returns a job's payload or store.ErrNotFound. See store.Store.
func (s *Store) Payload(ctx context.Context, id string) (payload string, err error) {
	err = s.reading.QueryRowContext(ctx, `SELECT payload FROM payloads WHERE seq = (SELECT seq FROM jobs WHERE id = ?)`, id).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("payload of job %q: %w", id, err)
	}
	return payload, nil
}

// Jobs returns the jobs that the query selects. See store.Store.
func (s *Store) Jobs(ctx context.Context, q store.JobQuery) ([]job.Job, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	query, args := page(q)
	jobs, err := records[job.Job](ctx, s.reading, query, args...)
	if err != nil {
		return nil, fmt.Errorf("jobs of queue %q: %w", q.Queue, err)
	}
	return jobs, nil
}

// page returns the SQL of a query. It names the index, so that the plan never
// depends on what SQLite guesses about the data: each index range is read in
// the order of the page, and ranges are merged.
func page(q store.JobQuery) (query string, args []any) {
	var selects []string
	for _, r := range ranges(q) {
		selects = append(selects, `SELECT record, created_ms, seq FROM jobs INDEXED BY `+r.index+` WHERE `+strings.Join(r.terms, " AND "))
		args = append(args, r.args...)
	}
	return strings.Join(selects, " UNION ALL ") + ` ORDER BY created_ms DESC, seq DESC LIMIT ?`, append(args, q.Limit)
}

// span is a range of an index, and what else selects from it.
type span struct {
	index string
	terms []string
	args  []any
}

func (r *span) where(term string, args ...any) {
	r.terms, r.args = append(r.terms, term), append(r.args, args...)
}

// ranges returns the index ranges that together hold what the query selects,
// each job once.
func ranges(q store.JobQuery) []span {
	r := span{}
	r.where("queue = ?", q.Queue)
	bounds(&r, q)
	if q.Share != nil {
		r.where("share = ?", *q.Share)
	}
	if q.Identifier != "" {
		r.where("identifier = ? AND identifier <> ''", q.Identifier) // the index has no others
	}
	switch {
	case q.NamePrefix != "":
		return []span{byName(r, q)}
	case len(q.Statuses) > 0:
		return byStatus(r, q)
	case q.Identifier != "":
		r.index = "jobs_identifier"
	case q.Share != nil:
		r.index = "jobs_share"
	default:
		r.index = "jobs_queue"
	}
	return []span{r}
}

func byName(r span, q store.JobQuery) span {
	name := store.Fold(q.NamePrefix)
	if q.NameExact {
		r.index = "jobs_name"
		r.where("folded = ?", name)
	} else {
		// Names are valid UTF-8, and so below their prefix followed by 0xff.
		r.index = "jobs_queue"
		r.where("folded >= ? AND folded < ?", name, name+"\xff")
	}
	if len(q.Statuses) > 0 {
		r.where("status IN (?" + strings.Repeat(", ?", len(q.Statuses)-1) + ")")
		for _, status := range q.Statuses {
			r.args = append(r.args, status)
		}
	}
	return r
}

func byStatus(r span, q store.JobQuery) []span {
	switch {
	case q.Identifier != "":
		r.index = "jobs_identifier_status"
	case q.Share != nil:
		r.index = "jobs_share_status"
	default:
		r.index = "jobs_status"
	}
	var out []span
	for _, status := range slices.Compact(slices.Sorted(slices.Values(q.Statuses))) {
		one := span{index: r.index, terms: slices.Clone(r.terms), args: slices.Clone(r.args)}
		one.where("status = ?", status)
		out = append(out, one)
	}
	return out
}

// bounds limits a range by time. It has at most one upper bound, the lowest:
// SQLite starts at one of them, and need not choose well.
func bounds(r *span, q store.JobQuery) {
	switch {
	case q.BeforeSeq != 0 && (q.CreatedBefore.IsZero() || q.BeforeTime.Before(q.CreatedBefore)):
		r.where("(created_ms, seq) < (?, ?)", millis(q.BeforeTime), q.BeforeSeq)
	case !q.CreatedBefore.IsZero():
		r.where("created_ms < ?", ceilMillis(q.CreatedBefore))
	}
	if !q.CreatedAfter.IsZero() {
		r.where("created_ms > ?", millis(q.CreatedAfter))
	}
}

// endedJobs has the condition of the index jobs_ended in it.
const endedJobs = `SELECT record FROM jobs INDEXED BY jobs_ended
	WHERE queue = ? AND identifier <> '' AND finished = 1 AND stopped_ms >= ? ORDER BY seq`

// Ended returns the jobs with a share identifier that finished lately. See
// store.Store.
func (s *Store) Ended(ctx context.Context, queue string, since time.Time) ([]job.Job, error) {
	jobs, err := records[job.Job](ctx, s.reading, endedJobs, queue, ceilMillis(since))
	if err != nil {
		return nil, fmt.Errorf("jobs of queue %q that ended since %v: %w", queue, since, err)
	}
	return jobs, nil
}

// Journal returns entries after a Seq. See store.Store.
func (s *Store) Journal(ctx context.Context, after int64, limit int) ([]store.Entry, error) {
	out, err := s.journal(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("journal after %d: %w", after, err)
	}
	return out, nil
}

func (s *Store) journal(ctx context.Context, after int64, limit int) (out []store.Entry, err error) {
	rows, err := s.reading.QueryContext(ctx, `SELECT seq, at_ms, kind, name, subject, principal, data FROM journal
		WHERE seq > ? ORDER BY seq LIMIT ?`, after, max(limit, 0))
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	for rows.Next() {
		var e store.Entry
		var at int64
		var data []byte
		if err := rows.Scan(&e.Seq, &at, &e.Kind, &e.Name, &e.Subject, &e.By, &data); err != nil {
			return nil, err
		}
		e.At, e.Data = time.UnixMilli(at).UTC(), data
		out = append(out, e)
	}
	return out, rows.Err()
}
