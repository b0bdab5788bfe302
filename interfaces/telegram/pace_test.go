package telegram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// paced makes a driver keep the platform's rate limits.
func paced(o *Options) { o.Config.Pace = "platform" }

// TestPace: when far too many messages and typing actions are sent at once, the driver keeps
// the platform's rate limits, and all messages arrive in order.
func TestPace(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		const chats, each = 40, 6
		for i := range chats {
			w.AddPerson(telegramtest.Person{ID: int64(2000 + i), Name: "P"})
		}
		d, stop := w.run(t, &coretest.Inbox{})
		began := time.Now()
		var all sync.WaitGroup
		send := func(chat int64, n int) {
			all.Go(func() {
				for i := range n {
					if err := do(t, d, "message_telegram", place("telegram", chat, 0), fmt.Sprintf(`{"text":"%d"}`, i), &coretest.Parts{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		typing, endTyping := context.WithCancel(t.Context())
		for i := range chats {
			send(int64(2000+i), each)
			all.Go(func() { d.ShowTyping(typing, place("telegram", int64(2000+i), 0)) })
		}
		send(group, 50)
		all.Go(func() { time.Sleep(time.Minute); endTyping() })
		all.Wait()
		took := time.Since(began)
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform's rate limit was exceeded")
			}
		}
		for i := range chats {
			if got := shownTexts(w, int64(2000+i)); !slices.IsSorted(got) || len(got) != each {
				t.Fatalf("chat %d: got %q, want %d messages in order", i, got, each)
			}
		}
		if n := len(w.Messages(group)); n != 50 || took < 2*time.Minute || took > 4*time.Minute {
			t.Errorf("got %d messages in the group after %v, want 50 after 2 to 4 minutes", n, took)
		}
		_ = stop()
	})
}

func shownTexts(w *world, chat int64) (list []string) {
	for _, m := range w.Messages(chat) {
		list = append(list, m.Text)
	}
	return list
}

// TestBurst: a few messages are sent at once.
func TestBurst(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		began := time.Now()
		for range 3 {
			if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("three messages took %v, want at most 100ms", took)
		}
		_ = stop()
	})
}

// TestWaitIsObeyed: after a 429 for a chat, nothing is sent there until the limit ends, and
// then in order. Other chats do not wait.
func TestWaitIsObeyed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 30})
		began := time.Now()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if err := do(t, d, "message_telegram", place("telegram", jay, 0), fmt.Sprintf(`{"text":"%d"}`, i), &coretest.Parts{}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(5 * time.Second)
		if err := do(t, d, "message_telegram", place("telegram", ann, 0), `{"text":"meanwhile"}`, &coretest.Parts{}); err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("another chat: %v after %v, want no wait", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		d.ShowTyping(ctx, place("telegram", jay, 0))
		cancel()
		all.Wait()
		if got := shownTexts(w, jay); !slices.Equal(got, []string{"0", "1", "2"}) || w.Early() != 0 || time.Since(began) < 30*time.Second {
			t.Errorf("got %q after %v and %d calls before the end of the limit, want 0, 1, 2 after 30s and none", got, time.Since(began), w.Early())
		}
		_ = stop()
	})
}

// TestWaitForAll: a 429 for a second chat shows that the limit applies to all chats.
func TestWaitForAll(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 60, Global: true})
		var all sync.WaitGroup
		for i, chat := range []int64{jay, ann, group, forum} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if err := do(t, d, "message_telegram", place("telegram", chat, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if w.Early() > 1 { // the second chat finds out
			t.Errorf("got %d calls before the end of the limit, want at most 1", w.Early())
		}
		_ = stop()
	})
}

// TestWaitSurvives: a rate limit is remembered over a restart.
func TestWaitSurvives(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 60})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		sent := make(chan error, 1)
		go func() {
			sent <- doCtx(ctx, t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
		}()
		time.Sleep(time.Second)
		cancel()
		if err := <-sent; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled wait: got %v, want %v", err, context.Canceled)
		}
		_ = stop()
		d, stop = w.run(t, &coretest.Inbox{})
		began := time.Now()
		if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); w.Early() != 0 || took < 50*time.Second || took > 65*time.Second {
			t.Errorf("sent after %v with %d calls before the end of the limit, want 50s to 65s and none", took, w.Early())
		}
		_ = stop()
	})
}

// TestWaitTooLong: a call fails at once if the rate limit ends after the caller's deadline.
func TestWaitTooLong(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 3600})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := doCtx(ctx, t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Temporary || e.After != time.Hour || time.Since(began) > time.Second {
			t.Errorf("got %v after %v, want a temporary error at once, to be retried in an hour", err, time.Since(began))
		}
		_ = stop()
	})
}

