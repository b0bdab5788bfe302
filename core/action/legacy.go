package action

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// convertLegacy converts an action whose Schema is a definition in the older form {description, required_fields,
// optional_fields, instructions, examples}. It returns any other action as it is. Fields are named in a list, or in an
// object with a hint for each. Types come from the definition, else from its examples.
func convertLegacy(a core.Action) (core.Action, error) {
	if !bytes.Contains(a.Schema, []byte("_fields")) {
		return a, nil
	}
	o, _ := schema.DecodeObject(a.Schema)
	if o.Find("required_fields") == nil && o.Find("optional_fields") == nil {
		return a, nil
	}
	return fromLegacy(a)
}

func fromLegacy(a core.Action) (core.Action, error) {
	var l struct {
		Description, Brief     string
		Required               json.RawMessage `json:"required_fields"`
		Optional               json.RawMessage `json:"optional_fields"`
		Instructions, Examples json.RawMessage
	}
	if err := json.Unmarshal(a.Schema, &l); err != nil {
		return a, fmt.Errorf("legacy form: %w", err)
	}
	c := converter{hints: make(map[string]json.RawMessage), examples: &a.Examples}
	a.Examples.Description = cmp.Or(a.Examples.Description, l.Description)
	c.addInstructions(l.Instructions)
	c.addPayloads(l.Examples)
	c.addFields(l.Required, true)
	c.addFields(l.Optional, false)
	s := schema.OfType("object").With("properties", c.properties)
	if c.required != nil {
		s = s.With("required", c.required)
	}
	a.Schema = core.JSON(s)
	if a.Brief == "" {
		a.Brief = briefOf(cmp.Or(txt.Line(l.Brief), txt.Line(l.Description)))
	}
	return a, nil
}

// converter collects the fields of an older definition.
type converter struct {
	examples   *core.Examples
	payloads   []map[string]any           // of the examples
	hints      map[string]json.RawMessage // what the instructions say about fields
	properties schema.Object
	required   []string
}

// addInstructions reads instructions: a text, or an object that may have examples and hints about fields.
func (c *converter) addInstructions(raw json.RawMessage) {
	var text string
	var i struct {
		core.Instructions
		Description string
		Payload     map[string]json.RawMessage
		Examples    json.RawMessage
	}
	e := c.examples
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &text) == nil:
		e.Instructions.Notes = append(e.Instructions.Notes, text)
	case json.Unmarshal(raw, &i) != nil:
		e.Instructions.Notes = append(e.Instructions.Notes, txt.Clip(string(raw), 1000))
	default:
		e.Instructions = i.Instructions
		if i.Description != "" && i.Description != e.Description {
			e.Instructions.Notes = append(e.Instructions.Notes, i.Description)
		}
		maps.Copy(c.hints, i.Payload)
		c.addPayloads(i.Examples)
	}
}

// addPayloads reads a list of examples: each is {scenario, payload}, or only the payload.
func (c *converter) addPayloads(raw json.RawMessage) {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // after an error, there are none
	for _, raw := range list {
		var x core.Example
		if json.Unmarshal(raw, &x) != nil || len(x.Payload) == 0 {
			x.Payload = raw
		}
		v, _ := schema.Decode(x.Payload)
		if payload, ok := v.(map[string]any); ok {
			c.payloads = append(c.payloads, payload)
			c.examples.Examples = append(c.examples.Examples, x)
		}
	}
}

// addFields reads fields: a list of names or of objects with a name, or an object of hints by name.
func (c *converter) addFields(raw json.RawMessage, required bool) {
	o, _ := schema.DecodeObject(raw)
	for _, m := range o {
		c.addField(m.Key, m.Value, required)
	}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // after an error, there are none
	for _, e := range list {
		var f struct{ Name string }
		if json.Unmarshal(e, &f.Name) == nil {
			c.addField(f.Name, nil, required)
		} else if json.Unmarshal(e, &f) == nil && f.Name != "" {
			c.addField(f.Name, e, required)
		}
	}
}

func (c *converter) addField(name string, hint json.RawMessage, required bool) {
	if c.properties.Find(name) != nil {
		return
	}
	s := make(map[string]any)
	addHint(s, c.hints[name])
	addHint(s, hint)
	t := c.guess(name, s["example"])
	if s["type"] == nil && t != "" {
		s["type"] = t
	}
	delete(s, "example")
	c.properties = c.properties.With(name, s)
	if required {
		c.required = append(c.required, name)
	}
}

// addHint adds a hint to a field's schema: the name of a type, a description, or an object of both.
func addHint(field map[string]any, raw json.RawMessage) {
	v, _ := schema.Decode(raw)
	text, _ := v.(string)
	hints, _ := v.(map[string]any)
	for _, k := range []string{"description", "enum", "default", "items", "minimum", "maximum", "format", "example"} {
		if hints[k] != nil {
			field[k] = hints[k]
		}
	}
	name, _ := hints["type"].(string)
	t, _ := schema.TypeName(cmp.Or(text, name))
	switch {
	case t != "":
		field["type"] = t
	case text != "":
		field["description"] = text
	}
}

// guess returns a field's type from the examples; "" (any type) if they disagree or do not have the field.
func (c *converter) guess(name string, example any) string {
	values := []any{example}
	for _, payload := range c.payloads {
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

// briefOf returns the first sentence of a line as a brief, cut between words if it is too long.
func briefOf(line string) string {
	brief := line
	i := strings.Index(line, ". ")
	if i > 0 {
		brief = line[:i]
	}
	brief = strings.TrimSuffix(brief, ".")
	for utf8.RuneCountInString(brief) >= maxBrief {
		i := strings.LastIndexByte(strings.TrimSuffix(brief, "…"), ' ')
		if i <= 0 {
			return txt.Clip(brief, maxBrief-1)
		}
		brief = brief[:i] + "…"
	}
	return brief
}
