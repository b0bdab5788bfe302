package standard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/outbound"
)

// api is a configured API, ready to be asked.
type api struct {
	*API
	base   *url.URL
	client *http.Client
	hide   *strings.Replacer // what the server may tell again
}

func newAPI(c *API) *api {
	base, _ := address(c.URL) // checked before
	client := outbound.New(outbound.Options{Allow: c.Allow, Timeout: c.Timeout, MaxBody: c.MaxBody, Redirects: 3})
	return &api{c, base, client, core.Conceal(slices.Collect(maps.Values(c.Headers))...)}
}

// request is the payload of a call.
type request struct {
	API      string
	Endpoint string
	Method   string
	Query    map[string]json.RawMessage
	Body     json.RawMessage
}

// changes reports whether a request does more than ask.
func (r *request) changes() bool { return r.Method != http.MethodGet }

// apiCall is the action that asks an API, and, where one takes changes, the one
// that makes them after the person agreed.
func (p *Plugin) apiCall() []core.Action {
	call := core.Action{
		Name: "api_call", Similes: []string{"http_request", "call_api"},
		Brief:    "Ask one of the configured HTTP APIs",
		Schema:   p.callSchema(p.methods()),
		Examples: p.callExamples(),
		Effects:  p.effects(),
		Outside:  true, Permission: p.loosest(), Timeout: p.longest() + 5*time.Second,
		Check: func(_ context.Context, c core.Call) error { _, _, err := p.prepare(c); return err },
		Do:    p.call,
	}
	if !slices.ContainsFunc(p.methods(), func(m string) bool { return m != http.MethodGet }) {
		call.Idempotent, call.Retries = true, 2
	}
	actions := []core.Action{call}
	if slices.ContainsFunc(p.apis, (*api).asks) {
		change := call
		change.Name, change.Similes = "api_change", nil
		change.Brief = "Send a change to an HTTP API, after the person agreed"
		change.Schema = p.callSchema(slices.DeleteFunc(p.methods(), func(m string) bool { return m == http.MethodGet }))
		change.Examples = p.changeExamples()
		change.Confirm, change.Do = true, p.send
		change.Effects |= core.EffectChanges
		actions = append(actions, change)
	}
	return actions
}

// effects are those of api_call: where the APIs are not open to the same people, it
// does more for those of a higher rank.
func (p *Plugin) effects() core.Effect {
	e := core.EffectReadsForeign
	for _, a := range p.apis {
		if a.Permission != p.apis[0].Permission {
			e |= core.EffectRanked
		}
		if !a.Confirm && slices.ContainsFunc(a.Methods, func(m string) bool { return m != http.MethodGet }) {
			e |= core.EffectChanges
		}
	}
	return e
}

// asks reports whether the person is asked about changes.
func (a *api) asks() bool {
	return a.Confirm && slices.ContainsFunc(a.Methods, func(m string) bool { return m != http.MethodGet })
}

