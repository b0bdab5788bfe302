// Package schema compiles JSON Schemas, validates decoded JSON against them and rewrites them.
// It knows nothing about actions; package action uses it for them.
//
// It implements JSON Schema draft 2020-12, with formats asserted, integers exact and patterns in RE2. $defs and $ref
// work inside of a schema. Nothing is ever loaded: references out of the schema are errors, as are schemas over 64 KiB
// or 64 levels. Defaults are filled in only at properties, also through $ref, allOf and items.
//
// Some of the standard's test vectors fail: those that load other schemas, those that expect formats and contents only
// to be annotated, and those of host names and mail addresses beyond ASCII. TestVectors has the list.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kaptinlin/jsonschema"

	"synthbot/core"
)

// Limits of a schema, and of what is done with it. Compiling larger ones can take seconds and gigabytes.
const (
	maxBytes      = 64 << 10
	maxDepth      = 64
	maxViolations = 8      // that are reported at once
	maxFill       = 10_000 // nodes that FillDefaults visits, because schemas may refer to themselves
	maxHops       = 8      // references that defaultOf follows
)

// Schema is a JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	Root     any  // the decoded schema; it must not be changed
	defaults bool // whether there may be defaults to fill in
	compiled func() (*jsonschema.Schema, error)
}

// Compile reads and compiles a schema. A reference that cannot be resolved inside of the
// schema is an error, because the library would accept any value there.
func Compile(raw json.RawMessage) (*Schema, error) {
	s, err := Read(raw)
	if err == nil {
		_, err = s.compiled()
	}
	return s, err
}

// Read reads a schema that is known to compile, and compiles it on first use. If it does not compile, it
// refuses all values.
func Read(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("schema: %d bytes, at most %d are allowed", len(raw), maxBytes)
	}
	if Nesting(raw) > maxDepth {
		return nil, fmt.Errorf("schema: more than %d levels deep", maxDepth)
	}
	root, err := Decode(raw)
	if err == nil {
		err = lintSchema(root, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled := sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSafely(raw) })
	return &Schema{root, bytes.Contains(raw, []byte(`"default"`)), compiled}, nil
}

