package markdown

import (
	"html"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"synthbot/core/txt"
)

// Limits of the work for one text. For hostile texts, the library takes quadratic time and
// nests its trees without limit.
const (
	maxPiece = 8 << 10   // bytes parsed at once
	maxTotal = 256 << 10 // bytes parsed in total; the rest is plain text
	maxDepth = 24        // nested blocks; a piece with deeper ones becomes plain text
)

// Parse parses a text in linear time. Every text is valid.
func Parse(source string) []Block {
	source = strings.ReplaceAll(strings.ToValidUTF8(source, "\uFFFD"), "\x00", "\uFFFD")
	at := boundary(source, min(maxTotal, len(source)))
	source, rest := source[:at], source[at:]
	var blocks []Block
	var last part
	for _, piece := range split(source, maxPiece, func(s string) int { return len(s) }) {
		b := builder{source: []byte(piece.open + piece.body + piece.close), linked: map[string]bool{}}
		doc := libraryParser().Parse(text.NewReader(b.source))
		b.links(doc)
		next := b.blocks(doc, 0)
		if b.tooDeep {
			next = []Block{plainParagraph(string(b.source))}
		}
		if len(blocks) > 0 && len(next) > 0 && blocks[len(blocks)-1].join(last, piece, next[0]) {
			next = next[1:]
		}
		blocks, last = append(blocks, next...), piece
	}
	if rest != "" {
		blocks = append(blocks, plainParagraph(rest))
	}
	return blocks
}

// join appends next to b if the cut between the pieces one and two was inside of a block, so that
// next is the rest of b. It reports whether it did.
func (b *Block) join(one, two part, next Block) bool {
	switch {
	case b.Kind != next.Kind || strings.Count(one.gap, "\n") > 1 && one.close == "":
		return false
	case b.Kind == Code && one.close != "" && two.open != "":
		b.Text += one.gap + next.Text
	case b.Kind == Paragraph && strings.Contains(one.gap, "\n"):
		b.Inlines = append(append(b.Inlines, Inline{Kind: Break}), next.Inlines...)
	case b.Kind == Paragraph:
		b.Inlines = append(append(b.Inlines, Inline{Kind: Text, Text: one.gap}), next.Inlines...)
	case b.Kind == List && b.Ordered == next.Ordered && (!b.Ordered || next.Start == b.Start+len(b.Blocks)):
		b.Blocks = append(b.Blocks, next.Blocks...)
	default:
		return false
	}
	return true
}

// libraryParser returns the library's parser without HTML, so that tags are shown as text. It
// is safe for concurrent use.
var libraryParser = sync.OnceValue(func() parser.Parser {
	const blocksOfHTML, inlinesOfHTML = 900, 400 // their priorities
	without := func(list []util.PrioritizedValue, priority int) []util.PrioritizedValue {
		return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool { return v.Priority == priority })
	}
	inlines := append(without(parser.DefaultInlineParsers(), inlinesOfHTML),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999),
	)
	return parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), blocksOfHTML)...),
		parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
})

func plainParagraph(s string) Block {
	var in Inlines
	for l := range strings.Lines(s) {
		body, broken := strings.CutSuffix(l, "\n")
		in = append(in, Inline{Kind: Text, Text: body})
		if broken {
			in = append(in, Inline{Kind: Break})
		}
	}
	return Block{Kind: Paragraph, Inlines: in}
}

// builder converts the library's tree to blocks.
type builder struct {
	source  []byte
	linked  map[string]bool // addresses of links
	tooDeep bool            // the tree is incomplete
}

// links sets linked, so that link definitions in use are not shown as text, too.
func (b *builder) links(doc ast.Node) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch l := n.(type) {
		case *ast.Link:
			b.linked[string(l.Destination)] = true
		case *ast.Image:
			b.linked[string(l.Destination)] = true
		}
		return ast.WalkContinue, nil
	})
}

func (b *builder) blocks(parent ast.Node, depth int) []Block {
	b.tooDeep = b.tooDeep || depth >= maxDepth
	if b.tooDeep {
		return nil
	}
	var out []Block
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if block, ok := b.block(n, depth); ok {
			out = append(out, block)
		}
	}
	return out
}

