package web

import (
	"net/url"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/document"
	"synthbot/core/txt"
)

// Bounds of what is made of a page, in bytes.
const (
	maxPage  = 400_000
	maxTitle = 200
)

// page is what is remembered of a page.
type page struct {
	url       string // where it really was
	title     string
	site      string
	published string // a day
	text      string
	linked    string // the text with the addresses of links
	read      time.Time
}

// extract reads a body.
func extract(body []byte, kind, header string, at *url.URL) (*page, error) {
	if kind == kindText {
		text := txt.ClipBytes(document.Clean(document.DecodePage(body, header)), maxPage)
		return &page{url: at.String(), text: text, linked: text}, nil
	}
	d, err := document.ReadPage(body, header, at)
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The page cannot be read.", Err: err}
	}
	d.FindArticle()
	p := &page{url: at.String(), title: d.Title, site: d.Site, published: d.Published,
		text: d.Markdown(document.Style{Max: maxPage}), linked: d.Markdown(document.Style{Links: true, Max: maxPage})}
	if p.text == "" {
		return nil, core.Errorf(core.Broken, "The page has no text; perhaps scripts fill it.")
	}
	return p, nil
}

// squeeze is a text on one line.
func squeeze(text string) string { return strings.Join(strings.Fields(document.Clean(text)), " ") }
