package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/engine"
	"synthbot/core/turn"
	"synthbot/core/txt"
	"synthbot/interfaces/console"
	"synthbot/plugins/blueprint"
	"synthbot/plugins/pairing"
)

// Narrow tells of engines whose limits hold no prompt at all in some place: there
// they are passed over with every turn.
func (b *Bot) Narrow(ctx context.Context, out io.Writer) {
	o, c := b.options(b.InForce()), b.InForce().Config
	o.Plugins.Injectors, o.Plugins.Recons, o.Plugins.Bios = nil, nil, nil // a check connects to nothing
	turns := turn.New(o)
	for _, e := range c.Engines {
		for _, place := range c.samples() {
			if e.Disabled {
				continue
			}
			_, err := turns.Preview(ctx, core.Message{Path: place, ID: "check", Text: "hello", Time: o.Clock(), Private: true, Addressed: core.Direct}, e.Limits())
			if long := (*core.ModelError)(nil); errors.As(err, &long) {
				fmt.Fprintf(out, "!   engine         %s is passed over in %s, where no prompt fits: %s\n", e.Name, place, txt.Line(long.Err.Error()))
				break
			}
		}
	}
}

// samples are places that differ in what a prompt holds at least.
func (c *Config) samples() (places []core.Path) {
	for _, e := range c.Enabled {
		if p, err := core.MakePath(e.Name, "1"); err == nil {
			places = append(places, p)
		}
	}
	for i := range c.Overrides {
		o := &c.Overrides[i]
		if o.personaFile() != "" {
			places = append(places, o.Path)
		}
	}
	return places
}

// Blueprints are those of the plugin, where it is turned on.
func (c *Config) Blueprints() *blueprint.Config {
	for _, chosen := range c.Chosen {
		if own, ok := chosen.Own.(*blueprint.Config); ok {
			return own
		}
	}
	return nil
}

// ProbeEngines asks each engine for a word.
func ProbeEngines(ctx context.Context, chain *engine.Chain) (list []core.Finding) {
	for _, probe := range chain.Probe(ctx) {
		f := core.Finding{What: probe.Engine, Found: "answers"}
		if probe.Err != nil {
			f = core.Finding{What: probe.Engine, Found: "cannot be used", Mend: engineMend(probe.Err), Fatal: true}
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		list = append(list, core.Finding{What: "none", Found: "the built-in one alone answers", Mend: "add an [[engine]] for real conversations"})
	}
	return list
}

// engineMend says what to do about an engine's error.
func engineMend(err error) string {
	var m *core.ModelError
	if errors.As(err, &m) {
		switch {
		case m.Status == 401 || m.Status == 403:
			return "the key is refused; check api_key"
		case m.Status == 404:
			return "it knows no such address or model; check base_url and model: " + txt.Line(fmt.Sprint(m.Err))
		case m.Kind == core.RetryLater:
			return "it cannot be reached, or is busy: " + txt.Line(fmt.Sprint(m.Err))
		}
	}
	return txt.Line(err.Error())
}

// AdmitsPerson reports whether the person is shut out nowhere by name.
func (b *Bot) AdmitsPerson(person core.Path) bool {
	for _, denied := range b.InForce().Config.Access.Deny {
		if person.Within(denied) {
			return false
		}
	}
	return true
}

// Pairing is the plugin that lets people in; nil where none is asked.
func (p *parts) Pairing() *pairing.Plugin {
	for _, l := range p.plugins {
		if x, ok := l.Plugin.(*pairing.Plugin); ok {
			return x
		}
	}
	return nil
}

// Sit lets somebody talk to the daemon.
func (b *Bot) Sit(ctx context.Context, o console.Options) error {
	server := b.InForce().consoleServer()
	if server == nil {
		return errors.New("the daemon has a console of its own: talk to it there, or take it out of the configuration")
	}
	o.Seated = func(place core.Path) { b.Turns.Wake(place) }
	return server.Sit(ctx, o)
}

// SaidBefore is what was typed in a session, for the arrow keys.
func (b *Bot) SaidBefore(ctx context.Context, place core.Path) []string {
	var lines []string
	err := b.Data.Store.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, 200)
		for i := range entries {
			if e := &entries[i]; e.Message.Text != "" && e.Spoken() && !e.Self {
				lines = append(lines, e.Message.Text)
			}
		}
		return err
	})
	if err != nil {
		b.log.Warn("history of the terminal", "err", err)
	}
	return lines
}

// Offered tells which actions an ordinary person is offered, each in the
// interface that owns it.
func Offered(s *action.Snapshot) func(name string) bool {
	open := make(map[string]bool)
	for _, d := range s.All() {
		place, err := core.MakePath(d.Owner, "place")
		if err != nil {
			continue
		}
		for _, o := range s.Offer(action.Who{Path: place, Authors: []core.Author{{ID: "somebody"}}}) {
			open[o.Name] = true
		}
	}
	return func(name string) bool { return open[name] }
}
