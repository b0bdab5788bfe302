package console

import (
	"slices"
	"strings"

	"synthbot/core/markdown"
	"synthbot/core/txt"
)

type style uint16

const (
	bold style = 1 << iota
	dim
	italic
	underline
	strike
	codeColor
	nameColor
	promptColor

	promptStyle = bold | promptColor
	nameStyle   = bold | nameColor
)

// codes are the SGR parameters of the styles, in order.
const codes = "1 2 3 4 9 36 35 32"

// renderer renders texts with styles.
type renderer struct {
	plain bool // Markdown marks replace the styles
}

// styled returns a text in a style.
func (r renderer) styled(s style, text string) string {
	if s == 0 || text == "" || r.plain {
		return text
	}
	var on []string
	for i, code := range strings.Fields(codes) {
		if s&(1<<i) != 0 {
			on = append(on, code)
		}
	}
	return "\x1b[" + strings.Join(on, ";") + "m" + text + "\x1b[0m"
}

// minWidth is the assumed width of narrower terminals.
const minWidth = 4

// render returns a message of the bot for a terminal: the bot's name, then the rendered Markdown in
// lines of at most columns.
func (c *Console) render(text string, columns int) string {
	columns = max(columns, minWidth)
	name, r := c.opt.PersonaName+": ", c.text
	lead := cells(name, nameStyle)
	blocks := markdown.Parse(clean(text))
	if len(blocks) == 0 || blocks[0].Kind != markdown.Paragraph || lineWidth(lead) >= columns/2 {
		lines := r.wrapped(cells(strings.TrimSpace(name), nameStyle), columns)
		return strings.Join(append(lines, r.blocks(blocks, columns, false)...), "\n")
	}
	lines := r.wrapped(append(lead, r.flow(blocks[0].Inlines, 0)...), columns)
	if len(blocks) > 1 {
		lines = append(append(lines, ""), r.blocks(blocks[1:], columns, false)...)
	}
	return strings.Join(lines, "\n")
}

// blocks renders blocks, separated by empty lines unless they are tight.
func (r renderer) blocks(blocks []markdown.Block, columns int, tight bool) []string {
	var lines []string
	for i, b := range blocks {
		if i > 0 && !tight {
			lines = append(lines, "")
		}
		lines = append(lines, r.block(b, columns)...)
	}
	return lines
}

func (r renderer) block(b markdown.Block, columns int) []string {
	switch b.Kind {
	case markdown.Heading:
		mark := ""
		if r.plain {
			mark = strings.Repeat("#", b.Level) + " "
		}
		return r.wrapped(append(cells(mark, bold), r.flow(b.Inlines, bold|underline)...), columns)
	case markdown.List:
		return r.blocks(b.Blocks, columns, b.Tight)
	case markdown.Item:
		mark := strings.NewReplacer("- ", "• ", "[ ]", "☐", "[x]", "☑").Replace(b.Mark())
		w := txt.Width(mark)
		return r.indent(r.blocks(b.Blocks, columns-w, b.Tight), mark, strings.Repeat(" ", w), 0)
	case markdown.Quote:
		return r.indent(r.blocks(b.Blocks, columns-2, false), "│ ", "│ ", dim)
	case markdown.Code:
		return r.code(b, columns)
	case markdown.Table:
		return r.table(b, columns)
	case markdown.Rule:
		return []string{r.styled(dim, strings.Repeat("─", min(max(columns, 1), 40)))}
	}
	return r.wrapped(r.flow(b.Inlines, 0), columns)
}

func (r renderer) indent(lines []string, first, others string, s style) []string {
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, l := range lines {
		lines[i] = r.styled(s, first) + l
		first = others
	}
	return lines
}

// code indents code, and breaks only lines that are too wide.
func (r renderer) code(b markdown.Block, columns int) []string {
	var lines []string
	for l := range strings.SplitSeq(b.Text, "\n") {
		for _, row := range wrap(cells(l, codeColor), max(columns-2, 1), false) {
			lines = append(lines, "  "+r.line(row))
		}
	}
	return lines
}

func (r renderer) table(b markdown.Block, columns int) []string {
	widths, rows := make([]int, len(b.Align)), make([][][]cell, len(b.Rows))
	total := 3 * (len(b.Align) - 1)
	for i, row := range b.Rows {
		for j, in := range row {
			s := style(0)
			if i == 0 {
				s = bold
			}
			rows[i] = append(rows[i], r.flow(in, s))
			widths[j] = max(widths[j], lineWidth(rows[i][j]))
		}
	}
	for _, w := range widths {
		total += w
	}
	if total > columns {
		return r.records(rows, columns)
	}
	return r.grid(rows, widths, b.Align)
}

