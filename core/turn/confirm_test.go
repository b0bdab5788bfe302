package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/core/gate"
	"synthbot/core/turn"
)

const (
	pays = `{"response":"As you wish.","actions":[{"type":"pay","payload":{"to":"Ann"}}]}`
	says = `{"actions":[{"type":"NONE"}]}`
)

// shop starts a bot with an action that needs a confirmation (pay).
func shop(t *testing.T, buttons bool, script ...any) (*bot, *coretest.Plugin) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	return start(t, s, room, coretest.NewAsker(script...), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		if buttons {
			o.Places.Chooser = func(core.Path) core.Chooser { return room }
		}
	}), bank
}

// press returns the event of pressing the button with that label under the only open question.
func (b *bot) press(id, who, label string) core.Event {
	b.t.Helper()
	for message, choices := range b.room.Choices() {
		for _, c := range choices {
			if c.Label == label {
				e := said(id, who, "")
				e.Kind, e.Target, e.Data = core.KindPress, message, c.Data
				return e
			}
		}
	}
	b.t.Fatalf("there is no button %q", label)
	return core.Event{}
}

func TestConfirm(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	if len(bank.Calls()) != 0 {
		t.Fatal("paid before the confirmation")
	}
	confirm := b.press("p1", "jay", "Confirm")
	again := confirm
	again.Message.ID = "p3"

	b.receive(b.press("p0", "eve", "Confirm"))
	b.ended(1)
	if len(bank.Calls()) != 0 || len(b.room.Whispers()) != 1 {
		t.Errorf("after another user's press: %d calls and whispers %q, want none and one", len(bank.Calls()), b.room.Whispers())
	}
	b.receive(confirm)
	b.ended(1)
	b.receive(again)
	b.ended(1)
	if len(bank.Calls()) != 1 {
		t.Errorf("paid %d times, want once", len(bank.Calls()))
	}
	if texts := b.room.Texts(); !strings.Contains(texts[1], "✓ Done.") {
		t.Errorf("the room holds %q", texts)
	}
	if w := b.room.Whispers(); len(w) != 2 || w[1] != "This was decided already." {
		t.Errorf("whispers %q, want the second to refuse the repeated press", w)
	}
	if in := b.input(1); !strings.Contains(in, `"type":"output"`) || !strings.Contains(in, `"to":"Ann"`) {
		t.Errorf("the model did not get the action's output: %s", in)
	}
}

// TestConfirmForThePlace: moderators confirm what was asked in the name of their place, as by an anonymous admin of a
// group. Others read who can.
func TestConfirmForThePlace(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	asks := said("1", "-100", "pay Ann")
	asks.Message.Author.Channel, asks.Message.Author.Rank = core.ChannelLinked, core.RankModerator
	b.receive(asks)
	b.ended(1)
	b.receive(b.press("p1", "eve", "Confirm"))
	b.ended(1)
	want := []string{"This was asked in the name of this chat. Only its admins can answer it."}
	if w := b.room.Whispers(); !slices.Equal(w, want) || len(bank.Calls()) != 0 {
		t.Errorf("a member reads %q, want %q; paid %d times", w, want, len(bank.Calls()))
	}
	press := b.press("p2", "mia", "Confirm")
	press.Message.Author.Rank = core.RankModerator
	b.receive(press)
	b.ended(1)
	if len(bank.Calls()) != 1 || bank.Calls()[0].Author.ID != "-100" {
		t.Errorf("unexpected payments %+v", bank.Calls())
	}
}

// TestChoicesConfirmNothing: a press whose data answers a form confirms nothing.
func TestChoicesConfirmNothing(t *testing.T) {
	for _, answer := range []string{":1", ":w", ""} {
		b, bank := shop(t, true, pays, says)
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		press := b.press("p1", "jay", "Confirm")
		press.Data, press.Message.Text = strings.TrimSuffix(press.Data, ":y")+answer, "y"
		b.receive(press)
		b.ended(1)
		if len(bank.Calls()) != 0 {
			t.Errorf("paid after a press with the answer %q", answer)
		}
	}
}

func TestCancel(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p1", "jay", "Cancel"))
	b.ended(1)
	if len(bank.Calls()) != 0 || len(b.room.Choices()) != 0 {
		t.Errorf("after a cancel: %d calls and buttons %v, want none", len(bank.Calls()), b.room.Choices())
	}
	if texts := b.room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "✗ Cancelled.") {
		t.Errorf("the room holds %q", texts)
	}
}

