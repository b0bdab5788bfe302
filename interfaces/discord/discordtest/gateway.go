package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Opcodes of the gateway.
const (
	OpDispatch  = 0
	OpHeartbeat = 1
	OpIdentify  = 2
	OpResume    = 6
	OpReconnect = 7
	OpInvalid   = 9
	OpHello     = 10
	OpAck       = 11
)

// Intents.
const (
	intentGuilds          = 1 << 0
	intentMembers         = 1 << 1
	intentPresences       = 1 << 8
	intentMessages        = 1 << 9
	intentReactions       = 1 << 10
	intentDirect          = 1 << 12
	intentDirectReactions = 1 << 13
	intentContent         = 1 << 15

	intentsKnown = 1<<26 - 1
)

// Settings say how the gateway behaves.
type Settings struct {
	Interval    time.Duration // between two heartbeats; a much slower bot loses the connection
	Shards      int           // the recommended number
	Least       int           // the smallest number of shards that is accepted
	Concurrency int           // identifies at once
	Between     time.Duration // the shortest time between two identifies of a bucket
	Remaining   int           // how many more sessions may begin
	Reset       time.Duration // until more are allowed
	Intents     int           // that are allowed; 0: all except those for members and presences
	Deaf        bool          // heartbeats are not acknowledged
	Silent      bool          // the gateway sends nothing
	Closed      bool          // connections end at once
	ResumeURL   string        // where sessions can be resumed; "": where they began
	// Script, if set, handles the n-th connection. If it returns true, the connection ends;
	// otherwise the gateway goes on as usual.
	Script func(n int, c *Conn) bool
}

// Gateway changes how the gateway behaves from now on.
func (s *Server) Gateway(change func(*Settings)) {
	s.mu.Lock()
	defer s.unlock()
	change(&s.gateway.Settings)
	s.gateway.refill = time.Now().Add(s.gateway.Reset)
}

// Identify is one request of the bot to begin a session.
type Identify struct {
	At      time.Time
	Intents int
	Shard   [2]int
}

// gateway is the part of the platform that sends events.
type gateway struct {
	Settings
	sessions   map[string]*session
	conns      map[*Conn]bool
	opened     int
	identifies []Identify
	made       int
	refill     time.Time // of Remaining
	resumes    int
	beats      int
	running    sync.WaitGroup
}

// sessionsADay is how many sessions may begin until more are allowed.
const sessionsADay = 1000

func (g *gateway) init() {
	g.Settings = Settings{
		Interval: 10 * time.Second, Shards: 1, Concurrency: 1, Remaining: sessionsADay, Reset: time.Second,
	}
	g.sessions, g.conns = map[string]*session{}, map[*Conn]bool{}
}

func (s *Server) gatewayURL() string { return "ws" + strings.TrimPrefix(s.URL, "http") + "/gateway" }

// renew allows more sessions if it is time to.
func (g *gateway) renew() {
	now := time.Now()
	if !g.refill.After(now) {
		g.Remaining, g.refill = max(g.Remaining, sessionsADay), now.Add(g.Reset)
	}
}

func (s *Server) getGateway(*Call, []string) (any, *failure) {
	g := &s.gateway
	g.renew()
	reset := max(time.Until(g.refill), time.Millisecond).Milliseconds()
	return map[string]any{"url": s.gatewayURL(), "shards": g.Shards, "session_start_limit": map[string]any{
		"total": sessionsADay, "remaining": g.Remaining, "reset_after": reset, "max_concurrency": g.Concurrency,
	}}, nil
}

// Payload is one message of the gateway.
type Payload struct {
	Op   int    `json:"op"`
	Seq  int    `json:"s,omitempty"`
	Type string `json:"t,omitempty"`
	Data any    `json:"d"`
}

// received is one message from the bot.
type received struct {
	Op   *int            `json:"op"`
	Data json.RawMessage `json:"d"`
}

// Conn is one connection to the gateway. Messages to the bot wait in a queue, so that a slow bot blocks nobody.
type Conn struct {
	ws *websocket.Conn

	mu     sync.Mutex
	queue  []any
	filled chan struct{}
	gone   chan struct{}
	once   sync.Once
}

// closing in the queue closes the connection.
type closing struct {
	code int
	text string
}

func newConn(ws *websocket.Conn) *Conn {
	return &Conn{ws: ws, filled: make(chan struct{}, 1), gone: make(chan struct{})}
}

// Send appends a message to the queue.
func (c *Conn) Send(p any) {
	c.mu.Lock()
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	select {
	case c.filled <- struct{}{}:
	default:
	}
}

// Close closes the connection after sending what is in the queue.
func (c *Conn) Close(code int, text string) { c.Send(closing{code, text}) }

// Pause lets what follows in the queue wait.
func (c *Conn) Pause(d time.Duration) { c.Send(d) }

// Drop cuts the connection at once.
func (c *Conn) Drop() {
	c.once.Do(func() { close(c.gone) })
	_ = c.ws.UnderlyingConn().Close()
}

// Read waits for the bot's next message. It returns false if the connection ended.
func (c *Conn) Read() bool {
	_, _, err := c.ws.ReadMessage()
	return err == nil
}

// Flush waits until everything in the queue is sent, or the connection ended.
func (c *Conn) Flush() {
	done := make(chan struct{})
	c.Send(done)
	select {
	case <-done:
	case <-c.gone:
	}
}

// write sends what is in the queue until the connection ends.
func (c *Conn) write() {
	for {
		c.mu.Lock()
		var next any
		if len(c.queue) > 0 {
			next, c.queue = c.queue[0], c.queue[1:]
		}
		c.mu.Unlock()
		switch p := next.(type) {
		case nil:
			select {
			case <-c.filled:
			case <-c.gone:
				return
			}
		case chan struct{}:
			close(p)
		case time.Duration:
			time.Sleep(p)
		case closing:
			text := websocket.FormatCloseMessage(p.code, p.text)
			_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second))
			c.Drop()
			return
		default:
			if c.ws.WriteJSON(p) != nil {
				c.Drop()
				return
			}
		}
	}
}