// TestWaitTooLongForAnswers: an answer that cannot wait for the end of a rate limit fails as
// unreachable, so that the core retries it later, also if another call waits before it.
func TestWaitTooLongForAnswers(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		at, parts := place("telegram", jay, 0), &coretest.Parts{}
		id := w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 3600})
		tries := 0
		for began := time.Now(); ; tries++ {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			err := doCtx(ctx, t, d, "message_telegram", at, `{"text":"x"}`, parts)
			cancel()
			if err == nil {
				break
			}
			var e *core.Error
			if !errors.Is(err, core.ErrAway) || !errors.As(err, &e) || e.Kind != core.Temporary ||
				time.Since(began) > 2*time.Hour {
				t.Fatalf("after %v: got %v, want an unreachable platform", time.Since(began), err)
			}
			if tries == 1 {
				go func() { _ = d.send.setReaction(context.Background(), chatKey{chat: jay}, int64(id), "👍") }()
			}
			time.Sleep(30 * time.Second)
		}
		if n := len(w.Calls("sendMessage")); n != 2 || w.Early() != 0 || tries < 5 {
			t.Errorf("got %d calls, %d before the end of the limit, after %d tries; want 2, 0 and at least 5", n, w.Early(), tries)
		}
		synctest.Wait()
		_ = stop()
	})
}

// TestPriority: messages that wait are sent in the order of their priority.
func TestPriority(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 10})
		var all sync.WaitGroup
		for i, p := range []string{"normal", "low", "normal", "high"} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := do(t, d, "message_telegram", place("telegram", jay, 0), fmt.Sprintf(`{"text":"%d %s","priority":"%s"}`, i, p, p), &coretest.Parts{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := strings.Join(shownTexts(w, jay), ","); got != "0 normal,3 high,2 normal,1 low" {
			t.Errorf("got %s, want the high one first and the low one last", got)
		}
		_ = stop()
	})
}

// TestSendFaults: a message arrives after any fault. It arrives twice only if the platform
// had sent it before the fault.
func TestSendFaults(t *testing.T) {
	for kind, want := range map[telegramtest.FaultKind]int{
		telegramtest.Internal: 1, telegramtest.BadGateway: 1, telegramtest.Unavailable: 1, telegramtest.Reset: 1,
		telegramtest.Hang: 1,
		telegramtest.Cut:  1, telegramtest.ResetAfter: 2, telegramtest.HangAfter: 2, telegramtest.CutAfter: 2,
	} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", telegramtest.Fault{Kind: kind})
			parts := &coretest.Parts{}
			if err := again(t, d, place("telegram", jay, 0), "x", parts); err != nil {
				t.Errorf("fault %d: %v", kind, err)
			}
			list := w.Messages(jay)
			if len(list) != want || parts.Sent()[0].ID != fmt.Sprint(list[len(list)-1].ID) {
				t.Errorf("fault %d: got %d messages, want %d, the last of them journalled", kind, len(list), want)
			}
			_ = stop()
		})
	}
}

// TestLostReplies: if several responses in a row are lost, a message is sent three times at
// most. Then its outcome is unknown.
func TestLostReplies(t *testing.T) {
	for _, tc := range []struct {
		kind   telegramtest.FaultKind
		lost   int
		want   int
		unsure bool
	}{
		{telegramtest.Reset, 2, 1, false}, {telegramtest.Hang, 2, 1, false}, {telegramtest.Internal, 2, 1, false},
		{telegramtest.Reset, 3, 0, true}, {telegramtest.Reset, 9, 0, true},
		{telegramtest.ResetAfter, 2, 3, false}, {telegramtest.CutAfter, 3, 3, true},
		{telegramtest.ResetAfter, 9, 3, true},
	} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", slices.Repeat([]telegramtest.Fault{{Kind: tc.kind}}, tc.lost)...)
			err := again(t, d, place("telegram", jay, 0), "x", &coretest.Parts{})
			var e *core.Error
			if unsure := errors.As(err, &e) && e.Kind == core.Unsure; unsure != tc.unsure || !unsure && err != nil {
				t.Errorf("%+v: got %v", tc, err)
			}
			if n := len(w.Messages(jay)); n != tc.want {
				t.Errorf("%+v: got %d messages", tc, n)
			}
			_ = stop()
		})
	}
}

// TestResetsForAWhile: during an outage, a message that may have arrived is not sent again.
func TestResetsForAWhile(t *testing.T) {
	for _, kind := range []telegramtest.FaultKind{telegramtest.Reset, telegramtest.ResetAfter} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			until := time.Now().Add(10 * time.Minute)
			w.Fail(func(telegramtest.Call) telegramtest.Fault {
				if time.Now().After(until) {
					return telegramtest.Fault{}
				}
				return telegramtest.Fault{Kind: kind}
			})
			if err := again(t, d, place("telegram", jay, 0), "x", &coretest.Parts{}); err != nil {
				t.Errorf("fault %d: %v", kind, err)
			}
			if n := len(w.Calls("sendMessage")); n != 2 {
				t.Errorf("fault %d: sent %d times, want 2", kind, n)
			}
			_ = stop()
		})
	}
}