// TestConfirmInWords: on an interface without buttons, the user confirms by writing yes.
func TestConfirmInWords(t *testing.T) {
	b, bank := shop(t, false, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	if texts := b.room.Texts(); !strings.HasSuffix(texts[len(texts)-1], "(yes/no)") {
		t.Fatalf("the room holds %q", texts)
	}
	b.receive(said("2", "jay", "Yes!"))
	b.ended(1)
	if in := b.input(1); !strings.Contains(in, `"type":"output"`) || !strings.Contains(in, `"to":"Ann"`) {
		t.Errorf("the model did not get the action's output: %s", in)
	}
	if len(bank.Calls()) != 1 {
		t.Errorf("paid %d times, want once", len(bank.Calls()))
	}
	asked := len(b.asker.Asked())
	b.receive(said("3", "jay", "yes")) // nothing is open any more
	b.ended(1)
	if len(b.asker.Asked()) != asked+1 {
		t.Error("a yes without an open question was not answered by the model")
	}
	if len(bank.Calls()) != 1 {
		t.Errorf("paid %d times after a second yes, want once", len(bank.Calls()))
	}
}

// TestYesOfAnother: a yes in a forwarded message, a quote or an embed confirms nothing.
func TestYesOfAnother(t *testing.T) {
	for _, kind := range []core.ForeignKind{core.ForeignForward, core.ForeignQuote, core.ForeignEmbed} {
		b, bank := shop(t, false, pays, says, says)
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		theirs := said("2", "jay", "")
		theirs.Message.Foreign = []core.Foreign{{Kind: kind, Text: "yes"}}
		b.receive(theirs)
		b.ended(1)
		if len(bank.Calls()) != 0 {
			t.Errorf("%s: paid without a confirmation", kind)
		}
	}
}

// TestYesWithAnAddress: a yes or no may name the bot and be polite, in many languages. With any
// other word it decides nothing.
func TestYesWithAnAddress(t *testing.T) {
	const yes, no, neither = "yes", "no", ""
	for text, want := range map[string]string{
		"Aria, yes": yes, "yes, Aria!": yes, "aria ja": yes, "@aria_bot ja": yes, "<@123456> ja": yes, "ja @aria_bot": yes,
		"Yes please": yes, "Ja, bitte": yes, "Aria, ja bitte!": yes, "sim": yes, "да": yes, "так": yes, "はい。": yes, "oui": yes,
		"@aria_bot\nyes": yes,
		"não":            no, "нет": no, "いいえ": no, "non": no, "Aria, no thanks": no, "n.": no,
		"Ariana, yes": neither, "ja, ja": neither, "yes, but later": neither, "please": neither, "Aria": neither,
		"@aria_bot": neither, "@bob @aria_bot yes": neither, "@bob yes @aria_bot": neither, "yesplease": neither,
		"yes no": neither,
	} {
		b, bank := shop(t, false, pays, says, says, says)
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		reply := func(id, text string) {
			e := said(id, "jay", text)
			e.Message.Addressed = core.AddressedMention
			for _, s := range b.room.Sent() {
				if strings.HasPrefix(s.Text, "Pay") {
					e.Message.ReplyTo = &core.Quote{ID: s.ID, From: core.Author{Bot: true}}
				}
			}
			b.receive(e)
			b.ended(1)
		}
		reply("2", text)
		got := neither
		if len(bank.Calls()) == 1 {
			got = yes
		} else if reply("3", "yes"); len(bank.Calls()) == 0 {
			got = no
		}
		if got != want {
			t.Errorf("%q: decides %q, want %q", text, got, want)
		}
	}
	b, bank := shop(t, false, pays, says, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(said("2", "jay", "@bob yes"))
	b.ended(1)
	if len(bank.Calls()) != 0 {
		t.Error("paid after a yes to another user")
	}
}

// TestYesToSomebodyElse: in a group, a yes that follows another user's message or replies to
// another message confirms nothing.
func TestYesToSomebodyElse(t *testing.T) {
	for name, tc := range map[string]struct {
		between string
		to      core.Addressed
		replies string // the text of the message that it replies to
		paid    int
	}{
		"right behind":             {to: "", paid: 1},
		"behind another":           {between: "are you coming?", to: ""},
		"behind another, to us":    {between: "are you coming?", to: core.AddressedMention, paid: 1},
		"in reply to the question": {between: "are you coming?", to: core.AddressedReply, replies: "Pay", paid: 1},
		"in reply to the answer":   {to: core.AddressedReply, replies: "As you wish."},
	} {
		t.Run(name, func(t *testing.T) {
			b, bank := shop(t, true, pays, says, says)
			b.Reconfigure(b.options(func(o *turn.Options) {
				o.Settings = func(core.Path) turn.Settings { return turn.Settings{Activation: turn.ActivationAlways} }
			}))
			open := func(id, who, text string, to core.Addressed) core.Event {
				e := said(id, who, text)
				e.Message.Private, e.Message.Addressed = false, to
				return e
			}
			b.receive(open("1", "jay", "pay Ann", core.AddressedMention))
			b.ended(1)
			if tc.between != "" {
				b.receive(open("2", "eve", tc.between, ""))
				b.ended(1)
			}
			yes := open("3", "jay", "yes", tc.to)
			for _, s := range b.room.Sent() {
				if tc.replies != "" && strings.HasPrefix(s.Text, tc.replies) {
					yes.Message.ReplyTo = &core.Quote{ID: s.ID, From: core.Author{Bot: true}}
				}
			}
			b.receive(yes)
			b.ended(1)
			if len(bank.Calls()) != tc.paid {
				t.Errorf("paid %d times, want %d; the room holds %q", len(bank.Calls()), tc.paid, b.room.Texts())
			}
		})
	}
}

// TestConfirmInWordsLater: without buttons and replies, a yes still confirms after other messages,
// unless the bot asked something else meanwhile.
func TestConfirmInWordsLater(t *testing.T) {
	for between, paid := range map[string]int{"It is nine.": 1, "Nine. Shall I wake you? ": 0} {
		b, bank := shop(t, false, pays, plan(between), says, says)
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		b.receive(said("2", "jay", "what time is it?"))
		b.ended(1)
		b.receive(said("3", "jay", "yes"))
		b.ended(1)
		if len(bank.Calls()) != paid {
			t.Errorf("after %q paid %d times, want %d", between, len(bank.Calls()), paid)
		}
	}
}

// taboo is a gate that does not let a word be answered, but says why.
type taboo string

func (g taboo) Judge(m *core.Message, again bool) (v gate.Verdict) {
	if m.Text == string(g) {
		v.Admission = gate.Quiet
	}
	if m.Text == string(g) && !again {
		v.Reply = "Not that word."
	}
	return v
}

// TestYesMeetsTheGates: a yes to an open question is judged like the press of its button. Any other yes, and that of
// another user, is judged like every message.
func TestYesMeetsTheGates(t *testing.T) {
	for name, tc := range map[string]struct {
		who    string
		gate   gate.Gate
		asleep bool
		asks   bool
		moved  bool
		former core.Path // the path of the place that the configuration still names
		paid   int
		says   string // what the gate replies
	}{
		"a refused word":       {who: "jay", gate: taboo("yes"), asks: true, paid: 1},
		"after a move":         {who: "jay", gate: taboo("yes"), asks: true, moved: true, paid: 1},
		"before a reload":      {who: "jay", gate: taboo("yes"), asks: true, moved: true, former: place, paid: 1},
		"a sleeping place":     {who: "jay", gate: taboo("no"), asleep: true, asks: true, paid: 1},
		"a blocked user":       {who: "jay", gate: judge{"jay": gate.Verdict{Admission: gate.Redact}}, asks: true},
		"another user":         {who: "eve", gate: taboo("yes"), asks: true, says: "Not that word."},
		"without any question": {who: "jay", gate: taboo("yes"), says: "Not that word."},
	} {
		t.Run(name, func(t *testing.T) {
			b, bank := shop(t, true, pays, says)
			if tc.asks {
				b.receive(said("1", "jay", "pay Ann"))
				b.ended(1)
			}
			b.Reconfigure(b.options(func(o *turn.Options) {
				o.Plugins.Gates, o.Places.Asleep = []gate.Gate{tc.gate}, func(core.Path) bool { return tc.asleep }
				o.Places.Configured = func(p core.Path) bool { return p == tc.former }
			}))
			asked, yes := len(b.asker.Asked()), said("2", tc.who, "yes")
			if tc.moved {
				move := core.Event{Kind: core.KindMigration, To: core.MustPath("room/2"), Message: core.Message{Path: place, ID: "m"}}
				yes.Message.Path = move.To
				b.receive(move)
			}
			b.receive(yes)
			b.ended(1)
			if n, told := len(bank.Calls()), len(b.asker.Asked())-asked; n != tc.paid || told != tc.paid {
				t.Errorf("paid %d times and told the model %d times, want %d", n, told, tc.paid)
			}
			if texts := b.room.Texts(); tc.says != "" && texts[len(texts)-1] != tc.says {
				t.Errorf("the room holds %q", texts)
			}
		})
	}
}

// TestRefusedFormAnswer: a message that a gate replies to does not answer a form.
func TestRefusedFormAnswer(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	b, bank := formed(t, s, coretest.NewRoom("room"), &payer{})
	b.Reconfigure(b.options(func(o *turn.Options) { o.Plugins.Gates = []gate.Gate{taboo("Bob")} }))
	for i, text := range []string{"pay", "Bob", "Ann", "7", "yes"} {
		b.receive(said(fmt.Sprint(i), "jay", text))
		b.ended(1)
	}
	calls := bank.Calls()
	if len(calls) != 1 || string(calls[0].Payload) != `{"amount":7,"to":"Ann"}` || !slices.Contains(b.room.Texts(), "Not that word.") {
		t.Errorf("paid %d times; the room holds %q", len(calls), b.room.Texts())
	}
	b.stop()
}

// TestYesBeforeTheQuestion: a yes that was written before the question confirms nothing.
func TestYesBeforeTheQuestion(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "pay Ann"))
	b.thinks(1)
	b.receive(said("2", "jay", "yes"))
	close(b.asker.Hold)
	b.ended(2)
	if len(bank.Calls()) != 0 {
		t.Errorf("it paid %d times, want 0", len(bank.Calls()))
	}
}

