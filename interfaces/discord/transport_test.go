package discord

import (
	"context"
	"errors"
	"fmt"
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

func hello() string { return "hello <@" + botID + ">" }

func TestMessageComesInAndIsAnswered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	id := s.Say(hallID, bobID, hello())
	m := in.wait(t, core.KindMessage, 1)[0].Message
	if m.ID != id || m.Path.String() != "discord/"+guildID+"/"+hallID || m.Addressed != core.AddressedMention || m.Text != "hello @aria" {
		t.Errorf("came in as %+v", m)
	}
	if m.Author.Rank != core.RankModerator || m.Author.Name != "Bob" || m.Author.Tag != "@bob" {
		t.Errorf("author %+v", m.Author)
	}
	if len(m.Scopes) != 1 || m.Scopes[0].String() != "discord/"+guildID+"/"+catID {
		t.Errorf("scopes %v", m.Scopes)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "Hi @everyone!", "reply_to_message_id": id}); err != nil {
		t.Fatal(err)
	}
	if got := s.Texts(hallID); len(got) != 1 || got[0] != "Hi @everyone!" {
		t.Errorf("said %q", got)
	}
}

// what breaks a connection in the middle, each without loss
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
				t.Errorf("came in: %s", got)
			}
			if name == "heartbeats forgotten" && beats > 3 {
				t.Errorf("noticed after %d heartbeats", beats)
			}
			if n := len(s.Identifies()); n != 1 {
				t.Errorf("identified %d times", n)
			}
		})
	}
}

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
			t.Errorf("came in: %s", got)
		}
	})
}

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

// A gateway that lets no session begin is asked less and less often: the platform
// counts the tries of a day.
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
			t.Errorf("%d sessions were begun", opened)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

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
				t.Errorf("%d ends with %v", code, err)
			}
			if err != nil && strings.Contains(err.Error(), "T0ken") {
				t.Errorf("the token shows: %v", err)
			}
		})
	}
}

func TestTokenRefusedByREST(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Config.Token = secret.New("wrong") })
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	if err := d.Listen(ctx, newInbox()); err == nil || !strings.Contains(err.Error(), "the token is refused") {
		t.Errorf("ended with %v", err)
	}
}

func TestWithoutContentIntent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Gateway(func(g *discordtest.Settings) { g.Intents = gateway.Intents })
	told := make(chan string, 10)
	d, in := s.up(t, func(o *Options) { o.Admin = func(text string) { told <- text } })
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
	// That a user replies is seen, the text without a mention is not.
	if want := []string{"mention hello @aria", "direct in private", "reply a reply", "reply "}; !slices.Equal(got, want) {
		t.Errorf("came in: %q", got)
	}
	if len(told) != 1 || !strings.Contains(<-told, "message content intent") {
		t.Errorf("admins were told %d things", len(told))
	}
	if page, err := d.page(t.Context(), hallID, "1", 1); err != nil || len(page) != 1 || page[0].Content != "" {
		t.Errorf("fetched: %+v, %v", page, err)
	}
}

func TestSilentGateway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Silent = true })
		s.listen(t, s.bot(t), newInbox())
		until(t, "a second try", func() bool { opened, _, _ := s.Counts(); return opened > 1 })
		s.Gateway(func(g *discordtest.Settings) { g.Silent = false })
		until(t, "connected", func() bool { return s.Live() > 0 })
	})
}

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
					t.Errorf("stopping took %v", took)
				}
			})
		})
	}
}

func TestShards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Shards, g.Concurrency = 4, 2 })
		for i := range 8 {
			s.AddGuild(fmt.Sprint(uint64(i+1)<<22), nil)
		}
		in := newInbox()
		d := s.bot(t)
		s.listen(t, d, in)
		until(t, "all shards", func() bool { return s.Live() == 4 })
		for i := range 8 {
			id := fmt.Sprint(uint64(i+1) << 22)
			until(t, "guild "+id, func() bool { return d.cache.known(id) })
		}
		s.Say(dmID, annID, "to the first")
		if got := in.wait(t, core.KindMessage, 1); len(got) != 1 {
			t.Errorf("came in %d times", len(got))
		}
	})
}

// Shards that identify at once are all refused the content intent: each of them
// goes on without it, and the admins are informed once.
func TestShardsWithoutContentIntent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) {
			g.Intents, g.Shards, g.Concurrency = gateway.Intents, 4, 4
		})
		var told atomic.Int32
		s.listen(t, s.bot(t, func(o *Options) { o.Admin = func(string) { told.Add(1) } }), newInbox())
		until(t, "all shards", func() bool { return s.Live() == 4 })
		if n := told.Load(); n != 1 {
			t.Errorf("admins were told %d times", n)
		}
	})
}

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
		t.Errorf("sent: %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the token is refused") {
		t.Errorf("ended with %v", err)
	}
}

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
		t.Errorf("ended with %v", err)
	}
}

// The address to resume at answers, and is of no use: the session goes on at the
// gateway's own.
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
		t.Errorf("resumed %d times, identified %d times", resumes, len(s.Identifies()))
	}
}

// The bot has come to so many guilds that it must be sharded: it asks anew, and
// goes on.
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
	until(t, "three shards", func() bool { return s.Live() == 3 })
	s.Say(hallID, annID, "three")
	in.wait(t, core.KindMessage, 3)
	if got := strings.Join(in.texts(), " "); got != "one two three" {
		t.Errorf("came in: %s", got)
	}
}

// TestNoWay: what nobody could send now is said later; what the platform may have
// taken, or refuses for its own sake, is an error of its own.
func TestNoWay(t *testing.T) {
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
		{"forbidden", false, discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50013}, false}, // and nothing goes there from then on
	} {
		down.Store(tc.down)
		d.rest.Close() // an open connection is of no use
		s.Fail(func(c discordtest.Call) discordtest.Fault {
			if c.Is("POST /channels/" + hallID + "/messages") {
				return tc.fault
			}
			return discordtest.Fault{}
		})
		if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err == nil || errors.Is(err, core.ErrAway) != tc.want {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if !d.Reaches(core.MustPath("discord/1/2")) {
		t.Error("out of reach, though the token is taken")
	}
}

// TestClockApart: however wrong this machine's clock is, the age of a message and of a
// command is what it is by the platform's.
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
					t.Errorf("%q is %s old, %s ahead; want at most %s, %s", m.Text, off, m.Ahead, most, apart.Round(time.Minute))
				}
			}
		})
	}
}
