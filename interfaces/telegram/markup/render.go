// Package markup renders Markdown for Telegram: as messages in Telegram's HTML, split to its limits, and as rich
// messages for tables.
//
// It makes no calls.
package markup

import (
	"net/url"
	"slices"
	"strings"

	"synthbot/core/markdown"
	"synthbot/core/txt"
)

// Limits of a message. Texts are measured in UTF-16 units, without HTML tags.
const (
	MaxText     = 4096
	MaxCaption  = 1024
	maxEntities = 100 // styles, links, quotes and code blocks
	maxColumn   = 24  // width of a table's column, so that a long cell does not fill the message with spaces
)

// render renders Markdown as Telegram's HTML. Tags are balanced, and nested only as Telegram allows: styles end before
// code and begin again after it, and a quote within a quote is part of that. units is the length of the visible text.
func render(source string) (html string, units int) {
	r := renderer{}
	r.blocks(markdown.Parse(source), false)
	return r.out.String(), r.units
}

type renderer struct {
	out      strings.Builder
	units    int
	indent   string   // before each line but the first of a block
	breaks   string   // the tag for a line break; "": "\n"
	styles   []string // open inline tags
	links    int      // number of open links
	quoted   bool
	entities int
}

func (r *renderer) raw(s string) { r.out.WriteString(s) }

func (r *renderer) text(s string) {
	r.units += markdown.UTF16(s)
	r.raw(escape(s))
}

var special = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape escapes a text for use between tags or in an attribute.
func escape(s string) string { return special.Replace(s) }

func (r *renderer) lineBreaks(n int) {
	if r.breaks != "" {
		r.raw(strings.Repeat(r.breaks, n))
		return
	}
	r.text(strings.Repeat("\n", n) + r.indent)
}

func (r *renderer) blocks(list []markdown.Block, tight bool) {
	for i, b := range list {
		switch {
		case i > 0 && tight:
			r.lineBreaks(1)
		case i > 0:
			r.lineBreaks(2)
		}
		r.block(b)
	}
}

func (r *renderer) block(b markdown.Block) {
	switch b.Kind {
	case markdown.Heading:
		r.style("b", b.Inlines)
	case markdown.List:
		r.list(b)
	case markdown.Quote:
		r.quote(b)
	case markdown.Code:
		r.code(b.Text, b.Language)
	case markdown.Table:
		var lines []string // as a code block, so that columns are aligned
		for _, row := range b.Grid(maxColumn) {
			lines = append(lines, strings.TrimRight(strings.Join(row, " | "), " "))
		}
		r.code(strings.Join(lines, "\n"), "")
	case markdown.Rule:
		r.text("———")
	default:
		r.inlines(b.Inlines)
	}
}

func (r *renderer) quote(b markdown.Block) {
	if r.quoted || !r.addEntity() {
		r.blocks(b.Blocks, false)
		return
	}
	r.quoted = true
	r.raw("<blockquote>")
	r.blocks(b.Blocks, false)
	r.raw("</blockquote>")
	r.quoted = false
}

func (r *renderer) list(b markdown.Block) {
	outer := r.indent
	for i, item := range b.Blocks {
		if i > 0 {
			r.indent = outer
			r.lineBreaks(1)
			if !b.Tight {
				r.lineBreaks(1)
			}
		}
		mark := strings.NewReplacer("- ", "• ", "[ ]", "☐", "[x]", "☑").Replace(item.Mark())
		r.text(mark)
		r.indent = outer + strings.Repeat(" ", markdown.UTF16(mark))
		r.blocks(item.Blocks, b.Tight)
	}
	r.indent = outer
}

// addEntity counts an entity. It returns false if the message would have too many.
func (r *renderer) addEntity() bool {
	r.entities++
	return r.entities <= maxEntities
}

func (r *renderer) code(text, language string) {
	if text == "" || !r.addEntity() {
		r.text(text)
		return
	}
	if language == "" {
		r.outsideStyles("<pre>", text, "</pre>")
		return
	}
	r.outsideStyles(`<pre><code class="language-`+escape(language)+`">`, text, "</code></pre>")
}

func (r *renderer) inlines(list markdown.Inlines) {
	for _, in := range list {
		r.inline(in)
	}
}

