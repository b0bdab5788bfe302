package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/llm"
	"synthbot/core/loop"
	"synthbot/core/passage"
	"synthbot/core/turn"
	"synthbot/daemon/logs"
	"synthbot/memory"
	"synthbot/plugins/blueprint"
	"synthbot/plugins/pairing"
)

// available is a plugin that a configuration may have.
type available struct {
	name, doc string
	config    func() any // makes the plugin's own configuration struct
	make      func(h core.Host, own any) (core.Plugin, error)
	options
}

type options struct {
	byDefault bool                 // it is always on without a table
	wanted    func(c *Config) bool // whether it is on without a table; optional
	// complete fills in the rest of the plugin's struct, and reports faults of the files that it names. Optional.
	complete func(c *Config, own any, fault func(text string, at ...any))
}

func plugin[C any, P core.Plugin](name, doc string, make func(core.Host, C) (P, error), o options) available {
	return available{
		name: name, doc: doc, options: o,
		config: func() any { return new(C) },
		make:   func(h core.Host, own any) (core.Plugin, error) { return make(h, *own.(*C)) },
	}
}

type anyPlugin struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Whether the plugin is on."`
}

// chosen is a plugin that is on, with its configuration.
type chosen struct {
	available
	Own any
}

func decodePlugins(c *Config, d *config.Document) {
	for _, a := range availablePlugins {
		table, named := c.Plugins[a.name]
		if !named && !a.byDefault && (a.wanted == nil || !a.wanted(c)) {
			continue
		}
		own, common := a.config(), anyPlugin{}
		table.Peek(&common)
		if !common.Enabled {
			table = table.Unresolved() // its secrets may be absent
		}
		if !common.Enabled && c.requires(a.name) {
			const text = "access.private is pairing, which needs it; take this out, or set another access"
			d.Fault(text, "plugins", a.name, "enabled")
		}
		table.Decode(&common, own)
		if common.Enabled {
			c.Chosen = append(c.Chosen, chosen{a, own})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !slices.Contains(PluginNames(), name) {
			text, near := "there is "+strings.Join(PluginNames(), ", "), config.Nearest(name, PluginNames())
			if near != "" {
				text = fmt.Sprintf("did you mean %q?", near)
			}
			d.Fault("unknown plugin; "+text, "plugins", name)
		}
	}
}

func completePlugins(c *Config, d *config.Document) {
	for _, p := range c.Chosen {
		if p.complete != nil {
			p.complete(c, p.Own, func(text string, at ...any) {
				d.Fault(text, append([]any{"plugins", p.name}, at...)...)
			})
		}
	}
}

type loaded struct {
	core.Plugin
	chosen
}

// plugins makes the chosen plugins that admins did not turn off. It keeps a running one that would be the same.
func (b *Bot) plugins(c *Config) (all []loaded, err error) {
	former := b.InForce()
	zone := func(c *Config) string { return c.Zone().String() }
	kept := zone(c) == zone(former.Config) && c.Bot.Language == former.Config.Bot.Language
	off := b.changes.At(core.Path{}).PluginsOff
	for _, next := range c.Chosen {
		if off.Match(next.name) && !c.requires(next.name) {
			continue
		}
		i := slices.IndexFunc(former.plugins, func(l loaded) bool {
			return kept && l.name == next.name && reflect.DeepEqual(l.Own, next.Own) && !b.workers.failed(l.Plugin)
		})
		if i >= 0 {
			all = append(all, former.plugins[i])
			continue
		}
		p, err := next.make(b.host(c, next.name), next.Own)
		if err != nil {
			return nil, UsageError{fmt.Errorf("plugins.%s: %w", next.name, err)}
		}
		if counter, ok := p.(gate.Counter); ok {
			counter.Announce(b.workers.sharing.used(next.name))
		}
		all = append(all, loaded{p, next})
	}
	return all, nil
}

// PairingName is the plugin that lets unknown users in by a code, and the value of access.private that needs it.
const PairingName = "pairing"

// exemptGate is a gate that lets users pass who have access by the configuration.
type exemptGate struct {
	gate.Gate
	access *turn.Access
}

func (e exemptGate) Judge(m *core.Message, again bool) gate.Verdict {
	if person, err := m.Path.Person(m.Author.ID); err == nil && e.access.Allows(person, m) {
		return gate.Verdict{}
	}
	return e.Gate.Judge(m, again)
}

// PluginNames returns the names of all plugins.
func PluginNames() []string {
	names := make([]string, len(availablePlugins))
	for i, a := range availablePlugins {
		names[i] = a.name
	}
	return names
}

// ChosenNames returns the names of the plugins that the configuration turns on.
func (c *Config) ChosenNames() (names []string) {
	for _, p := range c.Chosen {
		names = append(names, p.name)
	}
	return names
}

// Blueprints returns the configuration of the plugin blueprint; nil if it is off.
func (c *Config) Blueprints() *blueprint.Config {
	for _, chosen := range c.Chosen {
		if own, ok := chosen.Own.(*blueprint.Config); ok {
			return own
		}
	}
	return nil
}

// Pairing returns the plugin pairing; nil if it is off.
func (p *parts) Pairing() *pairing.Plugin { return pluginOf[*pairing.Plugin](p) }

// pluginsWith yields the plugins that implement an interface, with their names.
func pluginsWith[T any](p *parts) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, l := range p.plugins {
			if x, ok := l.Plugin.(T); ok && !yield(l.name, x) {
				return
			}
		}
	}
}

