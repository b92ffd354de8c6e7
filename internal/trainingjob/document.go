package trainingjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep a request may nest. CreateTrainingJob itself needs six
// levels.
const maxDepth = 64

// object is a JSON object of the request, with the path that leads to it.
// Names are matched exactly, as AWS does, and none occurs twice.
type object struct {
	path   string
	fields map[string]any // string, json.Number, bool, nil, object or []any
}

// readDocument reads a JSON text that must be one object and nothing else.
func readDocument(text string) (object, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	value, err := readValue(dec, "", 0)
	if err != nil {
		return object{}, err
	}
	root, ok := value.(object)
	if !ok {
		return object{}, fmt.Errorf("the request is %s; it must be a JSON object such as {\"ResourceConfig\": {...}}", describe(value))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return object{}, fmt.Errorf("the request goes on after its JSON object, at byte %d; it must be one object and nothing else", dec.InputOffset())
	}
	return root, nil
}

func readValue(dec *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the request nests more than %d levels deep, at byte %d; CreateTrainingJob needs far fewer", maxDepth, dec.InputOffset())
	}
	token, err := dec.Token()
	if err != nil {
		return nil, notJSON(dec, err)
	}
	switch token {
	case json.Delim('{'):
		return readObject(dec, path, depth)
	case json.Delim('['):
		return readArray(dec, path, depth)
	}
	return token, nil
}

func readObject(dec *json.Decoder, path string, depth int) (object, error) {
	o := object{path: path, fields: map[string]any{}}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return o, notJSON(dec, err)
		}
		name, ok := token.(string)
		if !ok {
			return o, fmt.Errorf("the request is not JSON: a field's name at byte %d is not a string", dec.InputOffset())
		}
		if _, twice := o.fields[name]; twice {
			return o, fmt.Errorf("%s is given twice; give it once", o.at(name))
		}
		if o.fields[name], err = readValue(dec, o.at(name), depth+1); err != nil {
			return o, err
		}
	}
	_, err := dec.Token() // the closing brace
	return o, notJSON(dec, err)
}

func readArray(dec *json.Decoder, path string, depth int) ([]any, error) {
	values := []any{}
	for dec.More() {
		value, err := readValue(dec, element(path, len(values)), depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	_, err := dec.Token() // the closing bracket
	return values, notJSON(dec, err)
}

func notJSON(dec *json.Decoder, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the request is not JSON: it ends at byte %d, before it is complete", dec.InputOffset())
	}
	return fmt.Errorf("the request is not JSON: near byte %d: %w", dec.InputOffset(), err)
}

// at is the path of a field, such as ResourceConfig.InstanceCount.
func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// has reports whether a field is there. One that is null is not.
func (o object) has(name string) bool { return o.fields[name] != nil }

// fields takes values out of objects. The first value of a wrong type is its
// error; what is absent is zero.
type fields struct{ err error }

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) wrongType(path string, value any, right string) {
	f.fail("%s is %s; it must be %s", path, describe(value), right)
}

func (f *fields) text(o object, name string) string {
	if !o.has(name) {
		return ""
	}
	return f.asText(o.at(name), o.fields[name])
}

func (f *fields) asText(path string, value any) string {
	s, ok := value.(string)
	if !ok {
		f.wrongType(path, value, "a string")
	}
	return s
}

func (f *fields) texts(o object, name string) []string {
	var texts []string
	for i, value := range f.array(o, name) {
		texts = append(texts, f.asText(element(o.at(name), i), value))
	}
	return texts
}

func (f *fields) textMap(o object, name string) map[string]string {
	members := f.object(o, name)
	if len(members.fields) == 0 {
		return nil
	}
	texts := make(map[string]string, len(members.fields))
	for _, key := range slices.Sorted(maps.Keys(members.fields)) {
		texts[key] = f.asText(members.at(key), members.fields[key])
	}
	return texts
}

// number takes a required whole number from 1 to most.
func (f *fields) number(o object, name string, most int64) int64 {
	right := fmt.Sprintf("a whole number from 1 to %d", most)
	if !o.has(name) {
		f.fail("%s is missing; it must be %s", o.at(name), right)
		return 0
	}
	number, ok := o.fields[name].(json.Number)
	if !ok {
		f.wrongType(o.at(name), o.fields[name], right)
		return 0
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 1 || n > most {
		f.fail("%s is %s; it must be %s", o.at(name), number, right)
	}
	return n
}

func (f *fields) object(o object, name string) object {
	if !o.has(name) {
		return object{path: o.at(name)}
	}
	return f.asObject(o.at(name), o.fields[name])
}

func (f *fields) asObject(path string, value any) object {
	member, ok := value.(object)
	if !ok {
		f.wrongType(path, value, "an object")
		return object{path: path}
	}
	return member
}

func (f *fields) objects(o object, name string) []object {
	var objects []object
	for i, value := range f.array(o, name) {
		objects = append(objects, f.asObject(element(o.at(name), i), value))
	}
	return objects
}

func (f *fields) array(o object, name string) []any {
	if !o.has(name) {
		return nil
	}
	values, ok := o.fields[name].([]any)
	if !ok {
		f.wrongType(o.at(name), o.fields[name], "a list")
	}
	return values
}

func describe(value any) string {
	switch v := value.(type) {
	case string:
		return "the string " + quote(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	case object:
		return "an object"
	case []any:
		return "a list"
	}
	return "null"
}

// quote shortens what a client sent: a message should not repeat all of a
// long value.
func quote(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
