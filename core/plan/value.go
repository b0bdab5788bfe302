package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/llm"
	"synthbot/core/txt"
)

// value is a JSON value of an answer. The zero value is one that is missing.
type value struct {
	raw    json.RawMessage  // as it was written
	items  []value          // of a list
	fields map[string]value // of an object, by its keys as they were written
}

// isObject reports whether a text is a JSON object and nothing else.
func isObject(text []byte) bool {
	return len(text) > 0 && text[0] == '{' && utf8.Valid(text) && json.Valid(text)
}

// decoder reads valid JSON into values. It also finds faults that encoding/json accepts.
type decoder struct {
	rest     []byte // what comes next
	wrong    string // deep nesting, keys that occur twice, or numbers that are too large to work with; "" if none
	fatal    bool   // the JSON must not be used at all
	thoughts bool   // its strings may contain reasoning
}

// decode reads valid JSON. The decoder has what was found in it.
func decode(raw json.RawMessage) (v value, d decoder) {
	d.rest = raw
	v = d.value(0)
	return v, d
}

func (d *decoder) value(depth int) (v value) {
	first := d.next()
	from := d.rest
	switch first {
	case '{', '[':
		if depth >= maxDepth {
			d.refuse("the JSON nests too deep", true)
		}
		d.rest = d.rest[1:]
		if first == '{' {
			v.fields = make(map[string]value)
		}
		for d.next() != first+2 { // the bracket that closes it
			item := d.value(depth + 1)
			if first == '[' {
				v.items = append(v.items, item)
				continue
			}
			key := item.text()
			_, twice := v.fields[key]
			if twice {
				d.refuse("the key "+txt.Clip(key, 64)+" occurs twice in one object", false)
			}
			v.fields[key] = d.value(depth + 1)
		}
		d.rest = d.rest[1:]
	case '"':
		d.rest = d.rest[txt.StringEnd(d.rest):]
		quoted := from[:len(from)-len(d.rest)]
		d.thoughts = d.thoughts ||
			bytes.ContainsFunc(quoted, llm.MayBeMark) || bytes.Contains(quoted, []byte(`\u`))
	default:
		d.rest = bytes.TrimLeft(d.rest, "+-.0123456789Eaeflnrstu") // numbers, true, false and null
		number := string(from[:len(from)-len(d.rest)])
		_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
		if len(number) > 400 || len(strings.TrimLeft(exponent, "+-0")) > 3 {
			d.refuse("the number "+txt.Clip(number, 24)+" is out of range", true)
		}
	}
	v.raw = from[:len(from)-len(d.rest)]
	return v
}

// next skips white space and separators, and returns the first byte of what follows.
func (d *decoder) next() byte {
	d.rest = bytes.TrimLeft(d.rest, " \t\r\n,:")
	return d.rest[0]
}

// refuse keeps the first fault, or the first fatal one.
func (d *decoder) refuse(why string, fatal bool) {
	if d.wrong == "" || fatal && !d.fatal {
		d.wrong, d.fatal = why, fatal
	}
}

// present reports whether there is a value other than null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// kind returns the first byte of the value, such as '"' of a string; 0 if it is missing.
func (v value) kind() byte {
	if len(v.raw) == 0 {
		return 0
	}
	return v.raw[0]
}

// text returns the text of a string; "" for any other value.
func (v value) text() (s string) {
	if v.kind() != '"' {
		return ""
	}
	if bytes.IndexByte(v.raw, '\\') < 0 && utf8.Valid(v.raw) { // nothing to decode
		return string(v.raw[1 : len(v.raw)-1])
	}
	_ = json.Unmarshal(v.raw, &s)
	return s
}

// get returns the value of a normalised key: of that spelling, else of the first other one whose value is not null.
func (v value) get(key string) value {
	found, ok := v.fields[key]
	if ok {
		return found
	}
	first := ""
	for name, other := range v.fields {
		if normalKey(name) == key && present(other.raw) && (first == "" || name < first) {
			first, found = name, other
		}
	}
	return found
}

func (v value) has(key string) bool { return present(v.get(key).raw) }

// rest returns the fields that are not among known.
func (v value) rest(known []string) map[string]json.RawMessage {
	rest := make(map[string]json.RawMessage)
	for name, f := range v.fields {
		if !slices.Contains(known, normalKey(name)) {
			rest[name] = f.raw
		}
	}
	return rest
}

// normalKey returns a key in lower case without '_', so that "requires_confirmation" equals "requiresConfirmation".
func normalKey(key string) string {
	return strings.ToLower(strings.ReplaceAll(key, "_", ""))
}

// shape tells what kind of answer a JSON value may be.
type shape int

const (
	shapeNone   shape = iota
	shapePlan         // an object with response or actions
	shapeAction       // one bare action
	shapeList         // an array of actions
)

var planKeys = []string{"response", "actions", "intent", "confidence", "context", "suggestions", "metadata"}

func (v value) shape() shape {
	isAction := func(e value) bool { return e.fields != nil && e.shape() == shapeAction }
	switch {
	case v.has("response"), v.has("actions"):
		return shapePlan
	case v.get("type").kind() == '"', v.get("action").kind() == '"',
		v.get("name").kind() == '"' && (v.has("arguments") || v.has("parameters")):
		return shapeAction
	case v.has("action"), slices.ContainsFunc(planKeys, v.has):
		return shapePlan
	case slices.ContainsFunc(v.items, isAction), v.isOnePlan():
		return shapeList
	}
	return shapeNone
}

// isOnePlan reports whether the value is a list of a single plan.
func (v value) isOnePlan() bool {
	return len(v.items) == 1 && v.items[0].fields != nil && v.items[0].shape() == shapePlan
}
