package discord

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
)

// Ids of the small world that tests live in.
const (
	botID   = "900000000000000001"
	appID   = "900000000000000002"
	guildID = "800000000000000001"
	hallID  = "810000000000000001" // a channel
	roomID  = "810000000000000002" // another one
	topicID = "810000000000000003" // a thread of the hall
	forumID = "810000000000000004"
	catID   = "810000000000000009" // their category
	dmID    = "820000000000000001"
	groupID = "820000000000000002"
	annID   = "700000000000000001"
	bobID   = "700000000000000002" // a moderator by his role
	modRole = "830000000000000001"
	botRole = "830000000000000002"
	token   = "Bot T0ken.of.tests"
)

// server is a small Discord: a gateway and the REST interface, on loopback, as
// strict as the real one. What breaks its rules is an error of the test.
type server struct {
	t   testing.TB
	web *httptest.Server

	mu        sync.Mutex
	last      uint64 // the newest id given
	channels  map[string]*room
	limits    map[string]*allowance
	perCount  int           // requests of one bucket …
	perTime   time.Duration // … in this time; 0: no limits
	global    []time.Time
	perAll    int // requests per second over all; 0: no limit
	fault     func(r *http.Request) int
	got       []asked
	hits      int  // limits that were run into
	forgetful bool // requests are not kept
	stored    map[string]json.RawMessage
	answers   []asked // to interactions

	wires
}

// room is a channel.
type room struct {
	channel
	shut     int // the code of the refusal of everything
	messages []map[string]any
	nonces   map[string]map[string]any
}

type asked struct {
	method, path string
	body         map[string]any
	raw          []byte
}

// allowance is what is left of one limit.
type allowance struct {
	left  int
	reset time.Time
}

// Faults beside plain statuses.
const (
	faultHTML  = -429 // a 429 of what stands before the API
	faultLost  = -1   // the request works, its answer is lost
	faultShare = -2   // a 429 that others caused
	faultReset = -3   // the connection breaks before anything happened
)

func newServer(t testing.TB) *server {
	s := &server{
		t: t, last: uint64(time.Now().UnixMilli()-epoch) << 22, channels: map[string]*room{}, limits: map[string]*allowance{},
		stored: map[string]json.RawMessage{},
	}
	s.wires.init()
	s.web = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.closeAll()
		s.web.Close()
	})
	for _, c := range []channel{
		{ID: catID, Guild: guildID, Type: channelCategory, Name: "Ground floor"},
		{ID: hallID, Guild: guildID, Parent: catID, Name: "hall"},
		{ID: roomID, Guild: guildID, Name: "room"},
		{ID: topicID, Guild: guildID, Parent: hallID, Type: threadPublic, Name: "topic"},
		{ID: forumID, Guild: guildID, Type: 15, Name: "forum"},
		{ID: dmID, Type: channelDirect},
		{ID: groupID, Type: channelGroup},
	} {
		s.open(c)
	}
	return s
}

func (s *server) open(c channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &room{channel: c, nonces: map[string]map[string]any{}}
}

// id gives a new id; s.mu is held.
func (s *server) id() string {
	s.last = max(s.last+1, uint64(time.Now().UnixMilli()-epoch)<<22)
	return strconv.FormatUint(s.last, 10)
}

