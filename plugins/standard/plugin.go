package standard

import (
	"context"

	"synthbot/core"
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	h       core.Host
	c       Config
	apis    []*api
	actions []core.Action
}

// New makes the plugin.
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
	return nil
}
