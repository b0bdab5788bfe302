package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/core/gate"
	"synthbot/core/turn"
	"synthbot/memory"
)

var jay = core.MustPath("room/@user/jay")

// notebook is a plugin that stores one item under the user's path and one that names the user.
func notebook(db *memory.DB, errs *[]error) *coretest.Plugin {
	return coretest.NewPlugin("notebook", core.Action{Name: "note", Permission: core.PermissionEveryone,
		Do: func(ctx context.Context, c core.Call) (core.Result, error) {
			person, err := c.Path.Person(c.Author.ID)
			if err != nil {
				return core.Result{}, err
			}
			items := db.Items("notebook")
			for _, item := range []core.Item{
				{Path: person, Key: "bio", Value: json.RawMessage(`"likes tea"`)},
				{Path: c.Path, Key: "page", Value: json.RawMessage(`{"people":["` + person.String() + `"]}`)},
			} {
				_, err := items.Put(ctx, item)
				*errs = append(*errs, err)
			}
			return core.Result{}, nil
		}})
}

// TestForgottenWhileItRuns: if a user is forgotten while their turn runs, the turn leaves no item
// of a plugin, no answer in the history and no trace.
func TestForgottenWhileItRuns(t *testing.T) {
	for who, gone := range map[string]bool{"jay": true, "ann": false} {
		t.Run(who, func(t *testing.T) {
			db := open(t, t.TempDir()).(*memory.DB)
			t.Cleanup(func() { db.Close() })
			var errs []error
			room := coretest.NewRoom("room")
			asker := coretest.NewAsker(`{"response":"Noted.","actions":[{"type":"note","payload":{}}]}`)
			asker.Hold = make(chan struct{})
			b := start(t, db, room, asker, func(o *turn.Options) {
				o.Catalogue = catalogueOf(t, room, notebook(db, &errs))
			})
			b.receive(talk("0", "jay", "I was here"), talk("1", who, "Aria, note that"))
			b.thinks(1)
			if err := db.Forget(t.Context(), jay); err != nil {
				t.Fatal(err)
			}
			close(asker.Hold)
			end := b.ended(1)[0]
			for _, err := range errs {
				if errors.Is(err, core.ErrForgotten) != gone {
					t.Errorf("storing a note of %s: got %v, want ErrForgotten: %v", who, err, gone)
				}
			}
			items, err := db.Items("notebook").List(t.Context(), core.Path{})
			if err != nil || len(errs) != 2 || (len(items) == 0) != gone {
				t.Errorf("%d writes left %v (%v), want 2 writes and nothing left: %v", len(errs), items, err, gone)
			}
			if end.Stale == nil || !end.Stale() {
				t.Error("the trace is not stale although its prompt holds jay's message")
			}
			if kept := strings.Contains(strings.Join(b.logged(square), "|"), "Noted."); kept == gone {
				t.Errorf("the answer must be in the history unless its user was forgotten (%v): %q", gone, b.logged(square))
			}
			b.receive(talk("2", "bob", "Aria?"))
			if end := b.ended(1)[0]; end.Stale() {
				t.Error("a later turn of another user is stale")
			}
		})
	}
}

// TestForgottenWhileItGoesOn: a follow-up turn stores nothing once its user is forgotten, even in
// items that name nobody.
func TestForgottenWhileItGoesOn(t *testing.T) {
	db := open(t, t.TempDir()).(*memory.DB)
	t.Cleanup(func() { db.Close() })
	var errs []error
	diary := coretest.NewPlugin("diary", core.Action{Name: "note", Permission: core.PermissionEveryone,
		Do: func(ctx context.Context, c core.Call) (core.Result, error) {
			_, err := db.Items("diary").Put(ctx, core.Item{Path: c.Path, Key: "page", Value: json.RawMessage(`"he likes tea"`)})
			errs = append(errs, err)
			return core.Result{}, nil
		}})
	room := coretest.NewRoom("room")
	asker := coretest.NewAsker(`{"response":"wait","actions":[{"type":"CONTINUE"}]}`,
		`{"response":"Noted.","actions":[{"type":"note","payload":{}}]}`)
	asker.Hold = make(chan struct{})
	b := start(t, db, room, asker, func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, diary)
	})
	b.receive(talk("1", "jay", "Aria, I like tea"))
	b.thinks(1)
	asker.Hold <- struct{}{}
	b.thinks(1)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	close(asker.Hold)
	b.ended(2)
	if len(errs) != 1 || !errors.Is(errs[0], core.ErrForgotten) {
		t.Errorf("storing the note: got %v, want %v", errs, core.ErrForgotten)
	}
}

