package users

import (
	"maps"
	"testing"

	"synthbot/core"
)

// TestNames: the name of a place or user comes from the interface, else from recent messages. A group
// does not get the name of a member.
func TestNames(t *testing.T) {
	s := open(t)
	var b core.Batch
	say := func(place, id, name string, private bool) {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: core.MustPath(place), ID: id + name, Author: core.Author{ID: id, Name: name}, Text: "hi", Private: private,
		}}})
	}
	say("room/1", "7", "Jay", false)
	say("room/2", "8", "Ann", true)
	say("room/3", "9", "Bo, once", false)
	say("room/3", "9", "Bo", false)
	say("hall/1", "7", "another Jay", false)
	b.Append = append(b.Append, core.Entry{Self: true, Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: core.MustPath("room/2"), ID: "own", Author: core.Author{ID: "1", Name: "Aria"}, Private: true,
	}}})
	if err := s.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	known := func(p core.Path) string { return map[string]string{"room/3": "The third"}[p.String()] }
	want := map[core.Path]string{
		core.MustPath("room/2"): "Ann", core.MustPath("room/3"): "The third", core.MustPath("room/@user/7"): "Jay",
		core.MustPath("room/@user/8"): "Ann", core.MustPath("room/@user/9"): "Bo",
	}
	asked := []core.Path{core.MustPath("room/1"), core.MustPath("room/@user/1"), core.MustPath("room/@user/404"), core.MustPath("nowhere/@user/7"), {}}
	for p := range want {
		asked = append(asked, p)
	}
	err := s.View(t.Context(), func(v core.View) error {
		got, err := NamesOf(v, known, asked...)
		if !maps.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
