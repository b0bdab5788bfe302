package knowledge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"synthbot/core/txt"
)

const maxNesting = 400 // of elements that are followed

// readHTML makes Markdown of a page. What frames its text (navigation, headers, footers) and
// what a reader does not see is left out. Headings keep their ids as anchors.
func readHTML(data []byte) (string, error) {
	encoding, _, _ := charset.DetermineEncoding(data[:min(len(data), 4096)], "")
	text, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("html: %w", err)
	}
	doc, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		return "", fmt.Errorf("html: %w", err)
	}
	w := new(markdownWriter)
	title := findTitle(doc)
	if title != "" {
		w.out.WriteString("# " + title + "\n\n")
	}
	w.node(doc, 0)
	if w.words == 0 {
		return "", errors.New("html: no text in it; perhaps scripts fill it")
	}
	return w.out.String(), nil
}

func findTitle(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "h1" {
			return "" // it has a heading of its own
		}
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			return txt.ClipLine(n.FirstChild.Data, headingMost)
		}
	}
	return ""
}

// markdownWriter writes a document as Markdown.
type markdownWriter struct {
	out   strings.Builder
	words int
	lists []int // of each list around: 0 unordered, else the next number
	blank bool  // the text ends with white space
}

// frames are elements that hold no text of the document.
var frames = strings.Fields(`script style head svg math nav header footer aside form button select textarea video audio
	canvas menu title template noscript iframe object embed dialog`)

func (w *markdownWriter) node(n *html.Node, depth int) {
	if depth > maxNesting || w.out.Len() > maxText {
		return
	}
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	if n.Type == html.ElementNode && (isFrame(n) || isHidden(n)) {
		return
	}
	before, behind := w.around(n)
	w.out.WriteString(before)
	w.blank = w.blank || before != ""
	if n.Data == "pre" && n.Type == html.ElementNode {
		w.pre(n)
	} else {
		for c := range n.ChildNodes() {
			w.node(c, depth+1)
		}
	}
	w.out.WriteString(behind)
	w.blank = w.blank || behind != ""
	if n.Data == "ul" || n.Data == "ol" {
		w.lists = w.lists[:max(len(w.lists)-1, 0)]
	}
}

// isFrame reports whether an element frames the text. The header of an article holds its
// heading.
func isFrame(n *html.Node) bool {
	if n.Data == "header" && n.Parent != nil && (n.Parent.Data == "article" || n.Parent.Data == "main") {
		return false
	}
	role := attribute(n, "role")
	return slices.Contains(frames, n.Data) || role == "navigation" || role == "banner" || role == "contentinfo"
}

// isHidden reports whether an element says of itself that it is not shown: orders are hidden
// there.
func isHidden(n *html.Node) bool {
	style := strings.ToLower(strings.Join(strings.Fields(attribute(n, "style")), ""))
	for _, hiding := range []string{
		"display:none", "visibility:hidden", "visibility:collapse", "font-size:0;", "font-size:0p", "opacity:0;",
		"text-indent:-9",
	} {
		if strings.Contains(style+";", hiding) {
			return true
		}
	}
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) ||
		strings.EqualFold(attribute(n, "aria-hidden"), "true")
}

// around is what is written before and behind the content of an element.
func (w *markdownWriter) around(n *html.Node) (before, behind string) {
	switch n.Data {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		behind = "\n\n"
		id := attribute(n, "id")
		if id != "" && !strings.ContainsAny(id, " {}") {
			behind = " {#" + id + "}\n\n"
		}
		return "\n\n" + strings.Repeat("#", int(n.Data[1]-'0')) + " ", behind
	case "ul", "ol":
		first := 0
		if n.Data == "ol" {
			first = 1
		}
		w.lists = append(w.lists, first)
		return "\n\n", "\n\n"
	case "li":
		mark, i := "- ", len(w.lists)-1
		if i >= 0 && w.lists[i] > 0 {
			mark = fmt.Sprintf("%d. ", w.lists[i])
			w.lists[i]++
		}
		return "\n" + strings.Repeat("  ", max(min(i, 6), 0)) + mark, ""
	case "tr":
		return "\n| ", ""
	case "td", "th":
		return "", " | "
	case "br":
		return "\n", ""
	case "dt", "dd", "figcaption", "summary", "caption":
		return "\n", "\n"
	case "p", "div", "section", "article", "main", "blockquote", "figure", "table", "dl", "details", "hr", "address":
		if len(w.lists) > 0 || insideCell(n) {
			return " ", " "
		}
		return "\n\n", "\n\n"
	}
	return "", ""
}

func insideCell(n *html.Node) bool {
	return n.Parent != nil && (n.Parent.Data == "td" || n.Parent.Data == "th")
}

// text writes words, white space as one space.
func (w *markdownWriter) text(s string) {
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !w.blank {
				w.out.WriteByte(' ')
			}
			w.blank = true
			continue
		}
		w.out.WriteRune(r)
		w.blank = false
		w.words++
	}
}

// pre writes text unchanged, as code.
func (w *markdownWriter) pre(n *html.Node) {
	w.out.WriteString("\n\n```\n")
	for c := range n.Descendants() {
		if c.Type == html.TextNode && w.out.Len() <= maxText {
			w.out.WriteString(strings.ReplaceAll(c.Data, "```", "` ` `"))
			w.words++
		}
	}
	w.out.WriteString("\n```\n\n")
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
