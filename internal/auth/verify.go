package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// MaxSkew is how far a request's date may be from the verifier's clock.
const MaxSkew = 5 * time.Minute

const (
	dateLayout      = "20060102T150405Z" // X-Amz-Date
	scopeDateLayout = "20060102"
	scopeTerminator = "aws4_request"

	headerDate          = "X-Amz-Date"
	headerContentSHA256 = "X-Amz-Content-Sha256"
	headerSecurityToken = "X-Amz-Security-Token"
)

// Verifier verifies signed requests. It may be used from many goroutines.
type Verifier struct {
	Keys     *Keys
	Region   string   // the region that requests are signed for
	Services []string // the services that requests may be signed for, such as batch
	Now      func() time.Time
}

// Verify returns the principal who signed the request and its whole body. The
// error is an *Error when the request is unsigned, signed by nobody known,
// signed wrongly, or signed for another time, region or service.
//
// The request is signed once more with the secret that belongs to its key, and
// both signatures are compared; so what is covered is what the client listed
// in SignedHeaders (host and x-amz-date at least), the method, the path, the
// query and the body. The request is not changed.
func (v *Verifier) Verify(r *http.Request, body []byte) (Principal, error) {
	a, err := authorizationOf(r)
	if err != nil {
		return Principal{}, err
	}
	k, known := v.Keys.byID[a.accessKeyID]
	if !known || !equal(r.Header.Get(headerSecurityToken), k.credentials.SessionToken) {
		return Principal{}, unrecognized()
	}
	signedAt, err := v.signingTime(r)
	if err != nil {
		return Principal{}, err
	}
	if err := v.checkScope(a, signedAt); err != nil {
		return Principal{}, err
	}
	hash, err := payloadHash(r, body)
	if err != nil {
		return Principal{}, err
	}
	expected, err := signAgain(r, a, k, hash, signedAt)
	if err != nil {
		return Principal{}, err
	}
	if a.signedHeaders != expected.signedHeaders || !equal(a.signature, expected.signature) {
		return Principal{}, mismatch()
	}
	return k.principal, nil
}

// equal compares without telling, by the time it takes, where a and b differ.
func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// signingTime returns the request's date, if it is near enough.
func (v *Verifier) signingTime(r *http.Request) (time.Time, error) {
	value := r.Header.Get(headerDate)
	at, err := time.Parse(dateLayout, value)
	if err != nil {
		return time.Time{}, incomplete("Date must be in ISO-8601 'basic format'. Got '%s'. See http://en.wikipedia.org/wiki/ISO_8601", value)
	}
	now := v.Now().UTC()
	if earliest := now.Add(-MaxSkew); at.Before(earliest.Truncate(time.Second)) {
		return time.Time{}, invalid("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			value, earliest.Format(dateLayout), now.Format(dateLayout))
	}
	if latest := now.Add(MaxSkew); at.After(latest) {
		return time.Time{}, invalid("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			value, latest.Format(dateLayout), now.Format(dateLayout))
	}
	return at, nil
}

func (v *Verifier) checkScope(a authorization, signedAt time.Time) error {
	switch date := signedAt.Format(scopeDateLayout); {
	case a.terminator != scopeTerminator:
		return invalid("Credential should be scoped with a valid terminator: '%s', not '%s'.", scopeTerminator, a.terminator)
	case a.date != date:
		return invalid("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'.",
			a.date, date, signedAt.Format(dateLayout))
	case a.region != v.Region:
		return invalid("Credential should be scoped to a valid region, not '%s'. This server is in '%s'.", a.region, v.Region)
	case !slices.Contains(v.Services, a.service):
		return invalid("Credential should be scoped to correct service: '%s', not '%s'.", strings.Join(v.Services, "' or '"), a.service)
	}
	return nil
}

// payloadHash returns the hex SHA-256 of the body. A client that states the
// hash must state that one: bodies left out of the signature are not accepted.
func payloadHash(r *http.Request, body []byte) (string, error) {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if stated := r.Header.Get(headerContentSHA256); stated != "" && stated != hash {
		return "", invalid("The value passed in as x-amz-content-sha256 does not match the request content: got '%s', expected '%s'.", stated, hash)
	}
	return hash, nil
}

// signAgain signs a copy of the request that has only the headers the client
// signed.
func signAgain(r *http.Request, a authorization, k key, hash string, signedAt time.Time) (authorization, error) {
	again := &http.Request{
		Method: r.Method,
		Host:   r.Host,
		URL:    &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
		Header: make(http.Header, 8),
	}
	for name := range strings.SplitSeq(a.signedHeaders, ";") {
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); canonical {
		case "Host", headerDate: // the signer adds these
		case "Content-Length":
			again.ContentLength = r.ContentLength
		default:
			// The signer leaves out some headers, by their canonical names;
			// a client may have signed them all the same.
			if values, ok := r.Header[canonical]; ok {
				again.Header[name] = slices.Clone(values)
			}
		}
	}
	if err := k.signer.SignHTTP(r.Context(), k.signing, again, hash, a.service, a.region, signedAt); err != nil {
		return authorization{}, fmt.Errorf("sign the request once more: %w", err)
	}
	return parseAuthorization(again.Header.Get("Authorization"))
}

// Sign signs a request as the holder of creds, adding its Authorization and
// X-Amz-Date headers. body is what the request's Body will yield.
func Sign(r *http.Request, body []byte, creds aws.Credentials, service, region string, now time.Time) error {
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), creds, r, hex.EncodeToString(sum[:]), service, region, now); err != nil {
		return fmt.Errorf("sign %s %s: %w", r.Method, r.URL.Path, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &Error{InvalidSignature, fmt.Sprintf(format, args...)}
}

func incomplete(format string, args ...any) error {
	return &Error{IncompleteSignature, fmt.Sprintf(format, args...)}
}
