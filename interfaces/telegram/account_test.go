package telegram

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"synthbot/core/driver"
	"synthbot/core/secret"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestAnotherBot: in private chats, the message ids of another bot account start again. None
// is mistaken for a message of the former account, incoming or outgoing, and the new account
// gets a command menu.
func TestAnotherBot(t *testing.T) {
	token := telegramtest.Token
	alter := func(o *Options) {
		o.Config.Token, o.Config.Acknowledge, o.Config.Stream, o.Commands = secret.New(token), "👀", "edit", commands
	}
	inBubble(t, alter, func(t *testing.T, w *world) {
		at, in := place("telegram", jay, 0), &coretest.Inbox{}
		converse := func() (ids []string) {
			t.Helper()
			d, stop := w.run(t, in)
			defer func() { _ = stop() }()
			seen := len(in.Events())
			theirs := w.Say(jay, jay, telegramtest.Saying{Text: "hello"})
			w.Say(group, jay, telegramtest.Saying{Text: "and here"})
			events := in.Wait(t, seen+2)[seen:]
			slices.SortFunc(events, func(a, b core.Event) int {
				return strings.Compare(b.Message.Path.String(), a.Message.Path.String())
			})
			said := events[0].Message.ID
			stream(d, at, 20)
			parts := &coretest.Parts{}
			for _, step := range [][2]string{
				{"message", `{"text":"one"}`}, {"message", `{"text":"two","buttons":[{"label":"x"}],"reply_to_message_id":` + said + `}`},
				{"react", `{"message_id":` + said + `,"emoji":"👍"}`}, {"photo", `{"url":"https://example.org/a.png","reply_to_message_id":` + said + `}`},
			} {
				if err := do(t, d, step[0]+"_telegram", at, step[1], parts); err != nil {
					t.Fatalf("%v: %v", step, err)
				}
				parts = &coretest.Parts{}
			}
			if err := do(t, d, "message_telegram", at, `{"text":"three"}`, parts); err != nil {
				t.Fatal(err)
			}
			last := parts.Sent()[0].ID
			if err := do(t, d, "edit_telegram", at, `{"message_id":`+last+`,"text":"four"}`, parts); err != nil {
				t.Fatal(err)
			}
			if err := d.Settle(t.Context(), core.Sent{Path: at, ID: last, Text: "five"}); err != nil {
				t.Fatal(err)
			}
			list := w.Messages(jay)
			if list = list[max(0, len(list)-4):]; len(list) != 4 || list[1].ReplyTo != theirs || list[2].ReplyTo != theirs || list[3].Text != "five" {
				t.Errorf("got %+v, want four messages, two of them replies", list)
			}
			w.Press(jay, list[1].ID, jay, 0)
			w.React(jay, list[3].ID, jay, "🔥")
			w.Say(jay, jay, telegramtest.Saying{Text: "that?", ReplyTo: list[3].ID})
			more := in.Wait(t, seen+6)[seen+3:] // behind the edit
			if more[0].Target == more[1].Target || more[1].Target != last || more[2].Message.ReplyTo.ID != last {
				t.Errorf("got %+v, want a press of another message, and a reaction and a reply to %q", more, last)
			}
			d.mark(t.Context(), chatKey{chat: jay}, said, "👀")
			if c := w.Calls("setMessageReaction"); c[len(c)-1].Status != 200 {
				t.Errorf("the reaction failed: %+v", c[len(c)-1])
			}
			return []string{said, last, more[2].Message.ID, events[1].Message.ID}
		}
		first, again := converse(), converse()
		for i, former := range first {
			if slices.Contains(again, former) {
				t.Errorf("id %d of %q was used again in %q", i, first, again)
			}
		}
		token = "4242:other"
		w.Exchange(token)
		other := converse()
		for i, number := range other[:3] {
			if slices.Contains(first, number) || slices.Contains(again, number) || len(number) < 10 {
				t.Errorf("id %d of %q is too short or was used in %q or %q", i, other, first, again)
			}
		}
		if len(other[3]) > 2 {
			t.Errorf("got id %q in the group, want the platform's own", other[3])
		}
		d, stop := w.run(t, in)
		synctest.Wait()
		if err := do(t, d, "edit_telegram", at, `{"message_id":`+first[1]+`,"text":"six"}`, &coretest.Parts{}); err == nil {
			t.Error("a message of another bot was edited")
		}
		if err := do(t, d, "message_telegram", at, `{"text":"seven","reply_to_message_id":`+first[0]+`}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		list := w.Messages(jay)
		if last := list[len(list)-1]; last.ReplyTo != 0 || len(w.Commands()) == 0 {
			t.Errorf("got %+v, want no reply; %d command lists", last, len(w.Commands()))
		}
		if log := w.log.String(); strings.Count(log, "another bot account than before") != 1 {
			t.Errorf("want one line about another bot account in the log:\n%s", log)
		}
		_ = stop()
	})
}

// unreadableState is a State that cannot be read.
type unreadableState struct{ driver.State }

func (unreadableState) Get(context.Context, string) ([]byte, error) {
	return nil, errors.New("damaged")
}

// TestAccountsUnread: a stored list of former bot accounts that cannot be read is not overwritten.
func TestAccountsUnread(t *testing.T) {
	const former = `["1","2"]`
	w := newWorld(t, nil)
	w.alter = func(o *Options) { o.State = unreadableState{&w.state} }
	_ = w.state.Put(t.Context(), accountsKey, []byte(former))
	w.driver(t).saveAccount(t.Context())
	if got, _ := w.state.Get(t.Context(), accountsKey); string(got) != former {
		t.Errorf("got %s, want %s", got, former)
	}
}
