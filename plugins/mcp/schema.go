package mcp

import (
	"encoding/json"
	"errors"
	"strings"

	"synthbot/core/txt"
)

// Bounds of a schema, beyond those of the catalogue.
const (
	wordySchema = 6 << 10 // bytes; over it the descriptions are given up
	maxDepth    = 64
	maxSample   = 1000 // bytes of an example
)

// errSchema refuses a schema that describes something else than an object.
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

// schema copies a schema.
func (t trimmer) schema(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		return v // the catalogue refuses what is too deep
	}
	c := make(map[string]any, len(m))
	for key, value := range m {
		switch key {
		case "$schema", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly": // left out
		case "default":
			if t.defaults {
				c[key] = value
			}
		case "description":
			text, _ := value.(string)
			if text != "" && t.hint > 0 {
				c[key] = txt.ClipBytes(line(text), t.hint)
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			c[key] = t.table(value, depth)
		case "allOf", "anyOf", "oneOf", "prefixItems", "items":
			c[key] = t.list(value, depth)
		case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames", "unevaluatedItems",
			"unevaluatedProperties":
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
			p["title"] = strings.NewReplacer("_", " ", "-", " ").Replace(name) // prompts do without
		}
	}
	return c
}

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