// between is a store that calls do before the first turn is journalled.
type between struct {
	*memory.DB
	once sync.Once
	do   func()
}

func (s *between) Commit(ctx context.Context, b *core.Batch) error {
	if len(b.Journal) > 0 {
		s.once.Do(s.do)
	}
	b.Begin = false // journals the first attempt in its own commit
	return s.DB.Commit(ctx, b)
}

// TestForgottenBeforeItBegan: a turn does not begin if its user is forgotten after the turn read
// the waiting messages.
func TestForgottenBeforeItBegan(t *testing.T) {
	db := open(t, t.TempDir()).(*memory.DB)
	t.Cleanup(func() { db.Close() })
	s := &between{DB: db, do: func() {
		if err := db.Forget(context.Background(), jay); err != nil {
			t.Error(err)
		}
	}}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")))
	b.receive(talk("1", "jay", "Aria, my secret"))
	b.receive(talk("2", "ann", "Aria?"))
	b.ended(1)
	if n := len(b.asker.Asked()); n != 1 || strings.Contains(b.input(0), "secret") {
		t.Errorf("the model was asked %d times, want once and without the secret: %s", n, b.input(0))
	}
	b.holds("Hello.")
}

// TestAPrivatePlaceStaysPrivate: messages of a private place stay out of other places' prompts and
// calls, even messages that are not marked as private.
func TestAPrivatePlaceStaysPrivate(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone})
	room := coretest.NewRoom("room")
	look := `{"response":"Yes.","actions":[{"type":"look","payload":{}}]}`
	b := start(t, s, room, coretest.NewAsker(plan("Between us."), look), func(o *turn.Options) {
		o.Catalogue, o.Config.Recent = catalogueOf(t, room, eye), 200
		setScope(o, "unified")
		o.Prompt.Shares = []turn.Share{{Paths: []core.Path{core.MustPath("room")}}}
	})
	b.receive(said("1", "jay", "my secret"))
	b.ended(1)
	var many core.Batch
	for i := range 60 { // as old databases may hold them
		many.Append = append(many.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: place, ID: fmt.Sprint("old-", i), Text: "UNMARKED", Time: time.Now(), Author: core.Author{ID: "jay"},
		}}})
	}
	if err := s.Commit(t.Context(), &many); err != nil {
		t.Fatal(err)
	}
	b.receive(talk("2", "ann", "Aria, what is new?"))
	b.ended(1)
	if in := b.input(1); strings.Contains(in, "UNMARKED") || strings.Contains(in, "secret") {
		t.Errorf("the group's prompt holds private messages: %s", in)
	}
	if sees := eye.Calls()[0].Sees; len(sees) != 1 || sees[0] != square {
		t.Errorf("the group sees %v, want only itself", sees)
	}
	due := said("r", "jay", "tea")
	due.Kind, due.Message.Private = core.KindReminder, false // not marked by its plugin
	if err := b.InternalInbox().Receive(t.Context(), beat("first", `{"beat":"x","quiet":true}`), due); err != nil {
		t.Fatal(err)
	}
	b.ended(2)
	unmarked := said("u", "jay", "and now?")
	unmarked.Message.Private, unmarked.Message.Addressed = false, core.AddressedMention
	b.receive(unmarked)
	b.ended(1)
	private := 0
	for _, c := range eye.Calls() {
		if c.Path != place {
			continue
		}
		if private++; !c.Private || len(c.Sees) != 1 {
			t.Errorf("call %d is private: %t and sees %v, want true and one place", private, c.Private, c.Sees)
		}
	}
	if private != 2 {
		t.Errorf("the reminder and the message caused %d calls, want 2", private)
	}
	err := s.View(t.Context(), func(v core.View) error {
		e, ok, err := v.Entry(place, "r")
		if !ok || !e.Message.Private {
			t.Errorf("the reminder is stored as %+v, want it private", e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReservedEvents: drivers and plugins cannot deliver the kinds of events and the rank that are
// reserved for the bot itself.
func TestReservedEvents(t *testing.T) {
	b := fresh(t, plan("ok"))
	for _, kind := range []core.Kind{core.KindBeat, core.KindReminder, core.KindContinue, "", "nonsense"} {
		e := said("1", "jay", "hi")
		e.Kind = kind
		if err := b.Receive(t.Context(), said("0", "jay", "hi"), e); err == nil {
			t.Errorf("a driver may deliver the kind %q", kind)
		}
	}
	bot := said("1", "jay", "hi")
	bot.Message.Author.Rank = core.RankBot
	if err := b.Receive(t.Context(), bot); err == nil {
		t.Error("a driver may deliver an author with the bot's rank")
	}
	if err := b.InternalInbox().Receive(t.Context(), bot); err == nil {
		t.Error("a plugin may deliver an author with the bot's rank")
	}
	e := said("1", "jay", "hi")
	e.Kind = core.KindContinue
	if err := b.InternalInbox().Receive(t.Context(), e); err == nil {
		t.Error("a plugin may deliver another turn")
	}
	b.history() // a refused batch stores nothing
}

// refusing is a store that reports a full disk while full is set.
type refusing struct {
	core.Store
	mu   sync.Mutex
	full bool
}

func (r *refusing) set(full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
}

func (r *refusing) Commit(ctx context.Context, b *core.Batch) error {
	r.mu.Lock()
	full := r.full
	r.mu.Unlock()
	if full {
		return core.ErrFull
	}
	return r.Store.Commit(ctx, b)
}

// TestOnlyWhatIsNewCounts: a message that is delivered again, or that could not be stored, does not
// count towards the limits for ambient replies and other bots.
func TestOnlyWhatIsNewCounts(t *testing.T) {
	disk := &refusing{Store: open(t, t.TempDir())}
	t.Cleanup(func() { disk.Close() })
	b := start(t, disk, coretest.NewRoom("room"), coretest.NewAsker(plan("a")), func(o *turn.Options) {
		o.Settings = func(at core.Path) turn.Settings {
			if at == square {
				return turn.Settings{Activation: turn.ActivationMention, Bots: true}
			}
			return turn.Settings{Activation: turn.ActivationAmbient, AmbientMessages: 3}
		}
	})
	other := func(id string) core.Event {
		e := talk(id, "other", "Aria?")
		e.Message.Author.Bot = true
		return e
	}
	quiet := func(id string) core.Event {
		e := talk(id, "jay", "nothing special")
		e.Message.Path = core.MustPath("room/hall")
		return e
	}
	b.receive(other("1"))
	b.ended(1)
	for range 5 {
		b.receive(other("1"))
		b.receive(quiet("1"))
		disk.set(true)
		if err := b.Receive(t.Context(), other("2"), quiet("2")); !errors.Is(err, core.ErrFull) {
			t.Fatal(err)
		}
		disk.set(false)
	}
	if n := len(b.asker.Asked()); n != 1 {
		t.Fatalf("the model was asked %d times, want once", n)
	}
	for _, id := range []string{"2", "3"} { // the other bot's second and third message
		b.receive(other(id))
		b.ended(1)
	}
	b.receive(quiet("2"))
	b.receive(other("4"))
	if n := len(b.asker.Asked()); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
	b.receive(quiet("3")) // the third message in the hall
	b.ended(1)
}

// TestWithinOneBatch: messages of one batch count one after the other.
func TestWithinOneBatch(t *testing.T) {
	b, _ := group(t, turn.Settings{Activation: turn.ActivationMention, Bots: true}, plan("a"))
	var all []core.Event
	for i := range 6 {
		e := talk(fmt.Sprint(i), fmt.Sprint("bot", i), "Aria?")
		e.Message.Author.Bot = true
		all = append(all, e)
	}
	b.receive(all...)
	b.ended(3)
	b.receive(talk("last", "jay", "Aria?"))
	if end := b.ended(1)[0]; end.Messages[0] != "last" {
		t.Errorf("the fourth turn answers %q, want last", end.Messages)
	}
}

// TestBlanksStayOutOfPrompts: messages that were stored without content stay out of prompts.
func TestBlanksStayOutOfPrompts(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Gates = []gate.Gate{judge{"stranger": {Admission: gate.Redact}}}
	})
	b.receive(talk("1", "stranger", "let me in"))
	b.receive(talk("2", "jay", "Aria?"))
	b.ended(1)
	if in := b.input(0); strings.Contains(in, "stranger") || strings.Contains(in, `"text":""`) || strings.Contains(in, "let me in") {
		t.Errorf("the prompt holds the redacted message: %s", in)
	}
}

// TestQuestionAfterACrash: on a platform without idempotency keys that can be searched, a
// confirmation question is sent once and answered once, whenever the process dies.
func TestQuestionAfterACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 9; n++ {
			t.Run(fmt.Sprintf("after=%t/commits=%d", after, n), func(t *testing.T) {
				t.Parallel()
				s := open(t, t.TempDir())
				t.Cleanup(func() { s.Close() })
				room := coretest.NewRoom("room")
				room.Forgets, room.Looks = true, true
				bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Permission: core.PermissionEveryone, Confirm: true})
				able := func(o *turn.Options) {
					o.Catalogue = catalogueOf(t, room, bank)
					o.Places.Chooser = func(core.Path) core.Chooser { return room }
				}
				dead := make(chan struct{})
				var once sync.Once
				m := &mortal{Store: s, left: n, after: after, die: func() { once.Do(func() { close(dead) }) }}
				first := start(t, m, room, coretest.NewAsker(pays, says), able)
				if first.Receive(t.Context(), said("1", "jay", "pay Ann")) == nil {
					select {
					case <-room.Ends():
					case <-dead:
					}
				}
				first.kill()
				b := start(t, s, room, coretest.NewAsker(pays, says), able)
				b.receive(said("1", "jay", "pay Ann"))
				b.quiet()
				if texts := room.Texts(); len(texts) != 2 || len(room.Choices()) != 1 {
					t.Fatalf("the room holds %q with buttons %v, want the answer and one question", texts, room.Choices())
				}
				b.receive(b.press("p", "jay", "Confirm"))
				b.quiet()
				if len(bank.Calls()) != 1 {
					t.Errorf("paid %d times, want once", len(bank.Calls()))
				}
			})
		}
	}
}

