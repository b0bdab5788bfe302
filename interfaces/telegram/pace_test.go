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

func paced(o *Options) { o.Config.Pace = "platform" }

// TestPace sends far too much of everything at once. The platform, which counts,
// must never complain, and all must arrive in order.
func TestPace(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
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
		thinking, enough := context.WithCancel(t.Context())
		for i := range chats {
			send(int64(2000+i), each)
			all.Go(func() { d.ShowTyping(thinking, place("telegram", int64(2000+i), 0)) })
		}
		send(group, 50)
		all.Go(func() { time.Sleep(time.Minute); enough() })
		all.Wait()
		took := time.Since(began)
		for _, c := range w.Calls("") {
			if c.Status == 429 {
				t.Fatal("the platform had to complain")
			}
		}
		for i := range chats {
			if got := shownTexts(w, int64(2000+i)); !slices.IsSorted(got) || len(got) != each {
				t.Fatalf("chat %d shows %q", i, got)
			}
		}
		if n := len(w.Messages(group)); n != 50 || took < 2*time.Minute || took > 4*time.Minute {
			t.Errorf("%d messages in the group after %v", n, took)
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

// TestBurst lets a few messages through at once.
func TestBurst(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		began := time.Now()
		for range 3 {
			if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("three messages took %v", took)
		}
		_ = stop()
	})
}

// TestWaitIsObeyed makes no call into a chat that must wait, while others
// go on, and keeps the order.
func TestWaitIsObeyed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("another chat had to wait: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		d.ShowTyping(ctx, place("telegram", jay, 0))
		cancel()
		all.Wait()
		if got := shownTexts(w, jay); !slices.Equal(got, []string{"0", "1", "2"}) || w.Early() != 0 || time.Since(began) < 30*time.Second {
			t.Errorf("%q stand after %v; %d calls came early", got, time.Since(began), w.Early())
		}
		_ = stop()
	})
}

// TestWaitForAll takes two chats that must wait for all chats.
func TestWaitForAll(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%d calls came early", w.Early())
		}
		_ = stop()
	})
}

// TestWaitSurvives remembers over a restart that it must wait.
func TestWaitSurvives(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 60})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		gone := make(chan error, 1)
		go func() {
			gone <- doCtx(ctx, t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
		}()
		time.Sleep(time.Second)
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that is cancelled gives %v", err)
		}
		_ = stop()
		d, stop = w.run(t, &coretest.Inbox{})
		began := time.Now()
		if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); w.Early() != 0 || took < 50*time.Second || took > 65*time.Second {
			t.Errorf("sent after %v, %d calls came early", took, w.Early())
		}
		_ = stop()
	})
}

// TestWaitTooLong gives up at once where the caller has not that much time.
func TestWaitTooLong(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 3600})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := doCtx(ctx, t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Temporary || e.After != time.Hour || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = stop()
	})
}

// TestWaitTooLongForAnswers: what there is no time to wait for is to be said later,
// also where something else waits before it in the chat.
func TestWaitTooLongForAnswers(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		at, parts := place("telegram", jay, 0), &coretest.Parts{}
		id := w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 3600})
		tries := 0
		for began := time.Now(); ; tries++ {
			ctx, cancel := context.WithTimeout(t.Context(), sendTimeout)
			err := doCtx(ctx, t, d, "message_telegram", at, `{"text":"x"}`, parts)
			cancel()
			if err == nil {
				break
			}
			var e *core.Error
			if !errors.Is(err, core.ErrAway) || !errors.As(err, &e) || e.Kind != core.Temporary ||
				time.Since(began) > 2*time.Hour {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			if tries == 1 {
				go func() { _ = d.send.setReaction(context.Background(), chatKey{chat: jay}, int64(id), "👍") }()
			}
			time.Sleep(30 * time.Second)
		}
		if n := len(w.Calls("sendMessage")); n != 2 || w.Early() != 0 || tries < 5 {
			t.Errorf("%d calls, %d of them early, after %d tries", n, w.Early(), tries)
		}
		synctest.Wait()
		_ = stop()
	})
}

// TestPriority lets the urgent overtake what waits.
func TestPriority(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("%s", got)
		}
		_ = stop()
	})
}

// TestSendFaults meets every fault once; only where the platform had sent
// already may a message be there twice.
func TestSendFaults(t *testing.T) {
	for kind, want := range map[telegramtest.FaultKind]int{
		telegramtest.Internal: 1, telegramtest.BadGateway: 1, telegramtest.Unavailable: 1, telegramtest.Reset: 1,
		telegramtest.Hang: 1,
		telegramtest.Cut:  1, telegramtest.ResetAfter: 2, telegramtest.HangAfter: 2, telegramtest.CutAfter: 2,
	} {
		bubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", telegramtest.Fault{Kind: kind})
			parts := &coretest.Parts{}
			if err := again(t, d, place("telegram", jay, 0), "x", parts); err != nil {
				t.Errorf("fault %d: %v", kind, err)
			}
			list := w.Messages(jay)
			if len(list) != want || parts.Sent()[0].ID != fmt.Sprint(list[len(list)-1].ID) {
				t.Errorf("fault %d: %d messages stand, want %d", kind, len(list), want)
			}
			_ = stop()
		})
	}
}

