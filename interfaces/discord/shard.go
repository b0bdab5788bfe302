package discord

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"synthbot/interfaces/discord/rest"
)

// Errors that stop the interface; they are written for people.
var (
	errToken   = errors.New("the token is refused by Discord: put a valid one where the configuration's token points to")
	errShards  = errors.New("the bot is in so many guilds that it needs more shards: set shards to auto")
	errIntents = errors.New("the intents are refused by Discord: switch them on for this bot in the developer portal")
)

// Intents: guilds, moderation is not needed, messages, reactions and polls of
// guilds and of direct messages.
const (
	intentGuilds          = 1 << 0
	intentGuildMessages   = 1 << 9
	intentGuildReactions  = 1 << 10
	intentDirectMessages  = 1 << 12
	intentDirectReactions = 1 << 13
	intentMessageContent  = 1 << 15

	intentsAlways = intentGuilds | intentGuildMessages | intentGuildReactions | intentDirectMessages | intentDirectReactions
)

// shard keeps one of the gateway connections alive.
type shard struct {
	d       *Driver
	id      int
	count   int
	at      gateway
	located bool // at was in use before, or is not enough
	intents int  // that this connection asks for

	mu     sync.Mutex
	resume *resume // nil: the next session is a new one
	stands bool    // this connection got as far as READY or RESUMED
	opened *wire

	identified func()         // tells that this connection has identified
	closing    sync.WaitGroup // the library's ends of connections
}

// run keeps connecting until ctx ends, which is no error, or it is of no use.
func (s *shard) run(ctx context.Context) error {
	defer s.closing.Wait()
	wait := time.Duration(0)
	for {
		if !rest.Sleep(ctx, wait) {
			return nil
		}
		why := s.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		stood := s.reset()
		if err := s.fatal(why); err != nil {
			return err
		}
		wait = s.after(why, stood, wait)
		s.d.log.Info("gateway connection ended", "shard", s.id, "reason", why, "stood", stood, "wait", wait)
	}
}

// reset tells whether the session stood, and forgets that. Where it did not, its
// address may be what is wrong.
func (s *shard) reset() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stood := s.stands
	s.stands, s.opened = false, nil
	s.d.ready.ended(s.id)
	if !stood && s.resume != nil {
		s.resume.address = "" // the gateway's own takes the session as well
	}
	return stood
}

// after decides what to do after a connection ended: forget the session or not,
// and how long to wait.
func (s *shard) after(why error, stood bool, waited time.Duration) time.Duration {
	t := s.d.tempo
	var c *closed
	if errors.Is(why, errInvalid) || errors.As(why, &c) && (c.code == 4007 || c.code == 4009 || c.code == 4003) {
		s.mu.Lock()
		began := s.resume == nil
		s.resume = nil
		s.mu.Unlock()
		// The platform wants a random wait of one to five times this.
		pause := t.invalid + rand.N(4*t.invalid)
		if began && !stood { // and lets nobody begin again and again all day
			pause = max(pause, rest.Jitter(min(2*waited, t.longest)))
		}
		return pause
	}
	if stood {
		return rand.N(t.backoff / 4)
	}
	return rest.Jitter(min(max(2*waited, t.backoff), t.longest))
}

// fatal returns the error that stops the interface, if why is of that kind.
func (s *shard) fatal(why error) error {
	if errors.Is(why, errToken) {
		return errToken
	}
	var c *closed
	if !errors.As(why, &c) {
		return nil
	}
	switch c.code {
	case 4004:
		return errToken
	case 4010:
		return fmt.Errorf("the shard is refused by Discord (%w)", c)
	case 4011:
		return fmt.Errorf("%w (%w)", errShards, c)
	case 4012:
		return fmt.Errorf("this version of the gateway is not known to Discord any more (%w)", c)
	case 4013:
		return fmt.Errorf("%w (%w)", errIntents, c)
	case 4014:
		if s.intents&intentMessageContent != 0 {
			s.d.dropContent() // others may have asked for it as well
			return nil
		}
		return fmt.Errorf("%w (%w)", errIntents, c)
	}
	return nil
}

// connect opens a connection and returns why it ended.
func (s *shard) connect(ctx context.Context) error {
	going := s.going()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if going == nil {
		done, err := s.d.starts.wait(ctx, s.id, s.at.concurrency)
		if err != nil {
			return err
		}
		defer done()
		if err := s.locate(ctx); err != nil {
			return err
		}
		s.identified = done
	}
	sess, left := s.session(ctx, going)
	err := open(sess) // bounded: every wait of the library goes through our connection
	s.mu.Lock()
	w := s.opened
	s.mu.Unlock()
	if w == nil {
		return err
	}
	if err != nil {
		return w.end(err)
	}
	<-w.ended // at the latest with ctx
	// The library closes for a second what is closed already; only its last
	// event is waited for before the next connection.
	s.closing.Go(func() {
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			s.d.log.Error("the library does not let go of a connection", "shard", s.id)
		}
	})
	select {
	case <-w.quiet:
	case <-left:
	}
	return w.end(nil)
}

// locate asks where to connect to, but not the first time: that was asked for
// all shards.
func (s *shard) locate(ctx context.Context) (err error) {
	if s.located {
		s.at, err = s.d.freshGateway(ctx, s.at)
	}
	s.located = true
	return err
}

// going is a copy of what is needed to resume; nil where a session must begin.
func (s *shard) going() *resume {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resume == nil {
		return nil
	}
	r := *s.resume
	return &r
}

