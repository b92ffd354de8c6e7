package batchapi

import (
	"context"

	"github.com/bursar-io/bursar/internal/document"
)

type tagList struct {
	Tags map[string]string `json:"tags"`
}

func (d *door) listTags(ctx context.Context, arn string) (any, error) {
	ref, err := d.arns.ref("resourceArn", arn)
	if err != nil {
		return nil, err
	}
	tags, err := d.Governor.Tags(ctx, ref)
	return tagList{Tags: tagsOf(tags)}, err
}

func (d *door) tag(ctx context.Context, arn string, in document.Object) (any, error) {
	ref, err := d.arns.ref("resourceArn", arn)
	if err != nil {
		return nil, err
	}
	tags := in.TextMap("tags")
	if len(tags) == 0 {
		in.Fail("tags is missing or empty; give at least one key and value")
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return empty{}, d.Governor.Tag(ctx, ref, tags)
}

func (d *door) untag(ctx context.Context, arn string, keys []string) (any, error) {
	ref, err := d.arns.ref("resourceArn", arn)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, invalid("tagKeys is missing; give the keys to remove as ?tagKeys=KEY&tagKeys=KEY")
	}
	return empty{}, d.Governor.Untag(ctx, ref, keys)
}
