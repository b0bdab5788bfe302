package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// loose is a shard that is connected to nothing.
func loose(t *testing.T, s *server, change ...func(*Options)) *shard {
	t.Helper()
	d := s.bot(t, change...)
	d.ready.begin(1)
	return &shard{d: d, count: 1, at: gateway{address: "ws://gateway.example", concurrency: 1}}
}

// What the end of a connection costs: sessions that are over are forgotten, and who is
// let in nowhere waits longer and longer.
func TestAfterAConnection(t *testing.T) {
	s := newServer(t)
	s.tempo = usual
	again, jittered := usual.longest, 5*usual.invalid
	for name, c := range map[string]struct {
		why         error
		known       bool // a session was there
		stood       bool
		waited      time.Duration
		forgotten   bool
		least, most time.Duration
	}{
		"cut":                        {errGone, true, true, time.Hour, false, 0, usual.backoff / 4},
		"cut before it stood":        {errGone, true, false, 0, false, usual.backoff * 4 / 5, usual.backoff * 6 / 5},
		"again":                      {errGone, true, false, 10 * time.Second, false, 16 * time.Second, 24 * time.Second},
		"and again":                  {errGone, true, false, time.Hour, false, again * 4 / 5, again * 6 / 5},
		"closed":                     {&closed{code: 4000}, true, false, 0, false, usual.backoff * 4 / 5, usual.backoff * 6 / 5},
		"invalid":                    {errInvalid, true, true, time.Hour, true, usual.invalid, jittered},
		"invalid, resumed":           {errInvalid, true, false, time.Hour, true, usual.invalid, jittered},
		"invalid, begun and stood":   {errInvalid, false, true, time.Hour, true, usual.invalid, jittered},
		"invalid, begun":             {errInvalid, false, false, 0, true, usual.invalid, jittered},
		"invalid, begun again":       {errInvalid, false, false, 30 * time.Second, true, 48 * time.Second, 72 * time.Second},
		"invalid, begun often":       {errInvalid, false, false, time.Hour, true, again * 4 / 5, again * 6 / 5},
		"invalid sequence":           {fmt.Errorf("x: %w", &closed{code: 4007}), true, false, time.Hour, true, usual.invalid, jittered},
		"session timed out":          {&closed{code: 4009}, true, false, time.Hour, true, usual.invalid, jittered},
		"not authenticated":          {&closed{code: 4003}, true, false, time.Hour, true, usual.invalid, jittered},
		"wrapped, as a library does": {fmt.Errorf("x: %w", errInvalid), true, false, time.Hour, true, usual.invalid, jittered},
	} {
		for range 50 {
			sh := loose(t, s)
			if c.known {
				sh.resume = &resume{session: "x"}
			}
			if got := sh.after(c.why, c.stood, c.waited); got < c.least || got > c.most {
				t.Fatalf("%s: %v", name, got)
			}
			if (sh.resume == nil) != c.forgotten {
				t.Fatalf("%s: the session is %+v", name, sh.resume)
			}
		}
	}
}

// What ends the interface, and that the intent for what people say may be missing.
func TestFatalEnds(t *testing.T) {
	s := newServer(t)
	for why, want := range map[error]string{
		fmt.Errorf("x: %w", errToken): "token", &closed{code: 4004}: "token", &closed{code: 4010}: "the shard is refused", &closed{code: 4011}: "shards to auto",
		&closed{code: 4012}: "version", &closed{code: 4013}: "developer portal", errGone: "", errInvalid: "", &closed{code: 4000}: "",
	} {
		err := loose(t, s).fatal(why)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", why, err, want)
		}
	}
	sh := loose(t, s)
	sh.intents = intentsAlways | intentMessageContent
	if err := sh.fatal(&closed{code: 4014}); err != nil || sh.d.intents() != intentsAlways {
		t.Errorf("refused with the content: %v, intents %b", err, sh.d.intents())
	}
	sh.intents = intentsAlways
	if err := sh.fatal(&closed{code: 4014}); !errors.Is(err, errIntents) {
		t.Errorf("refused without the content: %v", err)
	}
}

