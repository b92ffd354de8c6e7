package batchapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/resource"
)

var testARNs = arns{partition: "aws", region: testRegion, account: testAccount}

func TestARNsRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9_-]{1,128}`)
	kinds := []resource.Kind{resource.KindEnvironment, resource.KindPolicy, resource.KindQueue, resource.KindJob}
	rapid.Check(t, func(t *rapid.T) {
		want := resource.Ref{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Name: name.Draw(t, "name")}
		arn := testARNs.of(want.Kind, want.Name)
		if rapid.Bool().Draw(t, "share") {
			want = resource.Ref{Kind: resource.KindShare, Queue: want.Name, Name: name.Draw(t, "share name")}
			arn = testARNs.ofShare(want.Queue, want.Name)
		}
		got, err := testARNs.ref("field", arn)
		if err != nil {
			t.Fatalf("%s: %v", arn, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arn, diff)
		}
	})
}

func FuzzARN(f *testing.F) {
	f.Add(testARNs.of(resource.KindQueue, "q"))
	f.Add(testARNs.ofShare("q", "s"))
	f.Add("arn:aws:batch:us-east-1:123456789012:job-queue//quota-share/")
	f.Fuzz(func(t *testing.T, arn string) {
		ref, err := testARNs.ref("field", arn)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "field is ") {
				t.Fatalf("%q: the error %q does not name the field", arn, err)
			}
			return
		}
		made := testARNs.of(ref.Kind, ref.Name)
		if ref.Kind == resource.KindShare {
			made = testARNs.ofShare(ref.Queue, ref.Name)
		}
		if made != arn {
			t.Fatalf("%q was read as %+v, whose ARN is %q", arn, ref, made)
		}
	})
}
