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
	"synthbot/core/secret"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/telegramtest"
)

// bubble runs a test in fake time, with a platform that needs no network.
func bubble(t *testing.T, alter func(*Options), test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		server, stop := telegramtest.InMemory()
		t.Cleanup(stop)
		test(t, inhabit(&world{Server: server, alter: alter}))
	})
}

// run listens within a bubble; the returned function ends it.
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

func TestPoisonIsLeftBehind(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		w.Say(jay, jay, telegramtest.Saying{Text: "before"})
		w.Push(`{"message":{"message_id":"poison","date":1,"chat":{"id":1000,"type":"private"}}}`)
		w.Push(`{"message":{"message_id":1,"date":"poison","chat":[]}}`)
		w.Say(jay, jay, telegramtest.Saying{Text: "after"})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		got := messageTexts(in.Wait(t, 2))
		synctest.Wait()
		if !slices.Equal(got, []string{"before", "after"}) || w.Waiting() != 0 {
			t.Errorf("%q came in, %d updates wait", got, w.Waiting())
		}
		if n := strings.Count(w.log.String(), "update skipped"); n != 2 {
			t.Errorf("%d are reported", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoNumber leaves behind, without haste, what cannot even be confirmed.
func TestNoNumber(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "before"})
		w.Push(`[]`)
		time.Sleep(time.Minute)
		if n := len(w.Calls("getUpdates")); n > 100 || w.Waiting() != 1 {
			t.Errorf("asked %d times in a minute, %d wait", n, w.Waiting())
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "after"})
		time.Sleep(2 * time.Second)
		if got := messageTexts(in.Events()); !slices.Equal(got, []string{"before", "after"}) || w.Waiting() != 0 {
			t.Errorf("%q came in, %d updates wait", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestUnconfirmed sees an update confirmed only after it was taken in.
func TestUnconfirmed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		in := &coretest.Inbox{Fail: func([]core.Event) error { <-hold; return nil }}
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		_, stop := w.run(t, in)
		time.Sleep(time.Minute)
		if w.Waiting() != 1 {
			t.Error("confirmed before it was taken in")
		}
		close(hold)
		time.Sleep(time.Second)
		if w.Waiting() != 0 {
			t.Error("not confirmed")
		}
		_ = stop()
	})
}

// TestNumbersRestart is what happens after a week of silence, which a few polls
// mean.
func TestNumbersRestart(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		w.Say(jay, jay, telegramtest.Saying{Text: "high"})
		in.Wait(t, 1)
		time.Sleep(10 * time.Minute)
		w.Skip(1000)
		w.Say(jay, jay, telegramtest.Saying{Text: "low"})
		if got := messageTexts(in.Wait(t, 2)); got[1] != "low" {
			t.Errorf("%q came in", got)
		}
		_ = stop()
	})
}

// TestBadEvent leaves behind what can never be taken in, also where it comes alone,
// and nothing else, however often that fails.
func TestBadEvent(t *testing.T) {
	for text, refusal := range map[string]error{"bad": core.ErrBadEvent, "broken": core.ErrDamaged, "large": core.ErrFull, "odd": errors.New("an I/O error")} {
		bubble(t, nil, func(t *testing.T, w *world) {
			var well atomic.Bool
			in := &coretest.Inbox{Fail: func(events []core.Event) error {
				for _, e := range events {
					if e.Message.Text == text && !well.Load() {
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
			well.Store(text == "large" || text == "odd")
			w.Say(jay, jay, telegramtest.Saying{Text: "three"})
			time.Sleep(10 * time.Minute)
			want := []string{"one", "two", "three", "elsewhere"}
			if well.Load() {
				want = append(want, text)
			}
			got := messageTexts(in.Events())
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || w.Waiting() != 0 {
				t.Errorf("%v: %q came in, %d wait", refusal, got, w.Waiting())
			}
			if text == "bad" {
				w.Say(jay, jay, telegramtest.Saying{Text: text}) // alone
				time.Sleep(time.Minute)
				if w.Waiting() != 0 {
					t.Error("a bad event that comes alone waits for ever")
				}
				if n := strings.Count(w.log.String(), "update skipped: it cannot be stored"); n != 2 {
					t.Errorf("%d are reported", n)
				}
			}
			_ = stop()
		})
	}
}

// TestAlbums joins parts, also those that come late, and keeps what follows in
// its place behind them.
func TestAlbums(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%q came in, want %q", got, want)
		}
		if w.Waiting() != 0 {
			t.Errorf("%d updates wait", w.Waiting())
		}
		_ = stop()
	})
}

func TestWrongToken(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Config.Token = secret.New("1:wrong") })
	err := w.driver(t).Listen(t.Context(), &coretest.Inbox{})
	if err == nil || !strings.Contains(err.Error(), "check the token") || strings.Contains(err.Error(), "1:wrong") {
		t.Errorf("ended with %v", err)
	}
}

