package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/memory"
)

// counting is a store that counts commits, and those with entries.
type counting struct {
	core.Store
	commits, all atomic.Int32
}

func (c *counting) Commit(ctx context.Context, b *core.Batch) error {
	c.all.Add(1)
	if len(b.Append) > 0 {
		c.commits.Add(1)
	}
	return c.Store.Commit(ctx, b)
}

// TestReceiptIsOneCommit: a batch of events of any kinds and places is one commit.
func TestReceiptIsOneCommit(t *testing.T) {
	s := &counting{Store: open(t, t.TempDir())}
	t.Cleanup(func() { s.Close() })
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
	b.receive(talk("1", "jay", "one"), talk("2", "ann", "two"), talk("3", "bob", "three"))
	if n := s.commits.Load(); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
}

// TestEditWhileItRuns: an edit during a turn changes the history and causes no second answer.
func TestEditWhileItRuns(t *testing.T) {
	b := fresh(t, plan("once"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "five"))
	b.thinks(1)
	edit := said("1", "jay", "six")
	edit.Kind = core.KindEdit
	b.receive(edit)
	close(b.asker.Hold)
	b.ended(1)
	b.receive(said("2", "jay", "thanks"))
	b.ended(1)
	b.history("six", "once", "thanks", "once")
}

// held returns a plugin whose action waits for release.
func held() (p *coretest.Plugin, begun, release chan struct{}) {
	begun, release = make(chan struct{}), make(chan struct{})
	return coretest.NewPlugin("slow", core.Action{Name: "work", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
		close(begun)
		<-release
		return core.Result{}, nil
	}}), begun, release
}

// TestDeletionAfterThePlan: a plan that was accepted runs although the message is deleted.
func TestDeletionAfterThePlan(t *testing.T) {
	slow, begun, release := held()
	b := withPlugin(t, slow, `{"actions":[{"type":"work"},{"type":"message_room","payload":{"text":"done"}}]}`)
	b.receive(said("1", "jay", "work"))
	<-begun
	b.receive(core.Event{Kind: core.KindDeletion, Target: "1", Message: core.Message{Path: place}})
	close(release)
	if end := b.ended(1)[0]; !end.Answered {
		t.Error("the answer is missing")
	}
	b.history("", "done")
}

