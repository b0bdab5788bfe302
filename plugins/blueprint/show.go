package blueprint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// Bounds of what is shown.
const (
	maxShown  = 60 << 10 // bytes
	maxFields = 32
)

// view says how a tool's output is shown.
type view struct {
	format string // of the action display; "": whatever fits; none: it is not
	title  string
	fields []string
}

const viewNone = "none"

// viewOf reads off an outputSchema how its data are shown: series, rows, lists,
// texts and single numbers are; records are left to the model's words.
func viewOf(t *Tool) view {
	v := view{format: viewNone, title: t.Title}
	var root map[string]any
	if json.Unmarshal(t.Output, &root) != nil {
		return v
	}
	v.fields = fieldsOf(t.Output)
	if x, ok := root["x-display"].(string); ok {
		v.format = strings.ToLower(x)
	} else if formed(root, root, 0) {
		v.format = ""
	}
	return v
}

// formed reports whether data of the schema are easier to read in form.
func formed(root map[string]any, node any, depth int) bool {
	n, _ := node.(map[string]any)
	if ref, ok := n["$ref"].(string); ok && depth < 8 {
		return formed(root, follow(root, ref), depth+1)
	}
	switch n["type"] {
	case "array", "string", "number", "integer":
		return true
	}
	properties, _ := n["properties"].(map[string]any)
	for name, p := range properties {
		if property, _ := p.(map[string]any); name == "value" || property["type"] == "array" {
			return true
		}
	}
	return false
}

// fieldsOf lists the properties of a schema in the order in which they stand in
// it.
func fieldsOf(schema json.RawMessage) []string {
	var fields []string
	d := json.NewDecoder(bytes.NewReader(schema))
	collect(d, false, &fields)
	return fields
}

// collect reads one value; of an object that is properties it notes the keys.
func collect(d *json.Decoder, properties bool, fields *[]string) {
	t, err := d.Token()
	if err != nil {
		return
	}
	open, ok := t.(json.Delim)
	for ok && d.More() {
		key := ""
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return
			}
			key, _ = name.(string)
			if properties && len(*fields) < maxFields && !slices.Contains(*fields, key) {
				*fields = append(*fields, key)
			}
		}
		collect(d, !properties && key == "properties", fields)
	}
	if ok {
		_, _ = d.Token() // its end; an error comes again with the next token
	}
}

// step is the action that shows an output; ok is false where it is not shown.
func (v view) step(output json.RawMessage) (s core.Step, ok bool) {
	if v.format == viewNone || len(output) > maxShown {
		return s, false
	}
	payload := map[string]any{"content": output}
	if v.format != "" {
		payload["format"] = txt.Clip(v.format, 60)
	}
	if v.title != "" {
		payload["title"] = txt.Clip(v.title, 120)
	}
	if len(v.fields) > 0 {
		payload["fields"] = v.fields
	}
	return core.Step{Type: "display", Payload: encode(payload), Priority: core.DefaultPriority}, true
}
