package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"synthbot/core"
)

// writeFields writes an object with the fields of order first, the rest by
// name, and the last of order at the end: equal requests are equal bytes, and
// what grows comes last.
func writeFields(fields map[string]json.RawMessage, order []string) []byte {
	var rest []string
	for name := range fields {
		if !slices.Contains(order, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	names := slices.Concat(order[:len(order)-1], rest, order[len(order)-1:])
	var b bytes.Buffer
	for _, name := range names {
		value, ok := fields[name]
		if !ok {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	return slices.Concat([]byte{'{'}, b.Bytes(), []byte{'}'})
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
