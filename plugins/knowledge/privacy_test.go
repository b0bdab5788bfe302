package knowledge

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/plugintest"
)

// TestPrivateQuestionsStay: a question that was asked in private is listed, and put to nobody.
func TestPrivateQuestionsStay(t *testing.T) {
	h := plugintest.NewHarness(t, "knowledge")
	p, err := New(h.Host, defaults(Config{Escalate: core.MustPath("room/9")}))
	if err != nil {
		t.Fatal(err)
	}
	c := core.Call{Path: core.MustPath("room/1"), Private: true, Author: core.Author{ID: "ann"}}
	for _, private := range []bool{true, false} {
		c.Private = private
		if err := (escalation{p}).noteGap(t.Context(), &c, "am I ill? "+map[bool]string{true: "private", false: "open"}[private]); err != nil {
			t.Fatal(err)
		}
	}
	if said := h.Received(); len(said) != 1 || !strings.Contains(said[0].Reply, "open") {
		t.Errorf("others were told %+v", said)
	}
	var out strings.Builder
	if err := p.Gaps(t.Context(), &out); err != nil || strings.Count(out.String(), "am I ill?") != 2 {
		t.Errorf("listed is %q: %v", out.String(), err)
	}
}

// TestTaughtWordsAreForgotten: what repeats somebody's message goes when its author is forgotten, and
// what the bot said, or the teacher wrote, stays.
func TestTaughtWordsAreForgotten(t *testing.T) {
	h := plugintest.NewHarness(t, "knowledge")
	p, err := New(h.Host, defaults(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	room := core.MustPath("room/1")
	message := core.Message{Path: room, ID: "7", Text: "The wardrobe has number 17.", Author: core.Author{ID: "ann"}}
	said := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: message}}
	if err := h.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{said}}); err != nil {
		t.Fatal(err)
	}
	jay := core.MustPath("room/@user/jay")
	teach := func(text, target string) {
		t.Helper()
		c := command.Call{Path: room, Person: jay, Target: target, Args: map[string]string{"text": text}}
		if _, err := p.teach(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	teach("", "7")
	teach("Ladders are in the shed.", "")
	finds := func(when, text string, want int) {
		t.Helper()
		found, err := p.find(t.Context(), p.visible(room), text, "", 5)
		if err != nil || len(found) != want {
			t.Errorf("%s: %q finds %d passages, want %d: %v", when, text, len(found), want, err)
		}
	}
	finds("at first", "wardrobe number", 1)
	for _, person := range []core.Path{core.MustPath("room/@user/ann"), jay} {
		if err := h.DB.Forget(t.Context(), person); err != nil {
			t.Fatal(err)
		}
	}
	synced(t, p)
	finds("after both were forgotten", "wardrobe number", 0)
	finds("after both were forgotten", "ladders shed", 1)
}
