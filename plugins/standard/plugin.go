package standard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"synthbot/core"
	"synthbot/core/outbound"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	h       core.Host
	c       Config
	apis    []*api
	voice   *http.Client // nil: a command speaks
	actions []core.Action
}

// New makes the plugin. Its error names everything that is wrong with the Config.
func New(h core.Host, c Config) (*Plugin, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	p := &Plugin{h: h, c: c}
	for i := range c.APIs {
		p.apis = append(p.apis, newAPI(&c.APIs[i]))
	}
	if c.Speech.URL != "" {
		u, err := url.Parse(c.Speech.URL)
		if err != nil {
			return nil, err
		}
		p.voice = outbound.New(outbound.Options{Allow: []outbound.Peer{outbound.PeerOf(u)}, Timeout: c.Speech.Timeout,
			MaxBody: maxSound})
	}
	make := map[string]func() []core.Action{
		"display": p.display, "notify": p.notify, "wait": p.wait, "confirm": p.confirm, "api_call": p.apiCall,
		"speak": p.speak,
	}
	for _, name := range c.Actions {
		p.actions = append(p.actions, make[name]()...)
	}
	return p, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.h.Name }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action { return p.actions }

// Run implements core.Runner: at the end it lets idle connections go.
func (p *Plugin) Run(ctx context.Context) error {
	<-ctx.Done()
	for _, a := range p.apis {
		a.client.CloseIdleConnections()
	}
	if p.voice != nil {
		p.voice.CloseIdleConnections()
	}
	return nil
}

// say is the step that says something where the call takes place.
func say(c core.Call, text string) core.Step {
	return core.Step{Type: core.MessagePrefix + c.Path.Interface(), Payload: encode(map[string]string{"text": text}),
		Priority: core.DefaultPriority}
}

// encode writes a value of ours as JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // maps and structs of texts and JSON can be encoded
	}
	return raw
}

// example is a right payload of an action.
func example(scenario, payload string) core.Example {
	return core.Example{Scenario: scenario, Payload: json.RawMessage(payload)}
}
