package gateway

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"synthbot/core/secret"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var timings = Timings{
	Patience: 20 * time.Second, Identify: 5250 * time.Millisecond, Invalid: time.Second,
	Backoff: time.Second, Longest: 2 * time.Minute,
}

// recorder is a Handler that counts.
type recorder struct {
	full                        bool // no event is taken
	events                      []Event
	alive, disconnects, refused int
}

func (r *recorder) Event(_ context.Context, e Event) bool {
	if !r.full {
		r.events = append(r.events, e)
	}
	return !r.full
}

func (r *recorder) Alive(int)        { r.alive++ }
func (r *recorder) Disconnected(int) { r.disconnects++ }

// newTestShard is a shard that is connected to nothing, and what it reports.
func newTestShard(t *testing.T, s *discordtest.Server, change ...func(*Options)) (*shard, *recorder) {
	t.Helper()
	r := &recorder{}
	dial := rest.Dial(new(net.Dialer).DialContext)
	o := Options{
		Token: secret.New(discordtest.Token), Content: true, Handler: r, Dial: dial, Timings: timings,
		Log: slog.New(slog.DiscardHandler), Notify: func(string) { r.refused++ },
	}
	if s != nil {
		if s.Dial != nil {
			o.Dial = s.Dial
		}
		api, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		o.REST = rest.New(rest.Options{
			API: api, Token: o.Token, Retry: time.Millisecond, Dial: o.Dial, Clock: time.Now, Refused: func() {},
		})
		t.Cleanup(o.REST.Close)
	}
	for _, f := range change {
		f(&o)
	}
	return &shard{g: New(o), count: 1, at: Location{address: "ws://gateway.example", concurrency: 1}}, r
}

func dispatch(kind string, seq int64, data string) message {
	op := opDispatch
	return message{Op: &op, Seq: seq, Type: kind, Data: json.RawMessage(data)}
}

func closed(code int) error { return &websocket.CloseError{Code: code} }

// What the end of a connection costs: sessions that are over are forgotten, and a bot
// that is not let in waits longer and longer.
func TestAfterAConnection(t *testing.T) {
	cut := errors.New("cut")
	again, jittered := timings.Longest, 5*timings.Invalid
	for name, c := range map[string]struct {
		why         error
		known       bool // a session was there
		established bool
		waited      time.Duration
		forgotten   bool
		least, most time.Duration
	}{
		"cut":                            {cut, true, true, time.Hour, false, 0, timings.Backoff / 4},
		"cut before it established":      {cut, true, false, 0, false, timings.Backoff * 4 / 5, timings.Backoff * 6 / 5},
		"again":                          {cut, true, false, 10 * time.Second, false, 16 * time.Second, 24 * time.Second},
		"and again":                      {cut, true, false, time.Hour, false, again * 4 / 5, again * 6 / 5},
		"closed":                         {closed(4000), true, false, 0, false, timings.Backoff * 4 / 5, timings.Backoff * 6 / 5},
		"invalid":                        {errInvalid, true, true, time.Hour, true, timings.Invalid, jittered},
		"invalid, resumed":               {errInvalid, true, false, time.Hour, true, timings.Invalid, jittered},
		"invalid, begun and established": {errInvalid, false, true, time.Hour, true, timings.Invalid, jittered},
		"invalid, begun":                 {errInvalid, false, false, 0, true, timings.Invalid, jittered},
		"invalid, begun again":           {errInvalid, false, false, 30 * time.Second, true, 48 * time.Second, 72 * time.Second},
		"invalid, begun often":           {errInvalid, false, false, time.Hour, true, again * 4 / 5, again * 6 / 5},
		"invalid sequence":               {fmt.Errorf("x: %w", closed(4007)), true, false, time.Hour, true, timings.Invalid, jittered},
		"session timed out":              {closed(4009), true, false, time.Hour, true, timings.Invalid, jittered},
		"not authenticated":              {closed(4003), true, false, time.Hour, true, timings.Invalid, jittered},
		"wrapped":                        {fmt.Errorf("x: %w", errInvalid), true, false, time.Hour, true, timings.Invalid, jittered},
	} {
		for range 50 {
			sh, _ := newTestShard(t, nil)
			if c.known {
				sh.session = &Session{ID: "x"}
			}
			if got := sh.after(c.why, c.established, c.waited); got < c.least || got > c.most {
				t.Fatalf("%s: %v", name, got)
			}
			if (sh.session == nil) != c.forgotten {
				t.Fatalf("%s: the session is %+v", name, sh.session)
			}
		}
	}
}

