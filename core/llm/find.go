package llm

import (
	"encoding/json"
	"strings"
)

// Bounds of what FindObjects looks at.
const (
	maxSearched = 64 << 10 // bytes
	maxStarts   = 64       // brackets that are tried as the beginning of an object
)

// FindObjects calls use for the JSON objects in an answer, in order. If use refuses one,
// those inside of it are tried.
func FindObjects(answer string, use func(object json.RawMessage) bool) {
	answer = answer[:min(len(answer), maxSearched)]
	for range maxStarts {
		i := strings.IndexByte(answer, '{')
		if i < 0 {
			return
		}
		answer = answer[i:]
		var object json.RawMessage
		d := json.NewDecoder(strings.NewReader(answer))
		end := int64(1)
		if d.Decode(&object) == nil && use(object) {
			end = d.InputOffset()
		}
		answer = answer[end:]
	}
}
