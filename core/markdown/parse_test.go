package markdown

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// draw writes a tree as text, with a letter or word for each kind of node.
func draw(blocks []Block) string {
	var out []string
	for _, b := range blocks {
		out = append(out, drawBlock(b))
	}
	return strings.Join(out, " ")
}

func drawBlock(b Block) string {
	switch b.Kind {
	case Heading:
		return fmt.Sprintf("h%d(%s)", b.Level, drawInlines(b.Inlines))
	case List:
		mark := "ul"
		if b.Ordered {
			mark = fmt.Sprintf("ol%d", b.Start)
		}
		if !b.Tight {
			mark += "+"
		}
		return mark + "(" + draw(b.Blocks) + ")"
	case Item:
		return "li" + []string{"", "-", "x"}[b.Task] + "(" + draw(b.Blocks) + ")"
	case Quote:
		return "q(" + draw(b.Blocks) + ")"
	case Code:
		return fmt.Sprintf("code[%s](%q)", b.Language, b.Text)
	case Rule:
		return "rule"
	case Table:
		var rows []string
		for _, row := range b.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, drawInlines(c))
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
		return fmt.Sprintf("table%v(%s)", b.Align, strings.Join(rows, ";"))
	}
	return "p(" + drawInlines(b.Inlines) + ")"
}

