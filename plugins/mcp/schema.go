package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"synthbot/core/txt"
)

// Bounds of a schema, beyond those of the catalogue.
const (
	wordySchema = 6 << 10 // bytes; over it the descriptions are given up
	maxDepth    = 64
)

// errSchema is what a schema that is no object is refused with.
var errSchema = errors.New("its schema describes no object")

// schemaOf is a tool's schema as the catalogue takes it and prompts can bear it:
// descriptions cut, and left out where the whole is long; titled as what a
// person is asked to confirm. raw is what the SDK decoded.
func schemaOf(raw any, title string, defaults bool) (json.RawMessage, error) {
	root, ok := raw.(map[string]any)
	if !ok || root["type"] != nil && root["type"] != "object" {
		return nil, errSchema
	}
	for _, most := range []int{maxHint, 0} {
		t := trimmer{hint: most, defaults: defaults}
		s, ok := t.schema(root, 0).(map[string]any)
		if !ok {
			return nil, errSchema
		}
		s["type"], s["title"] = "object", title
		delete(s, "description")
		text, err := json.Marshal(s)
		if err != nil || len(text) <= wordySchema || most == 0 {
			return text, err
		}
	}
	return nil, errSchema
}

// trimmer copies a schema without what a model does not need.
type trimmer struct {
	hint     int  // bytes that a description may have
	defaults bool // kept
}

// schema copies what stands where a schema is expected.
func (t trimmer) schema(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		return v // the catalogue refuses what is too deep
	}
	c := make(map[string]any, len(m))
	for key, value := range m {
		switch key {
		case "$schema", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly": // of these, table names what has no words
		case "default":
			if t.defaults {
				c[key] = value
			}
		case "description":
			if text, _ := value.(string); text != "" && t.hint > 0 {
				c[key] = txt.ClipBytes(line(text), t.hint)
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			c[key] = t.table(value, depth)
		case "allOf", "anyOf", "oneOf", "prefixItems", "items":
			c[key] = t.list(value, depth)
		case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
			c[key] = t.schema(value, depth+1)
		default:
			c[key] = value
		}
	}
	return c
}

// table copies schemas by name.
func (t trimmer) table(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	c := make(map[string]any, len(m))
	for name, s := range m {
		c[name] = t.schema(s, depth+1)
		if p, ok := c[name].(map[string]any); ok && p["description"] == nil && depth < maxDepth {
			p["title"] = spaced(name) // prompts do without
		}
	}
	return c
}

// spaced is a name as words.
func spaced(name string) string { return strings.NewReplacer("_", " ", "-", " ").Replace(name) }

// list copies one schema or several.
func (t trimmer) list(v any, depth int) any {
	list, ok := v.([]any)
	if !ok {
		return t.schema(v, depth+1)
	}
	c := make([]any, len(list))
	for i, s := range list {
		c[i] = t.schema(s, depth+1)
	}
	return c
}

// sample is a payload as the schema wants it, for an example; nil where none can
// be made. Whether it is right the catalogue checks.
func sample(schema json.RawMessage) json.RawMessage {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	payload, ok := exemplar(root, "", 0).(map[string]any)
	if !ok {
		return nil
	}
	text, err := json.Marshal(payload)
	if err != nil || len(text) > 1000 {
		return nil
	}
	return text
}

// exemplar is a value that a simple schema accepts.
func exemplar(s map[string]any, name string, depth int) any {
	if v, ok := given(s); ok {
		return v
	}
	if depth > 4 {
		return nil
	}
	switch s["type"] {
	case "object":
		return exemplars(s, depth)
	case "array":
		items, _ := s["items"].(map[string]any)
		if least, _ := s["minItems"].(float64); least < 1 || items == nil {
			return []any{}
		}
		return []any{exemplar(items, name, depth+1)}
	case "integer", "number":
		if least, ok := s["minimum"].(float64); ok {
			return least
		}
		return 1
	case "boolean":
		return true
	case "string":
		return word(s, name)
	}
	return nil
}

// given is a value that the schema itself names.
func given(s map[string]any) (any, bool) {
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok {
			return v, true
		}
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[0], true
	}
	return nil, false
}

// exemplars fills the required properties of an object.
func exemplars(s map[string]any, depth int) any {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	payload := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if p, ok := properties[name].(map[string]any); ok && slices.Contains(required, any(name)) {
			payload[name] = exemplar(p, name, depth+1)
		}
	}
	return payload
}

// word is a text that a property of that name could hold.
func word(s map[string]any, name string) string {
	switch s["format"] {
	case "uri", "url":
		return "https://example.org/"
	case "date":
		return "2026-11-20"
	case "date-time":
		return "2026-11-20T11:30:00Z"
	case "email":
		return "ann@example.org"
	}
	return "the " + spaced(name)
}
