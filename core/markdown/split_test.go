package markdown

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		limit  int
		want   []string
	}{
		"empty":        {"", 10, nil},
		"blank":        {" \n\n\t", 10, nil},
		"short":        {"hello", 10, []string{"hello"}},
		"paragraphs":   {"one two\n\nthree four\n\nfive six", 20, []string{"one two\n\nthree four", "five six"}},
		"lines":        {"- one two\n- three four\n- five six", 24, []string{"- one two\n- three four", "- five six"}},
		"sentences":    {"One two three. Four five six. Seven eight.", 32, []string{"One two three. Four five six.", "Seven eight."}},
		"quoted end":   {"He said \"no.\" Then he left us all.", 24, []string{"He said \"no.\"", "Then he left us all."}},
		"words":        {"one two three four five", 10, []string{"one two", "three four", "five"}},
		"one word":     {"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		"wide":         {"一二三。四五六。七八", 5, []string{"一二三。", "四五六。", "七八"}},
		"exact":        {"abcd efgh", 4, []string{"abcd", "efgh"}},
		"indentation":  {"- a b c d\n  - e f g", 12, []string{"- a b c d", "  - e f g"}},
		"graphemes":    {"e\u0301e\u0301e\u0301", 3, []string{"e\u0301", "e\u0301", "e\u0301"}},
		"family":       {"👨‍👩‍👧👨‍👩‍👧", 8, []string{"👨‍👩‍👧", "👨‍👩‍👧"}},
		"large family": {"e\u0301\u0301\u0301", 2, []string{"e\u0301", "\u0301\u0301"}},
		"title":        {"one two three\n\n# Title\n\nfour five six", 30, []string{"one two three", "# Title\n\nfour five six"}},
		"link":         {"see [the long manual](http://x.example/a) now", 42, []string{"see [the long manual](http://x.example/a)", "now"}},
		"before link":  {"read all about it [the manual](http://x.example)", 40, []string{"read all about it", "[the manual](http://x.example)"}},
		"code": {"```go\none()\ntwo()\nthree()\n```\nend", 24,
			[]string{"```go\none()\ntwo()\n```", "```go\nthree()\n```\nend"}},
		"before code": {"some text first\n```\nabc\ndef\n```", 24, []string{"some text first", "```\nabc\ndef\n```"}},
		"last line":   {"```\nabcdefgh\nijklmnop\n```", 22, []string{"```\nabcdefgh\n```", "```\nijklmnop\n```"}},
		"unclosed":    {"```\none\ntwo\nthree", 16, []string{"```\none\ntwo\n```", "```\nthree"}},
		"quoted code": {"> ```\n> one\n> two\n> three\n> ```\nbye", 24, []string{"> ```\n> one\n> two\n> ```", "> ```\n> three\n> ```\nbye"}},
		"no fence":    {"```\none\n\u00a0```\nthree\n```", 18, []string{"```\none\n\u00a0```\n```", "```\nthree\n```"}},
		"code in list": {"1. a\n    ```js\n    one()\n    two()\n    ```", 36,
			[]string{"1. a\n    ```js\n    one()\n    ```", "```js\ntwo()\n```"}},
		"tiny limit":  {"```go\na\nb\n```", 6, []string{"```go", "a\nb", "```"}},
		"long line":   {"```\nabcdefghijklmnopqrstuvwx\n```", 24, []string{"```\nabcdefghijklmnop\n```", "```\nqrstuvwx\n```"}},
		"spaces":      {strings.Repeat(" ", 50) + "x", 10, []string{"x"}},
		"blank code":  {"```\na\n" + strings.Repeat("\n", 40) + "b\n```", 20, []string{"```\na\n```", "```\nb\n```"}},
		"zero limit":  {"ab", 0, []string{"a", "b"}},
		"three kinds": {"Intro.\n\n```\n12345\n67890\n```\n\nOutro here.", 28, []string{"Intro.\n\n```\n12345\n67890\n```", "Outro here."}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Split(tc.source, tc.limit, utf8.RuneCountInString)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %d parts\n%s\nwant\n%s", len(got), strings.Join(got, "\n-----\n"), strings.Join(tc.want, "\n-----\n"))
			}
			checkSplit(t, tc.source, tc.limit, utf8.RuneCountInString)
		})
	}
}

