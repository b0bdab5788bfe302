package daemon

import (
	"context"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/daemon/logs"
)

// sendTime is how long a message to an admin may take.
const sendTime = 30 * time.Second

// host is what a plugin gets from the bot.
func (b *Bot) host(c *Config, name string) core.Host {
	h := host{b}
	return core.Host{
		Name: name, Log: logs.Room(b.log, "plugins/"+name).With("plugin", name),
		Clock: c.Clock(b.env.Clock), Language: string(c.Bot.Language),
		Items: b.Data.Items(name), Zones: b.Data.Items("zones"), Facts: b.Data.Store,
		Inbox: h, Reader: b.Data.Store, Asker: h, Messenger: h, Speak: b.speak,
		Changed: func() { notify(b.reloads.outdated) },
	}
}

// host does for plugins, drivers and commands what they want outside of turns, by the parts
// in force.
type host struct{ *Bot }

// Receive implements core.Inbox.
func (h host) Receive(ctx context.Context, events ...core.Event) error {
	return h.Turns.InternalInbox().Receive(ctx, events...)
}

// Ask implements core.Asker. It never asks the built-in engine.
func (h host) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	p := h.InForce()
	for i := range p.Config.Engines {
		e := &p.Config.Engines[i]
		if !e.Disabled && e.Provider != offline && e.Provider != "" {
			return h.budgeted(p, p.Engines).Ask(ctx, q)
		}
	}
	return llm.Answer{}, core.ErrNoEngine
}

// Tell implements core.Messenger.
func (h host) Tell(ctx context.Context, to core.Path, text string) error {
	t, ok := h.InForce().at(to).(core.Teller)
	if !ok {
		return core.Errorf(core.Broken, "cannot send messages there")
	}
	return t.Tell(ctx, to, text)
}

// SendFile implements core.Messenger.
func (h host) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	c, ok := h.InForce().at(what.Path).(core.FileSender)
	if !ok {
		return core.Errorf(core.Broken, "cannot send files here")
	}
	return c.SendFile(ctx, parts, n, what, f)
}

// Fetch implements core.Messenger.
func (h host) Fetch(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error) {
	f, ok := h.InForce().at(place).(core.Fetcher)
	if !ok {
		return nil, core.Errorf(core.Broken, "cannot fetch files here")
	}
	return f.Fetch(ctx, a, max)
}

// IsAdmin implements core.Messenger.
func (h host) IsAdmin(person core.Path) bool {
	return slices.Contains(h.admins(h.InForce().Config), person)
}

// NotifyAdmins implements core.Messenger.
func (h host) NotifyAdmins(text string) { h.alerts.report(text) }

// sendAdmins sends a text to each admin on their own platform. It returns at once.
func (b *Bot) sendAdmins(text string) {
	for _, admin := range b.admins(b.InForce().Config) {
		t, ok := b.InForce().at(admin).(core.Teller)
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
