package discord

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

// wires is the server's other half.
type wires struct {
	interval    time.Duration
	shards      int
	concurrency int
	between     time.Duration // the least time between two identifies
	allowed     int           // intents that the bot may ask for; 0: all

	sessions map[string]*session
	conns    map[*peer]bool
	opened   int
	identify map[int][]time.Time
	resumes  int
	intents  []int
	guilds   []map[string]any
	deaf     bool                      // heartbeats are not acknowledged
	silent   bool                      // nothing is said at all
	script   func(n int, l *peer) bool // takes a connection over; true: done
	beats    int
	running  sync.WaitGroup
}

// session is what a resume goes on with.
type session struct {
	id      string
	seq     int
	log     []envelopeOut
	on      *peer
	intents int
	shard   [2]int
}

type envelopeOut struct {
	Op   int    `json:"op"`
	Seq  int    `json:"s,omitempty"`
	Type string `json:"t,omitempty"`
	Data any    `json:"d"`
}

// peer is one connection.
type peer struct {
	mu   sync.Mutex
	conn *websocket.Conn
}

func (l *peer) send(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.WriteJSON(v)
}

func (l *peer) shut(code int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_ = l.conn.Close()
}

func (g *wires) init() {
	g.interval = 200 * time.Millisecond
	g.sessions, g.conns, g.identify = map[string]*session{}, map[*peer]bool{}, map[int][]time.Time{}
	g.guilds = []map[string]any{guildFixture(guildID)}
}

// guildFixture is the guild that tests live in.
func guildFixture(id string) map[string]any {
	return map[string]any{
		"id": id, "name": "House", "owner_id": "700000000000000009", "joined_at": "2026-01-01T00:00:00Z",
		"roles": []any{
			map[string]any{"id": id, "name": "@everyone", "permissions": "1024"},
			map[string]any{"id": modRole, "name": "Keepers", "permissions": "8192"},
			map[string]any{"id": botRole, "name": "Aria", "permissions": "0", "tags": map[string]any{"bot_id": botID}},
		},
		"channels": []any{
			map[string]any{"id": catID, "type": 4, "name": "Ground floor"},
			map[string]any{"id": hallID, "type": 0, "name": "hall", "parent_id": catID},
			map[string]any{"id": roomID, "type": 0, "name": "room"},
			map[string]any{"id": forumID, "type": 15, "name": "forum"},
		},
		"threads": []any{},
		"members": []any{map[string]any{"user": map[string]any{"id": botID}, "roles": []any{botRole}}},
	}
}

func (s *server) address() string { return "ws" + strings.TrimPrefix(s.web.URL, "http") + "/gw" }

// connect serves one gateway connection.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &peer{conn: conn}
	s.mu.Lock()
	s.opened++
	n, script, silent := s.opened, s.script, s.silent
	s.conns[l] = true
	s.running.Add(1)
	s.mu.Unlock()
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.conns, l)
		for _, sess := range s.sessions {
			if sess.on == l {
				sess.on = nil
			}
		}
		s.mu.Unlock()
		s.running.Done()
	}()
	if r.URL.Query().Get("v") != "9" || r.URL.Query().Get("encoding") != "json" {
		s.t.Errorf("gateway asked for as %s", r.URL.RawQuery)
	}
	if silent {
		_, _, _ = conn.ReadMessage()
		return
	}
	l.send(envelopeOut{Op: opHello, Data: map[string]any{"heartbeat_interval": s.interval.Milliseconds()}})
	if script != nil && script(n, l) {
		return
	}
	s.listen(l)
}

// listen reads what the bot says, until it leaves or breaks a rule.
func (s *server) listen(l *peer) {
	known := false
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(20*s.interval + 2*time.Second))
		_, raw, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		var e envelope
		if json.Unmarshal(raw, &e) != nil || e.Op == nil {
			l.shut(4002, "Error while decoding payload.")
			return
		}
		switch *e.Op {
		case opHeartbeat:
			s.heartbeat(l, e.Data)
		case opIdentify:
			if known {
				l.shut(4005, "Already authenticated.")
				return
			}
			if known = s.identified(l, e.Data); !known {
				return
			}
		case opResume:
			if known {
				l.shut(4005, "Already authenticated.")
				return
			}
			known = s.resumed(l, e.Data)
		default:
			l.shut(4001, "Unknown opcode.")
			return
		}
	}
}

// heartbeat acknowledges one, and holds its number against what was sent.
func (s *server) heartbeat(l *peer, data json.RawMessage) {
	s.mu.Lock()
	s.beats++
	deaf, most := s.deaf, 0
	for _, sess := range s.sessions {
		if sess.on == l {
			most = sess.seq
		}
	}
	s.mu.Unlock()
	if n, err := strconv.Atoi(string(data)); err == nil && most > 0 && n > most {
		s.t.Errorf("heartbeat with %d, and only %d was sent", n, most)
	}
	if !deaf {
		l.send(envelopeOut{Op: opAck})
	}
}