// TestConfirmationSurvivesRestart: a question from before a restart can be confirmed.
func TestConfirmationSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	with := func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	}
	b := start(t, s, room, coretest.NewAsker(pays, says), with)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	t.Cleanup(func() { s.Close() })
	b = start(t, s, room, coretest.NewAsker(says), with)
	b.receive(b.press("p1", "jay", "Confirm"))
	b.ended(1)
	if len(bank.Calls()) != 1 {
		t.Errorf("paid %d times, want once", len(bank.Calls()))
	}
}

// TestQuestionExpires: an unanswered question shows that it has expired, even if it expires before
// its turn ends.
func TestQuestionExpires(t *testing.T) {
	for _, soon := range []time.Duration{time.Nanosecond, 50 * time.Millisecond} {
		t.Run(soon.String(), func(t *testing.T) { checkExpires(t, soon) })
	}
}

func checkExpires(t *testing.T, soon time.Duration) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Runtime = action.NewRuntime(action.Options{Expire: soon})
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	})
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(2) // the message's turn and the question's expiry
	if len(bank.Calls()) != 0 || len(room.Choices()) != 0 || len(room.Whispers()) != 0 {
		t.Errorf("%d calls, buttons %v, whispers %q, want none", len(bank.Calls()), room.Choices(), room.Whispers())
	}
	if texts := room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "⌛ The question has expired.") {
		t.Errorf("the room holds %q", texts)
	}
}

