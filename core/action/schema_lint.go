package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"synthbot/core"
)

// Positions of subschemas in a schema.
type position int

const (
	notSchema position = iota
	oneSchema
	listOfSchemas
	mapOfSchemas
)

func positionOf(keyword string) position {
	switch keyword {
	case "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return oneSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return listOfSchemas
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return mapOfSchemas
	}
	return notSchema
}

// sameObject reports whether the keyword's schemas describe the same value as the schema
// around them.
func sameObject(keyword string) bool {
	same := []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}
	return slices.Contains(same, keyword)
}

// subschema is a schema inside of another one.
type subschema struct {
	keyword, name string // name is the key in a map of schemas, else ""
	schema        any
}

// subschemas returns the schemas directly inside of a decoded one, in a fixed order.
func subschemas(node map[string]any) (list []subschema) {
	for _, keyword := range slices.Sorted(maps.Keys(node)) {
		v := node[keyword]
		several, isList := v.([]any)
		switch positionOf(keyword) {
		case oneSchema:
			if !isList { // else items of older drafts
				several = []any{v}
			}
			fallthrough
		case listOfSchemas:
			for _, e := range several {
				list = append(list, subschema{keyword: keyword, schema: e})
			}
		case mapOfSchemas:
			m, _ := v.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(m)) {
				list = append(list, subschema{keyword, name, m[name]})
			}
		}
	}
	return list
}

// lintSchema finds what the library accepts: unknown types, and required fields that no
// property describes. inherited are properties of the same object.
func lintSchema(node any, inherited map[string]any) error {
	if _, ok := node.(bool); ok {
		return nil
	}
	n, ok := node.(map[string]any)
	if !ok {
		return errors.New("a schema must be an object, true or false")
	}
	errs := []error{lintTypes(n["type"])}
	properties, _ := n["properties"].(map[string]any)
	known := inherited
	if properties != nil {
		known = maps.Clone(properties)
		maps.Copy(known, inherited)
	}
	errs = append(errs, lintRequired(n, known))
	for _, sub := range subschemas(n) {
		around := known
		if !sameObject(sub.keyword) {
			around = nil
		}
		errs = append(errs, lintSchema(sub.schema, around))
	}
	return errors.Join(errs...)
}

func lintTypes(v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	known := []any{"object", "array", "string", "number", "integer", "boolean", "null"}
	for _, t := range list {
		_, isName := t.(string)
		if !isName {
			return errors.New("type must be a name or an array of names; use anyOf for schemas")
		}
		if !slices.Contains(known, t) {
			return fmt.Errorf("unknown type %v", t)
		}
	}
	return nil
}

func lintRequired(n map[string]any, known map[string]any) error {
	if n["required"] == nil {
		return nil
	}
	list, ok := n["required"].([]any)
	if !ok {
		return errors.New("required must be an array of names")
	}
	if n["patternProperties"] != nil || n["$ref"] != nil || n["allOf"] != nil {
		return nil // described elsewhere
	}
	for _, name := range list {
		s, _ := name.(string)
		if known[s] == nil {
			return fmt.Errorf("required field %q has no property", name)
		}
	}
	return nil
}

// minify leaves out of a schema what a model does not need to use it. The brief says what
// the action is for, so the description of the root goes, too.
func minify(raw json.RawMessage) json.RawMessage { return shortener{}.schema(raw, true) }

// minifyForPrompt also leaves out what models keep to by themselves: how long texts
// and lists may be, and that there are no other properties. Replies are still checked for
// it, and a correction mentions it. If leaving something out could refuse more, nothing is.
func minifyForPrompt(raw json.RawMessage) json.RawMessage {
	for _, keyword := range []string{`"not"`, `"oneOf"`, `"if"`, `"contains"`, `"unevaluated`, `"$dynamic`} {
		if bytes.Contains(raw, []byte(keyword)) {
			return minify(raw)
		}
	}
	return shortener{forPrompt: true}.schema(raw, true)
}

// shortener leaves keywords out of schemas. The order of the others stays.
type shortener struct{ forPrompt bool }

func (s shortener) schema(raw json.RawMessage, root bool) json.RawMessage {
	return edit(raw, func(m *member) bool {
		switch positionOf(m.key) {
		case oneSchema:
			m.value = s.schema(m.value, false)
		case listOfSchemas:
			var list []json.RawMessage
			if json.Unmarshal(m.value, &list) == nil {
				for i := range list {
					list[i] = s.schema(list[i], false)
				}
				m.value = core.JSON(list)
			}
		case mapOfSchemas:
			named := m.key == "properties"
			m.value = edit(m.value, func(p *member) bool {
				hidden := named && s.forPrompt && isDeprecated(p.value)
				p.value = s.schema(p.value, false)
				return !hidden
			})
		}
		return !s.omits(*m, root)
	})
}

// omits reports whether a keyword, at the root or below, is left out.
func (s shortener) omits(m member, root bool) bool {
	switch m.key {
	case "$schema", "$id", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	case "description":
		return root
	case "required":
		return string(m.value) == "[]"
	case "minLength", "maxLength", "minItems", "maxItems", "uniqueItems":
		return s.forPrompt
	case "additionalProperties":
		return s.forPrompt && string(m.value) == "false"
	}
	return false
}

// isDeprecated reports whether a property is accepted, but not shown to models any more.
func isDeprecated(property json.RawMessage) bool {
	var p struct {
		Deprecated bool `json:"deprecated"`
	}
	return json.Unmarshal(property, &p) == nil && p.Deprecated
}

// edit changes the members of a JSON object and drops those that are not kept. Anything
// else than an object stays as it is.
func edit(raw json.RawMessage, keep func(*member) bool) json.RawMessage {
	o, ok := decodeObject(raw)
	if !ok {
		return raw
	}
	kept := o[:0]
	for _, m := range o {
		if keep(&m) {
			kept = append(kept, m)
		}
	}
	return core.JSON(kept)
}
