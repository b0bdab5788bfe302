package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/core/secret"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/telegramtest"
)

// inBubble runs a test in fake time, with a platform in memory.
func inBubble(t *testing.T, alter func(*Options), test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		server, stop := telegramtest.InMemory()
		t.Cleanup(stop)
		test(t, populate(&world{Server: server, alter: alter}))
	})
}

// run starts a driver within a bubble. The returned function stops it.
func (w *world) run(t *testing.T, in core.Inbox) (*Driver, func() error) {
	t.Helper()
	d, err := New(w.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Listen(ctx, in) }()
	end := sync.OnceValue(func() error { cancel(); defer d.api.Close(); return <-done })
	t.Cleanup(func() { _ = end() })
	return d, end
}

func messageTexts(events []core.Event) (list []string) {
	for _, e := range events {
		list = append(list, e.Message.Text)
	}
	return list
}

// TestUndecodableUpdatesAreSkipped: updates that cannot be decoded are logged and
// confirmed, and those around them arrive.
func TestUndecodableUpdatesAreSkipped(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.Say(jay, jay, telegramtest.Saying{Text: "before"})
		w.Push(`{"message":{"message_id":"poison","date":1,"chat":{"id":1000,"type":"private"}}}`)
		w.Push(`{"message":{"message_id":1,"date":"poison","chat":[]}}`)
		w.Say(jay, jay, telegramtest.Saying{Text: "after"})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		got := messageTexts(in.Wait(t, 2))
		synctest.Wait()
		if !slices.Equal(got, []string{"before", "after"}) || w.Waiting() != 0 {
			t.Errorf("got %q, want before and after; %d updates unconfirmed, want 0", got, w.Waiting())
		}
		if n := strings.Count(w.log.String(), "update skipped"); n != 2 {
			t.Errorf("got %d log lines about skipped updates, want 2", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestUpdateWithoutID: an update without an id, which cannot be confirmed, does not
// make the driver poll in a tight loop, and the next update takes its place.
func TestUpdateWithoutID(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "before"})
		w.Push(`[]`)
		time.Sleep(time.Minute)
		if n := len(w.Calls("getUpdates")); n > 100 || w.Waiting() != 1 {
			t.Errorf("got %d polls in a minute, want at most 100; %d updates unconfirmed, want 1", n, w.Waiting())
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "after"})
		time.Sleep(2 * time.Second)
		if got := messageTexts(in.Events()); !slices.Equal(got, []string{"before", "after"}) || w.Waiting() != 0 {
			t.Errorf("got %q, want before and after; %d updates unconfirmed, want 0", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestUnconfirmed: an update is confirmed only after the inbox has stored it.
func TestUnconfirmed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		in := &coretest.Inbox{Fail: func([]core.Event) error { <-hold; return nil }}
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		_, stop := w.run(t, in)
		time.Sleep(time.Minute)
		if w.Waiting() != 1 {
			t.Error("the update was confirmed before it was stored")
		}
		close(hold)
		time.Sleep(time.Second)
		if w.Waiting() != 0 {
			t.Error("the stored update was not confirmed")
		}
		_ = stop()
	})
}

// TestUpdateIDsRestart: after a silence, when the platform may choose new update ids,
// lower ids than before are accepted.
func TestUpdateIDsRestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "high"})
		in.Wait(t, 1)
		time.Sleep(10 * time.Minute)
		w.Skip(1000)
		w.Say(jay, jay, telegramtest.Saying{Text: "low"})
		if got := messageTexts(in.Wait(t, 2)); got[1] != "low" {
			t.Errorf("got %q, want high and low", got)
		}
		_ = stop()
	})
}

