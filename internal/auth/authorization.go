package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const algorithm = "AWS4-HMAC-SHA256"

// authorization is an Authorization header, taken apart.
type authorization struct {
	accessKeyID   string
	date          string // of the credential scope, as are the next three
	region        string
	service       string
	terminator    string
	signedHeaders string // lower-case names, joined by semicolons
	signature     string
}

// authorizationOf returns the request's one Authorization header. Signatures
// in the query string are refused: nobody needs to pass on a link to this API.
func authorizationOf(r *http.Request) (authorization, error) {
	if r.URL.RawQuery != "" {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			// What cannot be parsed is not in the signature either.
			return authorization{}, incomplete("The query string must consist of name=value pairs joined by '&', with percent-encoding. Got '%s'", r.URL.RawQuery)
		}
		if query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature") {
			return authorization{}, &Error{MissingAuthenticationToken,
				messageMissing + ": presigned requests are not accepted; sign the request in an Authorization header"}
		}
	}
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return authorization{}, &Error{MissingAuthenticationToken, messageMissing}
	}
	if len(values) > 1 {
		return authorization{}, incomplete("A request must have one Authorization header, not %d", len(values))
	}
	a, err := parseAuthorization(values[0])
	if err != nil {
		return authorization{}, err
	}
	return a, a.checkSignedHeaders()
}

// parseAuthorization takes apart a header of the form
//
//	AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX
func parseAuthorization(header string) (authorization, error) {
	scheme, rest, _ := strings.Cut(header, " ")
	if scheme != algorithm {
		return authorization{}, incomplete("Authorization header must start with '%s'. Got '%s'", algorithm, scheme)
	}
	var a authorization
	var credential string
	fields := map[string]*string{"Credential": &credential, "SignedHeaders": &a.signedHeaders, "Signature": &a.signature}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		field, ok := fields[name]
		if !ok {
			return authorization{}, incomplete("Authorization header has an unexpected parameter '%s'", name)
		}
		if *field != "" {
			return authorization{}, incomplete("Authorization header has more than one '%s' parameter", name)
		}
		*field = value
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if *fields[name] == "" {
			return authorization{}, incomplete("Authorization header requires '%s' parameter.", name)
		}
	}
	scope := strings.Split(credential, "/")
	if len(scope) != 5 {
		return authorization{}, incomplete("Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'", credential)
	}
	a.accessKeyID, a.date, a.region, a.service, a.terminator = scope[0], scope[1], scope[2], scope[3], scope[4]
	return a, nil
}

// checkSignedHeaders demands what ties a signature to one server and one time.
func (a authorization) checkSignedHeaders() error {
	names := strings.Split(a.signedHeaders, ";")
	if !slices.Contains(names, "host") {
		return invalid("'Host' must be a 'SignedHeader' in the AWS Authorization.")
	}
	if !slices.Contains(names, "x-amz-date") {
		return invalid("'X-Amz-Date' must be a 'SignedHeader' in the AWS Authorization.")
	}
	return nil
}
