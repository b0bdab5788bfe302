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
		object, end := Decode(answer)
		if end == 0 || !use(object) {
			end = 1
		}
		answer = answer[end:]
	}
}

// Decode reads the JSON value that a text begins with. n is its length; 0: there is none.
func Decode(text string) (value json.RawMessage, n int) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(d.InputOffset())
}
