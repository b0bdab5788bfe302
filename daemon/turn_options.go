package daemon

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/document"
	"synthbot/core/hint"
	"synthbot/core/llm"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/core/watch"
	"synthbot/daemon/logs"
)

// settleTime is a little more than platforms take at the start to deliver edits and deletions of the time between.
const settleTime = 2 * time.Second

func (b *Bot) turnOptions(p *parts) turn.Options {
	c, log := p.Config, logs.Room(b.log, "core/turn")
	used := b.workers.sharing.used(turnLimits)
	clock, config := c.Clock(b.env.Clock), c.Prompt.Config
	config.Attempts, config.Backlog = c.Corrector.Attempts, c.Bot.Backlog
	named := sync.OnceValue(c.paths) // for many messages, once a place has moved
	o := turn.Options{
		Store: b.Data.Store, Catalogue: p.Snapshot, Clock: clock, Log: log, Runtime: b.runtime,
		Asker: p.Engines.Within(p.budget, p.draftSender()), Settings: p.turnSettings,
		Access: c.Access, Admins: c.admins(b.changes), Config: config,
		Names: func(place core.Path) []string {
			who := p.personaAt(place)
			return append([]string{c.Bot.Name, who.Name}, who.Aliases...)
		},
		Prompt: turn.Prompt{
			Persona:  func(place core.Path, user string) core.Persona { return p.personaAt(place).For(user) },
			Language: string(c.Bot.Language), Lite: c.Prompt.Lite, Shares: c.Shares,
			Open: b.attachmentReader(p), Speech: b.turnSpeech(p),
		},
		Places: turn.Places{
			Chooser: interfaceAs[core.Chooser](p), Carrier: interfaceAs[core.FileSender](p),
			Typing: interfaceAs[core.TypingIndicator](p),
			Asleep: func(place core.Path) bool {
				asleep := p.settings.At(place).Asleep
				return asleep != nil && *asleep
			},
			Reaches: func(place core.Path) bool { return b.workers.reaches(p.interfaceAt(place), place) },
			Settle:  settleTime,
			Elsewhere: func(place core.Path) bool {
				i := p.interfaceAt(place)
				return i != nil && !b.workers.sharing.serves(i)
			},
			Configured: func(place core.Path) bool {
				set := func(l *placeLayer) bool { return l.Path == place }
				return isNamed(named(), place) || slices.ContainsFunc(p.settings.All(), set)
			},
			Received: b.handleReceived,
			Asked: func(people []core.Path, perMinute int) {
				for _, user := range people {
					used(user, strconv.Itoa(perMinute))
				}
			},
		},
		Plugins: turn.Plugins{
			Commands: p.Commands, Recons: []hint.Source{recon.New()}, Watchers: b.page.watchers(c),
			Observers: []watch.Observer{b.monitor.metrics, b.monitor.traces, b.alerts},
		},
	}
	if p.smallRecon != nil {
		o.Plugins.Recons = append(o.Plugins.Recons, p.smallRecon)
	}
	for _, i := range p.Interfaces {
		o.Plugins.Add(i)
	}
	for _, l := range p.plugins {
		o.Plugins.Add(l.Plugin)
		if l.name == PairingName {
			last := len(o.Plugins.Gates) - 1
			o.Plugins.Gates[last] = exemptGate{o.Plugins.Gates[last], &c.Access}
		}
	}
	return o
}

// attachmentReader returns a function that reads the attachments of messages, as far as an engine can use them.
func (b *Bot) attachmentReader(p *parts) func(context.Context, core.Path, []core.Attachment) llm.Contents {
	o := document.Options{Fetch: host{b}.Fetch, PDF: b.pdfs.text, Log: logs.Room(b.log, "core/document")}
	for i := range p.Config.Engines {
		e := &p.Config.Engines[i]
		if !e.Disabled {
			o.Vision, o.Hearing = o.Vision || e.Vision, o.Hearing || e.Hearing
		}
	}
	return func(ctx context.Context, place core.Path, files []core.Attachment) llm.Contents {
		return document.Open(ctx, o, place, files)
	}
}

// draftEditor is a plugin that changes the draft of an answer before users see it.
type draftEditor interface {
	EditDraft(place core.Path, text string) string
}

// draftSender returns a function that shows an answer while a model writes it; nil if no interface can.
func (p *parts) draftSender() (show func(place core.Path, text string)) {
	if !slices.ContainsFunc(p.Interfaces, func(i core.Interface) bool { _, ok := i.(core.Drafter); return ok }) {
		return nil
	}
	return func(place core.Path, text string) {
		for _, e := range pluginsWith[draftEditor](p) {
			text = e.EditDraft(place, text)
		}
		if d, ok := p.interfaceAt(place).(core.Drafter); ok {
			d.Draft(place, text)
		}
	}
}

// reaches reports whether an interface can speak in a place now: not if it failed, or if it is no longer configured.
func (w *workers) reaches(i core.Interface, place core.Path) bool {
	if i == nil || w.failed(i) || !w.sharing.serves(i) {
		return false
	}
	r, limited := i.(core.Reachable)
	return !limited || r.Reaches(place)
}

// scopes returns further paths that a place belongs to by its interface, such as a channel's category.
func (p *parts) scopes(place core.Path) []core.Path {
	s, ok := p.interfaceAt(place).(core.Scoper)
	if !ok {
		return nil
	}
	return s.Scopes(place)
}

// interfaceAs returns a function that returns the interface of a place as a T; nil if it does not implement T.
func interfaceAs[T any](p *parts) func(place core.Path) T {
	return func(place core.Path) T {
		able, _ := p.interfaceAt(place).(T)
		return able
	}
}
