package daemon

import (
	"slices"
	"testing"

	"synthbot/core"
	"synthbot/memory"
)

// TestOverlay: what is changed by command holds below, outlives the process, and
// goes when the place or the person is forgotten.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	db, err := memory.Open(dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := openOverlay(t.Context(), db.Items("bot"))
	if err != nil {
		t.Fatal(err)
	}
	yes, no, jay := true, false, core.MustPath("telegram/@user/1")
	for path, f := range map[string]func(*changed){
		"telegram/-100":    func(c *changed) { c.Asleep = &yes },
		"telegram/-100/7":  func(c *changed) { c.Asleep = &no },
		"telegram/@user/1": func(c *changed) { c.Admin = &yes },
	} {
		if err := o.change(t.Context(), core.MustPath(path), f); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() {
		t.Helper()
		for path, want := range map[string]bool{"telegram/-100": true, "telegram/-100/3": true, "telegram/-100/7": false, "telegram/5": false} {
			if got := o.asleep(core.MustPath(path)); got != want {
				t.Errorf("%s sleeps: %v", path, got)
			}
		}
		if got := o.admins(); !slices.Equal(got, []core.Path{jay}) {
			t.Errorf("admins: %v", got)
		}
	}
	holds()
	if o, err = openOverlay(t.Context(), db.Items("bot")); err != nil {
		t.Fatal(err)
	}
	holds()
	private := core.MustPath("telegram/9")
	said := core.Event{Kind: core.KindMessage, Message: core.Message{Path: private, ID: "1", Author: core.Author{ID: "1"}, Private: true, Text: "hello"}}
	if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{{Event: said}}}); err != nil {
		t.Fatal(err)
	}
	if err := o.change(t.Context(), private, func(c *changed) { c.Asleep = &yes }); err != nil {
		t.Fatal(err)
	}
	gone := func(path core.Path, want bool) {
		t.Helper()
		if err := db.Forget(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if less, err := o.reread(t.Context()); less != want || err != nil {
			t.Errorf("%s: less is kept: %v, %v", path, less, err)
		}
	}
	gone(jay, true)
	if len(o.admins()) > 0 {
		t.Error("who was forgotten is an admin still")
	}
	if o.asleep(private) {
		t.Error("his private place sleeps still")
	}
	gone(jay, false)
	gone(core.MustPath("telegram/-100"), true)
	if o.asleep(core.MustPath("telegram/-100/3")) {
		t.Error("a place that was forgotten sleeps still")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
