package daemon

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/engine"
	"synthbot/core/recon"
	"synthbot/core/turn"
)

// Bot is one running bot: the parts that its configuration describes, and what outlives
// a change of the configuration.
type Bot struct {
	env     *Env
	log     *slog.Logger
	Data    *Storage
	changes *placeChanges   // the settings that users changed by command
	runtime *action.Runtime // rate limits and running actions
	Turns   *turn.Turns
	parts   atomic.Pointer[parts] // in force

	alerts  *alerts
	outbox  *outbox
	workers *workers
	monitor *monitor
	reloads *reloads
	page    *pageServer
	claim   *adminClaim
	pdfs    pdfReader
}

// InForce returns the parts in force; nil before the bot is assembled.
func (b *Bot) InForce() *parts { return b.parts.Load() }

// Outbox sends messages outside of turns.
func (b *Bot) Outbox() core.Messenger { return b.outbox }

// parts are what one configuration describes. They do not change once they are in force.
type parts struct {
	Config     *Config
	personas   *personas
	settings   *resolver
	Engines    *engine.Chain
	plugins    []loaded
	Commands   *command.Registry
	Snapshot   *action.Snapshot
	Interfaces []core.Interface
	small      *recon.Small // nil if no small model is configured
}

// runners are the parts that work in the background.
func (p *parts) runners() (all []runner) {
	for _, l := range p.plugins {
		if r, ok := l.Plugin.(core.Runner); ok {
			all = append(all, runner{"plugin " + l.Name(), l.Plugin, r})
		}
	}
	if p.small != nil {
		all = append(all, runner{"recon", p.small, p.small})
	}
	return all
}

// collectActions gathers the actions of all plugins and interfaces, under the policy of
// the configuration.
func (p *parts) collectActions(further ...core.Plugin) error {
	var all []core.Plugin
	for _, i := range p.Interfaces {
		all = append(all, i)
	}
	for _, l := range p.plugins {
		all = append(all, l.Plugin)
	}
	snapshot, err := action.Build(append(all, further...)...)
	if err != nil {
		return UsageError{fmt.Errorf("actions: %w", err)}
	}
	policy := p.policy()
	for i := range p.Config.Enabled {
		e := &p.Config.Enabled[i]
		root, err := core.MakePath(e.Name)
		if err != nil {
			return err
		}
		names := e.withheld(snapshot.All())
		if len(names) > 0 {
			rule := action.Rule{Path: root, Actions: names, Permission: action.Nobody}
			policy.Rules = slices.Insert(policy.Rules, 0, rule)
		}
	}
	p.Snapshot = snapshot.With(policy)
	return nil
}

// at returns the interface that serves a place; nil if there is none.
func (p *parts) at(place core.Path) core.Interface {
	for _, i := range p.Interfaces {
		if i.Name() == place.Interface() {
			return i
		}
	}
	return nil
}
