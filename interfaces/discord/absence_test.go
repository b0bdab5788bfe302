package discord

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// TestCutOfTenMinutes: a hundred messages that are sent while the gateway is closed, in known
// channels, a direct message, a thread and an unknown channel, are found in order and answered once.
func TestCutOfTenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		known := []string{hallID, roomID, dmID, topicID}
		d, in := s.bot(t), newInbox()
		in.patience = time.Hour
		e := &echo{t: t, d: d, wait: map[core.Path]chan core.Event{}}
		in.answer = e.take
		defer e.close()
		stop := s.listen(t, d, in)
		defer func() { _ = stop() }()
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		said := 0
		say := func(channel string) {
			e.done.Add(1)
			s.Say(channel, annID, fmt.Sprint("message ", said))
			said++
		}
		for _, c := range known {
			say(c)
		}
		in.wait(t, core.KindMessage, said)
		time.Sleep(time.Minute)
		s.Gateway(func(g *discordtest.Settings) { g.Closed = true })
		s.Drop()
		for i := range 100 {
			time.Sleep(6 * time.Second)
			say(append(known, discordtest.VoiceID)[i%5])
		}
		s.Gateway(func(g *discordtest.Settings) { g.Closed = false })
		in.wait(t, core.KindMessage, said)
		for _, c := range known {
			say(c)
		}
		e.done.Wait()
		for _, c := range append(known, discordtest.VoiceID) {
			var asked, answered []string
			for _, m := range s.Everything(c) {
				if rest, ok := strings.CutPrefix(m.Text, "re: "); ok {
					answered = append(answered, rest)
				} else {
					asked = append(asked, m.Text)
				}
			}
			if !slices.Equal(asked, answered) {
				t.Errorf("%s: got answers to %q, want answers to %q", c, answered, asked)
			}
		}
	})
}

// restartAfter starts a bot, calls before, stops the bot, calls meanwhile, and starts the bot again.
func (s *server) restartAfter(
	t *testing.T, change func(*Options), before, meanwhile func(d *Driver, in *inbox),
) *inbox {
	t.Helper()
	state := newState()
	start := func() (*Driver, *inbox, func() error) {
		d, in := s.bot(t, func(o *Options) {
			o.State = state
			if change != nil {
				change(o)
			}
		}), newInbox()
		in.patience = time.Hour
		stop := s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		return d, in, stop
	}
	d, in, stop := start()
	before(d, in)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	meanwhile(d, in)
	time.Sleep(time.Hour)
	_, in, _ = start()
	return in
}

// TestMissedMessagesHaveTheirRank: the authors of fetched messages, which come without member data,
// are requested once each.
func TestMissedMessagesHaveTheirRank(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Members[annID] = &discordtest.Member{Nick: "Annie"} })
		in := s.restartAfter(t, nil,
			func(_ *Driver, in *inbox) { s.Say(hallID, annID, hello()); in.wait(t, core.KindMessage, 1) },
			func(*Driver, *inbox) {
				for range 3 {
					s.Say(hallID, annID, "missed")
					s.Say(hallID, bobID, "missed")
				}
				s.Say(hallID, discordtest.OwnerID, "missed")
				s.Say(hallID, "5", "I left")
				s.ChangeGuild(guildID, func(g *discordtest.Guild) { delete(g.Members, "5") })
			})
		ranks, names := map[string]core.Rank{}, map[string]string{}
		for _, e := range in.wait(t, core.KindMessage, 8) {
			ranks[e.Message.Author.ID], names[e.Message.Author.ID] = e.Message.Author.Rank, e.Message.Author.Name
		}
		want := map[string]core.Rank{annID: core.RankMember, bobID: core.RankModerator, discordtest.OwnerID: core.RankModerator, "5": core.RankMember}
		for id, rank := range want {
			if ranks[id] != rank {
				t.Errorf("%s: got rank %d, want %d", id, ranks[id], rank)
			}
		}
		if names[annID] != "Annie" || names["5"] != "user5" {
			t.Errorf("got names %v, want Annie and user5", names)
		}
		if n := len(s.Calls("GET /guilds/")); n != 4 {
			t.Errorf("got %d requests for members, want 4", n)
		}
	})
}

// TestMembersAreAskedForWithinBounds: at most maxRequested members are requested after an absence.
func TestMembersAreAskedForWithinBounds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		in := s.restartAfter(t, nil,
			func(_ *Driver, in *inbox) { s.Say(hallID, annID, hello()); in.wait(t, core.KindMessage, 1) },
			func(*Driver, *inbox) {
				for i := range maxRequested + 50 {
					s.Say(hallID, fmt.Sprint(1000+i), "missed")
				}
			})
		in.wait(t, core.KindMessage, maxRequested+50)
		if n := len(s.Calls("GET /guilds/")); n != maxRequested {
			t.Errorf("got %d requests for members, want %d", n, maxRequested)
		}
	})
}

