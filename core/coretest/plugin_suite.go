package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
)

// TestPlugin checks what every plugin must do: its actions have valid names, briefs, schemas and examples, can be
// used concurrently, and end with their context, and its optional interfaces keep their contracts. make is called for
// each test and returns a plugin that is not running. The suite does not compile schemas; plugins/plugintest does
// that, and runs this suite, too.
func TestPlugin(t *testing.T, make func(t *testing.T) core.Plugin) {
	t.Run("names", func(t *testing.T) { testNames(t, make(t)) })
	t.Run("tiers", func(t *testing.T) {
		for _, a := range make(t).Actions() {
			t.Run(a.Name, func(t *testing.T) { testTiers(t, &a) })
		}
	})
	t.Run("many at once", func(t *testing.T) { testActionsAtOnce(t, make(t)) })
	t.Run("ends with its context", func(t *testing.T) { testDoEnds(t, make(t)) })
	t.Run("foreign payloads", func(t *testing.T) { testForeign(t, make(t)) })
	testAbilities(t, make)
}

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

var actionName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// testNames: the names of the plugin, its actions and their similes are valid and unique.
func testNames(t *testing.T, p core.Plugin) {
	if !pluginName.MatchString(p.Name()) {
		t.Errorf("the plugin is called %q, want a-z, 0-9, '_' and '-'", p.Name())
	}
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
	seen := make(map[string]string)
	for _, a := range p.Actions() {
		if !actionName.MatchString(a.Name) {
			t.Errorf("an action is called %q, want [a-z0-9_.-]{1,64}", a.Name)
		}
		for _, n := range append([]string{a.Name}, a.Similes...) {
			key := plain.Replace(strings.ToLower(n))
			if other, twice := seen[key]; twice {
				t.Errorf("%s and %s share the name %q", a.Name, other, n)
			}
			seen[key] = a.Name
		}
	}
}

// testTiers: an action has a valid brief, schema and examples, and declares its effects and permission.
func testTiers(t *testing.T, a *core.Action) {
	if fault := briefFault(a.Brief); fault != "" {
		t.Errorf("brief %q: %s", a.Brief, fault)
	}
	if fault := schemaFault(a.Schema); fault != "" {
		t.Errorf("schema: %s", fault)
	}
	if a.Effects == 0 {
		t.Error("it declares no effects")
	}
	x := &a.Examples
	if x.Description == "" || x.Instructions.WhenToUse == "" || len(x.Instructions.CommonPitfalls) == 0 || len(x.Examples) == 0 {
		t.Errorf("examples: a description, when to use it, a pitfall and an example are needed; there is %+v", *x)
	}
	for _, e := range x.Examples {
		var payload map[string]any
		if err := json.Unmarshal(e.Payload, &payload); err != nil || e.Scenario == "" {
			t.Errorf("example %q: %s is no payload, or it has no scenario (%v)", e.Scenario, e.Payload, err)
		}
	}
	if a.Permission == "" {
		t.Error("it declares no permission")
	}
	if a.Outside && a.Permission == core.PermissionEveryone && !a.Confirm {
		t.Error("permission: it has effects outside of the conversation, is open to everyone, and asks nobody")
	}
	if a.Do == nil {
		t.Error("it does nothing")
	}
}

// briefFault returns what is wrong with a brief, which is one line that begins with a verb; "" if nothing is.
func briefFault(brief string) string {
	first, _, _ := strings.Cut(brief, " ")
	switch {
	case utf8.RuneCountInString(brief) >= 100:
		return "100 characters are too many"
	case strings.ContainsFunc(brief, unicode.IsControl), strings.TrimSpace(brief) != brief,
		len(strings.Fields(brief)) < 2:
		return "it must be one line of some words"
	case strings.HasSuffix(brief, "."):
		return "it ends in a full stop"
	case first != strings.ToUpper(first[:1])+first[1:]:
		return "it begins with a small letter"
	case slices.Contains([]string{"A", "An", "The", "This", "It", "Action", "Used", "Use", "Allows", "Lets"}, first),
		strings.HasSuffix(first, "ing"), strings.HasSuffix(first, "s") && !strings.HasSuffix(first, "ss"):
		return "it does not begin with a verb in its plain form"
	}
	return ""
}

