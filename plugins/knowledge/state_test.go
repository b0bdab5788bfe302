package knowledge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
)

func stateOf(t *testing.T, p *Plugin) State {
	t.Helper()
	s, err := Editor{p}.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestState checks the numbers of documents and passages, the unreadable files, and whether a sync runs.
func TestState(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "# A\nKeys hang in the hall.\n# B\nLadders are in the shed.", "bad.md": "\x00\x01"})
	p := made(t, Config{Sources: []Source{{Name: "s", Path: dir, Places: []core.Path{core.MustPath("room/1")}}, {Name: "t", Path: dir + "/none"}}})
	if s := stateOf(t, p); !s.Synced.IsZero() || s.Sources[0].Documents != 0 {
		t.Errorf("at first: %+v", s)
	}
	during := ""
	if _, err := p.Sync(t.Context(), func(string) { during = stateOf(t, p).Reading }); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, p)
	one, two := s.Sources[0], s.Sources[1]
	if during != "s: 2 of 2 documents" || s.Reading != "" || s.Synced.IsZero() || len(one.Places) != 1 {
		t.Errorf("%q: got %+v", during, s)
	}
	if one.Name != "s" || one.Documents != 2 || one.Passages != 2 || len(one.Faults) != 1 || !strings.HasPrefix(one.Faults[0], "bad.md: ") {
		t.Errorf("got %+v", one)
	}
	if len(two.Faults) != 1 || !strings.Contains(two.Faults[0], "no such file") || strings.HasPrefix(two.Faults[0], ":") {
		t.Errorf("got %+v", two)
	}
}

// TestReread checks that all sources are read at once, with web pages that are not due.
func TestReread(t *testing.T) {
	p := made(t, Config{})
	p.read["https://example.org"] = time.Now()
	Editor{p}.Reread()
	Editor{p}.Reread()
	if len(p.read) != 0 || len(p.wake) != 1 {
		t.Errorf("got %v, %d", p.read, len(p.wake))
	}
}

// TestGapTimes checks that a question counts once for each message, although a turn may note it twice.
func TestGapTimes(t *testing.T) {
	p, _, _, _ := escalating(t)
	for _, message := range []string{"1", "1", "2"} {
		c := core.Call{Path: core.MustPath("room/ann"), Author: core.Author{ID: "ann"}, Answers: []string{message}}
		if err := (escalation{p}).noteGap(t.Context(), &c, "Where is the key?"); err != nil {
			t.Fatal(err)
		}
	}
	if s := stateOf(t, p); len(s.Gaps) != 1 || s.Gaps[0].Times != 2 || s.Gaps[0].Owner.String() != "room/@user/ann" {
		t.Errorf("got %+v", s.Gaps)
	}
}

