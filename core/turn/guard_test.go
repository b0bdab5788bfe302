package turn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/core/gate"
	"synthbot/core/turn"
	"synthbot/core/watch"
)

// broken is a plugin whose hooks all panic.
type broken struct{}

func (broken) Judge(*core.Message, bool) gate.Verdict { panic("gate") }
func (broken) Observe(watch.TurnEnd)                  { panic("observer") }
func (broken) ObserveStage(watch.TurnStage)           { panic("watcher") }
func (broken) ShowTyping(context.Context, core.Path)  { panic("typing") }

// TestPluginsPanic: a plugin's panic does not stop a turn, and the message is not delivered again.
// A message that a gate could not judge is neither stored nor answered.
func TestPluginsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		var log strings.Builder
		b := start(t, s, room, pondering(time.Second), func(o *turn.Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Places.Typing = func(core.Path) core.TypingIndicator { return broken{} }
			o.Plugins.Observers, o.Plugins.Watchers = []watch.Observer{broken{}, room}, []watch.StageObserver{broken{}}
			o.Plugins.Gates, o.Places.Reaches = []gate.Gate{broken{}}, func(core.Path) bool { panic("reach") }
			o.Admins = []core.Path{core.MustPath("room/@user/boss")}
		})
		defer b.stop()
		b.receive(said("1", "jay", "private words"))
		b.ended(1)
		b.receive(said("2", "boss", "hello"))
		if end := b.ended(1)[0]; !end.Answered {
			t.Errorf("the turn ended as %+v, want it answered", end)
		}
		if log := logged(t, s); slices.Contains(log, "private words") || !slices.Contains(log, "hello") {
			t.Errorf("the history holds %q, want only the admin's message", log)
		}
		b.stop()
		for _, what := range []string{"gate", "observer", "watcher", "typing", "interface"} {
			if !strings.Contains(log.String(), "caller="+what) {
				t.Errorf("the panic of the %s is not logged", what)
			}
		}
	})
}

// unsure is a store whose next commits report a failure, although they reach the disk unless lost
// is set.
type unsure struct {
	core.Store
	fails   atomic.Int32
	entries bool // only commits with entries fail
	lost    bool // failed commits are not written
}

var errUnsure = errors.New("unknown outcome")

func (s *unsure) Commit(ctx context.Context, b *core.Batch) error {
	if s.entries && len(b.Append) == 0 || s.fails.Add(-1) < 0 {
		return s.Store.Commit(ctx, b)
	}
	if !s.lost {
		if err := s.Store.Commit(ctx, b); err != nil {
			return err
		}
	}
	return errUnsure
}

// TestDurableAfterAll: a message that reached the disk although its commit reported a failure is
// answered once when it is delivered again.
func TestDurableAfterAll(t *testing.T) {
	s := &unsure{Store: open(t, t.TempDir())}
	defer s.Close()
	var calls atomic.Int32
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(context.Context, call) (string, error) { calls.Add(1); return "one", nil }})
	})
	for i, e := range []core.Event{said("1", "jay", "hi"), called("2", "jay", "count")} {
		s.fails.Store(1)
		if err := b.Receive(t.Context(), e); !errors.Is(err, errUnsure) {
			t.Fatalf("the commit: got %v, want %v", err, errUnsure)
		}
		b.receive(e)
		if end := b.ended(1)[0]; !end.Answered {
			t.Errorf("turn %d ended as %+v, want it answered", i, end)
		}
		b.receive(e)
		if end := b.ended(1)[0]; end.Turn.Seq != 0 {
			t.Errorf("a repeated delivery began another turn: %+v", end)
		}
	}
	b.holds("Hello.", "one")
}

// TestExpiresWhenThereIsRoom: a question that expires while nothing can be written shows its expiry
// later.
func TestExpiresWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unsure{Store: open(t, t.TempDir()), entries: true, lost: true}
		defer s.Close()
		room := coretest.NewRoom("room")
		bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true})
		b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
			o.Catalogue = catalogueOf(t, room, bank)
			o.Runtime = action.NewRuntime(action.Options{Expire: time.Minute})
			o.Places.Chooser = func(core.Path) core.Chooser { return room }
		})
		defer b.stop()
		b.receive(said("1", "jay", "pay Ann"))
		b.ended(1)
		s.fails.Store(5)
		time.Sleep(time.Hour)
		b.ended(1)
		if texts := room.Texts(); len(texts) != 2 || !strings.Contains(texts[1], "⌛ The question has expired.") {
			t.Errorf("the room holds %q, want the expired question last", texts)
		}
	})
}

