package turn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

type (
	// commandFunc runs a command.
	commandFunc = func(context.Context, command.Call) (string, error)
	call        = command.Call
)

// registry makes commands from functions by name. Those that begin with "safe" may run twice.
func registry(t testing.TB, all map[string]commandFunc) *command.Registry {
	t.Helper()
	var list []command.Command
	for name, do := range all {
		spec := command.Spec{Name: name, Brief: "Do it", Idempotent: strings.HasPrefix(name, "safe")}
		list = append(list, command.Command{Spec: spec, Do: do})
	}
	r, err := command.New(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCommandsKnowThatTheyAre: only the context of a command is marked as one.
func TestCommandsKnowThatTheyAre(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	var beside []bool
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Do: func(ctx context.Context, _ core.Call) (core.Result, error) {
		beside = append(beside, command.IsContext(ctx))
		return core.Result{}, nil
	}})
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(`{"response":"ok","actions":[{"type":"look"}]}`), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, eye)
		o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(ctx context.Context, _ call) (string, error) {
			beside = append(beside, command.IsContext(ctx))
			return "one", nil
		}})
	})
	b.receive(said("1", "jay", "look"))
	b.ended(1)
	b.receive(called("2", "jay", "count"))
	b.ended(1)
	if !slices.Equal(beside, []bool{false, true}) {
		t.Errorf("marked as a command's context: got %v, want false, true", beside)
	}
}

// TestCommandBesideTurn: a command is answered while a turn runs in its place, however many
// messages wait behind that turn.
func TestCommandBesideTurn(t *testing.T) {
	for _, waiting := range []int{0, 1, 300} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
				o.Plugins.Commands = registry(t, map[string]commandFunc{
					"one": func(context.Context, call) (string, error) { return "first", nil },
					"two": func(context.Context, call) (string, error) { return "second", nil },
				})
			})
			b.asker.Hold = make(chan struct{})
			b.receive(said("1", "jay", "think hard"))
			b.thinks(1)
			var behind []core.Event
			for i := range waiting {
				behind = append(behind, said(fmt.Sprint("w", i), "jay", "and this"))
			}
			if waiting > 0 {
				b.receive(behind...)
			}
			b.receive(called("c1", "jay", "one"), called("c2", "ann", "two"))
			for i, end := range b.ended(2) {
				if !end.Command || !end.Answered || end.Messages[0] != fmt.Sprint("c", i+1) {
					t.Errorf("turn %d ended as %+v, want an answered command", i, end)
				}
			}
			b.holds("first", "second")
			b.kill() // the running turn ends after the restart
			b = start(t, s, b.room, coretest.NewAsker(plan("answer")), func(o *turn.Options) { o.Plugins.Commands = b.o.Plugins.Commands })
			b.quiet()
			if got := b.room.Texts(); len(got) < 3 || slices.Contains(got[2:], "first") || slices.Contains(got[2:], "second") {
				t.Errorf("the room holds %q, want an answer and no repeated command", got)
			}
		})
	}
}

