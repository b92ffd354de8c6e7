// Package document reads JSON objects that clients send: strictly, by exact
// names, and with errors that name the field, its value and what would be
// right.
//
// It knows JSON and nothing of what a document means; no field's name and no
// rule about its value may enter here.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep a document may nest.
const maxDepth = 64

// Read reads a text that must be one JSON object and nothing else: valid
// UTF-8, no name twice in one object. Its error is an *Error.
func Read(text []byte) (Object, error) {
	if !utf8.Valid(text) {
		return Object{}, errorf("the request is not valid UTF-8; encode it as UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	p := parser{dec: dec, first: new(error)}
	value, err := p.value("", 0)
	if err != nil {
		return Object{}, err
	}
	root, ok := value.(Object)
	if !ok {
		return Object{}, errorf("the request is %s; it must be a JSON object", describe(value))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Object{}, errorf("the request goes on after its JSON object, at byte %d; it must be one object and nothing else", dec.InputOffset())
	}
	return root, nil
}

type parser struct {
	dec   *json.Decoder
	first *error // of all objects of the document
}

func (p parser) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errorf("the request nests more than %d levels deep, at byte %d; use fewer", maxDepth, p.dec.InputOffset())
	}
	token, err := p.dec.Token()
	if err != nil {
		return nil, p.notJSON(err)
	}
	switch token {
	case json.Delim('{'):
		return p.object(path, depth)
	case json.Delim('['):
		return p.array(path, depth)
	}
	return token, nil
}

func (p parser) object(path string, depth int) (Object, error) {
	o := Object{path: path, fields: map[string]any{}, first: p.first}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return o, p.notJSON(err)
		}
		name, ok := token.(string)
		if !ok {
			return o, errorf("the request is not JSON: the name of a field at byte %d is not a string", p.dec.InputOffset())
		}
		if _, twice := o.fields[name]; twice {
			return o, errorf("%s is given twice; give it once", o.At(name))
		}
		if o.fields[name], err = p.value(o.At(name), depth+1); err != nil {
			return o, err
		}
	}
	_, err := p.dec.Token() // the closing brace
	return o, p.notJSON(err)
}

func (p parser) array(path string, depth int) ([]any, error) {
	values := []any{}
	for p.dec.More() {
		value, err := p.value(element(path, len(values)), depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	_, err := p.dec.Token() // the closing bracket
	return values, p.notJSON(err)
}

func (p parser) notJSON(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errorf("the request is not JSON: it ends at byte %d, before it is complete", p.dec.InputOffset())
	}
	return errorf("the request is not JSON: near byte %d: %v", p.dec.InputOffset(), err)
}

// element is the path of a list's i-th value, such as limits[0].
func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// describe says what a value is, for a message.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return "the string " + Quote(v)
	case json.Number:
		return "the number " + shorten(v.String())
	case bool:
		return strconv.FormatBool(v)
	case Object:
		return "an object"
	case []any:
		return "a list"
	}
	return "null"
}

// Quote quotes a value for a message, and shortens what is long.
func Quote(s string) string { return strconv.Quote(shorten(s)) }

func shorten(s string) string {
	const most = 128
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