// TestQuestionThatCannotBeAsked: if a confirmation question cannot be sent, the step ends and the
// model learns why.
func TestQuestionThatCannotBeAsked(t *testing.T) {
	for err, why := range map[error]string{core.Errorf(core.Broken, "too long"): "too long", errors.New("secret"): "it did not work"} {
		for _, buttons := range []bool{true, false} {
			b, bank := shop(t, buttons, `{"actions":[{"type":"pay","payload":{"to":"Ann"}}]}`, plan("I could not ask you."))
			b.room.Fail = func(text string) error {
				if strings.HasPrefix(text, "Pay") {
					return err
				}
				return nil
			}
			b.receive(said("1", "jay", "pay Ann"))
			b.ended(2)
			b.holds("I could not ask you.")
			if in := b.input(1); !strings.Contains(in, "could not be asked: "+why) || strings.Contains(in, "cancelled") {
				t.Errorf("the prompt lacks the reason %q: %s", why, in)
			}
			if len(bank.Calls()) != 0 {
				t.Error("paid without a confirmation")
			}
		}
	}
}

// TestDeletionInTheSecondRound: if the message is deleted after its plan was accepted, the outcome
// is still reported.
func TestDeletionInTheSecondRound(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	tools := coretest.NewPlugin("tools", core.Action{Name: "look", Brief: "Look", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
		return core.Result{Output: []byte(`"a cat"`)}, nil
	}})
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(`{"actions":[{"type":"look","payload":{}}]}`, plan("A cat.")), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, tools)
	})
	b.asker.Hold = make(chan struct{}, 1)
	b.asker.Hold <- struct{}{}
	b.receive(said("1", "jay", "look"))
	b.thinks(2)
	b.receive(core.Event{Kind: core.KindDeletion, Target: "1", Message: core.Message{Path: place}})
	close(b.asker.Hold)
	if end := b.ended(1)[0]; !end.Answered {
		t.Errorf("the turn ended as %+v, want it answered", end)
	}
	b.holds("A cat.")
}

// TestDeletedDecision: a user who deletes their yes still gets the outcome.
func TestDeletedDecision(t *testing.T) {
	b, bank := shop(t, true, pays, plan("Paid."))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.asker.Hold = make(chan struct{})
	b.receive(said("2", "jay", "yes"))
	b.thinks(2)
	b.receive(core.Event{Kind: core.KindDeletion, Target: "2", Message: core.Message{Path: place}})
	close(b.asker.Hold)
	b.ended(1)
	if texts := b.room.Texts(); len(bank.Calls()) != 1 || texts[len(texts)-1] != "Paid." {
		t.Errorf("paid %d times and the room holds %q, want once and the outcome last", len(bank.Calls()), texts)
	}
}

// TestAdminConfirmsForAnother: an action that an admin confirms runs with the rights of the user
// who asked for it.
func TestAdminConfirmsForAnother(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.Reconfigure(b.options(func(o *turn.Options) { o.Admins = []core.Path{core.MustPath("room/@user/boss")} }))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p", "boss", "Confirm"))
	b.ended(1)
	if calls := bank.Calls(); len(calls) != 1 || calls[0].Author.ID != "jay" || calls[0].Author.Rank != core.RankMember {
		t.Errorf("the calls were %+v, want one with jay's rights", calls)
	}
}

