package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/markdown"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestBoundary: a character of several UTF-16 units at the limit of a message is not cut,
// and a text that fits is one message.
func TestBoundary(t *testing.T) {
	const family, flag, accent = "👨\u200d👩\u200d👧", "🇮🇹", "e\u0301"
	for _, piece := range []string{"😀", family, flag, accent, "ä"} {
		size := markdown.UTF16(piece)
		for _, limit := range []int{markup.MaxText, markup.MaxCaption} {
			for before := limit - size - 1; before <= limit; before++ {
				text := strings.Repeat("a", before) + piece
				list := markup.Parts(text, limit)
				whole, most := "", limit
				for _, p := range list {
					if n := markdown.UTF16(p.Source); n > most {
						t.Fatalf("%d a and %q: got a part of %d units, want at most %d", before, piece, n, most)
					}
					whole, most = whole+p.Source, markup.MaxText
				}
				if fits := before+size <= limit; fits != (len(list) == 1) || whole != text ||
					!strings.HasSuffix(list[len(list)-1].Source, piece) {
					t.Errorf("%d a and %q: got %d parts, the last of which is %.20q", before, piece, len(list), list[len(list)-1].Source)
				}
			}
		}
	}
}

// TestAlbumEdited: if a caption is edited before the album is complete, the album is received
// first, then the edit.
func TestAlbumEdited(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		first := 0
		for i, caption := range []string{"the lake", ""} {
			n := w.Say(group, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "9", "caption": caption,
				"photo": []any{map[string]any{"file_id": fmt.Sprint("f", i), "width": 1, "height": 1}}}})
			if i == 0 {
				first = n
			}
		}
		w.Push(fmt.Sprintf(`{"edited_message":{"message_id":%d,"date":1,"edit_date":2,"media_group_id":"9","caption":"the sea","chat":{"id":%d,"type":"supergroup"},`+
			`"from":{"id":1000,"first_name":"Jay"},"photo":[{"file_id":"f0","width":1,"height":1}]}}`, first, group))
		time.Sleep(10 * time.Second)
		events := in.Events()
		if len(events) != 2 || events[0].Kind != core.KindMessage || len(events[0].Message.Attachments) != 2 ||
			events[1].Kind != core.KindEdit ||
			events[1].Message.ID != events[0].Message.ID || events[1].Message.Text != "the sea" || w.Waiting() != 0 {
			t.Errorf("got %+v, want an album, then an edit; %d updates unconfirmed, want 0", events, w.Waiting())
		}
		_ = stop()
	})
}

// TestCaptionsEdited: an edit of any caption of a stored album replaces that caption. The others stay, and so does the
// command of the first one.
func TestCaptionsEdited(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		var ids []int
		for i, caption := range []string{"/look at the lake", "", "the hills"} {
			ids = append(ids, w.Say(group, jay, telegramtest.Saying{Extra: map[string]any{
				"media_group_id": "9", "caption": caption,
				"photo": []any{map[string]any{"file_id": fmt.Sprint("f", i), "width": 1, "height": 1}},
			}}))
		}
		stored := in.Wait(t, 1)[0]
		edit := func(part int, caption, want string) {
			t.Helper()
			before := len(in.Events())
			w.Push(fmt.Sprintf(`{"edited_message":{"message_id":%d,"date":1,"edit_date":2,`+
				`"media_group_id":"9","caption":%q,"chat":{"id":%d,"type":"supergroup"},"from":{"id":1000,"first_name":"Jay"},`+
				`"photo":[{"file_id":"f","width":1,"height":1}]}}`, ids[part], caption, group))
			e := in.Wait(t, before+1)[before]
			if e.Kind != core.KindEdit || e.Message.ID != stored.Message.ID || e.Message.Text != want ||
				e.Message.Attachments != nil || !reflect.DeepEqual(e.Command, stored.Command) {
				t.Errorf("after the edit of part %d: got %+v, want %q", part, e, want)
			}
		}
		edit(2, "the sea", "/look at the lake\nthe sea")
		edit(1, "the beach", "/look at the lake\nthe beach\nthe sea")
		edit(2, "", "/look at the lake\nthe beach")
		_ = stop()
	})
}

// TestPressedOnceAfterRestart: if the bot restarts before it has removed the buttons of a press, further presses are
// received as the same event.
func TestPressedOnceAfterRestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		w.Fail(func(c telegramtest.Call) (f telegramtest.Fault) {
			if c.Method == "editMessageReplyMarkup" {
				f.Kind = telegramtest.Refused
			}
			return f
		})
		for n := range 2 {
			d, stop := w.run(t, in)
			if n == 0 {
				payload := `{"text":"a","buttons":[{"label":"Yes"},{"label":"No"}]}`
				at := place("telegram", group, 0)
				if err := do(t, d, "message_telegram", at, payload, &coretest.Parts{}); err != nil {
					t.Fatal(err)
				}
			}
			query := w.Press(group, w.Messages(group)[0].ID, jay, n)
			w.Await(t, func() bool { return w.Answered(query) })
			_ = stop()
		}
		if events := in.Events(); len(events) != 1 || events[0].Data != "Yes" {
			t.Errorf("got %+v, want one press", events)
		}
	})
}

