package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// sameObject reports whether the keyword's schemas describe the same value as
// the schema that they stand in.
func sameObject(keyword string) bool {
	switch keyword {
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas":
		return true
	}
	return false
}

func children(p position, v any) []any {
	switch p {
	case oneSchema:
		if list, ok := v.([]any); ok {
			return list // items of older drafts
		}
		return []any{v}
	case listOfSchemas:
		list, _ := v.([]any)
		return list
	case mapOfSchemas:
		m, _ := v.(map[string]any)
		list := make([]any, 0, len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			list = append(list, m[k])
		}
		return list
	}
	return nil
}

// lintSchema finds what the library lets pass: unknown types, required fields
// that no property describes.
func lintSchema(node any) error { return lintNode(node, nil) }

func lintNode(node any, inherited map[string]any) error {
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
	for _, keyword := range slices.Sorted(maps.Keys(n)) {
		around := known
		if !sameObject(keyword) {
			around = nil
		}
		for _, child := range children(positionOf(keyword), n[keyword]) {
			errs = append(errs, lintNode(child, around))
		}
	}
	return errors.Join(errs...)
}

func lintTypes(v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	for _, t := range list {
		switch t {
		case "object", "array", "string", "number", "integer", "boolean", "null":
		default:
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
		if s, _ := name.(string); known[s] == nil {
			return fmt.Errorf("required field %q has no property", name)
		}
	}
	return nil
}

// minify leaves out of a schema what a model does not need to use it: the
// brief says what the action is for, so the root's own words go too. The order
// of keys stays.
func minify(raw json.RawMessage) json.RawMessage {
	return shorten(raw, oneSchema, form{needless, false})
}

// show leaves out besides what no model breaks unless it errs anyway: how long
// texts and lists may be, and that there is nothing else. The reply is held to
// it all the same, and a correction tells it. What validates still does; where
// less said could mean more refused, nothing is left out.
func show(raw json.RawMessage) json.RawMessage {
	for _, keyword := range []string{`"not"`, `"oneOf"`, `"if"`, `"contains"`, `"unevaluated`, `"$dynamic`} {
		if bytes.Contains(raw, []byte(keyword)) {
			return minify(raw)
		}
	}
	return shorten(raw, oneSchema, form{unspoken, true})
}

// visible are the properties that a model is told of.
func visible(properties json.RawMessage) json.RawMessage {
	o, ok := ordered(properties)
	if !ok {
		return properties
	}
	return slices.DeleteFunc(o, func(m member) bool { return hidden(m.value) }).encode()
}

// hidden reports whether a property is taken, but no model is told of it any more.
func hidden(property json.RawMessage) bool {
	var p struct {
		Deprecated bool `json:"deprecated"`
	}
	return json.Unmarshal(property, &p) == nil && p.Deprecated
}

// needless reports whether a keyword is of no use to a model.
func needless(m member, root bool) bool {
	switch m.key {
	case "$schema", "$id", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	case "description":
		return root
	case "required":
		return string(m.value) == "[]"
	}
	return false
}

// unspoken reports whether a keyword need not stand in every prompt.
func unspoken(m member, root bool) bool {
	switch m.key {
	case "minLength", "maxLength", "minItems", "maxItems", "uniqueItems":
		return true
	case "additionalProperties":
		return string(m.value) == "false"
	}
	return needless(m, root)
}

// form is what a schema is shortened to.
type form struct {
	out  func(m member, root bool) bool // the keyword is left out, of the root or below
	hide bool                           // properties that are deprecated are
}

func shorten(raw json.RawMessage, p position, f form) json.RawMessage {
	return shortenAt(raw, p, f, true)
}

func shortenAt(raw json.RawMessage, p position, f form, root bool) json.RawMessage {
	switch p {
	case oneSchema:
		return shortenObject(raw, f, root)
	case listOfSchemas:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return raw
		}
		for i := range list {
			list[i] = shortenAt(list[i], oneSchema, f, false)
		}
		return encode(list)
	case mapOfSchemas:
		o, ok := ordered(raw)
		for i := range o {
			o[i].value = shortenAt(o[i].value, oneSchema, f, false)
		}
		if !ok {
			return raw
		}
		return o.encode()
	}
	return raw
}

func shortenObject(raw json.RawMessage, f form, root bool) json.RawMessage {
	o, ok := ordered(raw)
	if !ok {
		return raw
	}
	o = slices.DeleteFunc(o, func(m member) bool { return f.out(m, root) })
	for i := range o {
		if positionOf(o[i].key) != notSchema {
			if f.hide && o[i].key == "properties" {
				o[i].value = visible(o[i].value)
			}
			o[i].value = shortenAt(o[i].value, positionOf(o[i].key), f, false)
		}
	}
	return o.encode()
}
