package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"synthbot/core/secret"
)

// Opcodes of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// Errors that end a connection, besides *websocket.CloseError and network errors.
var (
	errReconnect = errors.New("the gateway requested a reconnect")
	errInvalid   = errors.New("the session is no longer valid")
	errZombie    = errors.New("the gateway does not acknowledge heartbeats")
	errMessage   = errors.New("the gateway sent an unreadable message")
)

// Limits of a connection.
const (
	maxMessage  = 32 << 20         // bytes
	maxBuffer   = 1 << 20          // bytes of the buffer that are kept for the next message
	sendTime    = 20 * time.Second // for sending a message
	goodbyeTime = time.Second      // for sending the close message
)

type message struct {
	Op   *int            `json:"op"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
	Data json.RawMessage `json:"d"`
}

// conn is one connection. One goroutine reads, another sends heartbeats.
type conn struct {
	ws       *websocket.Conn
	text     bytes.Buffer  // of the message being read
	patience time.Duration // how long the gateway may be silent
	interval time.Duration // between two heartbeats

	seq       atomic.Int64  // of the latest event
	reading   atomic.Bool   // read is waiting for a message
	acked     atomic.Bool   // the latest heartbeat was acknowledged
	beatAsked chan struct{} // holds a token if the gateway requested a heartbeat
	starting  chan struct{} // holds a token from IDENTIFY to READY, and while closeAfter closes the connection
}

// dial connects and reads the first message. The end of ctx cancels the attempt, but not the connection.
func (g *Gateway) dial(ctx context.Context, address string) (*conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{"v": {discordgo.APIVersion}, "encoding": {"json"}}.Encode()
	stop := func() bool { return true }
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: g.Timings.Patience,
		NetDialContext: func(handshake context.Context, network, address string) (net.Conn, error) {
			wire, err := g.Dial(handshake, network, address)
			if err == nil {
				// The WebSocket handshake and reading ignore the context.
				stop = context.AfterFunc(ctx, func() { _ = wire.Close() })
			}
			return wire, err
		},
	}
	ws, resp, err := dialer.DialContext(ctx, u.String(), nil)
	c := &conn{
		ws: ws, patience: g.Timings.Patience, beatAsked: make(chan struct{}, 1), starting: make(chan struct{}, 1),
	}
	switch {
	case err == nil:
		c.acked.Store(true)
		ws.SetReadLimit(maxMessage)
		ws.SetCloseHandler(func(int, string) error { return nil }) // replying might end the session
		err = c.hello()
	case resp != nil:
		err = fmt.Errorf("%w: %s", err, resp.Status)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil && ws != nil {
		_ = ws.Close()
	}
	return c, err
}

func (c *conn) read() (m message, err error) {
	_ = c.ws.SetReadDeadline(time.Now().Add(c.patience)) // fails only if the connection is closed
	c.reading.Store(true)
	defer c.reading.Store(false)
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return m, err
	}
	if kind != websocket.TextMessage {
		return m, fmt.Errorf("%w: compression was not asked for", errMessage)
	}
	c.text.Reset()
	_, err = c.text.ReadFrom(r)
	if err != nil {
		return m, err
	}
	m, err = parse(c.text.Bytes())
	if c.text.Cap() > maxBuffer {
		c.text = bytes.Buffer{}
	}
	return m, err
}

// parse decodes a message. It does not retain text.
func parse(text []byte) (m message, err error) {
	err = json.Unmarshal(text, &m)
	if err != nil || m.Op == nil {
		return m, fmt.Errorf("%w: %.60q", errMessage, text)
	}
	return m, nil
}

// hello reads the first message, which contains the heartbeat interval.
func (c *conn) hello() error {
	m, err := c.read()
	if err != nil {
		return err
	}
	var h struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if *m.Op != opHello || json.Unmarshal(m.Data, &h) != nil || h.Interval < 10 || h.Interval > 600_000 {
		return fmt.Errorf("%w: hello expected", errMessage)
	}
	c.interval = time.Duration(h.Interval) * time.Millisecond
	return nil
}

func (c *conn) send(op int, data any) error {
	_ = c.ws.SetWriteDeadline(time.Now().Add(sendTime)) // never fails
	return c.ws.WriteJSON(map[string]any{"op": op, "d": data})
}

func (c *conn) resume(token secret.Secret, s Session) error {
	c.seq.Store(s.Seq)
	return c.send(opResume, map[string]any{"token": "Bot " + token.Reveal(), "session_id": s.ID, "seq": s.Seq})
}

// beat sends heartbeats until ctx ends. It returns an error if one cannot be sent, or is not acknowledged
// before the next one.
func (c *conn) beat(ctx context.Context) error {
	tick := time.NewTimer(rand.N(c.interval)) // Discord requires a random first delay
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.beatAsked:
		case <-tick.C:
			if !c.acked.Swap(false) && c.reading.Load() {
				return errZombie
			}
			tick.Reset(c.interval)
		}
		var seq *int64 // null before the first event
		latest := c.seq.Load()
		if latest > 0 {
			seq = &latest
		}
		if err := c.send(opHeartbeat, seq); err != nil {
			return err
		}
	}
}

// started takes the token from starting, if there is one.
func (c *conn) started() {
	select {
	case <-c.starting:
	default:
	}
}

// closeResumable is the close code after which another process can resume the session. Discord shows the bot
// as online for a while.
const closeResumable = 4000

// closeAfter closes the connection when ctx ends, so that the session can be resumed. It first waits lastTime for a
// session that is starting: nobody could resume it before its READY. The returned function closes the connection
// without a code if ctx has not ended, and otherwise waits until it is closed.
func (c *conn) closeAfter(ctx context.Context) func() {
	left := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(left)
		select {
		case c.starting <- struct{}{}:
			defer c.started()
		case <-time.After(lastTime):
		}
		text := websocket.FormatCloseMessage(closeResumable, "")
		_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(goodbyeTime))
		_ = c.ws.Close()
	})
	return func() {
		if !stop() {
			<-left
		}
		_ = c.ws.Close()
	}
}