// What ends the interface, and that the content of messages may be refused.
func TestFatalEnds(t *testing.T) {
	for why, want := range map[error]string{
		fmt.Errorf("x: %w", ErrToken): "token", closed(4004): "token", closed(4010): "the shard is refused", closed(4011): "shards to auto",
		closed(4012): "version", closed(4013): "developer portal", io.EOF: "", errInvalid: "", closed(4000): "",
	} {
		sh, _ := newTestShard(t, nil)
		err := sh.fatal(why)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", why, err, want)
		}
	}
	sh, r := newTestShard(t, nil)
	sh.intents = sh.g.intents()
	if err := sh.fatal(closed(4014)); err != nil || sh.g.intents() != Intents || r.refused != 1 {
		t.Errorf("refused with the content: %v, intents %b", err, sh.g.intents())
	}
	sh.intents = Intents
	if err := sh.fatal(closed(4014)); !errors.Is(err, errIntents) {
		t.Errorf("refused without the content: %v", err)
	}
}

// A session is known by what READY says, as far as that makes sense.
func TestSessionOfReady(t *testing.T) {
	for data, want := range map[string]*Session{
		`{"session_id":"s","resume_gateway_url":"ws://other.example"}`:  {ID: "s", Address: "ws://other.example", Seq: 7},
		`{"session_id":"s","resume_gateway_url":"wss://other.example"}`: {ID: "s", Seq: 7},
		`{"session_id":"s","resume_gateway_url":"other.example"}`:       {ID: "s", Seq: 7},
		`{"session_id":"s"}`: {ID: "s", Seq: 7},
		`{}`:                 nil,
		`{"session_id":5,"resume_gateway_url":"ws://other.example"}`: nil,
		`{"session_id":"s","resume_gateway_url":5}`:                  {ID: "s", Seq: 7},
		`[`: nil,
	} {
		sh, _ := newTestShard(t, nil)
		sh.dispatch(t.Context(), &conn{}, dispatch("READY", 7, data))
		if !sh.established || (sh.session == nil) != (want == nil) || want != nil && *sh.session != *want {
			t.Errorf("%s: %+v, want %+v", data, sh.session, want)
		}
		was := sh.session
		sh.dispatch(t.Context(), &conn{}, dispatch("RESUMED", 9, `{"session_id":"t"}`))
		if sh.session != was {
			t.Errorf("a session that goes on is another one: %+v", sh.session)
		}
	}
	for _, c := range []struct {
		resume, gateway string
		want            bool
	}{
		{"wss://a", "wss://b", true}, {"ws://a", "ws://b", true}, {"ws://a", "wss://b", false}, {"wss://a", "ws://b", false}, {"", "ws://b", false},
		{"https://a", "ws://b", false},
	} {
		if got := asSafe(c.resume, c.gateway); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A session is established with the event that says so, and with no other.
func TestEstablishedWithItsEvent(t *testing.T) {
	for kind, want := range map[string]bool{"READY": true, "RESUMED": true, "GUILD_CREATE": false, "MESSAGE_CREATE": false} {
		sh, _ := newTestShard(t, nil)
		c := &conn{interval: 40 * time.Second}
		sh.dispatch(t.Context(), c, dispatch(kind, 1, `{}`))
		if sh.established != want || (c.patience == 85*time.Second) != want {
			t.Errorf("with %s the session is established: %v, %v", kind, sh.established, c.patience)
		}
	}
}

// A connection that ended without a session is looked up anew; an established session
// is resumed where the gateway said.
func TestResetOfAShard(t *testing.T) {
	for _, established := range []bool{true, false} {
		sh, r := newTestShard(t, nil)
		sh.session = &Session{ID: "s", Address: "ws://other.example"}
		sh.established = established
		if got := sh.reset(); got != established || sh.established || r.disconnects != 1 || (sh.address() == "ws://other.example") != established {
			t.Errorf("established %v: %v, %+v", established, got, sh.session)
		}
		if got := sh.reset(); got {
			t.Errorf("established %v: once more", got)
		}
		sh.session = nil
		sh.reset()
	}
}

// While events of an earlier session are to be handed in, no event carries the new one: after a crash, the
// earlier one is needed again.
func TestMissedComesFirst(t *testing.T) {
	sh, r := newTestShard(t, nil)
	sh.missed = []message{
		dispatch("MESSAGE_CREATE", 1, `{"guild_id":"7","id":"1"}`), dispatch("MESSAGE_CREATE", 2, `{"id":"2"}`),
		dispatch("MESSAGE_CREATE", 3, `{"guild_id":"8","id":"3"}`), // which the bot has left
	}
	sh.dispatch(t.Context(), &conn{}, dispatch("READY", 1, `{"session_id":"s","guilds":[{"id":"7","unavailable":true}]}`))
	sh.dispatch(t.Context(), &conn{}, dispatch("GUILD_CREATE", 2, `{"id":"7"}`))
	sh.dispatch(t.Context(), &conn{}, dispatch("TYPING_START", 3, `{}`))
	if len(r.events) != 5 || len(sh.missed) > 0 {
		t.Fatalf("%d events, %d are missed", len(r.events), len(sh.missed))
	}
	for i, e := range r.events {
		if (e.Session.ID == "s") != (i == 4) {
			t.Errorf("%d, %s: %+v", i, e.Type, e.Session)
		}
	}
}

// A session goes on behind the last event that was taken.
func TestEventThatIsNotTaken(t *testing.T) {
	sh, r := newTestShard(t, nil)
	c := &conn{}
	event := func(kind string, seq int64) { sh.dispatch(t.Context(), c, dispatch(kind, seq, `{}`)) }
	event("TYPING_START", 3) // before there is a session
	sh.session = &Session{ID: "s", Seq: 5}
	taken := func(what string, seq int64, events int) {
		t.Helper()
		if sh.session.Seq != seq || len(r.events) != events {
			t.Errorf("%s: %d, %d events", what, sh.session.Seq, len(r.events))
		}
	}
	taken("at first", 5, 1)
	event("MESSAGE_CREATE", 7)
	taken("a message", 7, 2)
	event("MESSAGE_CREATE", 6)
	taken("an older message", 7, 3)
	event("", 9)
	taken("nothing", 7, 3)
	r.full = true
	event("MESSAGE_CREATE", 10)
	taken("not taken", 7, 3)
	if got := c.seq.Load(); got != 10 {
		t.Errorf("a heartbeat says %d", got)
	}
}

// Acknowledged heartbeats count from the beginning of the session on.
func TestAliveWithASession(t *testing.T) {
	sh, r := newTestShard(t, nil)
	c, ack := &conn{}, opAck
	for _, established := range []bool{false, true} {
		sh.established = established
		err := sh.handle(t.Context(), c, message{Op: &ack})
		if err != nil || (r.alive == 1) != established || !c.acked.Load() {
			t.Errorf("established %v: %d times alive, %v", established, r.alive, err)
		}
	}
}

// A connection that is not encrypted where it should be, or cannot be made, is an error
// and leaves nothing open.
func TestDial(t *testing.T) {
	plain := httptest.NewUnstartedServer(http.NotFoundHandler()) // of an authority that nobody knows
	plain.Config.ErrorLog = log.New(io.Discard, "", 0)
	plain.StartTLS()
	defer plain.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	var opened []*closing
	sh, _ := newTestShard(t, nil, func(o *Options) {
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
	for address, want := range map[string]string{
		"wss://nowhere": "no route",
		"wss://" + plain.Listener.Addr().String():    "certificate",
		"ws" + strings.TrimPrefix(web.URL, "http"):   "404",
		"ws://" + silent.Addr().String() + "/silent": "canceled",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if strings.HasSuffix(address, "silent") {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		opened = nil
		_, err := sh.g.dial(ctx, address)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		for _, c := range opened {
			if !c.closed {
				t.Errorf("%s: the connection is open", address)
			}
		}
		cancel()
	}
}

// closing knows whether it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return c.Conn.Close() }

// Where to connect is asked again before a further session, and the old answer does if
// there is no new one.
func TestLocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // Discord's ids begin in 2015
		s, end := discordtest.InMemory()
		t.Cleanup(end)
		sh, _ := newTestShard(t, s)
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
		if err := sh.locate(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("without a token: %v", err)
		}
		if err := sh.connect(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("connected without a token: %v", err)
		}
	})
}

// Where to connect is asked until there is an answer, but not with a token that is refused.
func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		s, end := discordtest.InMemory()
		t.Cleanup(end)
		sh, _ := newTestShard(t, s, func(o *Options) { o.Shards = 3 })
		refused := discordtest.Fault{Kind: discordtest.Refused, Status: 400}
		s.FailNext("GET /gateway", refused, refused)
		began := time.Now()
		at, err := sh.g.Find(t.Context())
		if took := time.Since(began); err != nil || at.Shards != 3 || took < 2*time.Second || took > 4*time.Second {
			t.Errorf("after %v: %+v, %v", took, at, err)
		}
		s.Revoke()
		if _, err := sh.g.Find(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("without a token: %v", err)
		}
		s.FailNext("GET /gateway", refused)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := sh.g.Find(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("at the end: %v", err)
		}
	})
}

