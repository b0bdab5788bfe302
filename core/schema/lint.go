package schema

import (
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

// sameObject are keywords whose schemas describe the same value as the schema around them.
var sameObject = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

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
		if !slices.Contains(sameObject, sub.keyword) {
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
	for _, t := range list {
		name, isName := t.(string)
		if !isName {
			return errors.New("type must be a name or an array of names; use anyOf for schemas")
		}
		if !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, name) {
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
