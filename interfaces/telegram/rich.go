package telegram

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/telegram/botapi"
)

// Rich messages are made of blocks: headings, lists, tables. This file reads
// those of others as text, and writes texts that hold a table as one.

// Bounds of rich messages, as the platform has them; what is read is bounded by
// their depth too.
const (
	maxRichDepth   = 16
	maxRichBlocks  = 500
	maxRichColumns = 20
)

// richMessage is a rich message of an update. Its texts come in several shapes,
// and what has none of them is left out.
type richMessage struct {
	Blocks []richBlock `json:"blocks"`
}

type richBlock struct {
	Type       string          `json:"type"`
	Text       json.RawMessage `json:"text"`
	Summary    json.RawMessage `json:"summary"`
	Credit     json.RawMessage `json:"credit"`
	Caption    json.RawMessage `json:"caption"`
	Expression string          `json:"expression"`
	Blocks     []richBlock     `json:"blocks"`
	Items      []struct {
		Label    string      `json:"label"`
		Blocks   []richBlock `json:"blocks"`
		Checkbox bool        `json:"has_checkbox"`
		Checked  bool        `json:"is_checked"`
	} `json:"items"`
	Cells [][]struct {
		Text json.RawMessage `json:"text"`
	} `json:"cells"`
}

// readRich is a rich message as text; "" for what is none.
func readRich(raw json.RawMessage) string {
	var m richMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return ""
	}
	return cut(strings.Join(richLines(m.Blocks, 0), "\n"), core.MaxText)
}

func richLines(blocks []richBlock, depth int) (lines []string) {
	if depth > maxRichDepth {
		return nil
	}
	add := func(s string) {
		s = strings.TrimSpace(s)
		if s != "" {
			lines = append(lines, s)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		add(richText(b.Summary, 0))
		add(richText(b.Text, 0))
		add(b.Expression)
		for _, item := range b.Items {
			mark := strings.TrimSpace(item.Label)
			if item.Checkbox {
				mark = map[bool]string{false: "☐", true: "☑"}[item.Checked]
			}
			add(mark + " " + strings.Join(richLines(item.Blocks, depth+1), "\n"))
		}
		for _, row := range b.Cells {
			var cells []string
			for _, c := range row {
				cells = append(cells, strings.TrimSpace(richText(c.Text, 0)))
			}
			add(strings.Join(cells, " | "))
		}
		lines = append(lines, richLines(b.Blocks, depth+1)...)
		add(richText(b.Caption, 0))
		add(richText(b.Credit, 0))
		noun := richNoun(b.Type)
		if noun != "" {
			add("[" + noun + "]")
		}
	}
	return lines
}

// richNoun names a block without text.
func richNoun(kind string) string {
	switch kind {
	case "photo", "video", "audio", "animation", "map":
		return kind
	case "voice_note":
		return "voice"
	}
	return ""
}

// richText reads a text: a string, a list of texts, or an object that holds one.
func richText(raw json.RawMessage, depth int) string {
	if len(raw) == 0 || depth > 2*maxRichDepth {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // it was read as JSON before
		return s
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		all := strings.Builder{}
		for _, part := range list {
			all.WriteString(richText(part, depth+1))
		}
		return all.String()
	case '{':
		var o struct {
			Text        json.RawMessage `json:"text"`
			Alternative string          `json:"alternative_text"`
			Expression  string          `json:"expression"`
			URL         string          `json:"url"`
		}
		_ = json.Unmarshal(raw, &o) // what has another shape is left out
		text := richText(o.Text, depth+1) + o.Alternative + o.Expression
		if !shows(text, o.URL) {
			text += beside(o.URL)
		}
		return text
	}
	return ""
}

// renderRich writes a text that holds a table in the HTML of rich messages; ""
// for what holds none, or cannot be one.
func renderRich(source string) string {
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

// written sends a text: one with a table as a rich message, where that is
// wanted and the server knows how; everything else with styles.
func (d *delivery) written(ctx context.Context, r botapi.Request, p part) (json.RawMessage, error) {
	html := ""
	if d.opt.Config.RichTables && !d.noRich.Load() {
		html = renderRich(p.source)
	}
	if html == "" {
		return d.styled(ctx, r, "text", p)
	}
	rich := r
	rich.Params = botapi.Params{}
	for key, value := range r.Params {
		rich.Params[key] = value
	}
	if err := rich.Params.AddJSON("rich_message", map[string]string{"html": html}); err != nil {
		return nil, err
	}
	if r.Method == "sendMessage" {
		rich.Method = "sendRichMessage"
	}
	raw, err := d.api.Do(ctx, rich)
	switch {
	case botapi.IsCode(err, 404): // an older server
		d.noRich.Store(true)
	case !aboutWords(err) || botapi.Says(err, "not modified"):
		return raw, err
	}
	d.log.Warn("sent again without its table", "chat", r.Chat, "err", err)
	return d.styled(ctx, r, "text", p)
}