// TestTwoReaders tells admins once in a while, and goes on when the other one has gone.
func TestTwoReaders(t *testing.T) {
	var told atomic.Int32
	alter := func(o *Options) {
		o.Admin = func(text string) {
			told.Add(1)
			if !strings.Contains(text, "another process") {
				t.Errorf("admins were told %q", text)
			}
		}
	}
	bubble(t, alter, func(t *testing.T, w *world) {
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
		if told.Load() != 1 {
			t.Errorf("admins were told %d times", told.Load())
		}
		time.Sleep(2*time.Hour + 20*time.Second)
		read()
		if told.Load() != 2 {
			t.Errorf("after a while admins were told %d times", told.Load())
		}
		other.api.Close()
		w.Say(jay, jay, telegramtest.Saying{Text: "still here"})
		in.Wait(t, 2)
		_ = stop()
	})
}

// TestDeaf gives a poll up that the server never answers.
func TestDeaf(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Error("deaf")
		}
		_ = stop()
	})
}

// TestPollFaults lets getUpdates fail in every way.
func TestPollFaults(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%q came in", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(w.log.String(), telegramtest.Token[10:]) {
			t.Error("the token shows in the log")
		}
	})
}

// TestUnreachable starts before the network is there.
func TestUnreachable(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Error("never came up")
		}
		_ = stop()
	})
}

