package markup

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestRender: Markdown becomes the platform's HTML.
func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"**bold *both*** ~~gone~~":               "<b>bold <i>both</i></b> <s>gone</s>",
		"# Title `x` *y*":                        "<b>Title </b><code>x</code><b> <i>y</i></b>",
		"a < b & c \"d\"":                        "a &lt; b &amp; c &quot;d&quot;",
		"[site](https://example.org/?a=1&b=2)":   `<a href="https://example.org/?a=1&amp;b=2">site</a>`,
		"[**bold** `code`](https://example.org)": `<a href="https://example.org"><b>bold</b> code</a>`,
		"[run](javascript:alert)":                "run (javascript:alert)",
		"[here](/docs)":                          "here (/docs)",
		"https://example.org/x":                  "https://example.org/x",
		"![cat](https://example.org/c.png)":      `<a href="https://example.org/c.png">cat</a>`,
		"```go\nx := <-c\n```":                   "<pre><code class=\"language-go\">x := &lt;-c</code></pre>",
		"```a\"b<\nx\n```":                       "<pre>x</pre>",
		"- one\n- two\n  - three\n  - four":      "• one\n• two\n  • three\n  • four",
		"3. c\n4. d":                             "3. c\n4. d",
		"- [ ] open\n- [x] done":                 "• ☐ open\n• ☑ done",
		"> quote\n> > deep\n\nafter":             "<blockquote>quote\n\ndeep</blockquote>\n\nafter",
		"| a | bb |\n|---|--:|\n| ccc | d |":     "<pre>a   | bb\nccc |  d</pre>",
		"one\n\n---\n\ntwo":                      "one\n\n———\n\ntwo",
		"line\nbreak":                            "line\nbreak",
		"<b>not html</b>":                        "&lt;b&gt;not html&lt;/b&gt;",
	} {
		if got, _ := render(source); got != want {
			t.Errorf("%q renders as\n%s\nwant\n%s", source, got, want)
		}
	}
}

// checkRender checks what every rendering promises: the platform accepts it, it shows as many
// UTF-16 units as were counted, and no letter or digit is lost.
func checkRender(t *testing.T, source string) {
	t.Helper()
	out, units := render(source)
	text, entities, err := telegramtest.ParseHTML(out)
	if err != nil {
		t.Fatalf("%q renders as %q: %v", source, out, err)
	}
	if n := markdown.UTF16(text); n != units {
		t.Fatalf("%q: counted %d units, shown are %d", source, units, n)
	}
	seen := text
	for _, e := range entities {
		seen += e.URL + e.Language
	}
	want := letters(markdown.Plain(markdown.Parse(source)))
	if lost := missing(letters(seen), want); lost != "" {
		t.Fatalf("%q renders as %q: %q is lost", source, out, lost)
	}
}

// checkRich checks the same for texts with a table, as rich messages.
func checkRich(t *testing.T, source string) {
	t.Helper()
	out := Rich(source)
	if out == "" {
		return
	}
	text, err := telegramtest.ParseRich(out)
	if err != nil {
		t.Fatalf("%q renders as %q: %v", source, out, err)
	}
	seen := letters(text) + letters(html.UnescapeString(strings.Join(regexp.MustCompile(`(?:href|class)="[^"]*"`).FindAllString(out, -1), "")))
	if lost := missing(seen, letters(markdown.Plain(markdown.Parse(source)))); lost != "" {
		t.Fatalf("%q renders as %q: %q is lost", source, out, lost)
	}
}

// letters returns the letters and digits of a text.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// missing returns the characters that occur more often in want than in got.
func missing(got, want string) string {
	have := map[rune]int{}
	for _, r := range got {
		have[r]++
	}
	return strings.Map(func(r rune) rune {
		if have[r]--; have[r] < 0 {
			return r
		}
		return -1
	}, want)
}

