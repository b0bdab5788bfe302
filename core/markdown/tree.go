package markdown

// BlockKind sorts blocks.
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
	Rule                       // a line across
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

// Task is the box of a list item.
type Task uint8

// States of a box.
const (
	NoTask Task = iota
	Open
	Done
)

// Block is a part of a text on lines of its own. Its kind says which
// fields mean something.
type Block struct {
	Kind     BlockKind
	Level    int    // 1 to 6
	Language string // the first word behind the opening fence, if it can be a language
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

// InlineKind sorts inlines.
type InlineKind uint8

// Kinds of inline.
const (
	Text     InlineKind = iota // Text
	Emphasis                   // Inlines, and so on down to Strike
	Strong
	Strike
	CodeSpan // Text, verbatim
	Link     // URL, Inlines; a picture is a link to it
	Break    // a line break
)

// Inline is a piece of running text.
type Inline struct {
	Kind    InlineKind
	Text    string
	URL     string
	Inlines Inlines
}
