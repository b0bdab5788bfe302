package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

// legacy is the older form of a definition. Fields are named in a list, or in an
// object that says more about each.
type legacy struct {
	Description  string          `json:"description"`
	Brief        string          `json:"brief"`
	Required     json.RawMessage `json:"required_fields"`
	Optional     json.RawMessage `json:"optional_fields"`
	Instructions json.RawMessage `json:"instructions"`
	Examples     json.RawMessage `json:"examples"`
}

// modern returns the action in today's form: a Schema that holds an older
// definition is converted.
func modern(a core.Action) (core.Action, error) {
	o, _ := ordered(a.Schema)
	old := slices.ContainsFunc(o, func(m member) bool { return m.key == "required_fields" || m.key == "optional_fields" })
	if !old {
		return a, nil
	}
	return fromLegacy(a)
}

// fromLegacy converts a definition in the older form {description, required_fields,
// optional_fields, instructions, examples}. Types are kept where the definition tells
// them, and else read off its examples.
func fromLegacy(a core.Action) (core.Action, error) {
	var l legacy
	if err := json.Unmarshal(a.Schema, &l); err != nil {
		return a, fmt.Errorf("legacy form: %w", err)
	}
	c := converter{hints: make(map[string]json.RawMessage)}
	a.Examples = c.third(&l, a.Examples)
	c.fields(l.Required, true)
	c.fields(l.Optional, false)
	a.Schema = c.schema()
	if a.Brief == "" {
		a.Brief = firstLine(l.Brief, l.Description)
	}
	return a, nil
}

// converter gathers what is known of the fields.
type converter struct {
	properties object
	required   []string
	hints      map[string]json.RawMessage // schemas of fields, from the instructions
	seen       []map[string]any           // example payloads
}

// third reads the examples tier.
func (c *converter) third(l *legacy, e core.Examples) core.Examples {
	if e.Description == "" {
		e.Description = l.Description
	}
	var text string
	switch {
	case len(l.Instructions) == 0:
	case json.Unmarshal(l.Instructions, &text) == nil:
		e.Instructions.Notes = append(e.Instructions.Notes, text)
	default:
		c.instructions(l.Instructions, &e)
	}
	var list []json.RawMessage
	if json.Unmarshal(l.Examples, &list) == nil {
		for _, raw := range list {
			c.example(raw, &e)
		}
	}
	return e
}

func (c *converter) instructions(raw json.RawMessage, e *core.Examples) {
	var i struct {
		core.Instructions
		Description string                     `json:"description"`
		Payload     map[string]json.RawMessage `json:"payload"`
		Examples    []json.RawMessage          `json:"examples"`
	}
	if json.Unmarshal(raw, &i) != nil {
		e.Instructions.Notes = append(e.Instructions.Notes, txt.Clip(string(raw), 1000))
		return
	}
	e.Instructions = i.Instructions
	if i.Description != "" && i.Description != e.Description {
		e.Instructions.Notes = append(e.Instructions.Notes, i.Description)
	}
	maps.Copy(c.hints, i.Payload)
	for _, x := range i.Examples {
		c.example(x, e)
	}
}

// example takes {scenario, payload}, or a bare payload.
func (c *converter) example(raw json.RawMessage, e *core.Examples) {
	var x core.Example
	if json.Unmarshal(raw, &x) != nil || len(x.Payload) == 0 {
		x.Payload = raw
	}
	v, err := decode(x.Payload)
	payload, ok := v.(map[string]any)
	if err != nil || !ok {
		return
	}
	c.seen = append(c.seen, payload)
	e.Examples = append(e.Examples, x)
}

func (c *converter) fields(raw json.RawMessage, required bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, e := range list {
			c.listed(e, required)
		}
		return
	}
	o, _ := ordered(raw)
	for _, m := range o {
		c.field(m.key, m.value, required)
	}
}

// listed takes a field's name, or an object with its name.
func (c *converter) listed(raw json.RawMessage, required bool) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		c.field(name, nil, required)
		return
	}
	var f struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &f) == nil && f.Name != "" {
		c.field(f.Name, raw, required)
	}
}

func (c *converter) field(name string, hint json.RawMessage, required bool) {
	if slices.ContainsFunc(c.properties, func(m member) bool { return m.key == name }) {
		return
	}
	c.properties = append(c.properties, member{name, c.describe(name, hint)})
	if required {
		c.required = append(c.required, name)
	}
}

// describe makes a field's schema out of what is told about it.
func (c *converter) describe(name string, told json.RawMessage) json.RawMessage {
	s := make(map[string]any)
	for _, raw := range []json.RawMessage{c.hints[name], told} {
		c.learn(s, raw)
	}
	if s["type"] == nil {
		if t := c.guess(name, s["example"]); t != "" {
			s["type"] = t
		}
	}
	delete(s, "example")
	return encode(s)
}

// learn reads a hint: the name of a type, a description, or an object of both.
func (c *converter) learn(s map[string]any, raw json.RawMessage) {
	v, err := decode(raw)
	if err != nil {
		return
	}
	switch v := v.(type) {
	case string:
		if t := typeCalled(v); t != "" {
			s["type"] = t
		} else if v != "" {
			s["description"] = v
		}
	case map[string]any:
		for _, k := range []string{"description", "enum", "default", "items", "minimum", "maximum", "format", "example"} {
			if v[k] != nil {
				s[k] = v[k]
			}
		}
		if t, _ := v["type"].(string); typeCalled(t) != "" {
			s["type"] = typeCalled(t)
		}
	}
}

// typeCalled is the JSON Schema type that a word means.
func typeCalled(word string) string {
	switch strings.ToLower(word) {
	case "string", "str", "text":
		return "string"
	case "integer", "int":
		return "integer"
	case "number", "float":
		return "number"
	case "boolean", "bool":
		return "boolean"
	case "array", "list":
		return "array"
	case "object", "dict":
		return "object"
	}
	return ""
}

// guess reads a field's type off the examples; "" where they disagree, or have
// none: then anything is let through.
func (c *converter) guess(name string, example any) string {
	values := []any{example}
	for _, payload := range c.seen {
		values = append(values, payload[name])
	}
	found := ""
	for _, v := range values {
		t := typeOf(v)
		switch {
		case t == "" || t == found:
		case found == "":
			found = t
		case (t == "number" || found == "number") && (t == "integer" || found == "integer"):
			found = "number"
		default:
			return ""
		}
	}
	return found
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

func (c *converter) schema() json.RawMessage {
	s := object{{"type", json.RawMessage(`"object"`)}, {"properties", c.properties.encode()}}
	if len(c.required) > 0 {
		s = append(s, member{"required", encode(c.required)})
	}
	return s.encode()
}

// firstLine makes a brief: the first sentence of the first text there is, cut
// between words.
func firstLine(texts ...string) string {
	for _, text := range texts {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
		if text == "" {
			continue
		}
		if i := strings.Index(text, ". "); i > 0 {
			text = text[:i]
		}
		text = strings.TrimSuffix(text, ".")
		for utf8.RuneCountInString(text) >= maxBrief {
			i := strings.LastIndexByte(strings.TrimSuffix(text, "…"), ' ')
			if i <= 0 {
				return string([]rune(text)[:maxBrief-2]) + "…"
			}
			text = text[:i] + "…"
		}
		return text
	}
	return ""
}
