package coretest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/hint"
	"synthbot/core/watch"
)

// Limits of what a plugin adds to a prompt, in bytes.
const (
	maxInjection = 2000
	maxBio       = 400
)

// testAbilities checks the optional interfaces that a plugin implements.
func testAbilities(t *testing.T, make func(t *testing.T) core.Plugin) {
	t.Run("goroutines", func(t *testing.T) { testLeaks(t, make(t)) })
	t.Run("injections", func(t *testing.T) { testContributions(t, make(t)) })
	t.Run("gates and observers", func(t *testing.T) { testReturnsAtOnce(t, make(t)) })
}

// testLeaks: Run returns nil when its context ends, whenever that is, and leaves no goroutines.
func testLeaks(t *testing.T, p core.Plugin) {
	before := goleak.IgnoreCurrent()
	if r, ok := p.(core.Runner); ok {
		for _, after := range []time.Duration{20 * time.Millisecond, 0} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			endsSoon(t, "Run", func() {
				if err := r.Run(ctx); err != nil {
					t.Errorf("Run: %v, want nil when its context has ended", err)
				}
			})
			cancel()
		}
	}
	for _, s := range scenes() {
		contribute(t, p, t.Context(), s)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// scenes returns different scenes, also an empty one.
func scenes() []core.Scene {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	entry := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: suitePlace, ID: "1", Author: suitePerson, Text: "hello", Time: now,
	}}}
	return []core.Scene{
		{},
		{Path: suitePlace, Now: now, Sees: []core.Path{suitePlace}},
		{Path: suitePlace, Author: suitePerson, Text: "hello", Locale: "en", Now: now, Recent: []core.Entry{entry}, Sees: []core.Path{suitePlace}},
		{Path: core.MustPath("room/jay"), Private: true, Author: suitePerson, Text: "what do you know?", Now: now, Sees: []core.Path{core.MustPath("room/jay")}},
	}
}

// contribute calls everything by which a plugin adds to a prompt. Then it clears s.Recent, which is valid only
// during the calls.
func contribute(t *testing.T, p core.Plugin, ctx context.Context, s core.Scene) {
	t.Helper()
	defer clear(s.Recent)
	if x, ok := p.(core.Injector); ok {
		raw, err := x.Inject(ctx, s)
		if len(raw) > maxInjection || len(raw) > 0 && !json.Valid(raw) {
			t.Errorf("it injects %d bytes, %.100s; at most %d of JSON are allowed (%v)", len(raw), raw, maxInjection, err)
		}
	}
	if x, ok := p.(hint.Source); ok {
		_, err := x.Recon(ctx, s)
		if err != nil && ctx.Err() == nil {
			t.Errorf("Recon: %v", err)
		}
	}
	if x, ok := p.(core.BioSource); ok {
		bios, _ := x.Bios(ctx, s, []core.Author{suitePerson})
		for id, raw := range bios {
			if id != suitePerson.ID || len(raw) > maxBio || !json.Valid(raw) {
				t.Errorf("the bio of %q has %d bytes: %.100s; want only %q, at most %d bytes of JSON", id, len(raw), raw, suitePerson.ID, maxBio)
			}
		}
	}
}

// testContributions: contributions can be requested concurrently, and end with their context.
func testContributions(t *testing.T, p core.Plugin) {
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for _, s := range scenes() {
				contribute(t, p, t.Context(), s)
			}
		})
	}
	all.Wait()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	endsSoon(t, "a contribution", func() {
		for _, s := range scenes() {
			contribute(t, p, over, s)
		}
	})
}

// testReturnsAtOnce: gates and observers return soon, and do not change what they get.
func testReturnsAtOnce(t *testing.T, p core.Plugin) {
	endsSoon(t, "a gate or an observer", func() {
		for _, s := range scenes() {
			m := core.Message{Path: s.Path, ID: "1", Author: s.Author, Text: s.Text, Time: s.Now, Private: s.Private, Scopes: []core.Path{s.Path}}
			if g, ok := p.(gate.Gate); ok && !s.Path.IsZero() {
				scopes := slices.Clone(m.Scopes)
				g.Judge(&m, false)
				g.Judge(&m, true)
				if m.Text != s.Text || m.Author != s.Author || m.Path != s.Path || !slices.Equal(m.Scopes, scopes) {
					t.Errorf("the gate changed the message to %+v", m)
				}
			}
			if o, ok := p.(watch.Observer); ok {
				o.Observe(watch.TurnEnd{Turn: core.TurnID{Path: s.Path, Seq: 1}, Messages: []string{"1"}, Private: s.Private})
			}
		}
	})
}
