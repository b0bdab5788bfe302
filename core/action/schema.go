package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"
)

// Bounds of a schema; beyond them compiling takes seconds and gigabytes.
const (
	maxSchema      = 64 << 10
	maxSchemaDepth = 64
)

// schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type schema struct {
	compiled *jsonschema.Schema
	root     any  // as decoded, numbers exact
	defaults bool // there are defaults to fill in
}

// compile reads a schema. Nothing is ever loaded: a reference that cannot be
// resolved inside of the schema is an error, as the library would let
// everything pass there.
func compile(raw json.RawMessage) (*schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("schema: %d bytes, at most %d are allowed", len(raw), maxSchema)
	}
	if d := Nesting(raw); d > maxSchemaDepth {
		return nil, fmt.Errorf("schema: more than %d levels deep", maxSchemaDepth)
	}
	root, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := lintSchema(root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := compileSafely(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &schema{compiled: compiled, root: root, defaults: bytes.Contains(raw, []byte(`"default"`))}, nil
}

// compileSafely calls the library, each time with a compiler of its own, so
// that no two schemas can share an $id.
func compileSafely(raw json.RawMessage) (s *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("cannot be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	clear(c.Loaders)
	c.SetAssertFormat(true)
	if s, err = c.Compile(raw); err != nil {
		return nil, err
	}
	if refs := s.UnresolvedReferenceURIs(); len(refs) > 0 {
		slices.Sort(refs)
		return nil, fmt.Errorf("$ref %s leads nowhere; only references inside of the schema are followed", strings.Join(slices.Compact(refs), ", "))
	}
	return s, nil
}

// Nesting is how deep the brackets of a JSON text nest. Who reads foreign JSON asks
// before decoding it. The text need not be valid.
func Nesting(raw []byte) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// decode reads one JSON value, keeping numbers exact.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// encode writes a value as compact JSON, keys sorted.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null") // decoded JSON can always be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

// flaw is one thing that a schema refuses. path is a JSON pointer without escapes, as
// the library writes it.
type flaw struct{ path, keyword, text string }

// maxFlaws bounds how much of a payload's wrongs is told at once.
const maxFlaws = 8

// check says what is wrong with a decoded value; nothing where it is right.
func (s *schema) check(v any) []flaw {
	var result *jsonschema.EvaluationResult
	if m, ok := v.(map[string]any); ok {
		result = s.compiled.ValidateMap(m)
	} else {
		result = s.compiled.ValidateJSON(encode(v))
	}
	if result.IsValid() {
		return nil
	}
	return explain(result.DetailedErrors(), v)
}

// summaries are keywords whose errors only repeat that some part is wrong.
func summary(keyword string) bool {
	switch keyword {
	case "properties", "items", "prefixItems", "$ref", "$dynamicRef", "allOf", "additionalProperties", "patternProperties", "then", "else", "dependentSchemas":
		return true
	}
	return false
}

// explain sorts the library's errors, and leaves out those that say nothing
// new: of a part that another error names better, or that is not there at all.
func explain(errs map[string]string, v any) []flaw {
	var told, summaries []flaw
	for _, key := range slices.Sorted(maps.Keys(errs)) {
		i := strings.LastIndexByte(key, '/')
		path, keyword := key[:max(i, 0)], key[i+1:]
		f := flaw{path, keyword, wording(keyword, errs[key])}
		switch {
		case summary(keyword):
			summaries = append(summaries, f)
		case keyword != "required" && !leads(v, path):
		default:
			told = append(told, f)
		}
	}
	if len(told) == 0 {
		told = summaries
	}
	return told[:min(len(told), maxFlaws)]
}

func wording(keyword, text string) string {
	if keyword == "schema" {
		return "is not allowed here"
	}
	text = strings.TrimPrefix(text, "Value ")
	if rest, ok := strings.CutPrefix(text, "Required "); ok {
		text = "required " + rest
	}
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// leads reports whether the path of a flaw leads to something.
func leads(v any, pointer string) bool {
	_, ok := find(v, pointer)
	return ok
}

// spot is a value inside of another one.
type spot struct {
	value any
	set   func(any) // puts another value there; nil at the root
}

// find follows the path of a flaw.
func find(v any, pointer string) (spot, bool) {
	at := spot{value: v}
	if pointer == "" {
		return at, true
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch in := at.value.(type) {
		case map[string]any:
			next, ok := in[part]
			if !ok {
				return spot{}, false
			}
			at = spot{next, func(v any) { in[part] = v }}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return spot{}, false
			}
			at = spot{in[i], func(v any) { in[i] = v }}
		default:
			return spot{}, false
		}
	}
	return at, true
}

// otherType returns a string's value as number or truth, and a number's as
// string, where they are written alike.
func otherType(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case string:
		other, _ := decode(json.RawMessage(v))
		if strings.TrimSpace(v) != v {
			return nil, false
		}
		switch other := other.(type) {
		case bool:
			return other, true
		case json.Number:
			_, ok := rational(other)
			return other, ok
		}
	}
	return nil, false
}

// dotted writes the path of a flaw the way faults name fields.
func dotted(pointer string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
		} else if part != "" {
			b.WriteString("." + part)
		}
	}
	return b.String()
}

// fill puts the schema's defaults in where the value has nothing.
func (s *schema) fill(v any) {
	if s.defaults {
		f := filler{schema: s, left: maxFill}
		f.from(s.root, v, 0)
	}
}

// maxFill bounds the work of filling in: schemas that refer to themselves would
// have no end.
const maxFill = 10_000

type filler struct {
	*schema
	left int
}

func (f *filler) from(node, v any, depth int) {
	n, _ := node.(map[string]any)
	if f.left--; f.left < 0 || depth > maxSchemaDepth {
		return
	}
	if ref, ok := n["$ref"].(string); ok {
		f.from(Resolve(f.root, ref), v, depth+1)
	}
	all, _ := n["allOf"].([]any)
	for _, e := range all {
		f.from(e, v, depth+1)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := n["properties"].(map[string]any)
		f.properties(properties, v, depth)
	case []any:
		for _, e := range v {
			f.from(n["items"], e, depth+1)
		}
	}
}

func (f *filler) properties(properties, v map[string]any, depth int) {
	for name, p := range properties {
		if _, ok := v[name]; !ok {
			value, ok := f.defaultOf(p, 0)
			if !ok {
				continue
			}
			v[name] = clone(value)
		}
		f.from(p, v[name], depth+1)
	}
}

func (s *schema) defaultOf(node any, hops int) (any, bool) {
	n, _ := node.(map[string]any)
	if hops > 8 {
		return nil, false
	}
	if v, ok := n["default"]; ok {
		return v, true
	}
	if ref, ok := n["$ref"].(string); ok {
		return s.defaultOf(Resolve(s.root, ref), hops+1)
	}
	return nil, false
}

// clone copies a decoded JSON value.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = clone(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = clone(e)
		}
		return c
	}
	return v
}
