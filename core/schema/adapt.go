package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"synthbot/core"
)

// Adapt converts a schema from elsewhere to one that the catalogue accepts, as far as its meaning is certain. It
// understands forms of older drafts and other dialects, and removes invalid defaults and patterns that Go cannot check.
// The notes say what it removed. It returns a schema that it cannot read unchanged.
func Adapt(raw json.RawMessage) (adapted json.RawMessage, notes []string) {
	if len(raw) > maxBytes || Nesting(raw) > maxDepth {
		return raw, nil
	}
	root, err := Decode(raw)
	if err != nil {
		return raw, nil
	}
	a := &adapter{root: root}
	a.node(root, "")
	if !a.changed {
		return raw, nil
	}
	return core.JSON(root), a.notes
}

// adapter changes a decoded schema in place.
type adapter struct {
	root    any
	changed bool
	notes   []string
}

func (a *adapter) note(path, format string, args ...any) {
	const most = 20
	a.changed = true
	if len(a.notes) < most {
		a.notes = append(a.notes, strings.TrimPrefix(path+": ", ": ")+fmt.Sprintf(format, args...))
	}
}

// node adapts a schema and its subschemas. path names it in notes.
func (a *adapter) node(v any, path string) {
	n, _ := v.(map[string]any) // true and false stay unchanged
	a.types(n)
	a.bounds(n, path)
	a.patterns(n, path)
	a.required(n)
	for _, sub := range subschemas(n) {
		a.node(sub.schema, strings.Trim(path+"."+sub.name, "."))
	}
	a.defaults(n, path)
}

// TypeName returns the JSON Schema type for a type's name in some programming language. It
// returns "" for "any". ok is false if the name is unknown.
func TypeName(name string) (t string, ok bool) {
	t, ok = typeNames[strings.ToLower(name)]
	return t, ok
}

// typeNames maps names of types in JSON Schema and programming languages to JSON Schema types. "" is any type.
var typeNames = map[string]string{
	"object": "object", "dict": "object", "array": "array", "list": "array", "tuple": "array",
	"string": "string", "str": "string", "text": "string", "boolean": "boolean", "bool": "boolean",
	"number": "number", "float": "number", "double": "number",
	"integer": "integer", "int": "integer", "long": "integer", "any": "",
}

// types converts names of types in other languages.
func (a *adapter) types(n map[string]any) {
	given, ok := n["type"]
	if !ok {
		return
	}
	list, several := given.([]any)
	if !several {
		list = []any{given}
	}
	read := make([]any, 0, len(list)+1)
	for _, t := range list {
		name, text := t.(string)
		other, known := TypeName(name)
		switch {
		case t == nil && several:
			read = append(read, "null")
		case t == nil, known && other == "":
			delete(n, "type")
			a.changed = true
			return
		case known:
			read = append(read, other)
		case text:
			read = append(read, strings.ToLower(name))
		default:
			return // it is refused later
		}
	}
	if n["nullable"] == true && !slices.Contains(read, any("null")) {
		read, several = append(read, "null"), true
		if values, ok := n["enum"].([]any); ok && !slices.Contains(values, nil) {
			n["enum"] = append(values, nil)
		}
	}
	if slices.Equal(read, list) {
		return
	}
	a.changed = true
	n["type"] = read
	if !several {
		n["type"] = read[0]
	}
}

// bounds converts bounds of draft 4, where exclusiveMinimum is true or false, and removes those that are not numbers.
func (a *adapter) bounds(n map[string]any, path string) {
	for _, end := range []string{"minimum", "maximum"} {
		exclusive := "exclusive" + strings.ToUpper(end[:1]) + end[1:]
		is, draft4 := n[exclusive].(bool)
		if !draft4 {
			continue
		}
		delete(n, exclusive)
		if limit, ok := n[end]; ok && is {
			n[exclusive] = limit
			delete(n, end)
		}
		a.changed = true
	}
	for _, keyword := range []string{
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
	} {
		v, ok := n[keyword]
		_, number := v.(json.Number)
		if !ok || number {
			continue
		}
		delete(n, keyword)
		a.note(path, "%s is not a number, and is not checked", keyword)
	}
}

// patterns removes patterns that Go's regular expressions cannot express.
func (a *adapter) patterns(n map[string]any, path string) {
	if p, ok := n["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			delete(n, "pattern")
			a.note(path, "the pattern %.100q is not checked", p)
		}
	}
	named, _ := n["patternProperties"].(map[string]any)
	for p := range named {
		if _, err := regexp.Compile(p); err == nil {
			continue
		}
		delete(named, p)
		if n["additionalProperties"] == false {
			delete(n, "additionalProperties")
		}
		a.note(path, "properties that match %.100q are not checked", p)
	}
}

// required converts draft 3, where each property says whether it is required.
func (a *adapter) required(n map[string]any) {
	properties, _ := n["properties"].(map[string]any)
	list, given := n["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, _ := properties[name].(map[string]any)
		is, draft3 := p["required"].(bool)
		if !draft3 {
			continue
		}
		delete(p, "required")
		a.changed = true
		if is && (given || n["required"] == nil) && !slices.Contains(list, any(name)) {
			list = append(list, name)
			n["required"] = list
		}
	}
}

// defaults removes a default that its own schema refuses.
func (a *adapter) defaults(n map[string]any, path string) {
	value, ok := n["default"]
	if !ok {
		return
	}
	whole := maps.Clone(n)
	root, _ := a.root.(map[string]any)
	for _, shared := range []string{"$defs", "definitions"} {
		if defs, ok := root[shared]; ok {
			whole[shared] = defs
		}
	}
	s, err := Compile(core.JSON(whole))
	if err != nil || len(s.Validate(value)) == 0 {
		return
	}
	delete(n, "default")
	if value == nil { // null means no default
		a.changed = true
		return
	}
	a.note(path, "the default %.100s is refused by the schema itself, and is not used", core.JSON(value))
}

// position is where in a keyword's value subschemas are.
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

// sameObject lists keywords whose schemas describe the same value as the schema around them.
var sameObject = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// subschema is a schema directly inside of another one.
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
			if !isList { // otherwise items of an older draft
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

// Each calls visit for all subschemas of a decoded schema, then for the schema itself.
func Each(node any, visit func(node map[string]any)) {
	n, ok := node.(map[string]any)
	if !ok {
		return
	}
	for _, sub := range subschemas(n) {
		Each(sub.schema, visit)
	}
	visit(n)
}

// lintSchema finds faults that the library accepts: unknown types, and required fields that are not
// properties. inherited holds properties of the same object from the schemas around node.
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
