package console

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"synthbot/core/coretest"
	"synthbot/core/markdown"
	"synthbot/core/txt"
)

// tagged returns a text with tags in place of styles.
func tagged(text string) string {
	names := strings.NewReplacer("36", "c", "35", "n", "32", "p", "1", "b", "2", "d", "3", "i", "4", "u", "9", "s", ";", "")
	styled := regexp.MustCompile(`\x1b\[([0-9;]+)m(.*?)\x1b\[0m`)
	return styled.ReplaceAllStringFunc(text, func(s string) string {
		parts := styled.FindStringSubmatch(s)
		return "<" + names.Replace(parts[1]) + ":" + parts[2] + ">"
	})
}

// TestRender: Markdown becomes styled lines of at most 30 columns.
func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"one **two** *three* `four` ~~five~~": "one <b:two> <i:three> <c:four> <s:five>",
		"***both***":                          "<bi:both>",
		"# Big *title*":                       "<bu:Big ><biu:title>",
		"- a\n- b\n  1. c":                    "• a\n• b\n  1. c",
		"- [ ] a\n- [x] b":                    "• ☐ a\n• ☑ b",
		"- a\n\n- b":                          "• a\n\n• b",
		"> a\n>\n> b":                         "<d:│ >a\n<d:│ >\n<d:│ >b",
		"```go\nif x {\n\ty()\n}\n```":        "  <c:if x {>\n  <c:    y()>\n  <c:}>",
		"[a](http://x.y) <http://z.y>":        "<u:a><d: (http://x.y)> <u:http://z.y>",
		"![a](http://x.y/p.png)":              "<u:a><d: (http://x.y/p.png)>",
		"![](http://x.y/p.png)":               "<u:http://x.y/p.png>",
		"---":                                 "<d:" + strings.Repeat("─", 30) + ">",
		"|a|bc|\n|-|-:|\n|long|d|\n|e|":       "<b:a>   <d: │ ><b:bc>\n<d:─────┼───>\nlong<d: │ > d\ne   <d: │ >",
		"|one column|yet another column|\n|-|-|\n|first value|second value|": "• <b:one column: >first value\n• <b:yet another column: >second\n  value",
		"aaaa bbbb cccc dddd eeee ffff gggg":                                 "aaaa bbbb cccc dddd eeee ffff\ngggg",
		"- aaaa bbbb cccc dddd eeee ffff gggg":                               "• aaaa bbbb cccc dddd eeee\n  ffff gggg",
		strings.Repeat("x", 65):                                              strings.Repeat("x", 30) + "\n" + strings.Repeat("x", 30) + "\nxxxxx",
		strings.Repeat("猫", 16):                                              strings.Repeat("猫", 15) + "\n猫",
		"&#27;[2Jx\u202ey":                                                   "[2Jxy",
		"a\nb  \nc":                                                          "a\nb\nc",
		"":                                                                   "",
	} {
		lines := renderer{}.blocks(markdown.Parse(source), 30, false)
		if got := tagged(strings.Join(lines, "\n")); got != want {
			t.Errorf("%q\n got\n%s\nwant\n%s", source, got, want)
		}
	}
}

// TestSpoken: a message begins with the persona's name, without control characters.
func TestSpoken(t *testing.T) {
	c := New(Options{In: strings.NewReader(""), Out: io.Discard, PersonaName: "Aria\x1b[2J", Terminal: true})
	for source, want := range map[string]string{
		"Hi **you**":  "\x1b[1;35mAria[2J:\x1b[0m Hi \x1b[1myou\x1b[0m",
		"- a\n- b":    "\x1b[1;35mAria[2J:\x1b[0m\n• a\n• b",
		"a\n\n\x1b[m": "\x1b[1;35mAria[2J:\x1b[0m a\n\n[m",
	} {
		got := strings.ReplaceAll(c.render(source, 40), "\x1b[1;35mAria[2J: \x1b[0m", "\x1b[1;35mAria[2J:\x1b[0m ")
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", source, got, want)
		}
	}
}

// TestNoColor: without colours, by option or environment, styles are written as characters.
func TestNoColor(t *testing.T) {
	source := "# T\n**b** *i* `c` ~~s~~ [a](http://x.y)\n> q"
	want := "Aria:\n# T\n\n*b* _i_ `c` ~s~ a (http://x.y)\n\n│ q"
	byOption := New(Options{In: strings.NewReader(""), Out: io.Discard, PersonaName: "Aria", NoColor: true})
	t.Setenv("NO_COLOR", "1")
	byEnvironment := New(Options{In: strings.NewReader(""), Out: io.Discard, PersonaName: "Aria"})
	for _, c := range []*Console{byOption, byEnvironment} {
		if got := c.render(source, 80); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestColumns: the width of characters is counted in columns.
func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"a": 1, "é": 1, "e\u0301": 1, "猫": 2, "👍": 2, "👩‍👧": 2, "🇮🇹": 2, "❤\ufe0f": 2, "❤": 1, "\u200b": 0, "ｱ": 1, "한": 2, "": 0, "…": 1, "\u0301": 0} {
		if got := txt.Width(s); got != want {
			t.Errorf("%q: got %d columns, want %d", s, got, want)
		}
	}
}

// FuzzSpoken: no message writes unknown escape sequences or control characters.
func FuzzSpoken(f *testing.F) {
	f.Add("# a\n- [x] **b**\n> c\n```d\ne\x1b[2J\n```\n|f|\n|-|\n|g|\n[h](i) ![j](k) ~~l~~ &#27;[2J", uint8(20))
	f.Add(strings.Repeat("> - 猫猫猫 ", 40), uint8(3))
	f.Add("> > > ---", uint8(4))
	f.Fuzz(func(t *testing.T, source string, columnCount uint8) {
		c := New(Options{In: strings.NewReader(""), Out: io.Discard, PersonaName: "A"})
		got := c.render(source, int(columnCount))
		v := coretest.NewScreen(1000, 10)
		v.Write([]byte(strings.ReplaceAll(got, "\n", "\r\n")))
		if len(v.Unknown) > 0 || v.Incomplete() != "" {
			t.Fatalf("%q writes the sequences %q and %q", source, v.Unknown, v.Incomplete())
		}
		for _, r := range v.Text() {
			if unicode.IsControl(r) && r != '\n' {
				t.Fatalf("%q shows %q", source, r)
			}
		}
	})
}

// FuzzKeys: whatever keys are pressed, the cursor stays between characters of the line, which has no
// control characters.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[D\x1b[200~b\rc\x1b[201~\xe7\x8c\xab\x7f\x1b\x1b[1;5C\x17"), uint8(3))
	f.Add([]byte("\x1b]0;x\a\x1bO\x1bb\x14\x14\x19"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		e, d := newEditor([]string{"old"}), decoder{}
		for i := 0; i < len(data); i += int(step) + 1 {
			for _, k := range d.feed(string(data[i:min(len(data), i+int(step)+1)])) {
				e.press(k)
				_, end := grapheme(e.text, e.pos)
				if e.pos < 0 || e.pos > len(e.text) || end != e.pos {
					t.Fatalf("the cursor is at %d of %q", e.pos, e.text)
				}
				if strings.ContainsFunc(e.text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
					t.Fatalf("the line holds %q", e.text)
				}
			}
		}
	})
}

func BenchmarkSpoken(b *testing.B) {
	c := New(Options{In: strings.NewReader(""), Out: io.Discard})
	for b.Loop() {
		c.render("Some *words* of a [text](http://x.example) here.\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n", 80)
	}
}