func TestMigration(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("the supergroup shows %+v", list)
		}
		if list := parts.Sent(); len(list) != 1 || list[0].ID != "" {
			t.Errorf("at the old path %+v was sent", list)
		}
		e := in.Wait(t, 1)[0]
		if e.Kind != core.KindMigration || e.Message.Path != place("telegram", basic, 0) || e.To != place("telegram", to, 0) {
			t.Errorf("event %+v", e)
		}
		before := len(w.Calls("sendMessage"))
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"again"}`, &coretest.Parts{}); err != nil || len(w.Calls("sendMessage")) != before+1 {
			t.Errorf("%v; the old number was used again", err)
		}
		// Numbers of messages of the old group are those of others in the new one.
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"reply","reply_to_message_id":1}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		for action, payload := range map[string]string{"edit": `{"message_id":1,"text":"changed"}`, "delete": `{"message_id":2}`, "react": `{"message_id":1,"emoji":"👍"}`} {
			if err := do(t, d, action+"_telegram", place("telegram", basic, 0), payload, &coretest.Parts{}); err == nil {
				t.Errorf("%s meets another message", action)
			}
		}
		list := w.Messages(to)
		if len(list) != 3 || list[0].Text != "hi" || len(list[0].Reactions) != 0 || list[2].ReplyTo != 0 {
			t.Errorf("the supergroup shows %+v", list)
		}
		_ = stop()
	})
}

// TestMigrationKeepsButtons: those of a turn that began in the old group work in the
// supergroup.
func TestMigrationKeepsButtons(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		synctest.Wait() // the event is received only if Listen runs
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		old := place("telegram", basic, 0)
		for range 2 { // the first is refused, and tells of the supergroup
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
				t.Errorf("pressed: %+v", e)
			}
		}
		_ = stop()
	})
}

// do carries an action out.
func do(t testing.TB, d *Driver, name string, at core.Path, payload string, parts *coretest.Parts) error {
	t.Helper()
	return doCtx(context.Background(), t, d, name, at, payload, parts)
}

// again sends a text as a turn does.
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

// TestRefusedAlbum is skipped with all of its parts, also if another update must wait.
func TestRefusedAlbum(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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

// TestBehindAnAlbum: what follows an album that may still grow is taken in, once.
func TestBehindAnAlbum(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		handed := map[string]int{}
		in := &coretest.Inbox{Fail: func(events []core.Event) error {
			for _, e := range events {
				handed[e.Message.Text]++
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
			if text := fmt.Sprint("elsewhere ", n); handed[text] != 1 {
				t.Errorf("%s was handed in %d times", text, handed[text])
			}
		}
		if events := in.Events(); len(events) != 5 || w.Waiting() != 0 {
			t.Errorf("%d events, %d wait", len(events), w.Waiting())
		}
		_ = stop()
	})
}

// TestDamagedForAWhile: an event that finds the store damaged is left behind after the
// third time, and not before; what follows it in its place waits for it meanwhile.
func TestDamagedForAWhile(t *testing.T) {
	for times, want := range map[int][]string{
		1: {"elsewhere", "one", "two"}, maxDamaged - 1: {"elsewhere", "one", "two"}, maxDamaged: {"elsewhere", "two"},
	} {
		bubble(t, nil, func(t *testing.T, w *world) {
			alone := 0
			in := &coretest.Inbox{Fail: func(events []core.Event) error {
				if len(events) == 0 {
					t.Error("nothing is taken in")
				}
				if alone >= times || !slices.Contains(messageTexts(events), "one") {
					return nil
				}
				if len(events) == 1 {
					alone++
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
				t.Errorf("after %d times %q came in, %d wait", times, got, w.Waiting())
			}
			_ = stop()
		})
	}
}

// TestSkippedForItsOwnFault: the log gives the error of the skipped update, not that of another one.
func TestSkippedForItsOwnFault(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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

// TestStumbling leaves an update behind that makes the driver panic.
func TestStumbling(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	u := &update{ID: 1, Message: &message{ID: 1, Chat: chat{ID: group, Type: "supergroup"}, From: &user{ID: jay}, Text: "x"}}
	c := &converter{name: "telegram", places: d.places, now: time.Now, ahead: d.api.ClockAhead}
	for what, i := range map[string]*intake{"no converter": {d: d}, "no ranks": {d: d, convert: c}} {
		d.ranks = nil
		if got := i.convertSafely(t.Context(), u); len(got.events) > 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	d.ranks = newRanks(d)
	if got := (&intake{d: d, convert: c}).convertSafely(t.Context(), u); len(got.events) != 1 {
		t.Errorf("without a panic: %+v", got)
	}
	if n := strings.Count(w.log.String(), "update skipped"); n != 2 {
		t.Errorf("%d are reported", n)
	}
}

// TestPollingAgain: failures are reported once while they stay the same, and asked again
// less and less often, until something works.
func TestPollingAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
				t.Errorf("asked again after %s to %s", shortest, longest)
			}
			broken.Store(false)
			time.Sleep(5 * time.Minute)
			if said := strings.Count(w.log.String(), `level=WARN msg="no updates"`); said != n+1 || d.Ready() != nil {
				t.Errorf("reported %d times; ready: %v", said, d.Ready())
			}
		}
		_ = stop()
		if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Count(log, "level=WARN") != 2 {
			t.Errorf("%s", log)
		}
	})
}

// TestStoppedWhileTakingIn: an end in the middle does not count as a failure.
func TestStoppedWhileTakingIn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		taking := make(chan struct{})
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		_, stop := w.run(t, inboxFunc(func(ctx context.Context, _ ...core.Event) error {
			close(taking)
			<-ctx.Done()
			return ctx.Err()
		}))
		<-taking
		if err := stop(); err != nil || w.Waiting() != 1 {
			t.Errorf("%v, %d wait", err, w.Waiting())
		}
		if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			t.Errorf("%s", log)
		}
	})
}

type inboxFunc func(context.Context, ...core.Event) error

// Receive implements core.Inbox.
func (f inboxFunc) Receive(ctx context.Context, events ...core.Event) error { return f(ctx, events...) }

// TestNumbersRestartAfterAnAlbum: what was taken in beside an album is known only until
// that is complete; the same number may mean another update later.
func TestNumbersRestartAfterAnAlbum(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%q came in, %d wait", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestAllDamaged: where nothing can be taken in, no event is to blame.
func TestAllDamaged(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		var well atomic.Bool
		in := &coretest.Inbox{Fail: func([]core.Event) error {
			if well.Load() {
				return nil
			}
			return core.ErrDamaged
		}}
		w.Say(jay, jay, telegramtest.Saying{Text: "one"})
		w.Say(ann, ann, telegramtest.Saying{Text: "two"})
		_, stop := w.run(t, in)
		time.Sleep(time.Hour)
		well.Store(true)
		time.Sleep(time.Hour)
		if got := messageTexts(in.Events()); len(got) != 2 || w.Waiting() != 0 {
			t.Errorf("%q came in, %d wait", got, w.Waiting())
		}
		_ = stop()
	})
}

// TestClockApart: however wrong this machine's clock is, the age of a message is what it
// is by the platform's.
func TestClockApart(t *testing.T) {
	for _, apart := range []time.Duration{-2 * time.Hour, -20 * time.Second, 0, 20 * time.Second, 2 * time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			clock := func() time.Time { return time.Now().Add(apart) }
			bubble(t, func(o *Options) { o.Clock = clock }, func(t *testing.T, w *world) {
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
