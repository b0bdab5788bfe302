package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/core/watch"
	"synthbot/memory"
)

// TestMain makes garbage collection rarer, which saves a fifth of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(coretest.Sample(100, 400))
	m.Run()
}

// bot is the real pipeline with a scripted model.
type bot struct {
	*turn.Turns
	t     testing.TB
	store core.Store
	room  *coretest.Room
	asker *coretest.Asker
	o     turn.Options
	stop  func() // stops after the running turns
	kill  func() // stops at once
}

var place = core.MustPath("room/1")

// open opens a database.
func open(t testing.TB, dir string) core.Store {
	t.Helper()
	s, err := memory.Open(dir, memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a bot. The functions in change may set further options.
func start(t testing.TB, s core.Store, room *coretest.Room, asker core.Asker, change ...func(*turn.Options)) *bot {
	t.Helper()
	catalogue := catalogueOf(t, room)
	log := slog.New(slog.DiscardHandler)
	o := turn.Options{
		Store: s, Catalogue: catalogue, Asker: asker,
		Runtime: action.NewRuntime(action.Options{Clock: time.Now, Log: log}),
		Prompt: turn.Prompt{Persona: func(core.Path, string) core.Persona {
			return core.Persona{Name: "Aria", Text: "You are Aria."}
		}},
		Clock: time.Now, Log: log, Config: turn.Config{History: 20, Attempts: 2}, Names: named("Aria"),
		Settings: func(core.Path) turn.Settings { return turn.Settings{Activation: turn.ActivationMention} },
		Plugins:  turn.Plugins{Observers: []watch.Observer{room}},
	}
	for _, f := range change {
		f(&o)
	}
	b := &bot{Turns: turn.New(o), t: t, store: s, room: room, o: o}
	b.asker, _ = asker.(*coretest.Asker)
	life, end := context.WithCancel(t.Context())
	work, abort := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	go func() { over <- b.Run(life, work) }()
	var once sync.Once
	b.kill = func() { abort(); b.stop() }
	b.stop = func() {
		once.Do(func() {
			end()
			timer := time.AfterFunc(coretest.Patience, abort)
			defer timer.Stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			abort()
		})
	}
	t.Cleanup(b.stop)
	return b
}

// options returns the options the bot was started with, changed by change.
func (b *bot) options(change func(*turn.Options)) turn.Options {
	o := b.o
	change(&o)
	return o
}

func catalogueOf(t testing.TB, plugins ...core.Plugin) *action.Snapshot {
	t.Helper()
	snapshot, err := action.Build(plugins...)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func fresh(t testing.TB, script ...any) *bot {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	return start(t, s, coretest.NewRoom("room"), coretest.NewAsker(script...))
}

// said returns a private message to the bot.
func said(id, author, text string) core.Event {
	return core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: place, ID: id, Text: text, Time: time.Now(), Author: core.Author{ID: author, Name: author},
		Private: true, Addressed: core.AddressedDirect,
	}}
}

// Receive delivers events as a driver does.
func (b *bot) Receive(ctx context.Context, events ...core.Event) error {
	return b.Inbox().Receive(ctx, events...)
}

func (b *bot) receive(events ...core.Event) {
	b.t.Helper()
	var in core.Inbox = b
	if k := events[0].Kind; k == core.KindBeat || k == core.KindReminder {
		in = b.InternalInbox()
	}
	if err := in.Receive(b.t.Context(), events...); err != nil {
		b.t.Fatal(err)
	}
}

// ended waits for the ends of n turns.
func (b *bot) ended(n int) (ends []watch.TurnEnd) {
	b.t.Helper()
	for range n {
		select {
		case e := <-b.room.Ends():
			ends = append(ends, e)
		case <-time.After(coretest.Patience):
			b.t.Fatalf("%d of %d turns ended", len(ends), n)
		}
	}
	return ends
}

// thinks waits until the model was asked n times.
func (b *bot) thinks(n int) {
	b.t.Helper()
	for i := range n {
		select {
		case <-b.asker.Begun():
		case <-time.After(coretest.Patience):
			b.t.Fatalf("the model was asked %d times, want %d", i, n)
		}
	}
}

// holds checks the texts in the room.
func (b *bot) holds(want ...string) {
	b.t.Helper()
	if got := b.room.Texts(); !slices.Equal(got, want) {
		b.t.Errorf("the room holds %q, want %q", got, want)
	}
}

// history checks the texts in the history of the private place.
func (b *bot) history(want ...string) {
	b.t.Helper()
	var got []string
	err := b.store.View(context.Background(), func(v core.View) error {
		entries, err := v.Last(place, 1000)
		for _, e := range entries {
			got = append(got, e.Message.Text)
		}
		return err
	})
	if err != nil || !slices.Equal(got, want) {
		b.t.Errorf("the history holds %q (%v), want %q", got, err, want)
	}
}

// input returns the user message of the i-th request to the model.
func (b *bot) input(i int) string {
	b.t.Helper()
	asked := b.asker.Asked()
	if i >= len(asked) {
		b.t.Fatalf("the model was asked %d times", len(asked))
	}
	return asked[i].Messages[len(asked[i].Messages)-1].Text
}

// plan returns a plan with a text.
func plan(text string) string {
	raw, err := json.Marshal(map[string]string{"response": text})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestAnswer(t *testing.T) {
	b := fresh(t, plan("Hello, Jay."))
	b.receive(said("1", "jay", "hi"))
	if end := b.ended(1)[0]; !end.Answered || !slices.Equal(end.Messages, []string{"1"}) {
		t.Errorf("unexpected end of the turn: %+v", end)
	}
	b.holds("Hello, Jay.")
	b.history("hi", "Hello, Jay.")
	if in := b.input(0); !strings.Contains(in, `"text":"hi"`) || !strings.Contains(in, `"interface_path":"room/1"`) {
		t.Errorf("unexpected prompt: %s", in)
	}
}

func TestSameMessageTwice(t *testing.T) {
	b := fresh(t, plan("once"))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.receive(said("1", "jay", "hi"))
	b.ended(1) // ends at once, without a turn
	b.receive(said("2", "jay", "again"))
	b.ended(1)
	b.holds("once", "once")
	b.history("hi", "once", "again", "once")
}

func TestMerging(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []core.Event
		want   []int // messages of each turn
	}{
		{"one author", []core.Event{said("1", "a", "x"), said("2", "a", "y")}, []int{2}},
		{"two authors", []core.Event{said("1", "a", "x"), said("2", "b", "y"), said("3", "a", "z")}, []int{1, 1, 1}},
		{"a press between", []core.Event{said("1", "a", "x"), press("room-1", "y"), said("3", "a", "z")}, []int{1, 1, 1}},
		{"reminders", []core.Event{reminder("x"), func() core.Event { e := reminder("y"); e.Message.ID = "3"; return e }()}, []int{1, 1}},
		{"more than five", []core.Event{said("1", "a", "1"), said("2", "b", "2"), said("3", "a", "3"),
			said("4", "b", "4"), said("5", "a", "5"), said("6", "b", "6")}, []int{6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := fresh(t, plan("ok"))
			if err := b.InternalInbox().Receive(t.Context(), tc.events...); err != nil {
				t.Fatal(err)
			}
			for i, end := range b.ended(len(tc.want)) {
				if len(end.Messages) != tc.want[i] {
					t.Errorf("turn %d answers %q, want %d messages", i, end.Messages, tc.want[i])
				}
			}
		})
	}
}

func TestBacklog(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("I was away.")), func(o *turn.Options) { o.Config.Backlog = time.Hour })
	old := func(id, author string) core.Event {
		e := said(id, author, "are you there?")
		e.Message.Time = time.Now().Add(-90 * time.Minute)
		return e
	}
	late := old("r", "ann")
	late.Kind, late.Message.Path = core.KindReminder, core.MustPath("room/2")
	b.receive(late)
	b.ended(1)
	if in := b.input(0); strings.Contains(in, "You were away") || !strings.Contains(in, "comes late") {
		t.Errorf("unexpected prompt of the reminder: %s", in)
	}
	b.receive(old("1", "ann"), old("2", "jay"), said("3", "ann", "now"))
	if ends := b.ended(2); len(ends[0].Messages) != 2 || len(ends[1].Messages) != 1 {
		t.Errorf("unexpected ends of turns: %+v", ends)
	}
	if in := b.input(1); !strings.Contains(in, "have waited for 1 hour 30 minutes") || strings.Contains(b.input(2), "have waited") {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// TestClockApart: the age of a message is measured by the platform's clock, however wrong the
// machine's clock is.
func TestClockApart(t *testing.T) {
	for _, tc := range []struct {
		name          string
		ahead, waited time.Duration
		late          bool
	}{
		{"ahead", 2 * time.Hour, 0, false},
		{"ahead, waited", 2 * time.Hour, 90 * time.Minute, true},
		{"behind", -2 * time.Hour, 0, false},
		{"behind, waited", -2 * time.Hour, 90 * time.Minute, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Yes.")), func(o *turn.Options) {
				o.Config.Backlog = time.Hour
				o.Clock = func() time.Time { return time.Now().Add(tc.ahead) }
			})
			e := said("1", "ann", "are you there?")
			e.Message.Time, e.Message.Ahead = time.Now().Add(-tc.waited), tc.ahead
			b.receive(e)
			b.ended(1)
			want := ""
			if tc.late {
				want = "have waited for 1 hour 30 minutes"
			}
			if in := b.input(0); strings.Contains(in, "You were away") != tc.late || !strings.Contains(in, want) {
				t.Errorf("unexpected prompt: %s", in)
			}
		})
	}
}

