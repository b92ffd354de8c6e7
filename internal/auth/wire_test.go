package auth

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawRequest draws a request as a client makes it.
func drawRequest(t *rapid.T) (r *http.Request, body []byte) {
	segments := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9:/ %+~é*'()-]{1,12}`), 0, 4).Draw(t, "path")
	var target strings.Builder
	target.WriteString("http://" + rapid.SampledFrom([]string{"bursar.test", "127.0.0.1:8080", "[::1]:80", "bursar.test:80"}).Draw(t, "host"))
	for _, segment := range segments {
		target.WriteString("/" + url.PathEscape(segment))
	}
	query := url.Values(rapid.MapOfN(rapid.StringMatching(`[a-z &=+%é]{1,6}`), rapid.SliceOfN(rapid.StringMatching(`[a-z/ &=+%é~*-]{0,6}`), 1, 3), 0, 3).Draw(t, "query"))
	if len(query) > 0 {
		target.WriteString("/?" + query.Encode())
	}
	body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
	method := rapid.SampledFrom([]string{http.MethodPost, http.MethodGet, http.MethodDelete}).Draw(t, "method")
	r, err := http.NewRequest(method, target.String(), bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", target.String(), err)
	}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"Content-Type", "Accept", "Amz-Sdk-Request", "X-Amz-Meta"}), 0, 4).Draw(t, "headers") {
		r.Header.Add(name, rapid.StringMatching(`[a-zA-Z0-9;=,/ ]{0,12}`).Draw(t, "value"))
	}
	return r, body
}

// received sends a request over a wire and returns what a server reads.
func received(r *http.Request) (*http.Request, []byte, error) {
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		return nil, nil, fmt.Errorf("write the request: %w", err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	body, err := io.ReadAll(got.Body)
	return got, body, err
}

// Whatever a client signs arrives and is accepted; and once anything of it is
// changed, it is not.
func TestSignedRequestsSurviveTheWire(t *testing.T) {
	v := testVerifier(t)
	rapid.Check(t, func(t *rapid.T) {
		r, body := drawRequest(t)
		if err := Sign(r, body, testCreds, "batch", "us-east-1", testNow); err != nil {
			t.Fatal(err)
		}
		got, gotBody, err := received(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(got, gotBody); err != nil {
			t.Fatalf("%s %s: %v", got.Method, got.RequestURI, err)
		}

		switch rapid.SampledFrom([]string{"body", "method", "host", "path", "query", "header", "new date", "signature"}).Draw(t, "change") {
		case "body":
			gotBody = append(slices.Clone(gotBody), 'x')
		case "method":
			got.Method = http.MethodPatch
		case "host":
			got.Host = "x" + got.Host
		case "path":
			got.URL.Path, got.URL.RawPath = got.URL.Path+"x", ""
		case "query":
			got.URL.RawQuery = strings.TrimPrefix(got.URL.RawQuery+"&x=y", "&")
		case "header":
			signed, _, _ := strings.Cut(strings.SplitN(got.Header.Get("Authorization"), "SignedHeaders=", 2)[1], ",")
			names := slices.DeleteFunc(strings.Split(signed, ";"), func(name string) bool {
				return name == "host" || name == "content-length" || name == "x-amz-date"
			})
			if len(names) == 0 {
				return
			}
			got.Header.Add(rapid.SampledFrom(names).Draw(t, "name"), "more")
		case "new date":
			got.Header.Set("X-Amz-Date", "20260301T120003Z")
		case "signature":
			a := got.Header.Get("Authorization")
			last := rapid.SampledFrom([]string{"0", "f", "7"}).Draw(t, "digit")
			if strings.HasSuffix(a, last) {
				return
			}
			got.Header.Set("Authorization", a[:len(a)-1]+last)
		}
		var refused *Error
		if _, err := v.Verify(got, gotBody); !errors.As(err, &refused) || refused.Code != InvalidSignature {
			t.Fatalf("after a change: %v, want %s", err, InvalidSignature)
		}
	})
}
