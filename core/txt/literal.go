package txt

import (
	"regexp"
	"strings"
)

var (
	markup = regexp.MustCompile("[\\\\`*_~\\[\\]<>&|#=^$]")
	// What would begin a list.
	bullet = regexp.MustCompile(`(?m)^(\s*(?:\d+)?)([-+.)])`)
)

// Literal returns Markdown that shows a text just as it is.
func Literal(text string) string {
	text = markup.ReplaceAllString(text, `\$0`)
	return bullet.ReplaceAllStringFunc(text, func(s string) string {
		return strings.TrimRight(s, "-+.)") + `\` + s[len(s)-1:]
	})
}
