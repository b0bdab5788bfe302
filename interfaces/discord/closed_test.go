package discord

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/rest"
)

// TestClosedChannelIsLeftAlone: after a channel refused a message, nothing is sent there until the
// channel changes, and admins are notified once. Messages of users do not open it again.
func TestClosedChannelIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var notices []string
	d, in := s.up(t, func(o *Options) { o.Admin = func(text string) { notices = append(notices, text) } })
	s.RefuseChannel(roomID, 50001)
	to := map[string]any{"text": "x", "interface_path": "discord/" + guildID + "/" + roomID}
	for range 5 {
		if _, err := act(t, d, "message_discord", to); kind(err) != core.Forbidden {
			t.Errorf("got %v, want forbidden", err)
		}
	}
	if n := len(s.Calls("POST /channels/" + roomID)); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], roomID) {
		t.Errorf("admins received %q, want one notice that names the channel", notices)
	}
	s.Say(roomID, annID, "are you there?")
	in.wait(t, core.KindMessage, 1)
	if _, err := act(t, d, "message_discord", to); kind(err) != core.Forbidden || len(s.Calls("POST /channels/"+roomID)) != 1 {
		t.Errorf("after a user's message: got %v, want forbidden without a request", err)
	}
	s.RefuseChannel(roomID, 0)
	s.Tell(guildID, "", "CHANNEL_UPDATE", map[string]any{"id": roomID, "guild_id": guildID, "type": 0, "name": "room"})
	s.Say(hallID, annID, "now")
	in.wait(t, core.KindMessage, 2)
	if _, err := act(t, d, "message_discord", to); err != nil {
		t.Errorf("after a change of the channel: %v", err)
	}
}

// TestClosedTargetsOpenAgain: a closed target opens again when something changes that may concern
// it: the user writes, or a role, channel, category or the guild changes. Other targets stay closed.
func TestClosedTargetsOpenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		const other, lobby = "800000000000000077", "800000000000000078"
		d, in := s.bot(t), newInbox()
		s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		s.AddGuild(other, nil)
		s.AddChannel(discordtest.Channel{ID: lobby, Guild: other, Name: "lobby"})
		s.Say(lobby, annID, "hello")
		in.wait(t, core.KindMessage, 1)
		places := map[string]string{"discord/@me/" + dmID: dmID, "discord/" + guildID + "/" + hallID: hallID, "discord/" + other + "/" + lobby: lobby}
		open := func(place, channel string) bool {
			s.RefuseChannel(channel, 0)
			_, err := act(t, d, "message_discord", map[string]any{"text": "x", "interface_path": place})
			return err == nil
		}
		for name, c := range map[string]struct {
			change func()
			opens  string
		}{
			"a user writes": {func() { s.Say(dmID, annID, "hello") }, dmID},
			"role": {func() {
				s.Tell(guildID, "", "GUILD_ROLE_UPDATE", map[string]any{"guild_id": guildID, "role": map[string]any{"id": "5"}})
			}, hallID},
			"own roles": {func() {
				s.Tell(other, "", "GUILD_MEMBER_UPDATE", map[string]any{"guild_id": other, "user": map[string]any{"id": botID}})
			}, lobby},
			"category": {func() {
				s.Tell(guildID, "", "CHANNEL_UPDATE", map[string]any{"guild_id": guildID, "id": catID, "type": 4})
			}, hallID},
			"the guild":   {func() { s.Tell(other, "", "GUILD_UPDATE", map[string]any{"id": other, "name": "x"}) }, lobby},
			"its channel": {func() { s.Tell(other, "", "CHANNEL_UPDATE", map[string]any{"guild_id": other, "id": lobby, "type": 0}) }, lobby},
		} {
			for place, channel := range places {
				s.RefuseChannel(channel, 50001)
				if _, err := act(t, d, "message_discord", map[string]any{"text": "x", "interface_path": place}); err == nil {
					t.Fatal("the message was sent, want a refusal")
				}
			}
			want := len(in.all()) + 1
			if c.opens == dmID {
				want++
			}
			c.change()
			s.Say(groupID, annID, "then")
			within(t, time.Minute, name, func() bool { return len(in.all()) == want })
			for place, channel := range places {
				if got := open(place, channel); got != (channel == c.opens) {
					t.Errorf("%s: %s: open %v, want %v", name, place, got, channel == c.opens)
				}
				d.closed.clearWhere(func(id string) bool { return id == channel })
			}
		}
	})
}

// TestReplyWithoutHistory: where the bot may not read the history, which replies require, it sends
// the answer without a reference.
func TestReplyWithoutHistory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	s.ChangeChannel(hallID, func(c *discordtest.Channel) {
		c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MayReadHistory}}
	})
	id := s.Say(hallID, annID, hello())
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Hi.", "reply_to_message_id": id}); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(hallID); len(got) != 1 || got[0].Text != "Hi." || got[0].ReplyTo != "" {
		t.Errorf("got %+v, want one message that is not a reply", got)
	}
}

// TestClosedMeanwhile: a message that is refused for its content is an invalid request, also if its
// channel closes at the same time.
func TestClosedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	s.Fail(func(c discordtest.Call) (f discordtest.Fault) {
		if c.Is("POST /channels/" + hallID) {
			d.closed.set(hallID, &rest.Error{Status: 403, Code: missingPermission})
			f = discordtest.Fault{Kind: discordtest.Refused, Status: 400, Code: 200000}
		}
		return f
	})
	for _, want := range []core.ErrorKind{core.Invalid, core.Forbidden} {
		if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); kind(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestPermissionLostInTheMiddle: if the bot loses its permission between two parts of an answer, the
// sent part counts as sent, and the rest is sent when the bot may write again.
func TestPermissionLostInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		var notices []string
		d := s.bot(t, func(o *Options) { o.Admin = func(text string) { notices = append(notices, text) } })
		s.FailNext("POST /channels/"+hallID, discordtest.Fault{}, discordtest.Fault{Kind: discordtest.Refused, Code: 50013})
		parts := &journal{base: "middle"}
		payload := map[string]any{"text": strings.Repeat("A sentence of some words. ", 200)}
		for range 3 {
			if _, err := act(t, d, "message_discord", payload, func(c *core.Call) { c.Deliveries = parts }); kind(err) != core.Forbidden {
				t.Errorf("got %v, want forbidden", err)
			}
		}
		if n := len(s.Calls("POST /channels/" + hallID)); n != 2 || len(notices) != 1 || len(s.Messages(hallID)) != 1 {
			t.Errorf("got %d requests, %d messages and notices %q, want 2, 1 and one", n, len(s.Messages(hallID)), notices)
		}
		time.Sleep(refusalAge + time.Second)
		if _, err := act(t, d, "message_discord", payload, func(c *core.Call) { c.Deliveries = parts }); err != nil {
			t.Error(err)
		}
		if got := strings.Count(strings.Join(s.Texts(hallID), " "), "sentence"); got != 200 {
			t.Errorf("got %d sentences, want 200", got)
		}
	})
}