// TestClockApartKeepsTheTopic: the state of a conversation is kept for six hours by the platform's
// clock.
func TestClockApartKeepsTheTopic(t *testing.T) {
	for _, tc := range []struct {
		name          string
		ahead, silent time.Duration
		kept          bool
	}{
		{"ahead", 2 * time.Hour, 5 * time.Hour, true},
		{"behind", -2 * time.Hour, 7 * time.Hour, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			before := said("1", "ann", "tell me of snails")
			before.Message.Time, before.Message.Ahead = time.Now().Add(-tc.silent), tc.ahead
			err := s.Commit(t.Context(), &core.Batch{
				Append: []core.Entry{{Event: before}},
				States: map[core.Path]core.State{place: {Topic: "snails"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Yes.")), func(o *turn.Options) {
				o.Clock = func() time.Time { return time.Now().Add(tc.ahead) }
			})
			b.receive(said("2", "ann", "go on"))
			b.ended(1)
			if in := b.input(0); strings.Contains(in, `"snails"`) != tc.kept {
				t.Errorf("unexpected prompt: %s", in)
			}
		})
	}
}

func TestShutOutMeanwhile(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "ann", "hi"))
	b.thinks(1)
	b.receive(said("2", "eve", "and me")) // waits behind ann's turn
	b.Reconfigure(b.options(func(o *turn.Options) { o.Access.Deny = []core.Path{core.MustPath("room/@user/eve")} }))
	close(b.asker.Hold)
	if ends := b.ended(2); !ends[0].Answered || ends[1].Answered {
		t.Errorf("unexpected ends of turns: %+v", ends)
	}
	b.holds("ok")
}

