package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestAnyID: a message id may be a number or a string. Other values are refused.
func TestAnyID(t *testing.T) {
	for raw, want := range map[string]anyID{`7`: "7", `"7"`: "7", `" 7 "`: "7", `1`: "1", `null`: "", `""`: ""} {
		got := anyID("")
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{`0`, `-1`, `"x"`, `1.5`, `"99999999999999999999"`, `{}`} {
		got := anyID("")
		if err := json.Unmarshal([]byte(raw), &got); err == nil {
			t.Errorf("%s: got %q, want an error", raw, got)
		}
	}
}

// TestCheckMessage: a message that can never be sent is refused before the plan runs, and
// again when it is sent, for the first of its problems.
func TestCheckMessage(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	for payload, want := range map[string]string{
		`{"text":7}`: "invalid payload",
		`{"text":"x","interface_path":"discord/1/2"}`:                       "not a place",
		`{"text":"x","interface_path":"/"}`:                                 "not a path",
		`{"text":" \u2800"}`:                                                "empty",
		`{"text":"x","buttons":[{"label":" "}]}`:                            "buttons[0]",
		`{"text":"x","reply_to_message_id":"that"}`:                         "not an id",
		`{"text":"x","recipient":"Ann","interface_path":"telegram/nobody"}`: "not a place",
		`{"text":"x","recipient":"Ann"}`:                                    "",
		`{"text":"x"}`:                                                      "",
	} {
		call := core.Call{Path: place("telegram", jay, 0), Payload: []byte(payload), Deliveries: &coretest.Parts{}}
		checked := d.send.messageAction().Check(t.Context(), call)
		_, sent := d.send.messageAction().Do(t.Context(), call)
		if want == "" {
			if checked != nil {
				t.Errorf("%s: got %v, want no error", payload, checked)
			}
			continue
		}
		for _, err := range []error{checked, sent} {
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != core.Invalid || !strings.Contains(e.Text, want) {
				t.Errorf("%s: got %v, want an invalid request with %q", payload, err, want)
			}
		}
	}
	call := core.Call{Path: place("telegram", jay, 0), Payload: []byte(`{"text":"x","recipient":"Ann"}`), Deliveries: &coretest.Parts{}}
	if _, err := d.send.messageAction().Do(t.Context(), call); err == nil || !strings.Contains(err.Error(), `"Ann"`) {
		t.Errorf("unknown recipient: got %v, want an error that names it", err)
	}
	if got := shownTexts(w, jay); len(got) != 1 {
		t.Errorf("got %q, want one message", got)
	}
}

// TestSuggestionsOfAMessage: suggested replies become buttons below a message.
func TestSuggestionsOfAMessage(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"Well?","buttons":[{"label":"Yes"}],"suggestions":["No"]}`, &coretest.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	if markup := string(w.Messages(jay)[0].Markup); !strings.Contains(markup, `"Yes"`) || !strings.Contains(markup, `"No"`) {
		t.Errorf("got buttons %s, want Yes and No", markup)
	}
}

// TestLinksAreNotPreviewed: link previews are off in every kind of message, unless the
// configuration turns them on, because the platform would fetch links that a model writes.
func TestLinksAreNotPreviewed(t *testing.T) {
	const link = "See https://example.org/?q=secret"
	for _, previews := range []bool{false, true} {
		inBubble(t, func(o *Options) { o.Config.Previews, o.Config.Stream = previews, "edit" }, func(t *testing.T, w *world) {
			d, stop := w.up(t)
			at := place("telegram", jay, 0)
			for _, payload := range []string{`{"text":"` + link + `"}`, `{"text":"` + strings.Repeat(link+"\\n", 200) + `"}`} {
				if err := do(t, d, "message_telegram", at, payload, &coretest.Parts{}); err != nil {
					t.Fatal(err)
				}
			}
			w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: can't parse entities"})
			if err := do(t, d, "message_telegram", at, `{"text":"`+link+`, as plain text"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			if err := do(t, d, "edit_telegram", at, `{"message_id":1,"text":"`+link+` again"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			if err := d.Choose(t.Context(), &coretest.Parts{}, core.Sent{Path: at, Text: link}, []core.Choice{{Label: "Yes", Data: "c:y"}}); err != nil {
				t.Fatal(err)
			}
			if err := d.Tell(t.Context(), at, link); err != nil {
				t.Fatal(err)
			}
			d.Draft(at, link)
			time.Sleep(2 * time.Second)
			d.Draft(at, link+", and more")
			time.Sleep(2 * time.Second)
			if err := do(t, d, "message_telegram", at, `{"text":"`+link+`, and more"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			calls := append(w.Calls("sendMessage"), w.Calls("editMessageText")...)
			for _, c := range calls {
				if off := strings.Contains(c.Params["link_preview_options"], `"is_disabled":true`); off == previews {
					t.Errorf("previews %v: %s %.50q with %q", previews, c.Method, c.Params["text"], c.Params["link_preview_options"])
				}
			}
			if len(calls) != 11 {
				t.Errorf("got %d calls, want 11", len(calls))
			}
			_ = stop()
		})
	}
}

// TestDeadlineWhileCheckingReachability: if the caller's deadline passes while the driver
// checks that the platform responds, the error says only that. A message that may have arrived
// is not sent again.
func TestDeadlineWhileCheckingReachability(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, stop := w.run(t, &coretest.Inbox{})
		time.Sleep(time.Second)
		parts := &coretest.Parts{}
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.ResetAfter})
		at := place("telegram", jay, 0)
		if err := do(t, d, "message_telegram", at, `{"text":"x"}`, parts); !errors.Is(err, core.ErrUnknownOutcome) {
			t.Errorf("first try: got %v, want an unknown outcome", err)
		}
		w.FailNext("getMe", telegramtest.Fault{Kind: telegramtest.Hang})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := doCtx(ctx, t, d, "message_telegram", at, `{"text":"x"}`, parts)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrAway) {
			t.Errorf("second try: got %v, want %v", err, context.DeadlineExceeded)
		}
		if n := len(w.Calls("sendMessage")); n != 1 {
			t.Errorf("sent %d times, want 1", n)
		}
		_ = stop()
	})
}

// TestResponseWithoutID: a response without a message id is an error.
func TestResponseWithoutID(t *testing.T) {
	d := newWorld(t, nil).driver(t)
	to := chatKey{chat: jay}
	id, err := d.send.sentID(to, 0, nil)
	var e *core.Error
	if id != "" || !errors.As(err, &e) || e.Kind != core.Broken {
		t.Errorf("got %q, %v, want no id and a broken interface", id, err)
	}
}

// TestBadPayload is described once.
func TestBadPayload(t *testing.T) {
	d := newWorld(t, nil).driver(t)
	err := do(t, d, "edit_telegram", place("telegram", jay, 0), `{"message_id":"x","text":"y"}`, &coretest.Parts{})
	if err == nil || strings.Count(err.Error(), "is not an id") != 1 {
		t.Errorf("%v", err)
	}
}
