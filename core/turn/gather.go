package turn

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/plan"
	"synthbot/core/prompt"
)

// Bounds of what plugins add to a prompt.
const (
	contributionTime = 300 * time.Millisecond // for all of them together
	injectionMax     = 2000                   // bytes of one injection
)

// read takes from the store what the prompt will tell of the past.
func (t *turn) read(v core.View) error {
	o := &t.with.Options
	start := prompt.WindowStart(t.last, o.Config.History)
	window, err := v.After(t.path, start, int(t.last-start))
	if err != nil {
		return err
	}
	t.parts.History = slices.DeleteFunc(window, func(e core.Entry) bool {
		return !e.Spoken() || e.Message.Seq > t.last || t.answers(e.Message.Seq)
	})
	state, err := v.State(t.path)
	if err != nil {
		return err
	}
	t.parts.State = plan.Merge(state, t.since(), o.Clock(), stateAge, core.State{})
	if t.who.Private || o.Scope == scopeChat || o.Config.Recent == 0 {
		return nil
	}
	recent, err := v.Recent(t.reach(), o.Config.Recent, t.shared)
	t.parts.Recent = slices.DeleteFunc(recent, func(e core.Entry) bool {
		return !e.Spoken() || e.Message.Private
	})
	return err
}

// stateAge is the silence after which a conversation is about nothing any more.
const stateAge = 6 * time.Hour

// since is when something was last said here before this turn.
func (t *turn) since() time.Time {
	if n := len(t.parts.History); n > 0 {
		return t.parts.History[n-1].Message.Time
	}
	return t.messages[0].Message.Time
}

// answers reports whether the turn answers the entry.
func (t *turn) answers(seq uint64) bool {
	return slices.ContainsFunc(t.messages, func(e core.Entry) bool { return e.Message.Seq == seq })
}

// Scopes of history_recent.
const (
	scopeChat      = "chat"
	scopeInterface = "interface"
)

// reach is the subtree that the scope opens.
func (t *turn) reach() core.Path {
	if t.with.Scope == scopeInterface {
		if root, err := core.MakePath(t.path.Interface()); err == nil {
			return root
		}
	}
	return core.Path{}
}

// shared reports whether the admin lists both places together in one share.
func (t *turn) shared(other core.Path) bool {
	if other == t.path {
		return false
	}
	return slices.ContainsFunc(t.with.Shares, func(s Share) bool {
		return within(t.path, s.Paths) && within(other, s.Paths)
	})
}

func within(p core.Path, roots []core.Path) bool {
	return slices.ContainsFunc(roots, p.Within)
}

// gather completes what the model is told.
func (t *turn) gather(ctx context.Context) {
	o := &t.with.Options
	last := &t.messages[len(t.messages)-1].Message
	iface := t.path.Interface()
	_, chat := t.snapshot.Message(iface)
	t.parts.Interface, t.parts.Chat = iface, chat
	user := "" // in a group, the instructions stay the same whoever speaks
	if t.who.Private {
		user = last.Author.Name
	}
	t.parts.Persona = o.Persona(t.path, user)
	t.parts.Zone = o.Clock().Location()
	t.parts.Participants = t.participants()
	t.parts.Messages = t.messages
	t.parts.Lite, t.parts.Scope = o.Lite, o.Scope
	t.contribute(ctx, core.Scene{
		Path: t.path, Private: t.who.Private, Author: last.Author, Text: last.Text,
		Locale: last.Locale, Now: o.Clock(), Recent: t.parts.History,
	})
}

// participants are the people of a group's window, newest first.
func (t *turn) participants() []json.RawMessage {
	if t.who.Private {
		return nil
	}
	var people []json.RawMessage
	seen := make(map[string]bool)
	for _, list := range [][]core.Entry{t.messages, t.parts.History} {
		for i := range slices.Backward(list) {
			a := &list[i].Message.Author
			if list[i].Self || a.ID == "" || seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			raw, err := json.Marshal(participant{a.Name, a.Tag, a.Bot})
			if err == nil {
				people = append(people, raw)
			}
		}
	}
	return people
}

// participant is how a prompt tells of a person.
type participant struct {
	Name string `json:"username"`
	Tag  string `json:"usertag,omitempty"`
	Bot  bool   `json:"bot,omitempty"`
}

// offer is the catalogue as this person sees it here, in a round: first all of
// it, then what was not called yet, and in the last one only ways to speak.
func (t *turn) offer(round uint16) []prompt.Action {
	definitions := t.snapshot.Offer(t.who)
	actions := make([]prompt.Action, 0, len(definitions))
	for _, d := range definitions {
		if !d.IsMessage() && (round == lastRound || t.called(d.Name)) {
			continue
		}
		actions = append(actions, prompt.Action{Name: d.Name, Brief: d.Brief, Schema: d.Minified, Essential: d.Essential || d.IsMessage()})
	}
	return actions
}

// contribute asks plugins for hints and injections, all at once; who is late,
// fails or says too much is left out.
func (t *turn) contribute(ctx context.Context, s core.Scene) {
	ctx, cancel := context.WithTimeout(ctx, contributionTime)
	defer cancel()
	c := contributions{injections: make(map[string]json.RawMessage)}
	var all sync.WaitGroup
	for _, r := range t.with.Recons {
		all.Go(func() { c.hint(t, "recon", func() ([]core.Hint, error) { return r.Recon(ctx, s) }) })
	}
	for name, i := range t.with.Injectors {
		all.Go(func() { c.inject(t, name, func() (json.RawMessage, error) { return i.Inject(ctx, s) }) })
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = true
	t.parts.Injections = c.injections
	t.parts.Recon = prompt.Merge(c.hints, "", t.with.Language)
	if first := &t.messages[0]; t.with.late(first) {
		waited := t.clock().Sub(first.Message.Time).Round(time.Minute)
		t.parts.Recon.Instructions = append(t.parts.Recon.Instructions,
			"You were away: these messages have waited for "+waited.String()+". Acknowledge them together in one short message.")
	}
}

// contributions collects what plugins say; what comes late is dropped.
type contributions struct {
	mu         sync.Mutex
	late       bool
	hints      []core.Hint
	injections map[string]json.RawMessage
}

func (c *contributions) hint(t *turn, name string, ask func() ([]core.Hint, error)) {
	c.safely(t, name, func() error {
		hints, err := ask()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.late {
			c.hints = append(c.hints, hints...)
		}
		return err
	})
}

func (c *contributions) inject(t *turn, name string, ask func() (json.RawMessage, error)) {
	c.safely(t, name, func() error {
		value, err := ask()
		if len(value) > injectionMax || len(value) > 0 && !json.Valid(value) {
			t.log.Warn("injection left out", "plugin", name, "bytes", len(value), "limit", injectionMax)
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.late && len(value) > 0 {
			c.injections[name] = value
		}
		return err
	})
}

func (c *contributions) safely(t *turn, name string, f func() error) {
	defer func() {
		if r := recover(); r != nil {
			t.log.Error("contribution panicked", "plugin", name, "panic", r)
		}
	}()
	if err := f(); err != nil {
		t.log.Warn("contribution left out", "plugin", name, "err", err)
	}
}
