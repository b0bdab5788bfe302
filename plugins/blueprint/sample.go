package blueprint

import (
	"encoding/json"
	"slices"
	"strings"
)

// sample makes a payload of what a schema requires; whether the schema takes it
// must be tried.
func sample(schema json.RawMessage) json.RawMessage {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return json.RawMessage("{}")
	}
	s := sampler{root: root, left: 200}
	if v, ok := s.object(root, 0).(map[string]any); ok {
		return encode(v)
	}
	return json.RawMessage("{}")
}

type sampler struct {
	root map[string]any
	left int
}

// of makes a value of a schema.
func (s *sampler) of(node any, depth int) any {
	n, _ := node.(map[string]any)
	if s.left--; s.left < 0 || depth > 8 {
		return nil
	}
	if ref, ok := n["$ref"].(string); ok {
		return s.of(follow(s.root, ref), depth+1)
	}
	for _, key := range []string{"default", "const"} {
		if v, ok := n[key]; ok {
			return v
		}
	}
	for _, key := range []string{"enum", "examples"} {
		if list, ok := n[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	return s.byType(n, depth)
}

func (s *sampler) byType(n map[string]any, depth int) any {
	t, _ := n["type"].(string)
	if list, ok := n["type"].([]any); ok && len(list) > 0 {
		t, _ = list[0].(string)
	}
	switch t {
	case "integer", "number":
		return quantity(n)
	case "boolean":
		return true
	case "string":
		return word(n)
	case "array":
		if least, _ := n["minItems"].(float64); least > 0 {
			return slices.Repeat([]any{s.of(n["items"], depth+1)}, int(min(least, 20)))
		}
		return []any{}
	}
	return s.object(n, depth)
}

func (s *sampler) object(n map[string]any, depth int) any {
	v := make(map[string]any)
	properties, _ := n["properties"].(map[string]any)
	required, _ := n["required"].([]any)
	for _, name := range required {
		if key, ok := name.(string); ok {
			v[key] = s.of(properties[key], depth+1)
		}
	}
	return v
}

func quantity(n map[string]any) any {
	v := 1.0
	if least, ok := n["minimum"].(float64); ok {
		v = max(v, least)
	}
	if least, ok := n["exclusiveMinimum"].(float64); ok {
		v = max(v, least+1)
	}
	if most, ok := n["maximum"].(float64); ok {
		v = min(v, most)
	}
	return v
}

func word(n map[string]any) any {
	switch n["format"] {
	case "date":
		return "2026-01-31"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "time":
		return "12:00:00Z"
	case "email":
		return "ann@example.org"
	case "uri", "uri-reference":
		return "https://example.org/"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	}
	text := "text"
	if least, ok := n["minLength"].(float64); ok && least > 4 {
		text = strings.Repeat("x", int(min(least, 200)))
	}
	if most, ok := n["maxLength"].(float64); ok && most >= 0 && int(most) < len(text) {
		text = text[:int(most)]
	}
	return text
}

// follow finds what a reference inside of a schema means; nil where it is nothing.
func follow(root map[string]any, ref string) any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if part == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
}
