package document

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"synthbot/core/txt"
)

// Bounds of how pages are read.
const (
	maxElements = 20_000 // over it a page is shown as it is, as finding its article takes too long
	maxTitle    = 200
	fewWords    = 200 // bytes of an article that is too short to be all of the page
	manyWords   = 4 * fewWords
)

// Page is a web page as a reader sees it.
type Page struct {
	Title     string // at most 200 bytes, as Site
	Site      string
	Published string // a day

	doc *html.Node
	at  *url.URL // nil: links lead nowhere
}

// ReadPage reads HTML. header is its Content-Type, if it is known. What a reader does not see is
// left out: orders are hidden there.
func ReadPage(body []byte, header string, at *url.URL) (*Page, error) {
	doc, err := html.Parse(strings.NewReader(DecodePage(body, header)))
	if err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	p := &Page{doc: doc, at: at}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			p.Title = txt.ClipBytes(squeeze(n.FirstChild.Data), maxTitle)
			break
		}
	}
	hide(doc)
	return p, nil
}

// Style says how a page is written.
type Style struct {
	Links   bool // with the addresses behind links
	Anchors bool // with the ids of headings: ## Title {#id}
	Framed  bool // without what frames the text: headers, asides, what says that it is navigation
	Max     int  // bytes, at most
}

// Markdown writes the page; "" if it has no text.
func (p *Page) Markdown(s Style) string { return render(p.doc, s, p.at) }

// FindArticle reduces the page to what a reader came for, unless that is little, and finds site
// and date.
func (p *Page) FindArticle() {
	defer func() { _ = recover() }() // the library has seen fewer pages than there are
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxElements
	a, err := parser.ParseDocument(p.doc, p.at)
	if err != nil || a.Node == nil {
		return
	}
	p.Site = txt.ClipBytes(squeeze(a.SiteName()), maxTitle)
	title := squeeze(a.Title())
	if title != "" && title != p.at.String() {
		p.Title = txt.ClipBytes(title, maxTitle)
	}
	if at, err := a.PublishedTime(); err == nil && !at.IsZero() {
		p.Published = at.Format(time.DateOnly)
	}
	most := Style{Max: manyWords}
	short := len(render(a.Node, most, p.at))
	if short >= fewWords || len(render(p.doc, most, p.at)) <= 4*short {
		p.doc = a.Node
	}
}

// DecodePage returns a body as text: as the header says, the body itself, or by guess.
func DecodePage(body []byte, header string) string {
	encoding, _, _ := charset.DetermineEncoding(body[:min(len(body), 4096)], header)
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = bytes.ToValidUTF8(body, []byte("�"))
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "�"), "\uFEFF")
}

// Clean returns a text without what nobody sees: control characters, and those that hide
// others or turn them around.
func Clean(text string) string {
	const joiner = '\u200D' // inside of emoji
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u00A0' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != joiner:
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// squeeze is a text on one line.
func squeeze(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// hide takes out of a document what a reader does not see: orders are hidden
// there.
func hide(doc *html.Node) {
	var hidden []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode || n.Type == html.ElementNode && unseen(n) {
			hidden = append(hidden, n)
		}
	}
	for _, n := range hidden {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// unseen reports whether an element says of itself that it is not shown.
func unseen(n *html.Node) bool {
	switch n.Data {
	case "template", "noscript", "iframe", "object", "embed", "dialog":
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return strings.EqualFold(a.Val, "true")
		case "type":
			return n.Data == "input" && strings.EqualFold(a.Val, "hidden")
		case "style":
			return invisible(a.Val)
		}
	}
	return false
}

// invisible reports whether a style hides what it is given to.
func invisible(style string) bool {
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		key, value, _ := strings.Cut(declaration, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "display":
			if strings.HasPrefix(value, "none") {
				return true
			}
		case "visibility":
			if strings.HasPrefix(value, "hidden") || strings.HasPrefix(value, "collapse") {
				return true
			}
		case "opacity", "font-size":
			if n, ok := leading(value); ok && n == 0 {
				return true
			}
		case "text-indent", "left", "top", "right":
			if n, ok := leading(value); ok && n <= -500 {
				return true
			}
		}
	}
	return false
}

// leading is the number that a value begins with.
func leading(value string) (float64, bool) {
	end := strings.IndexFunc(value, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if end < 0 {
		end = len(value)
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	return n, err == nil
}

// renderer writes a document as plain text, blocks apart.
type renderer struct {
	b     strings.Builder
	style Style
	base  *url.URL
	depth int
	lists []int // of each list around: 0 unordered, else the next number
	ends  int   // line breaks at the end
	quiet bool  // a space at the end, or nothing but line breaks
}

// maxNesting is how deep elements are followed.
const maxNesting = 400

func render(n *html.Node, s Style, base *url.URL) string {
	r := &renderer{style: s, base: base, quiet: true, ends: 2}
	r.node(n)
	var lines []string // no more than one empty line between blocks
	for l := range strings.SplitSeq(Clean(r.b.String()), "\n") {
		l = strings.TrimRight(l, " \t")
		if l != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, l)
		}
	}
	return txt.ClipBytes(strings.TrimSpace(strings.Join(lines, "\n")), s.Max)
}

func (r *renderer) node(n *html.Node) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxNesting || r.b.Len() > r.style.Max {
		return
	}
	switch n.Type {
	case html.TextNode:
		r.text(n.Data)
	case html.ElementNode:
		r.element(n)
	case html.DocumentNode:
		r.children(n)
	}
}