func (b *builder) block(n ast.Node, depth int) (Block, bool) {
	switch n := n.(type) {
	case *ast.Heading:
		return Block{Kind: Heading, Level: n.Level, Inlines: b.inlines(n, depth)}, true
	case *ast.List:
		items := b.blocks(n, depth+1)
		for i := range items {
			items[i].Ordered, items[i].Start, items[i].Tight = n.IsOrdered(), n.Start+i, n.IsTight
		}
		return Block{Kind: List, Ordered: n.IsOrdered(), Start: n.Start, Tight: n.IsTight, Blocks: items}, true
	case *ast.ListItem:
		return Block{Kind: Item, Task: task(n), Blocks: b.blocks(n, depth+1)}, true
	case *ast.Blockquote:
		return Block{Kind: Quote, Blocks: b.blocks(n, depth+1)}, true
	case *ast.FencedCodeBlock:
		word := language().FindString(resolve(string(n.Language(b.source))))
		return Block{Kind: Code, Language: word, Text: b.verbatim(n)}, true
	case *ast.CodeBlock:
		return Block{Kind: Code, Text: b.verbatim(n)}, true
	case *ast.ThematicBreak:
		return Block{Kind: Rule}, true
	case *extast.Table:
		return b.table(n, depth), true
	case *ast.LinkReferenceDefinition: // an unused one is shown as text
		return plainParagraph(b.verbatim(n)), !b.linked[string(n.Destination)]
	}
	return Block{Kind: Paragraph, Inlines: b.inlines(n, depth)}, true
}

func task(item ast.Node) Task {
	first := item.FirstChild()
	if first == nil {
		return NoTask
	}
	box, ok := first.FirstChild().(*extast.TaskCheckBox)
	switch {
	case !ok:
		return NoTask
	case box.IsChecked:
		return Done
	}
	return Open
}

func (b *builder) table(t *extast.Table, depth int) Block {
	out := Block{Kind: Table}
	for _, a := range t.Alignments {
		out.Align = append(out.Align, alignments[a])
	}
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		cells := make([]Inlines, len(out.Align))
		i := 0
		for cell := row.FirstChild(); cell != nil && i < len(cells); cell = cell.NextSibling() {
			cells[i] = b.inlines(cell, depth)
			i++
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

var alignments = map[extast.Alignment]Align{
	extast.AlignLeft: AlignLeft, extast.AlignCenter: AlignCenter, extast.AlignRight: AlignRight,
}

func (b *builder) verbatim(n ast.Node) string {
	return strings.TrimSuffix(string(n.Lines().Value(b.source)), "\n")
}

func (b *builder) inlines(parent ast.Node, depth int) Inlines {
	b.tooDeep = b.tooDeep || depth >= 2*maxDepth
	if b.tooDeep {
		return nil
	}
	var out Inlines
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		out = b.inline(out, n, depth)
	}
	return out
}

func (b *builder) inline(out Inlines, n ast.Node, depth int) Inlines {
	switch n := n.(type) {
	case *ast.Text:
		return b.text(out, n)
	case *ast.CodeSpan:
		return append(out, Inline{Kind: CodeSpan, Text: b.span(n)})
	case *ast.Emphasis:
		kind := Emphasis
		if n.Level == 2 {
			kind = Strong
		}
		return append(out, Inline{Kind: kind, Inlines: b.inlines(n, depth+1)})
	case *extast.Strikethrough:
		return append(out, Inline{Kind: Strike, Inlines: b.inlines(n, depth+1)})
	case *ast.Link:
		return append(out, Inline{Kind: Link, URL: resolve(string(n.Destination)), Inlines: b.inlines(n, depth+1)})
	case *ast.Image:
		return append(out, Inline{Kind: Link, URL: resolve(string(n.Destination)), Inlines: b.inlines(n, depth+1)})
	case *ast.AutoLink:
		url := string(n.URL(b.source))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
			url = "mailto:" + url
		}
		label := Inlines{{Kind: Text, Text: string(n.Label(b.source))}}
		return append(out, Inline{Kind: Link, URL: url, Inlines: label})
	}
	return out // an extast.TaskCheckBox is the item's Task
}

// text appends a text, to the last inline if that is a text, too.
func (b *builder) text(out Inlines, n *ast.Text) Inlines {
	s := string(n.Segment.Value(b.source))
	if !n.IsRaw() {
		s = resolve(s)
	}
	last := len(out) - 1
	switch {
	case s == "":
	case last >= 0 && out[last].Kind == Text:
		out[last].Text += s
	default:
		out = append(out, Inline{Kind: Text, Text: s})
	}
	if n.HardLineBreak() || n.SoftLineBreak() {
		out = append(out, Inline{Kind: Break})
	}
	return out
}

// span returns the text of inline code, with spaces for line breaks.
func (b *builder) span(n ast.Node) string {
	var s strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			s.Write(t.Segment.Value(b.source))
		}
	}
	return strings.ReplaceAll(s.String(), "\n", " ")
}

var language = txt.Pattern(`^[A-Za-z0-9+#_.-]*$`)

var escapes = txt.Pattern(`\\[!-/:-@[-\x60{-~]|&(#\d{1,7}|#[xX][[:xdigit:]]{1,6}|[[:alnum:]]{1,31});`)

// resolve decodes backslash escapes and character references.
func resolve(s string) string {
	return escapes().ReplaceAllStringFunc(s, func(s string) string {
		if s[0] == '\\' {
			return s[1:]
		}
		return strings.ReplaceAll(html.UnescapeString(s), "\x00", "\uFFFD")
	})
}