// fault makes requests fail as f says; nil: none.
func (s *server) faults(f func(*http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// shut makes a channel refuse the bot.
func (s *server) shut(id string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].shut = code
}

// texts are what the bot said in a channel.
func (s *server) texts(channel string) []string {
	var texts []string
	for _, m := range s.bots(channel) {
		texts = append(texts, m["content"].(string))
	}
	return texts
}

// bots are the bot's messages in a channel.
func (s *server) bots(channel string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []map[string]any
	for _, m := range s.channels[channel].messages {
		if m["author"].(map[string]any)["id"] == botID {
			out = append(out, m)
		}
	}
	return out
}

// requests lists the requests whose method and path begin so.
func (s *server) requests(prefix string) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []asked
	for _, a := range s.got {
		if strings.HasPrefix(a.method+" "+a.path, prefix) {
			out = append(out, a)
		}
	}
	return out
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/gw") {
		s.connect(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/attachments/") {
		if r.Header.Get("Authorization") != "" {
			s.t.Error("the token goes to the files' host")
		}
		_, _ = io.WriteString(w, "a file")
		return
	}
	raw, _ := io.ReadAll(r.Body)
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v9")
	if !ok {
		http.NotFound(w, r)
		return
	}
	free := strings.HasPrefix(path, "/interactions/") || strings.HasPrefix(path, "/webhooks/")
	if r.Header.Get("Authorization") != token && !free {
		refuse(w, 401, 0, "401: Unauthorized", nil)
		return
	}
	a := asked{method: r.Method, path: path, raw: raw, body: s.body(r, raw)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.forgetful {
		s.got = append(s.got, a)
	}
	if !free && s.limited(w, r, path) {
		return
	}
	fault := 0
	if s.fault != nil {
		fault = s.fault(r)
	}
	if s.broken(w, fault) {
		return
	}
	if fault == faultReset {
		panic(http.ErrAbortHandler)
	}
	rec := httptest.NewRecorder()
	s.route(rec, r, strings.Split(strings.Trim(path, "/"), "/"), a)
	if fault == faultLost {
		panic(http.ErrAbortHandler)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// broken answers with a fault.
func (s *server) broken(w http.ResponseWriter, fault int) bool {
	switch {
	case fault == faultHTML:
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, "<html>error code: 1015</html>")
	case fault == faultShare:
		w.Header().Set("X-RateLimit-Scope", "shared")
		refuse(w, 429, 0, "The resource is being rate limited.", map[string]any{"retry_after": 0.05, "global": false})
	case fault >= 500:
		w.WriteHeader(fault)
		_, _ = io.WriteString(w, "<html>bad gateway</html>")
	case fault >= 400:
		refuse(w, fault, 0, "fault", nil)
	default:
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status, code int, text string, more map[string]any) {
	body := map[string]any{"code": code, "message": text}
	for k, v := range more {
		body[k] = v
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// body reads a request's JSON, also beside files.
func (s *server) body(r *http.Request, raw []byte) map[string]any {
	text := raw
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		if err := r.ParseMultipartForm(1 << 24); err != nil {
			s.t.Errorf("multipart: %v", err)
			return nil
		}
		text = []byte(r.FormValue("payload_json"))
	}
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	return body
}

// limited keeps the limits: it tells them in headers, and refuses beyond; s.mu is held.
func (s *server) limited(w http.ResponseWriter, r *http.Request, path string) bool {
	now := time.Now()
	if s.perAll > 0 {
		s.global = slices.DeleteFunc(s.global, func(t time.Time) bool { return now.Sub(t) > time.Second })
		if len(s.global) >= s.perAll {
			s.hits++
			w.Header().Set("X-RateLimit-Global", "true")
			refuse(w, 429, 0, "You are being rate limited.", map[string]any{"retry_after": 0.2, "global": true})
			return true
		}
		s.global = append(s.global, now)
	}
	if s.perTime == 0 || !strings.HasPrefix(path, "/channels/") {
		return false
	}
	parts := strings.Split(path, "/")
	key := r.Method + parts[2] + strconv.Itoa(len(parts))
	a := s.limits[key]
	if a == nil || !a.reset.After(now) {
		a = &allowance{left: s.perCount, reset: now.Add(s.perTime)}
		s.limits[key] = a
	}
	a.left--
	h := w.Header()
	h.Set("X-RateLimit-Bucket", r.Method+strconv.Itoa(len(parts)))
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.perCount))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(a.left, 0)))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", a.reset.Sub(now).Seconds()))
	if a.left >= 0 {
		return false
	}
	s.hits++
	after := a.reset.Sub(now).Seconds()
	h.Set("Retry-After", strconv.Itoa(int(after)+1))
	refuse(w, 429, 0, "You are being rate limited.", map[string]any{"retry_after": after, "global": false})
	return true
}

