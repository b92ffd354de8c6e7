package batchapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/resource"
)

// maxPage is the most entries of one page, and how many there are unless a
// request says less (A1).
const maxPage = 100

// page is which part of a list a request wants: at most size entries, after
// the one that cursor stands for; an empty cursor stands for the beginning.
type page struct {
	size   int
	cursor string
	list   string // what is listed, with all that selects it
}

// checkLength is how many bytes of a token tie it to its list.
const checkLength = 8

// takePage takes maxResults and nextToken. A token counts only for the list
// that it came from: list names the operation and its parameters.
func takePage(in document.Object, list ...string) page {
	p := page{size: maxPage, list: strings.Join(list, "\x00")}
	if in.Has("maxResults") {
		p.size = int(in.Number("maxResults", 1, maxPage))
	}
	if token := in.Text("nextToken"); token != "" {
		cursor, ok := p.open(token)
		if !ok {
			in.Fail("%s is %s, which is not a token that this operation returned for the same parameters; send one that it did, or none for the first page",
				in.At("nextToken"), document.Quote(token))
		}
		p.cursor = cursor
	}
	return p
}

// token makes a token that continues after the entry that cursor stands for.
func (p page) token(cursor string) string {
	return base64.RawURLEncoding.EncodeToString(append(p.check(cursor), cursor...))
}

func (p page) open(token string) (cursor string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= checkLength {
		return "", false
	}
	cursor = string(raw[checkLength:])
	return cursor, subtle.ConstantTimeCompare(raw[:checkLength], p.check(cursor)) == 1
}

// check is what a token carries beside its cursor. It guards against mistakes,
// not against clients: who may list may list everything.
func (p page) check(cursor string) []byte {
	sum := sha256.Sum256([]byte(p.list + "\x00" + cursor))
	return sum[:checkLength]
}

// pageOf returns the page's part of a list sorted by name, and the token that
// continues it, empty at the end.
func pageOf[T any](p page, sorted []T, name func(T) string) (part []T, next string) {
	part = []T{}
	for _, entry := range sorted {
		if p.cursor != "" && name(entry) <= p.cursor {
			continue
		}
		if len(part) == p.size {
			return part, p.token(name(part[len(part)-1]))
		}
		part = append(part, entry)
	}
	return part, ""
}

// only returns the entries with the given names, all of them if there are no
// names: that is how Describe operations choose.
func only[T any](all []T, names []string, name func(T) string) []T {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(entry T) bool { return !slices.Contains(names, name(entry)) })
}

// maxNames is how many resources one request may name.
const maxNames = 100

// takeNames takes a list of names and ARNs of one kind.
func (a arns) takeNames(in document.Object, kind resource.Kind, field string) []string {
	values := in.Texts(field)
	if len(values) > maxNames {
		in.Fail("%s has %d entries; name at most %d", in.At(field), len(values), maxNames)
	}
	names := make([]string, len(values))
	for i, value := range values {
		name, err := a.name(kind, in.At(field)+"["+strconv.Itoa(i)+"]", value)
		if err != nil {
			in.Fail("%v", err)
		}
		names[i] = name
	}
	return names
}
