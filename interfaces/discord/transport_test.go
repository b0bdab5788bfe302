package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
)

// hello returns a message that mentions the bot.
func hello() string { return "hello <@" + botID + ">" }

// TestMessageComesInAndIsAnswered: a message arrives with its author and scopes, and can be answered.
func TestMessageComesInAndIsAnswered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	id := s.Say(hallID, bobID, hello())
	m := in.wait(t, core.KindMessage, 1)[0].Message
	if m.ID != id || m.Path.String() != "discord/"+guildID+"/"+hallID || m.Addressed != core.AddressedMention || m.Text != "hello @aria" {
		t.Errorf("got %+v, want a mention in #hall", m)
	}
	if m.Author.Rank != core.RankModerator || m.Author.Name != "Bob" || m.Author.Tag != "@bob" {
		t.Errorf("got author %+v, want the moderator Bob", m.Author)
	}
	if len(m.Scopes) != 1 || m.Scopes[0].String() != "discord/"+guildID+"/"+catID {
		t.Errorf("got scopes %v, want the category", m.Scopes)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Hi @everyone!", "reply_to_message_id": id}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || got[0] != "Hi @everyone!" {
		t.Errorf("got %q, want the answer", got)
	}
}

// TestResume: after any interruption, the session is resumed without losing a message.
func TestResume(t *testing.T) {
	for name, cut := range map[string]func(*server){
		"drop":                  func(s *server) { s.Drop() },
		"reconnect":             func(s *server) { s.Send(discordtest.Payload{Op: discordtest.OpReconnect}) },
		"invalid, can resume":   func(s *server) { s.Send(discordtest.Payload{Op: discordtest.OpInvalid, Data: true}) },
		"close 4000":            func(s *server) { s.Close(4000, "Unknown error.") },
		"close 1001":            func(s *server) { s.Close(1001, "") },
		"what is not a message": func(s *server) { s.SendRaw([]any{}) },
		"text without opcode":   func(s *server) { s.SendRaw(map[string]any{"t": "x"}) },
		"heartbeats forgotten":  func(s *server) { s.Gateway(func(g *discordtest.Settings) { g.Deaf = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if name == "heartbeats forgotten" {
				s.Gateway(func(g *discordtest.Settings) { g.Interval = time.Second })
			}
			_, in := s.up(t)
			s.Say(hallID, annID, "one")
			in.wait(t, core.KindMessage, 1)
			_, _, before := s.Counts()
			cut(s)
			s.Say(hallID, annID, "two")
			beats := 0
			until(t, "resumed", func() bool {
				_, resumes, now := s.Counts()
				beats = now - before
				return resumes > 0
			})
			s.Gateway(func(g *discordtest.Settings) { g.Deaf = false })
			s.Say(hallID, annID, "three")
			in.wait(t, core.KindMessage, 3)
			if got := strings.Join(in.texts(), " "); got != "one two three" {
				t.Errorf("got %s, want one two three", got)
			}
			if name == "heartbeats forgotten" && beats > 3 {
				t.Errorf("the connection was given up after %d heartbeats, want at most 3", beats)
			}
			if n := len(s.Identifies()); n != 1 {
				t.Errorf("identified %d times, want 1", n)
			}
		})
	}
}

// TestReconnectAsTheAnswerToResume: a session that is interrupted while it resumes is resumed again.
func TestReconnectAsTheAnswerToResume(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Gateway(func(g *discordtest.Settings) {
		g.Script = func(n int, c *discordtest.Conn) bool {
			if n != 2 {
				return false
			}
			c.Send(discordtest.Payload{Op: discordtest.OpReconnect})
			c.Read()
			return true
		}
	})
	_, in := s.up(t)
	s.Drop()
	s.Say(hallID, annID, "found again")
	in.wait(t, core.KindMessage, 1)
}

// TestInvalidSession: if the session is over, a new one is begun, and missed messages are fetched.
func TestInvalidSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		_, in := s.up(t)
		s.Say(hallID, annID, "one")
		in.wait(t, core.KindMessage, 1)
		s.Forget()
		s.Say(hallID, annID, "two")
		s.Say(hallID, annID, "three")
		s.Drop()
		until(t, "a new session", func() bool { return s.Live() == 1 })
		s.Say(hallID, annID, "four")
		in.wait(t, core.KindMessage, 4)
		if got := strings.Join(in.texts(), " "); got != "one two three four" {
			t.Errorf("got %s, want one two three four", got)
		}
	})
}

