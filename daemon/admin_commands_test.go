package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/engine"
	"synthbot/core/watch"
)

// TestForOneAlone checks that commands with personal answers are private, and that /why does not show admins
// other users' private chats.
func TestForOneAlone(t *testing.T) {
	b := &Bot{monitor: &monitor{traces: new(admin.Traces)}, claim: new(adminClaim), Data: &Storage{Store: EmptyStore{}}}
	b.parts.Store(&parts{Config: new(Config), Engines: new(engine.Chain)})
	r, err := b.commands(b.InForce())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"why", "usage", "history", "mydata", "forgetme"} {
		if c, ok := r.Find(name); !ok || !c.Private {
			t.Errorf("/%s is not private", name)
		}
	}
	group, others, mine := core.MustPath("telegram/-100"), core.MustPath("telegram/5"), core.MustPath("telegram/1000")
	for i, place := range []core.Path{group, others, mine} {
		b.monitor.traces.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place, Seq: uint64(i + 1)}, Private: place != group, Trace: &watch.Trace{Asks: []watch.Ask{{Round: 1, Engine: "home"}}}})
	}
	for path, want := range map[string]string{"": "Turn 3 took", group.String(): group.String() + "\nTurn 1 took", others.String(): privatePlace, mine.String(): "Turn 3 took", "telegram/7": "asked no model there", "a//b": "is not a path"} {
		text, err := (&chatCommands{b}).why(t.Context(), command.Call{Path: mine, Private: true, Args: map[string]string{"path": path}})
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("/why %s: got %q, want %q", path, text, want)
		}
	}
}

// namedInterface is an interface that knows the names of its places.
type namedInterface struct{ core.Interface }

func (namedInterface) Name() string { return "hall" }

func (namedInterface) NameOf(core.Path) string { return "The Den" }

// TestAddedIsAnnounced checks that admins learn to which group the bot was added, with its name and path.
func TestAddedIsAnnounced(t *testing.T) {
	var sent []string
	b := &Bot{log: slog.New(slog.DiscardHandler), Data: &Storage{Store: EmptyStore{}}}
	b.alerts = &alerts{log: b.log, clock: time.Now, send: func(text string) { sent = append(sent, text) }}
	b.parts.Store(&parts{Interfaces: []core.Interface{namedInterface{}}})
	m := core.Message{Path: core.MustPath("hall/-1"), Author: core.Author{Name: "Jay"}}
	for _, e := range []core.Event{{Kind: core.KindMembership, Data: "removed", Message: m}, {Kind: core.KindMembership, Data: "added", Message: m}} {
		b.handleReceived(t.Context(), []core.Event{e})
	}
	if len(sent) != 1 || !strings.HasPrefix(sent[0], "I was added to the group The Den (hall/-1) by Jay.") {
		t.Errorf("alerts: got %q", sent)
	}
}