// TestPressAfterRestart: buttons that were sent before a restart still work, with and
// without data of their own.
func TestPressAfterRestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		at := place("telegram", forum, 7)
		for _, payload := range []string{`{"text":"a","buttons":[{"label":"Yes","data":"y"}]}`, `{"text":"b","buttons":[{"label":"Tell me more"}]}`} {
			if err := do(t, d, "message_telegram", at, payload, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
		}
		_ = stop()
		in := &coretest.Inbox{}
		d, stop = w.run(t, in)
		for _, m := range w.Messages(forum) {
			w.Press(forum, m.ID, jay, 0)
		}
		var said []string
		for _, e := range in.Wait(t, 2) {
			said = append(said, e.Message.Path.String()+" "+e.Data)
			if _, waits := d.choices.Take(strings.TrimPrefix(e.Message.ID, pressMark)); waits {
				t.Errorf("press %s was kept for a whisper", e.Message.ID)
			}
		}
		if want := []string{at.String() + " Yes", at.String() + " Tell me more"}; !slices.Equal(said, want) {
			t.Errorf("got presses %q, want %q", said, want)
		}
		_ = stop()
	})
}

// TestBlocked: when a user blocks the bot, that is received as an event, messages fail at
// once with a text for users, and neither typing nor drafts are repeated.
func TestBlocked(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.Change(jay, func(c *telegramtest.Chat) { c.Gone = "Forbidden: bot was blocked by the user" })
		w.Push(`{"my_chat_member":{"chat":{"id":1000,"type":"private"},"from":{"id":1000},"date":5,"old_chat_member":{"user":{"id":110201543},"status":"member"},"new_chat_member":{"user":{"id":110201543},"status":"kicked"}}}`)
		if e := in.Wait(t, 1)[0]; e.Kind != core.KindMembership || e.Data != "blocked" {
			t.Errorf("got %+v, want a membership event: blocked", e)
		}
		began := time.Now()
		var e *core.Error
		err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
		if !errors.As(err, &e) || e.Kind != core.Forbidden || !strings.Contains(e.Text, "blocked") || time.Since(began) > time.Second {
			t.Errorf("got %v after %v, want a forbidden request at once", err, time.Since(began))
		}
		if err := d.Tell(t.Context(), place("telegram", jay, 0), "x"); err == nil {
			t.Error("a message outside of turns was sent to a user who blocked the bot")
		}
		for n := range 5 {
			d.Draft(place("telegram", jay, 0), strings.Repeat("half a text ", n+1))
			time.Sleep(2 * time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		d.ShowTyping(ctx, place("telegram", jay, 0))
		cancel()
		if n := len(w.Calls("sendChatAction")) + len(w.Calls("sendMessageDraft")); n > 2 {
			t.Errorf("got %d typing actions and drafts, want at most 2", n)
		}
		_ = stop()
	})
}

// TestLongWaitElsewhere: a rate limit of an hour for one chat delays nothing in other chats.
func TestLongWaitElsewhere(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 3600})
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := doCtx(short, t, d, "message_telegram", place("telegram", group, 0), `{"text":"x"}`, &coretest.Parts{}); err == nil {
			t.Fatal("the message was sent, want a rate limit")
		}
		began := time.Now()
		for _, chat := range []int64{jay, ann, forum, basic} {
			at := place("telegram", chat, 0)
			d.Draft(at, "grows")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			d.ShowTyping(ctx, at)
			cancel()
			if err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
		}
		w.Say(group, jay, telegramtest.Saying{Text: "still heard"})
		in.Wait(t, 1)
		if took := time.Since(began); took > 20*time.Second || w.Early() != 0 {
			t.Errorf("took %v with %d calls before the end of the limit, want at most 20s and none", took, w.Early())
		}
		_ = stop()
	})
}

