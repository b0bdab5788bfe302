package action

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"synthbot/core/llm"
	"synthbot/core/schema"
)

// Words returns the output as people read it, without the punctuation of JSON and without
// thoughts; "" if there is none.
func (r *StepResult) Words() string {
	v, err := schema.Decode(r.Output)
	if err != nil {
		return ""
	}
	return plainWords(llm.Thoughtless(v, nil), 0)
}

// plainWords writes a JSON value. The outermost values are on lines of their own.
func plainWords(v any, depth int) string {
	var parts []string
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text := plainWords(v[name], depth+1)
			if text != "" {
				parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+text)
			}
		}
	case []any:
		for _, item := range v {
			parts = append(parts, plainWords(item, depth+1))
		}
	default:
		return strings.TrimSpace(fmt.Sprint(v))
	}
	separators := []string{"\n", "; ", ", "}
	return strings.Join(parts, separators[min(depth, len(separators)-1)])
}
