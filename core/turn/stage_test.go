package turn_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/core/watch"
)

// gallery is an observer of turns, their stages and ends.
type gallery struct {
	mu   sync.Mutex
	seen []string // "seq stage", and "seq ended"
	last watch.TurnStage
	end  watch.TurnEnd
	over chan struct{} // gets a token for each turn that ends
}

func (g *gallery) note(seq uint64, what string) {
	g.seen = append(g.seen, fmt.Sprint(seq, " ", what))
}

// ObserveStage implements watch.StageObserver.
func (g *gallery) ObserveStage(s watch.TurnStage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(s.Turn.Seq, string(s.Stage))
	g.last = s
	if s.Stage == watch.StageOver {
		g.over <- struct{}{}
	}
}

// Observe implements watch.Observer.
func (g *gallery) Observe(e watch.TurnEnd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(e.Turn.Seq, "ended")
	g.end = e
}

// log returns the observed stages and ends.
func (g *gallery) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.seen, ", ")
}

// waitFor waits until n turns have ended.
func (g *gallery) waitFor(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-g.over:
		case <-time.After(coretest.Patience):
			t.Fatal("a turn did not end")
		}
	}
}

// watched starts a bot with a gallery.
func watched(t *testing.T, script ...any) (*bot, *gallery) {
	t.Helper()
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	g := &gallery{over: make(chan struct{}, 100)}
	tools := coretest.NewPlugin("tools", core.Action{Name: "look", Brief: "Look", Permission: core.PermissionEveryone})
	room := coretest.NewRoom("room")
	return start(t, s, room, coretest.NewAsker(script...), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, tools)
		o.Plugins.Observers, o.Plugins.Watchers = append(o.Plugins.Observers, g), []watch.StageObserver{g}
	}), g
}

func TestStages(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script []any
		want   string
	}{
		{"an answer", []any{plan("hello")}, "1 waiting, 1 thinking, 1 acting, 1 ended, 1 over"},
		{"corrected", []any{`{"actions":[{"type":"nonsense"}]}`, plan("hello")}, "1 waiting, 1 thinking, 1 acting, 1 ended, 1 over"},
		{"a second round", []any{`{"actions":[{"type":"look"}]}`, plan("hello")},
			"1 waiting, 1 thinking, 1 acting, 1 thinking, 1 acting, 1 ended, 1 over"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, g := watched(t, tc.script...)
			b.receive(said("1", "jay", "swordfish"))
			g.waitFor(t, 1)
			if got := g.log(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			jay, err := place.Person("jay")
			if s := g.last; err != nil || s.Turn.Path != place || s.Person != jay || !s.Private || s.Began.IsZero() {
				t.Errorf("unexpected stage %+v", s)
			}
			if text := fmt.Sprintf("%+v", g.last); strings.Contains(text, "swordfish") || strings.Contains(text, "hello") {
				t.Errorf("the stage holds message content: %s", text)
			}
		})
	}
}

// TestPromptIsKept: the trace of a watched turn holds its prompt, stable parts first.
func TestPromptIsKept(t *testing.T) {
	b, g := watched(t, plan("hello"))
	b.receive(said("1", "jay", "swordfish"))
	g.waitFor(t, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := g.end.Trace.Asks[0].Prompt
	if len(parts) < 2 || !parts[0].Stable || parts[0].Text == "" {
		t.Fatalf("unexpected prompt %+v", parts)
	}
	last := parts[len(parts)-1]
	if last.Stable || last.Name != "user" || !strings.Contains(last.Text, "swordfish") {
		t.Errorf("unexpected last part %+v", last)
	}
	for _, p := range parts {
		if p.Stable && strings.Contains(p.Text, "swordfish") {
			t.Errorf("the part %s is marked as stable", p.Name)
		}
	}
}

// TestStagesOfWhatIsCutShort: an interrupted turn is reported as over before it is retried.
func TestStagesOfWhatIsCutShort(t *testing.T) {
	b, g := watched(t, plan("hello"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	if got := g.log(); got != "1 waiting, 1 thinking" {
		t.Errorf("got %s while the model thinks", got)
	}
	b.receive(core.Event{Kind: core.KindDeletion, Target: "1", Message: core.Message{Path: place}})
	g.waitFor(t, 2)
	if got := g.log(); got != "1 waiting, 1 thinking, 1 over, 1 waiting, 1 ended, 1 over" {
		t.Errorf("unexpected stages: %s", got)
	}
}

func TestStagesOfAPanic(t *testing.T) {
	b, g := watched(t, plan("hello"))
	persona, panicked := b.o.Prompt.Persona, false
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Prompt.Persona = func(p core.Path, user string) core.Persona {
			if !panicked {
				panicked = true
				panic("once")
			}
			return persona(p, user)
		}
	}))
	b.receive(said("1", "jay", "hi"))
	g.waitFor(t, 2)
	if got := g.log(); got != "1 waiting, 1 over, 1 waiting, 1 thinking, 1 acting, 1 ended, 1 over" {
		t.Errorf("unexpected stages: %s", got)
	}
}
