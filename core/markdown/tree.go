// Package markdown parses the Markdown of models into a small tree, and splits long texts into parts that are complete
// by themselves. Interfaces render the tree for their platform.
//
// It parses CommonMark with tables, strikethrough, task lists and bare links, but keeps everything that a reader may
// want to see: HTML is normal text, and an unused link definition is a paragraph.
package markdown

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