// TestLifeAfterForgetting: after a place was forgotten and the bot restarted, the bot's own events
// are not mistaken for repeated deliveries.
func TestLifeAfterForgetting(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   string
	}{
		"expired question": {pays, "As you wish.|Pay somebody\nto: Ann\n\n⌛ The question has expired.|and more"},
		"follow-up":        {`{"response":"wait","actions":[{"type":"CONTINUE"}]}`, "wait|and more"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, id := range []string{"1", "2"} {
				db, err := memory.Open(dir, memory.Options{NoSync: true})
				if err != nil {
					t.Fatal(err)
				}
				room := coretest.NewRoom("room")
				b := start(t, db, room, coretest.NewAsker(tc.script, plan("and more")), payable(t, room, time.Nanosecond))
				b.receive(said(id, "jay", "pay Ann"))
				b.ended(2)
				b.holds(strings.Split(tc.want, "|")...)
				b.stop()
				if err := errors.Join(db.Forget(t.Context(), place), db.Close()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// payable adds an action that needs a confirmation within that time.
func payable(t *testing.T, room *coretest.Room, within time.Duration) func(*turn.Options) {
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	return func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Runtime = action.NewRuntime(action.Options{Expire: within})
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	}
}

// TestForgottenQuestion: the expiry of a question that was decided or forgotten writes nothing.
func TestForgottenQuestion(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := memory.Open(dir, memory.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		room := coretest.NewRoom("room")
		b := start(t, db, room, coretest.NewAsker(pays, says, pays), payable(t, room, time.Minute))
		defer b.stop()
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		b.receive(b.press("p", "jay", "Confirm"))
		b.ended(1)
		time.Sleep(2 * time.Minute)
		b.history("pay Ann", "As you wish.", "Pay somebody\nto: Ann", "")
		b.receive(said("2", "jay", "pay Ann"))
		b.ended(1)
		if err := db.Forget(t.Context(), jay); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		b.history()
	})
}