// TestYesToTheQuestion: a yes or no that replies to a question decides it, whatever was written
// since. Without a reply it decides the last question to its author.
func TestYesToTheQuestion(t *testing.T) {
	group := func(id, who, text string, to core.Addressed) core.Event {
		e := said(id, who, text)
		e.Message.Private, e.Message.Addressed = false, to
		return e
	}
	reminder := group("r", "jay", "tea", "")
	reminder.Kind = core.KindReminder
	own := group("b", "", "Look around.", "")
	own.Kind = core.KindBeat
	others := reminder
	others.Message.Author = core.Author{ID: "eve", Name: "eve"}
	command := func(who string) core.Event {
		e := called("b", who, "count")
		e.Message.Private = false
		return e
	}
	for name, tc := range map[string]struct {
		between []core.Event
		held    bool // waits behind a turn together with another message
		reply   bool
		text    string
		to      core.Addressed
		paid    int
		settled bool
	}{
		"a reply":                      {between: []core.Event{group("b", "eve", "Aria?", core.AddressedMention)}, reply: true, text: "yes", to: core.AddressedReply, paid: 1, settled: true},
		"no in reply":                  {between: []core.Event{group("b", "eve", "Aria?", core.AddressedMention)}, reply: true, text: "No.", to: core.AddressedReply, settled: true},
		"a reply behind one's own":     {between: []core.Event{group("b", "jay", "wait", core.AddressedMention)}, reply: true, text: "yes", to: core.AddressedReply, paid: 1, settled: true},
		"a reply that waits with more": {held: true, reply: true, text: "yes", to: core.AddressedReply, paid: 1, settled: true},
		"behind others, to us":         {between: []core.Event{group("b", "eve", "Aria?", core.AddressedMention)}, text: "yes", to: core.AddressedMention, paid: 1, settled: true},
		"behind others, to nobody":     {between: []core.Event{group("b", "eve", "Aria?", core.AddressedMention)}, text: "yes"},
		"behind one's own":             {between: []core.Event{group("b", "jay", "what time is it?", core.AddressedMention)}, text: "yes", to: core.AddressedMention},
		"behind another's reminder":    {between: []core.Event{others}, text: "yes", to: core.AddressedMention},
		"behind one's own command":     {between: []core.Event{command("jay")}, text: "yes", to: core.AddressedMention},
		"behind another's command":     {between: []core.Event{command("eve")}, text: "yes", to: core.AddressedMention, paid: 1, settled: true},
		"a reply behind a command":     {between: []core.Event{command("jay")}, reply: true, text: "yes", to: core.AddressedReply, paid: 1, settled: true},
		"behind a reminder":            {between: []core.Event{reminder}, text: "yes", to: core.AddressedMention},
		"behind a beat":                {between: []core.Event{own}, text: "yes", to: core.AddressedMention},
	} {
		t.Run(name, func(t *testing.T) {
			b, bank := shop(t, true, pays, says)
			b.Reconfigure(b.options(func(o *turn.Options) {
				o.Settings = func(core.Path) turn.Settings { return turn.Settings{Activation: turn.ActivationAlways} }
				o.Plugins.Commands = registry(t, map[string]commandFunc{
					"count": func(context.Context, call) (string, error) { return "Shall I count?", nil },
				})
			}))
			b.receive(group("1", "jay", "pay Ann", core.AddressedMention))
			b.ended(1)
			if tc.between != nil {
				b.receive(tc.between...)
				b.ended(1)
			}
			yes := group("y", "jay", tc.text, tc.to)
			for _, sent := range b.room.Sent() {
				if tc.reply && strings.HasPrefix(sent.Text, "Pay") {
					yes.Message.ReplyTo = &core.Quote{ID: sent.ID, From: core.Author{Bot: true}}
				}
			}
			if tc.held {
				b.asker.Hold = make(chan struct{})
				b.receive(group("h", "eve", "Aria?", core.AddressedMention))
				b.thinks(2)
				b.receive(yes, group("z", "jay", "and hurry", core.AddressedMention))
				close(b.asker.Hold)
				b.ended(2)
			} else {
				b.receive(yes)
			}
			b.ended(1)
			if len(bank.Calls()) != tc.paid || (len(b.room.Choices()) == 0) != tc.settled {
				t.Errorf("paid %d times, want %d; settled must be %v; the room holds %q with buttons %v", len(bank.Calls()), tc.paid, tc.settled, b.room.Texts(), b.room.Choices())
			}
		})
	}
}

// TestYesIsForOnesOwnQuestion: a yes decides the question to its own author, not another user's.
func TestYesIsForOnesOwnQuestion(t *testing.T) {
	var mu sync.Mutex
	var paid []string
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true,
		Do: func(_ context.Context, c core.Call) (core.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			paid = append(paid, c.Author.ID)
			return core.Result{}, nil
		}})
	b := start(t, s, room, coretest.NewAsker(pays, pays, says), func(o *turn.Options) {
		o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
	})
	for i, who := range []string{"jay", "ann"} {
		e := said("1"+who, who, "pay Bob")
		e.Message.Private, e.Message.Addressed = false, core.AddressedMention
		b.receive(e)
		b.ended(1)
		if len(room.Choices()) != i+1 {
			t.Fatalf("%d questions, want %d", len(room.Choices()), i+1)
		}
	}
	yes := said("2", "jay", "yes")
	yes.Message.Private, yes.Message.Addressed = false, core.AddressedMention
	b.receive(yes)
	b.ended(1)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(paid, []string{"jay"}) {
		t.Errorf("paid for %q, want only jay", paid)
	}
}

// lateFailure is a store whose next commits that end a turn report a failure, although they reach
// the disk unless lost is set.
type lateFailure struct {
	core.Store
	fails atomic.Int32
	lost  bool // failed commits are not written
}

