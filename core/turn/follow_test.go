package turn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// follower is a plugin that answers replies to its own messages but leaves the question "why?" to
// the model.
type follower struct{ core.Plugin }

func (follower) Follow(_ context.Context, m core.Message, said core.Entry) (core.Followed, error) {
	if m.Text == "why?" {
		return core.Followed{}, nil
	}
	return core.Followed{Text: fmt.Sprintf("%s: %s", said.Data, m.Text), Suggestions: []string{"Keep"}}, nil
}

// TestFollow: a message that a plugin sends needs no model. Replies to it, and to the answers, go
// to the plugin one by one; a reply that the plugin declines goes to the model.
func TestFollow(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(plan("Because."), plan("Hello.")), func(o *turn.Options) {
		o.Plugins.Add(follower{coretest.NewPlugin("helper")})
	})
	ask := core.Event{Kind: core.KindReminder, Data: "helper:7", Reply: "Who knows?", Message: core.Message{Path: square, ID: "helper-7"}}
	if err := b.Receive(t.Context(), ask); !errors.Is(err, core.ErrBadEvent) {
		t.Errorf("an event with a reply from a driver: got error %v, want %v", err, core.ErrBadEvent)
	}
	for range 2 {
		if err := b.InternalInbox().Receive(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	b.ended(1)
	reply := func(id, author, text, to string) core.Event {
		e := talk(id, author, text)
		e.Message.ReplyTo, e.Message.Addressed = &core.Quote{ID: to}, core.AddressedReply
		return e
	}
	idOf := func(i int) string { return room.Sent()[i].ID }
	b.receive(reply("1", "ann", "I do.", idOf(0)), reply("2", "ann", "Really.", idOf(0)))
	b.ended(2)
	b.receive(reply("3", "bob", "So do I.", idOf(1)))
	b.ended(1)
	b.receive(core.Event{Kind: core.KindPress, Target: idOf(1), Data: "Keep", Message: talk("4", "ann", "").Message})
	b.ended(1)
	b.receive(reply("5", "ann", "why?", idOf(0)))
	b.ended(1)
	b.receive(reply("6", "ann", "Hi", idOf(5)))
	b.ended(1)
	b.holds("Who knows?", "helper:7: I do.", "helper:7: Really.", "helper:7: So do I.", "helper:7: Keep", "Because.", "Hello.")
	err := s.View(t.Context(), func(v core.View) error {
		for i, want := range []string{"helper:7", "helper:7", "helper:7", "helper:7", "helper:7", "", ""} {
			e, ok, err := v.Entry(square, idOf(i))
			if err != nil || !ok || e.Data != want || want != "" && !e.Strangers {
				t.Errorf("message %d is %+v (%t, %v), want the data %q", i, e, ok, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFollowInAThread: the first message in a thread under a plugin's message is a reply to it.
// Later messages, and those in other threads, are not.
func TestFollowInAThread(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(), func(o *turn.Options) {
		o.Plugins.Add(follower{coretest.NewPlugin("helper")})
	})
	hall := core.MustPath("room/house/hall")
	ask := core.Event{Kind: core.KindReminder, Data: "helper:7", Reply: "Who knows?", Message: core.Message{Path: hall, ID: "helper-7"}}
	if err := b.InternalInbox().Receive(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	b.ended(1)
	for i, place := range []string{room.Sent()[0].ID, "other"} {
		for n, text := range []string{"I do.", "Anybody else?"} {
			e := talk(fmt.Sprint(i, n), "ann", text)
			e.Message.Path = core.MustPath("room/house/hall/" + place)
			b.receive(e)
			err := s.View(t.Context(), func(v core.View) error {
				got, _, err := v.Entry(e.Message.Path, e.Message.ID)
				if isFirst := i+n == 0; got.Due != isFirst {
					t.Errorf("%s: %q waits: got %t, want %t", place, text, got.Due, isFirst)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	b.ended(1)
	b.holds("Who knows?", "helper:7: I do.")
}