func TestMeasures(t *testing.T) {
	for s, want := range map[string][2]int{"": {0, 0}, "aé猫": {3, 3}, "👍a": {2, 3}, "\xff": {1, 1}} {
		if utf8.RuneCountInString(s) != want[0] || UTF16(s) != want[1] {
			t.Errorf("%q measures %d characters and %d units, want %v", s, utf8.RuneCountInString(s), UTF16(s), want)
		}
	}
}

// checkSplit checks what Split promises.
func checkSplit(t *testing.T, source string, limit int, measure func(string) int) {
	t.Helper()
	parts := split(source, limit, measure)
	edges := edgesOf(source)
	rest, exact := source, !shifted(source)
	for i, p := range parts {
		if whole := p.open + p.body + p.close; measure(whole) > limit && utf8.RuneCountInString(p.body) > 1 {
			t.Fatalf("part %d has the size %d, want at most %d: %q", i, measure(whole), limit, whole)
		}
		if strings.TrimSpace(p.body) == "" {
			t.Fatalf("part %d of %q is empty", i, source)
		}
		if !exact {
			continue
		}
		at := strings.Index(rest, p.body)
		if at < 0 || !droppable(rest[:at]) {
			t.Fatalf("part %d %q is not next in %q: dropped %q", i, p.body, rest, rest[:max(at, 0)])
		}
		begin := len(source) - len(rest) + at
		if !edges[begin] && measure(graphemeAt(source, begin)) <= limit {
			t.Fatalf("part %d %q of %q begins within a grapheme", i, p.body, source)
		}
		rest = rest[at+len(p.body):]
	}
	if exact && !droppable(rest) {
		t.Fatalf("%q of %q is missing", rest, source)
	}
	if got, want := squeezed(parts), solid(source); !exact && got != want {
		t.Fatalf("joined\n%q\nis not\n%q", got, want)
	}
}

// droppable reports whether a text may be missing between two parts: white space, or the last line
// of a code block that was closed.
func droppable(s string) bool {
	s = strings.TrimSpace(s)
	return strings.Trim(s, "`~> \t") == "" && (s == "" || strings.Contains(s, "```") || strings.Contains(s, "~~~"))
}

// shifted reports whether lines of code may be moved to the left.
func shifted(source string) bool {
	for l := range strings.Lines(source) {
		if f := opensFence(l); f != nil && indentation(f.lead) > 3 {
			return true
		}
	}
	return false
}

func squeezed(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.body)
	}
	return solid(b.String())
}

// solid removes white space and fence characters.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("`~>", r) {
			return -1
		}
		return r
	}, s)
}

func edgesOf(s string) []bool {
	edges := make([]bool, len(s)+1)
	at := 0
	for g := range txt.Graphemes(s) {
		edges[at] = true
		at += len(g)
	}
	edges[at] = true
	return edges
}

func graphemeAt(s string, at int) string {
	start := 0
	for g := range txt.Graphemes(s) {
		if start+len(g) > at {
			return g
		}
		start += len(g)
	}
	return ""
}

func FuzzSplit(f *testing.F) {
	f.Add("one two\n\n```go\nthree\n```\n> ~~~\n> x", 20, false)
	f.Add("1. a\n    ```js\n    one()\n    two()\n    ```\ne\u0301👨‍👩‍👧", 16, true)
	f.Add(strings.Repeat("a. b\r\n", 9)+"`c [d](e) **f g", 7, true)
	f.Fuzz(func(t *testing.T, source string, limit int, units bool) {
		measure := utf8.RuneCountInString
		if units {
			measure = UTF16
		}
		if !utf8.ValidString(source) {
			source = strings.ToValidUTF8(source, "?")
		}
		checkSplit(t, source, 1+(limit&0x3ff), measure)
	})
}

func BenchmarkSplit(b *testing.B) {
	source := strings.Repeat("Some *words* of a [text](http://x.example) here. ", 2000) + "\n```\n" + strings.Repeat("code\n", 2000) + "```"
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		Split(source, 4096, UTF16)
	}
}
