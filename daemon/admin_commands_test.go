package daemon

import (
	"strings"
	"testing"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/engine"
	"synthbot/core/watch"
)

// TestForOneAlone: what is for one person alone is shown in private only, and admins
// cannot read private chats of others.
func TestForOneAlone(t *testing.T) {
	b := &Bot{monitor: &monitor{traces: new(admin.Traces)}, claim: new(adminClaim), Data: &Storage{Store: EmptyStore{}}}
	b.parts.Store(&parts{Config: new(Config), Engines: new(engine.Chain)})
	r, err := b.commands(b.InForce())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"why", "usage", "history", "mydata", "forgetme"} {
		if c, ok := r.Find(name); !ok || !c.Private {
			t.Errorf("/%s answers where all can read it", name)
		}
	}
	group, his, mine := core.MustPath("telegram/-100"), core.MustPath("telegram/5"), core.MustPath("telegram/1000")
	for i, place := range []core.Path{group, his, mine} {
		b.monitor.traces.Observe(watch.TurnEnd{Turn: core.TurnID{Path: place, Seq: uint64(i + 1)}, Private: place != group, Trace: &watch.Trace{Asks: []watch.Ask{{Round: 1, Engine: "home"}}}})
	}
	for path, want := range map[string]string{"": "Turn 3 took", group.String(): group.String() + "\nTurn 1 took", his.String(): privatePlace, mine.String(): "Turn 3 took", "telegram/7": "asked no model there", "a//b": "is not a path"} {
		text, err := (&chatCommands{b}).why(t.Context(), command.Call{Path: mine, Private: true, Args: map[string]string{"path": path}})
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("/why %s: %q", path, text)
		}
	}
}
