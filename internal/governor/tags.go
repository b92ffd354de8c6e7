package governor

import (
	"context"
	"maps"

	"github.com/bursar-io/bursar/internal/resource"
)

// The operations that change tags, as the journal has them.
const (
	operationTag   = "TagResource"
	operationUntag = "UntagResource"
)

// Tag adds tags to something, or changes their values. Refusals: Missing,
// Invalid.
func (g *Governor) Tag(ctx context.Context, ref resource.Ref, tags map[string]string) error {
	return g.command(ctx, func(t *turn) error { return t.tag(ref, tags) })
}

// Untag takes tags off something; keys it does not have are ignored. Refusal:
// Missing.
func (g *Governor) Untag(ctx context.Context, ref resource.Ref, keys []string) error {
	return g.command(ctx, func(t *turn) error { return t.untag(ref, keys) })
}

// Tags returns the tags of something, a finished job too. Refusal: Missing.
func (g *Governor) Tags(ctx context.Context, ref resource.Ref) (map[string]string, error) {
	if ref.Kind == resource.KindJob {
		j, err := g.Job(ctx, ref.Name)
		return j.Tags, err
	}
	return query(ctx, g, func(s *state) (map[string]string, error) {
		tags, err := s.tagsOf(ref)
		if err != nil {
			return nil, err
		}
		return maps.Clone(*tags), nil
	})
}

func (t *turn) tag(ref resource.Ref, tags map[string]string) error {
	of, changed, err := t.taggable(ref)
	if err != nil {
		return err
	}
	after := maps.Clone(*of)
	if after == nil {
		after = map[string]string{}
	}
	maps.Copy(after, tags)
	if err := valid(resource.ValidateTags(after)); err != nil {
		return err
	}
	*of = after
	t.accept(operationTag, subject(ref), tags)
	changed()
	return nil
}

func (t *turn) untag(ref resource.Ref, keys []string) error {
	of, changed, err := t.taggable(ref)
	if err != nil {
		return err
	}
	after := maps.Clone(*of)
	for _, k := range keys {
		delete(after, k)
	}
	*of = after
	t.accept(operationUntag, subject(ref), keys)
	changed()
	return nil
}

// taggable returns where the tags of something are, and what has them stored
// once they were replaced.
func (t *turn) taggable(ref resource.Ref) (tags *map[string]string, changed func(), err error) {
	if ref.Kind == resource.KindJob {
		a, err := t.job(ref.Name)
		if err != nil {
			return nil, nil, err
		}
		return &a.Tags, func() { t.changedJob(a) }, nil
	}
	if tags, err = t.tagsOf(ref); err != nil {
		return nil, nil, err
	}
	return tags, func() { t.changedResource(ref) }, nil
}

// tagsOf returns where the tags of a resource are.
func (s *state) tagsOf(ref resource.Ref) (*map[string]string, error) {
	switch ref.Kind {
	case resource.KindEnvironment:
		e, err := s.environment(ref.Name)
		if err != nil {
			return nil, err
		}
		return &e.Tags, nil
	case resource.KindPolicy:
		p, err := s.policy(ref.Name)
		if err != nil {
			return nil, err
		}
		return &p.Tags, nil
	case resource.KindQueue:
		q, err := s.queue(ref.Name)
		if err != nil {
			return nil, err
		}
		return &q.Tags, nil
	case resource.KindShare:
		l, err := s.share(ref.Queue, ref.Name)
		if err != nil {
			return nil, err
		}
		return &l.share.Tags, nil
	default:
		return nil, refuse(Missing, "%s %s does not exist.", ref.Kind, ref.Name)
	}
}
