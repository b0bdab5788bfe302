package markup

import (
	"strconv"

	"synthbot/core/markdown"
)

// Limits of rich messages.
const (
	maxRichDepth   = 16
	maxRichBlocks  = 500
	maxRichColumns = 20
)

// Rich renders a text with a table as the HTML of a rich message. It returns "" if the text has no table or exceeds the
// limits of rich messages.
func Rich(source string) string {
	r := richRenderer{renderer: renderer{breaks: "<br>"}}
	r.blocks(markdown.Parse(source), 1)
	if !r.hasTable || r.tooLarge || r.count > maxRichBlocks {
		return ""
	}
	return r.out.String()
}

// richRenderer renders blocks for rich messages. The embedded renderer renders inline text.
type richRenderer struct {
	renderer
	count    int // of blocks
	hasTable bool
	tooLarge bool
}

func (r *richRenderer) blocks(list []markdown.Block, depth int) {
	if depth > maxRichDepth-6 { // leaves room for nested styles
		r.tooLarge = true
		return
	}
	for _, b := range list {
		r.count++
		r.block(b, depth)
	}
}

func (r *richRenderer) element(tag string, body func()) {
	r.raw("<" + tag + ">")
	body()
	r.raw("</" + tagName(tag) + ">")
}

func (r *richRenderer) block(b markdown.Block, depth int) {
	switch b.Kind {
	case markdown.Heading:
		r.element("h"+strconv.Itoa(min(max(b.Level, 1), 6)), func() { r.inlines(b.Inlines) })
	case markdown.List:
		tag := "ul"
		if b.Ordered {
			tag = `ol start="` + strconv.Itoa(b.Start) + `"`
		}
		r.element(tag, func() { r.items(b.Blocks, depth) })
	case markdown.Quote:
		r.element("blockquote", func() { r.blocks(b.Blocks, depth+1) })
	case markdown.Code:
		r.element("pre", func() { r.code(b.Text, b.Language) })
	case markdown.Table:
		r.hasTable = true
		r.tooLarge = r.tooLarge || len(b.Align) > maxRichColumns
		r.element("table bordered", func() { r.rows(b) })
	case markdown.Rule:
		r.raw("<hr/>")
	default:
		r.element("p", func() { r.inlines(b.Inlines) })
	}
}

func (r *richRenderer) code(text, language string) {
	if language != "" {
		r.raw(`<code class="language-` + escape(language) + `">`)
		defer r.raw("</code>")
	}
	r.text(text)
}

func (r *richRenderer) items(items []markdown.Block, depth int) {
	for _, item := range items {
		r.count++
		r.raw("<li>" + map[markdown.Task]string{
			markdown.Open: `<input type="checkbox">`, markdown.Done: `<input type="checkbox" checked>`,
		}[item.Task])
		rest := item.Blocks
		if len(rest) > 0 && rest[0].Kind == markdown.Paragraph {
			r.inlines(rest[0].Inlines)
			rest = rest[1:]
		}
		r.blocks(rest, depth+2)
		r.raw("</li>")
	}
}

func (r *richRenderer) rows(b markdown.Block) {
	tag := "th"
	for _, row := range b.Rows {
		r.count++
		r.raw("<tr>")
		for j, cell := range row {
			r.raw("<" + tag + map[markdown.Align]string{
				markdown.AlignCenter: ` align="center"`, markdown.AlignRight: ` align="right"`,
			}[b.Align[j]] + ">")
			r.inlines(cell)
			r.raw("</" + tag + ">")
		}
		r.raw("</tr>")
		tag = "td"
	}
}