// TestOutOfReach: messages in a place that no interface can reach wait without delaying other
// places. They are answered once an interface can, even after a restart.
func TestOutOfReach(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	var seen atomic.Bool
	away := func(o *turn.Options) {
		o.Places.Reaches = func(p core.Path) bool { return seen.Load() || p != place }
	}
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(plan("beside"), plan("here")), away)
	other := said("2", "ann", "hi")
	other.Message.Path = core.MustPath("room/7")
	b.receive(said("1", "jay", "hi"), other)
	b.ended(1)
	b.stop()
	b = start(t, s, room, coretest.NewAsker(plan("here"), plan("and here")), away)
	seen.Store(true)
	b.Wake(place)
	b.ended(1)
	seen.Store(false)
	b.receive(said("3", "jay", "still there?"))
	b.Reconfigure(b.options(func(o *turn.Options) { o.Places.Reaches = nil }))
	b.ended(1)
	b.holds("beside", "here", "and here")
}

// TestBrokenOff: a turn whose interface goes away resumes where it stopped: nothing is sent twice,
// the model is not asked again, and no attempt is used up.
func TestBrokenOff(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	var away atomic.Bool
	tried := make(chan struct{}, 100)
	room := coretest.NewRoom("room")
	room.Forgets = true // a refusal means that nothing arrived
	room.Fail = func(text string) error {
		if text != "two" || !away.Load() {
			return nil
		}
		tried <- struct{}{}
		return fmt.Errorf("no token: %w", core.ErrAway)
	}
	fails := func() {
		t.Helper()
		select {
		case <-tried:
		case <-time.After(coretest.Patience):
			t.Fatal("the turn did not resume")
		}
	}
	reach := func(o *turn.Options) { o.Places.Reaches = func(core.Path) bool { return !away.Load() } }
	asker := coretest.NewAsker(plan("one\ntwo"))
	b := start(t, s, room, asker, reach)
	asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "hi"))
	b.thinks(1)
	away.Store(true)
	close(asker.Hold)
	fails()
	for range 10 {
		b.stop()
		b = start(t, s, room, asker, func(o *turn.Options) { o.Places.Reaches = nil }) // finds out only by sending
		fails()
	}
	away.Store(false)
	b.ended(1)
	b.holds("one", "two")
	b.history("hi", "one", "two")
	if n := len(asker.Asked()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestQuestionBrokenOff: a confirmation question that cannot be sent is sent later without asking
// the model again.
func TestQuestionBrokenOff(t *testing.T) {
	var away atomic.Bool
	tried := make(chan struct{}, 100)
	room := coretest.NewRoom("room")
	room.Fail = func(text string) error {
		if text == "one" || !away.Load() {
			return nil
		}
		tried <- struct{}{}
		return fmt.Errorf("no token: %w", core.ErrAway)
	}
	s := open(t, t.TempDir())
	defer s.Close()
	away.Store(true)
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	asker := coretest.NewAsker(`{"response":"one","actions":[{"type":"pay"}]}`)
	b := start(t, s, room, asker, func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	})
	b.receive(said("1", "jay", "pay Ann"))
	for range 2 {
		select {
		case <-tried:
		case <-time.After(coretest.Patience):
			t.Fatal("the question was not sent again")
		}
	}
	away.Store(false)
	b.ended(1)
	if texts := room.Texts(); len(texts) != 2 || texts[0] != "one" || len(asker.Asked()) != 1 {
		t.Errorf("unexpected: the room holds %q, the model was asked %d times", texts, len(asker.Asked()))
	}
}

