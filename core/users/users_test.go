package users

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/memory"
)

var place = core.MustPath("room/1")

func author(id, name, tag string) core.Author { return core.Author{ID: id, Name: name, Tag: tag} }

// TestFind: users are found by id, path, name, tag or an unambiguous part of the name. Bots and users
// without an id are left out.
func TestFind(t *testing.T) {
	c := List{Place: place}
	for _, a := range []core.Author{
		author("1", "Jay Miller", "@jay"), author("2", "Ann", "@ann"), author("3", "Ann Other", ""), author("4", "Jay Smith", "@smith"),
		author("1", "twice", "@twice"), author("", "nobody", ""), {ID: "9", Name: "Bot", Bot: true},
	} {
		c.Add(a)
	}
	if len(c.Users) != 4 {
		t.Fatalf("got %d users, want 4", len(c.Users))
	}
	for name, want := range map[string]string{
		"2": "2", "room/@user/4": "4", "JAY": "1", "@smith": "4", "smith": "4", "jay miller": "1", " Ann ": "2", "Zoe": "", "": "",
	} {
		person, ok, err := c.Find(name)
		if err != nil || ok != (want != "") || ok && person != core.MustPath("room/@user/"+want) {
			t.Errorf("%q: got %v, %v, %v, want %q", name, person, ok, err, want)
		}
	}
	c.Users[0].Tag = ""
	if _, ok, err := c.Find("jay"); ok || err == nil || !strings.Contains(err.Error(), "Several people here are called jay: 1, @smith.") {
		t.Errorf("ambiguous name: got %v, %v, want an error that lists both", ok, err)
	}
	if name := c.Author(core.MustPath("room/@user/2")).Name; name != "Ann" {
		t.Errorf("user 2: got %q, want Ann", name)
	}
	if name := c.Author(core.MustPath("room/@user/77")).Name; name != "" {
		t.Errorf("unknown user: got %q, want no name", name)
	}
}

func open(t *testing.T) core.Store {
	t.Helper()
	s, err := memory.Open(t.TempDir(), memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRecent: Recent lists the users who wrote in a place, the latest first and with their latest names.
func TestRecent(t *testing.T) {
	s := open(t)
	var b core.Batch
	for i, a := range []core.Author{author("1", "Jay", ""), author("2", "Ann", ""), author("1", "Jay, later", "")} {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: string(rune('a' + i)), Author: a, Text: "hi"}}})
	}
	b.Append = append(b.Append, core.Entry{Self: true, Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: "own", Author: author("7", "Aria", "")}}})
	if err := s.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	c, err := Recent(t.Context(), s, place, core.Author{})
	if err != nil || len(c.Users) != 2 || c.Users[0].Name != "Jay, later" || c.Users[1].ID != "2" {
		t.Errorf("got %+v, %v, want users 1 and 2", c, err)
	}
}
