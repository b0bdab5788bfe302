package discordtest

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"
)

// session is a session of the bot, which another connection can resume.
type session struct {
	id      string
	seq     int
	log     []Payload // all its events
	on      *Conn     // nil: it has no connection
	intents int
	shard   [2]int
	lost    time.Time // when its latest connection ended
}

// sessionAge is how long a session without a connection can be resumed.
const sessionAge = 3 * time.Minute

// over reports whether the platform has forgotten the session.
func (s *session) over() bool { return s.on == nil && time.Since(s.lost) > sessionAge }

func (s *session) serves(guild string) bool {
	if guild == "" {
		return s.shard[0] == 0
	}
	n, _ := strconv.ParseUint(guild, 10, 64)
	return int((n>>22)%uint64(s.shard[1])) == s.shard[0]
}

// send adds an event to the session, and sends it if there is a connection. The server's mu is held.
func (s *session) send(kind string, data any) {
	s.seq++
	p := Payload{Op: OpDispatch, Seq: s.seq, Type: kind, Data: data}
	s.log = append(s.log, p)
	if s.on != nil {
		s.on.Send(p)
	}
}

// identified begins a session. It returns false if the bot is refused.
func (s *Server) identified(c *Conn, data json.RawMessage) bool {
	d := decode[struct {
		Token   string `json:"token"`
		Intents int    `json:"intents"`
		Shard   [2]int `json:"shard"`
	}](data)
	s.mu.Lock()
	defer s.unlock()
	g := &s.gateway
	allowed := g.Intents
	if allowed == 0 {
		allowed = intentsKnown &^ (intentMembers | intentPresences)
	}
	switch {
	case s.revoked || d.Token != "Bot "+Token:
		c.Close(4004, "Authentication failed.")
		return false
	case d.Intents&^intentsKnown != 0:
		c.Close(4013, "Invalid intent(s).")
		return false
	case d.Intents&^allowed != 0:
		g.identifies = append(g.identifies, Identify{time.Now(), d.Intents, d.Shard})
		c.Close(4014, "Disallowed intent(s).")
		return false
	case d.Shard[1] < 1 || d.Shard[0] < 0 || d.Shard[0] >= d.Shard[1]:
		c.Close(4010, "Invalid shard.")
		return false
	case d.Shard[1] < g.Least:
		c.Close(4011, "Sharding required.")
		return false
	case s.hasty(d.Shard[0]):
		s.breach("an identify too early")
		c.Send(Payload{Op: OpInvalid, Data: false})
		return false
	}
	if g.renew(); g.Remaining <= 0 {
		s.breach("a session more than is allowed")
	}
	g.Remaining--
	g.identifies = append(g.identifies, Identify{time.Now(), d.Intents, d.Shard})
	g.made++
	sess := &session{id: "session-" + strconv.Itoa(g.made), on: c, intents: d.Intents, shard: d.Shard}
	g.sessions[sess.id] = sess
	s.ready(sess)
	return true
}

// hasty reports whether another identify in the bucket of a shard is too recent.
func (s *Server) hasty(shard int) bool {
	g := &s.gateway
	for _, i := range g.identifies {
		if i.Shard[0]%g.Concurrency == shard%g.Concurrency && time.Since(i.At) < g.Between*9/10 {
			return true
		}
	}
	return false
}

// ready sends READY and the guilds to a new session.
func (s *Server) ready(sess *session) {
	named := []any{}
	for _, g := range s.guilds {
		if sess.serves(g.ID) {
			named = append(named, map[string]any{"id": g.ID, "unavailable": true})
		}
	}
	sess.send("READY", map[string]any{
		"v": 9, "user": s.people[BotID].json(), "session_id": sess.id, "guilds": named, "resume_gateway_url": cmp.Or(s.gateway.ResumeURL, s.gatewayURL()),
		"shard": sess.shard, "application": map[string]any{"id": AppID, "flags": s.flags()}, "private_channels": []any{},
	})
	for _, g := range s.guilds {
		if sess.serves(g.ID) && !g.Unavailable && sess.intents&intentGuilds != 0 {
			sess.send("GUILD_CREATE", s.guildJSON(g))
		}
	}
}

// resumed resumes a session. It returns false if the bot is refused.
func (s *Server) resumed(c *Conn, data json.RawMessage) bool {
	d := decode[struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}](data)
	s.mu.Lock()
	defer s.unlock()
	s.gateway.resumes++
	sess := s.gateway.sessions[d.Session]
	switch {
	case s.revoked || d.Token != "Bot "+Token:
		c.Close(4004, "Authentication failed.")
		return false
	case sess == nil || sess.over():
		c.Send(Payload{Op: OpInvalid, Data: false})
		return false
	case d.Seq > sess.seq:
		c.Close(4007, "Invalid seq.")
		return false
	}
	sess.on = c
	for _, p := range sess.log[d.Seq:] {
		c.Send(p)
	}
	sess.send("RESUMED", map[string]any{})
	return true
}

// wants returns the intent that an event needs.
func wants(guild, kind string) int {
	direct := guild == ""
	switch {
	case strings.HasPrefix(kind, "MESSAGE_REACTION_"):
		return map[bool]int{true: intentDirectReactions, false: intentReactions}[direct]
	case strings.HasPrefix(kind, "MESSAGE_"):
		return map[bool]int{true: intentDirect, false: intentMessages}[direct]
	case kind == "INTERACTION_CREATE":
		return 0
	}
	return intentGuilds
}

// dispatch sends an event to the sessions with the right shard and intents, if the bot sees the channel. s.mu is held.
func (s *Server) dispatch(guild, channel, kind string, data map[string]any) {
	c := s.channels[channel]
	if c != nil && c.Guild != "" && (s.guild(c.Guild) == nil || !s.may(c, BotID, MayView)) {
		return
	}
	for _, sess := range s.gateway.sessions {
		want := wants(guild, kind)
		if sess.serves(guild) && sess.intents&want == want && !sess.over() {
			sess.send(kind, seen(sess, guild, kind, data))
		}
	}
}

// seen returns an event without what the session has no intent for.
func seen(sess *session, guild, kind string, data map[string]any) map[string]any {
	if !strings.HasPrefix(kind, "MESSAGE_") || data["author"] == nil || sess.intents&intentContent != 0 || guild == "" {
		return data
	}
	return blind(data)
}

// blind returns a message without its content, unless it is the bot's own or mentions the bot.
func blind(data map[string]any) map[string]any {
	author, _ := data["author"].(map[string]any)
	mentions, _ := data["mentions"].([]any)
	for _, m := range append(mentions, author) {
		if u, ok := m.(map[string]any); ok && u["id"] == BotID {
			return data
		}
	}
	out := maps.Clone(data)
	out["content"], out["attachments"], out["embeds"], out["components"] = "", []any{}, []any{}, []any{}
	delete(out, "poll")
	if inner, ok := out["referenced_message"].(map[string]any); ok {
		out["referenced_message"] = blind(inner)
	}
	return out
}