func (r *renderer) inline(in markdown.Inline) {
	switch in.Kind {
	case markdown.Text:
		r.text(in.Text)
	case markdown.Break:
		r.lineBreaks(1)
	case markdown.CodeSpan:
		if in.Text == "" || r.links > 0 || !r.addEntity() {
			r.text(in.Text)
			return
		}
		r.outsideStyles("<code>", in.Text, "</code>")
	case markdown.Strong:
		r.style("b", in.Inlines)
	case markdown.Emphasis:
		r.style("i", in.Inlines)
	case markdown.Strike:
		r.style("s", in.Inlines)
	case markdown.Link:
		r.link(in)
	}
}

// style writes a text in a style, unless that is already open.
func (r *renderer) style(tag string, in markdown.Inlines) {
	if slices.Contains(r.styles, tag) || !r.addEntity() {
		r.inlines(in)
		return
	}
	r.styles = append(r.styles, tag)
	r.raw("<" + tag + ">")
	r.inlines(in)
	r.raw("</" + tagName(tag) + ">")
	r.styles = r.styles[:len(r.styles)-1]
}

// outsideStyles writes a text between tags. It closes the open styles before and opens them again afterwards.
func (r *renderer) outsideStyles(begin, text, end string) {
	for _, tag := range slices.Backward(r.styles) {
		r.raw("</" + tagName(tag) + ">")
	}
	r.raw(begin)
	r.text(text)
	r.raw(end)
	for _, tag := range r.styles {
		r.entities++
		r.raw("<" + tag + ">")
	}
}

// tagName returns the name of a start tag, without attributes.
func tagName(tag string) string {
	n, _, _ := strings.Cut(tag, " ")
	return n
}

// link writes a link if Telegram accepts its address, or else the text followed by the address.
func (r *renderer) link(in markdown.Inline) {
	label := in.Inlines.Plain()
	switch {
	case label == "" && in.URL != "":
		r.text(in.URL)
	case in.Bare():
		r.inlines(in.Inlines)
	case !Linkable(in.URL) || r.links > 0 || r.entities >= maxEntities || strings.TrimSpace(label) == "":
		r.inlines(in.Inlines)
		r.text(" (" + in.URL + ")")
	default:
		r.links++
		r.style(`a href="`+escape(in.URL)+`"`, in.Inlines)
		r.links--
	}
}

// Linkable reports whether Telegram accepts a link to the address.
func Linkable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || len(address) > 2048 || strings.ContainsAny(address, " \n\t<>\"") {
		return false
	}
	host := u.Hostname()
	switch u.Scheme {
	case "http", "https":
		return strings.Contains(host, ".") && !strings.HasPrefix(host, ".") && !strings.HasSuffix(host, ".")
	case "tg":
		return host != ""
	}
	return false
}

// Part is one message of a long text.
type Part struct {
	Source string // Markdown
	HTML   string
}

// Plain returns the part as plain text.
func (p Part) Plain() string {
	text := strings.TrimSpace(markdown.Plain(markdown.Parse(p.Source)))
	if text == "" || markdown.UTF16(text) > markdown.UTF16(p.Source) { // Source fits
		return p.Source
	}
	return text
}

// Parts splits a text into messages: the first of at most first units, all others of at most MaxText. The same text
// always gives the same parts.
func Parts(text string, first int) []Part {
	text = Visible(text)
	list := markdown.Split(text, first, markdown.UTF16)
	if first < MaxText && len(list) > 1 {
		if rest, ok := strings.CutPrefix(text, list[0]); ok { // else a code block was split and closed
			others := markdown.Split(rest, MaxText, markdown.UTF16)
			return append(renderParts(list[:1], first), renderParts(others, MaxText)...)
		}
	}
	return renderParts(list, first)
}

// renderParts renders sources, and splits again those that are longer than limit when rendered.
func renderParts(sources []string, limit int) []Part {
	var list []Part
	for _, source := range sources {
		html, units := render(source)
		if units <= limit {
			list = append(list, Part{source, html})
			continue
		}
		smaller := markdown.Split(source, max(markdown.UTF16(source)*2/3, 1), markdown.UTF16)
		if len(smaller) < 2 {
			list = append(list, Part{source, escape(source)})
			continue
		}
		list = append(list, renderParts(smaller, limit)...)
	}
	return list
}

// Visible removes what cannot be sent: invalid UTF-8, control characters, and characters that change the direction of
// text.
func Visible(s string) string { return strings.TrimSpace(txt.Lines(s)) }
