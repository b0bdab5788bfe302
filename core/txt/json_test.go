package txt

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzWriteJSON: WriteJSON writes the text as JSON, with as many characters as WidthJSON says.
func FuzzWriteJSON(f *testing.F) {
	for _, s := range []string{"", "a \"b\"\\\n\r\t\x00\x1f\x7f", "é猫😀\u2028<&>", "\xffa\xed\xa0\x80\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b strings.Builder
		WriteJSON(&b, s)
		var got string
		if err := json.Unmarshal([]byte(`"`+b.String()+`"`), &got); err != nil || got != string([]rune(s)) {
			t.Fatalf("%q was written as %s, which is %q: %v", s, b.String(), got, err)
		}
		width := 0
		for _, r := range s {
			width += WidthJSON(r)
		}
		if n := utf8.RuneCountInString(b.String()); n != width {
			t.Fatalf("%q has %d characters, want %d", b.String(), n, width)
		}
	})
}
