package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestExplain words what a call failed of, and says whether it is to be tried later.
func TestExplain(t *testing.T) {
	refused := func(code int, text string) error { return &botapi.Error{Method: "sendMessage", Code: code, Text: text} }
	for _, tc := range []struct {
		err  error
		kind core.ErrorKind
		away bool
		says string
	}{
		{&botapi.Error{Code: 429, After: time.Minute}, core.Temporary, true, "asks to wait"},
		{refused(500, "Internal Server Error"), core.Temporary, false, "has trouble"},
		{refused(502, "Bad Gateway"), core.Temporary, true, "has trouble"},
		{refused(503, "Service Unavailable"), core.Temporary, true, "has trouble"},
		{refused(504, "Gateway Timeout"), core.Temporary, false, "has trouble"},
		{refused(401, "Unauthorized"), core.Broken, true, "does not know this bot"},
		{refused(404, "Not Found"), core.Broken, true, "does not know this bot"},
		{&botapi.Error{Method: "getMe", Code: 404}, core.Broken, true, "does not know this bot"},
		{&botapi.Error{Method: "setMessageReaction", Code: 404, Text: "Not Found"}, core.Invalid, false, "does not exist"},
		{refused(403, "Forbidden"), core.Forbidden, false, "may not write there"},
		{refused(400, "Bad Request: chat not found"), core.Invalid, false, "no such chat"},
		{refused(400, "Bad Request: message thread not found"), core.Broken, false, "topic is gone"},
		{refused(400, "Bad Request: TOPIC_DELETED"), core.Broken, false, "topic is gone"},
		{refused(400, "Bad Request: TOPIC_CLOSED"), core.Broken, false, "topic is closed"},
		{refused(400, "Bad Request: message to edit not found"), core.Invalid, false, "does not exist"},
		{refused(400, "Bad Request: not enough rights"), core.Broken, false, "lacks the right"},
		{refused(400, "Bad Request: something else"), core.Broken, false, "refused it"},
		{refused(499, "something else"), core.Broken, false, "refused it"},
		{fmt.Errorf("%w: %w", core.ErrUnknownOutcome, &botapi.NetError{Unknown: true}), core.Temporary, false, "did not say"},
		{&botapi.NetError{Unknown: true}, core.Temporary, false, "cannot be reached"},
		{&botapi.NetError{}, core.Temporary, true, "cannot be reached"},
		{&botapi.NetError{Cause: context.DeadlineExceeded}, core.Temporary, true, "cannot be reached"},
	} {
		var e *core.Error
		err := explain(tc.err)
		if !errors.As(err, &e) || e.Kind != tc.kind || errors.Is(err, core.ErrAway) != tc.away ||
			!strings.Contains(e.Text, tc.says) {
			t.Errorf("%v is explained as %+v, want %+v", tc.err, err, tc)
		}
	}
	if err := explain(&botapi.Error{Code: 429, After: time.Minute}); err.(*core.Error).After != time.Minute {
		t.Errorf("a wait of a minute: %+v", err)
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, &botapi.NetError{Cause: context.Canceled}, errors.New("something of our own")} {
		if got := explain(err); got != err {
			t.Errorf("%v is explained as %v", err, got)
		}
	}
}

// TestNothingIsSentWithoutALease: once another process may have taken over, nothing is sent that it may
// send, too. Admins are informed all the same.
func TestNothingIsSentWithoutALease(t *testing.T) {
	lost := &lostState{State: &memory{}}
	bubble(t, func(o *Options) { o.State = lost }, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		lost.now.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := &botapi.Request{Method: "sendMessage", Chat: jay, Params: botapi.Params{"text": "late"}}
		if err := d.api.Do(ctx, r); err == nil || botapi.OutcomeUnknown(err) {
			t.Error(err)
		}
		if err := d.Tell(t.Context(), place("telegram", jay, 0), "a notice"); err != nil {
			t.Error(err)
		}
		if calls := w.Calls("sendMessage"); len(calls) != 1 || calls[0].Params["text"] != "a notice" {
			t.Errorf("%+v", calls)
		}
		_ = stop()
	})
}

// lostState is a State that another process may have taken over.
type lostState struct {
	driver.State
	now atomic.Bool
}

func (s *lostState) Holds() bool { return !s.now.Load() }

// TestMigrationToItself: a group that is said to have become itself is refused once.
func TestMigrationToItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = basic })
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"x"}`, &coretest.Parts{}); err == nil {
			t.Error("sent")
		}
		if n := len(w.Calls("sendMessage")); n != 1 || len(in.Events()) != 0 {
			t.Errorf("%d calls, %d events", n, len(in.Events()))
		}
		_ = stop()
	})
}

// TestMigrationWithoutEnd: where groups are said to have become each other, that is
// followed a few times.
func TestMigrationWithoutEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		for from, to := range map[int64]int64{basic: group, group: forum, forum: group} {
			w.Change(from, func(c *telegramtest.Chat) { c.Upgraded = to })
		}
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"x"}`, &coretest.Parts{}); err == nil {
			t.Error("sent")
		}
		if n := len(w.Calls("sendMessage")); n != 7 {
			t.Errorf("%d calls", n)
		}
		_ = stop()
	})
}

