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

// recorder is a Handler that records events and counts calls.
type recorder struct {
	full           bool // refuses every event
	events         []Event
	alive, refused int
}

func (r *recorder) Event(_ context.Context, e Event) bool {
	if !r.full {
		r.events = append(r.events, e)
	}
	return !r.full
}

func (r *recorder) Alive(int)        { r.alive++ }
func (r *recorder) Disconnected(int) {}

// newTestShard returns a shard that is not connected, and its handler.
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

// TestAfterAConnection: after a connection ended, a session that is over is forgotten, and pauses grow while
// no session is established.
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
			sh.established = c.established
			if got := sh.after(c.why, c.waited); got < c.least || got > c.most {
				t.Fatalf("%s: got a pause of %v, want %v to %v", name, got, c.least, c.most)
			}
			if (sh.session == nil) != c.forgotten {
				t.Fatalf("%s: got session %+v, want it forgotten: %v", name, sh.session, c.forgotten)
			}
		}
	}
}

// TestFatalEnds: these errors end the interface. A refused content intent does only if the shard did not
// request it.
func TestFatalEnds(t *testing.T) {
	for why, want := range map[error]string{
		fmt.Errorf("x: %w", ErrToken): "token", closed(4004): "token", closed(4010): "the shard is refused", closed(4011): "shards to auto",
		closed(4012): "version", closed(4013): "developer portal", io.EOF: "", errInvalid: "", closed(4000): "",
	} {
		sh, _ := newTestShard(t, nil)
		err := sh.fatal(why)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", why, err, want)
		}
	}
	sh, r := newTestShard(t, nil)
	sh.intents = sh.g.intents()
	if err := sh.fatal(closed(4014)); err != nil || sh.g.intents() != Intents || r.refused != 1 {
		t.Errorf("content intent refused: got %v, intents %b, want none and the other intents", err, sh.g.intents())
	}
	sh.intents = Intents
	if err := sh.fatal(closed(4014)); !errors.Is(err, errIntents) {
		t.Errorf("other intents refused: got %v, want %v", err, errIntents)
	}
}

