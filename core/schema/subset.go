package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"synthbot/core"
)

// maxGrammarItems bounds minItems and maxItems: larger numbers make an engine's grammar too big.
const maxGrammarItems = 64

// Loose reduces a schema to the keywords that engines support in grammars. base is the JSON pointer to the place where
// the result will be, which references begin with.
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
		case "type", "enum", "const", "required", "minimum", "maximum", "items", "properties", "$defs", "definitions":
		case "minItems", "maxItems":
			if json.Unmarshal(m.Value, &items) != nil || items > maxGrammarItems {
				continue
			}
		case "format":
			if !slices.Contains([]string{`"date"`, `"time"`, `"date-time"`}, string(m.Value)) {
				continue
			}
		case "$ref":
			var ref string
			_ = json.Unmarshal(m.Value, &ref)
			m.Value = core.JSON(base + strings.TrimPrefix(ref, "#"))
		case "anyOf", "oneOf":
			if hasProperties {
				continue // engines would ignore the properties
			}
			m.Key = "anyOf"
		default:
			continue
		}
		m.eachSchema(func(inner json.RawMessage) json.RawMessage { return Loose(inner, base) })
		to = append(to, m)
	}
	if hasProperties {
		to = to.With("additionalProperties", string(from.Find("additionalProperties")) == "true")
	}
	return core.JSON(to)
}

// Strict converts a schema to the subset that OpenAI guarantees: every property is required, and
// optional ones may be null. ok is false if the subset cannot express the schema.
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

// ClosedObject returns the schema of an object with no other properties than these. If strict, all
// are required, and the optional ones may be null.
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

// Minify removes the keywords of a schema that a model does not need. It removes the root's
// description, too, because the action's brief says the same.
func Minify(raw json.RawMessage) json.RawMessage { return shortener{}.schema(raw, true) }

// MinifyForPrompt also removes rules that models rarely break: the length of texts and lists, and that other properties
// are forbidden. Replies are still checked against them, and a correction mentions them. If removing them could make a
// schema stricter, it only minifies. Invalid UTF-8, escaped or not, becomes U+FFFD.
func MinifyForPrompt(raw json.RawMessage) json.RawMessage {
	sound, err := jsontext.AppendFormat(nil, raw, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err == nil {
		raw = sound
	}
	for _, keyword := range []string{`"not"`, `"oneOf"`, `"if"`, `"contains"`, `"unevaluated`, `"$dynamic`} {
		if bytes.Contains(raw, []byte(keyword)) {
			return Minify(raw)
		}
	}
	return shortener{forPrompt: true}.schema(raw, true)
}

// shortener removes keywords from schemas. The others keep their order.
type shortener struct{ forPrompt bool }

func (s shortener) schema(raw json.RawMessage, root bool) json.RawMessage {
	return edit(raw, func(m *Member) bool {
		if s.forPrompt && m.Key == "properties" && bytes.Contains(m.Value, []byte(`"deprecated"`)) {
			m.Value = edit(m.Value, func(p *Member) bool { // deprecated properties are accepted, but not shown
				var it struct{ Deprecated bool }
				return json.Unmarshal(p.Value, &it) != nil || !it.Deprecated
			})
		}
		m.eachSchema(func(inner json.RawMessage) json.RawMessage { return s.schema(inner, false) })
		return !s.omits(*m, root)
	})
}

// eachSchema replaces the schemas directly in a keyword's value.
func (m *Member) eachSchema(replace func(json.RawMessage) json.RawMessage) {
	var list []json.RawMessage
	switch positionOf(m.Key) {
	case oneSchema:
		m.Value = replace(m.Value)
	case listOfSchemas:
		if json.Unmarshal(m.Value, &list) != nil {
			return
		}
		for i := range list {
			list[i] = replace(list[i])
		}
		m.Value = core.JSON(list)
	case mapOfSchemas:
		m.Value = edit(m.Value, func(p *Member) bool {
			p.Value = replace(p.Value)
			return true
		})
	}
}

// omits reports whether a keyword is removed. root says that it is at the root.
func (s shortener) omits(m Member, root bool) bool {
	switch m.Key {
	case "$schema", "$id", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	case "description":
		return root
	case "required":
		return string(m.Value) == "[]"
	case "minLength", "maxLength", "minItems", "maxItems", "uniqueItems":
		return s.forPrompt
	case "additionalProperties":
		return s.forPrompt && string(m.Value) == "false"
	}
	return false
}

// edit removes the members of a JSON object for which keep, which may change them, returns false.
func edit(raw json.RawMessage, keep func(*Member) bool) json.RawMessage {
	o, ok := DecodeObject(raw)
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