func TestPlacesRunInParallel(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	for i := range 20 {
		e := said("1", "jay", "hi")
		e.Message.Path = core.MustPath(fmt.Sprintf("room/%d", i))
		b.receive(e)
	}
	b.thinks(20) // all of them at once
	close(b.asker.Hold)
	b.ended(20)
}

func TestWhoIsAnswered(t *testing.T) {
	b := fresh(t, plan("yes"))
	group := func(id, text string, change func(*core.Message)) core.Event {
		e := said(id, "jay", text)
		e.Message.Private, e.Message.Addressed = false, ""
		if change != nil {
			change(&e.Message)
		}
		return e
	}
	for i, tc := range []struct {
		e    core.Event
		want bool
	}{
		{group("1", "nice weather", nil), false},
		{group("2", "what do you say, ARIA?", nil), true},
		{group("3", "malaria is bad", nil), false},
		{group("4", "@bot", func(m *core.Message) { m.Addressed = core.AddressedMention }), true},
		{group("5", "Aria!", func(m *core.Message) { m.Author.Bot = true }), false},
	} {
		b.receive(tc.e)
		if tc.want {
			b.ended(1)
		}
		asked := 0
		for _, tc := range []bool{false, true, false, true, false}[:i+1] {
			if tc {
				asked++
			}
		}
		if got := len(b.asker.Asked()); got != asked {
			t.Errorf("after %q the model was asked %d times, want %d", tc.e.Message.Text, got, asked)
		}
	}
}

