package llm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestFindObjects(t *testing.T) {
	for answer, want := range map[string][]string{
		"":                                 nil,
		"{":                                nil,
		`Here: {"a":1} and {"b":2}.`:       {`{"a":1}`, `{"b":2}`},
		`{no} {"a":1}`:                     {`{"a":1}`},
		`{"skip":{"a":1}}`:                 {`{"a":1}`},
		`{"a":{"b":2}}`:                    {`{"a":{"b":2}}`},
		strings.Repeat("{", 99) + `"a":1}`: nil,
	} {
		var found []string
		FindObjects(answer, func(object json.RawMessage) bool {
			if strings.Contains(string(object), "skip") {
				return false
			}
			found = append(found, string(object))
			return true
		})
		if !slices.Equal(found, want) {
			t.Errorf("%s: unexpected objects %q", answer, found)
		}
	}
}
