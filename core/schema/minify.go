package schema

import (
	"bytes"
	"encoding/json"

	"synthbot/core"
)

// Minify leaves out of a schema what a model does not need to use it. The brief says what
// the action is for, so the description of the root goes, too.
func Minify(raw json.RawMessage) json.RawMessage { return shortener{}.schema(raw, true) }

// MinifyForPrompt also leaves out what models keep to by themselves: how long texts
// and lists may be, and that there are no other properties. Replies are still checked for
// it, and a correction mentions it. If leaving something out could refuse more, nothing is.
func MinifyForPrompt(raw json.RawMessage) json.RawMessage {
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
		switch positionOf(m.Key) {
		case oneSchema:
			m.Value = s.schema(m.Value, false)
		case listOfSchemas:
			var list []json.RawMessage
			if json.Unmarshal(m.Value, &list) == nil {
				for i := range list {
					list[i] = s.schema(list[i], false)
				}
				m.Value = core.JSON(list)
			}
		case mapOfSchemas:
			named := m.Key == "properties"
			m.Value = edit(m.Value, func(p *Member) bool {
				hidden := named && s.forPrompt && isDeprecated(p.Value)
				p.Value = s.schema(p.Value, false)
				return !hidden
			})
		}
		return !s.omits(*m, root)
	})
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

// isDeprecated reports whether a property is accepted, but not shown to models any more.
func isDeprecated(property json.RawMessage) bool {
	var p struct {
		Deprecated bool `json:"deprecated"`
	}
	return json.Unmarshal(property, &p) == nil && p.Deprecated
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