// TestBadEvent: an event that can never be stored is skipped, also if it arrives alone.
// Every other event is stored in the end, however often storing it fails.
func TestBadEvent(t *testing.T) {
	for text, refusal := range map[string]error{"bad": core.ErrBadEvent, "broken": core.ErrDamaged, "large": core.ErrFull, "odd": errors.New("an I/O error")} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			var recovered atomic.Bool
			in := &coretest.Inbox{Fail: func(events []core.Event) error {
				for _, e := range events {
					if e.Message.Text == text && !recovered.Load() {
						return fmt.Errorf("event: %w", refusal)
					}
				}
				return nil
			}}
			for _, said := range []string{"one", text, "two"} {
				w.Say(jay, jay, telegramtest.Saying{Text: said})
			}
			w.Say(ann, ann, telegramtest.Saying{Text: "elsewhere"})
			_, stop := w.run(t, in)
			time.Sleep(10 * time.Minute)
			recovered.Store(text == "large" || text == "odd")
			w.Say(jay, jay, telegramtest.Saying{Text: "three"})
			time.Sleep(10 * time.Minute)
			want := []string{"one", "two", "three", "elsewhere"}
			if recovered.Load() {
				want = append(want, text)
			}
			got := messageTexts(in.Events())
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || w.Waiting() != 0 {
				t.Errorf("%v: got %q, want %q; %d updates unconfirmed, want 0", refusal, got, want, w.Waiting())
			}
			if text == "bad" {
				w.Say(jay, jay, telegramtest.Saying{Text: text}) // alone
				time.Sleep(time.Minute)
				if w.Waiting() != 0 {
					t.Error("a bad event that arrives alone is never confirmed")
				}
				if n := strings.Count(w.log.String(), "update skipped: it cannot be stored"); n != 2 {
					t.Errorf("got %d log lines about skipped updates, want 2", n)
				}
			}
			_ = stop()
		})
	}
}

// TestAlbums: the parts of an album become one message, late parts included. Later
// messages of the same chat come after it.
func TestAlbums(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		part := func(chat int64, album, file, caption string) {
			w.Say(chat, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": album, "caption": caption,
				"photo": []any{map[string]any{"file_id": file, "file_unique_id": "u" + file, "width": 10, "height": 10}}}})
		}
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		part(jay, "1", "a", "holidays")
		w.Say(group, jay, telegramtest.Saying{Text: "elsewhere"})
		time.Sleep(300 * time.Millisecond)
		part(jay, "1", "b", "")
		time.Sleep(500 * time.Millisecond)
		part(jay, "1", "c", "the sea")
		part(jay, "2", "d", "")
		w.Say(jay, jay, telegramtest.Saying{Text: "look"})
		time.Sleep(5 * time.Second)
		var got []string
		for _, e := range in.Events() {
			refs := ""
			for _, a := range e.Message.Attachments {
				refs += a.Ref
			}
			got = append(got, e.Message.ID+":"+refs+":"+e.Message.Text)
		}
		if want := []string{"1::elsewhere", "1:abc:holidays\nthe sea", "4:d:", "5::look"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.Waiting() != 0 {
			t.Errorf("%d updates unconfirmed, want 0", w.Waiting())
		}
		_ = stop()
	})
}

func TestWrongToken(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Config.Token = secret.New("1:wrong") })
	err := w.driver(t).Listen(t.Context(), &coretest.Inbox{})
	if err == nil || !strings.Contains(err.Error(), "check the token") || strings.Contains(err.Error(), "1:wrong") {
		t.Errorf("Listen returned %v, want advice to check the token, without the token", err)
	}
}

// TestTwoReaders: while another process polls with the same token, admins are notified at
// most once every few hours. Updates arrive again when the other process has ended.
func TestTwoReaders(t *testing.T) {
	var reports atomic.Int32
	alter := func(o *Options) {
		o.Admin = func(text string) {
			reports.Add(1)
			if !strings.Contains(text, "another process") {
				t.Errorf("admins received %q, want a mention of another process", text)
			}
		}
	}
	inBubble(t, alter, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		other, err := New(w.options())
		if err != nil {
			t.Fatal(err)
		}
		read := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			_ = other.api.Try(ctx, &botapi.Request{Method: "getUpdates", Params: botapi.Params{"timeout": 30}})
		}
		for range 3 {
			read()
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "this one comes through"})
		in.Wait(t, 1)
		time.Sleep(5*time.Hour + 20*time.Second) // in the middle of a poll
		read()
		if reports.Load() != 1 {
			t.Errorf("admins were notified %d times, want 1", reports.Load())
		}
		time.Sleep(2*time.Hour + 20*time.Second)
		read()
		if reports.Load() != 2 {
			t.Errorf("two hours later admins were notified %d times, want 2", reports.Load())
		}
		other.api.Close()
		w.Say(jay, jay, telegramtest.Saying{Text: "still here"})
		in.Wait(t, 2)
		_ = stop()
	})
}