// TestSessionOfReady: READY names the session and the address for resuming, which is ignored if it is less
// secure or invalid.
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
			t.Errorf("%s: got %+v, want %+v", data, sh.session, want)
		}
		was := sh.session
		sh.dispatch(t.Context(), &conn{}, dispatch("RESUMED", 9, `{"session_id":"t"}`))
		if sh.session != was {
			t.Errorf("RESUMED changed the session to %+v", sh.session)
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
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// TestEstablishedWithItsEvent: a session is established by READY or RESUMED and no other event.
func TestEstablishedWithItsEvent(t *testing.T) {
	for kind, want := range map[string]bool{"READY": true, "RESUMED": true, "GUILD_CREATE": false, "MESSAGE_CREATE": false} {
		sh, _ := newTestShard(t, nil)
		c := &conn{interval: 40 * time.Second}
		sh.dispatch(t.Context(), c, dispatch(kind, 1, `{}`))
		if sh.established != want || (c.patience == 85*time.Second) != want {
			t.Errorf("%s: established %v, want %v; patience %v", kind, sh.established, want, c.patience)
		}
	}
}

// TestAddressAfterAConnection: an established session is resumed at the address that the gateway named, any other
// one at the gateway's own.
func TestAddressAfterAConnection(t *testing.T) {
	for _, established := range []bool{true, false} {
		sh, _ := newTestShard(t, nil)
		sh.session = &Session{ID: "s", Address: "ws://other.example"}
		sh.established = established
		sh.after(io.EOF, 0)
		if (sh.address() == "ws://other.example") != established {
			t.Errorf("established %v: session %+v", established, sh.session)
		}
	}
}

// TestMissedComesFirst: events carry the new session only when all missed events of the former one were
// delivered, because after a crash the former one is needed again.
func TestMissedComesFirst(t *testing.T) {
	sh, r := newTestShard(t, nil)
	sh.missed = []message{
		dispatch("MESSAGE_CREATE", 1, `{"guild_id":"7","id":"1"}`), dispatch("MESSAGE_CREATE", 2, `{"id":"2"}`),
		dispatch("MESSAGE_CREATE", 3, `{"guild_id":"8","id":"3"}`), // the bot has left this guild
	}
	sh.dispatch(t.Context(), &conn{}, dispatch("READY", 1, `{"session_id":"s","guilds":[{"id":"7","unavailable":true}]}`))
	sh.dispatch(t.Context(), &conn{}, dispatch("GUILD_CREATE", 2, `{"id":"7"}`))
	sh.dispatch(t.Context(), &conn{}, dispatch("TYPING_START", 3, `{}`))
	if len(r.events) != 5 || len(sh.missed) > 0 {
		t.Fatalf("got %d events, %d still missed, want 5 and 0", len(r.events), len(sh.missed))
	}
	for i, e := range r.events {
		if (e.Session.ID == "s") != (i == 4) {
			t.Errorf("event %d, %s: got session %+v, want the new one: %v", i, e.Type, e.Session, i == 4)
		}
	}
}

// TestEventThatIsRefused: a session resumes after the last event that the handler accepted.
func TestEventThatIsRefused(t *testing.T) {
	sh, r := newTestShard(t, nil)
	c := &conn{}
	event := func(kind string, seq int64) { sh.dispatch(t.Context(), c, dispatch(kind, seq, `{}`)) }
	event("TYPING_START", 3) // before there is a session
	sh.session = &Session{ID: "s", Seq: 5}
	taken := func(what string, seq int64, events int) {
		t.Helper()
		if sh.session.Seq != seq || len(r.events) != events {
			t.Errorf("%s: got sequence %d and %d events, want %d and %d", what, sh.session.Seq, len(r.events), seq, events)
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
		t.Errorf("heartbeat: got sequence %d, want 10", got)
	}
}

// TestAliveWithASession: acknowledged heartbeats are reported only while a session is established.
func TestAliveWithASession(t *testing.T) {
	sh, r := newTestShard(t, nil)
	c, ack := &conn{}, opAck
	for _, established := range []bool{false, true} {
		sh.established = established
		err := sh.handle(t.Context(), c, message{Op: &ack})
		if err != nil || (r.alive == 1) != established || !c.acked.Load() {
			t.Errorf("established %v: reported %d times, %v", established, r.alive, err)
		}
	}
}

// TestDial: a connection that cannot be made, or whose certificate is not trusted, is an error and is closed.
func TestDial(t *testing.T) {
	plain := httptest.NewUnstartedServer(http.NotFoundHandler()) // with a certificate of an unknown authority
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
	var opened []*closeRecorder
	sh, _ := newTestShard(t, nil, func(o *Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "nowhere:443" {
				return nil, errors.New("no route to host")
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			opened = append(opened, &closeRecorder{Conn: conn})
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
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
		for _, c := range opened {
			if !c.closed {
				t.Errorf("%s: the connection was not closed", address)
			}
		}
		cancel()
	}
}

// closeRecorder is a connection that records whether it was closed.
type closeRecorder struct {
	net.Conn
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return c.Conn.Close() }

// TestLocate: the gateway's address is requested again before a further session. If that fails, the former
// address is used.
func TestLocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // Discord's ids begin in 2015
		s, end := discordtest.InMemory()
		t.Cleanup(end)
		sh, _ := newTestShard(t, s)
		if err := sh.locate(t.Context()); err != nil || sh.at.address != "ws://gateway.example" || len(s.Calls("")) != 0 {
			t.Errorf("the first time: got %v, %+v, want the given address without a request", err, sh.at)
		}
		if err := sh.locate(t.Context()); err != nil || sh.at.address == "ws://gateway.example" {
			t.Errorf("the next time: got %v, %+v, want a new address", err, sh.at)
		}
		at := sh.at
		s.FailNext("GET /gateway", discordtest.Fault{Kind: discordtest.Refused, Status: 400})
		if err := sh.locate(t.Context()); err != nil || sh.at != at {
			t.Errorf("request refused: got %v, %+v, want %+v", err, sh.at, at)
		}
		s.Revoke()
		if err := sh.locate(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("token rejected: got %v, want %v", err, ErrToken)
		}
		if err := sh.connect(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("connect with a rejected token: got %v, want %v", err, ErrToken)
		}
	})
}

// TestFind: the gateway's address is requested until there is a response, unless the token is rejected.
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
			t.Errorf("after %v: got %+v, %v, want 3 shards after 2s to 4s", took, at, err)
		}
		s.Revoke()
		if _, err := sh.g.Find(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("token rejected: got %v, want %v", err, ErrToken)
		}
		s.FailNext("GET /gateway", refused)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := sh.g.Find(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("context cancelled: got %v, want %v", err, context.Canceled)
		}
	})
}

