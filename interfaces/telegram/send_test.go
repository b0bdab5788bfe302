package telegram

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestLinksAreNotPreviewed: the platform fetches no link that a model writes, however
// it is sent, unless previews are on.
func TestLinksAreNotPreviewed(t *testing.T) {
	const link = "See https://example.org/?q=secret"
	for _, previews := range []bool{false, true} {
		bubble(t, func(o *Options) { o.Config.Previews, o.Config.Stream = previews, "edit" }, func(t *testing.T, w *world) {
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
				t.Errorf("%d calls", len(calls))
			}
			_ = stop()
		})
	}
}