func drawInlines(in Inlines) string {
	var b strings.Builder
	for _, i := range in {
		switch i.Kind {
		case Text:
			b.WriteString(i.Text)
		case Emphasis:
			b.WriteString("<i " + drawInlines(i.Inlines) + ">")
		case Strong:
			b.WriteString("<b " + drawInlines(i.Inlines) + ">")
		case Strike:
			b.WriteString("<s " + drawInlines(i.Inlines) + ">")
		case CodeSpan:
			b.WriteString("<c " + i.Text + ">")
		case Link:
			b.WriteString("<a " + i.URL + " " + drawInlines(i.Inlines) + ">")
		case Break:
			b.WriteString("/")
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for source, want := range map[string]string{
		"&#; &#x; &#x27; &#12345678; &#x1234567; &#0;": "p(&#; &#x; ' &#12345678; &#x1234567; \uFFFD)",
		"":                                  "",
		"hello":                             "p(hello)",
		"a\nb\n\nc":                         "p(a/b) p(c)",
		"a  \nb\\\nc":                       "p(a/b/c)",
		"# One\n## Two #":                   "h1(One) h2(Two)",
		"Title\n===":                        "h1(Title)",
		"*a* **b** ***c*** ~~d~~ `e`":       "p(<i a> <b b> <i <b c>> <s d> <c e>)",
		"- a\n- b\n  - c":                   "ul(li(p(a)) li(p(b) ul(li(p(c)))))",
		"3. a\n4. b":                        "ol3(li(p(a)) li(p(b)))",
		"- a\n\n- b":                        "ul+(li(p(a)) li(p(b)))",
		"- [ ] a\n- [x] b\n- c":             "ul(li-(p(a)) lix(p(b)) li(p(c)))",
		"> a\n> > b":                        "q(p(a) q(p(b)))",
		"```go x\na\n\n b\n```":             `code[go]("a\n\n b")`,
		"    code\n":                        `code[]("code")`,
		"```\nunclosed":                     `code[]("unclosed")`,
		"a\n\n---\n\nb":                     "p(a) rule p(b)",
		"[a *b*](http://x.y/z \"t\")":       "p(<a http://x.y/z a <i b>>)",
		"![alt](http://x.y/z.png)":          "p(<a http://x.y/z.png alt>)",
		"<http://x.y> <a@b.cd>":             "p(<a http://x.y http://x.y> <a mailto:a@b.cd a@b.cd>)",
		"see www.x.yz, https://x.yz/q?a=1.": "p(see <a http://www.x.yz www.x.yz>, <a https://x.yz/q?a=1 https://x.yz/q?a=1>.)",
		"|a|b|c|\n|:-|-:|:-:|\n|1|2|\n|*x*|`y`|z|q|":         "table[1 3 2](a|b|c;1|2|;<i x>|<c y>|z)",
		"[a][1]\n\n[1]: http://x.y":                          "p(<a http://x.y a>)",
		"[1]: http://x.y \"Source\"\n\nend":                  "p([1]: http://x.y \"Source\") p(end)",
		"<b>bold</b><br>\n<div>\n*x*\n":                      "p(<b>bold</b><br>/<div>/<i x>)",
		"\\*a\\* &amp; &lt;b&gt; &copy; &nosuch; &#27; \\\\": "p(*a* & <b> © &nosuch; \x1b \\)",
		"`a\nb` `` ` ``":                                     "p(<c a b> <c `>)",
		"a\x00b\xff":                                         "p(a\uFFFDb\uFFFD)",
		"**日本語**と*x*":                                        "p(<b 日本語>と<i x>)",
	} {
		if got := draw(Parse(source)); got != want {
			t.Errorf("%q\n got %s\nwant %s", source, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for source, want := range map[string]string{
		"":                             "",
		"# T\na *b*\nc":                "T\n\na b\nc",
		"- a\n  - b\n- [x] c":          "- a\n  - b\n- [x] c",
		"9. a\n\n   b\n10. c":          "9. a\n\n   b\n\n10. c",
		"> a\n>\n> ```\n> x\n>  y":     "> a\n>\n> x\n>  y",
		"[a](http://x.y) <http://x.y>": "a (http://x.y) http://x.y",
		"[x.y](https://x.y/) ![](u)":   "x.y u",
		"|a|b|\n|-|-|\n|1|2|":          "a | b\n1 | 2",
		"a\n***\nb":                    "a\n\n---\n\nb",
	} {
		if got := Plain(Parse(source)); got != want {
			t.Errorf("%q\n got %q\nwant %q", source, got, want)
		}
	}
}

func TestLongTextsAreParsedWhole(t *testing.T) {
	source := strings.Repeat("Some *text* here. ", 5000) + "\n\n```\n" + strings.Repeat("code line\n", 5000) + "```\n\nend"
	got := Parse(source)
	if last := got[len(got)-1]; drawBlock(last) != "p(end)" {
		t.Errorf("unexpected last block %s", drawBlock(last))
	}
	if n := strings.Count(Plain(got), "code line"); n != 5000 {
		t.Errorf("got %d lines of code, want 5000", n)
	}
	if len(got) != 3 || strings.Count(got[1].Text, "\n") != 4999 {
		t.Errorf("%d blocks, want a paragraph, code and a paragraph", len(got))
	}
	list := Parse(strings.Repeat("7. item\n", 1000) + "\n" + strings.Repeat("- item\n", 5000))
	if len(list) < 2 || len(list[len(list)-1].Blocks) != 5000 {
		t.Errorf("unexpected: %d blocks for two lists", len(list))
	}
	blank := Parse("```\n" + strings.Repeat("a\n\n\n", 4000) + "```")
	if len(blank) != 1 || blank[0].Text != strings.TrimSuffix(strings.Repeat("a\n\n\n", 4000), "\n") {
		t.Errorf("unexpected: %d blocks of code with blank lines", len(blank))
	}
	huge := strings.Repeat("word ", maxTotal/5+1000) + "end"
	if got := Plain(Parse(huge)); !strings.HasSuffix(got, "end") || visible(got) != visible(huge) {
		t.Errorf("got %d of %d characters of a huge text", len(visible(got)), len(visible(huge)))
	}
}

// TestSpecExamples: no letter or digit that the CommonMark examples show is lost. The examples come
// with the library's source.
func TestSpecExamples(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/goldmark").Output()
	if err != nil {
		t.Skipf("the library's source is missing: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "_test", "spec.json"))
	if err != nil {
		t.Skipf("the examples are missing: %v", err)
	}
	var examples []struct {
		Markdown, HTML string
		Example        int
	}
	if err := json.Unmarshal(data, &examples); err != nil || len(examples) < 600 {
		t.Fatalf("got %d examples, %v", len(examples), err)
	}
	tag := regexp.MustCompile(`(?s)<[^>]*>`)
	for _, e := range examples {
		if e.Example == 161 { // HTML in the standard, a code block for us
			continue
		}
		want := visible(html.UnescapeString(tag.ReplaceAllString(e.HTML, "")))
		if got := visible(Plain(Parse(e.Markdown))); !follows(want, got) {
			t.Errorf("example %d: %q shows %q, want %q", e.Example, e.Markdown, got, want)
		}
	}
}

// follows reports whether got contains the characters of want in order.
func follows(want, got string) bool {
	for _, r := range want {
		i := strings.IndexRune(got, r)
		if i < 0 {
			return false
		}
		got = got[i+utf8.RuneLen(r):]
	}
	return true
}

// hostile returns texts that are expensive to parse for their size.
func hostile(size int) map[string]string {
	texts := map[string]string{"links": "[a](", "nested links": "[", "stars": "*a_", "strong": "**a ", "quotes": ">", "lists": "- ", "ticks": "`a``b```c",
		"angles": "<", "bangs": "![", "table": "|a", "tildes": "~~a", "underscores": "a_b__c*", "brackets": "[]", "escapes": "\\", "refs": "[a]: b\n",
		"entities": "&#x", "items": "1. a\n", "fences": "```\n~~~\n", "deep": " - a\n", "mails": "a@", "www": "www.a", "urls": "http://a.b/("}
	for name, s := range texts {
		texts[name] = strings.Repeat(s, size/len(s))
	}
	var steps strings.Builder
	for i := 0; steps.Len() < size; i++ {
		steps.WriteString(strings.Repeat(" ", 2*(i%200)) + "- a\n")
	}
	texts["stairs"] = steps.String()
	texts["images in images"] = strings.Repeat("![", size/6) + strings.Repeat("](u)", size/6)
	texts["columns"] = strings.Repeat("|a", size/8) + "\n" + strings.Repeat("|-", size/8) + "\n" + strings.Repeat("|\n", size/8)
	return texts
}

// hostileSize makes hostile texts take several pieces.
const hostileSize = 3 * maxPiece

func TestHostileTextsTakeTimeInProportion(t *testing.T) {
	began := time.Now()
	plain := strings.Repeat("Some *words* of a [text](http://x.example) here.\n\n", 5000)
	Parse(plain)
	fair := time.Since(began)*300*time.Duration(hostileSize)/time.Duration(len(plain)) + time.Second
	for name, source := range hostile(hostileSize) {
		began := time.Now()
		Plain(Parse(source))
		if took := time.Since(began); took > fair {
			t.Errorf("%s: took %v for %d bytes, want at most %v", name, took, len(source), fair)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

// visible returns the letters and digits of a text.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func TestDeepTextsAreFlat(t *testing.T) {
	for _, source := range []string{strings.Repeat(">", 500) + "end", strings.Repeat("- ", 500) + "end", strings.Repeat("*_", 300) + "end" + strings.Repeat("_*", 300), strings.Repeat("![", 400) + "end" + strings.Repeat("](u)", 400)} {
		blocks := Parse(source)
		checkTree(t, blocks, 0)
		if got := visible(Plain(blocks)); strings.TrimRight(got, "u") != "end" {
			t.Errorf("%.20q… shows %q", source, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range hostile(200) {
		f.Add(s)
	}
	f.Add("# a\n- [x] b\n> c\n```d\ne\n```\n|f|\n|-|\n|g|\n[h](i) ![j](k) ~~l~~ &amp; \\* <m>")
	f.Fuzz(func(t *testing.T, source string) {
		blocks := Parse(source)
		if plain := Plain(blocks); !utf8.ValidString(plain) {
			t.Fatalf("%q was parsed as %q", source, plain)
		}
		checkTree(t, blocks, 0)
	})
}

// checkTree checks what renderers rely on.
func checkTree(t *testing.T, blocks []Block, depth int) {
	t.Helper()
	if depth > maxDepth+1 {
		t.Fatalf("blocks are nested %d deep", depth)
	}
	for _, b := range blocks {
		for _, row := range b.Rows {
			if len(row) != len(b.Align) {
				t.Fatalf("a row has %d cells in a table of %d columns", len(row), len(b.Align))
			}
		}
		for _, inner := range b.Blocks {
			if (b.Kind == List) != (inner.Kind == Item) {
				t.Fatalf("a block of kind %d holds one of kind %d", b.Kind, inner.Kind)
			}
		}
		if b.Kind == Heading && (b.Level < 1 || b.Level > 6) {
			t.Fatalf("a heading of level %d", b.Level)
		}
		checkInlines(t, b.Inlines, 0)
		checkTree(t, b.Blocks, depth+1)
	}
}

func checkInlines(t *testing.T, in Inlines, depth int) {
	t.Helper()
	if depth > 2*maxDepth+1 {
		t.Fatalf("styles are nested %d deep", depth)
	}
	for _, i := range in {
		checkInlines(t, i.Inlines, depth+1)
	}
}

// TestParseAtOnce: concurrent parsing gives the same results as parsing alone.
func TestParseAtOnce(t *testing.T) {
	texts := []string{
		"[a]: http://x.example\n\n[a] and ~~b~~", "[a] alone\n\n- [x] c", "|a|b|\n|-|-|\n|1|2|\n\n[a]", "1. d\n\n   `e`\n\nhttp://y.example",
	}
	var want []string
	for _, text := range texts {
		want = append(want, draw(Parse(text)))
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 100 {
				at := (i + n) % len(texts)
				if got := draw(Parse(texts[at])); got != want[at] {
					t.Errorf("got %s, want %s as when parsed alone", got, want[at])
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkParse(b *testing.B) {
	source := "# Title\n\nSome *words* of a [text](http://x.example) here.\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n"
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		Parse(source)
	}
}
