package knowledge

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/plugintest"
)

// escalating returns a plugin with questions by Ann and Bob in two places, and functions that ask and reply.
func escalating(t *testing.T) (p *Plugin, h *plugintest.Harness, ask, reply func(who, text string) string) {
	h = plugintest.NewHarness(t, "knowledge")
	p, err := New(h.Host, defaults(Config{Escalate: core.MustPath("room/9")}))
	if err != nil {
		t.Fatal(err)
	}
	p.config.Teach = "everyone"
	ask = func(who, text string) string {
		t.Helper()
		c := core.Call{Path: core.MustPath("room/" + who), Author: core.Author{ID: who, Name: who}}
		if err := (escalation{p}).noteGap(t.Context(), &c, text); err != nil {
			t.Fatal(err)
		}
		all := h.Received()
		return all[len(all)-1].Data
	}
	n := 0
	reply = func(data, text string) string {
		t.Helper()
		n++
		m := core.Message{Path: core.MustPath("room/9"), ID: strings.Repeat("i", n), Text: text, Author: core.Author{ID: "jay", Name: "Jay"}}
		said := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: m}}
		if err := h.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{said}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a turn may be repeated
			f, err := p.Follow(t.Context(), m, core.Entry{Self: true, Event: core.Event{Data: data}})
			if err != nil {
				t.Fatal(err)
			}
			text = f.Text
		}
		return text
	}
	return p, h, ask, reply
}

func listed(t *testing.T, p *Plugin) string {
	t.Helper()
	var out strings.Builder
	if err := p.Gaps(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestGapsClose checks that a question stays open until a reply answers it, or an entry in the same place
// covers it.
func TestGapsClose(t *testing.T) {
	p, _, ask, reply := escalating(t)
	wardrobe := ask("ann", "What is the number of the wardrobe?")
	ask("bob", "What is the number of the wardrobe?")
	ask("ann", "Who feeds the dragon in the cellar?")
	if all := listed(t, p); strings.Count(all, "wardrobe") != 2 {
		t.Errorf("open at first: %s", all)
	}
	if got := reply(wardrobe, "Seventeen."); !strings.HasPrefix(got, "I passed that on to ann.") {
		t.Errorf("answer: got %q", got)
	}
	if all := listed(t, p); strings.Count(all, "wardrobe") != 1 || !strings.Contains(all, "room/bob") {
		t.Errorf("open after a reply: %s", all)
	}
	if got := reply(wardrobe, "add to knowledge"); !strings.HasPrefix(got, "I know that now.") {
		t.Errorf("stored answer: got %q", got)
	}
	c := command.Call{Path: core.MustPath("room/bob"), Person: core.MustPath("room/@user/jay"),
		Args: map[string]string{"text": "The wardrobe has the number 17. Nobody feeds the dragon in the cellar."}}
	if _, err := p.teach(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if all := listed(t, p); strings.Contains(all, "wardrobe") || !strings.Contains(all, "dragon") {
		t.Errorf("open after an entry in another group: %s", all)
	}
}

// TestForgottenAskers checks that a forgotten user gets no answer, their question is listed nowhere, and the
// entry learned from it no longer has their words. The same applies to a forgotten place and to the user who
// answered.
func TestForgottenAskers(t *testing.T) {
	p, h, ask, reply := escalating(t)
	one, two, three := ask("ann", "What is the number of the wardrobe?"), ask("ann", "Who feeds the dragon?"), ask("bob", "Where is the key?")
	for _, e := range h.Received() {
		if e.Message.Author.ID == "" {
			t.Errorf("a question of a forgotten user is asked: %+v", e)
		}
	}
	reply(one, "Seventeen are there.")
	reply(one, "remember this answer")
	before := len(h.Received())
	finds := func(text string, want int) {
		t.Helper()
		synced(t, p)
		found, err := p.find(t.Context(), p.visible(core.MustPath("room/ann")), text, "", 5)
		if err != nil || len(found) != want {
			t.Errorf("%q: found %+v, want %d: %v", text, found, want, err)
		}
	}
	finds("wardrobe number", 1)
	for _, path := range []string{"room/@user/ann", "room/bob"} {
		if err := h.DB.Forget(t.Context(), core.MustPath(path)); err != nil {
			t.Fatal(err)
		}
	}
	synced(t, p)
	if items, err := h.Items.List(t.Context(), core.Path{}); err != nil || len(items) != 2 {
		t.Errorf("more than an entry and its teacher is stored: %+v, %v", items, err)
	}
	if got := reply(two, "Jay does.") + reply(three, "Here."); strings.Count(got, "no longer open") != 2 || len(h.Received()) != before {
		t.Errorf("a forgotten user is answered: %q", got)
	}
	if all := listed(t, p); all != "no question is open\n" {
		t.Errorf("listed: got %q", all)
	}
	finds("wardrobe number", 0)
	finds("seventeen", 1)
	if err := h.DB.Forget(t.Context(), core.MustPath("room/@user/jay")); err != nil {
		t.Fatal(err)
	}
	finds("seventeen", 0)
}
