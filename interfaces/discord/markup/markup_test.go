package markup

import (
	"strings"
	"synthbot/core/markdown"
	"testing"
)

// TestRender: Markdown becomes the platform's dialect.
func TestRender(t *testing.T) {
	for in, want := range map[string]string{
		"# A\n## B\n##### C":               "# A\n## B\n**C**",
		"a **b** *c* ~~d~~ `e`":            "a **b** *c* ~~d~~ `e`",
		"snake_case_name and 2 * 3":        `snake\_case\_name and 2 \* 3`,
		"- a\n- b\n  1. c\n  2. d":         "- a\n- b\n  1. c\n  2. d",
		"- [x] done\n- [ ] open":           "- ☑ done\n- ☐ open",
		"> a\n>\n> > b":                    "> a\n> \n> ┃ b",
		"| a | b |\n|---|--:|\n| 1 | 22 |": "```\na │  b\n──┼───\n1 │ 22\n```",
		"```go\nx\n```":                    "```go\nx\n```",
		"[x](https://a.b) <https://c.d>":   "[x](https://a.b) https://c.d",
		"[x](javascript:y)":                "x (javascript:y)",
		"<@123> <#5> <:a:1234567> <t:5:R>": "<@123> <#5> <:a:1234567> <t:5:R>",
		"a\n\n---\n\nb":                    "a\n\n⎯⎯⎯⎯⎯⎯⎯⎯\n\nb",
		"\\# no title":                     `\# no title`,
		"1\\. no list":                     `1\. no list`,
		"see https://a.b/c_d_e now":        "see https://a.b/c_d_e now",
		"||spoiler||":                      `\|\|spoiler\|\|`,
		"![cat](https://a.b/c.png)":        "[cat](https://a.b/c.png)",
		"    x := `a`":                     "```\nx := `a`\n```",
		"line one\nline two":               "line one\nline two",
		"~~~\n````\nx\n````\n~~~":          "```\n`\u200b`\u200b``\nx\n`\u200b`\u200b``\n```",
		"a ````` ``` ````` b":              "a `` `\u200b`\u200b` `` b",
	} {
		if got := (Writer{}).Text(in); got != want {
			t.Errorf("%q renders as\n%s\nwant\n%s", in, got, want)
		}
	}
}

// TestRenderQuietly: links without previews are put in angle brackets, except in code.
func TestRenderQuietly(t *testing.T) {
	for in, want := range map[string]string{
		"see https://a.b/c_d.":                  "see <https://a.b/c_d>.",
		"**http://localhost/x**, <https://c.d>": "**<http://localhost/x>**, <https://c.d>",
		"[x](https://a.b) ![](https://c.d)":     "[x](<https://a.b>) <https://c.d>",
		"[x](https://a.b/c_(d)) [y](c:/a_b)":    "x (<https://a.b/c_(d)>) y (c:/a\\_b)",
		"[x](<https://a.b https://c.d>)":        "x (<https://a.b> <https://c.d>)",
		"[https://a.b](https://c.d)":            "<https://a.b> (<https://c.d>)",
		"[https://a.b c](<https://a.b c>)":      "<https://a.b> c",
		"HTTPS://A.B https&#58;//c":             "<HTTPS://A.B> <https://c>",
		"`https://a.b`":                         "`https://a.b`",
		"```\nhttps://a.b\n```":                 "```\nhttps://a.b\n```",
		"<@123> <t:5:R> a@b.example":            "<@123> <t:5:R> a@b.example",
	} {
		if got := (Writer{Quiet: true}).Text(in); got != want {
			t.Errorf("%q renders as\n%s\nwant\n%s", in, got, want)
		}
	}
}

// TestQuoteOfSeveralMessages: a long quote is marked as one in each of its messages.
func TestQuoteOfSeveralMessages(t *testing.T) {
	long := strings.Repeat("words ", 900)
	for source, mark := range map[string]string{
		"> " + long: "> ", "> > " + long: "> ┃ ", "> > > " + long: "> ┃ ┃ ", "> - " + long: "> ",
	} {
		list := Messages(source)
		for i, p := range list {
			if !strings.HasPrefix(p, mark) || len(list) > 4 {
				t.Errorf("%.8q: part %d of %d begins with %.20q, want %q", source, i, len(list), p, mark)
			}
		}
	}
}

// TestGrowing: a growing text ends with a mark and closes its code block. A blank one stays empty.
func TestGrowing(t *testing.T) {
	for in, want := range map[string]string{
		"half a": "half a ▍", "```\nhalf": "```\nhalf\n``` ▍", "": "", " ": "",
	} {
		if got := Growing(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzRender: every part fits into a message, is not blank, and leaves no code block open.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"# a\n| b | c |\n|-|-|\n| d | e |", "> > a\n```\nb", "- [ ] x\n  - y", "**a *b** c*", strings.Repeat("x", 3000), "`` ` ``", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n := markdown.UTF16(Growing(s)); n > MaxContent {
			t.Fatalf("a growing text has %d characters, want at most %d", n, MaxContent)
		}
		for i, p := range Messages(s) {
			if n := markdown.UTF16(p); n > MaxContent || strings.TrimSpace(p) == "" {
				t.Fatalf("part %d has %d characters or is blank: %q", i, n, p)
			}
			if strings.Count(p, "```")%2 != 0 {
				t.Fatalf("part %d has an open code block: %q", i, p)
			}
		}
	})
}
