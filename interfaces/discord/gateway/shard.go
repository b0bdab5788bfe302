package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"synthbot/core/driver"
	"synthbot/core/loop"
)

// Codes with which the gateway closes a connection.
const (
	closeNotAuthenticated = 4003
	closeToken            = 4004
	closeSequence         = 4007
	closeTimeout          = 4009
	closeShard            = 4010
	closeShards           = 4011
	closeVersion          = 4012
	closeIntents          = 4013
	closeDisallowed       = 4014 // intents
)

// shard keeps one connection alive. It is used only by the goroutine of run, except for missed until earlier is over.
type shard struct {
	g       *Gateway
	id      int
	count   int // shards of the account
	at      Location
	located bool // at must be updated before the next session
	intents int  // that this connection requests

	session     *Session  // nil: the next session is new
	missed      []message // events missed by an earlier process, until their guild is known
	earlier     *earlier  // receives them; nil: none, or no longer
	established bool      // this connection received READY or RESUMED
}

// run connects and reconnects until ctx ends, and then returns nil, or until Discord refuses the bot. left
// is the session of an earlier process.
func (s *shard) run(ctx context.Context, left Session) error {
	s.catchUp(ctx, left)
	defer s.leaveEarlier()
	wait := time.Duration(0)
	for loop.Sleep(ctx, wait) {
		s.established = false
		why := s.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		s.g.Handler.Disconnected(s.id)
		if err := s.fatal(why); err != nil {
			return err
		}
		wait = s.after(why, wait)
		s.g.Log.Info("gateway connection ended",
			"shard", s.id, "reason", why, "lasted", s.established, "retry_in", wait)
	}
	return nil
}

// after ends the session if it cannot be resumed, and returns the pause before the next connection.
func (s *shard) after(why error, waited time.Duration) time.Duration {
	t := &s.g.Timings
	over := []int{closeNotAuthenticated, closeSequence, closeTimeout}
	switch {
	case errors.Is(why, errInvalid) || slices.Contains(over, closeCode(why)):
		began := s.session == nil
		s.session = nil
		// Discord requires a random pause of one to five times this.
		pause := t.Invalid + rand.N(4*t.Invalid)
		if began && !s.established { // Discord limits the sessions of a day
			pause = max(pause, driver.Jitter(min(2*waited, t.Longest)))
		}
		return pause
	case s.established:
		return rand.N(t.Backoff / 4)
	case s.session != nil:
		s.session.Address = "" // it may be the reason; the gateway's own accepts the session as well
	}
	return driver.Jitter(min(max(2*waited, t.Backoff), t.Longest))
}

// closeCode returns the code with which the gateway closed a connection; 0 if it did not.
func closeCode(why error) int {
	closed, _ := errors.AsType[*websocket.CloseError](why)
	return cmp.Or(closed, &websocket.CloseError{}).Code
}

// fatal returns the error that ends Run; nil if the shard can reconnect.
func (s *shard) fatal(why error) error {
	reasons := map[int]error{
		closeShard: errShard, closeShards: ErrShards, closeVersion: errVersion, closeIntents: errIntents,
		closeDisallowed: errIntents,
	}
	code := closeCode(why)
	switch reason := reasons[code]; {
	case errors.Is(why, ErrToken), code == closeToken:
		return ErrToken
	case code == closeDisallowed && s.intents != Intents:
		if !s.g.contentRefused.Swap(true) { // other shards may have requested it, too
			s.g.Notify("the message content intent is off for this bot: it sees only mentions, replies to it and " +
				"direct messages. Switch the intent on in the developer portal, under Bot, and restart.")
		}
	case reason != nil:
		return fmt.Errorf("%w (%w)", reason, why)
	}
	return nil
}

// connect opens a connection and returns why it ended.
func (s *shard) connect(ctx context.Context) error {
	identified := func() {}
	if s.session == nil {
		var err error
		identified, err = s.g.Starts.wait(ctx, s.id, s.at.concurrency)
		if err != nil {
			return err
		}
		defer identified()
		if err := s.locate(ctx); err != nil {
			return err
		}
	}
	c, err := s.g.dial(ctx, s.address())
	if err != nil {
		return err
	}
	var beats sync.WaitGroup
	defer beats.Wait()
	defer c.closeAfter(ctx)()
	defer c.started()
	if err := s.begin(c); err != nil {
		return err
	}
	identified()
	return s.serve(ctx, c, &beats)
}

