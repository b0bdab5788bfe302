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

// TestExplain: the error of a call becomes a text for users and says whether to retry later.
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
		{refused(400, "Bad Request: message thread not found"), core.Forbidden, false, "topic is gone"},
		{refused(400, "Bad Request: TOPIC_DELETED"), core.Forbidden, false, "topic is gone"},
		{refused(400, "Bad Request: TOPIC_CLOSED"), core.Forbidden, false, "topic is closed"},
		{refused(400, "Bad Request: message to edit not found"), core.Invalid, false, "does not exist"},
		{refused(400, "Bad Request: not enough rights"), core.Forbidden, false, "lacks the right"},
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
			t.Errorf("%v: got %+v, want %+v", tc.err, err, tc)
		}
	}
	if err := explain(&botapi.Error{Code: 429, After: time.Minute}); err.(*core.Error).After != time.Minute {
		t.Errorf("a wait of a minute: got %+v", err)
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, &botapi.NetError{Cause: context.Canceled}, errors.New("something of our own")} {
		if got := explain(err); got != err {
			t.Errorf("%v: got %v, want it unchanged", err, got)
		}
	}
}

// TestNothingIsSentWithoutALease: a process that lost its lease sends no answers, because
// another process may send them too. Notices to admins are still sent.
func TestNothingIsSentWithoutALease(t *testing.T) {
	state := &leasedState{State: &memory{}}
	inBubble(t, func(o *Options) { o.State = state }, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		state.lost.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := &botapi.Request{Method: "sendMessage", Chat: jay, Params: botapi.Params{"text": "late"}}
		if err := d.api.Do(ctx, r); err == nil || botapi.OutcomeUnknown(err) {
			t.Errorf("without a lease: got %v, want an error with a known outcome", err)
		}
		if err := d.Tell(t.Context(), place("telegram", jay, 0), "a notice"); err != nil {
			t.Error(err)
		}
		if calls := w.Calls("sendMessage"); len(calls) != 1 || calls[0].Params["text"] != "a notice" {
			t.Errorf("got %+v, want only the notice", calls)
		}
		_ = stop()
	})
}

// leasedState is a State whose lease can be lost.
type leasedState struct {
	driver.State
	lost atomic.Bool
}

func (s *leasedState) Holds() bool { return !s.lost.Load() }

// TestMigrationToItself: a group that migrates to itself fails after one call.
func TestMigrationToItself(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = basic })
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"x"}`, &coretest.Parts{}); err == nil {
			t.Error("the message was sent")
		}
		if n := len(w.Calls("sendMessage")); n != 1 || len(in.Events()) != 0 {
			t.Errorf("got %d calls and %d events, want 1 and 0", n, len(in.Events()))
		}
		_ = stop()
	})
}

// TestMigrationWithoutEnd: groups that migrate to each other are followed a few times, then
// the message fails.
func TestMigrationWithoutEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		for from, to := range map[int64]int64{basic: group, group: forum, forum: group} {
			w.Change(from, func(c *telegramtest.Chat) { c.Upgraded = to })
		}
		if err := do(t, d, "message_telegram", place("telegram", basic, 0), `{"text":"x"}`, &coretest.Parts{}); err == nil {
			t.Error("the message was sent")
		}
		if n := len(w.Calls("sendMessage")); n != 7 {
			t.Errorf("got %d calls, want 7", n)
		}
		_ = stop()
	})
}

// TestWaitsAreKept: a rate limit is stored if it is long enough to matter after a restart.
func TestWaitsAreKept(t *testing.T) {
	for seconds, kept := range map[int]bool{1: false, 2: false, 3: true, 60: true} {
		inBubble(t, nil, func(t *testing.T, w *world) {
			d, stop := w.run(t, &coretest.Inbox{})
			w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: seconds})
			if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
			raw, _ := w.state.Get(t.Context(), "waits")
			var waits map[int64]time.Time
			if _ = json.Unmarshal(raw, &waits); (raw != nil) != kept || kept && waits[jay].IsZero() {
				t.Errorf("a limit of %d s: stored %q, want a limit: %v", seconds, raw, kept)
			}
			if strings.Contains(w.log.String(), "waits not") {
				t.Error(w.log.String())
			}
			_ = stop()
		})
	}
}

// TestStateThatFails: errors of the store are logged, and the message is still delivered.
func TestStateThatFails(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		_ = w.state.Put(t.Context(), "waits", []byte(`{"1000":`))
		_ = w.state.Put(t.Context(), draftKey, []byte(`{`))
		d, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(time.Second)
		w.state.failWith(errors.New("no room"))
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 5})
		at := place("telegram", group, 0)
		text := stream(d, at, 100)
		if err := do(t, d, "message_telegram", at, fmt.Sprintf(`{"text":%q}`, text), &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		list := w.Messages(group)
		if len(list) != 1 || !strings.HasSuffix(list[0].Text, "word99") || w.Early() != 0 {
			t.Errorf("got %+v, want one message; %d calls before the end of a limit, want 0", list, w.Early())
		}
		for _, said := range []string{"waits not read", "waits not saved", "draft not stored"} {
			if !strings.Contains(w.log.String(), said) {
				t.Errorf("the log lacks %q", said)
			}
		}
		w.log.forget()
		_ = stop()
	})
}

// TestMovedGroupKeepsItsPace: a rate limit applies to a group under its old and its new id.
func TestMovedGroupKeepsItsPace(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		const to = -1004242424242
		w.AddChat(telegramtest.Chat{ID: to, Type: "supergroup", Title: "New"})
		w.Change(basic, func(c *telegramtest.Chat) { c.Upgraded = to })
		d, stop := w.run(t, &coretest.Inbox{})
		trySend := func(chat int64) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = doCtx(ctx, t, d, "message_telegram", place("telegram", chat, 0), `{"text":"x"}`, &coretest.Parts{})
		}
		trySend(basic)
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 60})
		trySend(basic)
		trySend(to)
		if n := len(w.Calls("sendMessage")); n != 3 || w.Early() != 0 {
			t.Errorf("got %d calls, want 3; %d before the end of the limit, want 0", n, w.Early())
		}
		_ = stop()
	})
}

// TestEditInAMovedGroup: a message of a migrated group is not edited, because its id belongs
// to another message in the supergroup.
func TestEditInAMovedGroup(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("got %v, want an invalid request; the supergroup shows %+v", err, w.Messages(to))
		}
		_ = stop()
	})
}

// TestTimeouts: the timeout of a file is longer than that of a text.
func TestTimeouts(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("a text: got %v after %v, want an unknown outcome within 6s", err, took)
		}
		time.Sleep(time.Minute)
		if err := do(t, d, "document_telegram", at, `{"content":"a text","name":"a.txt"}`, &coretest.Parts{}); err != nil {
			t.Errorf("a file: %v", err)
		}
		_ = stop()
	})
}

// TestRefusedInEveryForm: a message that is refused in every form is tried once in each,
// and the error contains the platform's text.
func TestRefusedInEveryForm(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
				t.Errorf("%s: got %d calls, %v, want %d calls and the platform's error", payload, n, err, want)
			}
		}
		_ = stop()
	})
}
