package blueprint

import (
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Bounds of what is shown.
const (
	maxShown  = 60 << 10 // bytes
	maxFields = 32
)

// view is how a tool's output is shown.
type view struct {
	format string // of the action display; "": whatever fits; none: it is not shown
	title  string
	fields []string
}

const viewNone = "none"

// viewOf reads in an outputSchema how its data are shown: series, rows, lists, texts and
// single numbers are shown; records are left to the model's words.
func viewOf(t *Tool) view {
	v := view{format: viewNone, title: t.Title}
	var root map[string]any
	if json.Unmarshal(t.Output, &root) != nil {
		return v
	}
	addFields(t.Output, false, &v.fields)
	if x, ok := root["x-display"].(string); ok {
		v.format = strings.ToLower(x)
	} else if hasForm(root, root, 0) {
		v.format = ""
	}
	return v
}

// hasForm reports whether data of the schema are easier to read in a form.
func hasForm(root map[string]any, node any, depth int) bool {
	n, _ := node.(map[string]any)
	if ref, ok := n["$ref"].(string); ok && depth < 8 {
		return hasForm(root, schema.Resolve(root, ref), depth+1)
	}
	switch n["type"] {
	case "array", "string", "number", "integer":
		return true
	}
	properties, _ := n["properties"].(map[string]any)
	for name, p := range properties {
		property, _ := p.(map[string]any)
		if name == "value" || property["type"] == "array" {
			return true
		}
	}
	return false
}

// addFields adds the names of properties in a schema, in their order.
func addFields(raw json.RawMessage, properties bool, fields *[]string) {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // anything but an array has none
	for _, element := range list {
		addFields(element, false, fields)
	}
	object, _ := schema.DecodeObject(raw)
	for _, m := range object {
		if properties && len(*fields) < maxFields && !slices.Contains(*fields, m.Key) {
			*fields = append(*fields, m.Key)
		}
		addFields(m.Value, !properties && m.Key == "properties", fields)
	}
}

// step is the action that shows an output. ok is false if it is not shown.
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
	return core.Step{Type: "display", Payload: core.JSON(payload), Priority: core.DefaultPriority}, true
}