// TestInvalidSessionInTheMiddle: a session that is declared invalid while connected is replaced by a new one.
func TestInvalidSessionInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		_, in := s.up(t)
		s.Forget()
		s.Send(discordtest.Payload{Op: discordtest.OpInvalid, Data: false})
		until(t, "a new session", func() bool { return s.Live() == 1 })
		s.Say(hallID, annID, "heard")
		in.wait(t, core.KindMessage, 1)
	})
}

// TestInvalidSessionAllDay: while the gateway refuses every session, tries become less and less frequent,
// because the platform limits them per day.
func TestInvalidSessionAllDay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) {
			g.Script = func(_ int, c *discordtest.Conn) bool {
				c.Read()
				c.Send(discordtest.Payload{Op: discordtest.OpInvalid, Data: false})
				return !c.Read()
			}
		})
		stop := s.listen(t, s.bot(t), newInbox())
		time.Sleep(24 * time.Hour)
		if opened, _, _ := s.Counts(); opened < 500 || opened > 1000 {
			t.Errorf("got %d tries in a day, want 500 to 1000", opened)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFatal: Listen ends with an explanation after a close code that cannot be recovered from.
func TestFatal(t *testing.T) {
	for code, want := range map[int]string{
		4004: "the token is refused", 4010: "the shard is refused", 4011: "shards to auto", 4012: "version", 4013: "developer portal", 4014: "developer portal",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.Gateway(func(g *discordtest.Settings) {
				g.Script = func(_ int, c *discordtest.Conn) bool {
					c.Read()
					c.Close(code, "no")
					return !c.Read()
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
			defer cancel()
			err := s.bot(t).Listen(ctx, newInbox())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "discord: ") {
				t.Errorf("code %d: got %v, want %q", code, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "T0ken") {
				t.Errorf("the error contains the token: %v", err)
			}
		})
	}
}

// TestTokenRefusedByREST: Listen ends if the token is rejected before it connects.
func TestTokenRefusedByREST(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Config.Token = secret.New("wrong") })
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	if err := d.Listen(ctx, newInbox()); err == nil || !strings.Contains(err.Error(), "the token is refused") {
		t.Errorf("Listen returned %v, want an error about the token", err)
	}
}

// TestWithoutContentIntent: without the message content intent, the bot receives mentions, direct messages
// and replies, and admins are notified.
func TestWithoutContentIntent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Gateway(func(g *discordtest.Settings) { g.Intents = gateway.Intents })
	notices := make(chan string, 10)
	d, in := s.up(t, func(o *Options) { o.Admin = func(text string) { notices <- text } })
	s.Say(hallID, annID, "you do not see this")
	s.Say(hallID, annID, hello())
	s.Say(dmID, annID, "in private")
	in.wait(t, core.KindMessage, 2)
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Yes?"}); err != nil {
		t.Fatal(err)
	}
	mine := s.Messages(hallID)[0].ID
	s.Say(hallID, annID, "a reply", discordtest.Saying{ReplyTo: mine})
	s.Say(hallID, annID, "nor this", discordtest.Saying{ReplyTo: mine, NoPing: true})
	var got []string
	for _, e := range in.wait(t, core.KindMessage, 4) {
		got = append(got, string(e.Message.Addressed)+" "+e.Message.Text)
	}
	// A reply without a ping is received, but without its text.
	if want := []string{"mention hello @aria", "direct in private", "reply a reply", "reply "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(notices) != 1 || !strings.Contains(<-notices, "message content intent") {
		t.Errorf("admins received more or less than one notice about the intent; %d more wait", len(notices))
	}
	if page, err := d.page(t.Context(), hallID, "1", 1, 1); err != nil || len(page) != 1 || page[0].Content != "" {
		t.Errorf("fetched %+v, %v, want a message without content", page, err)
	}
}

// TestSilentGateway: a connection on which the gateway says nothing is given up and repeated.
func TestSilentGateway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Silent = true })
		s.listen(t, s.bot(t), newInbox())
		until(t, "a second try", func() bool { opened, _, _ := s.Counts(); return opened > 1 })
		s.Gateway(func(g *discordtest.Settings) { g.Silent = false })
		until(t, "connected", func() bool { return s.Live() > 0 })
	})
}

// TestStopAtAnyTime: Listen stops quickly in every state of a connection.
func TestStopAtAnyTime(t *testing.T) {
	for name, state := range map[string]func(*discordtest.Settings){
		"connected": func(*discordtest.Settings) {},
		"silent":    func(g *discordtest.Settings) { g.Silent = true },
		"not ready": func(g *discordtest.Settings) {
			g.Script = func(_ int, c *discordtest.Conn) bool { return c.Read() && !c.Read() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				s.Gateway(state)
				stop := s.listen(t, s.bot(t), newInbox())
				until(t, "a connection", func() bool { opened, _, _ := s.Counts(); return opened > 0 })
				begun := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("stopping took %v, want at most 2s", took)
				}
			})
		})
	}
}

