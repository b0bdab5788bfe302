package txt

import (
	"strings"
)

var (
	markup = Pattern("[\\\\`*_~\\[\\]<>&|#=^$]")
	// What would begin a list.
	bullet = Pattern(`(?m)^(\s*(?:\d+)?)([-+.)])`)
)

// Literal returns Markdown that shows a text just as it is.
func Literal(text string) string {
	text = markup().ReplaceAllString(text, `\$0`)
	return bullet().ReplaceAllStringFunc(text, func(s string) string {
		return strings.TrimRight(s, "-+.)") + `\` + s[len(s)-1:]
	})
}