// grid renders a table that fits.
func (r renderer) grid(rows [][][]cell, widths []int, align []markdown.Align) []string {
	var lines []string
	for i, row := range rows {
		var parts, rules []string
		for j, c := range row {
			gap := widths[j] - lineWidth(c)
			before := map[markdown.Align]int{markdown.AlignRight: gap, markdown.AlignCenter: gap / 2}[align[j]]
			parts = append(parts, strings.Repeat(" ", before)+r.line(c)+strings.Repeat(" ", gap-before))
			rules = append(rules, strings.Repeat("─", widths[j]))
		}
		lines = append(lines, strings.TrimRight(strings.Join(parts, r.styled(dim, " │ ")), " "))
		if i == 0 {
			lines = append(lines, r.styled(dim, strings.Join(rules, "─┼─")))
		}
	}
	return lines
}

// records renders a table that is too wide as a list for each row, with a line "column: cell" for each cell.
func (r renderer) records(rows [][][]cell, columns int) []string {
	var lines []string
	for i, row := range rows[min(1, len(rows)-1):] {
		if i > 0 {
			lines = append(lines, "")
		}
		for j, c := range row {
			if len(rows) > 1 {
				c = slices.Concat(rows[0][j], cells(": ", bold), c)
			}
			lines = append(lines, r.indent(r.wrapped(c, columns-2), "• ", "  ", 0)...)
		}
	}
	return lines
}

func (r renderer) flow(in markdown.Inlines, s style) []cell {
	var out []cell
	for _, i := range in {
		switch i.Kind {
		case markdown.Text:
			out = append(out, cells(i.Text, s)...)
		case markdown.CodeSpan:
			out = append(out, r.withMarks("`", cells(i.Text, s|codeColor))...)
		case markdown.Emphasis:
			out = append(out, r.withMarks("_", r.flow(i.Inlines, s|italic))...)
		case markdown.Strong:
			out = append(out, r.withMarks("*", r.flow(i.Inlines, s|bold))...)
		case markdown.Strike:
			out = append(out, r.withMarks("~", r.flow(i.Inlines, s|strike))...)
		case markdown.Link:
			out = append(out, r.link(i, s)...)
		case markdown.Break:
			out = append(out, cell{text: "\n"})
		}
	}
	return out
}

// withMarks encloses cells in Markdown marks if there are no styles.
func (r renderer) withMarks(mark string, c []cell) []cell {
	if !r.plain {
		return c
	}
	return slices.Concat(cells(mark, 0), c, cells(mark, 0))
}

// link renders the text of a link, followed by its address if that differs.
func (r renderer) link(i markdown.Inline, s style) []cell {
	text := r.flow(i.Inlines, s|underline)
	switch {
	case len(text) == 0:
		return cells(i.URL, s|underline)
	case i.Bare():
		return text
	}
	return append(text, cells(" ("+i.URL+")", s|dim)...)
}

// cell is one grapheme with its style, or a line break.
type cell struct {
	text  string
	width int
	style style
}

func cells(text string, s style) []cell {
	var out []cell
	for g := range txt.Graphemes(strings.ReplaceAll(txt.Lines(text), "\t", "    ")) {
		out = append(out, cell{g, txt.Columns(g), s})
	}
	return out
}

func lineWidth(line []cell) int {
	n := 0
	for _, c := range line {
		n += c.width
	}
	return n
}

// rows returns a text in a style, broken between words.
func (r renderer) rows(text string, columns int, s style) (rows []row) {
	if text == "" {
		return nil
	}
	for _, l := range wrap(cells(text, s), columns, true) {
		rows = append(rows, row{r.line(l), lineWidth(l)})
	}
	return rows
}

// row returns a text in a style, as far as it fits.
func (r renderer) row(text string, columns int, s style) row {
	first := wrap(cells(text, s), columns, false)[0]
	return row{r.line(first), lineWidth(first)}
}

// wrapped returns running text as styled lines, broken between words.
func (r renderer) wrapped(text []cell, columns int) []string {
	var lines []string
	for _, l := range wrap(text, max(columns, 1), true) {
		lines = append(lines, r.line(l))
	}
	return lines
}

// wrap breaks a text into lines that fit: between words if betweenWords is set and there are any, else where
// a line is full.
func wrap(text []cell, columnCount int, betweenWords bool) [][]cell {
	var lines [][]cell
	start, space, used := 0, -1, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c.text == "\n":
			lines = append(lines, text[start:i])
			start, space, used = i+1, -1, 0
			continue
		case used+c.width <= columnCount:
		case betweenWords && c.text == " ":
			lines = append(lines, text[start:i])
			start, space, used = i+1, -1, 0
			continue
		case space >= start:
			lines = append(lines, text[start:space])
			start, used = space+1, lineWidth(text[space+1:i])
			space = -1
		case i > start:
			lines = append(lines, text[start:i])
			start, used = i, 0
		}
		if betweenWords && c.text == " " && i > start {
			space = i
		}
		used += c.width
	}
	return append(lines, text[start:])
}

func (r renderer) line(cells []cell) string {
	var b, same strings.Builder
	last := style(0)
	for _, c := range cells {
		if c.style != last {
			b.WriteString(r.styled(last, same.String()))
			same.Reset()
			last = c.style
		}
		same.WriteString(c.text)
	}
	b.WriteString(r.styled(last, same.String()))
	return b.String()
}
