package action

import (
	"fmt"
	"path"
	"slices"
)

// MatchAny reports whether a name matches one of the patterns, in which * stands for any
// letters.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// CheckPatterns reports which patterns are none; at is where they are in the configuration.
func CheckPatterns(patterns []string, fault func(text string, at ...any), at string) {
	for i, pattern := range patterns {
		CheckPattern(pattern, fault, at, i)
	}
}

// CheckPattern reports whether a pattern is none.
func CheckPattern(pattern string, fault func(text string, at ...any), at ...any) {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		fault(fmt.Sprintf("%q is not a pattern; write a name, or a part of one with *", pattern), at...)
	}
}