func (r *renderer) children(n *html.Node) {
	for c := range n.ChildNodes() {
		r.node(c)
	}
}

// text writes words, white space as one space.
func (r *renderer) text(s string) {
	for _, c := range s {
		if unicode.IsSpace(c) {
			if !r.quiet {
				r.b.WriteByte(' ')
			}
			r.quiet = true
			continue
		}
		r.b.WriteRune(c)
		r.quiet, r.ends = false, 0
	}
}

// lines sees to it that so many line breaks are at the end.
func (r *renderer) lines(n int) {
	for ; r.ends < n; r.ends++ {
		r.b.WriteByte('\n')
	}
	r.quiet = true
}

// block writes something apart from its surroundings.
func (r *renderer) block(before string, gap int, n *html.Node) {
	r.lines(gap)
	if r.b.WriteString(before); before != "" {
		r.ends = 0
	}
	r.children(n)
	r.lines(gap)
}

func (r *renderer) element(n *html.Node) {
	if r.style.Framed && isFrame(n) {
		return
	}
	switch n.Data {
	case "script", "style", "head", "svg", "math", "nav", "footer", "form", "button", "select", "textarea", "video",
		"audio", "canvas", "menu", "title":
	case "br":
		r.b.WriteByte('\n')
		r.ends++
		r.quiet = true
	case "hr":
		r.lines(2)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.heading(n)
	case "p", "div", "section", "article", "main", "header", "aside", "blockquote", "figure", "table", "dl", "address",
		"details", "body":
		if !r.quiet || r.ends > 0 || !isInLine(n) { // not behind the mark of an item or a cell
			r.block("", 2, n)
		} else {
			r.children(n)
		}
	case "tr":
		r.block("| ", 1, n)
	case "dt", "dd", "figcaption", "summary", "caption":
		r.block("", 1, n)
	case "td", "th":
		r.children(n)
		r.text(" | ")
	case "ul", "ol":
		r.list(n)
	case "li":
		r.item(n)
	case "pre":
		r.pre(n)
	case "img":
		alt := squeeze(attribute(n, "alt"))
		if len(alt) > 2 {
			r.text("[picture: " + txt.ClipBytes(alt, maxTitle) + "]")
		}
	case "a":
		r.link(n)
	default:
		r.children(n)
	}
}

// isFrame reports whether an element frames the text. The header of an article holds its heading.
func isFrame(n *html.Node) bool {
	role := attribute(n, "role")
	ofArticle := n.Parent != nil && (n.Parent.Data == "article" || n.Parent.Data == "main")
	return n.Data == "aside" || n.Data == "header" && !ofArticle ||
		role == "navigation" || role == "banner" || role == "contentinfo"
}

// isInLine reports whether an element begins an item of a list, or is in the cell of a table.
func isInLine(n *html.Node) bool {
	return n.Parent != nil && (n.Parent.Data == "li" || n.Parent.Data == "td" || n.Parent.Data == "th")
}

func (r *renderer) heading(n *html.Node) {
	r.lines(2)
	r.b.WriteString(strings.Repeat("#", int(n.Data[1]-'0')) + " ")
	r.ends = 0
	r.children(n)
	id := attribute(n, "id")
	if r.style.Anchors && id != "" && !strings.ContainsAny(id, " {}") {
		r.text(" {#" + id + "}")
	}
	r.lines(2)
}

func (r *renderer) list(n *html.Node) {
	first := 0
	if n.Data == "ol" {
		first = 1
	}
	gap := 2
	if len(r.lists) > 0 {
		gap = 1
	}
	r.lists = append(r.lists, first)
	r.block("", gap, n)
	r.lists = r.lists[:len(r.lists)-1]
}

func (r *renderer) item(n *html.Node) {
	mark := "- "
	i := len(r.lists) - 1
	if i >= 0 {
		if r.lists[i] > 0 {
			mark = fmt.Sprintf("%d. ", r.lists[i])
			r.lists[i]++
		}
		mark = strings.Repeat("  ", min(i, 6)) + mark
	}
	r.block(mark, 1, n)
}

// pre writes text unchanged, as code.
func (r *renderer) pre(n *html.Node) {
	r.lines(2)
	r.b.WriteString("```\n")
	for c := range n.Descendants() {
		if c.Type == html.TextNode && r.b.Len() <= r.style.Max {
			r.b.WriteString(strings.ReplaceAll(c.Data, "```", "` ` `"))
		}
	}
	r.b.WriteString("\n```")
	r.ends = 0
	r.lines(2)
}

// link writes a link's words, and where it leads if that is wanted.
func (r *renderer) link(n *html.Node) {
	before := r.b.Len()
	r.children(n)
	if !r.style.Links || r.b.Len() == before {
		return
	}
	to, err := url.Parse(strings.TrimSpace(attribute(n, "href")))
	if err != nil {
		return
	}
	if r.base != nil {
		to = r.base.ResolveReference(to)
	}
	if to.Scheme != "http" && to.Scheme != "https" || len(to.String()) > 300 {
		return
	}
	r.text(" <" + to.String() + ">")
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