// connect serves one gateway connection.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := newConn(ws)
	s.mu.Lock()
	g := &s.gateway
	q := r.URL.Query()
	if q.Get("v") != "9" || q.Get("encoding") != "json" {
		s.breach("a gateway connection with the parameters %s", r.URL.RawQuery)
	}
	g.opened++
	n, set := g.opened, g.Settings
	g.conns[c] = true
	g.running.Add(1)
	s.unlock()
	written := make(chan struct{})
	go func() { defer close(written); c.write() }()
	defer s.left(c, written)
	switch {
	case set.Closed:
	case set.Silent:
		c.Read()
	default:
		c.Send(Payload{Op: OpHello, Data: map[string]any{"heartbeat_interval": set.Interval.Milliseconds()}})
		if set.Script == nil || !set.Script(n, c) {
			s.listen(c)
		}
	}
}

// left removes a connection that has ended.
func (s *Server) left(c *Conn, written <-chan struct{}) {
	c.Drop()
	<-written
	_ = c.ws.Close()
	s.mu.Lock()
	defer s.unlock()
	delete(s.gateway.conns, c)
	for _, sess := range s.gateway.sessions {
		if sess.on == c {
			sess.on, sess.lost = nil, time.Now()
		}
	}
	s.gateway.running.Done()
}

// maxSent is how many messages a bot may send in a minute.
const maxSent = 120

// listen handles the bot's messages until it disconnects or breaks a rule.
func (s *Server) listen(c *Conn) {
	known := false
	var sent []time.Time
	for {
		s.mu.Lock()
		interval := s.gateway.Interval
		s.mu.Unlock()
		_ = c.ws.SetReadDeadline(time.Now().Add(3*interval + 2*time.Second))
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			if websocket.IsCloseError(err, 1000, 1001) {
				s.ended(c)
			}
			return
		}
		now := time.Now()
		sent = append(slices.DeleteFunc(sent, func(t time.Time) bool { return now.Sub(t) > time.Minute }), now)
		var p received
		switch {
		case len(sent) > maxSent:
			c.Close(4008, "Rate limited.")
		case len(raw) > 4096 || json.Unmarshal(raw, &p) != nil || p.Op == nil:
			c.Close(4002, "Error while decoding payload.")
		case *p.Op == OpHeartbeat:
			s.heartbeat(c, p.Data)
		case known:
			c.Close(4005, "Already authenticated.")
		case *p.Op == OpIdentify:
			known = s.identified(c, p.Data)
		case *p.Op == OpResume:
			known = s.resumed(c, p.Data)
		default:
			c.Close(4001, "Unknown opcode.")
		}
	}
}

// ended deletes the session of a bot that closed its connection with a code that ends it.
func (s *Server) ended(c *Conn) {
	s.mu.Lock()
	defer s.unlock()
	for id, sess := range s.gateway.sessions {
		if sess.on == c {
			delete(s.gateway.sessions, id)
		}
	}
}

// heartbeat acknowledges a heartbeat, and checks its sequence number.
func (s *Server) heartbeat(c *Conn, data json.RawMessage) {
	s.mu.Lock()
	defer s.unlock()
	s.gateway.beats++
	for _, sess := range s.gateway.sessions {
		if n, err := strconv.Atoi(string(data)); err == nil && sess.on == c && n > sess.seq {
			s.breach("a heartbeat with %d, and only %d was sent", n, sess.seq)
		}
	}
	if !s.gateway.Deaf {
		c.Send(Payload{Op: OpAck})
	}
}

// each calls f for all connections.
func (s *Server) each(f func(*Conn)) {
	s.mu.Lock()
	var all []*Conn
	for c := range s.gateway.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// Drop cuts all connections; sessions can be resumed.
func (s *Server) Drop() { s.each((*Conn).Drop) }

// Send sends a message to all connections.
func (s *Server) Send(p Payload) { s.each(func(c *Conn) { c.Send(p) }) }

// Close closes all connections.
func (s *Server) Close(code int, text string) { s.each(func(c *Conn) { c.Close(code, text) }) }

// Forget ends all sessions: they get no further events and cannot be resumed.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.unlock()
	s.gateway.sessions = map[string]*session{}
}

// Live counts the sessions with a connection.
func (s *Server) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, sess := range s.gateway.sessions {
		if sess.on != nil {
			n++
		}
	}
	return n
}

// LiveShards counts the shards with a connected session; some may have two sessions.
func (s *Server) LiveShards() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	shards := make(map[[2]int]bool)
	for _, sess := range s.gateway.sessions {
		if sess.on != nil {
			shards[sess.shard] = true
		}
	}
	return len(shards)
}

// Counts returns how many connections were opened, resumes requested, and heartbeats received so far.
func (s *Server) Counts() (opened, resumes, beats int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateway.opened, s.gateway.resumes, s.gateway.beats
}

// Identifies returns the requests that began a session, and those that were refused because of disallowed intents.
func (s *Server) Identifies() []Identify {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gateway.identifies)
}

// SendRaw sends v as JSON to all connections.
func (s *Server) SendRaw(v any) { s.each(func(c *Conn) { c.Send(v) }) }

// Sent returns the events of a type that were sent to sessions.
func (s *Server) Sent(kind string) []Payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Payload
	for _, sess := range s.gateway.sessions {
		for _, p := range sess.log {
			if p.Type == kind {
				list = append(list, p)
			}
		}
	}
	return list
}