// identified begins a session.
func (s *server) identified(l *peer, data json.RawMessage) bool {
	var d struct {
		Token   string `json:"token"`
		Intents int    `json:"intents"`
		Shard   [2]int `json:"shard"`
	}
	_ = json.Unmarshal(data, &d)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.intents = append(s.intents, d.Intents)
	switch {
	case d.Token != token:
		l.shut(4004, "Authentication failed.")
		return false
	case s.allowed != 0 && d.Intents&^s.allowed != 0:
		l.shut(4014, "Disallowed intent(s).")
		return false
	case d.Shard[1] < 1 || d.Shard[0] >= d.Shard[1]:
		l.shut(4010, "Invalid shard.")
		return false
	}
	bucket := d.Shard[0] % max(s.concurrency, 1)
	if all := s.identify[bucket]; len(all) > 0 && now.Sub(all[len(all)-1]) < s.between*9/10 {
		s.t.Errorf("identify %v after the last one", now.Sub(all[len(all)-1]))
		l.send(envelopeOut{Op: opInvalid, Data: false})
		return false
	}
	s.identify[bucket] = append(s.identify[bucket], now)
	sess := &session{id: "session-" + strconv.Itoa(len(s.sessions)+1), on: l, intents: d.Intents, shard: d.Shard}
	s.sessions[sess.id] = sess
	var named []any
	for _, g := range s.guilds {
		if sess.serves(g["id"].(string)) {
			named = append(named, map[string]any{"id": g["id"], "unavailable": true})
		}
	}
	sess.send("READY", map[string]any{
		"v": 9, "user": map[string]any{"id": botID, "username": "aria", "bot": true}, "session_id": sess.id, "guilds": named,
		"resume_gateway_url": s.address(), "application": map[string]any{"id": appID, "flags": 1 << 19},
	})
	for _, g := range s.guilds {
		if sess.serves(g["id"].(string)) {
			sess.send("GUILD_CREATE", s.upToDate(g))
		}
	}
	return true
}

// upToDate fills in the newest messages of a guild's channels.
func (s *server) upToDate(g map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range g {
		out[k] = v
	}
	var list []any
	for _, c := range g["channels"].([]any) {
		c := c.(map[string]any)
		copied := map[string]any{}
		for k, v := range c {
			copied[k] = v
		}
		if r := s.channels[c["id"].(string)]; r != nil && len(r.messages) > 0 {
			copied["last_message_id"] = r.messages[len(r.messages)-1]["id"]
		}
		list = append(list, copied)
	}
	out["channels"] = list
	return out
}

func (s *session) serves(guild string) bool {
	n, _ := strconv.ParseUint(guild, 10, 64)
	return int((n>>22)%uint64(s.shard[1])) == s.shard[0]
}

// send notes an event and sends it where somebody listens; the server's mu is held.
func (s *session) send(kind string, data any) {
	s.seq++
	e := envelopeOut{Op: opDispatch, Seq: s.seq, Type: kind, Data: data}
	s.log = append(s.log, e)
	if s.on != nil {
		s.on.send(e)
	}
}

// resumed goes on with a session.
func (s *server) resumed(l *peer, data json.RawMessage) bool {
	var d struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	_ = json.Unmarshal(data, &d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumes++
	sess := s.sessions[d.Session]
	switch {
	case d.Token != token:
		l.shut(4004, "Authentication failed.")
		return false
	case sess == nil:
		l.send(envelopeOut{Op: opInvalid, Data: false})
		return false
	case d.Seq > sess.seq:
		l.shut(4007, "Invalid seq.")
		return false
	}
	sess.on = l
	for _, e := range sess.log[d.Seq:] {
		l.send(e)
	}
	sess.send("RESUMED", map[string]any{})
	return true
}

// dispatch tells the sessions that an event concerns; s.mu is held.
func (s *server) dispatch(guild, kind string, data map[string]any) {
	for _, sess := range s.sessions {
		if guild != "" && !sess.serves(guild) || guild == "" && sess.shard[0] != 0 {
			continue
		}
		sess.send(kind, s.seen(sess, guild, kind, data))
	}
}

// seen takes out of a message what the session has no intent for.
func (s *server) seen(sess *session, guild, kind string, data map[string]any) map[string]any {
	text, _ := data["content"].(string)
	if !strings.HasPrefix(kind, "MESSAGE_") || sess.intents&intentMessageContent != 0 || guild == "" || strings.Contains(text, "<@"+botID+">") {
		return data
	}
	out := map[string]any{}
	for k, v := range data {
		out[k] = v
	}
	out["content"], out["attachments"], out["embeds"] = "", []any{}, []any{}
	return out
}

// event tells an event of any kind.
func (s *server) tell(guild, kind string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(guild, kind, data)
}

// each does something to all connections.
func (s *server) each(f func(*peer)) {
	s.mu.Lock()
	var all []*peer
	for l := range s.conns {
		all = append(all, l)
	}
	s.mu.Unlock()
	for _, l := range all {
		f(l)
	}
}

// drop cuts all connections; sessions can be resumed.
func (s *server) drop() { s.each(func(l *peer) { _ = l.conn.UnderlyingConn().Close() }) }

// forget ends all sessions; what happens from now on is not told to them.
func (s *server) forget() {
	s.mu.Lock()
	s.sessions = map[string]*session{}
	s.mu.Unlock()
}

func (s *server) closeAll() {
	s.drop()
	s.running.Wait()
}

// live counts the sessions that somebody listens to.
func (s *server) live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, sess := range s.sessions {
		if sess.on != nil && slices.ContainsFunc(sess.log, func(e envelopeOut) bool { return e.Type == "READY" }) {
			n++
		}
	}
	return n
}