// pluginOf returns the plugin of a type; nil if it is off.
func pluginOf[T core.Plugin](p *parts) (found T) {
	for _, found = range pluginsWith[T](p) {
	}
	return found
}

const sendTime = 30 * time.Second // how long a message to an admin may take

func (b *Bot) host(c *Config, name string) core.Host {
	h := host{b}
	var passages passage.Index
	if b.Data.DB != nil {
		passages = memory.Passages(b.Data.DB)
	}
	return core.Host{
		Name: name, Log: logs.Room(b.log, "plugins/"+name).With("plugin", name),
		Clock: c.Clock(b.env.Clock), Language: string(c.Bot.Language),
		Items: b.workers.sharing.items(name), Zones: b.Data.Items("zones"), Facts: b.Data.Store, Passages: passages,
		Inbox: h, Reader: b.Data.Store, Asker: h, Messenger: h, Speak: b.speak, PDF: b.pdfs.text,
		Changed: func() { loop.Notify(b.reloads.outdated) },
	}
}

// host implements core.Inbox, core.Asker and core.Messenger outside of turns, with the parts in force.
type host struct{ *Bot }

func (h host) Receive(ctx context.Context, events ...core.Event) error {
	return h.Turns.InternalInbox().Receive(ctx, events...)
}

// Ask asks the engines. It returns core.ErrNoEngine if there is only the built-in one.
func (h host) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	p := h.InForce()
	for i := range p.Config.Engines {
		e := &p.Config.Engines[i]
		if !e.Disabled && e.Provider != offline && e.Provider != "" {
			return p.Engines.Within(p.budget, nil).Ask(ctx, q)
		}
	}
	return llm.Answer{}, core.ErrNoEngine
}

func (h host) Tell(ctx context.Context, to core.Path, text string) error {
	t, ok := h.InForce().interfaceAt(to).(core.Teller)
	if !ok {
		return core.Errorf(core.Broken, "cannot send messages there")
	}
	return t.Tell(ctx, to, text)
}

// say sends a text that joins the history of a place, if it has one: else nobody knows whether it is private.
func (h host) say(ctx context.Context, to core.Path, text string, strangers bool) error {
	if err := h.Tell(ctx, to, text); err != nil {
		return err
	}
	head, err := core.Read(ctx, h.Data.Store, func(v core.View) (core.Head, error) { return v.Head(to) })
	if err == nil && head.Count > 0 {
		err = h.Data.Commit(ctx, &core.Batch{Append: []core.Entry{{Self: true, Strangers: strangers, Event: core.Event{
			Kind: core.KindMessage, Message: core.Message{
				Path: to, ID: "said-" + rand.Text(), Text: text, Time: h.now(), Private: head.Private,
				Author: core.Author{Name: h.InForce().personaAt(to).Name, Bot: true, Rank: core.RankBot},
			},
		}}}})
	}
	if err != nil { // it was sent: nobody should send it again
		h.log.Error("a sent message is missing in the history", "path", to, "err", err)
	}
	return nil
}

func (h host) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	c, ok := h.InForce().interfaceAt(what.Path).(core.FileSender)
	if !ok {
		return core.Errorf(core.Broken, "cannot send files here")
	}
	return c.SendFile(ctx, parts, n, what, f)
}

func (h host) Fetch(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error) {
	f, ok := h.InForce().interfaceAt(place).(core.Fetcher)
	if !ok {
		return nil, core.Errorf(core.Broken, "cannot fetch files here")
	}
	return f.Fetch(ctx, a, max)
}

func (h host) Link(place core.Path, id string) string {
	l, ok := h.InForce().interfaceAt(place).(core.Linker)
	if !ok {
		return ""
	}
	return l.Link(place, id)
}

func (h host) IsAdmin(person core.Path) bool { return slices.Contains(h.admins(), person) }

func (h host) NotifyAdmins(text string) { h.alerts.report(text) }

// sendAdmins sends a text to each admin on their own platform. It returns at once.
func (b *Bot) sendAdmins(text string) {
	for _, admin := range b.admins() {
		t, ok := b.InForce().interfaceAt(admin).(core.Teller)
		if !ok {
			continue
		}
		b.sending.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), sendTime)
			defer cancel()
			if err := t.Tell(ctx, admin, text); err != nil {
				b.log.Warn("alert not sent", "user", admin, "err", err)
			}
		})
	}
}