// TestMissedInAnUnknownChannel: messages that were sent during an absence in channels where
// nobody had written before are found. Nothing is requested from channels that the bot may not
// read or that have no new message.
func TestMissedInAnUnknownChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Say(roomID, annID, "long ago")
		s.AddChannel(discordtest.Channel{ID: "811", Guild: guildID, Name: "secret", Over: []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MayView}}})
		time.Sleep(time.Hour)
		post := ""
		in := s.restartAfter(t, nil,
			func(_ *Driver, in *inbox) { s.Say(hallID, annID, "x"); in.wait(t, core.KindMessage, 1) },
			func(*Driver, *inbox) {
				s.Say(discordtest.VoiceID, annID, hello())
				s.Say("811", annID, hello())
				post = s.AddChannel(discordtest.Channel{Guild: guildID, Parent: forumID, Type: discordtest.PublicThread, Name: "New post"})
				s.Say(post, bobID, "what do you think, <@"+botID+">?")
			})
		got := map[string]string{}
		for _, e := range in.wait(t, core.KindMessage, 2) {
			got[e.Message.Path.String()] = string(e.Message.Addressed) + " " + e.Message.Text
		}
		if got["discord/"+guildID+"/"+discordtest.VoiceID] != "mention hello @aria" {
			t.Errorf("voice channel: got %v", got)
		}
		if got["discord/"+guildID+"/"+forumID+"/"+post] != "mention [post: New post]\nwhat do you think, @aria?" {
			t.Errorf("forum: got %v", got)
		}
		for _, c := range []string{roomID, "811"} {
			if n := len(s.Calls("GET /channels/" + c)); n != 0 {
				t.Errorf("%s: got %d requests, want 0", c, n)
			}
		}
	})
}

// TestTakeoverBeforeAGuildArrives: a driver that stops before an announced guild has arrived leaves the messages that
// were missed in its unknown channels to the next one.
func TestTakeoverBeforeAGuildArrives(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		start := func() (*inbox, func() error) {
			in := newInbox()
			in.patience = time.Hour
			stop := s.listen(t, s.bot(t, func(o *Options) { o.State = state }), in)
			within(t, time.Minute, "connected", func() bool { return s.Live() == 1 })
			return in, stop
		}
		takeOver := func(stop func() error, after time.Duration) {
			time.Sleep(after)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			s.Forget()
		}
		_, stop := start()
		takeOver(stop, time.Minute)
		s.Say(discordtest.VoiceID, annID, "missed")
		time.Sleep(time.Hour)
		s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Unavailable = true })
		_, stop = start()
		takeOver(stop, defaultTimings.guilds/2)
		s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Unavailable = false })
		in, _ := start()
		if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Text != "missed" {
			t.Errorf("got %+v, want the missed message", m)
		}
	})
}

// TestMissedAnswerToTell: in a private chat that the bot began, the missed answer is found.
func TestMissedAnswerToTell(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		in := s.restartAfter(t, nil,
			func(d *Driver, _ *inbox) {
				if err := d.Tell(t.Context(), core.MustPath("discord/@user/"+bobID), "Are you there?"); err != nil {
					t.Fatal(err)
				}
			},
			func(*Driver, *inbox) { s.Say(s.DirectOf(bobID), bobID, "I am") })
		if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Text != "I am" || !m.Private || m.Addressed != core.AddressedDirect {
			t.Errorf("got %+v, want the private answer", m)
		}
	})
}

// TestMissedAfterACommand: in a private chat where only a command was called, a missed message is found.
func TestMissedAfterACommand(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		in := s.restartAfter(t, func(o *Options) { o.Commands = onlyHelp },
			func(d *Driver, in *inbox) {
				within(t, time.Minute, "commands", func() bool { return len(s.Calls("PUT /applications/")) == 1 })
				if _, err := s.Command(dmID, annID, "help", nil); err != nil {
					t.Fatal(err)
				}
				in.wait(t, core.KindCommand, 1)
			},
			func(*Driver, *inbox) { s.Say(dmID, annID, "are you there?") })
		if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Text != "are you there?" || !m.Private {
			t.Errorf("got %+v, want the private message", m)
		}
	})
}

// TestCrashRightAfterTheFirstMessage: a channel whose first message arrived just before a crash is known
// to the next process, which finds the messages since then.
func TestCrashRightAfterTheFirstMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d, in := s.bot(t, func(o *Options) { o.State = &stoppableState{State: state} }), newInbox()
		s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		first := s.Say(dmID, annID, "one")
		in.wait(t, core.KindMessage, 1)
		d.opt.State.(*stoppableState).stop() // the process crashes: nothing is written any more
		s.Forget()
		s.Say(dmID, annID, "two")
		time.Sleep(time.Minute)
		next := newInbox()
		s.listen(t, s.bot(t, func(o *Options) { o.State = state }), next)
		for _, e := range next.wait(t, core.KindMessage, 2) {
			if e.Message.Text != "two" && e.Message.ID != first {
				t.Errorf("got %+v, want the messages one and two", e)
			}
		}
	})
}

// TestAnnouncedGuildThatDoesNotCome: an announced guild is awaited for a while after its announcement,
// however long connecting took. If it does not arrive, the messages of its channels are fetched.
func TestAnnouncedGuildThatDoesNotCome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		start := func() (*Driver, *inbox, func() error) {
			d, in := s.bot(t, func(o *Options) { o.State = state }), newInbox()
			in.patience = time.Hour
			return d, in, s.listen(t, d, in)
		}
		d, in, stop := start()
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		s.Say(hallID, annID, hello())
		in.wait(t, core.KindMessage, 1)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.Say(hallID, annID, "missed")
		s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Unavailable = true })
		s.Gateway(func(g *discordtest.Settings) { g.Closed = true })
		_, in, _ = start()
		time.Sleep(18 * time.Second)
		s.Gateway(func(g *discordtest.Settings) { g.Closed = false })
		if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Text != "missed" {
			t.Errorf("got %+v, want the missed message", m)
		}
		announced := s.Identifies()[1].At
		asked := s.Calls("GET /channels/" + hallID + "/messages")
		limit := defaultTimings.guilds
		if len(asked) != 1 || asked[0].At.Sub(announced) < limit || asked[0].At.Sub(announced) > 2*limit {
			t.Errorf("announced at %v, requested %+v, want one request after %v to %v", announced, asked, limit, 2*limit)
		}
	})
}