// TestMessageWaitsForCommand: a message waits for the command before it, whose changes apply to it.
func TestMessageWaitsForCommand(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	begun, release := make(chan struct{}), make(chan struct{})
	var asleep atomic.Bool
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Places.Asleep = func(core.Path) bool { return asleep.Load() }
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"sleep": func(context.Context, call) (string, error) {
				close(begun)
				<-release
				asleep.Store(true)
				return "Good night.", nil
			},
		})
	})
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	b.receive(called("2", "jay", "sleep"), said("3", "jay", "still there?"))
	<-begun
	close(b.asker.Hold)
	b.ended(1) // the turn that ran beside the command
	b.holds("answer")
	close(release)
	b.ended(2)
	b.holds("answer", "Good night.")
	if n := len(b.asker.Asked()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// TestEditedCommand: a command that was edited before it ran is the new one. If that is none, it is a message.
func TestEditedCommand(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	release := make(chan struct{})
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("All right.")), func(o *turn.Options) {
		buy := command.Command{Spec: command.Spec{Name: "buy", Brief: "Buy it", Args: []command.Arg{{Name: "what", Brief: "What to buy"}}}}
		buy.Do = func(_ context.Context, c call) (string, error) {
			<-release
			return "Bought " + c.Args["what"], nil
		}
		var err error
		if o.Plugins.Commands, err = command.New([]command.Command{buy}); err != nil {
			t.Fatal(err)
		}
	})
	b.receive(called("1", "jay", "buy", "tea"), called("2", "jay", "buy", "tea"), called("3", "jay", "buy", "tea"))
	other, none := called("2", "jay", "buy", "milk"), said("3", "jay", "never mind")
	other.Kind, none.Kind = core.KindEdit, core.KindEdit
	b.receive(other, none)
	close(release)
	b.ended(3)
	b.holds("Bought tea", "Bought milk", "All right.")
}

// TestMessageBetweenCommands: a message waits for the command before it, but not for the one after
// it.
func TestMessageBetweenCommands(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	begun, release := make(chan struct{}, 2), make(chan struct{}, 2)
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"slow": func(context.Context, call) (string, error) {
				begun <- struct{}{}
				<-release
				return "slow", nil
			},
		})
	})
	b.receive(called("1", "jay", "slow"))
	<-begun
	b.receive(said("2", "jay", "hi"), called("3", "jay", "slow"))
	release <- struct{}{}
	<-begun
	b.ended(2)
	b.holds("slow", "answer")
	release <- struct{}{}
	b.ended(1)
	b.quiet()
}

// TestPersonaBesideTurn: a turn keeps the persona it began with although a command changes it
// meanwhile.
func TestPersonaBesideTurn(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var name atomic.Value
	name.Store("Aria")
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Prompt.Persona = func(core.Path, string) core.Persona { return core.Persona{Name: name.Load().(string)} }
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"persona": func(context.Context, call) (string, error) { name.Store("Bella"); return "I am Bella.", nil },
		})
	})
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	b.receive(called("2", "jay", "persona"))
	b.ended(1)
	close(b.asker.Hold)
	b.ended(1)
	speakers := map[string]string{}
	err := s.View(t.Context(), func(v core.View) error {
		entries, err := v.Last(place, 10)
		for _, e := range entries {
			speakers[e.Message.Text] = e.Message.Author.Name
		}
		return err
	})
	if err != nil || speakers["answer"] != "Aria" || speakers["I am Bella."] != "Bella" {
		t.Errorf("speakers %v, error %v; want Aria for the answer, Bella for the command", speakers, err)
	}
}

// TestForgetBesideTurn: if a command forgets a user while a turn answers them, nothing of either is
// left.
func TestForgetBesideTurn(t *testing.T) {
	db := open(t, t.TempDir()).(*memory.DB)
	t.Cleanup(func() { db.Close() })
	b := start(t, db, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"forgetme": func(ctx context.Context, c command.Call) (string, error) { return "Gone.", db.Forget(ctx, c.Person) },
		})
	})
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "SECRET one"))
	b.thinks(1)
	b.receive(said("2", "jay", "SECRET two"), called("3", "jay", "forgetme"))
	b.ended(1)
	close(b.asker.Hold)
	b.quiet()
	b.receive(said("4", "ann", "hello")) // the place still answers
	b.ended(1)
	for _, text := range logged(t, db) {
		if text != "" && text != "hello" && text != "answer" {
			t.Errorf("the history still holds %q", text)
		}
	}
	for seq := uint64(1); seq < 4; seq++ {
		err := db.View(t.Context(), func(v core.View) error {
			records, err := v.Journal(core.TurnID{Path: place, Seq: seq})
			if len(records) > 0 {
				t.Errorf("turn %d left %d records, want none", seq, len(records))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMovedWithCommand: a command that waits in a place which moves is still answered.
func TestMovedWithCommand(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	begun, release := make(chan struct{}, 1), make(chan struct{})
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"slow": func(context.Context, call) (string, error) {
				begun <- struct{}{}
				<-release
				return "slow", nil
			},
			"quick": func(context.Context, call) (string, error) { return "quick", nil },
		})
	})
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	b.receive(called("2", "jay", "slow"), called("3", "jay", "quick"))
	<-begun
	b.receive(core.Event{Kind: core.KindMigration, To: core.MustPath("room/2"), Message: core.Message{Path: place, ID: "m"}})
	close(release)
	b.ended(2)
	b.holds("slow", "quick")
	close(b.asker.Hold)
	b.quiet()
	b.holds("slow", "quick", "answer")
}

