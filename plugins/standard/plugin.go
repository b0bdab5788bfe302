// Package standard contains the standard actions of action plans: display shows data, notify sends a notice to the user
// or the admins, wait pauses, confirm asks a question, api_call calls a configured HTTP API, and speak sends a voice
// message. The configuration selects them; by default only display is on.
//
// Actions that control a page, such as navigate, click and input, are not here: a
// program that has a page provides them through a blueprint or an MCP server.
package standard

import (
	"context"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/outbound"
	"synthbot/core/secret"
	"synthbot/core/txt"
)

// Plugin offers the standard actions. Safe for concurrent use.
type Plugin struct {
	h       core.Host
	c       Config
	apis    []*api
	actions []core.Action
}

func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{h: h, c: c}
	for i := range c.APIs {
		a, err := newAPI(&c.APIs[i])
		if err != nil {
			return nil, err
		}
		p.apis = append(p.apis, a)
	}
	make := map[string]func() core.Action{
		"display": p.display, "notify": p.notify, "wait": p.wait, "confirm": p.confirm, "speak": p.speak,
	}
	for _, name := range c.Actions {
		if name == "api_call" {
			p.actions = append(p.actions, p.apiCall()...)
		} else {
			p.actions = append(p.actions, make[name]())
		}
	}
	return p, nil
}

func (p *Plugin) Name() string { return p.h.Name }

func (p *Plugin) Actions() []core.Action { return p.actions }

// Run implements core.Runner: when ctx ends, it closes idle connections.
func (p *Plugin) Run(ctx context.Context) error {
	<-ctx.Done()
	for _, a := range p.apis {
		a.client.CloseIdleConnections()
	}
	return nil
}

// Config is the table [plugins.standard].
type Config struct {
	Actions []string      `toml:"actions" default:"display" oneof:"display|notify|wait|confirm|api_call|speak" doc:"The enabled actions. api_call needs an api, speak needs [speech.out]."`
	Wait    time.Duration `toml:"longest_wait" default:"20s" min:"1s" max:"5m" doc:"How long wait may pause; the conversation waits meanwhile."`
	Admins  string        `toml:"notify_admins" default:"moderators" oneof:"everyone|moderators|admins|nobody" doc:"Who may use notify to send something to the admins."`
	Notices int           `toml:"notices" default:"10" min:"1" max:"1000" doc:"How many notices per hour one user may cause."`
	APIs    []API         `toml:"api" doc:"An HTTP API that api_call may call."`
}

// API is one HTTP API. Requests are limited to addresses below its URL.
type API struct {
	Name       string                   `toml:"name" required:"true" example:"bank" doc:"Its name for the model: a-z, 0-9, - and _."`
	URL        string                   `toml:"url" required:"true" example:"https://bank.example.org/v1" doc:"The base address of all requests."`
	About      string                   `toml:"about" example:"Accounts and transactions" doc:"Its purpose, in a few words for the model."`
	Methods    []string                 `toml:"methods" default:"GET" oneof:"GET|POST|PUT|PATCH|DELETE" doc:"The allowed methods."`
	Headers    map[string]secret.Secret `toml:"headers" example:"Authorization=env:BANK_AUTHORIZATION" doc:"Headers of every request."`
	Permission string                   `toml:"permission" default:"admins" oneof:"everyone|moderators|admins" doc:"Who may use it."`
	Confirm    bool                     `toml:"confirm" default:"true" doc:"Whether the user must confirm requests with other methods than GET."`
	Allow      []outbound.Peer          `toml:"allow" example:"127.0.0.1:8080" doc:"Private addresses, ranges or hosts that may be called."`
	Timeout    time.Duration            `toml:"timeout" default:"20s" min:"1s" max:"5m" doc:"How long a request may take."`
	MaxBody    int64                    `toml:"max_body" default:"262144" min:"1024" max:"16777216" doc:"The maximum size of an answer, in bytes."`
}

// Speaks reports whether the action speak is enabled.
func (c *Config) Speaks() bool { return slices.Contains(c.Actions, "speak") }

// Moved maps former keys of this table to the present ones.
func (c *Config) Moved() map[string]string {
	return map[string]string{
		"speech": "speech.out", "speech.command": "speech.out.program", "speech.url": "speech.out.base_url",
		"speech.api_key": "speech.out.api_key", "speech.model": "speech.out.model", "speech.voice": "speech.out.voice",
		"speech.timeout": "speech.out.timeout", "speech.max_text": "speech.out.max_text",
	}
}

func (c *Config) Check(fault func(text string, at ...any)) {
	for i, name := range c.Actions {
		switch {
		case slices.Contains(c.Actions[:i], name):
			fault("it is named twice", "actions", i)
		case name == "api_call" && len(c.APIs) == 0:
			fault("api_call has nothing to call; add an api", "actions", i)
		}
	}
	for i := range c.APIs {
		for k := range i {
			if c.APIs[k].Name == c.APIs[i].Name {
				fault("another api has the same name", "api", i, "name")
			}
		}
	}
}

func (a *API) Check(fault func(text string, at ...any)) {
	if a.Name != "" && !txt.IsName(a.Name, 32, "-") {
		fault("write a-z, 0-9, - and _, at most 32 letters", "name")
	}
	_, wrong := outbound.ServerURL(a.URL)
	if a.URL != "" && wrong != "" {
		fault(wrong, "url")
	}
	outbound.CheckHeaders(a.Headers, fault)
}
