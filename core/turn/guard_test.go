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

// broken is a plugin of which every hook panics.
type broken struct{}

func (broken) Judge(*core.Message, bool) gate.Verdict { panic("gate") }
func (broken) Observe(watch.TurnEnd)                  { panic("observer") }
func (broken) ObserveStage(watch.TurnStage)           { panic("watcher") }
func (broken) ShowTyping(context.Context, core.Path)  { panic("typing") }

// TestPluginsPanic: what a plugin's panic leaves is taken in, and not delivered again
// for ever; of what a gate cannot judge nothing is kept or answered.
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
			t.Errorf("the turn ended as %+v", end)
		}
		if log := logged(t, s); slices.Contains(log, "private words") || !slices.Contains(log, "hello") {
			t.Errorf("the log holds %q", log)
		}
		b.stop()
		for _, what := range []string{"gate", "observer", "watcher", "typing", "interface"} {
			if !strings.Contains(log.String(), "caller="+what) {
				t.Errorf("the panic of the %s is not logged", what)
			}
		}
	})
}

// unsure is a store whose next commits reach the disk and report a failure.
type unsure struct {
	core.Store
	fails   atomic.Int32
	entries bool // only those that append
	lost    bool // they do not reach it
}

var errUnsure = errors.New("nobody knows")

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

// TestDurableAfterAll: what was received reached the disk though the commit reported
// a failure. Delivered again, it is answered, once.
func TestDurableAfterAll(t *testing.T) {
	s := &unsure{Store: open(t, t.TempDir())}
	defer s.Close()
	var calls atomic.Int32
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Commands = registry(t, map[string]obeying{"count": func(context.Context, call) (string, error) { calls.Add(1); return "one", nil }})
	})
	for i, e := range []core.Event{said("1", "jay", "hi"), called("2", "jay", "count")} {
		s.fails.Store(1)
		if err := b.Receive(t.Context(), e); !errors.Is(err, errUnsure) {
			t.Fatalf("the commit: %v", err)
		}
		b.receive(e)
		if end := b.ended(1)[0]; !end.Answered {
			t.Errorf("turn %d ended as %+v", i, end)
		}
		b.receive(e)
		if end := b.ended(1)[0]; end.Turn.Seq != 0 {
			t.Errorf("it has a second turn: %+v", end)
		}
	}
	b.holds("Hello.", "one")
}

// TestExpiresWhenThereIsRoom: a question's time ends while nothing can be written.
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
			t.Errorf("the room holds %q", texts)
		}
	})
}

// TestQuestionThatCannotBeAsked: the step does not wait for ever, and the model learns
// why nobody was asked.
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
				t.Errorf("the model was told %s", in)
			}
			if len(bank.Calls()) != 0 {
				t.Error("it paid")
			}
		}
	}
}

// TestDeletionInTheSecondRound: a plan was accepted, and its outcome is reported.
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
		t.Errorf("the turn ended as %+v", end)
	}
	b.holds("A cat.")
}

// TestDeletedDecision: a user who deletes the message by which they decided something
// still gets the outcome.
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
		t.Errorf("it paid %d times, and the room holds %q", len(bank.Calls()), texts)
	}
}

// TestAdminConfirmsForAnother: what an admin confirms runs with the rights of the user
// who asked for it.
func TestAdminConfirmsForAnother(t *testing.T) {
	b, bank := shop(t, true, pays, says)
	b.Reconfigure(b.options(func(o *turn.Options) { o.Admins = []core.Path{core.MustPath("room/@user/boss")} }))
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p", "boss", "Confirm"))
	b.ended(1)
	if calls := bank.Calls(); len(calls) != 1 || calls[0].Author.ID != "jay" || calls[0].Author.Rank != core.RankMember {
		t.Errorf("the calls were %+v", calls)
	}
}

// TestYesToTheQuestion: a yes or no decides the question that it replies to, whatever
// was said since, and, without a reply, the one that its author was asked last.
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
	for name, tc := range map[string]struct {
		between []core.Event
		held    bool // it waits behind a turn, with more of its author's
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
		"behind a reminder":            {between: []core.Event{reminder}, text: "yes", to: core.AddressedMention},
		"behind a beat":                {between: []core.Event{own}, text: "yes", to: core.AddressedMention},
	} {
		t.Run(name, func(t *testing.T) {
			b, bank := shop(t, true, pays, says)
			b.Reconfigure(b.options(func(o *turn.Options) {
				o.Settings = func(core.Path) turn.Settings { return turn.Settings{Activation: turn.ActivationAlways} }
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
				t.Errorf("it paid %d times, the room holds %q, buttons %v", len(bank.Calls()), b.room.Texts(), b.room.Choices())
			}
		})
	}
}

// TestYesIsForOnesOwnQuestion: two people were asked something.
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
			t.Fatalf("%d questions", len(room.Choices()))
		}
	}
	yes := said("2", "jay", "yes")
	yes.Message.Private, yes.Message.Addressed = false, core.AddressedMention
	b.receive(yes)
	b.ended(1)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(paid, []string{"jay"}) {
		t.Errorf("paid was for %q", paid)
	}
}

// lateFailure is a store of which the next commits that end a turn reach the disk and
// report a failure.
type lateFailure struct {
	core.Store
	fails atomic.Int32
	lost  bool // they do not reach it
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

// TestEndIsToldAfterAll: a turn whose last commit reported a failure and reached the disk
// has ended once, and those who wait for that know.
func TestEndIsToldAfterAll(t *testing.T) {
	for name, event := range map[string]core.Event{"message": said("1", "jay", "hi"), "command": called("1", "jay", "count")} {
		for n := range 4 {
			follows := n%2 == 1
			synctest.Test(t, func(t *testing.T) {
				s := &lateFailure{Store: open(t, t.TempDir()), lost: n > 1}
				defer s.Close()
				b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")), func(o *turn.Options) {
					o.Plugins.Commands = registry(t, map[string]obeying{"count": func(context.Context, call) (string, error) { return "one", nil }})
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
						t.Errorf("%s: turn %d ended as %+v", name, i, end)
					}
				}
				select {
				case end := <-b.room.Ends():
					t.Errorf("%s: it ended again as %+v", name, end)
				default:
				}
			})
		}
	}
}

// TestWithdrawingCountsForNothing: a turn whose messages are deleted one after the other
// while it thinks answers what is left.
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
		t.Errorf("the turn ended as %+v", end)
	}
	b.holds("ok")
}

// TestReconfigureKeepsTheStore: whatever store the options name.
func TestReconfigureKeepsTheStore(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.Reconfigure(b.options(func(o *turn.Options) { o.Store = nil }))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.holds("ok")
}

// TestPulse: what cannot be read, or cannot be written, is not alive.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pulsing{Store: open(t, t.TempDir())}
		defer s.Close()
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker())
		b.stop()
		for _, state := range []struct{ read, write error }{{}, {nil, errUnsure}, {errUnsure, nil}, {}} {
			time.Sleep(time.Minute) // what was found out before is too old
			s.read, s.write = state.read, state.write
			if err := b.Pulse(t.Context()); (err != nil) != (s.read != nil || s.write != nil) {
				t.Errorf("reading %v, writing %v: %v", s.read, s.write, err)
			}
		}
	})
}

// pulsing is a store that says how it is.
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

// TestDemotedMeanwhile checks that a confirmed step needs the rank that its user has now.
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
			t.Errorf("demoted %v: it paid %d times, want %d", demoted, n, want)
		}
		b.stop()
		s.Close()
	}
}
