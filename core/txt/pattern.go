package txt

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first used, so that it
// costs a start nothing. It panics then if the expression is wrong.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
