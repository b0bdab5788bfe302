package txt_test

import (
	"strings"
	"testing"

	"synthbot/core/markdown"
	"synthbot/core/txt"
)

// FuzzLiteral: the Markdown of a text shows the text itself.
func FuzzLiteral(f *testing.F) {
	for _, s := range []string{"[a](b)", "~~x~~", "# h", "- a", "12. b", "3) c", "---", "===", "1.", "+", "<b>&amp;", "|a|\n|-|", "`x`", "> q", "+ x", `\*`, "https://a.example/_b_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range s {
			if r < ' ' || r > '~' {
				return
			}
		}
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		s += "\nto: " + s
		if got := markdown.Plain(markdown.Parse(txt.Literal(s))); got != s {
			t.Errorf("%q would be shown as %q", s, got)
		}
	})
}
