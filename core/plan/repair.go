package plan

import (
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// tooDeep reports whether a text may nest deeper than is read.
func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			if depth > maxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return false
}

// repair repairs text that was meant to be JSON. ok is false if that is not possible, or if
// the text is too long or nests too deep.
func repair(text string) (repaired string, ok bool) {
	if len(text) > maxRepair || tooDeep(text) {
		return "", false
	}
	if repaired, ok = try(text); ok {
		return repaired, true
	}
	end := strings.LastIndexAny(text, "}]")
	if end > 0 && end < len(text)-1 {
		return try(text[:end+1]) // with prose behind it
	}
	return "", false
}

// try calls the library, which may panic on untrusted text.
func try(text string) (repaired string, ok bool) {
	defer func() {
		if recover() != nil {
			repaired, ok = "", false
		}
	}()
	repaired, err := jsonrepair.Repair(text)
	return repaired, err == nil && json.Valid([]byte(repaired))
}