// runScripted runs a shard until script calls end. script handles its connection. It returns what the shard's
// handler got, and how long the shard ran.
func runScripted(t *testing.T, script func(c *discordtest.Conn, end func())) (r *recorder, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		s, closeServer := discordtest.InMemory()
		t.Cleanup(closeServer)
		ctx, end := context.WithCancel(t.Context())
		s.Gateway(func(g *discordtest.Settings) {
			g.Interval = 10 * time.Minute
			g.Script = func(_ int, c *discordtest.Conn) bool {
				defer end()
				script(c, end)
				return true
			}
		})
		var sh *shard
		sh, r = newTestShard(t, s)
		sh.located = true
		began := time.Now()
		if err := sh.run(ctx, Session{}); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		took = time.Since(began)
	})
	return r, took
}

// TestHeartbeatThatIsAskedFor: a heartbeat that the gateway requests is sent at once.
func TestHeartbeatThatIsAskedFor(t *testing.T) {
	_, took := runScripted(t, func(c *discordtest.Conn, _ func()) {
		c.Read()
		for range 3 {
			c.Send(discordtest.Payload{Op: discordtest.OpHeartbeat})
			if !c.Read() {
				t.Error("the connection ended")
			}
		}
	})
	if took > lastTime+time.Second {
		t.Errorf("took %v, want at most a second until the end", took)
	}
}

// TestEndedAtIdentify: a shard that ends while its new session starts waits for READY, so that the next process can
// resume the session. It does not wait long, nor for a session that it has not requested.
func TestEndedAtIdentify(t *testing.T) {
	ready := discordtest.Payload{Op: discordtest.OpDispatch, Seq: 1, Type: "READY", Data: map[string]any{"session_id": "s"}}
	r, took := runScripted(t, func(c *discordtest.Conn, end func()) {
		c.Read()
		end()
		time.Sleep(lastTime / 2)
		c.Send(discordtest.Payload{Op: discordtest.OpAck})
		c.Send(ready)
		c.Read()
	})
	if len(r.events) != 1 || r.events[0].Session.ID != "s" || took != lastTime/2 {
		t.Errorf("after %v: got %+v, want the session after %v", took, r.events, lastTime/2)
	}
	r, took = runScripted(t, func(c *discordtest.Conn, end func()) {
		c.Read()
		end()
		c.Read()
	})
	if len(r.events) != 0 || took != lastTime {
		t.Errorf("without READY: got %+v after %v, want nothing after %v", r.events, took, lastTime)
	}
	r, took = runScripted(t, func(c *discordtest.Conn, end func()) { end(); c.Read() })
	if len(r.events) != 0 || took > lastTime {
		t.Errorf("before IDENTIFY: got %+v after %v, want nothing", r.events, took)
	}
}

// TestLocation: a gateway address without encryption is refused if requests are encrypted.
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
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// FuzzParse: whatever a gateway sends becomes a message with an opcode or an error.
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
			t.Errorf("%q began a session without an id", text)
		}
	})
}

// TestEventIsCopiedOnce: reading an event allocates its size about once, and an event in fragments is read
// completely.
func TestEventIsCopiedOnce(t *testing.T) {
	const events = 100
	text := `{"op":0,"s":1,"t":"GUILD_CREATE","d":"` + strings.Repeat("x", 100<<10) + `"}`
	var sent bytes.Buffer
	hello := `{"op":10,"d":{"heartbeat_interval":40000}}`
	sent.Write(append(header(0x81, len(hello)), hello...))
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
			t.Fatalf("got an event of %d bytes, %v", len(m.Data), err)
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
		t.Errorf("allocated %d bytes for events of %d, want at most half more", grown, events*len(text))
	}
	read() // in pieces
}

// header returns the header of a WebSocket frame from a server.
func header(kind byte, size int) []byte {
	if size < 126 {
		return []byte{kind, byte(size)}
	}
	return binary.BigEndian.AppendUint64([]byte{kind, 127}, uint64(size))
}

// TestLeaveEarlier: the session of an earlier process is left as soon as everything on its way was received.
func TestLeaveEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		s, end := discordtest.InMemory()
		t.Cleanup(end)
		sh, _ := newTestShard(t, s)
		at, err := sh.g.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sh.at = at
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sh.run(ctx, Session{}) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil || sh.session == nil {
			t.Fatalf("got %v, %v, want a session", sh.session, err)
		}
		next, _ := newTestShard(t, s)
		next.at = at
		next.catchUp(t.Context(), *sh.session)
		began := time.Now()
		next.leaveEarlier()
		if took := time.Since(began); took >= lastTime {
			t.Errorf("it took %v", took)
		}
	})
}