// TestSuggestionPressed: pressing a suggestion counts as writing its text.
func TestSuggestionPressed(t *testing.T) {
	b := fresh(t, plan("Green."), plan("Yes."))
	press := said("1", "jay", "")
	press.Kind, press.Target, press.Data = core.KindPress, "room-1", "What is moss?"
	b.receive(press)
	b.ended(1)
	b.receive(said("2", "jay", "really?"))
	b.ended(1)
	if in := b.input(1); !strings.Contains(in, "What is moss?") {
		t.Errorf("the history lacks the suggestion: %s", in)
	}
}

// TestQuestionExpiresAfterMove: a question expires although its place moved after it was asked.
func TestQuestionExpiresAfterMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
		b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
			o.Catalogue = catalogueOf(t, room, bank)
			o.Runtime = action.NewRuntime(action.Options{Expire: time.Minute})
			o.Places.Chooser = func(core.Path) core.Chooser { return room }
		})
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		to := core.MustPath("room/2")
		b.receive(core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: place, ID: "m"}})
		time.Sleep(2 * time.Minute)
		b.ended(1)
		if texts := room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "⌛ The question has expired.") {
			t.Errorf("the room holds %q", texts)
		}
		b.stop()
	})
}

// TestPressAfterMove: a button of a question from before a move is pressed. The platform reports the old place.
func TestPressAfterMove(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	settled := make(chan core.Path, 1)
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Places.Chooser = func(core.Path) core.Chooser { return settler{b.room, settled} }
	}))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	to := core.MustPath("room/2")
	b.receive(core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: place, ID: "m"}})
	b.receive(b.press("p1", "jay", "Confirm"))
	b.ended(1)
	if len(bank.Calls()) != 1 {
		t.Fatalf("%d calls; the room holds %q", len(bank.Calls()), b.room.Texts())
	}
	if at := <-settled; at != place { // at the new place, the id is another message's
		t.Errorf("the question was settled at %s", at)
	}
	b.stop()
}