// TestSpec: all examples of the CommonMark specification are rendered without losing a letter
// of their HTML.
func TestSpec(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/goldmark").Output()
	if err != nil {
		t.Skipf("go cannot find the module goldmark, which contains the examples: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "_test", "spec.json"))
	if err != nil {
		t.Skipf("the module goldmark lacks the examples: %v", err)
	}
	var examples []struct{ Markdown, HTML string }
	if err := json.Unmarshal(data, &examples); err != nil || len(examples) < 600 {
		t.Fatalf("got %d examples, %v, want at least 600", len(examples), err)
	}
	tags := regexp.MustCompile(`<[^>]*>`)
	compared := 0
	for _, e := range examples {
		checkRender(t, e.Markdown)
		checkRich(t, e.Markdown+"\n\n| a | b |\n|---|:-:|\n| "+strings.ReplaceAll(e.Markdown, "\n", " ")+" | c |\n")
		if strings.Contains(e.Markdown, "<") || regexp.MustCompile(`(?m)^ {0,3}\[.*\]:|&`).MatchString(e.Markdown) {
			continue // HTML and link definitions are shown literally
		}
		compared++
		out, _ := render(e.Markdown)
		text, _, _ := telegramtest.ParseHTML(out)
		if lost := missing(letters(text), letters(html.UnescapeString(tags.ReplaceAllString(e.HTML, "")))); lost != "" {
			t.Errorf("%q renders as %q: %q is lost", e.Markdown, out, lost)
		}
	}
	if compared < 300 {
		t.Errorf("compared %d examples, want at least 300", compared)
	}
}

// TestRenderManyStyles: a text with too many styles for the platform loses styles, but not the
// addresses of its links.
func TestRenderManyStyles(t *testing.T) {
	source := strings.Repeat("**b** `c` [l](https://example.org/x) ", 100)
	checkRender(t, source)
	out, _ := render(source)
	_, entities, _ := telegramtest.ParseHTML(out)
	if len(entities) > maxEntities || !strings.Contains(out, "l (https://example.org/x)") {
		t.Errorf("got %d styles, want at most %d; later links must show their addresses", len(entities), maxEntities)
	}
}

// TestParts: texts are split into parts within the limit, without loss.
func TestParts(t *testing.T) {
	table := "| a | b |\n|---|---|\n" + strings.Repeat("| x | "+strings.Repeat("y", 20)+" |\n| "+strings.Repeat("z", 20)+" | x |\n", 80)
	for name, tc := range map[string]struct {
		text  string
		first int
		min   int
	}{
		"short":        {"hi", MaxText, 1},
		"long":         {strings.Repeat("word 😀 ", 3000), MaxText, 3},
		"one word":     {strings.Repeat("x", 9000), MaxText, 3},
		"grows":        {table, MaxText, 2},
		"caption":      {strings.Repeat("word ", 2000), MaxCaption, 3},
		"caption code": {"```\n" + strings.Repeat("code line\n", 400) + "```", MaxCaption, 2},
		"links":        {strings.Repeat("[a](https://example.org/"+strings.Repeat("p", 50)+") ", 100), MaxText, 2},
	} {
		t.Run(name, func(t *testing.T) { checkParts(t, tc.text, tc.first, tc.min) })
	}
}

// TestPartsWhole: a split cuts no grapheme, and both sides of a split code block are code blocks.
func TestPartsWhole(t *testing.T) {
	const family = "👨\u200d👩\u200d👧"
	list := Parts(strings.Repeat(family, 2000), MaxText)
	for _, p := range list {
		if strings.ReplaceAll(p.Source, family, "") != "" {
			t.Fatal("a grapheme was cut")
		}
	}
	code := Parts("```go\n"+strings.Repeat("line of code\n", 1000)+"```", MaxText)
	for i, p := range code {
		if !strings.HasPrefix(p.HTML, `<pre><code class="language-go">`) || !strings.HasSuffix(p.HTML, "</code></pre>") {
			t.Errorf("part %d is not a code block: %.60q", i, p.HTML)
		}
	}
	if len(list) < 3 || len(code) < 3 {
		t.Errorf("got %d and %d parts, want at least 3 each", len(list), len(code))
	}
}

// checkParts checks that the parts of a text fit, that they contain all of it, and that
// splitting it again gives the same parts.
func checkParts(t *testing.T, text string, first, least int) {
	t.Helper()
	list := Parts(text, first)
	if len(list) < least {
		t.Fatalf("got %d parts, want at least %d", len(list), least)
	}
	all, limit := "", first
	for i, p := range list {
		shown, _, err := telegramtest.ParseHTML(p.HTML)
		if err != nil || markdown.UTF16(shown) > limit || markdown.UTF16(p.Plain()) > limit {
			t.Fatalf("part %d of %q: got %d units, plain %d, %v", i, text, markdown.UTF16(shown), markdown.UTF16(p.Plain()), err)
		}
		all += p.Source
		limit = MaxText
	}
	if !inOrder(letters(all), letters(Visible(text)), !strings.ContainsAny(text, "`~")) {
		t.Fatalf("%q: the parts do not contain the whole text", text)
	}
	again := Parts(text, first)
	for i := range list {
		if again[i] != list[i] {
			t.Fatal("splitting the same text again gave other parts")
		}
	}
}

// inOrder reports whether got contains the letters of want in order. Unless exactly is set,
// other letters may come between them: split code blocks repeat their language.
func inOrder(got, want string, exactly bool) bool {
	if exactly {
		return got == want
	}
	rest := []rune(want)
	for _, r := range got {
		if len(rest) > 0 && rest[0] == r {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

func FuzzRich(f *testing.F) {
	for _, s := range []string{"**a `b` c**", "> - x\n> > y", "1. [a `b` *c](http://x.y)*\n\n   - [x] z", "```x\ny", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		checkRich(t, source+"\n\n| "+source+" | b |\n|---|---|\n| c | d |\n")
		checkRich(t, source)
	})
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"**a `b` c**", "> - x\n> > y", "[a `b` *c](http://x.y)*", "| a |\n|-|\n| `x` |", "~~*a~~*", "1) a\n\n   ```x\n   y", "![](a.b)", "<b>&amp;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) { checkRender(t, source) })
}

func FuzzParts(f *testing.F) {
	f.Add("one two\n\n```go\nthree\n```", 3)
	f.Add("| a | b |\n|--|--|\n| 😀 | c |\n", 200)
	f.Fuzz(func(t *testing.T, piece string, n int) {
		text := strings.Repeat(piece, 1+(n&0xff))
		if !txt.HasVisible(Visible(text)) || len(text) > 1<<16 {
			return
		}
		checkParts(t, text, MaxText, 1)
		checkParts(t, text, MaxCaption, 1)
	})
}

func BenchmarkRender(b *testing.B) {
	source := strings.Repeat("Some **bold** and `code` and a [link](https://example.org/x).\n\n- one\n- two\n\n", 40)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		render(source)
	}
}

// TestPlainFits: a part without styles still fits, also if an address that is once in the
// source is written with each of its links.
func TestPlainFits(t *testing.T) {
	source := strings.Repeat("[a][1] ", 60) + "\n\n[1]: https://example.org/" + strings.Repeat("x", 40)
	list := Parts(source, MaxCaption)
	if n := markdown.UTF16(list[0].Plain()); len(list) != 1 || n > MaxCaption {
		t.Errorf("got %d units in %d parts, want at most %d in one part", n, len(list), MaxCaption)
	}
}