// locate asks where to connect, except the first time: then all shards use the answer that Run got.
func (s *shard) locate(ctx context.Context) error {
	if s.located {
		at, err := s.g.ask(ctx)
		switch {
		case err == nil:
			s.at = at
		case errors.Is(err, ErrToken), ctx.Err() != nil:
			return err
		}
	}
	s.located = true
	return nil
}

func (s *shard) address() string {
	if s.session != nil && s.session.Address != "" {
		return s.session.Address
	}
	return s.at.address
}

func (s *shard) begin(c *conn) error {
	s.intents = s.g.intents()
	if s.session != nil {
		return c.resume(s.g.Token, *s.session)
	}
	c.starting <- struct{}{}
	return c.send(opIdentify, discordgo.Identify{
		Token: "Bot " + s.g.Token.Reveal(), Intents: discordgo.Intent(s.intents), Shard: &[2]int{s.id, s.count},
		LargeThreshold: 250, Properties: discordgo.IdentifyProperties{OS: runtime.GOOS, Browser: "synthbot"},
	})
}

// serve handles messages until the connection ends, or ctx does and no session is starting. A goroutine of beats
// sends heartbeats.
func (s *shard) serve(ctx context.Context, c *conn, beats *sync.WaitGroup) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	beats.Go(func() {
		if err := c.beat(ctx); err != nil {
			end(err)
			_ = c.ws.Close()
		}
	})
	for {
		m, err := c.read()
		if err == nil {
			err = s.handle(ctx, c, m)
		}
		if err != nil || ctx.Err() != nil && len(c.starting) == 0 {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// handle handles one message. An error ends the connection.
func (s *shard) handle(ctx context.Context, c *conn, m message) error {
	switch *m.Op {
	case opDispatch:
		s.dispatch(ctx, c, m)
	case opHeartbeat:
		loop.Notify(c.beatAsked)
	case opAck:
		c.acked.Store(true)
		if s.established {
			s.g.Handler.Alive(s.id)
		}
	case opReconnect:
		return errReconnect
	case opInvalid:
		if string(bytes.TrimSpace(m.Data)) == "true" {
			return errReconnect
		}
		return errInvalid
	}
	return nil
}

func (s *shard) dispatch(ctx context.Context, c *conn, m message) {
	if m.Type == "" {
		return
	}
	c.seq.Store(max(c.seq.Load(), m.Seq))
	if m.Type == "READY" || m.Type == "RESUMED" {
		s.established = true
		c.patience = 2*c.interval + 5*time.Second // the gateway answers every heartbeat
	}
	if m.Type == "READY" {
		s.setSession(m)
	}
	s.leaveEarlier()
	e := Event{Shard: s.id, Type: m.Type, Data: m.Data}
	if s.session != nil && len(s.missed) == 0 { // otherwise a crash would lose the earlier session's missed events
		e.Session = *s.session
		e.Session.Seq = max(e.Session.Seq, m.Seq)
	}
	if s.g.Handler.Event(ctx, e) && s.session != nil {
		s.session.Seq = max(s.session.Seq, m.Seq)
	}
	s.deliverMissed(ctx, m)
	if m.Type == "READY" {
		c.started()
	}
}

func (s *shard) setSession(ready message) {
	var r struct {
		Session string `json:"session_id"`
		Address string `json:"resume_gateway_url"`
	}
	_ = json.Unmarshal(ready.Data, &r) // if it has no session ID, the session cannot be resumed
	if !asSafe(r.Address, s.at.address) {
		r.Address = ""
	}
	if r.Session != "" {
		s.session = &Session{ID: r.Session, Address: r.Address, Seq: ready.Seq}
	}
}

// asSafe reports whether the address for resuming is encrypted if the gateway's is.
func asSafe(resume, gateway string) bool {
	return isAddress(resume) && strings.HasPrefix(resume, "wss:") == strings.HasPrefix(gateway, "wss:")
}
