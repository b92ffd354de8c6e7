package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(tb testing.TB, text string) Object {
	tb.Helper()
	o, err := Read([]byte(text))
	if err != nil {
		tb.Fatalf("Read(%s): %v", text, err)
	}
	return o
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {``, "ends at byte 0"},
		"a list":             {`[]`, "is a list; it must be a JSON object"},
		"a string":           {`"a"`, `is the string "a"`},
		"null":               {`null`, "is null"},
		"cut":                {`{"a":`, "before it is complete"},
		"cut in a string":    {`{"a":"b`, "before it is complete"},
		"cut in a list":      {`{"a":[1`, "before it is complete"},
		"no colon":           {`{"a" 1}`, "not JSON"},
		"a comma too many":   {`{"a":1,}`, "not JSON"},
		"in a list":          {`{"a":[1,]}`, "not JSON"},
		"a name not quoted":  {`{a:1}`, "not JSON"},
		"a name no string":   {`{1:1}`, "not JSON"},
		"single quotes":      {`{'a':1}`, "not JSON"},
		"more after it":      {`{} {}`, "goes on after its JSON object"},
		"garbage after it":   {`{}x`, "goes on after its JSON object"},
		"a name twice":       {`{"a":1,"a":2}`, "a is given twice"},
		"deep inside":        {`{"a":[{"b":{"c":1,"c":1}}]}`, "a[0].b.c is given twice"},
		"not UTF-8":          {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"a control char":     {"{\"a\":\"\x01\"}", "not JSON"},
		"a number no number": {`{"a":01}`, "not JSON"},
		"too deep":           {`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "more than 64 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read(%q): %v; want an error with %q", c.text, err, c.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	o := read(t, `{"s":"x","e":"","n":-3,"f":0.125,"w":2e0,"z":null,"o":{"i":7},"os":[{"i":1},{"i":2}],"none":[],"ss":["a","b"],"m":{"k":"v"}}`)
	type values struct {
		Text, Empty, Absent, Null string
		Number, Inner             int64
		Integer                   int32
		Fraction, Whole           float32
		Inners                    []int64
		Texts                     []string
		Map                       map[string]string
	}
	got := values{
		Text: o.NeededText("s"), Empty: o.Text("e"), Absent: o.Text("no"), Null: o.Text("z"),
		Number: o.Number("n", -3, 5), Inner: o.Object("o").Number("i", 0, 9),
		Integer: o.Integer("n"), Fraction: o.Float("f"), Whole: o.Float("w"), Texts: o.Texts("ss"), Map: o.TextMap("m"),
	}
	for _, inner := range o.Objects("os") {
		got.Inners = append(got.Inners, inner.Number("i", 0, 9))
	}
	want := values{Text: "x", Number: -3, Integer: -3, Fraction: 0.125, Whole: 2, Inner: 7, Inners: []int64{1, 2}, Texts: []string{"a", "b"}, Map: map[string]string{"k": "v"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	if o.Has("z") || o.Has("no") || !o.Has("e") {
		t.Error("Has: null must be as absent, an empty string as there")
	}
	if none := o.Objects("none"); none == nil || len(none) != 0 {
		t.Errorf("an empty list is %v, want it empty and not nil", none)
	}
	if o.Objects("no") != nil || o.Texts("no") != nil || o.TextMap("no") != nil || o.Object("no").Has("i") {
		t.Error("what is absent is not zero")
	}
	if err := o.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
}

func TestValuesOfWrongTypes(t *testing.T) {
	const text = `{"s":"x","n":3,"f":1.5,"b":true,"l":[1,"a",{}],"o":{"k":1,"l":{"n":"3"}},"large":2147483648,"big":99999999999999999999,"huge":1e39}`
	for name, c := range map[string]struct {
		take func(Object)
		want string
	}{
		"text of a number":      {func(o Object) { o.Text("n") }, "n is the number 3; it must be a string"},
		"text missing":          {func(o Object) { o.NeededText("x") }, "x is missing; it must be a string that is not empty"},
		"number of a string":    {func(o Object) { o.Number("s", 0, 9) }, `s is the string "x"; it must be a whole number from 0 to 9`},
		"number of a fraction":  {func(o Object) { o.Number("f", 0, 9) }, "f is the number 1.5; it must be a whole number from 0 to 9"},
		"number of a boolean":   {func(o Object) { o.Number("b", 0, 9) }, "b is true; it must be a whole number"},
		"integer of a string":   {func(o Object) { o.Integer("s") }, `s is the string "x"; it must be a whole number`},
		"integer missing":       {func(o Object) { o.Integer("x") }, "x is missing; it must be a whole number"},
		"integer too large":     {func(o Object) { o.Integer("large") }, "large is the number 2147483648; it must be a whole number"},
		"number missing":        {func(o Object) { o.Number("x", 1, 9) }, "x is missing; it must be a whole number from 1 to 9"},
		"number too small":      {func(o Object) { o.Number("n", 4, 9) }, "n is the number 3; it must be a whole number from 4 to 9"},
		"number too large":      {func(o Object) { o.Number("n", 0, 2) }, "n is the number 3"},
		"number beyond all":     {func(o Object) { o.Number("big", 0, 1<<62) }, "big is the number 99999999999999999999"},
		"float of a string":     {func(o Object) { o.Float("s") }, `s is the string "x"; it must be a number`},
		"float missing":         {func(o Object) { o.Float("x") }, "x is missing; it must be a number"},
		"float beyond 32 bits":  {func(o Object) { o.Float("huge") }, "huge is the number 1e39; it must be a number"},
		"object of a list":      {func(o Object) { o.Object("l") }, "l is a list; it must be an object"},
		"objects of an object":  {func(o Object) { o.Objects("o") }, "o is an object; it must be a list"},
		"objects of numbers":    {func(o Object) { o.Objects("l") }, "l[0] is the number 1; it must be an object"},
		"texts of a string":     {func(o Object) { o.Texts("s") }, `s is the string "x"; it must be a list`},
		"texts of numbers":      {func(o Object) { o.Texts("l") }, "l[0] is the number 1; it must be a string"},
		"map of a number":       {func(o Object) { o.TextMap("n") }, "n is the number 3; it must be an object"},
		"map to a number":       {func(o Object) { o.TextMap("o") }, "o.k is the number 1; it must be a string"},
		"inside":                {func(o Object) { o.Object("o").Object("l").Number("n", 0, 9) }, `o.l.n is the string "3"`},
		"inside what is absent": {func(o Object) { o.Object("x").NeededText("y") }, "x.y is missing"},
		"the first of two":      {func(o Object) { o.Text("n"); o.Number("s", 0, 9) }, "n is the number 3; it must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			o := read(t, text)
			c.take(o)
			if err := o.Err(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Err: %v; want %q", err, c.want)
			}
		})
	}
}

func TestQuoteShortens(t *testing.T) {
	if got := Quote(strings.Repeat("é", 129)); got != `"`+strings.Repeat("é", 128)+`…"` {
		t.Errorf("Quote = %s", got)
	}
	if got := Quote("a\"b"); got != `"a\"b"` {
		t.Errorf("Quote = %s", got)
	}
}

// What Read takes is a JSON object to everybody else too.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,"b",{"c":null}],"d":1e9}`, `{"a":1,"a":2}`, `{"\ud800":1}`, `{"a":1}x`, "\xff", `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Read(text)
		if err == nil {
			var m map[string]any
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatalf("read %q, which is no JSON object: %v", text, err)
			}
			if len(m) != len(o.fields) {
				t.Fatalf("read %d fields of %d from %q", len(o.fields), len(m), text)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := []byte(`{"jobName":"train","jobQueue":"queue","quotaShareName":"QS1","schedulingPriority":5,"serviceJobType":"SAGEMAKER_TRAINING",` +
		`"retryStrategy":{"attempts":2,"evaluateOnExit":[{"action":"RETRY","onStatusReason":"*"}]},"timeoutConfig":{"attemptDurationSeconds":3600},` +
		`"serviceRequestPayload":"{\"TrainingJobName\":\"x\",\"ResourceConfig\":{\"InstanceType\":\"ml.g5.xlarge\",\"InstanceCount\":1}}","clientToken":"0d7d8c36-5a3d-4b87-b7e9-90c6b8a61a0f"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(text); err != nil {
			b.Fatal(err)
		}
	}
}