// open is the library's Open without its panics.
func open(sess *discordgo.Session) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("library: %v\n%s", p, debug.Stack())
		}
	}()
	return sess.Open()
}

// session makes a session of the library for one connection. left is closed when
// the library is done with it.
func (s *shard) session(ctx context.Context, going *resume) (sess *discordgo.Session, left <-chan struct{}) {
	sess, _ = discordgo.New("Bot " + s.d.set.Token.Reveal()) // it has no way to fail
	sess.StateEnabled, sess.SyncEvents, sess.Compress = false, true, false
	sess.ShouldReconnectOnError, sess.ShouldReconnectVoiceOnSessionError = false, false
	sess.LogLevel = -1 // what it has to say, the wire knows better
	s.intents = s.d.intents()
	sess.Identify.Intents = discordgo.Intent(s.intents)
	sess.Identify.Shard = &[2]int{s.id, s.count}
	address := s.at.address
	if going != nil && going.address != "" {
		address = going.address
	}
	sess.Client = &http.Client{Transport: told{address}}
	dialer := *sess.Dialer
	said := &stash{}
	dialer.NetDialContext, dialer.NetDialTLSContext = s.dials(ctx, going, said)
	sess.Dialer = &dialer
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() { close(gone) })
	sess.AddHandler(func(_ *discordgo.Session, _ *discordgo.Disconnect) { leave() })
	sess.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
		if e.Operation == opDispatch {
			e.RawData = said.take()
			s.event(ctx, e)
		}
	})
	return sess, gone
}

// event puts an event into the queue. It waits while the queue is full.
func (s *shard) event(ctx context.Context, e *discordgo.Event) {
	if e.Type == "" {
		return
	}
	if e.Type == "ready" || e.Type == "resumed" {
		s.stand(e)
	}
	f := frame{shard: s.id, kind: e.Type, data: e.RawData}
	switch e.Type {
	case "interaction_create":
		f.call = s.d.arrive(ctx, e.RawData)
	case "ready":
		f.since = s.d.alive.begin(s.id, s.d.clock())
	}
	if f.call.wanted() && !s.d.queue.push(ctx.Done(), f) {
		s.d.arrivals.forget(f.call)
		return // it comes again
	}
	s.d.alive.touch(s.id, s.d.clock())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resume != nil {
		s.resume.seq = max(s.resume.seq, e.Sequence)
	}
}

// stand notes that the session stands, and how to resume it.
func (s *shard) stand(e *discordgo.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands = true
	s.d.ready.stands(s.id)
	if s.opened != nil {
		s.opened.settle()
	}
	if e.Type != "ready" {
		return
	}
	var r struct {
		Session string `json:"session_id"`
		Address string `json:"resume_gateway_url"`
	}
	_ = json.Unmarshal(e.RawData, &r) // without a session, the next one is a new one
	if r.Session == "" {
		return
	}
	if !sameKind(r.Address, s.at.address) {
		r.Address = ""
	}
	s.resume = &resume{session: r.Session, address: r.Address, seq: e.Sequence}
}

// sameKind refuses a resume address that would be less safe than the gateway's.
func sameKind(resume, gateway string) bool {
	return gatewayAddress(resume) == nil && strings.HasPrefix(resume, "wss:") == strings.HasPrefix(gateway, "wss:")
}

// dial opens a connection for the library's dialer.
type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// dials are the two ways to connect, each with a wire around the connection.
// The library's own contexts never end; ours does.
func (s *shard) dials(ctx context.Context, going *resume, said *stash) (open, secure dial) {
	connect := func(network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, s.d.tempo.patience)
		defer cancel()
		return s.d.dial(ctx, network, addr)
	}
	open = func(_ context.Context, network, addr string) (net.Conn, error) {
		conn, err := connect(network, addr)
		if err != nil {
			return nil, err
		}
		return s.watch(ctx, conn, going, said), nil
	}
	secure = func(_ context.Context, network, addr string) (net.Conn, error) {
		conn, err := connect(network, addr)
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(addr)
		safe := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		hello, cancel := context.WithTimeout(ctx, s.d.tempo.patience)
		defer cancel()
		if err := safe.HandshakeContext(hello); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return s.watch(ctx, safe, going, said), nil
	}
	return open, secure
}

// watch puts a wire around a connection and ends it with ctx.
func (s *shard) watch(ctx context.Context, conn net.Conn, going *resume, said *stash) net.Conn {
	w := newWire(conn, "Bot "+s.d.set.Token.Reveal(), going, said, s.d.tempo.patience)
	w.identified = s.identified
	w.heard = s.heard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = w
	context.AfterFunc(ctx, w.leave)
	return w
}

// heard is told that the gateway acknowledged a heartbeat.
func (s *shard) heard() {
	s.mu.Lock()
	stands := s.stands
	s.mu.Unlock()
	if stands {
		s.d.alive.touch(s.id, s.d.clock())
	}
}

// told answers the library's one request, for the gateway's address, with what
// is known already.
type told struct{ address string }

// RoundTrip implements http.RoundTripper.
func (t told) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/gateway") {
		return nil, &url.Error{Op: r.Method, URL: r.URL.Path, Err: errors.New("the library makes no requests of its own here")}
	}
	u, _ := url.Parse(t.address)
	u.RawQuery = "" // the library adds version and encoding
	text, _ := json.Marshal(map[string]string{"url": u.String()})
	return answer(r, text), nil
}

// answer is an answer that no server gave.
func answer(r *http.Request, text []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}
