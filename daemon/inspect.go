package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/core/txt"
	"synthbot/plugins/blueprint"
	"synthbot/plugins/pairing"
)

// NarrowEngines finds the engines whose limits are too small for any prompt in some
// place. Turns never ask them there.
func (b *Bot) NarrowEngines(ctx context.Context) (found []core.Finding) {
	o, c := b.options(b.InForce()), b.InForce().Config
	o.Plugins.Injectors, o.Plugins.Recons, o.Plugins.Bios = nil, nil, nil // a check connects to nothing
	turns := turn.New(o)
	for _, e := range c.Engines {
		for _, place := range c.samples() {
			if e.Disabled {
				continue
			}
			hello := core.Message{
				Path: place, ID: "check", Text: "hello", Time: o.Clock(),
				Private: true, Addressed: core.AddressedDirect,
			}
			_, err := turns.Preview(ctx, hello, e.Limits())
			if tooLong, ok := errors.AsType[*llm.Error](err); ok {
				text := fmt.Sprintf("%s is passed over in %s, where no prompt fits: %v", e.Name, place, tooLong.Err)
				found = append(found, core.Finding{Fix: text})
				break
			}
		}
	}
	return found
}

// samples returns places whose smallest prompts differ.
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

// Blueprints returns the blueprints of the plugin; nil if it is off.
func (c *Config) Blueprints() *blueprint.Config {
	for _, chosen := range c.Chosen {
		if own, ok := chosen.Own.(*blueprint.Config); ok {
			return own
		}
	}
	return nil
}

// ProbeEngines asks each engine a short question.
func ProbeEngines(ctx context.Context, chain *engine.Chain) (list []core.Finding) {
	for _, probe := range chain.Probe(ctx) {
		f := core.Finding{What: probe.Engine, Found: "answers"}
		if probe.Err != nil {
			f = core.Finding{What: probe.Engine, Found: "cannot be used", Fix: engineFix(probe.Err), Fatal: true}
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		list = append(list, core.Finding{
			What: "none", Found: "the built-in one alone answers", Fix: "add an [[engine]] for real conversations",
		})
	}
	return list
}

// PrintFinding prints a finding on one line.
func PrintFinding(out io.Writer, group string, f core.Finding) {
	mark := "ok"
	switch {
	case f.Fix != "" && f.Fatal:
		mark = "FAIL"
	case f.Fix != "":
		mark = "!"
	}
	text := f.Found
	if f.Fix != "" {
		text += ": " + f.Fix
	}
	fmt.Fprintf(out, "%-4s %-10s %-12s %s\n", mark, group, f.What, txt.Line(text))
}

// engineFix returns what to do about an engine's error.
func engineFix(err error) string {
	var m *llm.Error
	if !errors.As(err, &m) {
		return txt.Line(err.Error())
	}
	cause := failureCause(m)
	switch {
	case cause == "":
		return txt.Line(err.Error())
	case m.Status == 401 || m.Status == 403:
		return cause
	}
	return cause + ": " + txt.Line(fmt.Sprint(m.Err))
}

// failureCause says how an engine failed, without its own words, which may quote what was said; "" if
// that is not known.
func failureCause(e *llm.Error) string {
	switch {
	case e.Status == 401 || e.Status == 403:
		return "the key is refused; check api_key"
	case e.Status == 404:
		return "it knows no such address or model; check base_url and model"
	case e.Kind == llm.ErrorRetryLater:
		return "it cannot be reached, or is busy"
	}
	return ""
}

// Pairing returns the plugin that lets people in by a code; nil if it is off.
func (p *parts) Pairing() *pairing.Plugin {
	return pluginOf[*pairing.Plugin](p)
}

// pluginOf returns the plugin of a type; its zero value if it is off.
func pluginOf[T core.Plugin](p *parts) (none T) {
	for _, l := range p.plugins {
		if x, ok := l.Plugin.(T); ok {
			return x
		}
	}
	return none
}

// Offered returns a function that reports whether a user without a rank is offered an
// action, in the interface that owns it.
func Offered(s *action.Snapshot) func(name string) bool {
	open := make(map[string]bool)
	for _, d := range s.All() {
		place, err := core.MakePath(d.Owner, "place")
		if err != nil {
			continue
		}
		for _, o := range s.Offer(action.Requester{Path: place, Authors: []core.Author{{ID: "somebody"}}}) {
			open[o.Name] = true
		}
	}
	return func(name string) bool { return open[name] }
}