// route finds what is asked for; s.mu is held.
func (s *server) route(w http.ResponseWriter, r *http.Request, p []string, a asked) {
	switch {
	case p[0] == "gateway":
		reply(w, map[string]any{"url": s.address(), "shards": max(s.shards, 1), "session_start_limit": map[string]any{
			"total": 1000, "remaining": 999, "reset_after": 1000, "max_concurrency": max(s.concurrency, 1)}})
	case p[0] == "applications":
		s.stored[strings.Join(p, "/")] = slices.Clone(a.raw)
		reply(w, json.RawMessage(a.raw))
	case p[0] == "interactions":
		s.answers = append(s.answers, a)
		w.WriteHeader(204)
	case p[0] == "webhooks":
		s.webhook(w, p, a)
	case p[0] == "attachments":
		reply(w, map[string]any{"refreshed_urls": []any{map[string]string{"refreshed": s.web.URL + "/attachments/fresh"}}})
	case p[0] == "channels" && len(p) > 1:
		s.channelRoute(w, r, p, a)
	default:
		refuse(w, 404, 0, "404: Not Found", nil)
	}
}

func (s *server) webhook(w http.ResponseWriter, p []string, a asked) {
	s.answers = append(s.answers, a)
	if a.method == "DELETE" {
		w.WriteHeader(204)
		return
	}
	s.mentions(a)
	reply(w, map[string]any{"id": s.id(), "content": a.body["content"]})
}

func (s *server) channelRoute(w http.ResponseWriter, r *http.Request, p []string, a asked) {
	c := s.channels[p[1]]
	switch {
	case c == nil:
		refuse(w, 404, 10003, "Unknown Channel", nil)
	case c.shut != 0:
		refuse(w, 403, c.shut, "Missing Access", nil)
	case len(p) == 2:
		reply(w, map[string]any{"id": c.ID, "guild_id": c.Guild, "parent_id": c.Parent, "type": c.Type, "name": c.Name})
	case p[2] == "typing":
		w.WriteHeader(204)
	case p[2] == "threads":
		s.thread(w, c, a)
	case p[2] == "messages" && len(p) == 3 && a.method == "GET":
		reply(w, c.page(r.URL.Query().Get("after"), r.URL.Query().Get("limit")))
	case p[2] == "messages" && len(p) == 3 && a.method == "POST":
		s.post(w, c, a)
	case p[2] == "messages":
		s.one(w, c, p, a)
	default:
		refuse(w, 404, 0, "404: Not Found", nil)
	}
}

// page lists messages, newest first, as the platform does.
func (c *room) page(after, limit string) []map[string]any {
	n, err := strconv.Atoi(limit)
	if err != nil || n < 1 || n > 100 {
		n = 50
	}
	var list []map[string]any
	for _, m := range c.messages {
		if after == "" || newer(m["id"].(string), after) {
			list = append(list, m)
		}
	}
	if after != "" {
		list = list[:min(n, len(list))]
	} else {
		list = list[max(0, len(list)-n):]
	}
	list = slices.Clone(list)
	slices.Reverse(list)
	if list == nil {
		list = []map[string]any{}
	}
	return list
}

// mentions holds the bot to its promise to ping nobody; s.mu is held.
func (s *server) mentions(a asked) {
	m, ok := a.body["allowed_mentions"].(map[string]any)
	if !ok {
		s.t.Errorf("%s %s: no allowed_mentions", a.method, a.path)
		return
	}
	if parse, ok := m["parse"].([]any); !ok || len(parse) != 0 {
		s.t.Errorf("%s %s: allowed_mentions %v", a.method, a.path, m)
	}
}

