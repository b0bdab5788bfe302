package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
)

// Limits of a sample.
const (
	maxSampleNodes = 200
	maxSampleDepth = 8
	maxSampleItems = 20
	maxSampleText  = 200 // characters
)

// Sample makes an example payload with the properties that a schema requires. The schema may refuse it.
func Sample(schema json.RawMessage) json.RawMessage {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return json.RawMessage("{}")
	}
	s := sampler{root: root, left: maxSampleNodes}
	return core.JSON(s.object(root, 0))
}

type sampler struct {
	root map[string]any
	left int // nodes that may still be made
}

// value makes a value for a property of that name.
func (s *sampler) value(name string, node any, depth int) any {
	n, _ := node.(map[string]any)
	if s.left--; s.left < 0 || depth > maxSampleDepth {
		return nil
	}
	if ref, ok := n["$ref"].(string); ok {
		return s.value(name, Resolve(s.root, ref), depth+1)
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
	t := n["type"]
	if list, ok := t.([]any); ok && len(list) > 0 {
		t = list[0]
	}
	switch t {
	case "integer", "number":
		return sampleNumber(n)
	case "boolean":
		return true
	case "string":
		return sampleText(name, n)
	case "array":
		least, _ := n["minItems"].(float64)
		if least > 0 {
			return slices.Repeat([]any{s.value(name, n["items"], depth+1)}, int(min(least, maxSampleItems)))
		}
		return []any{}
	}
	return s.object(n, depth)
}

func (s *sampler) object(n map[string]any, depth int) map[string]any {
	v := make(map[string]any)
	properties, _ := n["properties"].(map[string]any)
	required, _ := n["required"].([]any)
	for _, name := range required {
		if key, ok := name.(string); ok {
			v[key] = s.value(key, properties[key], depth+1)
		}
	}
	return v
}

func sampleNumber(n map[string]any) float64 {
	least, _ := n["minimum"].(float64)
	above, _ := n["exclusiveMinimum"].(float64)
	v := max(1, least, above+1)
	if most, ok := n["maximum"].(float64); ok {
		v = min(v, most)
	}
	return v
}

// sampleFormats are example texts by format.
var sampleFormats = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z", "email": "ann@example.org",
	"uri": "https://example.org/", "uri-reference": "https://example.org/", "url": "https://example.org/",
	"uuid": "123e4567-e89b-12d3-a456-426614174000",
}

func sampleText(name string, n map[string]any) string {
	format, _ := n["format"].(string)
	if text, ok := sampleFormats[format]; ok {
		return text
	}
	text := "the " + strings.NewReplacer("_", " ", "-", " ").Replace(name)
	if least, ok := n["minLength"].(float64); ok && int(least) > len(text) {
		text = strings.Repeat("x", int(min(least, maxSampleText)))
	}
	if most, ok := n["maxLength"].(float64); ok && most >= 0 && int(most) < len(text) {
		text = strings.Repeat("x", int(most))
	}
	return text
}
