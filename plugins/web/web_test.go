package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/outbound"
	"synthbot/plugins/plugintest"
)

// site serves pages by path.
type site struct {
	*httptest.Server
	hits atomic.Int32
}

func serve(t *testing.T, pages map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		if page := pages[r.URL.Path]; page != nil {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// body returns a handler that serves a text.
func body(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		if kind == "" {
			w.Header()["Content-Type"] = nil
		}
		_, _ = io.WriteString(w, text)
	}
}

// reader returns the plugin, with permission to read the site on the loopback address.
func reader(t *testing.T, s *site, c Config) (*Plugin, *plugintest.Harness) {
	t.Helper()
	stand := plugintest.NewHarness(t, "web")
	if s != nil {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.Allow = append(c.Allow, outbound.PeerOf(u))
	}
	p, err := New(stand.Host, plugintest.Defaults(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return p, stand
}

// call calls an action.
func call(t *testing.T, p *Plugin, name, payload string) (string, error) {
	t.Helper()
	for _, a := range p.Actions() {
		if a.Name == name {
			ctx, cancel := context.WithTimeout(t.Context(), a.Timeout)
			defer cancel()
			r, err := a.Do(ctx, coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, json.RawMessage(payload)))
			return string(r.Output), err
		}
	}
	t.Fatalf("no action %s", name)
	return "", nil
}

// fetchPage fetches a page as the model sees it.
func fetchPage(t *testing.T, p *Plugin, payload string) (f fetched, err error) {
	t.Helper()
	out, err := call(t, p, "web_fetch", payload)
	if err == nil && json.Unmarshal([]byte(out), &f) != nil {
		t.Fatal(out)
	}
	return f, err
}

func asked(u string, more string) string { return fmt.Sprintf(`{"url":%q,"part":1%s}`, u, more) }

func article(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/article.html")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFetch(t *testing.T) {
	s := serve(t, map[string]http.HandlerFunc{"/tea": body("text/html; charset=utf-8", article(t))})
	p, stand := reader(t, s, Config{Remember: 10 * time.Minute})
	f, err := fetchPage(t, p, asked(s.URL+"/tea#top", ""))
	if err != nil {
		t.Fatal(err)
	}
	if f.Foreign != stranger || f.Title != "The history of the teapot" || f.Published != "2026-03-14" || f.URL != s.URL+"/tea" || f.Parts != 1 || f.Site != "Pots & Pans" {
		t.Errorf("got %+v", f)
	}
	want, err := os.ReadFile("testdata/article.txt")
	if err != nil {
		t.Fatal(err)
	}
	if f.Text != strings.TrimSpace(string(want)) {
		t.Errorf("text: got\n%s", f.Text)
	}
	linked, err := fetchPage(t, p, asked(s.URL+"/tea", `,"links":true`))
	if err != nil || !strings.Contains(linked.Text, "Yixing <"+s.URL+"/yixing?x=1#top>") || strings.Contains(linked.Text, "javascript") {
		t.Errorf("%v: got %s", err, linked.Text)
	}
	if s.hits.Load() != 1 {
		t.Errorf("got %d requests", s.hits.Load())
	}
	stand.Advance(11 * time.Minute)
	if _, err := fetchPage(t, p, asked(s.URL+"/tea", "")); err != nil || s.hits.Load() != 2 {
		t.Errorf("after a while: got %d requests, %v", s.hits.Load(), err)
	}
}

// TestHidden checks that the model does not see text that is invisible to users.
func TestHidden(t *testing.T) {
	for _, hidden := range []string{
		`<p style="display:none">`, `<p style="color:red; DISPLAY : none !important">`, `<p hidden>`, `<p aria-hidden="true">`, `<p style="visibility:hidden">`,
		`<p style="opacity:0">`, `<p style="color:red" hidden>`, `<p aria-hidden="false" style="display:none">`, `<p style="color:red" aria-hidden="true">`, `<p style="font-size:0px">`, `<p style="position:absolute;left:-9999px">`, `<template>`, `<noscript>`, `<script>`, `<style>`, `<title>`,
		`<p style="text-indent:-10000em">`, `<!-- `, `<textarea>`, `<svg><text>`, `<dialog>`, `<object>`,
	} {
		page := "<html><head></head><body><p>This is what people see of this page, all of it.</p>" + hidden + "OBEY ME"
		p, err := extract([]byte(page), kindHTML, "text/html", mustURL("https://example.org/"))
		if err != nil {
			t.Errorf("%s: got %v", hidden, err)
			continue
		}
		if !strings.Contains(p.text, "what people see") || strings.Contains(p.text+p.linked, "OBEY") {
			t.Errorf("%s: got %q", hidden, p.text)
		}
	}
	for _, seen := range []string{`<p style="margin-left:-10px">`, `<p style="opacity:0.5">`, `<p style="font-size:12px">`, `<p aria-hidden="false">`, `<p style="left:-5px">`} {
		p, err := extract([]byte("<p>one</p>"+seen+"SEE ME"), kindHTML, "text/html", mustURL("https://example.org/"))
		if err != nil || !strings.Contains(p.text, "SEE ME") {
			t.Errorf("%s: got %+v, %v", seen, p, err)
		}
	}
	p, err := extract([]byte("a\u202Eb\u200Bc\U000E0041d\x1b[0m e\u00ADf 👩\u200D🚀"), kindText, "text/plain; charset=utf-8", mustURL("https://example.org/"))
	if err != nil || p.text != "abcd[0m ef 👩\u200D🚀" {
		t.Errorf("got %q, %v", p.text, err)
	}
}

func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

func TestCharsets(t *testing.T) {
	latin, err := charmap.Windows1252.NewEncoder().String("<html><p>Grüße – naïve café, € 5")
	if err != nil {
		t.Fatal(err)
	}
	kana, err := japanese.ShiftJIS.NewEncoder().String("<html><head><meta charset=shift_jis></head><p>お茶の歴史です。")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ header, text, want string }{
		"the header":    {"text/html; charset=windows-1252", latin, "Grüße – naïve café, € 5"},
		"the page":      {"text/html", kana, "お茶の歴史です。"},
		"neither":       {"text/html", latin, "Grüße – naïve café, € 5"},
		"a mark":        {"text/html; charset=iso-8859-1", "\xEF\xBB\xBF<p>Grüße", "Grüße"},
		"a wrong one":   {"text/html; charset=nonsense", "<p>Grüße, all of you, über alles", "Grüße, all of you, über alles"},
		"broken":        {"text/plain; charset=utf-8", "a\xff\xfeb", "a"},
		"a bad header":  {"text/html; charset", "<p>Hello there", "Hello there"},
		"no type":       {"", "<!doctype html><p>Hello there", "Hello there"},
		"text, no type": {"", "Hello there", "Hello there"},
		"markdown":      {"text/markdown", "# Hello\n\nthere", "# Hello\n\nthere"},
		"json":          {"application/vnd.api+json", `{"a": 1}`, `{"a": 1}`},
	} {
		s := serve(t, map[string]http.HandlerFunc{"/": body(tc.header, tc.text)})
		p, _ := reader(t, s, Config{})
		f, err := fetchPage(t, p, asked(s.URL, ""))
		if err != nil || !strings.HasPrefix(f.Text, tc.want) {
			t.Errorf("%s: got %q, %v", name, f.Text, err)
		}
	}
}

func TestFetchFails(t *testing.T) {
	code := func(n int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) } }
	s := serve(t, map[string]http.HandlerFunc{
		"/gone": code(410), "/secret": code(403), "/busy": code(503), "/often": code(429), "/odd": code(204), "/empty": body("text/html", "<script>x</script>"),
		"/pdf": body("application/pdf", "%PDF-1.7"), "/png": body("image/png", "x"), "/zip": body("", "PK\x03\x04\x00\x00"), "/bin": body("application/octet-stream", "\x00\x01\x02"),
		"/large": body("text/html", strings.Repeat("x", 5000)),
		"/long":  func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/loop":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) },
		"/inside": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		},
		"/scheme": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		},
		"/endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("word ", 1000)); err != nil {
					return
				}
			}
		},
	})
	p, _ := reader(t, s, Config{MaxBody: 4096, Timeout: time.Minute})
	hasty, _ := reader(t, s, Config{MaxBody: 4096, Timeout: 300 * time.Millisecond})
	for path, want := range map[string]string{
		"/none": "broken: There is no such page.", "/gone": "broken: There is no such page.", "/secret": "broken: The server does not show", "/busy": "temporary: ", "/often": "temporary: ",
		"/odd": "broken: The server returned no page (204).", "/empty": "broken: The page has no text", "/pdf": `broken: That is a file of the type "application/pdf", not a page`, "/png": "broken: That is a file of the type",
		"/zip": "broken: That is a file", "/bin": "broken: That is a file", "/large": "broken: The server's answer is too large.", "/long": "temporary: The server took too long",
		"/loop": "broken: The server redirects to another address", "/inside": "forbidden: That address is not a public one", "/scheme": "broken: ", "/endless": "broken: The server's answer is too large.",
	} {
		by := p
		if path == "/long" {
			by = hasty
		}
		_, err := fetchPage(t, by, asked(s.URL+path, ""))
		var e *core.Error
		if !errors.As(err, &e) || !strings.HasPrefix(string(e.Kind)+": "+e.Text, want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// privates are ways to write an address in a private network, or an invalid one.
var privates = []string{
	"http://127.0.0.1/", "http://127.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://0x7f.1/", "http://127.0.0.1.:80/",
	"http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:0:0:1]/",
	"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00::1]/",
	"http://100.64.0.1/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://inside.example/", "http://mixed.example/", "http://six.example/", "http://①②⑦.0.0.1/", "http://127。0。0。1/",
	"http://224.0.0.1/", "http://255.255.255.255/", "http://198.18.0.1/", "http://metadata.example/", "127.0.0.1:22", "//127.0.0.1/",
}

// strange are invalid URLs, and URLs of other schemes.
var strange = []string{
	"file:///etc/passwd", "gopher://127.0.0.1/", "ftp://example.org/", "javascript:alert(1)", "data:text/html,x", "unix:///run/x.sock", "http://user:pw@example.org/", "http:///", "http://[fe80::1%25eth0]/",
	"http://example.org\\@127.0.0.1/", "about:blank", "http://exa mple.org/", "        ",
}

func TestPrivate(t *testing.T) {
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "inside.example", "metadata.example":
			return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
		case "mixed.example":
			return []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("127.0.0.1")}, nil
		case "six.example":
			return []netip.Addr{netip.MustParseAddr("::ffff:192.168.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	h := core.Host{Log: slog.New(slog.DiscardHandler), Clock: time.Now}
	p, err := build(h, plugintest.Defaults(t, Config{}), lookup)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range privates {
		_, err := fetchPage(t, p, asked(u, ""))
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Forbidden && e.Kind != core.Invalid || e.Kind == core.Forbidden &&
			!errors.Is(e, outbound.ErrPrivate) {
			t.Errorf("%s: got %v", u, err)
		}
	}
	if len(privates) < 25 {
		t.Error("too few addresses")
	}
	for _, u := range strange {
		_, err := fetchPage(t, p, asked(u, ""))
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Invalid {
			t.Errorf("%s: got %v", u, err)
		}
	}
}

func TestParts(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "<p>Paragraph %d speaks of tea, of pots, and of people who like both.</p>", i)
	}
	s := serve(t, map[string]http.HandlerFunc{"/": body("text/html", b.String())})
	p, _ := reader(t, s, Config{MaxText: 5000, Remember: time.Minute})
	first, err := fetchPage(t, p, asked(s.URL, ""))
	if err != nil || first.Parts < 5 || len(first.Text) > 5000 || len(first.Text) < 4500 {
		t.Fatalf("got %d parts, %d bytes, %v", first.Parts, len(first.Text), err)
	}
	all := first.Text
	for n := 2; n <= first.Parts; n++ {
		f, err := fetchPage(t, p, fmt.Sprintf(`{"url":%q,"part":%d}`, s.URL, n))
		if err != nil || f.Part != n {
			t.Fatal(err)
		}
		all += "\n\n" + f.Text
	}
	for i := range 400 {
		if strings.Count(all, fmt.Sprintf("Paragraph %d speaks", i)) != 1 {
			t.Errorf("paragraph %d is missing or repeated", i)
		}
	}
	if _, err := fetchPage(t, p, fmt.Sprintf(`{"url":%q,"part":99}`, s.URL)); err == nil || s.hits.Load() != 1 {
		t.Errorf("got %v, %d requests", err, s.hits.Load())
	}
	p.host.Clock = func() time.Time { return time.Now().Add(time.Minute) }
	if _, err := fetchPage(t, p, asked(s.URL, "")); err != nil || s.hits.Load() != 2 {
		t.Errorf("a minute later: got %v, %d requests", err, s.hits.Load())
	}
}

func TestSplit(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 3000), strings.Repeat("word ", 900), strings.Repeat("line\n", 900), strings.Repeat("para graph\n\n", 400)} {
		parts := partsOf(text, 1000)
		for _, part := range parts {
			if len(part) > 1000 || strings.ContainsRune(part, '�') {
				t.Errorf("got %d bytes: %.20q", len(part), part)
			}
		}
		strip := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if strip(strings.Join(parts, "")) != strip(text) {
			t.Errorf("%.20q… is not a complete text", text)
		}
	}
}