// TestGivesUp: a call that may have succeeded is not repeated at once. Other failed calls are
// repeated for a while and then fail with a text for users.
func TestGivesUp(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		for fault, want := range map[telegramtest.Fault]struct {
			calls   int
			unknown bool
		}{
			{Kind: telegramtest.ResetAfter}: {1, true}, {Kind: telegramtest.BadGateway}: {7, false},
			{Kind: telegramtest.Refused, Code: 504, Text: "Gateway Timeout"}:                        {1, true},
			{Kind: telegramtest.Internal}:                                                           {1, true},
			{Kind: telegramtest.Refused, Code: 403, Text: "Forbidden: bot was blocked by the user"}: {1, false},
		} {
			before := len(w.Calls("sendMessage"))
			w.Fail(func(c telegramtest.Call) telegramtest.Fault {
				if c.Method == "sendMessage" {
					return fault
				}
				return telegramtest.Fault{}
			})
			err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
			var e *core.Error
			if n := len(w.Calls("sendMessage")) - before; n != want.calls || !errors.As(err, &e) || e.Text == "" || errors.Is(err, core.ErrUnknownOutcome) != want.unknown {
				t.Errorf("fault %+v: got %d calls, %v; want %+v", fault, n, err, want)
			}
			if e != nil && (strings.Contains(e.Text, "sendMessage") || strings.Contains(err.Error(), telegramtest.Token[10:])) {
				t.Errorf("error %q names a method or the token", err)
			}
		}
		_ = stop()
	})
}

// TestUnreachablePlatform: while the platform is unreachable or down, a message that was
// certainly not sent fails as one to be sent later.
func TestUnreachablePlatform(t *testing.T) {
	var down atomic.Bool
	cut := func(o *Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return nil, errors.New("no route to host")
			}
			return dial(ctx, network, address)
		}
	}
	inBubble(t, cut, func(t *testing.T, w *world) {
		d, at := w.driver(t), place("telegram", jay, 0)
		for _, tc := range []struct {
			down  bool
			fault telegramtest.FaultKind
			want  bool
		}{{true, telegramtest.None, true}, {false, telegramtest.ResetAfter, false},
			{false, telegramtest.BadGateway, true}, {false, telegramtest.Unavailable, true},
			{false, telegramtest.Internal, false}} {
			down.Store(tc.down)
			w.Fail(func(telegramtest.Call) telegramtest.Fault { return telegramtest.Fault{Kind: tc.fault} })
			err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{})
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != core.Temporary || errors.Is(err, core.ErrAway) != tc.want {
				t.Errorf("%+v: got %v", tc, err)
			}
		}
	})
}

// TestTyping: typing is shown again and again until the context ends, for a limited time.
func TestTyping(t *testing.T) {
	inBubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.run(t, &coretest.Inbox{})
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 8))
		cancel()
		time.Sleep(time.Minute)
		calls := w.Calls("sendChatAction")
		if len(calls) != 5 || calls[0].Params["message_thread_id"] != "8" {
			t.Errorf("got %d typing actions, want 5 in topic 8: %+v", len(calls), calls)
		}
		w.Say(forum, jay, telegramtest.Saying{Text: "in General"})
		time.Sleep(time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 0))
		cancel()
		if calls := w.Calls("sendChatAction"); len(calls) != 6 || calls[5].Params["message_thread_id"] != "1" {
			t.Errorf("General: got %+v, want topic 1", calls[len(calls)-1])
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		d.ShowTyping(ctx, place("telegram", jay, 0))
		cancel()
		if n := len(w.Calls("sendChatAction")) - 6; n > 70 {
			t.Errorf("got %d typing actions in an hour, want at most 70", n)
		}
		_ = stop()
	})
}

// TestTypingContinues: typing continues after a broken connection and stops after a refusal.
func TestTypingContinues(t *testing.T) {
	for fault, want := range map[telegramtest.FaultKind]int{telegramtest.Reset: 3, telegramtest.Refused: 1} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			w.FailNext("sendChatAction", telegramtest.Fault{Kind: fault})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			d := w.driver(t)
			d.ShowTyping(ctx, place("telegram", jay, 0))
			if n := len(w.Calls("sendChatAction")); n != want {
				t.Errorf("after fault %d, typing was shown %d times, want %d", fault, n, want)
			}
			d.api.Close()
		})
	}
}

// TestTypingInAMovedGroup continues in the supergroup that the group becomes meanwhile.
func TestTypingInAMovedGroup(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		time.AfterFunc(6*time.Second, func() { w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to }) })
		ctx, cancel := context.WithTimeout(t.Context(), 17*time.Second)
		defer cancel()
		d.ShowTyping(ctx, place("telegram", basic, 0))
		var chats []int64
		for _, c := range w.Calls("sendChatAction") {
			chats = append(chats, c.Chat)
		}
		if !slices.Equal(chats, []int64{basic, basic, basic, to}) || len(in.Events()) != 1 {
			t.Errorf("typing was shown in %d; events %+v", chats, in.Events())
		}
		_ = stop()
	})
}
