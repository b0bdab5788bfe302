package discord

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// TestTell: messages outside of turns reach channels and users. A private channel is opened once.
func TestTell(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	bob, long := core.MustPath("discord/@user/"+bobID), strings.Repeat("A sentence of some words. ", 200)
	for _, c := range []struct {
		to      core.Path
		channel func() string
		text    string
		parts   int
	}{
		{hall(), func() string { return hallID }, "Hello @everyone", 1},
		{core.MustPath("discord/@user/" + annID), func() string { return dmID }, "Hello **Ann**", 1},
		{bob, func() string { return s.DirectOf(bobID) }, long, 3},
		{bob, func() string { return s.DirectOf(bobID) }, "And more", 4},
	} {
		if err := d.Tell(t.Context(), c.to, c.text); err != nil {
			t.Fatal(err)
		}
		if got := s.Texts(c.channel()); len(got) != c.parts || !strings.HasPrefix(c.text, got[0][:5]) && c.parts < 4 {
			t.Errorf("%s: got %q, want %d messages with %.20q", c.to, got, c.parts, c.text)
		}
	}
	if n := len(s.Calls("POST /users/@me/channels")); n != 2 {
		t.Errorf("private channels were opened %d times, want 2", n)
	}
}

// TestLink: messages of guilds have a link.
func TestLink(t *testing.T) {
	d := newServer(t).bot(t)
	for place, want := range map[string]string{
		hall().String(): "https://discord.com/channels/" + guildID + "/" + hallID + "/77", hall().String() + "/5": "https://discord.com/channels/" + guildID + "/5/77",
		"discord/1": "", "telegram/1/2": "",
	} {
		if got := d.Link(core.MustPath(place), "77"); got != want {
			t.Errorf("%s: got %q, want %q", place, got, want)
		}
	}
}

// TestTellTriesOnce: a message outside of turns is sent again only after a rate limit.
func TestTellTriesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		to    string
		text  string
		fault discordtest.Fault
		want  core.ErrorKind
		count int // messages
	}{
		"nobody":       {"discord/@user/5", "x", discordtest.Fault{}, core.Invalid, 0},
		"closed":       {"discord/@user/6", "x", discordtest.Fault{}, core.Broken, 0},
		"nothing":      {"discord/@user/" + annID, " \u200b", discordtest.Fault{}, core.Invalid, 0},
		"elsewhere":    {"telegram/@user/5", "x", discordtest.Fault{}, core.Invalid, 0},
		"answer lost":  {"discord/@user/" + annID, "x", discordtest.Fault{Kind: discordtest.ResetAfter}, core.Temporary, 1},
		"bad gateway":  {"discord/@user/" + annID, "x", discordtest.Fault{Kind: discordtest.Broken}, core.Temporary, 0},
		"rate limited": {"discord/@user/" + annID, "x", discordtest.Fault{Kind: discordtest.Limited}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.AddPerson(discordtest.Person{ID: "6", Closed: true})
			s.FailNext("POST /channels/", c.fault)
			err := s.bot(t).Tell(t.Context(), core.MustPath(c.to), c.text)
			if kind(err) != c.want || len(s.Messages(dmID)) != c.count {
				t.Errorf("got %v and %d messages, want %q and %d", err, len(s.Messages(dmID)), c.want, c.count)
			}
		})
	}
}
