package discord

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/progress"
)

// TestListenAgain: a driver can listen again after it stopped, as when another process served the account
// meanwhile.
func TestListenAgain(t *testing.T) {
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Commands = registry })
	for range 2 {
		stop := s.listen(t, d, newInbox())
		// The former session is resumed for a moment to receive missed events.
		until(t, "connected", func() bool { return s.Live() == 1 && d.Ready() == nil })
		id := s.command(t, hallID, annID, "help", nil)
		s.awaitAnswer(t, id, discordtest.AnswerLater)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		until(t, "disconnected", func() bool { return s.Live() == 0 })
	}
}

// TestWaitingEventsAfterATakeover: events that still waited when the driver stopped are not stored before
// older missed messages, which would then be skipped.
func TestWaitingEventsAfterATakeover(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		d, in := s.bot(t), newInbox()
		stop := s.listen(t, d, in)
		within(t, time.Minute, "connected", func() bool { return s.Live() == 1 && d.cache.known(guildID) })
		s.Say(hallID, annID, "known")
		in.wait(t, core.KindMessage, 1)
		within(t, time.Minute, "noted", func() bool { _, known := d.cursors.get(hallID); return known })
		in.refuse(1 << 30)
		s.Say(hallID, annID, "one")
		within(t, time.Minute, "one is refused", func() bool { return d.Ready() != nil })
		s.Say(hallID, annID, "two")
		within(t, time.Minute, "two waits", func() bool { return len(d.feed.waiting) > 0 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "disconnected", func() bool { return s.Live() == 0 })
		s.Forget()
		in.refuse(0)
		s.listen(t, d, in)
		in.wait(t, core.KindMessage, 3)
		if got := in.texts(); !slices.Equal(got, []string{"known", "one", "two"}) {
			t.Errorf("got %q, want known, one, two", got)
		}
	})
}

// TestShardsOfAnAccount: each place belongs to one shard, which starts with the state that the account
// stored before it was divided.
func TestShardsOfAnAccount(t *testing.T) {
	state := newState()
	for key, value := range map[string]string{"old": "of the account", "shard 2/3 new": "of the shard"} {
		if err := state.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	config := defaultConfig(discordtest.Token)
	config.Shards = "3"
	shards, err := NewShards(Options{Name: "discord", Config: config, Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: state})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"discord/0/5": "shard 1/3", "discord/4194304/5": "shard 2/3", "discord/8388608/5": "shard 3/3",
		"discord/12582912": "shard 1/3", "discord/@me/7": "shard 1/3", "discord/@user/7": "shard 1/3", "discord": "shard 1/3",
		"telegram/4194304/5": "",
	} {
		got := ""
		for _, d := range shards {
			if d.Serves(core.MustPath(path)) {
				got += d.Part()
			}
		}
		if got != want {
			t.Errorf("%s: served by %q, want %q", path, got, want)
		}
	}
	for key, want := range map[string]string{"old": "of the account", "new": "of the shard"} {
		if got, err := shards[1].opt.State.Get(t.Context(), key); string(got) != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
	config.Shards = "auto"
	if shards, err = NewShards(Options{Name: "discord", Config: config, Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: state}); err != nil {
		t.Fatal(err)
	}
	if len(shards) != 1 || shards[0].Part() != "" || !shards[0].Serves(core.MustPath("discord/4194304/5")) {
		t.Error("an account without a number of shards was divided")
	}
}

// TestAnotherProcessContinues: events between two processes are not missed, also those that cannot be fetched,
// such as a deletion or the first direct message of a user.
func TestAnotherProcessContinues(t *testing.T) {
	for name, seen := range map[string]int{"all known": 0, "some known": 2} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			state := newState()
			first := newInbox()
			stop := s.listen(t, s.bot(t, func(o *Options) { o.State = state }), first)
			until(t, "a session", func() bool { return s.Live() == 1 })
			id := s.Say(hallID, annID, "to be deleted")
			first.wait(t, core.KindMessage, 1)
			noted := func() string { raw, _ := state.Get(t.Context(), progress.SessionsKey); return string(raw) }
			until(t, "a note", func() bool { return strings.Contains(noted(), `"id"`) })
			before := noted()
			for range seen {
				s.Say(hallID, annID, "seen")
			}
			first.wait(t, core.KindMessage, 1+seen)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if seen > 0 { // as if it had died
				if err := state.Put(t.Context(), progress.SessionsKey, []byte(before)); err != nil {
					t.Fatal(err)
				}
			}
			s.Say(discordtest.DirectID, annID, "the first one")
			s.Delete(hallID, id)
			_, resumes, _ := s.Counts()
			second := newInbox()
			s.listen(t, s.bot(t, func(o *Options) { o.State = state }), second)
			if m := second.wait(t, core.KindDeletion, 1)[0]; m.Target != id {
				t.Errorf("got a deletion of %s, want %s", m.Target, id)
			}
			until(t, "the direct message", func() bool {
				return slices.ContainsFunc(second.all(), func(e core.Event) bool {
					return e.Message.Text == "the first one" && e.Message.Private
				})
			})
			if _, n, _ := s.Counts(); n != resumes+1 || len(s.Identifies()) != 2 {
				t.Errorf("got %d resumed and %d new sessions, want 1 and 2", n-resumes, len(s.Identifies()))
			}
		})
	}
}

