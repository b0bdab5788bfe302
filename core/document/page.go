package document

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"synthbot/core/txt"
)

// Limits of reading pages.
const (
	maxElements = 20_000 // of a page whose article is searched for
	maxTitle    = 200
	fewWords    = 200 // bytes of a doubtful article: the rest of the page is compared with it
	manyWords   = 4 * fewWords
)

// Page is a web page as a reader sees it.
type Page struct {
	Title     string // at most 200 bytes
	Site      string // its name, at most 200 bytes; set by FindArticle
	Published string // as YYYY-MM-DD; "": unknown; set by FindArticle

	doc *html.Node
	at  *url.URL // its address; nil: relative links are left out
}

// ReadPage parses HTML from an address. header is its Content-Type; "" if unknown. Parts that a reader does
// not see are removed, because they may contain hidden instructions.
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
	removeHidden(doc)
	return p, nil
}

// Style configures Markdown.
type Style struct {
	Links   bool // write the addresses of links
	Anchors bool // write the ids of headings: ## Title {#id}
	Framed  bool // leave out headers, asides and navigation
	Max     int  // bytes, at most
}

// Markdown returns the page as Markdown; "" if it has no text.
func (p *Page) Markdown(s Style) string { return render(p.doc, s, p.at) }

// FindArticle reduces the page to its main article, unless that is short compared with the page, and sets
// Site and Published. If it finds no article, the page stays as it is.
func (p *Page) FindArticle() {
	defer func() { _ = recover() }() // the library may panic on unusual pages
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxElements
	a, err := parser.ParseDocument(p.doc, p.at)
	if err != nil || a.Node == nil {
		return
	}
	p.Site = txt.ClipBytes(squeeze(a.SiteName()), maxTitle)
	title := squeeze(a.Title())
	if title != "" && (p.at == nil || title != p.at.String()) {
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

// DecodePage returns a body as UTF-8. The encoding is taken from the header, from the body, or guessed.
func DecodePage(body []byte, header string) string {
	encoding, _, _ := charset.DetermineEncoding(body[:min(len(body), 4096)], header)
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = bytes.ToValidUTF8(body, []byte("�"))
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "�"), "\uFEFF")
}

// Clean removes invisible characters: control characters, and those that hide or reorder others.
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

func squeeze(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// removeHidden removes the parts of a document that a reader does not see. They may contain hidden instructions.
func removeHidden(doc *html.Node) {
	var hidden []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode || n.Type == html.ElementNode && isHidden(n) {
			hidden = append(hidden, n)
		}
	}
	for _, n := range hidden {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// isHidden reports whether an element is not shown, by its name or an attribute.
func isHidden(n *html.Node) bool {
	switch n.Data {
	case "template", "noscript", "iframe", "object", "embed", "dialog":
		return true
	}
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return strings.EqualFold(a.Val, "true")
		case "type":
			return n.Data == "input" && strings.EqualFold(a.Val, "hidden")
		case "style":
			return isHiddenBy(a.Val)
		}
		return false
	})
}

func isHiddenBy(style string) bool {
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

func leading(value string) (float64, bool) {
	end := strings.IndexFunc(value, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if end < 0 {
		end = len(value)
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	return n, err == nil
}

// renderer writes a document as Markdown.
type renderer struct {
	b     strings.Builder
	style Style
	base  *url.URL
	depth int
	lists []int // for each enclosing list: 0 if it is unordered, else the next number
	ends  int   // line breaks at the end of b
	quiet bool  // no space is needed: b ends with one, or with line breaks
}

// maxNesting is how deep elements may be nested; deeper ones are left out.
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

// text writes text, with each run of white space as one space.
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

// lines makes sure that b ends with at least n line breaks.
func (r *renderer) lines(n int) {
	for ; r.ends < n; r.ends++ {
		r.b.WriteByte('\n')
	}
	r.quiet = true
}

// block writes an element between line breaks, with a prefix.
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
		if !r.quiet || r.ends > 0 || !isInLine(n) { // not directly after the mark of an item or a cell
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

// isFrame reports whether an element frames the text. The header of an article does not: it holds the heading.
func isFrame(n *html.Node) bool {
	role := attribute(n, "role")
	ofArticle := n.Parent != nil && (n.Parent.Data == "article" || n.Parent.Data == "main")
	return n.Data == "aside" || n.Data == "header" && !ofArticle ||
		role == "navigation" || role == "banner" || role == "contentinfo"
}

// isInLine reports whether an element is directly in a list item or a table cell.
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

// link writes a link's text, followed by its address if Style.Links is set.
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