// TestAnswerByAdmin checks that an admin's answer is sent to the user once, is visible where the question was
// asked, and closes the question.
func TestAnswerByAdmin(t *testing.T) {
	p, h, ask, reply := escalating(t)
	data := ask("ann", "What is the number of the wardrobe?")
	ask("bob", "Who feeds the dragon?")
	before, ann := len(h.Received()), core.MustPath("room/ann")
	id := strings.TrimPrefix(data, "knowledge:")
	for _, wrong := range [][2]string{{"room/bob", id}, {"room/ann", "none"}} {
		if err := (Editor{p}).Answer(t.Context(), core.MustPath(wrong[0]), wrong[1], "17"); err == nil || !strings.Contains(err.Error(), "no longer open") {
			t.Errorf("%v: got %v", wrong, err)
		}
	}
	for text, want := range map[string]string{" ": "Write what to know", strings.Repeat("x", entryMax+1): "too long"} {
		if err := (Editor{p}).Answer(t.Context(), ann, id, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
	if err := (Editor{p}).Answer(t.Context(), ann, id, "Seventeen."); err != nil {
		t.Fatal(err)
	}
	said := h.Received()[before:]
	if len(said) != 1 || said[0].Message.Path != ann || said[0].Reply != "An admin answers “What is the number of the wardrobe?”:\nSeventeen." {
		t.Errorf("messages to the user: %+v", said)
	}
	s := stateOf(t, p)
	if len(s.Gaps) != 1 || s.Gaps[0].Question != "Who feeds the dragon?" {
		t.Errorf("open questions: %+v", s.Gaps)
	}
	if len(s.Entries) != 1 || s.Entries[0].Question != "What is the number of the wardrobe?" || s.Entries[0].Group != ann || !s.Entries[0].Teacher.IsZero() {
		t.Errorf("entries: %+v", s.Entries)
	}
	nobody := command.Call{Path: ann, Args: map[string]string{"id": s.Entries[0].ID}}
	if said, err := p.unteach(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "Somebody else taught me that") {
		t.Errorf("/unteach by an unidentified user: got %q, %v", said, err)
	}
	if got := reply(data, "Eighteen."); !strings.Contains(got, "no longer open") {
		t.Errorf("late reply: got %q", got)
	}
	if err := (Editor{p}).Dismiss(t.Context(), ann, s.Gaps[0].ID); err == nil {
		t.Error("a question of another place can be dismissed")
	}
	if err := (Editor{p}).Dismiss(t.Context(), core.MustPath("room/bob"), s.Gaps[0].ID); err != nil || len(stateOf(t, p).Gaps) != 0 {
		t.Errorf("dismiss: got %v", err)
	}
}

// TestEditEntry checks that an edited entry is found by its new text, also after the index is rebuilt, and is
// erased with its author.
func TestEditEntry(t *testing.T) {
	p, h, _, _ := escalating(t)
	room := core.MustPath("room/1")
	message := core.Message{Path: room, ID: "7", Text: "The wardrobe has number 17.", Author: core.Author{ID: "ann"}}
	said := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: message}}
	if err := h.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{said}}); err != nil {
		t.Fatal(err)
	}
	c := command.Call{Path: room, Person: core.MustPath("room/@user/jay"), Target: "7"}
	if _, err := p.teach(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	e := stateOf(t, p).Entries[0]
	if e.Teacher != c.Person || e.Group != room || e.Time.IsZero() {
		t.Errorf("got %+v", e)
	}
	if err := (Editor{p}).EditEntry(t.Context(), core.MustPath("room/2"), e.ID, "x"); err == nil {
		t.Error("an entry of another group can be edited")
	}
	h.Advance(time.Minute)
	if err := (Editor{p}).EditEntry(t.Context(), room, e.ID, "The cupboard has number 18."); err != nil {
		t.Fatal(err)
	}
	finds := func(text string) int {
		t.Helper()
		found, err := p.find(t.Context(), p.visible(room), text, "", 5)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for when, change := range map[string]func(){"at once": func() {}, "synced": func() { synced(t, p) }} {
		change()
		if got := fmt.Sprint(finds("cupboard number"), finds("wardrobe")); got != "1 0" {
			t.Errorf("%s: got %s", when, got)
		}
	}
	if err := h.DB.Forget(t.Context(), core.MustPath("room/@user/ann")); err != nil {
		t.Fatal(err)
	}
	synced(t, p)
	if finds("cupboard number") != 0 || len(stateOf(t, p).Entries) != 0 {
		t.Error("the entry remains after its author was forgotten")
	}
}

// TestAudience checks that an answer in private is visible there only, and one in a thread in its whole group.
// A question without words of its own is closed, too.
func TestAudience(t *testing.T) {
	p, h, _, _ := escalating(t)
	for place, private := range map[string]bool{"room/dm/5": true, "room/1/thread": false} {
		path := core.MustPath(place)
		message := core.Message{Path: path, ID: "1", Text: "hi", Private: private, Author: core.Author{ID: "ann"}}
		said := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: message}}
		if err := h.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{said}}); err != nil {
			t.Fatal(err)
		}
		c := core.Call{Path: path, Private: private, Author: core.Author{ID: "ann"}}
		if err := (escalation{p}).noteGap(t.Context(), &c, "who is it, "+map[bool]string{true: "and why", false: "then"}[private]); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range stateOf(t, p).Gaps {
		if err := (Editor{p}).Answer(t.Context(), g.Place, g.ID, "Mallory, of "+g.Place.String()); err != nil {
			t.Fatal(err)
		}
	}
	s := stateOf(t, p)
	if len(s.Gaps) != 0 || len(s.Entries) != 2 {
		t.Fatalf("got %+v", s)
	}
	for _, e := range s.Entries {
		want := "room/dm/5"
		if strings.HasSuffix(e.Text, "thread") {
			want = "room/1"
		}
		if e.Group.String() != want {
			t.Errorf("%q is visible in %s", e.Text, e.Group)
		}
		if err := (Editor{p}).EditEntry(t.Context(), e.Group, e.ID, "now "+e.Text); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range stateOf(t, p).Entries {
		if strings.Count(e.Text, "now ") != 1 {
			t.Errorf("edited entry: got %q", e.Text)
		}
	}
}