// A heartbeat that the gateway asks for is sent at once.
func TestHeartbeatThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		s, end := discordtest.InMemory()
		t.Cleanup(end)
		ctx, cancel := context.WithCancel(t.Context())
		s.Gateway(func(g *discordtest.Settings) {
			g.Interval = 10 * time.Minute
			g.Script = func(_ int, c *discordtest.Conn) bool {
				defer cancel()
				c.Read()
				for range 3 {
					c.Send(discordtest.Payload{Op: discordtest.OpHeartbeat})
					if !c.Read() {
						t.Error("the connection ended")
					}
				}
				return true
			}
		})
		sh, _ := newTestShard(t, s)
		sh.located = true
		began := time.Now()
		if err := sh.run(ctx, Session{}); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// The token is not sent in the clear if requests are encrypted.
func TestLocation(t *testing.T) {
	for _, c := range []struct {
		address string
		secure  bool
		want    string
	}{
		{"ws://a", false, ""}, {"wss://a", true, ""}, {"wss://a", false, ""}, {"ws://a", true, "not encrypted"}, {"", false, "not an address"},
		{"https://a", false, "not an address"},
	} {
		_, err := (&answer{URL: c.address}).location(c.secure)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// FuzzParse: whatever a gateway sends, it is a message with an opcode, or an error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"op":10,"d":{"heartbeat_interval":41250}}`, `{"op":0,"s":1,"t":"READY","d":{}}`, `{"op":7}`, `{"op":9,"d":false}`, `null`, `{"op":11}`, `{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse(text)
		if (err == nil) != (m.Op != nil) && !errors.Is(err, errMessage) {
			t.Fatalf("%+v, %v", m, err)
		}
		if err != nil {
			return
		}
		sh := &shard{g: New(Options{Handler: &recorder{}}), at: Location{address: "ws://gateway.example"}}
		_ = sh.handle(context.Background(), &conn{beatAsked: make(chan struct{}, 1)}, m)
		if sh.session != nil && sh.session.ID == "" {
			t.Errorf("%q begins a session without an id", text)
		}
	})
}