// TestLostReplies loses several replies in a row, before and after the platform took
// the message: it is sent three times at most, and after that nobody knows.
func TestLostReplies(t *testing.T) {
	for _, tc := range []struct {
		kind   telegramtest.FaultKind
		lost   int
		stand  int
		unsure bool
	}{
		{telegramtest.Reset, 2, 1, false}, {telegramtest.Hang, 2, 1, false}, {telegramtest.Internal, 2, 1, false},
		{telegramtest.Reset, 3, 0, true}, {telegramtest.Reset, 9, 0, true},
		{telegramtest.ResetAfter, 2, 3, false}, {telegramtest.CutAfter, 3, 3, true},
		{telegramtest.ResetAfter, 9, 3, true},
	} {
		bubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", slices.Repeat([]telegramtest.Fault{{Kind: tc.kind}}, tc.lost)...)
			err := again(t, d, place("telegram", jay, 0), "x", &coretest.Parts{})
			var e *core.Error
			if unsure := errors.As(err, &e) && e.Kind == core.Unsure; unsure != tc.unsure || !unsure && err != nil {
				t.Errorf("%+v: %v", tc, err)
			}
			if n := len(w.Messages(jay)); n != tc.stand {
				t.Errorf("%+v: %d messages stand", tc, n)
			}
			_ = stop()
		})
	}
}

// TestResetsForAWhile: while no call comes through, what may have arrived is not sent
// again.
func TestResetsForAWhile(t *testing.T) {
	for _, kind := range []telegramtest.FaultKind{telegramtest.Reset, telegramtest.ResetAfter} {
		bubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			until := time.Now().Add(10 * time.Minute)
			w.Fail(func(telegramtest.Call) telegramtest.Fault {
				if time.Now().After(until) {
					return telegramtest.Fault{}
				}
				return telegramtest.Fault{Kind: kind}
			})
			if err := again(t, d, place("telegram", jay, 0), "x", &coretest.Parts{}); err != nil {
				t.Errorf("%d: %v", kind, err)
			}
			if n := len(w.Calls("sendMessage")); n != 2 {
				t.Errorf("%d: it was sent %d times", kind, n)
			}
			_ = stop()
		})
	}
}

// TestGivesUp: what may have been done is not done again at once; the rest is tried
// for a while, and fails in words.
func TestGivesUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
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
				t.Errorf("fault %+v: %d calls, %v; want %+v", fault, n, err, want)
			}
			if e != nil && (strings.Contains(e.Text, "sendMessage") || strings.Contains(err.Error(), telegramtest.Token[10:])) {
				t.Errorf("error %q is not for people", err)
			}
		}
		_ = stop()
	})
}

// TestNoWay: where there is no way to the platform, or it is down, a message fails as
// one that is to be said later: nothing of it was sent, and nothing is wrong with it.
func TestNoWay(t *testing.T) {
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
	bubble(t, cut, func(t *testing.T, w *world) {
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
				t.Errorf("%+v: %v", tc, err)
			}
		}
	})
}

// TestThink types again and again, and stops.
func TestThink(t *testing.T) {
	bubble(t, paced, func(t *testing.T, w *world) {
		w.Strict()
		d, stop := w.run(t, &coretest.Inbox{})
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 8))
		cancel()
		time.Sleep(time.Minute)
		calls := w.Calls("sendChatAction")
		if len(calls) != 5 || calls[0].Params["message_thread_id"] != "8" {
			t.Errorf("%d signs, %+v", len(calls), calls)
		}
		w.Say(forum, jay, telegramtest.Saying{Text: "in General"})
		time.Sleep(time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 0))
		cancel()
		if calls := w.Calls("sendChatAction"); len(calls) != 6 || calls[5].Params["message_thread_id"] != "1" {
			t.Errorf("General gets %+v", calls[len(calls)-1])
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		d.ShowTyping(ctx, place("telegram", jay, 0))
		cancel()
		if n := len(w.Calls("sendChatAction")) - 6; n > 70 {
			t.Errorf("typed %d times in an hour of one thought", n)
		}
		_ = stop()
	})
}

// TestTypingContinues after a broken connection, and stops after a refusal.
func TestTypingContinues(t *testing.T) {
	for fault, want := range map[telegramtest.FaultKind]int{telegramtest.Reset: 3, telegramtest.Refused: 1} {
		bubble(t, nil, func(t *testing.T, w *world) {
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
	bubble(t, nil, func(t *testing.T, w *world) {
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