// TestCrashBesideTurn kills the bot around each commit while a command runs beside a turn.
// Everything is answered. A command that must not run twice does not; one that may runs at least
// once.
func TestCrashBesideTurn(t *testing.T) {
	for _, name := range []string{"pay", "safe"} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 12; n++ {
				t.Run(fmt.Sprintf("%s/after=%t/commits=%d", name, after, n), func(t *testing.T) {
					t.Parallel()
					checkCrashBesideTurn(t, name, after, n)
				})
			}
		}
	}
}

func checkCrashBesideTurn(t *testing.T, name string, after bool, n int) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	var calls atomic.Int32
	with := func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			name: func(context.Context, call) (string, error) { calls.Add(1); return "done", nil },
		})
	}
	events := []core.Event{said("1", "jay", "hi"), called("2", "jay", name), said("3", "ann", "hello")}
	dead := make(chan struct{})
	var once sync.Once
	m := &mortal{Store: s, left: n, after: after, die: func() { once.Do(func() { close(dead) }) }}
	b := start(t, m, room, coretest.NewAsker(plan("answer")), with)
	for _, e := range events {
		if b.Receive(t.Context(), e) != nil {
			break
		}
	}
	for ends := 0; ends < len(events); ends++ {
		select {
		case <-room.Ends():
			continue
		case <-dead:
		}
		break
	}
	b.kill()

	b = start(t, s, room, coretest.NewAsker(plan("answer")), with)
	b.receive(events...)
	b.quiet()
	b.stop()
	counts := map[string]int{}
	for _, text := range room.Texts() {
		counts[text]++
	}
	unknown := 0
	for text := range counts {
		if strings.HasPrefix(text, "I was stopped while I did that") {
			unknown = counts[text]
		}
	}
	if got := calls.Load(); got > 1 && name == "pay" || counts["done"] > 0 && got == 0 {
		t.Errorf("the command ran %d times", got)
	}
	if counts["answer"] != 2 || counts["done"]+unknown != 1 || unknown > 0 && name == "safe" {
		t.Errorf("the room holds %q, want two answers and one outcome of the command", room.Texts())
	}
	if log := logged(t, s); len(log) != 6 {
		t.Errorf("the history holds %q, want 6 messages", log)
	}
}

// TestCommandIsNotRepeated: a command that ran when the process died is not run again.
func TestCommandIsNotRepeated(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	var calls atomic.Int32
	with := func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{
			"pay": func(ctx context.Context, _ command.Call) (string, error) {
				calls.Add(1)
				<-ctx.Done()
				return "", ctx.Err()
			},
		})
	}
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(plan("answer")), with)
	b.receive(called("1", "jay", "pay"))
	for deadline := time.Now().Add(coretest.Patience); calls.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the command did not run")
		}
	}
	b.kill()
	b = start(t, s, room, coretest.NewAsker(plan("answer")), with)
	b.quiet()
	b.holds("I was stopped while I did that, and cannot tell whether it was done. Please check before you try again.")
	if n := calls.Load(); n != 1 {
		t.Errorf("the command ran %d times, want once", n)
	}
}
