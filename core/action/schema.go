package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"

	"synthbot/core"
)

// Bounds of a schema; beyond them compiling takes seconds and gigabytes.
const (
	maxSchema      = 64 << 10
	maxSchemaDepth = 64
)

// schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type schema struct {
	compiled *jsonschema.Schema
	root     any  // as decoded
	defaults bool // there are defaults to fill in
}

// compile reads a schema. A reference that cannot be resolved inside of the schema is an
// error: the library would accept any value there.
func compile(raw json.RawMessage) (*schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("schema: %d bytes, at most %d are allowed", len(raw), maxSchema)
	}
	if Nesting(raw) > maxSchemaDepth {
		return nil, fmt.Errorf("schema: more than %d levels deep", maxSchemaDepth)
	}
	root, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := lintSchema(root, nil); err != nil {
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
		r := recover()
		if r != nil {
			s, err = nil, fmt.Errorf("cannot be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	clear(c.Loaders)
	c.SetAssertFormat(true)
	if s, err = c.Compile(raw); err != nil {
		return nil, err
	}
	refs := s.UnresolvedReferenceURIs()
	if len(refs) > 0 {
		slices.Sort(refs)
		return nil, fmt.Errorf("$ref %s leads nowhere; only references inside of the schema are followed",
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

// violation is one thing that a schema refuses. path is a JSON pointer without escapes, as
// the library writes it.
type violation struct{ path, keyword, text string }

// maxViolations bounds how much of what is wrong with a payload is reported at once.
const maxViolations = 8

// check returns what is wrong with a decoded value.
func (s *schema) check(v any) []violation {
	var result *jsonschema.EvaluationResult
	if m, ok := v.(map[string]any); ok {
		result = s.compiled.ValidateMap(m)
	} else {
		result = s.compiled.ValidateJSON(core.JSON(v))
	}
	if result.IsValid() {
		return nil
	}
	return explain(result.DetailedErrors(), v)
}

// summaries are keywords whose errors only repeat that some part is wrong.
var summaries = []string{
	"properties", "items", "prefixItems", "$ref", "$dynamicRef", "allOf", "additionalProperties", "patternProperties",
	"then", "else", "dependentSchemas",
}

// explain sorts the library's errors. It leaves out those that say nothing new: about a
// part that another error names better, or that does not exist.
func explain(errs map[string]string, v any) []violation {
	var found, repeated []violation
	for _, key := range slices.Sorted(maps.Keys(errs)) {
		i := strings.LastIndexByte(key, '/')
		path, keyword := key[:max(i, 0)], key[i+1:]
		one := violation{path, keyword, wording(keyword, errs[key])}
		_, exists := descend(v, pointed(path))
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

// pointed returns the keys and indexes of a violation's path.
func pointed(pointer string) []string {
	if pointer == "" {
		return nil
	}
	return strings.Split(pointer[1:], "/")
}

// otherType returns a number as a string, or a string that holds a number or a boolean as
// that.
func otherType(v any) (other any, ok bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case string:
		other, _ := decode(json.RawMessage(v))
		number, isNumber := other.(json.Number)
		_, isBool := other.(bool)
		if isNumber {
			_, isNumber = rational(number)
		}
		return other, (isNumber || isBool) && strings.TrimSpace(v) == v
	}
	return nil, false
}

// dotted writes the path of a violation the way faults name fields.
func dotted(pointer string) string {
	var b strings.Builder
	for _, part := range pointed(pointer) {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
		} else if part != "" {
			b.WriteString("." + part)
		}
	}
	return b.String()
}

// maxFill bounds the work of fill: schemas that refer to themselves would have no end.
const maxFill = 10_000

// fill adds the schema's defaults to a decoded value.
func (s *schema) fill(v any) {
	if s.defaults {
		left := maxFill
		s.fillFrom(s.root, v, 0, &left)
	}
}

func (s *schema) fillFrom(node, v any, depth int, left *int) {
	n, _ := node.(map[string]any)
	*left--
	if *left < 0 || depth > maxSchemaDepth {
		return
	}
	if ref, ok := n["$ref"].(string); ok {
		s.fillFrom(Resolve(s.root, ref), v, depth+1, left)
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
				v[name] = mapLeaves(value, func(leaf any) any { return leaf })
			}
			s.fillFrom(p, v[name], depth+1, left)
		}
	case []any:
		for _, e := range v {
			s.fillFrom(n["items"], e, depth+1, left)
		}
	}
}

// maxHops is how many references lead to a default at most.
const maxHops = 8

func (s *schema) defaultOf(node any) (v any, ok bool) {
	for range maxHops + 1 {
		n, _ := node.(map[string]any)
		if v, ok := n["default"]; ok {
			return v, true
		}
		ref, ok := n["$ref"].(string)
		if !ok {
			return nil, false
		}
		node = Resolve(s.root, ref)
	}
	return nil, false
}