// post takes a message of the bot; s.mu is held.
func (s *server) post(w http.ResponseWriter, c *room, a asked) {
	s.mentions(a)
	content, _ := a.body["content"].(string)
	files := strings.Contains(string(a.raw), `name="files[0]"`)
	if n := len(utf16.Encode([]rune(content))); n > 2000 || n == 0 && a.body["embeds"] == nil && a.body["poll"] == nil && !files {
		s.t.Errorf("a message of %d characters", n)
		refuse(w, 400, 50035, "Invalid Form Body", map[string]any{"errors": map[string]any{"content": "BASE_TYPE_BAD_LENGTH"}})
		return
	}
	nonce, _ := a.body["nonce"].(string)
	if len(nonce) > 25 {
		refuse(w, 400, 50035, "Invalid Form Body: nonce", nil)
		return
	}
	if enforce, _ := a.body["enforce_nonce"].(bool); enforce && nonce != "" {
		if old, ok := c.nonces[nonce]; ok {
			reply(w, old)
			return
		}
	}
	m := map[string]any{
		"id": s.id(), "channel_id": c.ID, "content": content, "type": 0, "timestamp": time.Now().Format(time.RFC3339),
		"author":           map[string]any{"id": botID, "username": "aria", "bot": true},
		"embeds":           a.body["embeds"],
		"components":       a.body["components"],
		"allowed_mentions": a.body["allowed_mentions"], "message_reference": a.body["message_reference"], "flags": a.body["flags"], "sent_poll": a.body["poll"],
	}
	c.messages = append(c.messages, m)
	if nonce != "" {
		c.nonces[nonce] = m
	}
	if ref, ok := a.body["message_reference"].(map[string]any); ok && !slices.ContainsFunc(c.messages, func(m map[string]any) bool { return m["id"] == ref["message_id"] }) {
		if ref["fail_if_not_exists"] != false {
			s.t.Error("a reply that fails where its message is gone")
		}
		m["message_reference"] = nil
	}
	s.dispatch(c.Guild, "MESSAGE_CREATE", s.event(c, m))
	reply(w, m)
}

// event is a message as the gateway tells it.
func (s *server) event(c *room, m map[string]any) map[string]any {
	e := map[string]any{}
	for k, v := range m {
		if v != nil && k != "allowed_mentions" && k != "message_reference" && k != "sent_poll" {
			e[k] = v
		}
	}
	if r, ok := m["message_reference"]; ok && r != nil {
		e["message_reference"] = r
	}
	if c.Guild != "" {
		e["guild_id"] = c.Guild
	}
	return e
}

// one serves a single message; s.mu is held.
func (s *server) one(w http.ResponseWriter, c *room, p []string, a asked) {
	i := slices.IndexFunc(c.messages, func(m map[string]any) bool { return m["id"] == p[3] })
	switch {
	case i < 0:
		refuse(w, 404, 10008, "Unknown Message", nil)
	case len(p) > 4 && p[4] == "reactions":
		w.WriteHeader(204)
	case len(p) > 4 && p[4] == "threads":
		s.thread(w, c, a)
	case a.method == "GET":
		reply(w, c.messages[i])
	case a.method == "DELETE":
		c.messages = slices.Delete(c.messages, i, i+1)
		w.WriteHeader(204)
	case c.messages[i]["author"].(map[string]any)["id"] != botID:
		refuse(w, 403, 50005, "Cannot edit a message authored by another user", nil)
	default:
		s.mentions(a)
		changed := maps.Clone(c.messages[i])
		changed["content"] = a.body["content"]
		c.messages[i] = changed
		reply(w, c.messages[i])
	}
}

func (s *server) thread(w http.ResponseWriter, c *room, a asked) {
	if c.Guild == "" || a.body["name"] == "" {
		refuse(w, 400, 50024, "Cannot execute action on this channel type", nil)
		return
	}
	n := channel{ID: s.id(), Guild: c.Guild, Parent: c.ID, Type: threadPublic, Name: fmt.Sprint(a.body["name"])}
	s.channels[n.ID] = &room{channel: n, nonces: map[string]map[string]any{}}
	reply(w, map[string]any{"id": n.ID, "guild_id": n.Guild, "parent_id": n.Parent, "type": n.Type, "name": n.Name})
}