func TestCorrection(t *testing.T) {
	const apology = "Sorry, I lost my thread there. Could you say that again, maybe in other words?"
	for _, tc := range []struct {
		name   string
		script []any
		asked  int
		want   string
	}{
		{"mended", []any{`{"actions":[{"type":"fly"}]}`, plan("fine")}, 2, "fine"},
		{"the same words again", []any{"Just words."}, 2, "Just words."},
		{"prose after all", []any{`{"x":`, "A.", "Never mind."}, 3, "Never mind."},
		{"never raw JSON", []any{`{"actions":[{"type":"fly"}]}`, `{"actions":[{"type":"swim"}]}`, `{"actions":[{"type":"run"}]}`}, 3, apology},
		{"the valid part", []any{`{"response":"hi","actions":[{"type":"fly"}]}`}, 3, "hi"},
		{"an engine's error", []any{&llm.Error{Kind: llm.ErrorFatal, Err: errors.New("api key sk-123 is wrong")}}, 1,
			"Sorry, I can't think straight just now. Please try again in a little while. (E-ENGINE)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := fresh(t, tc.script...)
			b.receive(said("1", "jay", "hi"))
			b.ended(1)
			b.holds(tc.want)
			if got := len(b.asker.Asked()); got != tc.asked {
				t.Errorf("the model was asked %d times, want %d", got, tc.asked)
			}
		})
	}
}

func TestDeletionEndsTheThinking(t *testing.T) {
	b := fresh(t, plan("answer"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "secret"))
	b.thinks(1)
	b.receive(core.Event{Kind: core.KindDeletion, Target: "1", Message: core.Message{Path: place}})
	if end := b.ended(1)[0]; end.Answered {
		t.Error("a deleted message was answered")
	}
	b.holds()
}

// blocking is an injector that waits until it is released.
type blocking struct{ begun, release chan struct{} }

func (b blocking) Inject(context.Context, core.Scene) (json.RawMessage, error) {
	close(b.begun)
	<-b.release
	return nil, nil
}

// TestDeletionWhileGathering: a message that is deleted before the model is asked is not answered.
func TestDeletionWhileGathering(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	slow := blocking{make(chan struct{}), make(chan struct{})}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("answer")), func(o *turn.Options) {
		o.Plugins.Injectors = map[string]core.Injector{"slow": slow}
	})
	b.receive(said("1", "jay", "secret"))
	<-slow.begun
	b.receive(core.Event{Kind: core.KindDeletion, Target: "1", Message: core.Message{Path: place}})
	close(slow.release)
	if end := b.ended(1)[0]; end.Answered || len(b.asker.Asked()) > 0 {
		t.Errorf("unexpected: the turn ended as %+v, the model was asked %d times", end, len(b.asker.Asked()))
	}
}

// TestEditBeforeTheAnswer: a waiting message that is edited is answered with its new text.
func TestEditBeforeTheAnswer(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "ann", "first"))
	b.thinks(1)
	b.receive(said("2", "jay", "five")) // waits behind ann's turn
	edit := said("2", "jay", "six")
	edit.Kind = core.KindEdit
	b.receive(edit)
	close(b.asker.Hold)
	b.ended(2)
	if in := b.input(1); !strings.Contains(in, `"text":"six"`) || strings.Contains(in, "five") {
		t.Errorf("unexpected prompt: %s", in)
	}
	b.history("first", "six", "ok", "ok")
}

func TestSetAside(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	panics := 0
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("fine")), func(o *turn.Options) {
		persona := o.Prompt.Persona
		o.Prompt.Persona = func(p core.Path, user string) core.Persona {
			if user == "poison" {
				panics++
				panic("poison")
			}
			return persona(p, user)
		}
	})
	b.receive(said("1", "poison", "boom"))
	b.receive(said("2", "jay", "hi"))
	ends := b.ended(2)
	if panics != 3 || !ends[0].Aside || ends[1].Aside {
		t.Errorf("unexpected: %d attempts, ends %+v", panics, ends)
	}
	if texts := b.room.Texts(); len(texts) != 2 || texts[1] != "fine" {
		t.Errorf("unexpected texts in the room: %q", texts)
	}
}