// An event is copied once on its way in, and nothing of it is lost when it comes in
// pieces.
func TestEventIsCopiedOnce(t *testing.T) {
	const events = 100
	text := `{"op":0,"s":1,"t":"GUILD_CREATE","d":"` + strings.Repeat("x", 100<<10) + `"}`
	var sent bytes.Buffer
	for range events {
		sent.Write(append(header(0x81, len(text)), text...))
	}
	sent.Write(append(header(0x01, 50), text[:50]...))
	sent.Write(append(header(0x80, len(text)-50), text[50:]...))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire, _, _ := w.(http.Hijacker).Hijack()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		_, _ = fmt.Fprintf(wire, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(sum[:]))
		_, _ = wire.Write(sent.Bytes())
		_, _ = io.Copy(io.Discard, wire)
		_ = wire.Close()
	}))
	defer web.Close()
	sh, _ := newTestShard(t, nil)
	c, err := sh.g.dial(t.Context(), "ws"+strings.TrimPrefix(web.URL, "http"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.ws.Close() }()
	read := func() {
		t.Helper()
		m, err := c.read()
		if err != nil || len(m.Data) != len(text)-len(`{"op":0,"s":1,"t":"GUILD_CREATE","d":}`) {
			t.Fatalf("an event has %d bytes, %v", len(m.Data), err)
		}
	}
	read() // makes the buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range events - 1 {
		read()
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > events*uint64(len(text))*3/2 {
		t.Errorf("%d bytes are allocated for %d", grown, events*len(text))
	}
	read() // in pieces
}

// header is the beginning of a frame as a server sends it.
func header(kind byte, size int) []byte {
	if size < 126 {
		return []byte{kind, byte(size)}
	}
	return binary.BigEndian.AppendUint64([]byte{kind, 127}, uint64(size))
}
