package llm

import (
	"encoding/json"
	"strings"
)

// Limits of FindObjects.
const (
	maxSearched = 64 << 10 // bytes
	maxStarts   = 64       // opening brackets that are tried
)

// FindObjects calls use for the JSON objects in an answer, in order. If use returns false for
// one, FindObjects tries those inside of it.
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

// Decode decodes the JSON value at the start of a text. n is its length, or 0 if there is none.
func Decode(text string) (value json.RawMessage, n int) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(d.InputOffset())
}