func TestAccess(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
		o.Access = turn.Access{Private: "allow", Deny: []core.Path{core.MustPath("room/@user/eve"), core.MustPath("room/@user/root")}, Allow: []core.Path{core.MustPath("room/@user/ann"), core.MustPath("room/@user/eve")}}
		o.Admins = []core.Path{core.MustPath("room/@user/root")}
	})
	for i, who := range []string{"eve", "stranger", "ann", "root"} {
		b.receive(said(fmt.Sprint(i), who, who))
	}
	b.ended(4)
	b.history("ann", "root", "ok", "ok")
}

// TestAdminNoMore: a turn has the rights that its user has when it starts.
func TestAdminNoMore(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	power := coretest.NewPlugin("power", core.Action{Name: "ban", Brief: "Ban somebody", Permission: core.PermissionAdmins})
	ban := `{"response":"ok","actions":[{"type":"ban"}]}`
	b := start(t, s, room, coretest.NewAsker(plan("ok"), ban), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, power)
		o.Admins = []core.Path{core.MustPath("room/@user/root")}
	})
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "ann", "hi"))
	b.thinks(1)
	b.receive(said("2", "root", "ban ann")) // no longer an admin when its turn starts
	b.Reconfigure(b.options(func(o *turn.Options) { o.Admins = nil }))
	close(b.asker.Hold)
	b.ended(2)
	if len(power.Calls()) != 0 {
		t.Error("a former admin could run an admin's action")
	}
}

// TestCallsAreWordsToo: in the tools dialect a reply with calls but no text is not taken for a
// repeated one.
func TestCallsAreWordsToo(t *testing.T) {
	call := func(name, arguments string) llm.Answer {
		return llm.Answer{Calls: []llm.ToolCall{{ID: "1", Name: name, Arguments: []byte(arguments)}}}
	}
	for _, text := range []string{"", "Let me see."} {
		script := []any{call("fly", `{`), call("swim", `{}`), call("message_room", `{"text":"hi"}`)}
		for i := range script {
			a := script[i].(llm.Answer)
			a.Text = text
			script[i] = a
		}
		b := fresh(t, script...)
		b.asker.Limits.Dialect = llm.DialectTools
		b.receive(said("1", "jay", "hi"))
		b.ended(1)
		if texts := b.room.Texts(); texts[len(texts)-1] != "hi" {
			t.Errorf("with the text %q: unexpected texts in the room: %q", text, texts)
		}
	}
	for dialect, asked := range map[llm.Dialect]int{llm.DialectTools: 1, "": 2} { // text alone is a valid reply in the tools dialect
		b := fresh(t, "Hello there.", plan("Hello."))
		b.asker.Limits.Dialect = dialect
		b.receive(said("1", "jay", "hi"))
		b.ended(1)
		if n := len(b.asker.Asked()); n != asked {
			t.Errorf("dialect %q: the model was asked %d times, want %d; the room holds %q", dialect, n, asked, b.room.Texts())
		}
	}
}

// TestTroubleIsWorded: error messages say what users can do and hold a code for admins.
func TestTroubleIsWorded(t *testing.T) {
	for text, err := range map[string]error{
		"I can't think straight just now. Please try again in a little while. (E-ENGINE)": errors.New("secret"),
		"(E-BUSY)":                 &llm.Error{Kind: llm.ErrorRetryLater},
		"(E-REFUSED)":              &llm.Error{Kind: llm.ErrorRefused, Err: &core.Error{Kind: core.Broken}},
		"(E-LONG)":                 &llm.Error{Kind: llm.ErrorTooLong},
		"You have used up it all.": &llm.Error{Kind: llm.ErrorRefused, Err: core.Errorf(core.Occupied, "You have used up it all.")},
	} {
		b := fresh(t, err)
		b.receive(said("1", "jay", "hi"))
		b.ended(1)
		if texts := b.room.Texts(); len(texts) != 1 || !strings.HasSuffix(texts[0], text) || strings.Contains(texts[0], "secret") {
			t.Errorf("%v: unexpected texts %q", err, texts)
		}
	}
}

