package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
)

// maxGrammarItems bounds minItems and maxItems: larger numbers make grammars explode.
const maxGrammarItems = 64

// Loose keeps of a schema what engines make grammars of. base is where the result goes.
func Loose(raw json.RawMessage, base string) json.RawMessage {
	from, ok := DecodeObject(raw)
	if !ok {
		return raw // true or false
	}
	hasProperties := from.Find("properties") != nil
	to := Object{}
	for _, m := range from {
		var items int
		switch m.Key {
		case "type", "enum", "const", "required", "minimum", "maximum":
		case "minItems", "maxItems":
			if json.Unmarshal(m.Value, &items) != nil || items > maxGrammarItems {
				continue
			}
		case "format":
			if !slices.Contains([]string{`"date"`, `"time"`, `"date-time"`}, string(m.Value)) {
				continue
			}
		case "items":
			m.Value = Loose(m.Value, base)
		case "properties", "$defs", "definitions":
			m.Value = edit(m.Value, func(p *Member) bool {
				p.Value = Loose(p.Value, base)
				return true
			})
		case "$ref":
			var ref string
			_ = json.Unmarshal(m.Value, &ref)
			m.Value = core.JSON(base + strings.TrimPrefix(ref, "#"))
		case "anyOf", "oneOf":
			var list []json.RawMessage
			if hasProperties || json.Unmarshal(m.Value, &list) != nil {
				continue // engines would look at the alternatives alone
			}
			for i := range list {
				list[i] = Loose(list[i], base)
			}
			m.Key, m.Value = "anyOf", core.JSON(list)
		default:
			continue
		}
		to = append(to, m)
	}
	if hasProperties {
		to = to.With("additionalProperties", string(from.Find("additionalProperties")) == "true")
	}
	return core.JSON(to)
}

// Strict writes a schema in the subset that OpenAI guarantees: every property is required, and
// what may be left out may be null. ok is false if the subset cannot express the schema.
func Strict(raw json.RawMessage) (to Object, ok bool) {
	from, ok := DecodeObject(raw)
	if !ok {
		return nil, false
	}
	enum := from.Find("enum")
	if enum != nil {
		return Object{}.With("enum", enum), true
	}
	var kinds []string
	if json.Unmarshal(from.Find("type"), &kinds) == nil && kinds != nil {
		list := make([]any, len(kinds))
		for i, kind := range kinds {
			list[i], ok = Strict(core.JSON(slices.Clone(from).With("type", kind)))
			if !ok {
				return nil, false
			}
		}
		return Object{}.With("anyOf", list), true
	}
	var kind string
	_ = json.Unmarshal(from.Find("type"), &kind)
	properties, hasProperties := DecodeObject(from.Find("properties"))
	switch {
	case slices.Contains([]string{"string", "number", "integer", "boolean", "null"}, kind):
		return OfType(kind), true
	case kind == "array":
		items, ok := Strict(from.Find("items"))
		return OfType("array").With("items", items), ok
	case kind != "" && kind != "object", !hasProperties, string(from.Find("additionalProperties")) == "true":
		return nil, false
	}
	strict := Object{}
	for _, m := range properties {
		p, ok := Strict(m.Value)
		if !ok {
			return nil, false
		}
		strict = strict.With(m.Key, p)
	}
	var required []string
	_ = json.Unmarshal(from.Find("required"), &required)
	return ClosedObject(strict, true, required...), true
}

// ClosedObject is the schema of an object that has no other properties. In the strict
// subset those that are not required may be null.
func ClosedObject(properties Object, strict bool, required ...string) Object {
	if strict {
		all := make([]string, len(properties))
		for i, p := range properties {
			all[i] = p.Key
			if !slices.Contains(required, p.Key) {
				properties[i].Value = core.JSON(Object{}.With("anyOf", []any{p.Value, OfType("null")}))
			}
		}
		required = all
	}
	o := OfType("object").With("properties", properties)
	if len(required) > 0 {
		o = o.With("required", required)
	}
	return o.With("additionalProperties", false)
}