// TestWaitsAreKept: a wait is kept for the next life if it is long enough to matter
// there, and nothing is written otherwise.
func TestWaitsAreKept(t *testing.T) {
	for seconds, kept := range map[int]bool{1: false, 2: false, 3: true, 60: true} {
		bubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: seconds})
			if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
			raw, _ := w.state.Get(t.Context(), "waits")
			var waits map[int64]time.Time
			if _ = json.Unmarshal(raw, &waits); (raw != nil) != kept || kept && waits[jay].IsZero() {
				t.Errorf("after a wait of %d s this is kept: %s", seconds, raw)
			}
			if strings.Contains(w.log.String(), "waits not") {
				t.Error(w.log.String())
			}
			_ = stop()
		})
	}
}

// TestStateThatFails: what cannot be kept or read is reported, and nothing else is lost.
func TestStateThatFails(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		_ = w.state.Put(t.Context(), "waits", []byte(`{"1000":`))
		_ = w.state.Put(t.Context(), draftKey, []byte(`{`))
		d, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(time.Second)
		w.state.breaks(errors.New("no room"))
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 5})
		at := place("telegram", group, 0)
		text := stream(d, at, 100)
		if err := do(t, d, "message_telegram", at, fmt.Sprintf(`{"text":%q}`, text), &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		list := w.Messages(group)
		if len(list) != 1 || !strings.HasSuffix(list[0].Text, "word99") || w.Early() != 0 {
			t.Errorf("stands: %+v", list)
		}
		for _, said := range []string{"waits not read", "waits not saved", "draft not stored"} {
			if !strings.Contains(w.log.String(), said) {
				t.Errorf("the log does not say %q", said)
			}
		}
		w.log.forget()
		_ = stop()
	})
}

// TestMovedGroupKeepsItsPace: whatever number a group goes by, it is one chat to the
// platform's limits.
func TestMovedGroupKeepsItsPace(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		d, stop := w.run(t, &coretest.Inbox{})
		say := func(chat int64) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = doCtx(ctx, t, d, "message_telegram", place("telegram", chat, 0), `{"text":"x"}`, &coretest.Parts{})
		}
		say(basic)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 60})
		say(basic)
		say(to)
		if n := len(w.Calls("sendMessage")); n != 3 || w.Early() != 0 {
			t.Errorf("%d calls, %d of them early", n, w.Early())
		}
		_ = stop()
	})
}

// TestEditInAMovedGroup: a message's number means another one in the supergroup that the
// group became, so nothing is changed there.
func TestEditInAMovedGroup(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		d, stop := w.run(t, &coretest.Inbox{})
		for _, chat := range []int64{basic, to} {
			if err := do(t, d, "message_telegram", place("telegram", chat, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
		}
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		var e *core.Error
		err := do(t, d, "edit_telegram", place("telegram", basic, 0), `{"message_id":1,"text":"y"}`, &coretest.Parts{})
		if !errors.As(err, &e) || e.Kind != core.Invalid || w.Messages(to)[0].Text != "x" || len(w.Calls("editMessageText")) != 1 {
			t.Errorf("%v; the supergroup shows %+v", err, w.Messages(to))
		}
		_ = stop()
	})
}

// TestPatience: a file may take longer than a text.
func TestPatience(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(time.Second)
		w.Delay(func(c telegramtest.Call) time.Duration {
			if strings.HasPrefix(c.Method, "send") {
				return 30 * time.Second
			}
			return 0
		})
		at, began := place("telegram", jay, 0), time.Now()
		err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{})
		if took := time.Since(began); !errors.Is(err, core.ErrUnknownOutcome) || took > 6*time.Second {
			t.Errorf("a text: %v after %v", err, took)
		}
		time.Sleep(time.Minute)
		if err := do(t, d, "document_telegram", at, `{"content":"a text","name":"a.txt"}`, &coretest.Parts{}); err != nil {
			t.Errorf("a file: %v", err)
		}
		_ = stop()
	})
}

// TestRefusedAsItIsWritten: what is refused in every way is not tried in the same way
// twice, and the platform's words are kept.
func TestRefusedAsItIsWritten(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "sendMessage" {
				return telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: BUTTON_TYPE_INVALID"}
			}
			return telegramtest.Fault{}
		})
		for payload, want := range map[string]int{`{"text":"x"}`: 2, `{"text":"x","buttons":[{"label":"More"}]}`: 3} {
			before := len(w.Calls("sendMessage"))
			err := do(t, d, "message_telegram", place("telegram", jay, 0), payload, &coretest.Parts{})
			if n := len(w.Calls("sendMessage")) - before; n != want || err == nil || !strings.Contains(err.Error(), "BUTTON_TYPE_INVALID") {
				t.Errorf("%s: %d calls, %v", payload, n, err)
			}
		}
		_ = stop()
	})
}