// TestShards: one driver connects several shards, knows the guilds of all, and receives a message once.
func TestShards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Shards, g.Concurrency = 4, 2 })
		for i := range 8 {
			s.AddGuild(fmt.Sprint(uint64(i+1)<<22), nil)
		}
		in := newInbox()
		d := s.bot(t)
		s.listen(t, d, in)
		until(t, "all shards", func() bool { return s.LiveShards() == 4 })
		for i := range 8 {
			id := fmt.Sprint(uint64(i+1) << 22)
			until(t, "guild "+id, func() bool { return d.cache.known(id) })
		}
		s.Say(dmID, annID, "to the first")
		if got := in.wait(t, core.KindMessage, 1); len(got) != 1 {
			t.Errorf("received %d times, want 1", len(got))
		}
	})
}

// TestShardsWithoutContentIntent: if the content intent is refused to several shards at once, each connects
// without it, and admins are notified once.
func TestShardsWithoutContentIntent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) {
			g.Intents, g.Shards, g.Concurrency = gateway.Intents, 4, 4
		})
		var notices atomic.Int32
		s.listen(t, s.bot(t, func(o *Options) { o.Admin = func(string) { notices.Add(1) } }), newInbox())
		until(t, "all shards", func() bool { return s.LiveShards() == 4 })
		if n := notices.Load(); n != 1 {
			t.Errorf("admins were notified %d times, want 1", n)
		}
	})
}

// TestInboxThatRefuses: a message that cannot be stored at first is stored later.
func TestInboxThatRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.bot(t), newInbox()
	in.fail = 3
	s.listen(t, d, in)
	until(t, "connected", func() bool { return s.Live() > 0 })
	s.Say(hallID, annID, "kept")
	in.wait(t, core.KindMessage, 1)
}

// TestDamagedPlace: while the events of a place cannot be stored, those of other places are. When they can be stored
// again, none is missing. If they never can, they are skipped once others were stored often enough.
func TestDamagedPlace(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		t.Run(fmt.Sprint("recovers ", recovers), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) { testDamagedPlace(t, s, recovers) })
		})
	}
}

func testDamagedPlace(t *testing.T, s *server, recovers bool) {
	var recovered atomic.Bool
	in := &coretest.Inbox{Fail: func(events []core.Event) error {
		for _, e := range events {
			if strings.HasSuffix(e.Message.Path.String(), hallID) && !recovered.Load() {
				return fmt.Errorf("hall: %w", core.ErrDamaged)
			}
		}
		return nil
	}}
	log := &logBuffer{}
	d := s.bot(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	s.listen(t, d, in)
	within(t, time.Minute, "ready", func() bool { return d.Ready() == nil })
	s.Say(hallID, annID, "one")
	time.Sleep(time.Minute)
	s.Say(hallID, annID, "two")
	time.Sleep(time.Minute)
	if n := log.count("events not stored"); n != 2 {
		t.Errorf("got %d log lines, want one for each event that waits", n)
	}
	want := []string{"elsewhere"}
	if recovers {
		recovered.Store(true)
		want = []string{"one", "two", "elsewhere"}
	} else if d.Ready() == nil {
		t.Error("the driver is ready although it can store nothing")
	}
	s.Say(roomID, annID, "elsewhere")
	time.Sleep(10 * time.Minute)
	var got []string
	for _, e := range in.Events() {
		got = append(got, e.Message.Text)
	}
	if !slices.Equal(got, want) || d.Ready() != nil {
		t.Errorf("got %q and %v, want %q", got, d.Ready(), want)
	}
}

// TestTokenRefusedLater: Listen ends, and no place is reachable, if a request finds that the token is rejected.
func TestTokenRefusedLater(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	go func() { ended <- d.Listen(ctx, newInbox()) }()
	until(t, "connected", func() bool { return d.cache.known(guildID) })
	s.Fail(func(discordtest.Call) discordtest.Fault {
		return discordtest.Fault{Kind: discordtest.Refused, Status: 401}
	})
	if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); kind(err) != core.Broken || !errors.Is(err, core.ErrAway) || d.Reaches(core.MustPath("discord/1/2")) {
		t.Errorf("message with a rejected token: got %v, want an unreachable platform", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the token is refused") {
		t.Errorf("Listen returned %v, want an error about the token", err)
	}
}

// TestTokenRevokedWhileConnected: Listen ends if the gateway closes the connection because the token was revoked.
func TestTokenRevokedWhileConnected(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	go func() { ended <- d.Listen(ctx, newInbox()) }()
	until(t, "connected", func() bool { return d.cache.known(guildID) })
	s.Revoke()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the token is refused") {
		t.Errorf("Listen returned %v, want an error about the token", err)
	}
}

