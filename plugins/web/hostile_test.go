package web

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestHostilePages checks that pages that are made to take much time or memory do not.
func TestHostilePages(t *testing.T) {
	for name, text := range map[string]string{
		"open":       strings.Repeat("<div>", 60_000),
		"formatting": strings.Repeat("<b><i><a>x", 20_000),
		"elements":   strings.Repeat("<p>a, b</p>", 25_000),
		"deep":       strings.Repeat("<div>", 300) + strings.Repeat("<p>a, b</p>", 1000),
		"breaks":     strings.Repeat("x<br>", 25_000),
		"pre":        strings.Repeat("<pre>x</pre>", 25_000),
		"lists":      strings.Repeat("<ul><li>x</ul>", 10_000),
		"metadata":   `<script type="application/ld+json">` + strings.Repeat("[", 500_000),
		"cells":      "<table><tr>" + strings.Repeat("<td>x", 25_000),
	} {
		p, err := extract([]byte(text), kindHTML, "text/html; charset=utf-8", mustURL("https://example.org/"))
		if err == nil && (len(p.text) > maxPage || len(p.linked) > maxPage) {
			t.Errorf("%s: got %d bytes", name, len(p.text))
		}
	}
}

// FuzzPage checks that any page becomes a limited text that can be displayed.
func FuzzPage(f *testing.F) {
	f.Add([]byte("<html><title>a</title><p>b<ul><li>c<a href=x>d</a>"), "text/html", true)
	f.Add([]byte("\xff\xfeh\x00i\x00"), "text/plain; charset=utf-16", false)
	f.Add([]byte("<table><tr><td><pre>x</pre><ol><li><ol><li>"), "text/html; charset=shift_jis", true)
	f.Add([]byte(`<script type="application/ld+json">{"@context":"https://schema.org","@type":"Article","headline":[]}</script><p>x`), "", true)
	f.Fuzz(func(t *testing.T, body []byte, header string, page bool) {
		kind := kindText
		if page {
			kind = kindHTML
		}
		p, err := extract(body, kind, header, mustURL("https://example.org/a/b"))
		if err != nil {
			return
		}
		for _, text := range []string{p.text, p.linked, p.title, p.site} {
			odd := strings.ContainsFunc(text,
				func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202E' })
			if !utf8.ValidString(text) || len(text) > maxPage || odd {
				t.Errorf("got %q", text)
			}
		}
		for _, part := range partsOf(p.text, 1000) {
			if len(part) > 1000 || !utf8.ValidString(part) {
				t.Errorf("got %q", part)
			}
		}
	})
}

// FuzzAddress checks that an accepted URL has the scheme http or https, a host and no password.
func FuzzAddress(f *testing.F) {
	for _, u := range append(privates, strange...) {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := address(text)
		if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "") {
			t.Errorf("%q: got %v", text, u)
		}
	})
}

// FuzzHits checks that each result of any search response has a valid URL.
func FuzzHits(f *testing.F) {
	f.Add([]byte(searxAnswer))
	f.Add([]byte(`{"results":[1,{"url":7},{"url":"x"},null],"answers":[{"answer":"a"},"b",[]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := hitsOf(body, 5)
		if err != nil {
			return
		}
		if len(found.Results) > 5 || len(found.Instant) > maxInstant {
			t.Errorf("got %+v", found)
		}
		for _, h := range found.Results {
			if _, err := address(h.URL); err != nil || len(h.Title) > maxTitle || len(h.Content) > maxHit ||
				!utf8.ValidString(h.Title+h.Content) {
				t.Errorf("got %+v", h)
			}
		}
	})
}