// TestQuestionAfterRenumbering: a question from before a move can be answered, and expires, although the new place
// already had messages, so that the turn that asked got another number.
func TestQuestionAfterRenumbering(t *testing.T) {
	for _, how := range []string{"press", "yes", "expiry"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, dir)
				defer s.Close()
				room := coretest.NewRoom("room")
				asker := coretest.NewAsker(pays, plan("Welcome."), plan("And now?"), says)
				b := start(t, s, room, asker, payable(t, room, time.Minute))
				b.receive(said("1", "jay", "pay Ann"))
				b.ended(1)
				to := core.MustPath("room/2")
				first := said("1", "jay", "hello")
				first.Message.Path = to
				b.receive(first)
				b.ended(1)
				move := core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: place, ID: "m"}}
				b.receive(move)
				switch how {
				case "press":
					b.receive(b.press("p", "jay", "Confirm"))
				case "yes":
					yes := said("2", "jay", "yes")
					yes.Message.Path = to
					b.receive(yes)
				case "expiry":
					time.Sleep(2 * time.Minute)
				}
				b.ended(1)
				var did []string
				for _, text := range room.Texts() {
					_, result, ok := strings.Cut(text, "\n\n")
					if ok {
						did = append(did, result)
					}
				}
				want := "✓ Done."
				if how == "expiry" {
					want = "⌛ The question has expired."
				}
				if !slices.Equal(did, []string{want}) {
					t.Errorf("got %q, want %q; the room holds %q and %q", did, want, room.Texts(), room.Whispers())
				}
				b.stop()
			})
		})
	}
}

// TestPressAfterMoveWhileAsking: the place moves while the question is sent, so that the message has no known id.
func TestPressAfterMoveWhileAsking(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	settled, to := make(chan core.Path, 1), core.MustPath("room/2")
	moves := func() {
		b.receive(core.Event{Kind: core.KindMigration, To: to, Message: core.Message{Path: place, ID: "m"}})
	}
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Places.Chooser = func(core.Path) core.Chooser { return mover{settler{b.room, settled}, moves} }
	}))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	press := b.press("p1", "jay", "Confirm")
	press.Message.Path = to
	b.receive(press)
	b.ended(1)
	if len(bank.Calls()) != 1 {
		t.Fatalf("%d calls; the room holds %q and %q", len(bank.Calls()), b.room.Texts(), b.room.Whispers())
	}
	if at := <-settled; at != to {
		t.Errorf("the question was settled at %s", at)
	}
	b.stop()
}

// mover is a place that moves while a question is sent.
type mover struct {
	settler
	moves func()
}

func (m mover) Choose(ctx context.Context, parts core.Deliveries, what core.Sent, choices []core.Choice) error {
	return m.Room.Choose(ctx, withoutIDs{parts, m.moves}, what, choices)
}

// withoutIDs leaves out the ids of sent messages.
type withoutIDs struct {
	core.Deliveries
	moves func()
}

func (d withoutIDs) Send(
	ctx context.Context, n int, what core.Sent, send func(context.Context, string) (string, error),
) error {
	return d.Deliveries.Send(ctx, n, what, func(ctx context.Context, key string) (string, error) {
		_, err := send(ctx, key)
		d.moves()
		return "", err
	})
}

// settler passes on where a question was settled.
type settler struct {
	*coretest.Room
	settled chan core.Path
}

func (s settler) Settle(_ context.Context, m core.Sent) error {
	s.settled <- m.Path
	return nil
}

// TestQuestionExpiresAfterRestart: a question from before a restart expires.
func TestQuestionExpiresAfterRestart(t *testing.T) {
	for _, away := range []time.Duration{2 * time.Minute, 60 * time.Hour, 7*24*time.Hour - time.Minute} {
		t.Run(away.String(), func(t *testing.T) { checkExpiresAfter(t, away) })
	}
}

func checkExpiresAfter(t *testing.T, away time.Duration) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	with := func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Runtime = action.NewRuntime(action.Options{Expire: time.Minute})
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	}
	b := start(t, s, room, coretest.NewAsker(pays, says), with)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.stop()

	late := func() time.Time { return time.Now().Add(away) }
	b = start(t, s, room, coretest.NewAsker(says), with, func(o *turn.Options) {
		o.Clock = late
		o.Runtime = action.NewRuntime(action.Options{Expire: time.Minute, Clock: late})
	})
	b.ended(1)
	if texts := room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "⌛ The question has expired.") || len(bank.Calls()) != 0 {
		t.Errorf("the room holds %q with %d calls, want the question expired", texts, len(bank.Calls()))
	}
}