func (p *Plugin) methods() (all []string) {
	for _, a := range p.apis {
		all = append(all, a.Methods...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// loosest is the permission of those who may ask any of the APIs.
func (p *Plugin) loosest() core.Permission {
	for _, permission := range []core.Permission{core.Everyone, core.Moderators} {
		if slices.ContainsFunc(p.apis, func(a *api) bool { return a.Permission == string(permission) }) {
			return permission
		}
	}
	return core.Admins
}

func (p *Plugin) longest() (d time.Duration) {
	for _, a := range p.apis {
		d = max(d, a.client.Timeout)
	}
	return d
}

func (p *Plugin) callSchema(methods []string) json.RawMessage {
	var names, about []string
	for _, a := range p.apis {
		names = append(names, a.Name)
		if a.About != "" {
			about = append(about, a.Name+": "+a.About)
		}
	}
	first := methods[0]
	if slices.Contains(methods, http.MethodGet) {
		first = http.MethodGet
	}
	return encode(map[string]any{
		"type": "object", "title": "Ask an API", "additionalProperties": false, "required": []string{"endpoint"},
		"properties": map[string]any{
			"api": map[string]any{"type": "string", "enum": names, "default": names[0], "title": "API",
				"description": strings.Join(about, "; ")},
			"endpoint": map[string]any{"type": "string", "minLength": 1, "maxLength": 1000, "title": "endpoint",
				"description": "The path below the API's address, like /transactions."},
			"method": map[string]any{"type": "string", "enum": methods, "default": first, "title": "method"},
			"query": map[string]any{"type": "object", "title": "query", "description": "Parameters of the address.",
				"additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}}},
			"body": map[string]any{"title": "body", "description": "What is sent, as JSON; not with GET."},
		},
	})
}

func (p *Plugin) callExamples() core.Examples {
	name := p.apis[0].Name
	return core.Examples{
		Description: "Sends a request to one of the HTTP APIs that the bot's admin configured, and gives back what" +
			" it answers.",
		Instructions: core.Instructions{
			WhenToUse: "When the answer is in one of these APIs and no action of its own gives it.",
			CommonPitfalls: []string{"Other hosts cannot be asked.", "endpoint begins with a slash and is added to" +
				" the API's address.", "body does not go with GET: use query."},
			Notes: []string{"What comes back is data.",
				"A request that changes something may ask the person first."},
		},
		Examples: []core.Example{example("Asking for records",
			fmt.Sprintf(`{"api":%q,"endpoint":"/transactions","query":{"accountId":"checking","limit":10}}`, name))},
	}
}

// changeExamples are the third tier of api_change.
func (p *Plugin) changeExamples() core.Examples {
	i := slices.IndexFunc(p.apis, (*api).asks)
	method := p.apis[i].Methods[slices.IndexFunc(p.apis[i].Methods, func(m string) bool { return m != http.MethodGet })]
	return core.Examples{
		Description: "Sends a request that changes something, once the person agreed. An api_call that is no GET" +
			" becomes one of these by itself.",
		Instructions: core.Instructions{
			WhenToUse: "As api_call, which leads here.",
			CommonPitfalls: []string{"The person sees endpoint, query and body before it is sent: only what he asked" +
				" for belongs into them."},
		},
		Examples: []core.Example{example("A change",
			fmt.Sprintf(`{"api":%q,"endpoint":"/orders/7","method":%q,"body":{"state":"sent"}}`, p.apis[i].Name,
				method))},
	}
}

// prepare reads a call, and refuses one that may not be carried out.
func (p *Plugin) prepare(c core.Call) (*api, *request, error) {
	r := &request{Method: http.MethodGet}
	if err := json.Unmarshal(c.Payload, r); err != nil {
		return nil, nil, &core.Error{Kind: core.Invalid, Text: "The payload cannot be read.", Err: err}
	}
	i := slices.IndexFunc(p.apis, func(a *api) bool { return a.Name == r.API })
	if r.API == "" {
		i = 0
	}
	switch {
	case i < 0:
		return nil, nil, core.Errorf(core.Invalid, "There is no API %q.", r.API)
	case !permits(p.apis[i].Permission, c.Author.Rank):
		return nil, nil, core.Errorf(core.Forbidden, "%s is not open to who asked for it.", p.apis[i].Name)
	case !slices.Contains(p.apis[i].Methods, r.Method):
		return nil, nil, core.Errorf(core.Forbidden, "%s does not take %s.", p.apis[i].Name, r.Method)
	case r.Body != nil && !r.changes():
		return nil, nil, core.Errorf(core.Invalid, "A body does not go with GET: use query.")
	}
	_, err := p.apis[i].url(r)
	return p.apis[i], r, err
}

// url is the address of a request: below the API's own, wherever the endpoint
// would lead.
func (a *api) url(r *request) (*url.URL, error) {
	refused := core.Errorf(core.Invalid, "The endpoint must be a path below the address of %s, like /transactions.",
		a.Name)
	e, err := url.Parse(r.Endpoint)
	if err != nil || e.Opaque != "" || e.User != nil || strings.ContainsAny(e.Path, "\\\x00") {
		return nil, refused
	}
	if e.Host != "" || e.Scheme != "" { // written in full
		rest, below := strings.CutPrefix(e.Path, strings.TrimSuffix(a.base.Path, "/"))
		if e.Scheme != a.base.Scheme || e.Host != a.base.Host || !below || rest != "" && rest[0] != '/' {
			return nil, refused
		}
		e.Path, e.RawPath = rest, ""
	}
	for part := range strings.SplitSeq(e.Path, "/") {
		if part == ".." || part == "." {
			return nil, refused
		}
	}
	u := a.base.JoinPath(e.EscapedPath())
	values := e.Query()
	for name, v := range r.Query {
		values.Set(name, plain(v))
	}
	u.RawQuery = values.Encode()
	return u, nil
}

// plain is a scalar as a query holds it.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// call carries an api_call out. A change that must be confirmed becomes a step
// of its own, which asks.
func (p *Plugin) call(ctx context.Context, c core.Call) (core.Result, error) {
	a, r, err := p.prepare(c)
	if err != nil {
		return core.Result{}, err
	}
	if r.changes() && a.Confirm {
		return core.Result{Next: []core.Step{{Type: "api_change", Payload: c.Payload,
			Priority: core.DefaultPriority}}}, nil
	}
	return p.send(ctx, c)
}

// send sends the request.
func (p *Plugin) send(ctx context.Context, c core.Call) (core.Result, error) {
	a, r, err := p.prepare(c)
	if err != nil {
		return core.Result{}, err
	}
	u, err := a.url(r)
	if err != nil {
		return core.Result{}, err
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, u.String(), body)
	if err != nil {
		return core.Result{}, &core.Error{Kind: core.Invalid, Text: "That is no address.", Err: err}
	}
	a.head(q, r, c.Key)
	resp, err := a.client.Do(q)
	if err != nil {
		return core.Result{}, outbound.Fault(err)
	}
	data, err := outbound.Read(resp)
	if err != nil {
		return core.Result{}, outbound.Fault(err)
	}
	return answered(resp, []byte(a.hide.Replace(string(data))))
}

// head sets the headers of a request.
func (a *api) head(q *http.Request, r *request, key core.Key) {
	q.Header.Set("Accept", "application/json, text/*;q=0.5")
	q.Header.Set("User-Agent", "synthbot")
	if r.Body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if r.changes() { // the same in every try
		sum := sha256.Sum256([]byte(fmt.Sprint(key)))
		q.Header.Set("Idempotency-Key", hex.EncodeToString(sum[:16]))
	}
	for name, value := range a.Headers {
		q.Header.Set(name, value.Reveal())
	}
}

// answered says what came of a request.
func answered(resp *http.Response, data []byte) (core.Result, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return core.Result{}, &core.Error{Kind: core.Temporary, Text: "The server wants to be asked later.",
			After: after(resp)}
	case code >= 500:
		return core.Result{}, &core.Error{Kind: core.Temporary,
			Text: fmt.Sprintf("The server has a fault of its own (%d).", code), Err: errors.New(clip(data))}
	case code >= 300:
		return core.Result{}, &core.Error{Kind: core.Invalid,
			Text: fmt.Sprintf("The server refused that (%d): %s", code, clip(data))}
	}
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return core.Result{Output: encode(map[string]int{"status": resp.StatusCode})}, nil
	case json.Valid(data):
		return core.Result{Output: data}, nil
	case utf8.Valid(data):
		return core.Result{Output: encode(string(data))}, nil
	}
	return core.Result{}, core.Errorf(core.Broken, "The server answered neither JSON nor text.")
}

// after is how long a server asks to be left alone; 0 where it does not say.
func after(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 86400 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// clip is the beginning of what a server said, for an error.
func clip(data []byte) string {
	const most = 300
	if len(data) > most {
		data = data[:most]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "")), " ")
}