// TestResumeAddressThatFails: if the address for resuming does not work, the session is resumed at the
// gateway's usual address.
func TestResumeAddressThatFails(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	unavailable := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	broken := httptest.NewServer(http.HandlerFunc(unavailable))
	defer broken.Close()
	s.Gateway(func(g *discordtest.Settings) { g.ResumeURL = "ws" + strings.TrimPrefix(broken.URL, "http") })
	_, in := s.up(t)
	s.Drop()
	s.Say(hallID, annID, "missed")
	in.wait(t, core.KindMessage, 1)
	if _, resumes, _ := s.Counts(); resumes != 1 || len(s.Identifies()) != 1 {
		t.Errorf("resumed %d times, identified %d times, want 1 and 1", resumes, len(s.Identifies()))
	}
}

// TestMoreShardsWanted: when the bot is in so many guilds that the platform requires shards, it requests the
// number again and connects that many.
func TestMoreShardsWanted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	s.Say(hallID, annID, "one")
	in.wait(t, core.KindMessage, 1)
	s.Gateway(func(g *discordtest.Settings) { g.Shards, g.Least, g.Concurrency = 3, 3, 3 })
	s.Forget()
	s.Close(4011, "Sharding required.")
	s.Say(hallID, annID, "two")
	until(t, "three shards", func() bool { return s.LiveShards() == 3 })
	s.Say(hallID, annID, "three")
	in.wait(t, core.KindMessage, 3)
	if got := strings.Join(in.texts(), " "); got != "one two three" {
		t.Errorf("got %s, want one two three", got)
	}
}

// TestUnreachablePlatform: a message that was certainly not sent, because the platform is unreachable or down,
// fails as one to be sent later. Other errors do not.
func TestUnreachablePlatform(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var down atomic.Bool
	d, _ := s.up(t, func(o *Options) {
		to := new(net.Dialer).DialContext
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if down.Load() {
				return nil, errors.New("no route to host")
			}
			return to(ctx, network, addr)
		}
	})
	for _, tc := range []struct {
		name  string
		down  bool
		fault discordtest.Fault
		want  bool
	}{
		{"no network", true, discordtest.Fault{}, true},
		{"bad gateway", false, discordtest.Fault{Kind: discordtest.Broken, Status: 502}, true},
		{"unavailable", false, discordtest.Fault{Kind: discordtest.Broken, Status: 503}, true},
		{"internal", false, discordtest.Fault{Kind: discordtest.Broken, Status: 500}, false},
		{"forbidden", false, discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50013}, false}, // closes the channel
	} {
		down.Store(tc.down)
		d.rest.Close() // so that no open connection is reused
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("POST /channels/" + hallID + "/messages") {
				return tc.fault
			}
			return discordtest.Fault{}
		})
		if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err == nil || errors.Is(err, core.ErrAway) != tc.want {
			t.Errorf("%s: got %v, want it unreachable: %v", tc.name, err, tc.want)
		}
	}
	if !d.Reaches(core.MustPath("discord/1/2")) {
		t.Error("the place is unreachable, though the token is accepted")
	}
}

// TestClockApart: the age of a message or command is right even if the clock of this machine is wrong.
func TestClockApart(t *testing.T) {
	for _, apart := range []time.Duration{-2 * time.Hour, -20 * time.Second, 0, 20 * time.Second, 2 * time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			clock := func() time.Time { return time.Now().Add(apart) }
			_, in := s.up(t, func(o *Options) { o.Clock, o.Commands = clock, registry })
			until(t, "commands", func() bool { return len(s.Commands("")) > 0 })
			began := time.Now()
			s.Say(hallID, annID, "are you there?")
			message := in.wait(t, core.KindMessage, 1)[0].Message
			if _, err := s.Command(hallID, annID, "help", nil); err != nil {
				t.Fatal(err)
			}
			command := in.wait(t, core.KindCommand, 1)[0].Message
			for _, m := range []core.Message{message, command} {
				off, most := clock().Sub(m.SentAt()), time.Since(began)+time.Minute
				if off.Abs() > most || m.Ahead != apart.Round(time.Minute) {
					t.Errorf("%q: got age %s, %s ahead; want at most %s, %s", m.Text, off, m.Ahead, most, apart.Round(time.Minute))
				}
			}
		})
	}
}
