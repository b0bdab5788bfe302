package offline

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestTextsIn(t *testing.T) {
	for raw, want := range map[string][]string{
		`"tea"`:                 {"tea"},
		`["tea"," ",["milk"]]`:  {"tea", "milk"},
		`{"id":"7","text":"a"}`: {"a"},
		`{"memories":[{"id":"1","text":"a"},{"fact":"b"}]}`:      {"a", "b"},
		`{"title":"later","text":"first"}`:                       {"first"}, // the most specific key wins
		`{"id":"7","done":true}`:                                 nil,
		`{"result":{"result":{"result":{"result":"too deep"}}}}`: nil,
		`12`:        nil,
		`{"text":"`: nil,
	} {
		if got := textsIn(json.RawMessage(raw), 4); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
