package core

import (
	"errors"
	"fmt"
	"testing"
)

// TestIsUnsure: a text for users says so, and nothing else that may have worked.
func TestIsUnsure(t *testing.T) {
	unsure := Errorf(Unsure, "it may be there")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing failed":       {nil, false},
		"unsure":               {unsure, true},
		"wrapped":              {fmt.Errorf("part: %w", unsure), true},
		"unsure, then refused": {errors.Join(unsure, Errorf(Broken, "no")), true},
		"refused":              {Errorf(Broken, "no"), false},
		"away":                 {fmt.Errorf("%w: %w", ErrAway, ErrUnknownOutcome), false},
	} {
		if got := IsUnsure(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