func (s *lateFailure) Commit(ctx context.Context, b *core.Batch) error {
	fails := len(b.Answered)+len(b.Settled) > 0 && s.fails.Add(-1) >= 0
	if fails && s.lost {
		return errUnsure
	}
	err := s.Store.Commit(ctx, b)
	if err == nil && fails {
		return errUnsure
	}
	return err
}

// TestEndIsReportedOnce: a turn whose last commit reported a failure is reported as ended exactly
// once, whether or not the commit reached the disk.
func TestEndIsReportedOnce(t *testing.T) {
	for name, event := range map[string]core.Event{"message": said("1", "jay", "hi"), "command": called("1", "jay", "count")} {
		for n := range 4 {
			follows := n%2 == 1
			synctest.Test(t, func(t *testing.T) {
				s := &lateFailure{Store: open(t, t.TempDir()), lost: n > 1}
				defer s.Close()
				b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
					o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(context.Context, call) (string, error) { return "one", nil }})
				})
				defer b.stop()
				s.fails.Store(1)
				events := []core.Event{event}
				if follows {
					next := event
					next.Message.ID, next.Message.Author.ID = "2", "ann"
					events = append(events, next)
				}
				b.receive(events...)
				time.Sleep(time.Minute)
				for i, end := range b.ended(len(events)) {
					if !end.Answered || !slices.Equal(end.Messages, []string{events[i].Message.ID}) {
						t.Errorf("%s: turn %d ended as %+v, want an answer to %s", name, i, end, events[i].Message.ID)
					}
				}
				select {
				case end := <-b.room.Ends():
					t.Errorf("%s: a turn was reported again as %+v", name, end)
				default:
				}
			})
		}
	}
}

// TestWithdrawingCountsForNothing: deletions that interrupt a turn do not count as failed attempts;
// the turn answers the remaining message.
func TestWithdrawingCountsForNothing(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	var events []core.Event
	for i := range 9 {
		events = append(events, said(fmt.Sprint(i), "jay", "hi"))
	}
	b.receive(events...)
	for i := range 8 {
		b.thinks(1)
		b.receive(core.Event{Kind: core.KindDeletion, Target: fmt.Sprint(8 - i), Message: core.Message{Path: place}})
	}
	b.thinks(1)
	close(b.asker.Hold)
	if end := b.ended(1)[0]; !slices.Equal(end.Messages, []string{"0"}) {
		t.Errorf("the turn ended as %+v, want it answered", end)
	}
	b.holds("ok")
}

// TestReconfigureKeepsTheStore: Reconfigure keeps the store, whatever the new options say.
func TestReconfigureKeepsTheStore(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.Reconfigure(b.options(func(o *turn.Options) { o.Store = nil }))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.holds("ok")
}

// TestPulse: Pulse reports a store that cannot be read or written.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pulsing{Store: open(t, t.TempDir())}
		defer s.Close()
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker())
		b.stop()
		for _, state := range []struct{ read, write error }{{}, {nil, errUnsure}, {errUnsure, nil}, {}} {
			time.Sleep(time.Minute) // lets the cached result expire
			s.read, s.write = state.read, state.write
			if err := b.Pulse(t.Context()); (err != nil) != (s.read != nil || s.write != nil) {
				t.Errorf("with read error %v and write error %v: got %v", s.read, s.write, err)
			}
		}
	})
}

// pulsing is a store with settable read and write errors.
type pulsing struct {
	core.Store
	read, write error
}

func (s *pulsing) Pulse(context.Context) error { return s.write }

func (s *pulsing) View(ctx context.Context, f func(core.View) error) error {
	if s.read != nil {
		return s.read
	}
	return s.Store.View(ctx, f)
}

// TestDemotedMeanwhile: a confirmed action needs the rank that its user has at the confirmation.
func TestDemotedMeanwhile(t *testing.T) {
	for demoted, want := range map[bool]int{false: 1, true: 0} {
		s := open(t, t.TempDir())
		room := coretest.NewRoom("room")
		bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionAdmins, Confirm: true})
		b := start(t, s, room, coretest.NewAsker(pays, says), func(o *turn.Options) {
			o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
			o.Admins = []core.Path{core.MustPath("room/@user/boss")}
		})
		b.receive(said("1", "boss", "pay Ann"))
		b.ended(1)
		if demoted {
			b.Reconfigure(b.options(func(o *turn.Options) { o.Admins = nil }))
		}
		b.receive(b.press("p", "boss", "Confirm"))
		b.ended(1)
		if n := len(bank.Calls()); n != want {
			t.Errorf("demoted %v: paid %d times, want %d", demoted, n, want)
		}
		b.stop()
		s.Close()
	}
}