// schemaFault returns what is wrong with a schema, whose properties need descriptions; "" if nothing is.
func schemaFault(schema json.RawMessage) string {
	var root struct {
		Type       string
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return err.Error()
	}
	if root.Type != "object" {
		return "it describes no object"
	}
	for name, p := range root.Properties {
		if p["description"] == nil && p["title"] == nil {
			return fmt.Sprintf("%q has neither a description nor a title", name)
		}
	}
	return ""
}

const atOnce = 16

// testActionsAtOnce: Actions can be called concurrently, and returns the same list each time.
func testActionsAtOnce(t *testing.T, p core.Plugin) {
	list := func() (names []string) {
		for _, a := range p.Actions() {
			names = append(names, a.Name)
		}
		return names
	}
	want := list()
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			if got := list(); !slices.Equal(got, want) {
				t.Errorf("the actions are %q, and then %q", want, got)
			}
		})
	}
	all.Wait()
}

// Call returns a call of an action in a place, as a turn makes it.
func Call(a *core.Action, place core.Path, who core.Author, payload json.RawMessage) core.Call {
	return core.Call{
		Key: core.Key{Turn: core.TurnID{Path: place, Seq: 1}, Round: 1, Step: 1}, Path: place, Author: who,
		Payload: payload, Deliveries: new(Parts), Sees: []core.Path{place},
	}
}

var (
	suitePlace  = core.MustPath("room/1")
	suitePerson = core.Author{ID: "jay", Name: "Jay"}
)

// testDoEnds: a call ends when its context does, whenever that is.
func testDoEnds(t *testing.T, p core.Plugin) {
	for _, a := range p.Actions() {
		for _, e := range a.Examples.Examples {
			for _, after := range []time.Duration{0, time.Millisecond} {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				endsSoon(t, a.Name, func() { _ = safely(t, &a, ctx, e.Payload) })
				cancel()
			}
		}
	}
}

// soon is how long something may take to end after its context has ended.
const soon = 20 * time.Second

// endsSoon fails the test if f does not return soon.
func endsSoon(t *testing.T, what string, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(soon):
		t.Fatalf("%s has not returned after its context ended", what)
	}
}

// safely makes a call; a panic fails the test.
func safely(t *testing.T, a *core.Action, ctx context.Context, payload json.RawMessage) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s with %s: panic: %v", a.Name, payload, r)
		}
	}()
	_, err = a.Do(ctx, Call(a, suitePlace, suitePerson, payload))
	return err
}

// testForeign: payloads that are not objects are refused, and no payload makes an action panic.
func testForeign(t *testing.T, p core.Plugin) {
	for _, a := range p.Actions() {
		for _, payload := range []string{``, `{`, `[]`, `7`, `"x"`} {
			var err error
			endsSoon(t, a.Name, func() {
				ctx, cancel := context.WithTimeout(t.Context(), Patience)
				defer cancel()
				err = safely(t, &a, ctx, json.RawMessage(payload))
			})
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != core.Invalid {
				t.Errorf("%s with %q: %v, want a *core.Error that is invalid", a.Name, payload, err)
			}
		}
		for _, payload := range invalidPayloads(a.Examples.Examples) {
			endsSoon(t, a.Name, func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = safely(t, &a, ctx, payload)
			})
		}
	}
}

// invalidPayloads returns examples in which one property has a wrong value. No schema checks them.
func invalidPayloads(examples []core.Example) []json.RawMessage {
	list := []json.RawMessage{json.RawMessage(`null`), json.RawMessage(`{}`)}
	for _, e := range examples {
		var payload map[string]any
		if json.Unmarshal(e.Payload, &payload) != nil {
			continue
		}
		for key, right := range payload {
			for _, wrong := range []any{nil, "", strings.Repeat("é", 20_000), -1, 1e300, true, []any{}, map[string]any{"a": nil}} {
				payload[key] = wrong
				if raw, err := json.Marshal(payload); err == nil {
					list = append(list, raw)
				}
			}
			payload[key] = right
		}
	}
	return list
}
