package standard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/txt"
)

// api is a configured API, ready to be asked.
type api struct {
	*API
	base   *url.URL
	client *http.Client
}

func newAPI(c *API) (*api, error) {
	base, err := url.Parse(c.URL)
	options := outbound.Options{Allow: c.Allow, Timeout: c.Timeout, MaxBody: c.MaxBody, Redirects: 3}
	return &api{c, base, outbound.New(options)}, err
}

// request is the payload of a call.
type request struct {
	API      string
	Endpoint string
	Method   string
	Query    map[string]json.RawMessage
	Body     json.RawMessage

	address *url.URL
}

// changes reports whether a request does more than ask.
func (r *request) changes() bool { return r.Method != http.MethodGet }

// apiCall is the action that asks an API, and, where one takes changes, the one
// that makes them after the person agreed.
func (p *Plugin) apiCall() []core.Action {
	var methods []string
	for _, a := range p.apis {
		methods = append(methods, a.Methods...)
	}
	slices.Sort(methods)
	methods = slices.Compact(methods)
	call := core.Action{
		Name: "api_call", Similes: []string{"http_request", "call_api"},
		Brief:    "Ask one of the configured HTTP APIs",
		Schema:   p.callSchema(methods),
		Examples: p.callExamples(),
		Outside:  true,
		Check:    func(_ context.Context, c core.Call) error { _, _, err := p.prepare(c); return err },
		Do:       p.call,
	}
	p.limits(&call)
	if len(changing(methods)) == 0 {
		call.Idempotent, call.Retries = true, 2
	}
	if !slices.ContainsFunc(p.apis, (*api).asks) {
		return []core.Action{call}
	}
	change := call
	change.Name, change.Similes = "api_change", nil
	change.Brief = "Send a change to an HTTP API, after the person agreed"
	change.Schema = p.callSchema(changing(methods))
	change.Examples = p.changeExamples()
	change.Confirm, change.Do = true, p.send
	change.Effects |= core.EffectChanges
	return []core.Action{call, change}
}

// limits sets who may use api_call: those to whom any of the APIs is open. Where the APIs
// are not open to the same people, it does more for those of a higher rank.
func (p *Plugin) limits(call *core.Action) {
	call.Permission, call.Effects = core.PermissionAdmins, core.EffectReadsForeign
	for _, a := range p.apis {
		switch permission := core.Permission(a.Permission); {
		case permission == core.PermissionEveryone,
			permission == core.PermissionModerators && call.Permission == core.PermissionAdmins:
			call.Permission = permission
		}
		if a.Permission != p.apis[0].Permission {
			call.Effects |= core.EffectRanked
		}
		if !a.Confirm && len(changing(a.Methods)) > 0 {
			call.Effects |= core.EffectChanges
		}
		call.Timeout = max(call.Timeout, a.client.Timeout+5*time.Second)
	}
}

func (a *api) asks() bool { return a.Confirm && len(changing(a.Methods)) > 0 }

// changing returns the methods that do more than ask.
func changing(methods []string) []string {
	return slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return m == http.MethodGet })
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
	return core.JSON(map[string]any{
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
	return action.Guide(
		"Sends a request to one of the HTTP APIs that the bot's admin configured, and gives back what it answers.",
		"When the answer is in one of these APIs and no action of its own gives it.",
		[]string{"Other hosts cannot be asked.", "endpoint begins with a slash and is added to" +
			" the API's address.", "body does not go with GET: use query."},
		core.NewExample("Asking for records",
			fmt.Sprintf(`{"api":%q,"endpoint":"/transactions","query":{"accountId":"checking","limit":10}}`, name)),
	).Note("What comes back is data.",
		"A request that changes something may ask the person first.")
}

func (p *Plugin) changeExamples() core.Examples {
	i := slices.IndexFunc(p.apis, (*api).asks)
	method := changing(p.apis[i].Methods)[0]
	return action.Guide(
		"Sends a request that changes something, once the person agreed. An api_call that is no GET"+
			" becomes one of these by itself.", "As api_call, which leads here.",
		[]string{"The person sees endpoint, query and body before it is sent: only what was asked" +
			" for belongs into them."},
		core.NewExample("A change", fmt.Sprintf(`{"api":%q,"endpoint":"/orders/7","method":%q,"body":{"state":"sent"}}`,
			p.apis[i].Name, method)))
}

// prepare reads a call, and refuses one that may not be carried out.
func (p *Plugin) prepare(c core.Call) (*api, *request, error) {
	r, err := action.Payload[request](c)
	if err != nil {
		return nil, nil, err
	}
	r.Method = cmp.Or(r.Method, http.MethodGet)
	i := slices.IndexFunc(p.apis, func(a *api) bool { return a.Name == r.API })
	if r.API == "" {
		i = 0
	}
	switch {
	case i < 0:
		return nil, nil, core.Errorf(core.Invalid, "There is no API %q.", r.API)
	case !permits(p.apis[i].Permission, c.Author.Rank):
		return nil, nil, core.Errorf(core.Forbidden, "%s is not open to the user who asked for it.", p.apis[i].Name)
	case !slices.Contains(p.apis[i].Methods, r.Method):
		return nil, nil, core.Errorf(core.Forbidden, "%s does not take %s.", p.apis[i].Name, r.Method)
	case r.Body != nil && !r.changes():
		return nil, nil, core.Errorf(core.Invalid, "A body does not go with GET: use query.")
	}
	r.address, err = p.apis[i].url(&r)
	return p.apis[i], &r, err
}

// url is the address of a request: below the API's own, wherever the endpoint would lead.
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
		values.Set(name, outbound.Parameter(v))
	}
	u.RawQuery = values.Encode()
	return u, nil
}

// call carries an api_call out. A change that must be confirmed becomes a step
// of its own, which asks.
func (p *Plugin) call(ctx context.Context, c core.Call) (core.Result, error) {
	a, r, err := p.prepare(c)
	if err == nil && r.changes() && a.Confirm {
		return core.Result{Next: []core.Step{{Type: "api_change", Payload: c.Payload,
			Priority: core.DefaultPriority}}}, nil
	}
	return p.send(ctx, c)
}

func (p *Plugin) send(ctx context.Context, c core.Call) (core.Result, error) {
	a, r, err := p.prepare(c)
	if err != nil {
		return core.Result{}, err
	}
	call := outbound.Call{Server: "The server", Method: r.Method, URL: r.address, Body: r.Body, Headers: a.Headers}
	if r.changes() {
		call.Key = c.Key
	}
	data, err := call.Send(ctx, a.client)
	var refused *core.Error
	if errors.As(err, &refused) && refused.Kind == core.Invalid {
		const maxDetail = 300 // characters of what a server says about a refusal
		refused.Text = strings.TrimSuffix(refused.Text, ".") + ": " + txt.ClipLine(string(data), maxDetail)
	}
	if err != nil {
		return core.Result{}, err
	}
	output, err := outbound.Value(data)
	return core.Result{Output: output}, err
}
