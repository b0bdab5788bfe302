package mcp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"synthbot/core"
)

// Plugin offers the tools of all configured servers.
type Plugin struct {
	host    core.Host
	servers []*server

	mu      sync.Mutex // of those who make the list anew
	actions atomic.Pointer[[]core.Action]
}

// New makes the plugin. Nothing is started before Run.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h}
	for _, conf := range c.Servers {
		p.servers = append(p.servers, newServer(h, conf, p.rename))
	}
	p.actions.Store(&[]core.Action{})
	return p, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return "mcp" }

// Actions implements core.Plugin: what the servers that are there offer now.
func (p *Plugin) Actions() []core.Action { return slices.Clone(*p.actions.Load()) }

// Run implements core.Runner: it keeps all servers alive, and ends them.
func (p *Plugin) Run(ctx context.Context) error {
	var work sync.WaitGroup
	for _, s := range p.servers {
		work.Go(func() { s.run(ctx) })
	}
	work.Wait()
	return nil
}

// rename gives all entries of all servers their names, and tells the bot.
func (p *Plugin) rename() {
	p.mu.Lock()
	var entries []entry
	for _, s := range p.servers {
		list := s.entries.Load()
		if list != nil && s.life.Load() != nil {
			entries = append(entries, *list...)
		}
	}
	list := named(entries)
	p.actions.Store(&list)
	p.mu.Unlock()
	p.host.Changed()
}

// named names actions. Tools whose names the catalogue could not tell apart get a few more
// letters. The names depend only on the entries.
func named(entries []entry) []core.Action {
	taken := make(map[string]int)
	for _, e := range entries {
		taken[plain(e.action.Name)]++
	}
	list := make([]core.Action, 0, len(entries))
	for _, e := range entries {
		a := e.action
		if taken[plain(a.Name)] > 1 && !e.own {
			a.Name = actionName(e.server, e.tool, true)
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b core.Action) int { return strings.Compare(a.Name, b.Name) })
	return list
}
