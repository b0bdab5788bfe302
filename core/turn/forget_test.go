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

// notebook keeps notes, as a plugin may: under the person, and by name.
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

// TestForgottenWhileItRuns: nothing comes back of a user who was forgotten while their turn
// ran: no item of any plugin, no answer in the log, and no trace of the turn.
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
					t.Errorf("a note of %s: %v", who, err)
				}
			}
			items, err := db.Items("notebook").List(t.Context(), core.Path{})
			if err != nil || len(errs) != 2 || (len(items) == 0) != gone {
				t.Errorf("%d tries, kept is %v, %v", len(errs), items, err)
			}
			if end.Stale == nil || !end.Stale() {
				t.Error("the trace would stay: jay spoke in what the turn was told")
			}
			if kept := strings.Contains(strings.Join(b.logged(square), "|"), "Noted."); kept == gone {
				t.Errorf("the log holds %q", b.logged(square))
			}
			b.receive(talk("2", "bob", "Aria?")) // and what begins afterwards is as ever
			if end := b.ended(1)[0]; end.Stale() {
				t.Error("a turn of somebody else, later, is stale")
			}
		})
	}
}

// TestForgottenWhileItGoesOn: a turn that goes on with what somebody asked stores
// nothing once they are forgotten, even if it names nobody.
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
		t.Errorf("the note: %v", errs)
	}
}

// between does something before the first turn is journalled.
type between struct {
	*memory.DB
	once sync.Once
	do   func()
}

func (s *between) Commit(ctx context.Context, b *core.Batch) error {
	if len(b.Journal) > 0 {
		s.once.Do(s.do)
	}
	b.Begin = false // the first record of a turn is a commit of its own
	return s.DB.Commit(ctx, b)
}

// TestForgottenBeforeItBegan: the turn has read what waits, and nobody knows of it
// yet. It does not begin.
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
		t.Errorf("the model was asked %d times: %s", n, b.input(0))
	}
	b.holds("Hello.")
}

// TestAPrivatePlaceStaysPrivate: however much is said there without a mark, nobody
// elsewhere hears of it, and nothing of it counts as said in public.
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
	for i := range 60 { // as a store of former days may hold them
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
		t.Errorf("the group's model was told %s", in)
	}
	if sees := eye.Calls()[0].Sees; len(sees) != 1 || sees[0] != square {
		t.Errorf("the group sees %v", sees)
	}
	due := said("r", "jay", "tea")
	due.Kind, due.Message.Private = core.KindReminder, false // who set it could not know
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
			t.Errorf("call %d is private: %t, and sees %v", private, c.Private, c.Sees)
		}
	}
	if private != 2 {
		t.Errorf("the reminder and the message caused %d calls", private)
	}
	err := s.View(t.Context(), func(v core.View) error {
		e, ok, err := v.Entry(place, "r")
		if !ok || !e.Message.Private {
			t.Errorf("the reminder stands there as %+v", e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoorbell: what the bot alone can cause comes from no platform.
func TestDoorbell(t *testing.T) {
	b := fresh(t, plan("ok"))
	for _, kind := range []core.Kind{core.KindBeat, core.KindReminder, core.KindContinue, core.KindBacklog, "", "nonsense"} {
		e := said("1", "jay", "hi")
		e.Kind = kind
		if err := b.Receive(t.Context(), said("0", "jay", "hi"), e); err == nil {
			t.Errorf("an interface may deliver %q", kind)
		}
	}
	bot := said("1", "jay", "hi")
	bot.Message.Author.Rank = core.RankBot
	if err := b.Receive(t.Context(), bot); err == nil {
		t.Error("somebody may have the bot's own rank")
	}
	if err := b.InternalInbox().Receive(t.Context(), bot); err == nil {
		t.Error("a plugin may give somebody the bot's own rank")
	}
	for _, kind := range []core.Kind{core.KindContinue, core.KindBacklog} {
		e := said("1", "jay", "hi")
		e.Kind = kind
		if err := b.InternalInbox().Receive(t.Context(), e); err == nil {
			t.Errorf("a plugin may deliver %q", kind)
		}
	}
	b.history() // after an error none of them was taken
}

// refusing is a store that cannot write for a while.
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

// TestOnlyWhatIsNewCounts: a message that is delivered again, or that could not be
// kept, is not counted.
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
		t.Fatalf("the model was asked %d times", n)
	}
	for _, id := range []string{"2", "3"} { // the second and third of the bot's
		b.receive(other(id))
		b.ended(1)
	}
	b.receive(quiet("2"))
	b.receive(other("4"))
	if n := len(b.asker.Asked()); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
	b.receive(quiet("3")) // the third that was said in the hall
	b.ended(1)
}

// TestWithinOneBatch: what comes together is counted one after the other.
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
		t.Errorf("the fourth turn answers %q", end.Messages)
	}
}

// TestBlanksStayOutOfPrompts: messages without content stay out of prompts.
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
		t.Errorf("the model was told %s", in)
	}
}

// TestQuestionAfterACrash: where the platform forgets keys and can be looked at,
// the question of a confirmation is there once, whenever the process dies, and
// is answered once.
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
					t.Fatalf("the room holds %q, and buttons %v", texts, room.Choices())
				}
				b.receive(b.press("p", "jay", "Confirm"))
				b.quiet()
				if len(bank.Calls()) != 1 {
					t.Errorf("it paid %d times", len(bank.Calls()))
				}
			})
		}
	}
}

// TestLifeAfterForgetting: in the life after a place was forgotten, what the bot
// itself causes there is not taken for something that is delivered again.
func TestLifeAfterForgetting(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   string
	}{
		"a question's end": {pays, "As you wish.|Pay somebody\nto: Ann\n\n⌛ The question has expired.|and more"},
		"what goes on":     {`{"response":"wait","actions":[{"type":"CONTINUE"}]}`, "wait|and more"},
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

// payable lets a bot pay when it is confirmed, within that time.
func payable(t *testing.T, room *coretest.Room, within time.Duration) func(*turn.Options) {
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	return func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Runtime = action.NewRuntime(action.Options{Expire: within})
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	}
}

// TestForgottenQuestion: of a question that was forgotten, or decided, nothing is
// written when its time is over.
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
