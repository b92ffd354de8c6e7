package governor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/resource"
	"github.com/bursar-io/bursar/internal/store"
)

// Apply makes what is declared so, all of it in one durable step or nothing,
// and returns what that changed. If version is not empty, it must be that of a
// Plan, and what it planned upon must still be declared as it was. Shares that
// are not declared stay, or, with Prune, are disabled and deleted: their jobs
// end. Refusals: Invalid, Limit, Conflict.
func (g *Governor) Apply(ctx context.Context, d Declaration, version string) (Plan, error) {
	if _, _, ok := splitVersion(version); version != "" && !ok {
		return Plan{}, refuse(Invalid, "the version of the plan is %q; give one as a plan prints it, or none.", version)
	}
	var before time.Time
	p, err := commandFor(ctx, g, func(t *turn) (proposal, error) {
		before = t.now
		return t.apply(d, version)
	})
	var old *outdated
	if errors.As(err, &old) {
		return Plan{}, g.explainOutdated(ctx, old)
	}
	if err != nil {
		return Plan{}, err
	}
	return p.plan(before), nil
}

// outdated is the refusal of a plan that something came between.
type outdated struct {
	queue, environment, policy string
	planned                    int64 // the journal entry that the plan is as of
}

func (o *outdated) Error() string {
	return fmt.Sprintf("what is declared under %s has changed since it was planned", o.queue)
}

// wasOutdatedBy reports whether a journal entry is a command that changed one
// of the resources that the plan was about.
func (o *outdated) wasOutdatedBy(e store.Entry) bool {
	if e.Kind != store.Command || e.Name == operationTag || e.Name == operationUntag {
		return false
	}
	resources := []string{subject(queueRef(o.queue)), subject(environmentRef(o.environment)), subject(policyRef(o.policy))}
	return slices.Contains(resources, e.Subject) || strings.HasPrefix(e.Subject, subject(shareRef(o.queue, "")))
}

func (t *turn) apply(want Declaration, version string) (proposal, error) {
	p, err := t.propose(want)
	if err != nil {
		return proposal{}, err
	}
	planned, sum, _ := splitVersion(version)
	if _, now, _ := splitVersion(p.version); version != "" && sum != now {
		return proposal{}, &outdated{queue: p.name, environment: p.after.environment.Name, policy: p.after.policy.Name, planned: planned}
	}
	changes := p.changes()
	if len(changes) == 0 {
		return p, nil
	}
	t.accept("ApplyPolicy", subject(queueRef(p.name)), want)
	for _, c := range changes {
		t.carryOut(p, c)
	}
	return p, nil
}

// carryOut makes one change that was found possible.
func (t *turn) carryOut(p proposal, c Change) {
	switch c.Kind {
	case resource.KindEnvironment:
		t.putEnvironment(*p.after.environment)
	case resource.KindPolicy:
		t.putPolicy(*p.after.policy)
	case resource.KindQueue:
		q := *p.after.queue
		q.CreatedAt = t.now
		t.addQueue(q)
	default:
		if c.Action == Delete {
			t.dropShare(t.queues[p.name].shares[c.Name])
		} else {
			t.putShare(p.after.shares[c.Name])
		}
	}
	t.changedResource(p.ref(c))
}

func (t *turn) putEnvironment(r resource.Environment) {
	if e := t.environments[r.Name]; e != nil {
		e.replace(r)
		return
	}
	r.CreatedAt = t.now
	t.addEnvironment(r)
}

func (t *turn) putPolicy(r resource.Policy) {
	if p := t.policies[r.Name]; p != nil {
		t.replacePolicy(p, r)
		return
	}
	r.CreatedAt = t.now
	t.policies[r.Name] = &r
}

func (t *turn) putShare(r resource.Share) {
	q := t.queues[r.Queue]
	q.environment.touched = true
	if l := q.shares[r.Name]; l != nil {
		l.share = r
		q.environment.cohort.SetShare(l.quota())
		return
	}
	r.CreatedAt = t.now
	t.addShare(q, r)
}

// dropShare disables and deletes a share: its jobs end, and it with the last.
func (t *turn) dropShare(l *lane) {
	l.share.State, l.share.Status = resource.Disabled, resource.Deleting
	t.clear(l)
}

const (
	// journalPage and journalPages bound how far the journal is searched for
	// what changed since a plan.
	journalPage  = 1000
	journalPages = 100
	// toldChanges is how many changes a refusal tells of.
	toldChanges = 3
)

// explainOutdated says what came between a plan and its application.
func (g *Governor) explainOutdated(ctx context.Context, o *outdated) error {
	var told []string
	after := o.planned
	for range journalPages {
		entries, err := g.Journal(ctx, after, journalPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if o.wasOutdatedBy(e) {
				told = append(told, inWords(e))
			}
		}
		if len(entries) < journalPage {
			break
		}
		after = entries[len(entries)-1].Seq
	}
	if told == nil {
		told = []string{"it was not planned on this server, or for another name"}
	}
	if n := len(told) - toldChanges; n > 0 {
		told = append(slices.Clone(told[:toldChanges]), fmt.Sprintf("and %d more", n))
	}
	return refuse(Conflict, "What is declared under %s is not what was planned upon: %s. Plan again, and apply that.", o.queue, strings.Join(told, "; "))
}

// inWords tells of an accepted command.
func inWords(e store.Entry) string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	return fmt.Sprintf("%s of %s%s at %s", e.Name, e.Subject, by, e.At.UTC().Format(time.RFC3339))
}
