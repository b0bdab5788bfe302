package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"synthbot/core"
	"synthbot/core/outbound"
	"synthbot/core/txt"
)

// hit is one result of a search, as the server returns it and as the model sees it.
type hit struct {
	Title     string `json:"title"`
	URL       string `json:"url"`
	Content   string `json:"content,omitempty"`
	Published string `json:"publishedDate,omitempty"`
}

// found is the output of a search for the model.
type found struct {
	Foreign string   `json:"foreign"`
	Instant []string `json:"instant,omitempty"`
	Results []hit    `json:"results"`
}

const (
	maxHit     = 400 // bytes of a result's text
	maxInstant = 3   // answers without a page
)

var languageTag = txt.Pattern(`^[A-Za-z]{2,3}(-[A-Za-z]{2})?$`)

func (p *Plugin) find(ctx context.Context, _ core.Call, q searchPayload) (core.Result, error) {
	if squeeze(q.Query) == "" {
		return core.Result{}, core.Errorf(core.Invalid, "The query is empty.")
	}
	request, err := p.query(ctx, q)
	if err != nil {
		return core.Result{}, err
	}
	response, err := p.search.Do(request)
	if err != nil {
		return core.Result{}, outbound.Fault(err)
	}
	body, err := outbound.Read(response)
	if response.StatusCode != http.StatusOK {
		return core.Result{}, answered(response)
	}
	if err != nil {
		return core.Result{}, outbound.Fault(err)
	}
	hits, err := hitsOf(body, p.conf.Results)
	if err != nil {
		return core.Result{}, &core.Error{Kind: core.Broken, Text: "The search server's answer cannot be read.",
			Err: err}
	}
	return core.Output(hits), nil
}

// safety contains the levels of safe search in SearXNG's notation.
var safety = map[string]string{"off": "0", "moderate": "1", "strict": "2"}

func (p *Plugin) query(ctx context.Context, q searchPayload) (*http.Request, error) {
	u := p.base.JoinPath("search")
	if strings.HasSuffix(p.base.Path, "/search") {
		u = p.base.JoinPath()
	}
	language := q.Language
	if !languageTag().MatchString(language) {
		language = p.host.Language
	}
	values := url.Values{"q": {squeeze(q.Query)}, "format": {"json"}, "language": {language},
		"safesearch": {safety[p.conf.Safe]}}
	if q.Recent != "" {
		values.Set("time_range", q.Recent)
	}
	u.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("searxng: %w", err)
	}
	request.Header.Set("User-Agent", p.conf.UserAgent)
	request.Header.Set("Accept", "application/json")
	for name, value := range p.conf.Headers {
		request.Header.Set(name, value.Reveal())
	}
	return request, nil
}

// answered returns the error for an HTTP status of the search server other than 200.
func answered(r *http.Response) *core.Error {
	e := &core.Error{Kind: core.Broken, Text: "The search server does not answer."}
	e.Err = errors.New("searxng: " + r.Status)
	switch {
	case r.StatusCode == http.StatusForbidden:
		e.Text = "The search server refuses to answer."
		e.Err = fmt.Errorf("%w; it must have json among search.formats in its settings.yml", e.Err)
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
		e.Kind, e.Text = core.Temporary, "The search server cannot answer at the moment."
	}
	return e
}

// hitsOf parses a server's answer into at most limit results. It skips invalid ones.
func hitsOf(body []byte, limit int) (found, error) {
	var said struct {
		Results []json.RawMessage
		Answers []json.RawMessage
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return found{}, err
	}
	f := found{Foreign: stranger, Results: []hit{}}
	for _, raw := range said.Results {
		var h hit
		if len(f.Results) == limit || json.Unmarshal(raw, &h) != nil {
			continue
		}
		if h, ok := h.fit(); ok {
			f.Results = append(f.Results, h)
		}
	}
	for _, raw := range said.Answers {
		text := instant(raw)
		if text != "" && len(f.Instant) < maxInstant {
			f.Instant = append(f.Instant, text)
		}
	}
	return f, nil
}

// fit returns a result as the model sees it. It returns false if the address is invalid.
func (h hit) fit() (hit, bool) {
	u, err := address(h.URL)
	if err != nil || len(h.URL) > 2000 {
		return h, false
	}
	published, _, _ := strings.Cut(h.Published, "T")
	return hit{Title: txt.ClipBytes(squeeze(h.Title), maxTitle), URL: u.String(),
		Content: txt.ClipBytes(squeeze(h.Content), maxHit), Published: txt.ClipBytes(squeeze(published), 20)}, true
}

// instant parses an answer without a page: a text or, from newer servers, an object.
func instant(raw json.RawMessage) string {
	var text string
	var object struct{ Answer string }
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		text = object.Answer
	}
	return txt.ClipBytes(squeeze(text), maxHit)
}
