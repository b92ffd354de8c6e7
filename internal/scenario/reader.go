package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/bursar-io/bursar/internal/quota"
)

// maxAmount bounds the amounts in files, so that sums over many shares, times
// a weight, stay far from overflow.
const maxAmount = 1 << 48

// FileError is what is wrong with a file, and in which line.
type FileError struct {
	File    string
	Line    int // from 1; 0: the file as a whole
	Message string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// reader reads the parts of one YAML file, strictly, and keeps the first error:
// what it returns after one is of no use.
type reader struct {
	file string
	err  error
}

// document returns the root of a text that must be one YAML document.
func (r *reader) document(text []byte) *yaml.Node {
	var root, second yaml.Node
	if !utf8.Valid(text) {
		r.failAt(0, "the file is not valid UTF-8; encode it as UTF-8")
		return &root
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err == nil {
		err = loader.Load(&root)
	}
	if errors.Is(err, io.EOF) || err == nil && len(root.Content) == 0 {
		r.failAt(0, "the file is empty")
		return &root
	}
	if err == nil {
		if err = loader.Load(&second); err == nil {
			r.fail(&second, "a second document begins here; a file holds one")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		r.notYAML(err)
		return &root
	}
	return root.Content[0]
}

func (r *reader) notYAML(err error) {
	if at := (*yaml.LoadError)(nil); errors.As(err, &at) {
		r.failAt(at.Mark.Line, "the file is not YAML: %s", at.Message)
		return
	}
	r.failAt(0, "the file is not YAML: %v", err)
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) { r.failAt(n.Line, format, args...) }

func (r *reader) failAt(line int, format string, args ...any) {
	if r.err == nil {
		r.err = &FileError{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)}
	}
}

// fields says how to read the value of each key that a mapping may have.
type fields map[string]func(value *yaml.Node)

// mapping reads a mapping whose keys are known beforehand, in their order.
func (r *reader) mapping(n *yaml.Node, what string, known fields, required ...string) {
	seen := map[string]bool{}
	r.entries(n, what, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			r.fail(key, "%s has no key %s; its keys are %s", what, key.Value, inOrder(known))
			return
		}
		seen[key.Value] = true
		read(value)
	})
	for _, key := range required {
		if !seen[key] {
			r.fail(n, "%s lacks %s", what, key)
		}
	}
}

func inOrder[V any](known map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// entries calls read for each key of a mapping with its value. Keys are single
// values, each given once.
func (r *reader) entries(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	n = r.target(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is %s; it must be a mapping, such as {key: value}", what, describe(n))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := r.target(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			r.fail(key, "a key of %s is %s; it must be a single value", what, describe(key))
			return
		}
		if line, twice := lines[key.Value]; twice {
			r.fail(key, "%s has %s twice, first in line %d; give it once", what, key.Value, line)
			return
		}
		lines[key.Value] = key.Line
		read(key, n.Content[i+1])
	}
}

// list calls read for each element of a sequence.
func (r *reader) list(n *yaml.Node, what string, read func(element *yaml.Node)) {
	n = r.target(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s is %s; it must be a list, such as [a, b]", what, describe(n))
		return
	}
	for _, element := range n.Content {
		read(element)
	}
}

// value returns the value of a key, if the node is a mapping that has it.
func (r *reader) value(n *yaml.Node, key string) *yaml.Node {
	n = r.target(n)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if r.target(n.Content[i]).Value == key {
			return r.target(n.Content[i+1])
		}
	}
	return nil
}

// target is what a node stands for: itself, or what an alias points to.
func (r *reader) target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// scalar returns a single value other than null.
func (r *reader) scalar(n *yaml.Node, what string) (*yaml.Node, bool) {
	n = r.target(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.fail(n, "%s is %s; it must be a single value", what, describe(n))
		return n, false
	}
	return n, true
}

// text reads a value of any kind as it is written. It may not be empty.
func (r *reader) text(n *yaml.Node, what string) string {
	n, ok := r.scalar(n, what)
	if ok && n.Value == "" {
		r.fail(n, "%s is empty", what)
	}
	return n.Value
}

// boolean reads true or false.
func (r *reader) boolean(n *yaml.Node, what string) bool {
	n, ok := r.scalar(n, what)
	if ok && n.ShortTag() != "!!bool" {
		r.fail(n, "%s is %s; it must be true or false", what, describe(n))
	}
	return strings.EqualFold(n.Value, "true")
}

// integer reads a whole number in decimal, from least to most.
func (r *reader) integer(n *yaml.Node, what string, least, most int64) int64 {
	n, ok := r.scalar(n, what)
	if !ok {
		return 0
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || n.ShortTag() != "!!int" || strconv.FormatInt(value, 10) != n.Value {
		r.fail(n, "%s is %s; it must be a whole number", what, describe(n))
		return 0
	}
	if value < least || value > most {
		r.fail(n, "%s is %d; it must be %d to %d", what, value, least, most)
	}
	return value
}

// duration reads a time span such as 90s or 1h30m, not negative.
func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	n, ok := r.scalar(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		r.fail(n, "%s is %s; it must be a duration, such as 90s or 1h30m", what, describe(n))
	case d < 0:
		r.fail(n, "%s is %s; it must not be negative", what, n.Value)
	case d > maxDuration:
		r.fail(n, "%s is %s; it must be %s or less", what, n.Value, Spell(maxDuration))
	}
	return d
}

// amounts reads an amount, of at least least, for each of some units, and calls
// mention for the key of each. It returns nil where there are none.
func (r *reader) amounts(n *yaml.Node, what string, least int64, mention func(unit *yaml.Node)) quota.Amounts {
	var amounts quota.Amounts
	r.entries(n, what, func(key, value *yaml.Node) {
		if key.Value == "" {
			r.fail(key, "a unit in %s is empty", what)
		}
		if amounts == nil {
			amounts = quota.Amounts{}
		}
		amounts[quota.Unit(key.Value)] = r.integer(value, key.Value+" in "+what, least, maxAmount)
		mention(key)
	})
	return amounts
}

// oneOf reads one of a few words.
func oneOf[T any](r *reader, n *yaml.Node, what string, words map[string]T) T {
	n, ok := r.scalar(n, what)
	value, known := words[n.Value]
	if ok && !known {
		r.fail(n, "%s is %s; it must be one of %s", what, n.Value, inOrder(words))
	}
	return value
}

// describe says what a node is, for errors.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "empty"
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return strconv.Quote(n.Value)
	default:
		return n.Value
	}
}