// TestStopUnderLoad: stopping while everything happens at once ends all work, three times
// over. The bubble reports goroutines that are left behind.
func TestStopUnderLoad(t *testing.T) {
	alter := func(o *Options) { o.Config.Acknowledge = "👀" }
	inBubble(t, alter, func(t *testing.T, w *world) {
		w.Delay(func(telegramtest.Call) time.Duration { return 300 * time.Millisecond })
		for run := range 3 {
			in := &coretest.Inbox{}
			d, stop := w.run(t, in)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i, chat := range []int64{jay, ann, group, forum, basic} {
				at := place("telegram", chat, 0)
				id := w.Say(chat, jay, telegramtest.Saying{Text: "@" + telegramtest.BotName + " hi"})
				all.Go(func() { d.ShowTyping(ctx, at) })
				all.Go(func() {
					for n := range 20 {
						d.Draft(at, strings.Repeat("word ", n+1))
						time.Sleep(100 * time.Millisecond)
					}
					d.Observe(watch.TurnEnd{Turn: core.TurnID{Path: at, Seq: uint64(run + 1)},
						Messages: []string{fmt.Sprint(id)}})
				})
				all.Go(func() {
					time.Sleep(time.Duration(i) * 400 * time.Millisecond)
					_ = doCtx(ctx, t, d, "message_telegram", at, `{"text":"done","buttons":[{"label":"More"}]}`, &coretest.Parts{})
				})
			}
			time.Sleep(1500 * time.Millisecond)
			for _, m := range w.Messages(jay) {
				if len(m.Markup) > 0 {
					w.Press(jay, m.ID, jay, 0)
				}
			}
			time.Sleep(time.Duration(run) * 200 * time.Millisecond)
			var ended atomic.Bool
			begun := d.background(func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended.Store(true)
			})
			if err := stop(); err != nil || !begun || !ended.Load() {
				t.Errorf("background work began: %v, ended: %v; Listen returned %v", begun, ended.Load(), err)
			}
			cancel()
			all.Wait()
		}
		synctest.Wait()
		if strings.Contains(w.log.String(), telegramtest.Token[10:]) {
			t.Error("the log contains the token")
		}
	})
}

// TestRedirect: redirects are not followed, because the address contains the token.
func TestRedirect(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		_, _ = io.WriteString(w, `{"ok":true,"result":{"id":1,"file_path":"a"}}`)
	}))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/getFile") {
			_, _ = io.WriteString(w, `{"ok":true,"result":{"file_path":"a"}}`)
			return
		}
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	d, err := New(baseOptions(redirecting.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer d.api.Close()
	if err := d.api.Try(t.Context(), &botapi.Request{Method: "getMe"}); err == nil {
		t.Error("the call followed a redirect")
	}
	if data, err := d.Fetch(t.Context(), core.Attachment{Ref: "a"}, 100); err == nil {
		t.Errorf("fetched %q after a redirect", data)
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect, want 0", n)
	}
}

// TestChatCacheRefresh: a cached value is requested again when it is old, also if that could
// not run in the background at first.
func TestChatCacheRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, room := int64(0), false
		l := chatCache[int64]{chats: map[int64]*cachedValue[int64]{}}
		l.ask = func(context.Context, int64) (int64, error) { asked++; return asked, nil }
		l.background = func(f func(context.Context)) bool {
			if room {
				f(t.Context())
			}
			return room
		}
		check := func(value, times int64) {
			t.Helper()
			if got := l.get(t.Context(), group); got != value || asked != times {
				t.Errorf("got %d after %d requests, want %d after %d", got, asked, value, times)
			}
		}
		check(1, 1)
		time.Sleep(rankTTL + time.Second)
		check(1, 1)
		room = true
		time.Sleep(rankRetry + time.Second)
		check(1, 2)
		check(2, 2)
	})
}

// TestChatKeyOf: a path names a chat, a topic, or the private chat with a user, in one spelling each.
func TestChatKeyOf(t *testing.T) {
	user, err := core.MustPath("telegram").Person("5")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[core.Path]chatKey{
		core.MustPath("telegram/5"):      {chat: 5},
		core.MustPath("telegram/-100"):   {chat: -100},
		core.MustPath("telegram/-100/7"): {chat: -100, thread: 7},
		core.MustPath("telegram/-100/1"): {chat: -100},
		user:                             {chat: 5},
		{}:                               {}, core.MustPath("telegram"): {}, core.MustPath("discord/5"): {},
		core.MustPath("telegram/x"): {}, core.MustPath("telegram/05"): {}, core.MustPath("telegram/0"): {},
		core.MustPath("telegram/-100/0"): {}, core.MustPath("telegram/-100/-7"): {}, core.MustPath("telegram/-100/7/8"): {},
	} {
		got, err := chatKeyOf("telegram", path)
		if got != want || (err == nil) != (want != chatKey{}) {
			t.Errorf("%s: got %+v, %v, want %+v", path, got, err, want)
		}
	}
}

// TestNoBotAPI: a server that answers, but not as the Bot API does, is an error at once.
func TestNoBotAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"ok":true,"result":true}`))
	}))
	defer server.Close()
	d, err := New(baseOptions(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer d.api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := d.Listen(ctx, nil); err == nil || ctx.Err() != nil {
		t.Errorf("Listen returned %v, want an error before the timeout; %v", err, ctx.Err())
	}
}
