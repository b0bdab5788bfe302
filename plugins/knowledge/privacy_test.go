package knowledge

import (
	"path/filepath"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/memory"
	"synthbot/plugins/plugintest"
)

// TestPrivateQuestionsStay checks that a question that was asked in private is listed, but not asked to others.
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
		t.Errorf("messages to others: %+v", said)
	}
	var out strings.Builder
	if err := p.Gaps(t.Context(), &out); err != nil || strings.Count(out.String(), "am I ill?") != 2 {
		t.Errorf("listed: got %q: %v", out.String(), err)
	}
}

// TestExportAndBackup checks that a user's entries and questions are in their own export only, and that the
// index can be rebuilt from a backup.
func TestExportAndBackup(t *testing.T) {
	p, h, ask, reply := escalating(t)
	data := ask("ann", "What is the number of the wardrobe?")
	reply(data, "Seventeen are there.")
	reply(data, "remember this answer")
	ask("bob", "Who feeds the dragon?")
	exported := func(person string) string {
		t.Helper()
		var out strings.Builder
		if err := h.DB.Export(t.Context(), &out, core.MustPath("room/@user/"+person)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, tc := range []struct{ person, has, hasNot string }{
		{"ann", "number of the wardrobe", "dragon"}, {"bob", "feeds the dragon", "wardrobe"},
		{"jay", "Seventeen are there", "dragon"}, {"jay", `"taught `, "wardrobe"},
	} {
		got := exported(tc.person)
		if !strings.Contains(got, tc.has) || strings.Contains(got, tc.hasNot) {
			t.Errorf("the export of %s must have %q and not %q:\n%s", tc.person, tc.has, tc.hasNot, got)
		}
	}
	dir := t.TempDir()
	if err := h.DB.Backup(filepath.Join(dir, memory.FileName)); err != nil {
		t.Fatal(err)
	}
	db, err := memory.Open(dir, memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	host := h.Host
	host.Items, host.Reader, host.Passages = db.Items("knowledge"), db, memory.Passages(db)
	if err := host.Passages.DropDocuments(t.Context(), "taught room/ann", data[len("knowledge:"):][:entryID]); err != nil {
		t.Fatal(err)
	}
	if p, err = New(host, p.config); err != nil {
		t.Fatal(err)
	}
	synced(t, p)
	found, err := p.find(t.Context(), p.visible(core.MustPath("room/ann")), "wardrobe seventeen", "", 5)
	if err != nil || len(found) != 1 || found[0].Text != "Seventeen are there." {
		t.Errorf("search in the backup: got %+v: %v", found, err)
	}
	if all := listed(t, p); !strings.Contains(all, "dragon") || strings.Contains(all, "wardrobe") {
		t.Errorf("open questions in the backup: %s", all)
	}
}

// TestTaughtWordsAreForgotten checks that an entry that quotes a message is removed when its author is
// forgotten. Entries with the bot's or the teacher's own text stay.
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
			t.Errorf("%s: %q: found %d passages, want %d: %v", when, text, len(found), want, err)
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
