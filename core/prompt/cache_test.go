package prompt

import (
	"encoding/json"
	"testing"

	"synthbot/core/llm"
)

// TestCache: the prompts built before with a cache do not change a prompt.
func TestCache(t *testing.T) {
	cache := NewCache()
	for name, change := range map[string]func(p *Parts, l *llm.Limits){
		"nothing": func(*Parts, *llm.Limits) {},
		"persona": func(p *Parts, _ *llm.Limits) { p.Persona.Text = "You are Bo." },
		"nobody":  func(p *Parts, _ *llm.Limits) { p.Persona.Text = "" },
		"injected": func(p *Parts, _ *llm.Limits) {
			p.Persona.Text, p.Injections[personaKey] = "", json.RawMessage(`"You are Cy."`)
		},
		"dialogue":  func(p *Parts, _ *llm.Limits) { p.Persona.Dialogue = "Jay: hi" },
		"no room":   func(p *Parts, l *llm.Limits) { p.Persona.Dialogue, l.Chars = "Jay: hi", 8000 },
		"language":  func(p *Parts, _ *llm.Limits) { p.Recon.Language = "it" },
		"standing":  func(p *Parts, _ *llm.Limits) { p.Standing = []string{"Be brief."} },
		"interface": func(p *Parts, _ *llm.Limits) { p.Interface = "discord" },
		"tools":     func(_ *Parts, l *llm.Limits) { l.Dialect = llm.DialectTools },
		"no chat":   func(p *Parts, _ *llm.Limits) { p.Chat = false },
		"actions":   func(p *Parts, _ *llm.Limits) { p.Actions = append(p.Actions, Action{Name: "roll", Brief: "Roll dice"}) },
		"none":      func(p *Parts, _ *llm.Limits) { p.Actions = nil },
		"lite":      func(p *Parts, _ *llm.Limits) { p.Lite = true },
	} {
		p, l := hello(), llm.Limits{}
		p.Injections = make(map[string]json.RawMessage)
		change(&p, &l)
		alone := mustBuild(t, p, l)
		p.Cache = cache
		for range 2 {
			got := mustBuild(t, p, l)
			if string(got.JSON()) != string(alone.JSON()) {
				t.Errorf("%s: with a used cache got another prompt: %s", name, got.JSON())
			}
		}
	}
}
