// Package markup converts Markdown into Discord's dialect, and splits it into messages.
package markup

import (
	"math"
	"strings"

	"synthbot/core/markdown"
	"synthbot/core/txt"
)

// MaxContent is the maximum length of a message in UTF-16 units. Discord counts in characters, which are never more.
const MaxContent = 2000

// Writer converts Markdown. Headings have three levels, quotes have one, and tables become blocks of code.
type Writer struct {
	Quiet bool // write links so that Discord shows no previews of them
}

// Messages converts a text, with previews of links, and splits it into messages.
func Messages(source string) []string { return Writer{}.Messages(source) }

// Text converts a text.
func (w Writer) Text(source string) string {
	return strings.Trim(strings.Join(w.blocks(markdown.Parse(source), false), "\n"), "\n")
}

// Messages converts a text and splits it into messages.
func (w Writer) Messages(source string) []string {
	return markdown.Split(w.Text(source), MaxContent, markdown.UTF16)
}

// Single converts a text into one message, visibly shortened if it is too long.
func Single(source string) string {
	text := Writer{}.Text(source)
	if markdown.UTF16(text) <= MaxContent {
		return text
	}
	return markdown.Split(text, MaxContent-2, markdown.UTF16)[0] + " …"
}

// growingMark ends a text that is still being written.
const growingMark = " ▍"

// Growing converts a text that is still being written into one message, shortened if it is too long. It ends
// with a mark that no finished text has. It is empty if the text has nothing to show.
func Growing(source string) string {
	parts := markdown.Split(Writer{}.Text(source), MaxContent-markdown.UTF16(growingMark), markdown.UTF16)
	if len(parts) == 0 {
		return ""
	}
	return parts[0] + growingMark
}

// punctuation matches characters with which Discord's markup, mentions, times, emoji and links are written.
var punctuation = txt.Pattern("[\\\\*_~|`<>#\\[\\]():@]")

// Literal escapes a text so that Discord shows it unchanged, without links.
func Literal(text string) string {
	text = punctuation().ReplaceAllString(text, `\$0`)
	return strings.Join(escapeLineStarts(strings.Split(text, "\n")), "\n")
}

func (w Writer) blocks(list []markdown.Block, tight bool) []string {
	var lines []string
	for i, b := range list {
		// Discord itself adds space below a heading.
		if i > 0 && !tight && list[i-1].Kind != markdown.Heading {
			lines = append(lines, "")
		}
		lines = append(lines, w.block(b)...)
	}
	return lines
}

func (w Writer) block(b markdown.Block) []string {
	switch b.Kind {
	case markdown.Heading:
		return w.heading(b)
	case markdown.List:
		return w.blocks(b.Blocks, b.Tight)
	case markdown.Item:
		return w.item(b)
	case markdown.Quote:
		return w.quote(b)
	case markdown.Code:
		return codeBlock(b.Language, b.Text)
	case markdown.Table:
		return codeBlock("", tableText(b))
	case markdown.Rule:
		return []string{"⎯⎯⎯⎯⎯⎯⎯⎯"}
	}
	return escapeLineStarts(strings.Split(w.inlines(b.Inlines), "\n"))
}

// heading writes a heading. Discord has three levels; deeper ones become bold text.
func (w Writer) heading(b markdown.Block) []string {
	text := strings.ReplaceAll(w.inlines(b.Inlines), "\n", " ")
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case b.Level <= 3:
		return []string{strings.Repeat("#", b.Level) + " " + text}
	}
	return []string{"**" + strings.ReplaceAll(text, "**", "") + "**"}
}

func (w Writer) item(b markdown.Block) []string {
	mark := strings.NewReplacer("[ ]", "☐", "[x]", "☑").Replace(b.Mark())
	if len(b.Blocks) == 0 {
		return []string{strings.TrimRight(mark, " ")}
	}
	lines := w.blocks(b.Blocks, b.Tight)
	for i, l := range lines {
		switch {
		case i == 0:
			lines[i] = mark + l
		case l != "":
			lines[i] = "  " + l
		}
	}
	return lines
}

// maxQuoted is the maximum length of a quoted line, in UTF-16 units. Lines of up to this length are not
// split between messages. Longer ones are split here, so that each part gets the mark.
const maxQuoted = MaxContent * 3 / 5

// quote writes a quote. Discord has one level; deeper ones get a bar.
func (w Writer) quote(b markdown.Block) []string {
	var lines []string
	for _, l := range w.blocks(b.Blocks, false) {
		mark := "> "
		if inner, ok := strings.CutPrefix(l, mark); ok {
			mark, l = "> ┃ ", inner
		}
		for strings.HasPrefix(l, "┃ ") {
			mark, l = mark+"┃ ", strings.TrimPrefix(l, "┃ ")
		}
		pieces := []string{l}
		if markdown.UTF16(l) > maxQuoted {
			pieces = markdown.Split(l, maxQuoted, markdown.UTF16)
		}
		for _, piece := range pieces {
			lines = append(lines, mark+piece)
		}
	}
	return lines
}