// A session is known by what READY says, as far as that makes sense.
func TestStand(t *testing.T) {
	s := newServer(t)
	for data, want := range map[string]*resume{
		`{"session_id":"s","resume_gateway_url":"ws://other.example"}`:  {session: "s", address: "ws://other.example", seq: 7},
		`{"session_id":"s","resume_gateway_url":"wss://other.example"}`: {session: "s", seq: 7},
		`{"session_id":"s","resume_gateway_url":"other.example"}`:       {session: "s", seq: 7},
		`{"session_id":"s"}`: {session: "s", seq: 7},
		`{}`:                 nil,
		`{"session_id":5,"resume_gateway_url":"ws://other.example"}`: nil,
		`{"session_id":"s","resume_gateway_url":5}`:                  {session: "s", seq: 7},
		`[`: nil,
	} {
		sh := loose(t, s)
		sh.stand(&discordgo.Event{Type: "ready", Sequence: 7, RawData: json.RawMessage(data)})
		if !sh.stands || sh.d.Ready() != nil || (sh.resume == nil) != (want == nil) || want != nil && *sh.resume != *want {
			t.Errorf("%s: %+v, want %+v", data, sh.resume, want)
		}
		was := sh.resume
		sh.stand(&discordgo.Event{Type: "resumed", Sequence: 9, RawData: json.RawMessage(`{"session_id":"t"}`)})
		if sh.resume != was {
			t.Errorf("a session that goes on is another one: %+v", sh.resume)
		}
	}
	for _, c := range []struct {
		resume, gateway string
		want            bool
	}{
		{"wss://a", "wss://b", true}, {"ws://a", "ws://b", true}, {"ws://a", "wss://b", false}, {"wss://a", "ws://b", false}, {"", "ws://b", false},
		{"https://a", "ws://b", false},
	} {
		if got := sameKind(c.resume, c.gateway); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A session stands with the event that says so, and with no other.
func TestStandsWithItsEvent(t *testing.T) {
	s := newServer(t)
	for kind, want := range map[string]bool{"ready": true, "resumed": true, "guild_create": false, "message_create": false} {
		sh := loose(t, s)
		sh.event(t.Context(), &discordgo.Event{Type: kind, RawData: json.RawMessage(`{}`)})
		if sh.stands != want {
			t.Errorf("with %s the session stands: %v", kind, sh.stands)
		}
	}
}

// A connection that ended without a session is looked up anew; one that stood is gone on
// with where it wanted to be.
func TestResetOfAShard(t *testing.T) {
	s := newServer(t)
	for _, stood := range []bool{true, false} {
		sh := loose(t, s)
		sh.resume = &resume{session: "s", address: "ws://other.example"}
		sh.stands, sh.opened = stood, &wire{}
		if stood {
			sh.d.ready.stands(0)
		}
		if got := sh.reset(); got != stood || sh.stands || sh.opened != nil || (sh.resume.address != "") != stood {
			t.Errorf("stood %v: %v, %+v", stood, got, sh.resume)
		}
		if got := sh.reset(); got || sh.d.Ready() == nil && !stood {
			t.Errorf("stood %v: once more", got)
		}
		sh.resume = nil
		sh.reset()
	}
}

// An event counts as heard once it waits to be taken in. One for which there is no room
// until the end comes again in the next session.
func TestEventThatFindsNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		now := noon(0)
		sh := loose(t, s, func(o *Options) {
			o.Clock = func() time.Time { return now }
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
		})
		ctx, cancel := context.WithCancel(t.Context())
		event := func(kind string, seq int64, data string) {
			sh.event(ctx, &discordgo.Event{Type: kind, Sequence: seq, RawData: json.RawMessage(data)})
		}
		event("typing_start", 3, `{}`) // before there is a session
		sh.d.alive.touch(0, noon(-5))
		sh.resume = &resume{session: "s", seq: 5}
		heard := func(what string, seq int64, at time.Time, waiting int) {
			t.Helper()
			if sh.resume.seq != seq || sh.d.alive.all(1) != at || len(sh.d.queue.frames) != waiting {
				t.Errorf("%s: %d until %v, %d wait", what, sh.resume.seq, sh.d.alive.all(1), len(sh.d.queue.frames))
			}
		}
		heard("at first", 5, noon(-5), 1)
		event("message_create", 7, `{"id":"1"}`)
		heard("a message", 7, noon(0), 2)
		now = noon(1)
		event("message_create", 6, `{"id":"2"}`)
		heard("an older message", 7, noon(1), 3)
		now = noon(2)
		event("", 9, `{}`)
		heard("nothing", 7, noon(1), 3)
		sh.d.queue.bytes = maxQueued
		cancel()
		press := fmt.Sprintf(`{"id":"5","token":"t","type":%d,"user":{"id":"%s"}}`, interactCommand, annID)
		for range 2 {
			event("message_create", 10, `{"id":"3"}`)
			event("interaction_create", 11, press)
		}
		heard("without room", 7, noon(1), 3)
		if !sh.d.arrivals.new("5", time.Now()) {
			t.Error("a command for which there was no room is known, and is lost when it comes again")
		}
		sh.d.busy.close()
	})
}

// The library says nothing by itself, and sees what its connection is for.
func TestSession(t *testing.T) {
	sh := loose(t, newServer(t))
	sess, left := sh.session(t.Context(), nil)
	if sess.LogLevel >= 0 || sess.ShouldReconnectOnError || sess.Identify.Intents != discordgo.Intent(intentsAlways|intentMessageContent) || *sess.Identify.Shard != [2]int{0, 1} {
		t.Errorf("%+v", sess.Identify)
	}
	select {
	case <-left:
		t.Error("it is over before it began")
	default:
	}
}

