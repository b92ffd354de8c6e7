package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Object is a JSON object of a document. Its methods take values out of it.
// The first value that cannot be is the error of the whole document (Err);
// from then on the values taken are of no use. A field that is null is as one
// that is absent, and what is absent is zero.
type Object struct {
	path   string
	fields map[string]any // string, json.Number, bool, nil, Object or []any
	first  *error
}

// Error is why a document cannot be read or used: a message for whoever sent
// it.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

func errorf(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// Err returns the first error of the document that the object is a part of:
// nil or an *Error.
func (o Object) Err() error {
	if o.first == nil {
		return nil
	}
	return *o.first
}

// Fail records an error, unless there is one already.
func (o Object) Fail(format string, args ...any) {
	if o.first != nil && *o.first == nil {
		*o.first = errorf(format, args...)
	}
}

// At is the path of a field from the document's root, such as limits[0].unit.
func (o Object) At(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// Has reports whether a field is there.
func (o Object) Has(name string) bool { return o.fields[name] != nil }

// Text takes a string.
func (o Object) Text(name string) string {
	if !o.Has(name) {
		return ""
	}
	return o.asText(o.At(name), o.fields[name])
}

// NeededText takes a string that must be there and not be empty.
func (o Object) NeededText(name string) string {
	s := o.Text(name)
	if s == "" {
		o.Fail("%s is missing; it must be a string that is not empty", o.At(name))
	}
	return s
}

// Integer takes a whole number of 32 bits that must be there.
func (o Object) Integer(name string) int32 {
	return int32(o.number(name, "a whole number", math.MinInt32, math.MaxInt32))
}

// Number takes a whole number from least to most that must be there.
func (o Object) Number(name string, least, most int64) int64 {
	return o.number(name, fmt.Sprintf("a whole number from %d to %d", least, most), least, most)
}

func (o Object) number(name, right string, least, most int64) int64 {
	if !o.Has(name) {
		o.Fail("%s is missing; it must be %s", o.At(name), right)
		return 0
	}
	number, ok := o.fields[name].(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	if !ok || err != nil || n < least || n > most {
		o.Fail("%s is %s; it must be %s", o.At(name), describe(o.fields[name]), right)
		return 0
	}
	return n
}

// Float takes a number of 32 bits, which may have a fraction, that must be
// there.
func (o Object) Float(name string) float32 {
	const right = "a number"
	if !o.Has(name) {
		o.Fail("%s is missing; it must be %s", o.At(name), right)
		return 0
	}
	number, ok := o.fields[name].(json.Number)
	f, err := strconv.ParseFloat(string(number), 32)
	if !ok || err != nil {
		o.Fail("%s is %s; it must be %s", o.At(name), describe(o.fields[name]), right)
		return 0
	}
	return float32(f)
}

// Object takes an object; an absent one is empty.
func (o Object) Object(name string) Object {
	if !o.Has(name) {
		return Object{path: o.At(name), first: o.first}
	}
	return o.asObject(o.At(name), o.fields[name])
}

// Objects takes a list of objects: nil if it is absent, not nil if it is empty.
func (o Object) Objects(name string) []Object {
	return elements(o, name, o.asObject)
}

// Texts takes a list of strings: nil if it is absent, not nil if it is empty.
func (o Object) Texts(name string) []string {
	return elements(o, name, o.asText)
}

// TextMap takes an object whose values are all strings; nil if it is absent.
func (o Object) TextMap(name string) map[string]string {
	if !o.Has(name) {
		return nil
	}
	members := o.Object(name)
	texts := make(map[string]string, len(members.fields))
	for _, key := range slices.Sorted(maps.Keys(members.fields)) { // in order, so that the same request gets the same error
		texts[key] = o.asText(members.At(key), members.fields[key])
	}
	return texts
}

func (o Object) asText(path string, value any) string {
	s, ok := value.(string)
	if !ok {
		o.Fail("%s is %s; it must be a string", path, describe(value))
	}
	return s
}

func (o Object) asObject(path string, value any) Object {
	member, ok := value.(Object)
	if !ok {
		o.Fail("%s is %s; it must be an object", path, describe(value))
		return Object{path: path, first: o.first}
	}
	return member
}

func elements[T any](o Object, name string, as func(path string, value any) T) []T {
	if !o.Has(name) {
		return nil
	}
	values, ok := o.fields[name].([]any)
	if !ok {
		o.Fail("%s is %s; it must be a list", o.At(name), describe(o.fields[name]))
	}
	taken := make([]T, len(values))
	for i, value := range values {
		taken[i] = as(element(o.At(name), i), value)
	}
	return taken
}