// leftSession runs a bot with commands until its session is stored. It returns the options for the next bot, and how
// many connections there were.
func (s *server) leftSession(t *testing.T) (change func(*Options), opened int) {
	state := newState()
	change = func(o *Options) { o.State, o.Commands = state, registry }
	stop := s.listen(t, s.bot(t, change), newInbox())
	until(t, "registered", func() bool { return s.Live() == 1 && len(s.Commands("")) > 0 })
	until(t, "a note", func() bool {
		raw, _ := state.Get(t.Context(), progress.SessionsKey)
		return strings.Contains(string(raw), `"id"`)
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(s.timings.gateway.Identify) // until another session may begin
	opened, _, _ = s.Counts()
	return change, opened
}

// TestBetweenTwoSessions: a command that arrives after the former session caught up and before the new one
// begins is not lost, even if it is on its way when that begins.
func TestBetweenTwoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		change, opened := s.leftSession(t)
		id := ""
		var earlier *discordtest.Conn
		s.Gateway(func(g *discordtest.Settings) {
			g.Script = func(n int, c *discordtest.Conn) bool {
				switch n {
				case opened + 1:
					earlier = c
				case opened + 2:
					earlier.Pause(300 * time.Millisecond)
					id = s.command(t, hallID, annID, "help", nil)
				}
				return false
			}
		})
		in := newInbox()
		s.listen(t, s.bot(t, change), in)
		in.wait(t, core.KindCommand, 1)
		s.awaitAnswer(t, id, discordtest.AnswerLater)
		until(t, "one session", func() bool { return s.Live() == 1 })
	})
}

// TestInBothSessions: what both sessions receive is handled once.
func TestInBothSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		change, opened := s.leftSession(t)
		var earlier *discordtest.Conn
		s.Gateway(func(g *discordtest.Settings) {
			g.Script = func(n int, c *discordtest.Conn) bool {
				switch n {
				case opened + 1:
					earlier = c
				case opened + 2:
					earlier.Pause(500 * time.Millisecond)
				}
				return false
			}
		})
		in := newInbox()
		s.listen(t, s.bot(t, change), in)
		until(t, "two sessions", func() bool { return s.Live() == 2 })
		id := s.command(t, hallID, annID, "help", nil)
		s.awaitAnswer(t, id, discordtest.AnswerLater)
		until(t, "one session", func() bool { return s.Live() == 1 })
		s.Say(hallID, annID, "later")
		in.wait(t, core.KindMessage, 1)
		if n := len(in.wait(t, core.KindCommand, 1)); n != 1 {
			t.Errorf("got %d commands, want 1", n)
		}
	})
}

// TestTooMuchBetweenTwoSessions: missed events are not lost if more events than can be kept arrive before the
// new session begins.
func TestTooMuchBetweenTwoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := newState()
		change := func(o *Options) { o.State = state }
		first := newInbox()
		stop := s.listen(t, s.bot(t, change), first)
		until(t, "a session", func() bool { return s.Live() == 1 })
		id := s.Say(hallID, annID, "to be deleted")
		first.wait(t, core.KindMessage, 1)
		until(t, "a note", func() bool {
			raw, _ := state.Get(t.Context(), progress.SessionsKey)
			return strings.Contains(string(raw), `"id"`)
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.Delete(hallID, id)
		time.Sleep(s.timings.gateway.Identify) // until another session may begin
		opened, _, _ := s.Counts()
		var earlier *discordtest.Conn
		s.Gateway(func(g *discordtest.Settings) {
			g.Script = func(n int, c *discordtest.Conn) bool {
				switch n {
				case opened + 1:
					earlier = c
				case opened + 2:
					for range 10 {
						earlier.Send(discordtest.Payload{Type: "MESSAGE_UPDATE", Data: strings.Repeat("x", 1<<20)})
					}
					until(t, "the end of the former session", func() bool { return s.Live() == 0 })
				}
				return false
			}
		})
		second := newInbox()
		s.listen(t, s.bot(t, change), second)
		if m := second.wait(t, core.KindDeletion, 1)[0]; m.Target != id {
			t.Errorf("got a deletion of %s, want %s", m.Target, id)
		}
	})
}

// TestSessionIsForgotten: if Discord no longer knows the stored session, a new one is begun at once.
func TestSessionIsForgotten(t *testing.T) {
	s := newServer(t)
	state := newState()
	earlier := progress.New(state)
	if err := earlier.SetSessions(t.Context(), map[int]gateway.Session{0: {ID: "unknown", Seq: 5}}); err != nil {
		t.Fatal(err)
	}
	in := newInbox()
	s.listen(t, s.bot(t, func(o *Options) { o.State = state }), in)
	until(t, "a session", func() bool { return s.Live() == 1 })
	s.Say(hallID, annID, "hello")
	in.wait(t, core.KindMessage, 1)
	if opened, _, _ := s.Counts(); opened != 2 {
		t.Errorf("got %d connections, want 2", opened)
	}
}

// TestTwoDriversOfAShard: during a reload, two drivers of a shard change the same values without losing a
// change. They start with the value of the account before it was divided.
func TestTwoDriversOfAShard(t *testing.T) {
	account := new(coretest.SharedState)
	if err := account.Put(t.Context(), "n", []byte("100")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		state := &shardState{account, "shard 1/2 "}
		all.Go(func() {
			for range 200 {
				_, err := driver.Update(t.Context(), state, "n", func(n *int) bool {
					*n++
					return true
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	values := account.Values()
	if n, before := string(values["shard 1/2 n"]), string(values["n"]); n != "500" || before != "100" {
		t.Errorf("got %s, and %s for the account, want 500 and 100", n, before)
	}
}
