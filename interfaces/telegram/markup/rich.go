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

// Rich writes a text that holds a table in the HTML of rich messages; ""
// for what holds none, or cannot be one.
func Rich(source string) string {
	blocks := markdown.Parse(source)
	if !hasTable(blocks) {
		return ""
	}
	r := richRenderer{renderer: renderer{breaks: "<br>"}}
	r.blocks(blocks, 1)
	if r.count > maxRichBlocks || r.tooLarge {
		return ""
	}
	return r.out.String()
}

func hasTable(list []markdown.Block) bool {
	for _, b := range list {
		if b.Kind == markdown.Table || hasTable(b.Blocks) {
			return true
		}
	}
	return false
}

// richRenderer writes blocks. Inline text is written as elsewhere.
type richRenderer struct {
	renderer
	count    int
	tooLarge bool
}

func (r *richRenderer) blocks(list []markdown.Block, depth int) {
	if depth > maxRichDepth-6 { // styles nest within
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
	r.raw("</" + name(tag) + ">")
}

func (r *richRenderer) block(b markdown.Block, depth int) {
	switch b.Kind {
	case markdown.Heading:
		r.element("h"+strconv.Itoa(min(max(b.Level, 1), 6)), func() { r.inlines(b.Inlines) })
	case markdown.List:
		r.list(b, depth)
	case markdown.Quote:
		r.element("blockquote", func() { r.blocks(b.Blocks, depth+1) })
	case markdown.Code:
		r.code(b.Text, b.Info)
	case markdown.Table:
		r.table(b)
	case markdown.Rule:
		r.raw("<hr/>")
	default:
		r.element("p", func() { r.inlines(b.Inlines) })
	}
}

func (r *richRenderer) code(text, info string) {
	r.element("pre", func() {
		l := language(info)
		if l != "" {
			r.raw(`<code class="language-` + escape(l) + `">`)
			defer r.raw("</code>")
		}
		r.text(text)
	})
}

func (r *richRenderer) list(b markdown.Block, depth int) {
	tag := "ul"
	if b.Ordered {
		tag = `ol start="` + strconv.Itoa(b.Start) + `"`
	}
	r.element(tag, func() {
		for _, item := range b.Blocks {
			r.count++
			r.element("li", func() { r.item(item, depth) })
		}
	})
}

func (r *richRenderer) item(item markdown.Block, depth int) {
	switch item.Task {
	case markdown.Open:
		r.raw(`<input type="checkbox">`)
	case markdown.Done:
		r.raw(`<input type="checkbox" checked>`)
	}
	if len(item.Blocks) > 0 && item.Blocks[0].Kind == markdown.Paragraph {
		r.inlines(item.Blocks[0].Inlines)
		r.blocks(item.Blocks[1:], depth+2)
		return
	}
	r.blocks(item.Blocks, depth+2)
}

func (r *richRenderer) table(b markdown.Block) {
	if len(b.Align) > maxRichColumns {
		r.tooLarge = true
		return
	}
	r.element("table bordered", func() {
		for i, row := range b.Rows {
			r.count++
			r.element("tr", func() { r.row(row, b.Align, i == 0) })
		}
	})
}

func (r *richRenderer) row(row []markdown.Inlines, align []markdown.Align, head bool) {
	tag := "td"
	if head {
		tag = "th"
	}
	for j, cell := range row {
		to := map[markdown.Align]string{markdown.AlignCenter: ` align="center"`,
			markdown.AlignRight: ` align="right"`}[align[j]]
		r.element(tag+to, func() { r.inlines(cell) })
	}
}