// TestPollTimeout: a poll that the server never answers is given up and repeated.
func TestPollTimeout(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		var hung atomic.Int32
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "getUpdates" && hung.Add(1) == 1 {
				return telegramtest.Fault{Kind: telegramtest.Hang}
			}
			return telegramtest.Fault{}
		})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "hello?"})
		time.Sleep(2 * time.Minute)
		if len(in.Events()) != 1 {
			t.Errorf("got %d messages, want 1", len(in.Events()))
		}
		_ = stop()
	})
}

// TestPollFaults: no message is lost, whatever way getUpdates fails, and the token is
// not logged.
func TestPollFaults(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		kinds := []telegramtest.FaultKind{telegramtest.Limited, telegramtest.Internal, telegramtest.BadGateway,
			telegramtest.Unavailable,
			telegramtest.Reset, telegramtest.Cut, telegramtest.Hang}
		n := 0
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method != "getUpdates" {
				return telegramtest.Fault{}
			}
			if n++; n%2 == 0 {
				return telegramtest.Fault{Kind: kinds[n/2%len(kinds)], RetryAfter: 2}
			}
			return telegramtest.Fault{}
		})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		for i := range 20 {
			w.Say(jay, jay, telegramtest.Saying{Text: fmt.Sprint(i)})
			time.Sleep(10 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		if got := messageTexts(in.Events()); len(got) != 20 || got[19] != "19" {
			t.Errorf("got %q, want 0 to 19", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(w.log.String(), telegramtest.Token[10:]) {
			t.Error("the token shows in the log")
		}
	})
}

// TestUnreachable: a driver that starts without network receives messages once there is one.
func TestUnreachable(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		n := 0
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if n++; n < 12 {
				return telegramtest.Fault{Kind: telegramtest.Reset}
			}
			return telegramtest.Fault{}
		})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		time.Sleep(10 * time.Minute)
		if len(in.Events()) != 1 {
			t.Errorf("got %d messages, want 1", len(in.Events()))
		}
		_ = stop()
	})
}

// TestMigration: when a group has become a supergroup, an action on the old group runs in
// the supergroup, and a migration event is received. Message ids of the old group are not
// used there, because other messages have them.
func TestMigration(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		synctest.Wait() // the event is received only if Listen runs
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		parts := &coretest.Parts{}
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"hi"}`, parts); err != nil {
			t.Fatal(err)
		}
		if list := w.Messages(to); len(list) != 1 || list[0].Text != "hi" {
			t.Errorf("the supergroup shows %+v, want the message hi", list)
		}
		if list := parts.Sent(); len(list) != 1 || list[0].ID != "" {
			t.Errorf("journalled %+v, want one entry without an id", list)
		}
		e := in.Wait(t, 1)[0]
		if e.Kind != core.KindMigration || e.Message.Path != place("telegram", basic, 0) || e.To != place("telegram", to, 0) {
			t.Errorf("got %+v, want a migration from %d to %d", e, basic, to)
		}
		before := len(w.Calls("sendMessage"))
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"again"}`, &coretest.Parts{}); err != nil || len(w.Calls("sendMessage")) != before+1 {
			t.Errorf("the second message: %v, want one request, to the supergroup", err)
		}
		// The message ids of the old group belong to other messages in the supergroup.
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"reply","reply_to_message_id":1}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		for action, payload := range map[string]string{"edit": `{"message_id":1,"text":"changed"}`, "delete": `{"message_id":2}`, "react": `{"message_id":1,"emoji":"👍"}`} {
			if err := do(t, d, action+"_telegram", place("telegram", basic, 0), payload, &coretest.Parts{}); err == nil {
				t.Errorf("%s of an old message succeeded, want an error", action)
			}
		}
		list := w.Messages(to)
		if len(list) != 3 || list[0].Text != "hi" || len(list[0].Reactions) != 0 || list[2].ReplyTo != 0 {
			t.Errorf("the supergroup shows %+v, want three messages that were not changed and reply to none", list)
		}
		_ = stop()
	})
}