// The library is let go of though it panics.
func TestOpenThatPanics(t *testing.T) {
	if err := open(nil); err == nil || !strings.HasPrefix(err.Error(), "library: ") {
		t.Errorf("opened: %v", err)
	}
}

// The library's one request is answered with the address that is known, and it makes no
// other.
func TestToldAddress(t *testing.T) {
	ask := func(path string) (string, error) {
		r := httptest.NewRequest(http.MethodGet, "https://discord.example"+path, http.NoBody)
		resp, err := told{"wss://gateway.example/?v=9&encoding=json"}.RoundTrip(r)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(resp.Body)
		return string(text), errors.Join(err, resp.Body.Close())
	}
	if got, err := ask("/api/v9/gateway"); err != nil || got != `{"url":"wss://gateway.example/"}` {
		t.Errorf("told %s, %v", got, err)
	}
	if got, err := ask("/api/v9/users/@me"); err == nil {
		t.Errorf("told %s", got)
	}
}

// A connection that is not encrypted where it should be, or cannot be made, is an error
// and leaves nothing open.
func TestDials(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	plain := httptest.NewUnstartedServer(http.NotFoundHandler()) // of an authority that nobody knows
	plain.Config.ErrorLog = log.New(io.Discard, "", 0)
	plain.StartTLS()
	defer plain.Close()
	var opened []*closing
	sh := loose(t, s, func(o *Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "nowhere:443" {
				return nil, errors.New("no route to host")
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			opened = append(opened, &closing{Conn: conn})
			return opened[len(opened)-1], nil
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, secure := sh.dials(ctx, nil, &stash{})
	for _, dial := range []dial{open, secure} {
		if _, err := dial(ctx, "tcp", "nowhere:443"); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Errorf("dialled nowhere: %v", err)
		}
	}
	if _, err := secure(ctx, "tcp", plain.Listener.Addr().String()); err == nil || len(opened) != 1 || !opened[0].closed {
		t.Errorf("trusted a stranger: %v", err)
	}
	conn, err := open(ctx, "tcp", plain.Listener.Addr().String())
	if err != nil || sh.opened != conn || sh.opened.heard == nil {
		t.Fatalf("%v", err)
	}
	cancel()
	<-sh.opened.ended
}

// closing knows whether it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return c.Conn.Close() }

// The address to resume at is where a session is gone on with.
func TestResumeAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	visits := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits <- r.URL.Path
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(other.Close)
	s.Gateway(func(g *discordtest.Settings) { g.ResumeURL = "ws" + strings.TrimPrefix(other.URL, "http") + "/gateway" })
	_, in := s.up(t)
	for n := range 3 {
		s.Drop()
		s.Say(hallID, annID, "missed")
		in.wait(t, core.KindMessage, n+1)
	}
	if _, resumes, _ := s.Counts(); resumes != 3 || len(visits) != 3 || len(s.Identifies()) != 1 {
		t.Errorf("resumed %d times, %d times where it was wanted; identified %d times", resumes, len(visits), len(s.Identifies()))
	}
	s.Drop()
}

// While nothing happens, acknowledged heartbeats tell that nothing was missed.
func TestAliveByHeartbeats(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		state := shelf()
		d := s.bot(t, func(o *Options) { o.State = state })
		s.listening(t, d, newInbox())
		within(t, time.Minute, "connected", func() bool { return d.book.known(guildID) })
		time.Sleep(time.Hour)
		raw, _ := state.Get(t.Context(), aliveKey)
		if at, err := time.Parse(time.RFC3339, string(raw)); err != nil || time.Since(at) > 3*time.Minute {
			t.Errorf("after an hour of silence everything is told until %s", raw)
		}
		if opened, _, _ := s.Counts(); opened != 1 {
			t.Errorf("%d connections were needed for an hour of silence", opened)
		}
		sh := loose(t, s)
		sh.heard()
		if got := sh.d.alive.all(1); !got.IsZero() {
			t.Errorf("a heartbeat before the session counts: %v", got)
		}
	})
}

// Where to connect to is asked again before a further session, and the old answer does
// where there is no new one.
func TestLocate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		sh := loose(t, s)
		if err := sh.locate(t.Context()); err != nil || sh.at.address != "ws://gateway.example" || len(s.Calls("")) != 0 {
			t.Errorf("the first time: %v, %+v", err, sh.at)
		}
		if err := sh.locate(t.Context()); err != nil || sh.at.address == "ws://gateway.example" {
			t.Errorf("the next time: %v, %+v", err, sh.at)
		}
		at := sh.at
		s.FailNext("GET /gateway", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		if err := sh.locate(t.Context()); err != nil || sh.at != at {
			t.Errorf("without an answer: %v, %+v", err, sh.at)
		}
		s.Revoke()
		if err := sh.locate(t.Context()); !errors.Is(err, errToken) {
			t.Errorf("without a token: %v", err)
		}
		if err := sh.connect(t.Context()); !errors.Is(err, errToken) {
			t.Errorf("connected without a token: %v", err)
		}
	})
}