// compileSafely calls the library with a new compiler, so that no two schemas can share an $id.
func compileSafely(raw json.RawMessage) (s *jsonschema.Schema, err error) {
	defer func() {
		r := recover()
		if r != nil {
			s, err = nil, fmt.Errorf("schema: cannot be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	clear(c.Loaders)
	c.SetAssertFormat(true)
	if s, err = c.Compile(raw); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	refs := s.UnresolvedReferenceURIs()
	if len(refs) > 0 {
		slices.Sort(refs)
		return nil, fmt.Errorf("schema: $ref %s leads nowhere; only references inside of the schema are followed",
			strings.Join(slices.Compact(refs), ", "))
	}
	return s, nil
}

// Nesting returns how deep the brackets of a JSON text nest, so that untrusted JSON can be
// refused before it is decoded. The text need not be valid.
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

// Violation is one fault that a schema finds in a value. Path is a JSON pointer without escapes, as
// the library writes it.
type Violation struct{ Path, Keyword, Text string }

// Validate returns the violations of a decoded value; nil if it is valid.
func (s *Schema) Validate(v any) []Violation {
	compiled, err := s.compiled()
	if err != nil {
		return []Violation{{Keyword: "schema", Text: err.Error()}}
	}
	var result *jsonschema.EvaluationResult
	if m, ok := v.(map[string]any); ok {
		result = compiled.ValidateMap(m)
	} else {
		result = compiled.ValidateJSON(core.JSON(v))
	}
	if result.IsValid() {
		return nil
	}
	return explain(result.DetailedErrors(), v)
}

// summaries are keywords whose errors only say that some part is wrong.
var summaries = []string{
	"properties", "items", "prefixItems", "$ref", "$dynamicRef", "allOf", "additionalProperties", "patternProperties",
	"then", "else", "dependentSchemas",
}

// explain sorts the library's errors and omits those that add nothing: errors of summaries, if
// there are others, and errors about parts that do not exist.
func explain(errs map[string]string, v any) []Violation {
	var found, repeated []Violation
	for _, key := range slices.Sorted(maps.Keys(errs)) {
		i := strings.LastIndexByte(key, '/')
		path, keyword := key[:max(i, 0)], key[i+1:]
		one := Violation{path, keyword, wording(keyword, errs[key])}
		_, exists := Descend(v, pointerParts(path))
		switch {
		case slices.Contains(summaries, keyword):
			repeated = append(repeated, one)
		case exists || keyword == "required":
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		found = repeated
	}
	return found[:min(len(found), maxViolations)]
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

// pointerParts returns the keys and indexes of a violation's path.
func pointerParts(pointer string) []string {
	if pointer == "" {
		return nil
	}
	return strings.Split(pointer[1:], "/")
}

// otherType converts a number to a string, and a string with a number or boolean to that.
func otherType(v any) (other any, ok bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case string:
		other, _ := Decode(json.RawMessage(v))
		number, isNumber := other.(json.Number)
		_, isBool := other.(bool)
		if isNumber {
			_, isNumber = Rational(number)
		}
		return other, (isNumber || isBool) && strings.TrimSpace(v) == v
	}
	return nil, false
}

// Field returns the path in the form of field names in faults: ".list[0].name".
func (v Violation) Field() string {
	var b strings.Builder
	for _, part := range pointerParts(v.Path) {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
		} else if part != "" {
			b.WriteString("." + part)
		}
	}
	return b.String()
}

// FillDefaults adds the schema's defaults to a decoded value.
func (s *Schema) FillDefaults(v any) {
	if s.defaults {
		left := maxFill
		s.fillFrom(s.Root, v, 0, &left)
	}
}

func (s *Schema) fillFrom(node, v any, depth int, left *int) {
	n, _ := node.(map[string]any)
	*left--
	if *left < 0 || depth > maxDepth {
		return
	}
	if ref, ok := n["$ref"].(string); ok {
		s.fillFrom(Resolve(s.Root, ref), v, depth+1, left)
	}
	all, _ := n["allOf"].([]any)
	for _, e := range all {
		s.fillFrom(e, v, depth+1, left)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := n["properties"].(map[string]any)
		for name, p := range properties {
			if _, ok := v[name]; !ok {
				value, ok := s.defaultOf(p)
				if !ok {
					continue
				}
				v[name] = MapLeaves(value, func(leaf any) any { return leaf })
			}
			s.fillFrom(p, v[name], depth+1, left)
		}
	case []any:
		for _, e := range v {
			s.fillFrom(n["items"], e, depth+1, left)
		}
	}
}

func (s *Schema) defaultOf(node any) (v any, ok bool) {
	for range maxHops + 1 {
		n, _ := node.(map[string]any)
		if v, ok := n["default"]; ok {
			return v, true
		}
		ref, ok := n["$ref"].(string)
		if !ok {
			return nil, false
		}
		node = Resolve(s.Root, ref)
	}
	return nil, false
}

// Accept fills in defaults and validates. It corrects certain mistakes in the payload: "5" for 5,
// "true" for true, 5 for "5", and null for a property that may be omitted.
func (s *Schema) Accept(payload any) []Violation {
	s.FillDefaults(payload)
	violations := s.Validate(payload)
	for _, f := range violations {
		if f.Keyword == "type" || f.Keyword == "enum" {
			violations = s.retype(payload, f, violations)
		}
	}
	return violations
}

// retype tries another type for the value of a violation. It returns the violations after that.
func (s *Schema) retype(payload any, f Violation, before []Violation) []Violation {
	way := pointerParts(f.Path)
	value, _ := Descend(payload, way)
	if way == nil {
		return before
	}
	last := way[len(way)-1]
	parent, _ := Descend(payload, way[:len(way)-1])
	in, isObject := parent.(map[string]any)
	if isObject && value == nil {
		delete(in, last)
		s.FillDefaults(payload)
		return s.Validate(payload)
	}
	other, ok := otherType(value)
	if !ok || f.Keyword != "type" {
		return before
	}
	replace(parent, last, other)
	after := s.Validate(payload)
	if slices.ContainsFunc(after, func(g Violation) bool { return g.Path == f.Path }) {
		replace(parent, last, value)
		return before
	}
	return after
}

func replace(in any, name string, value any) {
	switch in := in.(type) {
	case map[string]any:
		in[name] = value
	case []any:
		i, _ := strconv.Atoi(name)
		in[i] = value
	}
}

// Resolve returns the target of a reference inside of a schema, or nil.
func Resolve(root any, ref string) any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	v, _ := Descend(root, parts)
	return v
}
