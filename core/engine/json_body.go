package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
)

// writeFields writes an object with the fields of order first, the rest by
// name, and the last of order at the end: equal requests are equal bytes, and
// what grows comes last.
func writeFields(fields map[string]json.RawMessage, order []string) []byte {
	rank := func(name string) int {
		switch i := slices.Index(order, name); i {
		case -1:
			return len(order) - 1
		case len(order) - 1:
			return len(order)
		default:
			return i
		}
	}
	compare := func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) }
	size := 2
	for name, value := range fields {
		size += len(name) + len(value) + len(`"":,`)
	}
	data := append(make([]byte, 0, size), '{')
	for i, name := range slices.SortedFunc(maps.Keys(fields), compare) {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, core.JSON(name)...)
		data = append(data, ':')
		data = append(data, fields[name]...)
	}
	return append(data, '}')
}

// set writes one field.
func set(fields map[string]json.RawMessage, name string, value any) { fields[name] = core.JSON(value) }

// isPresent reports whether a value was sent, and is not null.
func isPresent(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// isObject reports whether data is one whole JSON object.
func isObject(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 1 && data[0] == '{' && json.Valid(data)
}
