// Package auth says who sent a request: it keeps the access keys that are
// known, and verifies requests signed with them (AWS Signature Version 4).
//
// It knows HTTP requests and keys. What a principal may do, and what a request
// means, is decided elsewhere; no wire format of an API enters here.
package auth

import "net/http"

// Principal is whoever holds an access key.
type Principal struct {
	Name string // the key's profile in the credentials file
}

// StatusCode is the HTTP status of every request that is not authenticated.
const StatusCode = http.StatusForbidden

// The codes of an Error, as AWS spells them.
const (
	// MissingAuthenticationToken: the request carries no signature.
	MissingAuthenticationToken = "MissingAuthenticationTokenException"
	// UnrecognizedClient: the access key or session token is not known.
	UnrecognizedClient = "UnrecognizedClientException"
	// InvalidSignature: the signature is not the one expected, or not of this
	// time, region or service.
	InvalidSignature = "InvalidSignatureException"
	// IncompleteSignature: the signature's own form is wrong.
	IncompleteSignature = "IncompleteSignatureException"
)

// Error is why a request is not authenticated, in AWS's words.
type Error struct {
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Messages that clients of AWS know.
const (
	messageMissing      = "Missing Authentication Token"
	messageUnrecognized = "The security token included in the request is invalid."
	messageMismatch     = "The request signature we calculated does not match the signature you provided. " +
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
)

func unrecognized() error { return &Error{UnrecognizedClient, messageUnrecognized} }
func mismatch() error     { return &Error{InvalidSignature, messageMismatch} }
