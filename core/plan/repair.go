package plan

import (
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// repair mends text that was meant to be JSON. ok is false where it is too long
// or nests too deep to be tried, or cannot be mended.
func repair(text string) (mended string, ok bool) {
	if len(text) > maxRepair || tooDeep(text) {
		return "", false
	}
	if mended, ok = try(text); ok {
		return mended, true
	}
	end := strings.LastIndexAny(text, "}]")
	if end > 0 && end < len(text)-1 {
		return try(text[:end+1]) // prose stands behind it
	}
	return "", false
}

// try calls the library, which is not trusted to hold on foreign text.
func try(text string) (mended string, ok bool) {
	defer func() {
		if recover() != nil {
			mended, ok = "", false
		}
	}()
	mended, err := jsonrepair.Repair(text)
	return mended, err == nil && json.Valid([]byte(mended))
}