// unsettled is a room that cannot edit its questions.
type unsettled struct{ *coretest.Room }

func (unsettled) Settle(context.Context, core.Sent) error {
	return core.Errorf(core.Invalid, "it is gone")
}

// TestQuestionIsGone: if a question cannot be edited, its result is a message. Nobody waits for its expiry.
func TestQuestionIsGone(t *testing.T) {
	for answer, want := range map[string]string{"yes": "✓ Done.", "no": "✗ Cancelled.", "Cancel": "✗ Cancelled.", "": ""} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			room := coretest.NewRoom("room")
			b := start(t, s, room, coretest.NewAsker(pays, says), payable(t, room, time.Minute))
			b.Reconfigure(b.options(func(o *turn.Options) {
				o.Places.Chooser = func(core.Path) core.Chooser { return unsettled{room} }
			}))
			b.receive(said("1", "jay", "pay Ann"))
			b.ended(1)
			switch answer {
			case "":
				time.Sleep(2 * time.Minute)
			case "Cancel":
				b.receive(b.press("2", "jay", answer))
			default:
				b.receive(said("2", "jay", answer))
			}
			b.ended(1)
			if got := strings.Join(room.Texts()[2:], "|"); got != want {
				t.Errorf("after %q the bot sent %q, want %q", answer, got, want)
			}
			b.stop()
		})
	}
}

// TestForgedConfirmation: a button with the data of a confirmation, but under another message,
// confirms nothing.
func TestForgedConfirmation(t *testing.T) {
	b, bank := shop(t, true, pays, plan("ok"))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	forged := b.press("p1", "jay", "Confirm")
	forged.Target = b.room.Sent()[0].ID // the answer, not the question
	b.receive(forged)
	b.ended(1)
	user := said("u", "jay", "mine") // a user's message, although the platform attaches data to it
	user.Data = strings.TrimSuffix(forged.Data, ":y")
	b.receive(user)
	b.ended(1)
	forged.Message.ID, forged.Target = "p2", "u"
	b.receive(forged)
	b.ended(1)
	if len(bank.Calls()) != 0 {
		t.Error("paid after a press under another message")
	}
}

// carrier is a file sender that keeps the files.
type carrier struct{ files []core.Upload }

func (c *carrier) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	return parts.Send(ctx, n, what, func(context.Context, string) (string, error) {
		c.files = append(c.files, f)
		return "file-1", nil
	})
}

// TestLongQuestion: details that do not fit a message are attached. The bot does not ask if it
// cannot attach files.
func TestLongQuestion(t *testing.T) {
	body := strings.Repeat("all of it, ", 100) + "and the end"
	long := `{"response":"As you wish.","actions":[{"type":"pay","payload":{"body":"` + body + `"}}]}`
	for name, files := range map[string]*carrier{"attached": {}, "refused": nil} {
		t.Run(name, func(t *testing.T) {
			b, bank := shop(t, true, long, says, says)
			if files != nil {
				b.Reconfigure(b.options(func(o *turn.Options) {
					o.Places.Carrier = func(core.Path) core.FileSender { return files }
				}))
			}
			b.receive(said("1", "jay", "pay Ann"))
			b.ended(1)
			if files == nil {
				if len(b.room.Choices()) != 0 || len(bank.Calls()) != 0 {
					t.Errorf("the bot asks %v with %d calls, want none", b.room.Choices(), len(bank.Calls()))
				}
				return
			}
			if len(files.files) != 1 || !strings.HasSuffix(string(files.files[0].Data), "body: "+body+"\n") {
				t.Fatalf("the files are %q, want one with the whole body", files.files)
			}
			texts := b.room.Texts()
			if last := texts[len(texts)-1]; !strings.Contains(last, "question.txt") || len(last) > action.MaxQuestion {
				t.Errorf("the question is %q, want it short with a reference to question.txt", last)
			}
			b.receive(b.press("p1", "jay", "Confirm"))
			b.ended(1)
			if len(bank.Calls()) != 1 {
				t.Errorf("paid %d times, want once", len(bank.Calls()))
			}
		})
	}
}