// TestSetAsideAfterDeaths: a message at which the process dies again and again is set aside, first
// with an apology and later without.
func TestSetAsideAfterDeaths(t *testing.T) {
	for attempts, want := range map[int]struct {
		asked, said int
		aside       bool
	}{2: {1, 1, false}, 4: {1, 1, false}, 5: {0, 1, true}, 6: {0, 0, true}} {
		s := open(t, t.TempDir())
		t.Cleanup(func() { s.Close() })
		raw, _ := json.Marshal(core.TurnRecord{Last: 1, Attempts: attempts})
		poison := core.Entry{Event: said("1", "jay", "poison"), Due: true}
		err := s.Commit(t.Context(), &core.Batch{Append: []core.Entry{poison}, Journal: []core.Record{
			{
				Key:      core.Key{Turn: core.TurnID{Path: place, Seq: 1}},
				Progress: core.ProgressStarted, Time: time.Now(), Data: raw,
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
		end := b.ended(1)[0]
		if n := len(b.asker.Asked()); end.Aside != want.aside || n != want.asked || len(b.room.Texts()) != want.said {
			t.Errorf("unexpected after %d attempts: aside is %t, the model was asked %d times, the room holds %q", attempts, end.Aside, n, b.room.Texts())
		}
		b.stop()
	}
}

// TestDamagedRecord: if the record of a turn is damaged, none of it counts: its message is answered.
func TestDamagedRecord(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	err := s.Commit(t.Context(), &core.Batch{
		Append: []core.Entry{{Event: said("1", "jay", "one"), Due: true}},
		Journal: []core.Record{{
			Key:      core.Key{Turn: core.TurnID{Path: place, Seq: 1}},
			Progress: core.ProgressStarted, Time: time.Now(), Data: []byte(`{"last":"?","attempts":6}`),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
	b.ended(1)
	b.history("one", "ok")
}

// TestContinueGivesWay: waiting messages come before a follow-up, which is then dropped.
func TestContinueGivesWay(t *testing.T) {
	slow, begun, release := held()
	b := withPlugin(t, slow, `{"response":"more","actions":[{"type":"work"},{"type":"CONTINUE"}]}`, plan("Yes?"))
	b.receive(said("1", "jay", "count"))
	<-begun
	b.receive(said("2", "ann", "me too"))
	close(release)
	b.ended(2)
	b.history("count", "me too", "more", "Yes?")
}

// TestContinueIsCountedThroughBots: a user's message resets the count of follow-ups, a bot's
// message does not.
func TestContinueIsCountedThroughBots(t *testing.T) {
	for _, bot := range []bool{true, false} {
		b, _ := group(t, turn.Settings{Activation: turn.ActivationMention, Bots: true}, `{"response":"more","actions":[{"type":"CONTINUE"}]}`)
		b.receive(talk("1", "jay", "Aria, count"))
		b.ended(4)
		e := talk("2", "other", "Aria, on")
		e.Message.Author.Bot = bot
		b.receive(e)
		b.ended(map[bool]int{true: 1, false: 4}[bot])
		b.stop()
		if n := len(b.asker.Asked()); n != map[bool]int{true: 5, false: 8}[bot] {
			t.Errorf("bot %t: unexpected: the model was asked %d times", bot, n)
		}
	}
	const more = `{"response":"more","actions":[{"type":"CONTINUE"}]}`
	pressed, reminded, command := talk("p", "jay", ""), talk("p", "jay", "tea"), called("p", "jay", "count")
	pressed.Kind, pressed.Data, reminded.Kind = core.KindPress, "Go on", core.KindReminder
	command.Message.Path, command.Message.Private = square, false
	for kind, tc := range map[core.Kind]struct {
		e     core.Event
		asked int // questions to the model for it and the bot's message
	}{core.KindPress: {pressed, 1 + 4}, core.KindReminder: {reminded, 1 + 1}, core.KindCommand: {command, 4}} {
		script := []any{more, more, more, more, plan("ok"), more}
		if kind == core.KindCommand {
			script = []any{more}
		}
		b, _ := group(t, turn.Settings{Activation: turn.ActivationMention, Bots: true}, script...)
		b.Reconfigure(b.options(func(o *turn.Options) {
			o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(context.Context, call) (string, error) { return "one", nil }})
		}))
		b.receive(talk("1", "jay", "Aria, count"))
		b.ended(4)
		b.receive(tc.e)
		b.ended(1)
		e := talk("2", "other", "Aria, on")
		e.Message.Author.Bot = true
		b.receive(e)
		b.ended(1)
		b.quiet()
		b.stop()
		if n := len(b.asker.Asked()); n != 4+tc.asked {
			t.Errorf("after a %s the model was asked %d times, want %d", kind, n, 4+tc.asked)
		}
	}
}

// TestWhatIsNotTakenIn: invalid events are refused, and so are the bot's own events while nothing
// can be read.
func TestWhatIsNotTakenIn(t *testing.T) {
	s := &pulsing{Store: open(t, t.TempDir())}
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
	b.receive(said("0", "jay", "hi"))
	b.ended(1)
	b.stop()
	many := said("1", "jay", "hi")
	many.Message.Foreign = slices.Repeat([]core.Foreign{{Kind: core.ForeignForward, Text: "x"}}, core.MaxForeign)
	if err := b.Receive(t.Context(), many); err != nil {
		t.Error(err)
	}
	many.Message.ID, many.Message.Foreign = "2", append(many.Message.Foreign, many.Message.Foreign[0])
	if err := b.Receive(t.Context(), many); !errors.Is(err, core.ErrBadEvent) {
		t.Errorf("too many forwards: unexpected error %v", err)
	}
	for name, change := range map[string]func(*core.Message){
		"no place":      func(m *core.Message) { m.Path = core.Path{} },
		"a person":      func(m *core.Message) { m.Path = core.MustPath("room/@user/jay") },
		"no id":         func(m *core.Message) { m.ID = "" },
		"too much text": func(m *core.Message) { m.Text = strings.Repeat("x", core.MaxText+1) },
	} {
		e := said("3", "jay", "hi")
		change(&e.Message)
		if err := b.Receive(t.Context(), e); !errors.Is(err, core.ErrBadEvent) {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
	s.read = errUnsure
	if _, err := b.Preview(t.Context(), said("4", "jay", "hi").Message, llm.Limits{}); !errors.Is(err, errUnsure) {
		t.Errorf("a preview without a place: unexpected error %v", err)
	}
	if err := b.InternalInbox().Receive(t.Context(), beat("b", "")); !errors.Is(err, errUnsure) {
		t.Errorf("a beat without a place: unexpected error %v", err)
	}
	s.read = nil
}

// TestHistoryEndsAtTheTurn: the history in a prompt ends before the messages of its turn, even if
// much before them was forgotten.
func TestHistoryEndsAtTheTurn(t *testing.T) {
	db := open(t, t.TempDir()).(*memory.DB)
	t.Cleanup(func() { db.Close() })
	b := start(t, db, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) { o.Config.History = 2 })
	b.asker.Hold = make(chan struct{})
	b.receive(talk("0", "bob", "Aria?"))
	b.thinks(1)
	for i := range 10 {
		b.receive(talk(fmt.Sprint("e", i), "eve", "noise"))
	}
	b.receive(talk("1", "jay", "Aria, the first thing"), talk("2", "ann", "Aria, the second thing"), talk("3", "ann", "the third thing"))
	if err := db.Forget(t.Context(), core.MustPath("room/@user/eve")); err != nil {
		t.Fatal(err)
	}
	close(b.asker.Hold)
	b.ended(3)
	if in := b.input(1); !strings.Contains(in, "the first thing") || strings.Contains(in, "second") || strings.Contains(in, "third") {
		t.Errorf("unexpected prompt: %s", in)
	}
}

// TestManyTogether: the prompt of a turn for several users says who said what. The turn has only
// the rights that all of them have, and runs nothing that needs a confirmation.
func TestManyTogether(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	power := coretest.NewPlugin("power",
		core.Action{Name: "ban", Permission: core.PermissionAdmins}, core.Action{Name: "pay", Permission: core.PermissionEveryone, Confirm: true},
		core.Action{Name: "own", Permission: core.PermissionConcerned, Concerns: "who", Schema: json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]}`)})
	asker := coretest.NewAsker(plan("first"), `{"response":"ok","actions":[{"type":"ban"},{"type":"pay"},{"type":"own","payload":{"who":"root"}}]}`, plan("ok"))
	asker.Hold = make(chan struct{})
	b := start(t, s, room, asker, func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, power)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
		o.Admins = []core.Path{core.MustPath("room/@user/root")}
	})
	b.receive(said("0", "jay", "hi"))
	b.thinks(1)
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		b.receive(said(id, map[bool]string{true: "root", false: "ann"}[id < "4"], "word "+id))
	}
	close(asker.Hold)
	if ends := b.ended(2); len(ends[1].Messages) != 6 || !ends[1].Person.IsZero() {
		t.Fatalf("unexpected ends of turns: %+v", ends)
	}
	in := b.input(1)
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		if !strings.Contains(in, `"text":"word `+id+`"`) {
			t.Errorf("the prompt lacks message %s: %s", id, in)
		}
	}
	if bear := asker.People()[1]; len(bear) != 2 {
		t.Errorf("unexpected users charged: %v", bear)
	}
	if !strings.Contains(in, `"messages":[`) || len(power.Calls()) != 0 || len(room.Choices()) != 0 {
		t.Errorf("unexpected calls %+v or questions %v for %s", power.Calls(), room.Choices(), in)
	}
}

// TestDeniedPress: a denied user cannot press buttons.
func TestDeniedPress(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	confirm := b.press("p", "jay", "Confirm")
	b.Reconfigure(b.options(func(o *turn.Options) { o.Access.Deny = []core.Path{jay} }))
	b.receive(confirm)
	b.ended(1) // ends at once, without a turn
	if len(bank.Calls()) != 0 {
		t.Error("a denied user confirmed the payment")
	}
	if got := strings.Join(b.logged(place), "|"); strings.Count(got, "|") != 2 {
		t.Errorf("unexpected history %q", got)
	}
}

// TestShutOutBeforeItsTurn: messages and presses that wait when their user is denied are dropped,
// and the user's edits are ignored.
func TestShutOutBeforeItsTurn(t *testing.T) {
	b, bank := shop(t, true, pays, says, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	confirm := b.press("p", "jay", "Confirm")
	b.asker.Hold = make(chan struct{})
	b.receive(said("2", "ann", "hi"))
	b.thinks(2)
	b.receive(confirm, said("3", "jay", "yes")) // they wait behind ann's turn
	b.Reconfigure(b.options(func(o *turn.Options) { o.Access.Deny = []core.Path{jay} }))
	close(b.asker.Hold)
	b.ended(2)
	edit := said("1", "jay", "WRITTEN LATER")
	edit.Kind = core.KindEdit
	b.receive(edit)
	if n := len(bank.Calls()); n != 0 || len(b.asker.Asked()) != 2 {
		t.Errorf("unexpected: paid %d times, the model was asked %d times", n, len(b.asker.Asked()))
	}
	if texts := strings.Join(b.logged(place), "|"); strings.Contains(texts, "WRITTEN") {
		t.Errorf("unexpected history %q", texts)
	}
}

// sign is a typing indicator that notes how long it is shown.
type sign struct{ shown []time.Duration }

func (s *sign) ShowTyping(ctx context.Context, _ core.Path) {
	began := time.Now()
	<-ctx.Done()
	s.shown = append(s.shown, time.Since(began))
}

// pondering is a model that takes that long.
type pondering time.Duration

func (p pondering) Ask(context.Context, core.Question) (llm.Answer, error) {
	time.Sleep(time.Duration(p))
	return llm.Answer{}, nil
}

// TestThinkingIsShownLate: the typing indicator is shown from 400 ms on until the model has
// answered.
func TestThinkingIsShownLate(t *testing.T) {
	cases := map[time.Duration]time.Duration{399 * time.Millisecond: 0, time.Second: 600 * time.Millisecond}
	for lasts, want := range cases {
		synctest.Test(t, func(t *testing.T) {
			s := &sign{}
			log := slog.New(slog.DiscardHandler)
			stop := turn.ShowTyping(t.Context(), s, place, log)
			time.Sleep(lasts)
			stop()
			if want == 0 && len(s.shown) != 0 || want > 0 && (len(s.shown) != 1 || s.shown[0] != want) {
				t.Errorf("thinking for %s was shown for %v, want %s", lasts, s.shown, want)
			}
		})
	}
}

// TestAnsweredMeanwhile: the prompt for a message that waited during another answer holds that
// answer.
func TestAnsweredMeanwhile(t *testing.T) {
	b := fresh(t, plan("one"), plan("two"))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "what is A?"))
	b.thinks(1)
	b.receive(said("2", "jay", "and B?"), said("3", "ann", "and C?"))
	close(b.asker.Hold)
	b.ended(3)
	if in := b.input(1); !strings.Contains(in, `"self":true,"text":"one"`) || strings.Contains(in, "and C?") {
		t.Errorf("the second prompt lacks the first answer: %s", in)
	}
}

// TestMoveWhileItRuns: if a place moves while its turn runs, messages in the new place are each
// answered once, one after the other.
func TestMoveWhileItRuns(t *testing.T) {
	for name, before := range map[string]bool{"to an unknown place": false, "to where a turn runs": true} {
		synctest.Test(t, func(t *testing.T) {
			to := core.MustPath("room/2")
			there := func(id, who, text string) core.Event {
				e := said(id, who, text)
				e.Message.Path = to
				return e
			}
			s := open(t, t.TempDir())
			defer s.Close()
			b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("one"), plan("two"), plan("three")))
			b.asker.Hold = make(chan struct{})
			b.receive(said("1", "jay", "first"))
			b.thinks(1)
			turns := 2
			if before {
				b.receive(there("0", "eve", "zeroth"))
				b.thinks(1)
				turns++
			}
			b.receive(core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: place, ID: "m"}})
			b.receive(there("2", "ann", "second"))
			time.Sleep(time.Second)
			if n := len(b.asker.Asked()); n != turns-1 {
				t.Errorf("%s: %d turns ran before the first one ended, want %d", name, n, turns-1)
			}
			close(b.asker.Hold)
			b.ended(turns)
			b.stop()
			if asked := len(b.asker.Asked()); asked != turns || len(b.room.Sent()) != turns {
				t.Errorf("%d messages: unexpected: the model was asked %d times, the room holds %q", turns, asked, b.room.Texts())
			}
			if in := b.input(turns - 1); !strings.Contains(in, `"text":"second"`) || !strings.Contains(in, `"text":"one"`) {
				t.Errorf("unexpected last prompt: %s", in)
			}
		})
	}
}

// sweeping is a store after whose commits of changes all places are woken, as by a reload at that moment.
type sweeping struct {
	core.Store
	sweep func()
}

func (s *sweeping) Commit(ctx context.Context, b *core.Batch) error {
	err := s.Store.Commit(ctx, b)
	if s.sweep != nil && len(b.Change) > 0 {
		s.sweep()
		synctest.Wait()
	}
	return err
}

// TestSweepWhileMoving: if all places are woken while a place moves, its turn still runs once, and so does a command.
func TestSweepWhileMoving(t *testing.T) {
	for name, early := range map[string]bool{"after the commit": true, "when the options follow": false} {
		synctest.Test(t, func(t *testing.T) {
			s := &sweeping{Store: open(t, t.TempDir())}
			defer s.Close()
			var calls atomic.Int32
			release := make(chan struct{})
			b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("one"), plan("two")), func(o *turn.Options) {
				o.Plugins.Commands = registry(t, map[string]commandFunc{
					"slow": func(context.Context, call) (string, error) { calls.Add(1); <-release; return "slow", nil },
				})
			})
			b.asker.Hold = make(chan struct{})
			b.receive(said("1", "jay", "first"))
			b.thinks(1)
			b.receive(called("2", "jay", "slow"))
			synctest.Wait()
			if early {
				s.sweep = b.Sweep
			} else {
				b.Reconfigure(b.options(func(o *turn.Options) {
					o.Places.Received = func(context.Context, []core.Event) { b.Sweep(); synctest.Wait() }
				}))
			}
			b.receive(core.Event{
				Kind: core.KindMigration, To: core.MustPath("room/2"), Message: core.Message{Path: place, ID: "m"},
			})
			synctest.Wait()
			close(b.asker.Hold)
			close(release)
			b.quiet()
			b.stop()
			if n := len(b.asker.Asked()); n != 1 || calls.Load() != 1 || len(b.room.Sent()) != 2 {
				t.Errorf("%s: the model was asked %d times, the command ran %d times, the room holds %q",
					name, n, calls.Load(), b.room.Texts())
			}
		})
	}
}

// TestMoreThanThereIsRoomFor: if the waiting messages do not fit the model's context even when cut
// short, the prompt holds the latest and says that there were more.
func TestMoreThanThereIsRoomFor(t *testing.T) {
	b := fresh(t, plan("one moment"), plan("hello, all"))
	b.asker.Limits.Chars = 8000
	b.asker.Hold = make(chan struct{})
	b.receive(said("0", "jay", "hi"))
	b.thinks(1)
	var crowd []core.Event
	for i := range 100 {
		crowd = append(crowd, said(fmt.Sprint("m", i), fmt.Sprint("p", i%7), strings.Repeat("word ", 100)))
	}
	b.receive(crowd...)
	close(b.asker.Hold)
	b.ended(2)
	b.holds("one moment", "hello, all")
	asked := b.asker.Asked()[1]
	if in := b.input(1); !strings.Contains(in, `"message_id":"m99"`) || !strings.Contains(strings.Join(asked.System, " "), "earlier messages are not shown") {
		t.Errorf("unexpected prompt: %q, %s", asked.System, in)
	}
}

// TestCatalogueTooLong: an engine without room for all actions gets the essential ones, in the
// prompt and in the reply's schema.
func TestCatalogueTooLong(t *testing.T) {
	var actions []core.Action
	for i := range 200 {
		actions = append(actions, core.Action{Name: fmt.Sprintf("tool%d", i), Brief: "Use a tool that few people need", Permission: core.PermissionEveryone})
	}
	b := withPlugin(t, coretest.NewPlugin("tools", actions...), plan("hello"), plan("hello"))
	b.asker.Limits.Chars, b.asker.Limits.Schemas = 8000, llm.StructureSchema
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.asker.Limits.Chars = 0
	b.receive(said("2", "jay", "hi"))
	b.ended(1)
	b.holds("hello", "hello")
	for i, all := range []bool{false, true} {
		r := b.asker.Asked()[i]
		for where, text := range map[string]string{"prompt": strings.Join(r.System, " "), "schema": string(r.Schema)} {
			if !strings.Contains(text, `"message_room"`) || strings.Contains(text, `"tool99"`) != all {
				t.Errorf("prompt %d: the %s has all actions: %t, want %t", i+1, where, !all, all)
			}
		}
	}
}

// mood is a plugin that registers a plan key.
type mood struct{ core.Plugin }

func (mood) PlanKeys() []string { return []string{"mood"} }

// TestPlanKeys: a plan may have a key that a plugin registered. Its value is in the plan's
// metadata.
func TestPlanKeys(t *testing.T) {
	p := mood{coretest.NewPlugin("mood")}
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(`{"response":"hi","mood":"merry"}`), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, p)
		o.Plugins.Add(p)
	})
	b.receive(said("1", "jay", "hi"))
	end := b.ended(1)[0]
	b.holds("hi")
	if said := string(end.Trace.Plans[0].Metadata); said != `{"mood":"merry"}` || len(b.asker.Asked()) != 1 {
		t.Errorf("unexpected: the metadata is %s, the model was asked %d times", said, len(b.asker.Asked()))
	}
}

// TestLateInMovedPlace: what arrives under the former path of a place is answered, and judged by what the
// configuration says of either path.
func TestLateInMovedPlace(t *testing.T) {
	from, to := place, core.MustPath("room/2")
	for name, c := range map[string]struct {
		allow core.Path
		again bool      // the bot restarts after the move
		via   core.Path // where the place moves first
		at    core.Path
	}{
		"at the former path":              {allow: to, at: from},
		"at the former path of a restart": {allow: from.Parent(), again: true, at: from},
		"at the former path of two moves": {allow: to, via: core.MustPath("room/3"), at: from},
		"before the configuration":        {allow: from, at: to},
		"before it, after two moves":      {allow: from, via: core.MustPath("room/3"), at: to},
		"as configured":                   {allow: to, at: to},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, t.TempDir())
				defer s.Close()
				begin := func() *bot {
					return start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("one")), func(o *turn.Options) {
						o.Access.Allow, o.Access.Groups, o.Access.Private = []core.Path{c.allow}, "allow", "allow"
						o.Places.Configured = func(p core.Path) bool { return p == c.allow }
					})
				}
				b := begin()
				move := core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: from, ID: "m"}}
				e := said("1", "jay", "first")
				e.Message.Path = c.at
				if !c.via.IsZero() {
					b.receive(core.Event{Kind: core.KindMigration, To: c.via, Message: core.Message{Path: from, ID: "v"}})
					move.Message.Path = c.via
				}
				if c.again {
					b.receive(move)
					b.stop()
					b = begin()
					b.receive(e)
				} else {
					b.receive(move, e)
				}
				b.quiet()
				b.stop()
				if n := len(b.asker.Asked()); n != 1 {
					t.Errorf("the model was asked %d times, want 1", n)
				}
			})
		})
	}
}

// commitHook is a store that calls before, if it is set, in each commit with changes.
type commitHook struct {
	core.Store
	before func()
}

func (s *commitHook) Commit(ctx context.Context, b *core.Batch) error {
	if len(b.Change) > 0 && s.before != nil {
		s.before()
	}
	return s.Store.Commit(ctx, b)
}

// TestTurnBegunDuringMove: a turn that begins while the move of its place is being stored runs once.
func TestTurnBegunDuringMove(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &commitHook{Store: open(t, dir)}
		defer s.Close()
		asker := coretest.NewAsker(plan("one"), plan("two"))
		asker.Hold = make(chan struct{})
		b := start(t, s, coretest.NewRoom("room"), asker)
		defer b.stop()
		s.before = func() {
			b.receive(said("1", "jay", "hi"))
			b.thinks(1)
		}
		b.receive(core.Event{
			Kind: core.KindMigration, To: core.MustPath("room/2"), Message: core.Message{Path: place, ID: "m"},
		})
		synctest.Wait()
		if n := len(asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times at once, want once", n)
		}
		close(asker.Hold)
		b.quiet()
		b.holds("one")
	})
}
