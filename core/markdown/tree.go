// Package markdown parses the Markdown of models into a small tree, and splits long texts into parts that are complete
// by themselves. Interfaces render the tree for their platform.
//
// It parses CommonMark with tables, strikethrough, task lists and bare links, but keeps everything that a reader may
// want to see: HTML is normal text, and an unused link definition is a paragraph.
package markdown

import (
	"strconv"
	"strings"

	"synthbot/core/txt"
)

// BlockKind is a kind of block.
type BlockKind uint8

// Kinds of block.
const (
	Paragraph BlockKind = iota // Inlines
	Heading                    // Level, Inlines
	List                       // Blocks are Items; Ordered, Start, Tight
	Item                       // Blocks; Task, Ordered, Start, Tight
	Quote                      // Blocks
	Code                       // Text, Language
	Table                      // Rows, Align
	Rule                       // a horizontal line
)

// Align is the alignment of a table's column.
type Align uint8

// Alignments.
const (
	AlignNone Align = iota
	AlignLeft
	AlignCenter
	AlignRight
)

// Task is the checkbox of a list item.
type Task uint8

// States of a checkbox.
const (
	NoTask Task = iota
	Open
	Done
)

// Block is a block element. Its kind determines which fields are used.
type Block struct {
	Kind     BlockKind
	Level    int    // 1 to 6
	Language string // the first word after the opening fence, if it can be a language
	Text     string // verbatim, without the last line break
	Ordered  bool
	Start    int // the number of the item, or of the first one
	Tight    bool
	Task     Task
	Align    []Align     // one for each column
	Rows     [][]Inlines // the first is the head; all have len(Align) cells
	Inlines  Inlines
	Blocks   []Block
}

// Inlines is a run of text with its styles.
type Inlines []Inline

// InlineKind is a kind of inline.
type InlineKind uint8

// Kinds of inline.
const (
	Text     InlineKind = iota // Text
	Emphasis                   // Inlines; Strong and Strike, too
	Strong
	Strike
	CodeSpan // Text, verbatim
	Link     // URL, Inlines; also for pictures
	Break    // a line break
)

// Inline is a piece of text with one style.
type Inline struct {
	Kind    InlineKind
	Text    string
	URL     string
	Inlines Inlines
}

// Plain returns blocks as text without markup. Addresses of links follow their text.
func Plain(blocks []Block) string {
	return strings.Join(plainBlocks(blocks, false), "\n")
}

// plainBlocks returns blocks as lines, with an empty line between blocks unless tight.
func plainBlocks(blocks []Block, tight bool) []string {
	var lines []string
	for i, b := range blocks {
		if i > 0 && !tight {
			lines = append(lines, "")
		}
		lines = append(lines, plainBlock(b)...)
	}
	return lines
}

func plainBlock(b Block) []string {
	switch b.Kind {
	case List:
		return plainBlocks(b.Blocks, b.Tight)
	case Item:
		mark := b.Mark()
		return indent(plainBlocks(b.Blocks, b.Tight), mark, strings.Repeat(" ", len(mark)))
	case Quote:
		return indent(plainBlocks(b.Blocks, false), "> ", "> ")
	case Code:
		return strings.Split(b.Text, "\n")
	case Table:
		var rows []string
		for _, row := range b.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.Plain())
			}
			rows = append(rows, strings.Join(cells, " | "))
		}
		return rows
	case Rule:
		return []string{"---"}
	}
	return strings.Split(b.Inlines.Plain(), "\n")
}

// Mark returns the mark of a list item: its number or a dash, and its checkbox.
func (b Block) Mark() string {
	mark := "- "
	if b.Ordered {
		mark = strconv.Itoa(b.Start) + ". "
	}
	switch b.Task {
	case Open:
		mark += "[ ] "
	case Done:
		mark += "[x] "
	}
	return mark
}

// Grid returns the cells of a table as single lines, padded with spaces to the width of their columns, but
// at most to the width most.
func (b Block) Grid(most int) [][]string {
	rows, widths := make([][]string, len(b.Rows)), make([]int, len(b.Align))
	for i, row := range b.Rows {
		for j, cell := range row {
			rows[i] = append(rows[i], strings.ReplaceAll(cell.Plain(), "\n", " "))
			widths[j] = min(most, max(widths[j], txt.Width(rows[i][j])))
		}
	}
	for _, row := range rows {
		for j, cell := range row {
			gap := max(0, widths[j]-txt.Width(cell))
			left := map[Align]int{AlignRight: gap, AlignCenter: gap / 2}[b.Align[j]]
			row[j] = strings.Repeat(" ", left) + cell + strings.Repeat(" ", gap-left)
		}
	}
	return rows
}

func indent(lines []string, first, others string) []string {
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(first+l, " ")
		first = others
	}
	return lines
}

// Plain returns the text without styles, with line breaks.
func (in Inlines) Plain() string {
	var b strings.Builder
	for _, i := range in {
		switch i.Kind {
		case Text, CodeSpan:
			b.WriteString(i.Text)
		case Break:
			b.WriteByte('\n')
		case Link:
			b.WriteString(i.labelled())
		default:
			b.WriteString(i.Inlines.Plain())
		}
	}
	return b.String()
}

// labelled returns a link's text, followed by its address unless the text shows it.
func (i Inline) labelled() string {
	label := i.Inlines.Plain()
	switch {
	case label == "":
		return i.URL
	case i.showsAddress(label):
		return label
	}
	return label + " (" + i.URL + ")"
}

// Bare reports whether a link's text shows its address.
func (i Inline) Bare() bool { return i.showsAddress(i.Inlines.Plain()) }

// showsAddress reports whether label, the link's text, shows the address. The caller passes label, because
// building it again at each level of nested links would take exponential time.
func (i Inline) showsAddress(label string) bool {
	for _, scheme := range []string{"", "mailto:", "http://", "https://"} {
		if i.URL == scheme+label || i.URL == scheme+label+"/" {
			return true
		}
	}
	return i.URL == ""
}