// TestLongQuestionThatCannotBeAttachedNow checks that a question is not asked if the interface lost its ability to send
// files after the step was held.
func TestLongQuestionThatCannotBeAttachedNow(t *testing.T) {
	long := `{"actions":[{"type":"pay","payload":{"body":"` + strings.Repeat("x", action.MaxQuestion) + `"}}]}`
	b, bank := shop(t, true, long, `{"response":"I cannot ask you."}`)
	var looks atomic.Int32
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Places.Carrier = func(core.Path) core.FileSender {
			if looks.Add(1) > 1 {
				return nil
			}
			return &carrier{}
		}
	}))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(2)
	if texts := b.room.Texts(); !slices.Equal(texts, []string{"I cannot ask you."}) || len(bank.Calls()) != 0 {
		t.Errorf("%d calls; the room holds %q", len(bank.Calls()), texts)
	}
}

// silentRoom cannot whisper.
type silentRoom struct{ *coretest.Room }

func (silentRoom) Whisper(context.Context, core.Message, string) error { return errors.New("too old") }

// TestRefusalThatCannotBeWhispered checks that a message tells the user why the press of a button did nothing.
func TestRefusalThatCannotBeWhispered(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.Reconfigure(b.options(func(o *turn.Options) {
		o.Places.Chooser = func(core.Path) core.Chooser { return silentRoom{b.room} }
	}))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p", "eve", "Confirm"))
	b.ended(1)
	if texts := b.room.Texts(); len(bank.Calls()) != 0 || !slices.Contains(texts, "Only the person who asked for it can answer this.") {
		t.Errorf("%d calls; the room holds %q", len(bank.Calls()), texts)
	}
}

// TestTwoQuestions: each open question is decided and expires on its own.
func TestTwoQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		bank := coretest.NewPlugin("bank",
			core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true, Effects: core.EffectNone},
			core.Action{Name: "look", Permission: core.PermissionEveryone, Effects: core.EffectNone, Do: func(context.Context, core.Call) (core.Result, error) {
				return core.Result{Output: []byte(`"rich"`)}, nil
			}})
		b := start(t, s, room, coretest.NewAsker(
			`{"actions":[{"type":"look"},{"type":"pay","payload":{"to":"Ann"}},{"type":"pay","payload":{"to":"Bob"}}]}`,
			`{"response":"So?","actions":[{"type":"pay","payload":{"to":"Cid"}}]}`, says), func(o *turn.Options) {
			o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
			o.Runtime = action.NewRuntime(action.Options{Expire: time.Hour})
		})
		defer b.stop()
		b.receive(said("1", "jay", "pay them"))
		b.ended(1)
		if len(room.Choices()) != 3 {
			t.Fatalf("the bot asks %v, want 3 questions", room.Choices())
		}
		for _, sent := range room.Sent() {
			if strings.HasSuffix(sent.Text, "Ann") {
				e := said("p", "jay", "")
				e.Kind, e.Target, e.Data = core.KindPress, sent.ID, room.Choices()[sent.ID][0].Data
				b.receive(e)
			}
		}
		b.ended(1)
		time.Sleep(2 * time.Hour)
		b.ended(2) // the other two expire, the first does not
		select {
		case end := <-room.Ends():
			t.Errorf("unexpected turn: %+v", end)
		default:
		}
		var fates []string
		for _, text := range room.Texts() {
			if name, fate, ok := strings.Cut(text, "\n\n"); ok {
				fates = append(fates, name[len(name)-3:]+" "+fate)
			}
		}
		if got := strings.Join(fates, "|"); got != "Ann ✓ Done.|Bob ⌛ The question has expired.|Cid ⌛ The question has expired." {
			t.Errorf("unexpected outcomes: %s", got)
		}
	})
}

// TestFateOfAQuestion: a question shows the outcome of its step. A next step that needs a
// confirmation is asked about.
func TestFateOfAQuestion(t *testing.T) {
	for name, tc := range map[string]struct {
		result core.Result
		err    error
		fate   string
		asks   int
	}{
		"done":           {fate: "✓ Done."},
		"failed":         {err: core.Errorf(core.Broken, "no  money"), fate: "✗ no money"},
		"without text":   {err: &core.Error{Kind: core.Broken}, fate: "✗ It did not work."},
		"internal error": {err: errors.New("secret"), fate: "✗ it did not work"},
		"next step":      {result: core.Result{Next: []core.Step{{Type: "again", Payload: []byte(`{}`)}}}, fate: "✓ Done.", asks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			t.Cleanup(func() { s.Close() })
			room := coretest.NewRoom("room")
			bank := coretest.NewPlugin("bank",
				core.Action{Name: "again", Brief: "Pay again", Permission: core.PermissionEveryone, Confirm: true},
				core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true, Do: func(context.Context, core.Call) (core.Result, error) {
					return tc.result, tc.err
				}})
			b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
				o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
			})
			b.receive(said("1", "jay", "pay Ann"))
			b.ended(1)
			b.receive(b.press("p", "jay", "Confirm"))
			b.ended(1)
			if texts := room.Texts(); texts[1] != "Pay somebody\nto: Ann\n\n"+tc.fate || len(room.Choices()) != tc.asks {
				t.Errorf("the room holds %q with buttons %v, want %q and %d", texts, room.Choices(), tc.fate, tc.asks)
			}
		})
	}
}

