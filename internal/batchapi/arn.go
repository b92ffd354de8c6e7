package batchapi

import (
	"strings"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/resource"
)

// shareInfix stands between a queue's ARN and the name of one of its shares.
const shareInfix = "/quota-share/"

// arns makes and reads the ARNs of one partition, region and account (A1).
type arns struct{ partition, region, account string }

// of is the ARN of a thing that is no share.
func (a arns) of(kind resource.Kind, name string) string {
	return "arn:" + a.partition + ":" + Service + ":" + a.region + ":" + a.account + ":" + string(kind) + "/" + name
}

func (a arns) ofShare(queue, name string) string {
	return a.of(resource.KindQueue, queue) + shareInfix + name
}

// ofPolicy is empty for a queue without a policy.
func (a arns) ofPolicy(name string) string {
	if name == "" {
		return ""
	}
	return a.of(resource.KindPolicy, name)
}

// ref reads an ARN. field is where it was found, for the error.
func (a arns) ref(field, arn string) (resource.Ref, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" {
		return resource.Ref{}, invalid("%s is %s; it must be an ARN such as %s", field, document.Quote(arn), a.of(resource.KindQueue, "NAME"))
	}
	for i, want := range []struct{ what, value string }{{"partition", a.partition}, {"service", Service}, {"region", a.region}, {"account", a.account}} {
		if got := parts[i+1]; got != want.value {
			return resource.Ref{}, invalid("%s is %s, in %s %s; this server's %[3]s is %[5]s", field, document.Quote(arn), want.what, document.Quote(got), want.value)
		}
	}
	kind, name, _ := strings.Cut(parts[5], "/")
	ref := resource.Ref{Kind: resource.Kind(kind), Name: name}
	if queue, share, ok := strings.Cut(name, shareInfix); ok && ref.Kind == resource.KindQueue {
		ref = resource.Ref{Kind: resource.KindShare, Queue: queue, Name: share}
	}
	switch ref.Kind {
	case resource.KindEnvironment, resource.KindPolicy, resource.KindQueue, resource.KindShare, resource.KindJob:
	default:
		return resource.Ref{}, invalid("%s is %s, the ARN of a %s; this server has %s, %s, %s, %s and %s", field, document.Quote(arn), document.Quote(kind),
			resource.KindEnvironment, resource.KindPolicy, resource.KindQueue, resource.KindShare, resource.KindJob)
	}
	if ref.Name == "" || strings.Contains(ref.Name, "/") || strings.Contains(ref.Queue, "/") {
		return resource.Ref{}, invalid("%s is %s; one name must follow %s/", field, document.Quote(arn), ref.Kind)
	}
	return ref, nil
}

// refOf reads an ARN that must be of one kind.
func (a arns) refOf(kind resource.Kind, field, arn string) (resource.Ref, error) {
	ref, err := a.ref(field, arn)
	if err == nil && ref.Kind != kind {
		err = invalid("%s is %s, the ARN of a %s; it must be that of a %s", field, document.Quote(arn), ref.Kind, kind)
	}
	return ref, err
}

// name reads what may be a name or an ARN.
func (a arns) name(kind resource.Kind, field, value string) (string, error) {
	if !strings.HasPrefix(value, "arn:") {
		return value, nil
	}
	ref, err := a.refOf(kind, field, value)
	return ref.Name, err
}

// takeName takes a field that must hold a name or an ARN.
func (a arns) takeName(in document.Object, kind resource.Kind, field string) string {
	name, err := a.name(kind, in.At(field), in.NeededText(field))
	if err != nil {
		in.Fail("%v", err)
	}
	return name
}

// takeRef takes a field that must hold an ARN.
func (a arns) takeRef(in document.Object, kind resource.Kind, field string) resource.Ref {
	arn := in.NeededText(field)
	if in.Err() != nil {
		return resource.Ref{}
	}
	ref, err := a.refOf(kind, in.At(field), arn)
	if err != nil {
		in.Fail("%v", err)
	}
	return ref
}
