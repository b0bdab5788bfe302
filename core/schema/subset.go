package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
		case "items", "properties", "$defs", "definitions":
		case "$ref":
			var ref string
			_ = json.Unmarshal(m.Value, &ref)
			m.Value = core.JSON(base + strings.TrimPrefix(ref, "#"))
		case "anyOf", "oneOf":
			if hasProperties {
				continue // engines would look at the alternatives alone
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

// Minify leaves out of a schema what a model does not need to use it. The brief says what
// the action is for, so the description of the root goes, too.
func Minify(raw json.RawMessage) json.RawMessage { return shortener{}.schema(raw, true) }

// MinifyForPrompt also leaves out what models keep to by themselves: how long texts
// and lists may be, and that there are no other properties. Replies are still checked for
// it, and a correction mentions it. If leaving something out could refuse more, nothing is.
// What is not UTF-8, escaped or not, is U+FFFD.
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

// shortener leaves keywords out of schemas. The order of the others stays.
type shortener struct{ forPrompt bool }

func (s shortener) schema(raw json.RawMessage, root bool) json.RawMessage {
	return edit(raw, func(m *Member) bool {
		if s.forPrompt && m.Key == "properties" && bytes.Contains(m.Value, []byte(`"deprecated"`)) {
			m.Value = edit(m.Value, func(p *Member) bool { // what is still accepted, but not shown any more
				var it struct{ Deprecated bool }
				return json.Unmarshal(p.Value, &it) != nil || !it.Deprecated
			})
		}
		m.eachSchema(func(inner json.RawMessage) json.RawMessage { return s.schema(inner, false) })
		return !s.omits(*m, root)
	})
}

// eachSchema replaces the schemas that are directly inside of a keyword's value.
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

// omits reports whether a keyword, at the root or below, is left out.
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

// edit changes the members of a JSON object and drops those that are not kept. Anything
// else than an object stays as it is.
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