// TestFateIsOnDisk: the outcome of a step is stored before it is sent, so that a retry after a
// crash sends the same text under the same key.
func TestFateIsOnDisk(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank",
		core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
	var progress core.Progress
	room.Fail = func(text string) error {
		if text != "✓ Done." {
			return nil
		}
		return s.View(context.Background(), func(v core.View) error {
			records, err := v.Journal(core.TurnID{Path: place, Seq: 1})
			for _, r := range records {
				if r.Key.Step != 0 && r.Key.Part == 0 {
					progress = r.Progress
				}
			}
			return err
		})
	}
	b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
	})
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(said("2", "jay", "yes"))
	b.ended(1)
	if len(bank.Calls()) != 1 || progress != core.ProgressDone {
		t.Errorf("paid %d times with %q journalled before the outcome was sent, want 1 and %q", len(bank.Calls()), progress, core.ProgressDone)
	}
}

// TestYesInReplyToNothing: a yes in reply to an unknown message confirms nothing.
func TestYesInReplyToNothing(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	yes := said("2", "jay", "yes")
	yes.Message.ReplyTo = &core.Quote{ID: "gone"}
	b.receive(yes)
	b.ended(1)
	if len(bank.Calls()) != 0 {
		t.Error("paid without a confirmation")
	}
}

// TestOddButtons: a press with malformed confirmation data confirms nothing.
func TestOddButtons(t *testing.T) {
	b, bank := shop(t, true, pays, plan("What?"))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	confirm := b.press("p1", "jay", "Confirm")
	for i, data := range []string{"confirm:1.1:y", "confirm:x.1.2:y", "confirm:"} {
		odd := confirm
		odd.Message.ID, odd.Data = fmt.Sprint("o", i), data
		b.receive(odd)
		b.ended(1)
	}
	if len(bank.Calls()) != 0 || len(b.room.Choices()) != 1 {
		t.Errorf("paid %d times with buttons %v, want 0 and the open question", len(bank.Calls()), b.room.Choices())
	}
}

// TestYesWithMore: a yes confirms nothing if the same turn answers more text or if it comes from a
// reminder.
func TestYesWithMore(t *testing.T) {
	b, bank := shop(t, true, pays, plan("ok"))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.asker.Hold = make(chan struct{})
	b.receive(said("2", "eve", "hi"))
	b.thinks(2)
	b.receive(said("3", "jay", "yes"), said("4", "jay", "it is nice out here"))
	close(b.asker.Hold)
	b.ended(2)
	yes := reminder("yes")
	yes.Message.ID = "r"
	b.receive(yes)
	b.ended(1)
	if len(bank.Calls()) != 0 {
		t.Error("paid without a confirmation")
	}
}

// TestQuestionOfTheLongestText: a question of the largest size is sent as a message; a longer one
// has a file.
func TestQuestionOfTheLongestText(t *testing.T) {
	for n, attached := range map[int]int{action.MaxQuestion: 0, action.MaxQuestion + 1: 1} {
		long := strings.Repeat("x", n-len("Pay somebody\nbody: "))
		b, _ := shop(t, true, `{"actions":[{"type":"pay","payload":{"body":"`+long+`"}}]}`)
		files := &carrier{}
		b.Reconfigure(b.options(func(o *turn.Options) {
			o.Places.Carrier = func(core.Path) core.FileSender { return files }
		}))
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		if len(files.files) != attached || len(b.room.Choices()) != 1 {
			t.Errorf("a question of %d bytes has %d files, want %d", n, len(files.files), attached)
		}
		b.receive(b.press("p", "jay", "Cancel"))
		b.ended(1)
		for _, text := range b.room.Texts() {
			if strings.HasSuffix(text, "✗ Cancelled.") && strings.Contains(text, long) != (attached == 0) {
				t.Errorf("the cancelled question reads %q", text)
			}
		}
	}
}
