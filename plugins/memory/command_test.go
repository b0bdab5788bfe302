package memory

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/plugintest"
)

// TestOwnList checks that users see, in private, what they said themselves and what was said about them in
// groups where they are members. They do not see what others said in private or in other places.
func TestOwnList(t *testing.T) {
	s := plugintest.NewHarness(t, "memory")
	p := made(t, s, standard())
	his, hers := core.MustPath("room/@user/jay"), core.MustPath("room/@user/ann")
	alone, secret, with, without := core.MustPath("room/jay"), core.MustPath("room/ann/jay"), core.MustPath("room/1"), core.MustPath("room/2")
	says(t, s, alone, jay, "hello")
	says(t, s, secret, jay, "hello, only the two of us") // also private
	says(t, s, with, jay, "hello all")
	says(t, s, without, ann, "hello all")
	for origin, text := range map[core.Path]string{alone: "alone", secret: "secret", with: "with", without: "without"} {
		save(t, s, core.Fact{Text: text + " told by Ann", Origin: origin, By: hers, About: []core.Path{his}})
		save(t, s, core.Fact{Text: text + " told by Jay", Origin: origin, By: his, About: []core.Path{his}})
		save(t, s, core.Fact{Text: text + " about Ann", Origin: origin, By: his, About: []core.Path{hers}})
		save(t, s, core.Fact{Text: text + " of nobody", Origin: origin, By: hers})
	}
	list := func(c command.Call) string {
		t.Helper()
		text, err := p.memories(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	call := command.Call{Path: alone, Private: true, Author: jay, Person: his, Sees: []core.Path{alone}}
	for text, want := range map[string]bool{
		"alone told by Ann": true, "alone told by Jay": true, "with told by Ann": true, "with told by Jay": true,
		"without told by Jay": true, "without told by Ann": false, "secret told by Jay": true, "secret told by Ann": false, "without about Ann": true, "of nobody": false,
	} {
		if got := strings.Contains(list(call), text); got != want {
			t.Errorf("in private: %q listed = %v", text, got)
		}
	}
	call.Path, call.Private, call.Sees = with, false, []core.Path{with}
	if got := list(call); strings.Count(got, "told by") != 2 || strings.Count(got, "with told by") != 2 {
		t.Errorf("in the group, the list has\n%s", got)
	}
}

// TestRememberThis checks that /remember as a reply stores the message with its author as the source.
func TestRememberThis(t *testing.T) {
	s := plugintest.NewHarness(t, "memory")
	p := made(t, s, standard())
	entry := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: "m7", Author: ann, Text: "I live in Rome", Time: s.Clock()}}}
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
	c := command.Call{Path: place, Author: jay, Person: core.MustPath("room/@user/jay"), Target: "m7", Args: map[string]string{}}
	noted := savePayload{}
	c.Noted = func(s core.Step, _ core.Result) {
		if err := json.Unmarshal(s.Payload, &noted); err != nil {
			t.Error(err)
		}
	}
	for _, given := range []string{"", "my bike is red"} {
		c.Args["text"] = given
		if _, err := p.remember(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.DB.Recall(t.Context(), core.FactQuery{See: []core.Path{place}, N: 10})
	if err != nil || len(found) != 2 || found[0].By != c.Person || found[0].Text != "my bike is red" {
		t.Fatalf("got %v, %v", found, err)
	}
	if f := found[1]; f.Text != "I live in Rome" || f.By != core.MustPath("room/@user/ann") || len(f.About) != 1 || f.About[0] != f.By || f.Origin != place {
		t.Errorf("got %+v", f)
	}
	if noted.Text != found[0].Text || noted.Importance != found[0].Importance {
		t.Errorf("noted %+v, stored %+v", noted, found[0])
	}
	c.Target, c.Args["text"] = "", strings.Repeat("x", textMax+1)
	if _, err := p.remember(t.Context(), c); err == nil {
		t.Error("a text that is too long was stored")
	}
}

// TestRememberForwarded checks that a forwarded message is stored neither as a statement of the user who
// forwarded it nor as one about them.
func TestRememberForwarded(t *testing.T) {
	s := plugintest.NewHarness(t, "memory")
	p := made(t, s, standard())
	mal := core.Foreign{Kind: core.ForeignForward, From: core.Author{ID: "mal", Name: "Mallory"}, Text: "I live in a cave"}
	entry := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: place, ID: "m7", Author: ann, Time: s.Clock(), Foreign: []core.Foreign{mal, {Kind: core.ForeignEmbed, Text: "a card"}},
	}}}
	if err := s.DB.Commit(t.Context(), &core.Batch{Append: []core.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
	c := command.Call{Path: place, Author: jay, Person: core.MustPath("room/@user/jay"), Target: "m7"}
	if _, err := p.remember(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Target, c.Foreign = "never seen", []core.Foreign{{Kind: core.ForeignForward, Text: "nobody knows who wrote this"}}
	if _, err := p.remember(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	found, err := s.DB.Recall(t.Context(), core.FactQuery{See: []core.Path{place}, N: 10})
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v", found, err)
	}
	for _, f := range found {
		by, about := core.MustPath("room/@user/mal"), 1
		if f.Text != mal.Text {
			by, about = c.Person, 0
		}
		if f.By != by || len(f.About) != about || about > 0 && f.About[0] != by {
			t.Errorf("got %+v", f)
		}
	}
}