// TestCutOffReplies: a truncated reply is asked for again, even if it can be parsed.
func TestCutOffReplies(t *testing.T) {
	b := fresh(t, llm.Answer{Text: plan("This is half of"), Truncated: true}, plan("Short."))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.holds("Short.")
	if in := b.input(1); !strings.Contains(in, "cut off in the middle") {
		t.Errorf("unexpected correction: %s", in)
	}
	half := llm.Answer{Text: plan("This is half of"), Truncated: true}
	b = fresh(t, half, half, half)
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.holds("This is half of…")
}

// TestFirstWordsOfProse: if no reply was a plan, the bot sends the model's first reply if that
// reads as prose.
func TestFirstWordsOfProse(t *testing.T) {
	const bad = `{"actions":[{"type":"fly"}]}`
	for name, tc := range map[string]struct {
		script []any
		want   string
	}{
		"the last":  {[]any{bad, bad, "In my own words."}, "In my own words."},
		"the first": {[]any{"In my own words.", bad, bad}, "In my own words."},
		"neither":   {[]any{bad, "In my own words.", bad}, "Sorry, I lost my thread there. Could you say that again, maybe in other words?"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fresh(t, tc.script...)
			b.receive(said("1", "jay", "hi"))
			b.ended(1)
			b.holds(tc.want)
		})
	}
	b, _ := group(t, turn.Settings{Activation: turn.ActivationAmbient, AmbientMessages: 1}, bad)
	b.receive(talk("1", "jay", "hm"))
	b.ended(1)
	b.holds() // no error message, as nobody called the bot
}

// TestCorrectionsTellAll: a correction lists all faults of a plan and the schemas of the actions
// concerned.
func TestCorrectionsTellAll(t *testing.T) {
	eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone,
		Schema: json.RawMessage(`{"type":"object","properties":{"direction":{"type":"integer"}}}`)})
	for reply, wants := range map[string][]string{
		`{"response":"hi","note":"psst"}`:                           {"unknown top-level key"},
		`{"actions":[{"type":"look","payload":{"direction":"x"}}]}`: {`"attempted_actions":{"look":`, "is string but should be integer"},
		`{"actions":[{"type":"fly"}],"note":"psst"}`:                {"fly", "unknown top-level key"},
	} {
		b := withPlugin(t, eye, reply, plan("ok"))
		b.receive(said("1", "jay", "hi"))
		b.ended(1)
		for _, want := range wants {
			if in := b.input(1); !strings.Contains(in, want) {
				t.Errorf("the correction of %s lacks %q: %s", reply, want, in)
			}
		}
	}
}

// TestQuietBeatHasAnIntent: the intent of a plan counts even if none of its actions may run.
func TestQuietBeatHasAnIntent(t *testing.T) {
	b := fresh(t, `{"response":"ALOUD","intent":"query","confidence":0.5}`)
	b.receive(beat("b1", `{"beat":"diary","quiet":true}`))
	if end := b.ended(1)[0]; end.Intent != "query" || end.Confidence != 0.5 || len(b.asker.Asked()) != 1 {
		t.Errorf("unexpected end of the turn: %+v", end)
	}
	b.holds()
	if in := b.input(0); strings.Contains(in, `"participants"`) {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// TestNoRoomForOneMessage: a prompt that fits no engine is reported to the user in plain words.
func TestNoRoomForOneMessage(t *testing.T) {
	b := fresh(t, plan("never"))
	b.asker.Limits.Chars = 10
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	if texts := b.room.Texts(); len(texts) != 1 || !strings.HasSuffix(texts[0], "(E-LONG)") {
		t.Errorf("unexpected texts in the room: %q", texts)
	}
}

// setScope sets the scope of the history for all places.
func setScope(o *turn.Options, scope string) {
	settings := o.Settings
	o.Settings = func(place core.Path) turn.Settings {
		s := settings(place)
		s.Scope = scope
		return s
	}
}