// codeBlock writes a block of code. A fence in the text must not end it.
func codeBlock(language, text string) []string {
	if len(language) > 20 {
		language = ""
	}
	return strings.Split("```"+language+"\n"+breakMark(text, "```")+"\n```", "\n")
}

func tableText(b markdown.Block) string {
	var lines []string
	for i, row := range b.Grid(math.MaxInt) {
		lines = append(lines, strings.TrimRight(strings.Join(row, " │ "), " "))
		if i > 0 {
			continue
		}
		for j, cell := range row {
			row[j] = strings.Repeat("─", txt.Width(cell))
		}
		lines = append(lines, strings.Join(row, "─┼─"))
	}
	return strings.Join(lines, "\n")
}

func (w Writer) inlines(in markdown.Inlines) string {
	var b strings.Builder
	for _, i := range in {
		b.WriteString(w.inline(i))
	}
	return b.String()
}

func (w Writer) inline(i markdown.Inline) string {
	switch i.Kind {
	case markdown.Text:
		return w.escape(i.Text)
	case markdown.Emphasis:
		return wrap("*", w.inlines(i.Inlines))
	case markdown.Strong:
		return wrap("**", w.inlines(i.Inlines))
	case markdown.Strike:
		return wrap("~~", w.inlines(i.Inlines))
	case markdown.CodeSpan:
		return codeSpan(i.Text)
	case markdown.Link:
		return w.link(i)
	}
	return "\n"
}

// wrap puts marks around a text, within the white space at its ends.
func wrap(mark, text string) string {
	inner := strings.TrimSpace(text)
	if inner == "" {
		return text
	}
	at := strings.Index(text, inner)
	return text[:at] + mark + inner + mark + text[at+len(inner):]
}

func codeSpan(text string) string {
	if !strings.Contains(text, "`") {
		return "`" + text + "`"
	}
	return "`` " + breakMark(text, "``") + " ``"
}

// breakMark breaks up the marks in a text with invisible characters, so that they do not end the code.
func breakMark(text, mark string) string {
	for strings.Contains(text, mark) {
		text = strings.ReplaceAll(text, mark, "`\u200b"+mark[1:])
	}
	return text
}

// link writes a link. If Discord would not accept its address, text and address are written one after the other.
func (w Writer) link(i markdown.Inline) string {
	label := w.inlines(i.Inlines)
	plain := i.Inlines.Plain()
	switch {
	case i.Bare() && isWebAddress(plain):
		return w.address(plain)
	case i.Bare():
		return label
	case strings.TrimSpace(plain) == "":
		return w.address(i.URL)
	case !isWebAddress(i.URL) || strings.ContainsAny(i.URL, " ()<>\n") || strings.Contains(plain, "http"):
		return label + " (" + w.address(i.URL) + ")"
	}
	return "[" + strings.ReplaceAll(label, "\n", " ") + "](" + w.address(i.URL) + ")"
}

func isWebAddress(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

func (w Writer) address(url string) string {
	switch {
	case !isWebAddress(url) || strings.ContainsAny(url, " <>\n"):
		return w.escape(url)
	case w.Quiet:
		return "<" + url + ">"
	}
	return url
}

// unchanged matches what is not escaped: mentions, emoji, times and links. It is large, so it is
// compiled when it is first needed.
var unchanged = txt.Pattern(`<(?:@[!&]?\d{1,24}|#\d{1,24}|a?:\w{1,64}:\d{1,24}|` +
	`t:-?\d{1,14}(?::[tTdDfFR])?|/[^:<>]{1,100}:\d{1,24})>|(?i:https?)://[^\s<>]+`)

// escape escapes the characters of a text that Discord would take for markup.
func (w Writer) escape(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range unchanged().FindAllStringIndex(s, -1) {
		b.WriteString(escaper.Replace(s[at:m[0]]))
		found := s[m[0]:m[1]]
		if w.Quiet && found[0] != '<' {
			url := strings.TrimRight(found, `.,:;!?'")]`)
			found = "<" + url + ">" + found[len(url):]
		}
		b.WriteString(found)
		at = m[1]
	}
	b.WriteString(escaper.Replace(s[at:]))
	return b.String()
}

var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~~", `\~\~`, "||", `\|\|`, "`", "\\`", "](", `\](`)

// lineStart matches the beginning of a line that would be a heading, a quote or a list.
var lineStart = txt.Pattern(`^(\s*)(-?#{1,3} |>|[-*+] |\d{1,9}[.)] )`)

// escapeLineStarts escapes the lines of a paragraph that would begin a heading, a quote or a list.
func escapeLineStarts(lines []string) []string {
	for i, l := range lines {
		m := lineStart().FindStringSubmatchIndex(l)
		if m == nil {
			continue
		}
		at := m[4]
		if l[at] >= '0' && l[at] <= '9' {
			at = m[5] - 2 // before the dot
		}
		lines[i] = l[:at] + `\` + l[at:]
	}
	return lines
}
