// Package outputs finds texts for users in the outputs of actions.
package outputs

import (
	"encoding/json"
	"strings"
)

// Texts collects the texts in a JSON value of any form, down to a depth.
func Texts(raw json.RawMessage, depth int) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return walk(value, depth)
}

// textKeys are the keys of objects that are searched for texts, in this order.
const textKeys = "text content memory fact summary note value title message" +
	" output outputs result results memories items found data actions"

func walk(value any, depth int) (all []string) {
	if depth == 0 {
		return nil
	}
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			all = append(all, walk(item, depth-1)...)
		}
	case map[string]any:
		for key := range strings.FieldsSeq(textKeys) {
			all = walk(v[key], depth-1)
			if len(all) > 0 {
				return all
			}
		}
	}
	return all
}
