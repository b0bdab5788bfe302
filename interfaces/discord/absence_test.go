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

// A gateway cut of ten minutes with a hundred messages in it, over channels,
// direct messages, a thread, and a channel that was never heard of before: all
// are found, in order, and answered once.
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
				t.Errorf("%s: said %q, answered %q", c, asked, answered)
			}
		}
	})
}

// restartAfter runs a bot, lets things happen while it is gone, and runs it again.
func (s *server) restartAfter(t *testing.T, change func(*Options), before, meanwhile func(d *Driver, in *inbox)) *inbox {
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

// What people are in the guild is asked for: the past comes without.
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
				t.Errorf("%s has rank %d, want %d", id, ranks[id], rank)
			}
		}
		if names[annID] != "Annie" || names["5"] != "user5" {
			t.Errorf("names: %v", names)
		}
		if n := len(s.Calls("GET /guilds/")); n != 4 {
			t.Errorf("asked %d times who somebody is, want once for each", n)
		}
	})
}

// A crowd is not asked for one by one without end.
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
			t.Errorf("asked %d times", n)
		}
	})
}

// Somebody spoke to the bot in a channel where nobody ever had, while it was
// away. Channels that it may not read, and those where nothing is new, are left
// alone.
func TestMissedInAChannelNeverHeardOf(t *testing.T) {
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
			t.Errorf("in the voice channel: %v", got)
		}
		if got["discord/"+guildID+"/"+forumID+"/"+post] != "mention [post: New post]\nwhat do you think, @aria?" {
			t.Errorf("in the forum: %v", got)
		}
		for _, c := range []string{roomID, "811"} {
			if n := len(s.Calls("GET /channels/" + c)); n != 0 {
				t.Errorf("%s was asked for %d times", c, n)
			}
		}
	})
}

// Direct messages that the bot began count as known: the answer is found.
func TestAnswerToWhatAPersonWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		in := s.restartAfter(t, nil,
			func(d *Driver, _ *inbox) {
				if err := d.Tell(t.Context(), core.MustPath("discord/@user/"+bobID), "Are you there?"); err != nil {
					t.Fatal(err)
				}
			},
			func(*Driver, *inbox) { s.Say(s.DirectOf(bobID), bobID, "I am") })
		if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Text != "I am" || !m.Private || m.Addressed != core.AddressedDirect {
			t.Errorf("came in: %+v", m)
		}
	})
}

// So do those where nothing but a command was given.
func TestWordsAfterACommand(t *testing.T) {
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
			t.Errorf("came in: %+v", m)
		}
	})
}

// A channel that was heard of for the first time a moment before a crash is known
// in the next life, and what comes before anybody wrote it down as well.
func TestCrashRightAfterTheFirstWord(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		d, in := s.bot(t, func(o *Options) { o.State = &stoppableState{State: state} }), newInbox()
		s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return d.cache.known(guildID) })
		first := s.Say(dmID, annID, "one")
		in.wait(t, core.KindMessage, 1)
		d.opt.State.(*stoppableState).stop() // the process is dead: nothing is written any more
		s.Forget()
		s.Say(dmID, annID, "two")
		time.Sleep(time.Minute)
		next := newInbox()
		s.listen(t, s.bot(t, func(o *Options) { o.State = state }), next)
		for _, e := range next.wait(t, core.KindMessage, 2) {
			if e.Message.Text != "two" && e.Message.ID != first {
				t.Errorf("came in: %+v", e)
			}
		}
	})
}

// A guild that was announced is waited for from its announcement on, however long the
// driver has been trying to connect. If it does not come, its channels are fetched.
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
			t.Errorf("came in: %+v", m)
		}
		announced := s.Identifies()[1].At
		asked := s.Calls("GET /channels/" + hallID + "/messages")
		limit := defaultTimings.guilds
		if len(asked) != 1 || asked[0].At.Sub(announced) < limit || asked[0].At.Sub(announced) > 2*limit {
			t.Errorf("announced at %v, asked %+v", announced, asked)
		}
	})
}
