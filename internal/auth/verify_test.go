package auth

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const testBody = `{"jobName":"train"}`

var (
	testNow   = time.Date(2026, 3, 1, 12, 0, 0, 700e6, time.UTC)
	testCreds = aws.Credentials{AccessKeyID: "AKIAAAAAAAAAAAAAAAAA", SecretAccessKey: "secret-a"}
	tempCreds = aws.Credentials{AccessKeyID: "ASIABBBBBBBBBBBBBBBB", SecretAccessKey: "secret-b", SessionToken: "token-b"}
)

const testCredentials = `
[default]
aws_access_key_id = AKIAAAAAAAAAAAAAAAAA
aws_secret_access_key = secret-a

[temporary]
aws_access_key_id=ASIABBBBBBBBBBBBBBBB
aws_secret_access_key=secret-b
aws_session_token=token-b
`

func testVerifier(tb testing.TB) *Verifier {
	tb.Helper()
	keys, err := parseCredentials(testCredentials)
	if err != nil {
		tb.Fatal(err)
	}
	return &Verifier{Keys: keys, Region: "us-east-1", Services: []string{"batch"}, Now: func() time.Time { return testNow }}
}

// request is what a server sees of a client's request: what may differ from
// the one a client signs is set after signing.
func request(tb testing.TB, method, target, body string) *http.Request {
	tb.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func sign(tb testing.TB, r *http.Request, body string, creds aws.Credentials, at time.Time) {
	tb.Helper()
	if err := Sign(r, []byte(body), creds, "batch", "us-east-1", at); err != nil {
		tb.Fatal(err)
	}
}

func TestVerifyAccepts(t *testing.T) {
	cases := map[string]struct {
		method, target, body string
		creds                aws.Credentials
		at                   time.Time
		prepare              func(*http.Request)
		want                 string
	}{
		"a post":               {want: "default"},
		"five minutes old":     {at: testNow.Add(-5 * time.Minute), want: "default"},
		"five minutes ahead":   {at: testNow.Add(5 * time.Minute), want: "default"},
		"a session token":      {creds: tempCreds, want: "temporary"},
		"no body":              {method: "GET", target: "http://bursar.test/v1/tags/a", body: "-", want: "default"},
		"an escaped path":      {method: "GET", target: "http://bursar.test/v1/tags/arn%3Aaws%3Abatch%3Ajob-queue%2Fq", body: "-", want: "default"},
		"a query":              {method: "DELETE", target: "http://bursar.test/v1/tags/a?tagKeys=b%20c&tagKeys=a%2Fb", body: "-", want: "default"},
		"a port in the host":   {target: "http://127.0.0.1:8080/v1/submitservicejob", want: "default"},
		"repeated values":      {prepare: func(r *http.Request) { r.Header["X-Amz-Meta"] = []string{"a", "b  c"} }, want: "default"},
		"the hash stated":      {prepare: func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", hashOf(testBody)) }, want: "default"},
		"the length not known": {prepare: func(r *http.Request) { r.ContentLength = -1 }, want: "default"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := testBody
			if c.body == "-" {
				body = ""
			}
			if c.creds.AccessKeyID == "" {
				c.creds = testCreds
			}
			if c.at.IsZero() {
				c.at = testNow
			}
			r := request(t, cmp.Or(c.method, "POST"), cmp.Or(c.target, "http://bursar.test/v1/submitservicejob"), body)
			if c.prepare != nil {
				c.prepare(r)
			}
			sign(t, r, body, c.creds, c.at)
			r.Header.Set("User-Agent", "set by a transport, after signing")
			before := r.Header.Clone()

			p, err := testVerifier(t).Verify(r, []byte(body))
			if err != nil {
				t.Fatalf("Verify: %v", err)
			}
			if p.Name != c.want {
				t.Errorf("principal %q, want %q", p.Name, c.want)
			}
			if len(before) != len(r.Header) || before.Get("Authorization") != r.Header.Get("Authorization") {
				t.Error("Verify changed the request")
			}
		})
	}
}

// A signature that covers a header which AWS's signer would leave out is one
// that some clients make.
func TestVerifyCoversEveryListedHeader(t *testing.T) {
	v := testVerifier(t)
	r := request(t, "POST", "http://bursar.test/v1/submitservicejob", testBody)
	r.Header["user-agent"] = []string{"tool/1"} // in this spelling the signer takes it
	sign(t, r, testBody, testCreds, testNow)
	delete(r.Header, "user-agent")
	r.Header.Set("User-Agent", "tool/1")
	if !strings.Contains(r.Header.Get("Authorization"), ";user-agent;") {
		t.Fatalf("the test's request does not cover user-agent: %s", r.Header.Get("Authorization"))
	}
	if _, err := v.Verify(r, []byte(testBody)); err != nil {
		t.Errorf("Verify: %v", err)
	}
	r.Header.Set("User-Agent", "tool/2")
	wantError(t, v, r, testBody, InvalidSignature, messageMismatch)
}

func TestVerifyRefuses(t *testing.T) {
	setHeader := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	edit := func(old, replacement string) func(*http.Request) {
		return func(r *http.Request) {
			a := r.Header.Get("Authorization")
			b := strings.Replace(a, old, replacement, 1)
			if a == b {
				t.Errorf("nothing to edit: %q in %s", old, a)
			}
			r.Header.Set("Authorization", b)
		}
	}
	cases := map[string]struct {
		creds   aws.Credentials
		at      time.Time
		body    string // received, instead of the one signed
		tamper  func(*http.Request)
		code    string
		message string // a part of it
	}{
		"unsigned":             {tamper: func(r *http.Request) { r.Header.Del("Authorization") }, code: MissingAuthenticationToken, message: messageMissing},
		"presigned":            {tamper: func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=ab" }, code: MissingAuthenticationToken, message: "presigned"},
		"query cannot parse":   {tamper: func(r *http.Request) { r.URL.RawQuery = "a=1;b=2" }, code: IncompleteSignature, message: "a=1;b=2"},
		"query changed":        {tamper: func(r *http.Request) { r.URL.RawQuery = "a=1" }, code: InvalidSignature, message: messageMismatch},
		"method changed":       {tamper: func(r *http.Request) { r.Method = "PUT" }, code: InvalidSignature, message: messageMismatch},
		"path changed":         {tamper: func(r *http.Request) { r.URL.Path = "/v1/deletejobqueue" }, code: InvalidSignature, message: messageMismatch},
		"host changed":         {tamper: func(r *http.Request) { r.Host = "elsewhere.test" }, code: InvalidSignature, message: messageMismatch},
		"body changed":         {body: testBody + " ", code: InvalidSignature, message: messageMismatch},
		"signed header differ": {tamper: setHeader("Content-Type", "text/plain"), code: InvalidSignature, message: messageMismatch},
		"signed header gone":   {tamper: func(r *http.Request) { r.Header.Del("Content-Type") }, code: InvalidSignature, message: messageMismatch},
		"hash of another body": {tamper: setHeader("X-Amz-Content-Sha256", hashOf("other")), code: InvalidSignature, message: "does not match the request content"},
		"body not signed":      {tamper: setHeader("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), code: InvalidSignature, message: "UNSIGNED-PAYLOAD"},
		"wrong secret":         {creds: aws.Credentials{AccessKeyID: testCreds.AccessKeyID, SecretAccessKey: "guess"}, code: InvalidSignature, message: messageMismatch},
		"unknown key":          {creds: aws.Credentials{AccessKeyID: "AKIAZZZZZZZZZZZZZZZZ", SecretAccessKey: "guess"}, code: UnrecognizedClient, message: messageUnrecognized},
		"token not asked for":  {creds: aws.Credentials{AccessKeyID: testCreds.AccessKeyID, SecretAccessKey: "secret-a", SessionToken: "x"}, code: UnrecognizedClient, message: messageUnrecognized},
		"token missing":        {creds: aws.Credentials{AccessKeyID: tempCreds.AccessKeyID, SecretAccessKey: "secret-b"}, code: UnrecognizedClient, message: messageUnrecognized},
		"token wrong":          {creds: aws.Credentials{AccessKeyID: tempCreds.AccessKeyID, SecretAccessKey: "secret-b", SessionToken: "x"}, code: UnrecognizedClient, message: messageUnrecognized},

		"expired": {at: testNow.Add(-5*time.Minute - time.Second), code: InvalidSignature,
			message: "Signature expired: 20260301T115459Z is now earlier than 20260301T115500Z (20260301T120000Z - 5 min.)"},
		"not yet current": {at: testNow.Add(5*time.Minute + time.Second), code: InvalidSignature,
			message: "Signature not yet current: 20260301T120501Z is still later than 20260301T120500Z (20260301T120000Z + 5 min.)"},
		"date changed": {tamper: setHeader("X-Amz-Date", "20260301T120001Z"), code: InvalidSignature, message: messageMismatch},
		"date missing": {tamper: func(r *http.Request) { r.Header.Del("X-Amz-Date") }, code: IncompleteSignature, message: "Got ''"},
		"date garbled": {tamper: setHeader("X-Amz-Date", "yesterday"), code: IncompleteSignature, message: "Got 'yesterday'"},

		"scope of another day":     {tamper: edit("/20260301/", "/20260228/"), code: InvalidSignature, message: "'20260228' != '20260301'"},
		"scope of another region":  {tamper: edit("/us-east-1/", "/eu-west-1/"), code: InvalidSignature, message: "not 'eu-west-1'"},
		"scope of another service": {tamper: edit("/batch/", "/sagemaker/"), code: InvalidSignature, message: "correct service: 'batch', not 'sagemaker'"},
		"scope's end":              {tamper: edit("/aws4_request", "/aws5_request"), code: InvalidSignature, message: "not 'aws5_request'"},
		"scope too short":          {tamper: edit("/batch/", "/"), code: IncompleteSignature, message: "5 slash-delimited"},

		"host not signed":      {tamper: edit(";host;", ";"), code: InvalidSignature, message: "'Host' must be a 'SignedHeader'"},
		"date not signed":      {tamper: edit(";x-amz-date", ""), code: InvalidSignature, message: "'X-Amz-Date' must be a 'SignedHeader'"},
		"a header not covered": {tamper: edit("content-type;", ""), code: InvalidSignature, message: messageMismatch},
		"a header not there":   {tamper: edit("SignedHeaders=", "SignedHeaders=a;"), code: InvalidSignature, message: messageMismatch},
		"a header twice":       {tamper: edit(";host;", ";host;host;"), code: InvalidSignature, message: messageMismatch},

		"another scheme": {tamper: setHeader("Authorization", "Bearer abc"), code: IncompleteSignature, message: "Got 'Bearer'"},
		"empty":          {tamper: setHeader("Authorization", ""), code: IncompleteSignature, message: "must start with 'AWS4-HMAC-SHA256'"},
		"no fields":      {tamper: setHeader("Authorization", "AWS4-HMAC-SHA256"), code: IncompleteSignature, message: "unexpected parameter ''"},
		"no credential":  {tamper: edit("Credential="+testCreds.AccessKeyID+"/20260301/us-east-1/batch/aws4_request, ", ""), code: IncompleteSignature, message: "requires 'Credential'"},
		"no signature":   {tamper: edit("Signature=", "Signatura="), code: IncompleteSignature, message: "'Signatura'"},
		"empty signature": {tamper: func(r *http.Request) {
			before, _, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", before+"Signature=")
		}, code: IncompleteSignature, message: "requires 'Signature'"},
		"two signatures": {tamper: func(r *http.Request) { r.Header.Set("Authorization", r.Header.Get("Authorization")+",Signature=ab") }, code: IncompleteSignature, message: "more than one 'Signature'"},
		"signature cut":  {tamper: func(r *http.Request) { a := r.Header.Get("Authorization"); r.Header.Set("Authorization", a[:len(a)-1]) }, code: InvalidSignature, message: messageMismatch},
		"signature upper case": {tamper: func(r *http.Request) {
			before, sig, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", before+"Signature="+strings.ToUpper(sig))
		}, code: InvalidSignature, message: messageMismatch},
		"several authorization": {tamper: func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, code: IncompleteSignature, message: "not 2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.creds.AccessKeyID == "" {
				c.creds = testCreds
			}
			if c.at.IsZero() {
				c.at = testNow
			}
			r := request(t, "POST", "http://bursar.test/v1/submitservicejob", testBody)
			sign(t, r, testBody, c.creds, c.at)
			if c.tamper != nil {
				c.tamper(r)
			}
			wantError(t, testVerifier(t), r, cmp.Or(c.body, testBody), c.code, c.message)
		})
	}
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func wantError(t *testing.T, v *Verifier, r *http.Request, body, code, part string) {
	t.Helper()
	p, err := v.Verify(r, []byte(body))
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("Verify = %+v, %v; want an *Error", p, err)
	}
	if p != (Principal{}) {
		t.Errorf("a principal %+v came with the error", p)
	}
	if refused.Code != code || !strings.Contains(refused.Message, part) {
		t.Errorf("Verify: %v; want code %s and a message with %q", err, code, part)
	}
}

// Two sets of keys that differ in a secret alone must not share derived keys.
func TestVerifyAfterASecretIsReplaced(t *testing.T) {
	v := testVerifier(t)
	r := request(t, "POST", "http://bursar.test/v1/x", testBody)
	sign(t, r, testBody, testCreds, testNow)
	if _, err := v.Verify(r, []byte(testBody)); err != nil {
		t.Fatal(err)
	}
	keys, err := parseCredentials(strings.Replace(testCredentials, "secret-a", "secret-c", 1))
	if err != nil {
		t.Fatal(err)
	}
	v.Keys = keys
	wantError(t, v, r, testBody, InvalidSignature, messageMismatch)
}

func TestVerifyManyAtOnce(t *testing.T) {
	v := testVerifier(t)
	done := make(chan error)
	for _, creds := range []aws.Credentials{testCreds, tempCreds, testCreds, tempCreds} {
		go func() {
			for range 50 {
				r := request(t, "POST", "http://bursar.test/v1/x", testBody)
				if err := Sign(r, []byte(testBody), creds, "batch", "us-east-1", testNow); err != nil {
					done <- err
					return
				}
				if _, err := v.Verify(r, []byte(testBody)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Whatever an Authorization header holds, it is refused in the right form
// unless it is the one signature that fits.
func FuzzAuthorization(f *testing.F) {
	v := testVerifier(f)
	r := request(f, "POST", "http://bursar.test/v1/submitservicejob", testBody)
	sign(f, r, testBody, testCreds, testNow)
	good := r.Header.Get("Authorization")
	f.Add(good, r.Header.Get("X-Amz-Date"), "")
	f.Add("AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host;x-amz-date, Signature=00", "20260301T120000Z", "a=b")
	f.Add("AWS4-HMAC-SHA256 Credential=,,=,", "", "X-Amz-Signature=1")
	f.Fuzz(func(t *testing.T, header, date, query string) {
		r := request(t, "POST", "http://bursar.test/v1/submitservicejob", testBody)
		r.ContentLength = int64(len(testBody))
		r.Header.Set("Authorization", header)
		r.Header.Set("X-Amz-Date", date)
		r.URL.RawQuery = query
		p, err := v.Verify(r, []byte(testBody))
		if err == nil {
			if p.Name != "default" || !strings.HasSuffix(good, mustSignature(t, header)) || query != "" {
				t.Fatalf("accepted %q with date %q and query %q", header, date, query)
			}
			return
		}
		var refused *Error
		if !errors.As(err, &refused) || refused.Code == "" || refused.Message == "" {
			t.Fatalf("refused with %v, not in AWS's form", err)
		}
	})
}

func mustSignature(t *testing.T, header string) string {
	t.Helper()
	a, err := parseAuthorization(header)
	if err != nil {
		t.Fatal(err)
	}
	return "Signature=" + a.signature
}

func BenchmarkVerify(b *testing.B) {
	v := testVerifier(b)
	body := bytes.Repeat([]byte("x"), 1200)
	r := request(b, "POST", "http://bursar.test/v1/submitservicejob", string(body))
	r.Header.Set("Amz-Sdk-Invocation-Id", "d8a4f6f4-98c0-4bb1-ba2c-b3b2c0f8a1d5")
	r.Header.Set("Amz-Sdk-Request", "attempt=1; max=3")
	sign(b, r, string(body), testCreds, testNow)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(r, body); err != nil {
			b.Fatal(err)
		}
	}
}
