package coretest

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"synthbot/core"
)

// Plugin is a plugin with given actions that records calls of them.
type Plugin struct {
	name    string
	actions []core.Action

	mu    sync.Mutex
	calls []core.Call
}

// NewPlugin returns a plugin. Actions without a Do succeed and return their payload as output; those without a schema
// accept any object, and those that declare no effects have none.
func NewPlugin(name string, actions ...core.Action) *Plugin {
	p := &Plugin{name: name}
	for _, a := range actions {
		if a.Schema == nil {
			a.Schema = json.RawMessage(`{"type":"object"}`)
		}
		a.Brief, a.Effects = cmp.Or(a.Brief, "Do something for a test"), cmp.Or(a.Effects, core.EffectNone)
		do := a.Do
		if do == nil {
			do = func(_ context.Context, c core.Call) (core.Result, error) {
				return core.Result{Output: c.Payload}, nil
			}
		}
		a.Do = func(ctx context.Context, c core.Call) (core.Result, error) {
			p.mu.Lock()
			p.calls = append(p.calls, c)
			p.mu.Unlock()
			return do(ctx, c)
		}
		p.actions = append(p.actions, a)
	}
	return p
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.name }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action { return p.actions }

// Calls returns the calls so far.
func (p *Plugin) Calls() []core.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]core.Call(nil), p.calls...)
}