// TestMigrationKeepsButtons: buttons that a turn of the old group sends work in the
// supergroup.
func TestMigrationKeepsButtons(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		synctest.Wait() // the event is received only if Listen runs
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		old := place("telegram", basic, 0)
		for range 2 { // the refusal of the first names the supergroup
			if err := do(t, d, "message_telegram", old, `{"text":"x","buttons":[{"label":"Yes"},{"label":"See","url":"https://example.org/"}]}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Choose(t.Context(), &coretest.Parts{}, core.Sent{Path: old, Text: "Sure?"}, []core.Choice{{Label: "Confirm", Data: "confirm:1.1.1:y"}}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"Yes", "Yes", "confirm:1.1.1:y"} {
			w.Press(to, w.Messages(to)[i].ID, jay, 0)
			if e := in.Wait(t, i+2)[i+1]; e.Kind != core.KindPress || e.Data != want || e.Message.Path != place("telegram", to, 0) {
				t.Errorf("got %+v, want a press of %s in the supergroup", e, want)
			}
		}
		_ = stop()
	})
}

// do runs an action of the driver.
func do(t testing.TB, d *Driver, name string, at core.Path, payload string, parts *coretest.Parts) error {
	t.Helper()
	return doCtx(context.Background(), t, d, name, at, payload, parts)
}

// again sends a text and retries as a turn does.
func again(t testing.TB, d *Driver, at core.Path, text string, parts *coretest.Parts) error {
	t.Helper()
	return coretest.Again(t.Context(), func() error { return do(t, d, "message_telegram", at, fmt.Sprintf(`{"text":%q}`, text), parts) })
}

func doCtx(ctx context.Context, t testing.TB, d *Driver, name string, at core.Path, payload string,
	parts *coretest.Parts) error {
	t.Helper()
	for _, a := range d.Actions() {
		if a.Name == name {
			call := core.Call{Path: at, Author: core.Author{ID: "1000"}, Authors: []core.Author{{ID: "1000"}}, Payload: []byte(payload), Deliveries: parts}
			if a.Check != nil {
				if err := a.Check(ctx, call); err != nil {
					return err
				}
			}
			_, err := a.Do(ctx, call)
			return err
		}
	}
	t.Fatalf("no action %s", name)
	return nil
}

// TestSpokenOfAnAlbum: what is said in an album has the captions of all parts, without their code.
func TestSpokenOfAnAlbum(t *testing.T) {
	code := []any{map[string]any{"type": "code", "offset": 0, "length": 4}}
	for _, tc := range []struct {
		first, second []any // entities of the captions
		want          string
	}{{nil, nil, ""}, {code, nil, "     one\nAria two"}, {nil, code, "Aria one\n     two"}} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			in := &coretest.Inbox{}
			_, stop := w.run(t, in)
			for n, caption := range []string{"Aria one", "Aria two"} {
				entities := [][]any{tc.first, tc.second}[n]
				w.Say(group, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "1", "caption": caption, "caption_entities": entities,
					"photo": []any{map[string]any{"file_id": caption, "file_unique_id": caption, "width": 10, "height": 10}}}})
			}
			m := in.Wait(t, 1)[0].Message
			if m.Text != "Aria one\nAria two" || m.Spoken != tc.want {
				t.Errorf("got text %q and spoken %q, want %q", m.Text, m.Spoken, tc.want)
			}
			_ = stop()
		})
	}
}

// TestJoin: the first part of an album gets what it lacks from further parts, within the limit of foreign texts.
func TestJoin(t *testing.T) {
	part := func(id int64, m core.Message) item {
		return item{ids: []int64{id}, converted: converted{events: []core.Event{{Message: m}}}}
	}
	it := part(1, core.Message{Foreign: slices.Repeat([]core.Foreign{{Text: "first"}}, core.MaxForeign-1)})
	it.join(part(2, core.Message{Text: "two", Spoken: "2", Addressed: core.AddressedMention, Foreign: []core.Foreign{{}, {Text: "a"}, {Text: "b"}}}))
	it.join(part(3, core.Message{Addressed: core.AddressedReply}))
	m := it.events[0].Message
	if m.Text != "two" || m.Spoken != "2" || m.Addressed != core.AddressedMention || !slices.Equal(it.ids, []int64{1, 2, 3}) {
		t.Errorf("got %+v of the updates %d", m, it.ids)
	}
	if len(m.Foreign) != core.MaxForeign || m.Foreign[core.MaxForeign-1].Text != "a" {
		t.Errorf("got foreign texts %+v, want %d, the last one a", m.Foreign, core.MaxForeign)
	}
}

// TestFullAlbum: an album that cannot grow any more is received at once.
func TestFullAlbum(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		for n := range maxAlbum {
			file := fmt.Sprint(n)
			w.Say(jay, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "1",
				"photo": []any{map[string]any{"file_id": file, "file_unique_id": file, "width": 10, "height": 10}}}})
		}
		in := &coretest.Inbox{}
		began := time.Now()
		_, stop := w.run(t, in)
		m := in.Wait(t, 1)[0].Message
		if took := time.Since(began); len(m.Attachments) != maxAlbum || took >= albumQuiet {
			t.Errorf("got %d files after %s, want %d at once", len(m.Attachments), took, maxAlbum)
		}
		_ = stop()
	})
}

// TestRefusedAlbum is skipped with all of its parts, also if another update must wait.
func TestRefusedAlbum(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		var room atomic.Bool
		in := &coretest.Inbox{Fail: func(events []core.Event) error {
			for _, e := range events {
				switch {
				case strings.HasPrefix(e.Message.Text, "bad"):
					return core.ErrBadEvent
				case e.Message.Text == "later" && !room.Load():
					return core.ErrFull
				}
			}
			return nil
		}}
		for _, caption := range []string{"bad", "two", "three"} {
			w.Say(jay, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "1", "caption": caption,
				"photo": []any{map[string]any{"file_id": caption, "file_unique_id": caption, "width": 10, "height": 10}}}})
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "next"})
		w.Say(ann, ann, telegramtest.Saying{Text: "later"})
		_, stop := w.run(t, in)
		time.Sleep(5 * time.Minute)
		room.Store(true)
		time.Sleep(5 * time.Minute)
		got := messageTexts(in.Events())
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, []string{"later", "next"}) || w.Waiting() != 0 {
			t.Errorf("%q came in, %d wait", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestMessagesBesideAnAlbum: messages of other chats are received once each, and at once,
// while an album may still grow.
func TestMessagesBesideAnAlbum(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		received := map[string]int{}
		in := &coretest.Inbox{Fail: func(events []core.Event) error {
			for _, e := range events {
				received[e.Message.Text]++
			}
			return nil
		}}
		_, stop := w.run(t, in)
		for n := range 4 {
			w.Say(jay, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "1", "caption": "",
				"photo": []any{map[string]any{"file_id": fmt.Sprint(n), "file_unique_id": fmt.Sprint(n), "width": 10, "height": 10}}}})
			w.Say(group, ann, telegramtest.Saying{Text: fmt.Sprint("elsewhere ", n)})
			time.Sleep(400 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for n := range 4 {
			if text := fmt.Sprint("elsewhere ", n); received[text] != 1 {
				t.Errorf("%s was received %d times, want 1", text, received[text])
			}
		}
		if events := in.Events(); len(events) != 5 || w.Waiting() != 0 {
			t.Errorf("got %d events, want 5; %d updates unconfirmed, want 0", len(events), w.Waiting())
		}
		_ = stop()
	})
}

// TestDamagedForAWhile: an event that fails with ErrDamaged is skipped after driver.MaxDamaged
// tries, and not before. Later messages of its chat wait for it meanwhile.
func TestDamagedForAWhile(t *testing.T) {
	for times, want := range map[int][]string{
		1: {"elsewhere", "one", "two"}, driver.MaxDamaged - 1: {"elsewhere", "one", "two"}, driver.MaxDamaged: {"elsewhere", "two"},
	} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			triedAlone := 0
			in := &coretest.Inbox{Fail: func(events []core.Event) error {
				if len(events) == 0 {
					t.Error("the inbox received an empty batch")
				}
				if triedAlone >= times || !slices.Contains(messageTexts(events), "one") {
					return nil
				}
				if len(events) == 1 {
					triedAlone++
				}
				return core.ErrDamaged
			}}
			w.Say(jay, jay, telegramtest.Saying{Text: "one"})
			w.Push(`{"message":"poison"}`)
			w.Say(jay, jay, telegramtest.Saying{Text: "two"})
			w.Say(ann, ann, telegramtest.Saying{Text: "elsewhere"})
			_, stop := w.run(t, in)
			time.Sleep(time.Hour)
			w.Push(`{"message":"poison"}`)
			time.Sleep(time.Hour)
			if got := messageTexts(in.Events()); !slices.Equal(got, want) || w.Waiting() != 0 {
				t.Errorf("after %d failures got %q, want %q; %d updates unconfirmed, want 0", times, got, want, w.Waiting())
			}
			_ = stop()
		})
	}
}

// TestSkippedForItsOwnFault: the log names the error of the skipped update, not that of another one.
func TestSkippedForItsOwnFault(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{Fail: func(events []core.Event) error {
			switch texts := messageTexts(events); {
			case slices.Contains(texts, "one"):
				return core.ErrDamaged
			case slices.Contains(texts, "odd"):
				return errors.New("an I/O error")
			}
			return nil
		}}
		w.Say(jay, jay, telegramtest.Saying{Text: "one"})
		w.Say(ann, ann, telegramtest.Saying{Text: "odd"})
		w.Say(group, jay, telegramtest.Saying{Text: "elsewhere"})
		_, stop := w.run(t, in)
		time.Sleep(time.Hour)
		_ = stop()
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, "update skipped") && !strings.Contains(line, core.ErrDamaged.Error()) {
				t.Error(line)
			}
		}
		if !strings.Contains(w.log.String(), "update skipped") {
			t.Error("no update was skipped")
		}
	})
}

// TestConversionPanic: an update whose conversion panics is logged and skipped.
func TestConversionPanic(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	u := &update{ID: 1, Message: &message{ID: 1, Chat: chat{ID: group, Type: "supergroup"}, From: &user{ID: jay}, Text: "x"}}
	c := &converter{name: "telegram", places: d.places, now: time.Now, ahead: d.api.Ahead}
	for what, i := range map[string]*intake{"no converter": {d: d}, "no ranks": {d: d, convert: c}} {
		d.ranks = nil
		if got := i.convertSafely(t.Context(), u); len(got.events) > 0 {
			t.Errorf("%s: got %+v, want no events", what, got)
		}
	}
	d.ranks = newRanks(d)
	if got := (&intake{d: d, convert: c}).convertSafely(t.Context(), u); len(got.events) != 1 {
		t.Errorf("without a panic: got %+v, want one event", got)
	}
	if n := strings.Count(w.log.String(), "update skipped"); n != 2 {
		t.Errorf("got %d log lines about skipped updates, want 2", n)
	}
}

// TestPollingAgain: an outage is logged once. Polls are repeated with growing pauses until
// one succeeds.
func TestPollingAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		var broken atomic.Bool
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "getUpdates" && broken.Load() {
				return telegramtest.Fault{Kind: telegramtest.Internal}
			}
			return telegramtest.Fault{}
		})
		d, stop := w.run(t, &coretest.Inbox{})
		for n := range 2 {
			time.Sleep(time.Second)
			before := len(w.Calls("getUpdates"))
			broken.Store(true)
			w.Say(jay, jay, telegramtest.Saying{Text: "this ends the poll"})
			time.Sleep(time.Hour)
			calls := w.Calls("getUpdates")[before:]
			shortest, longest := time.Hour, time.Duration(0)
			for i := range calls[1:] {
				gap := calls[i+1].At.Sub(calls[i].At)
				shortest, longest = min(shortest, gap), max(longest, gap)
			}
			if shortest > 1600*time.Millisecond || longest < 30*time.Second || longest > 46*time.Second {
				t.Errorf("polled again after %s to %s, want pauses that grow from 1.6s at most to between 30s and 46s", shortest, longest)
			}
			broken.Store(false)
			time.Sleep(5 * time.Minute)
			if logged := strings.Count(w.log.String(), `level=WARN msg="no updates"`); logged != n+1 || d.Ready() != nil {
				t.Errorf("logged %d times, want %d; ready: %v", logged, n+1, d.Ready())
			}
		}
		_ = stop()
		if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Count(log, "level=WARN") != 2 {
			t.Errorf("want two warnings and no error in the log:\n%s", log)
		}
	})
}

// TestStoppedWhileReceiving: stopping while the inbox receives a batch leaves the batch
// unconfirmed and does not count as a failure.
func TestStoppedWhileReceiving(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		receiving := make(chan struct{})
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		_, stop := w.run(t, inboxFunc(func(ctx context.Context, _ ...core.Event) error {
			close(receiving)
			<-ctx.Done()
			return ctx.Err()
		}))
		<-receiving
		if err := stop(); err != nil || w.Waiting() != 1 {
			t.Errorf("Listen returned %v, want nil; %d updates unconfirmed, want 1", err, w.Waiting())
		}
		if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			t.Errorf("want no warning or error in the log:\n%s", log)
		}
	})
}

type inboxFunc func(context.Context, ...core.Event) error

// Receive implements core.Inbox.
func (f inboxFunc) Receive(ctx context.Context, events ...core.Event) error { return f(ctx, events...) }

// TestUpdateIDsRestartAfterAnAlbum: the ids of updates that were stored while an album grew
// are forgotten when it is complete, because later updates may have the same ids.
func TestUpdateIDsRestartAfterAnAlbum(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		time.Sleep(time.Second)
		for range 2 {
			w.Skip(500)
			w.Say(jay, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "1", "caption": "a picture",
				"photo": []any{map[string]any{"file_id": "f", "file_unique_id": "u", "width": 10, "height": 10}}}})
			w.Say(group, ann, telegramtest.Saying{Text: "elsewhere"})
			time.Sleep(time.Minute)
		}
		if got := messageTexts(in.Events()); len(got) != 4 || w.Waiting() != 0 {
			t.Errorf("got %q, want four messages; %d updates unconfirmed, want 0", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestAllDamaged: while no event at all can be stored, none is skipped.
func TestAllDamaged(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		var recovered atomic.Bool
		in := &coretest.Inbox{Fail: func([]core.Event) error {
			if recovered.Load() {
				return nil
			}
			return core.ErrDamaged
		}}
		w.Say(jay, jay, telegramtest.Saying{Text: "one"})
		w.Say(ann, ann, telegramtest.Saying{Text: "two"})
		_, stop := w.run(t, in)
		time.Sleep(time.Hour)
		recovered.Store(true)
		time.Sleep(time.Hour)
		if got := messageTexts(in.Events()); len(got) != 2 || w.Waiting() != 0 {
			t.Errorf("got %q, want one and two; %d updates unconfirmed, want 0", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestClockApart: the age of a message is right even if the clock of this machine is wrong.
func TestClockApart(t *testing.T) {
	for _, apart := range []time.Duration{-2 * time.Hour, -20 * time.Second, 0, 20 * time.Second, 2 * time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			clock := func() time.Time { return time.Now().Add(apart) }
			inBubble(t, func(o *Options) { o.Clock = clock }, func(t *testing.T, w *world) {
				w.Say(jay, jay, telegramtest.Saying{Text: "are you there?"})
				said := time.Now()
				time.Sleep(90 * time.Minute)
				in := &coretest.Inbox{}
				w.run(t, in)
				m := in.Wait(t, 1)[0].Message
				age := clock().Sub(m.SentAt())
				if off := age - time.Since(said); off.Abs() > time.Minute {
					t.Errorf("the message is %s old, which is wrong by %s", age, off)
				}
				if !m.Time.Equal(said.Truncate(time.Second)) || m.Ahead != apart.Round(time.Minute) {
					t.Errorf("sent at %s, %s ahead; want %s, %s", m.Time, m.Ahead, said, apart.Round(time.Minute))
				}
			})
		})
	}
}
