package web

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

	"synthbot/core"
	"synthbot/core/txt"
)

// Bounds of what is made of a page.
const (
	maxElements = 20_000 // over it a page is shown as it is, as finding its article takes too long
	maxPage     = 400_000
	maxTitle    = 200
	fewWords    = 200 // bytes of an article that is too short to be all of the page
)

// page is what is remembered of a page.
type page struct {
	url       string // where it really was
	title     string
	site      string
	published string // a day
	text      string
	linked    string // the text with the addresses of links
}

func (p *page) size() int { return len(p.text) + len(p.linked) + len(p.url) + len(p.title) }

// extract reads a body.
func extract(body []byte, kind, header string, at *url.URL) (*page, error) {
	if kind == kindText {
		text := clean(decode(body, header))
		return &page{url: at.String(), text: txt.ClipBytes(text, maxPage), linked: txt.ClipBytes(text, maxPage)}, nil
	}
	doc, err := html.Parse(strings.NewReader(decode(body, header)))
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The page cannot be read.", Err: err}
	}
	p := &page{url: at.String()}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			p.title = txt.ClipBytes(squeeze(n.FirstChild.Data), maxTitle)
			break
		}
	}
	hide(doc)
	article := p.article(doc, at)
	p.text = txt.ClipBytes(render(article, false, at), maxPage)
	p.linked = txt.ClipBytes(render(article, true, at), maxPage)
	if p.text == "" {
		return nil, core.Errorf(core.Broken, "The page has no text; perhaps scripts fill it.")
	}
	return p, nil
}

// article finds what a reader came for; where that is little, it is the whole
// page.
func (p *page) article(doc *html.Node, at *url.URL) (found *html.Node) {
	defer func() {
		if recover() != nil { // the library has seen fewer pages than there are
			found = doc
		}
	}()
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxElements
	a, err := parser.ParseDocument(doc, at)
	if err != nil || a.Node == nil {
		return doc
	}
	p.site = txt.ClipBytes(squeeze(a.SiteName()), maxTitle)
	title := squeeze(a.Title())
	if title != "" && title != at.String() {
		p.title = txt.ClipBytes(title, maxTitle)
	}
	if at, err := a.PublishedTime(); err == nil && !at.IsZero() {
		p.published = at.Format(time.DateOnly)
	}
	short := render(a.Node, false, at)
	if len(short) < fewWords && len(render(doc, false, at)) > 4*len(short) {
		return doc
	}
	return a.Node
}

// decode is a body as text: as the header says, the body itself, or by guess.
func decode(body []byte, header string) string {
	encoding, _, _ := charset.DetermineEncoding(body[:min(len(body), 4096)], header)
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = bytes.ToValidUTF8(body, []byte("�"))
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "�"), "\uFEFF")
}

// clean is a text without what nobody sees: control characters, and those that
// hide or turn others around.
func clean(text string) string {
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
func squeeze(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

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
	links bool
	base  *url.URL
	depth int
	lists []int // of each list around: 0 unordered, else the next number
	ends  int   // line breaks at the end
	quiet bool  // a space at the end, or nothing but line breaks
}

// maxNesting is how deep elements are followed.
const maxNesting = 400

func render(n *html.Node, links bool, base *url.URL) string {
	r := &renderer{links: links, base: base, quiet: true, ends: 2}
	r.node(n)
	var lines []string // no more than one empty line between blocks
	for l := range strings.SplitSeq(clean(r.b.String()), "\n") {
		l = strings.TrimRight(l, " \t")
		if l != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, l)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func (r *renderer) node(n *html.Node) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxNesting || r.b.Len() > maxPage {
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
		r.block(strings.Repeat("#", int(n.Data[1]-'0'))+" ", 2, n)
	case "p", "div", "section", "article", "main", "header", "aside", "blockquote", "figure", "table", "dl", "address",
		"details", "body":
		r.block("", 2, n)
	case "tr", "dt", "dd", "figcaption", "summary", "caption":
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

// pre writes text unchanged, line by line.
func (r *renderer) pre(n *html.Node) {
	r.lines(2)
	for c := range n.Descendants() {
		if c.Type == html.TextNode && r.b.Len() <= maxPage {
			r.b.WriteString(c.Data)
			r.ends = 0
		}
	}
	r.lines(2)
}

// link writes a link's words, and where it leads if that is wanted.
func (r *renderer) link(n *html.Node) {
	before := r.b.Len()
	r.children(n)
	if !r.links || r.b.Len() == before {
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
