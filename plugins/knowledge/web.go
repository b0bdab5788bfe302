package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"synthbot/core/document"
	"synthbot/core/outbound"
	"synthbot/core/passage"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// Limits of reading the web.
const (
	maxPageBody  = 8 << 20 // bytes of an answer
	maxRedirects = 5
	maxItems     = 200  // of a feed
	maxKeptItems = 2000 // of a feed, including the newest ones that it no longer lists
)

// get fetches an address, and returns the body with its media type; "" if unknown.
func (p *Plugin) get(ctx context.Context, address string) (data []byte, kind string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (compatible; synthbot)")
	r.Header.Set("Accept", "text/html, text/plain, application/pdf, application/xml;q=0.9, */*;q=0.1")
	response, err := p.client.Do(r)
	if err != nil {
		return nil, "", outbound.Fault(err)
	}
	data, err = outbound.Read(response)
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("the server says %s", response.Status)
	}
	if err != nil {
		return nil, "", outbound.Fault(err)
	}
	kind, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	return data, kind, nil
}

func (p *Plugin) page(ctx context.Context, address string) (string, error) {
	data, kind, err := p.get(ctx, address)
	if err != nil {
		return "", err
	}
	switch {
	case kind == "text/html", kind == "application/xhtml+xml", kind == "":
		return readHTML(data)
	case kind == "application/pdf":
		return formatOf("page.pdf")(ctx, &p.host, data)
	case strings.HasPrefix(kind, "text/"):
		return document.Text(data)
	}
	return "", fmt.Errorf("it is of the type %q, which cannot be read", txt.ClipLine(kind, 60))
}

// takeDue returns whether an address must be read now. If so, it records that it was read.
func (p *Plugin) takeDue(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.read[address]
	if ok && p.host.Clock().Sub(last) < p.config.Refresh {
		return false
	}
	p.read[address] = p.host.Clock()
	return true
}

// pages lists the web pages of the source. A known page that is not due, or cannot be read now, is listed unchanged.
func (r *sourceReader) pages(ctx context.Context, known map[string]passage.Document) (files []file) {
	for _, address := range r.source.URLs {
		d, ok := known[address]
		if r.takeDue(address) {
			text, err := r.page(ctx, address)
			r.note(address, err)
			if err == nil {
				files = append(files, r.webFile(address, text, r.host.Clock()))
				continue
			}
		}
		if ok {
			files = append(files, file{name: address, stamp: d.Stamp})
		}
	}
	return files
}

func (r *sourceReader) webFile(address, text string, at time.Time) file {
	sum := sha256.Sum256([]byte(text))
	return file{
		name: address, stamp: readerVersion + " " + hex.EncodeToString(sum[:12]), time: at, link: address,
		read: func(context.Context) (string, error) { return text, nil },
	}
}

type feedItem struct {
	Title string `xml:"title"`
	GUID  string `xml:"guid"`
	ID    string `xml:"id"`
	Links []struct {
		Href string `xml:"href,attr"`
		Rel  string `xml:"rel,attr"`
		Text string `xml:",chardata"`
	} `xml:"link"`
	Description string `xml:"description"`
	Encoded     string `xml:"http://purl.org/rss/1.0/modules/content/ encoded"`
	Content     string `xml:"content"`
	Summary     string `xml:"summary"`
	Date        string `xml:"pubDate"`
	Updated     string `xml:"updated"`
}

// address returns the URL of the item; "" if it has none.
func (i *feedItem) address() string {
	for _, l := range i.Links {
		to := strings.TrimSpace(l.Href + l.Text)
		if (l.Rel == "" || l.Rel == "alternate") && isAddress(to) {
			return to
		}
	}
	for _, to := range []string{i.GUID, i.ID} {
		if isAddress(to) {
			return to
		}
	}
	return ""
}

func (i *feedItem) date() time.Time {
	for _, layout := range []string{time.RFC1123Z, time.RFC1123, time.RFC3339} {
		for _, text := range []string{i.Date, i.Updated} {
			at, err := time.Parse(layout, strings.TrimSpace(text))
			if err == nil {
				return at
			}
		}
	}
	return time.Time{}
}

// readFeed parses RSS or Atom, and returns at most maxItems items.
func readFeed(data []byte) ([]feedItem, error) {
	var feed struct {
		Items   []feedItem `xml:"channel>item"`
		Entries []feedItem `xml:"entry"`
	}
	d := xml.NewDecoder(strings.NewReader(string(data)))
	d.Strict, d.Entity = false, xml.HTMLEntity
	if err := d.Decode(&feed); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	items := append(feed.Items, feed.Entries...)
	if len(items) == 0 {
		return nil, errors.New("feed: no items in it")
	}
	return items[:min(len(items), maxItems)], nil
}

// feed lists the items of the source's feed, including known ones that it no longer contains.
func (r *sourceReader) feed(ctx context.Context, known map[string]passage.Document) (files []file) {
	if r.takeDue(r.source.Feed) {
		data, _, err := r.get(ctx, r.source.Feed)
		var items []feedItem
		if err == nil {
			items, err = readFeed(data)
		}
		r.note(r.source.Feed, err)
		for i := range items {
			f, ok := r.itemFile(&items[i])
			if ok {
				files = append(files, f)
			}
		}
	}
	newestFirst := func(a, b passage.Document) int { return b.Time.Compare(a.Time) }
	for _, d := range sorting.Sorted(maps.Values(known), newestFirst) {
		isListed := func(f file) bool { return f.name == d.Name }
		if d.Link != "" && !slices.Contains(r.source.URLs, d.Name) && !slices.ContainsFunc(files, isListed) &&
			len(files) < maxKeptItems {
			files = append(files, file{name: d.Name, stamp: d.Stamp})
		}
	}
	return files
}

// itemFile converts an item to a document; ok is false if it has no valid address or no text.
func (r *sourceReader) itemFile(i *feedItem) (f file, ok bool) {
	address := i.address()
	u, err := url.Parse(address)
	if err != nil || address == "" || len(address) > maxName || slices.Contains(r.source.URLs, address) {
		return f, false
	}
	text := ""
	for _, body := range []string{i.Encoded, i.Content, i.Description, i.Summary} {
		if text == "" && strings.TrimSpace(body) != "" {
			text, err = readHTML([]byte("<meta charset=utf-8>" + body))
			if err != nil {
				text = html.UnescapeString(body)
			}
		}
	}
	title := txt.ClipLine(html.UnescapeString(i.Title), cut.HeadingMax)
	return r.webFile(u.String(), "# "+title+"\n\n"+text, i.date()), title != "" || text != ""
}
