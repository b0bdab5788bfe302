package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const maxRequest = 40 << 20

// failure is an error response.
type failure struct {
	status, code int
	text         string
	more         map[string]any
}

// malformed returns the error response for an invalid field.
func malformed(field, reason string) *failure {
	return &failure{400, 50035, "Invalid Form Body", map[string]any{"errors": map[string]any{
		field: map[string]any{"_errors": []any{map[string]any{"code": reason, "message": reason}}}}}}
}

func refuse(w http.ResponseWriter, f failure) {
	body := map[string]any{"code": f.code, "message": f.text}
	for k, v := range f.more {
		body[k] = v
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(body)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path, api := strings.CutPrefix(r.URL.Path, "/api/v9"); {
	case r.URL.Path == "/gateway" || r.URL.Path == "/gateway/":
		s.connect(w, r)
	case strings.HasPrefix(r.URL.Path, "/attachments/"):
		s.serveFile(w, r)
	case api:
		s.serve(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// serve handles one request to the REST API, or fails it on demand.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, path string) {
	c, err := readCall(r, path)
	if err != nil {
		refuse(w, failure{status: 400, code: 50109, text: "The request body contains invalid JSON."})
		return
	}
	to, ids := find(c.Method, path)
	if !to.free && !s.admits(r.Header.Get("Authorization")) {
		s.note(c, http.StatusUnauthorized)
		refuse(w, failure{status: 401, text: "401: Unauthorized"})
		return
	}
	if !s.linger(r, c) {
		panic(http.ErrAbortHandler)
	}
	head := http.Header{}
	answer, fault := s.answer(&c, to, ids, head)
	if fault.Kind != None {
		s.note(c, fault.status())
		s.breakDown(w, r, fault)
		return
	}
	s.note(c, answer.Code)
	for k, v := range head {
		w.Header()[k] = v
	}
	if answer.Body.Len() > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// answer carries out a request, unless it fails first.
func (s *Server) answer(c *Call, to route, ids []string, head http.Header) (*httptest.ResponseRecorder, Fault) {
	s.mu.Lock()
	defer s.unlock()
	fault := Fault{}
	if !to.free {
		fault = s.limits.take(c, to.path, head)
	}
	if fault.Kind == None && s.fail != nil {
		fault = s.fail(*c).filled()
		s.limits.obey(c, to.path, fault)
	}
	w := httptest.NewRecorder()
	if fault.Kind != None && !fault.late() {
		return w, fault
	}
	result, refused := any(nil), &failure{status: 404, text: "404: Not Found"}
	if to.do != nil {
		result, refused = to.do(s, c, ids)
	}
	switch {
	case refused != nil:
		refuse(w, *refused)
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_ = json.NewEncoder(w).Encode(result)
	}
	return w, fault
}

// note records a request.
func (s *Server) note(c Call, status int) {
	s.mu.Lock()
	defer s.unlock()
	c.Status = status
	if !s.forget {
		s.calls = append(s.calls, c)
	}
}

// readCall reads a request with JSON, with files, or without a body.
func readCall(r *http.Request, path string) (Call, error) {
	c := Call{Method: r.Method, Path: path, At: time.Now(), query: map[string]string{}}
	for k, v := range r.URL.Query() {
		c.query[k] = v[0]
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return c, err
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.HasPrefix(kind, "multipart/") {
		if err := c.form(multipart.NewReader(bytes.NewReader(raw), params["boundary"])); err != nil {
			return c, err
		}
	} else if len(raw) > 0 {
		c.Body = raw
	}
	if len(c.Body) > 0 && !json.Valid(c.Body) {
		return c, fmt.Errorf("no JSON")
	}
	return c, nil
}

// form reads a multipart body with JSON and files.
func (c *Call) form(parts *multipart.Reader) error {
	for {
		p, err := parts.NextPart()
		if err == io.EOF {
			return c.describe()
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return err
		}
		if p.FormName() == "payload_json" {
			c.Body = data
			continue
		}
		id, ok := strings.CutPrefix(p.FormName(), "files[")
		if !ok {
			return fmt.Errorf("a part %q", p.FormName())
		}
		c.Files = append(c.Files, File{Name: p.FileName(), MIME: p.Header.Get("Content-Type"), Data: data, id: strings.TrimSuffix(id, "]")})
	}
}

// describe adds the descriptions in the JSON to the files.
func (c *Call) describe() error {
	body := decode[struct {
		Attachments []struct {
			ID          json.RawMessage `json:"id"`
			Filename    string          `json:"filename"`
			Description string          `json:"description"`
			Seconds     float64         `json:"duration_secs"`
			Waveform    []byte          `json:"waveform"`
		} `json:"attachments"`
	}](c.Body)
	for _, a := range body.Attachments {
		at := -1
		for i := range c.Files {
			if c.Files[i].id == strings.Trim(string(a.ID), `"`) {
				at = i
			}
		}
		if at < 0 {
			return fmt.Errorf("attachment %s is described and not there", a.ID)
		}
		c.Files[at].Alt, c.Files[at].Seconds, c.Files[at].Waveform = a.Description, a.Seconds, a.Waveform
		if a.Filename != "" {
			c.Files[at].Name = a.Filename
		}
	}
	return nil
}

// route is one kind of request. ids are the values of the {} in its path.
type route struct {
	method, path string
	free         bool // has a token in its path, and no rate limit
	do           func(s *Server, c *Call, ids []string) (any, *failure)
}

func routes() []route {
	return []route{
		{"GET", "/gateway", false, (*Server).getGateway},
		{"GET", "/gateway/bot", false, (*Server).getGateway},
		{"GET", "/users/@me", false, (*Server).getMe},
		{"GET", "/applications/@me", false, (*Server).getApplication},
		{"POST", "/users/@me/channels", false, (*Server).postDirect},
		{"GET", "/guilds/{}/members/{}", false, (*Server).getMember},
		{"GET", "/channels/{}", false, (*Server).getChannel},
		{"POST", "/channels/{}/typing", false, (*Server).postTyping},
		{"GET", "/channels/{}/messages", false, (*Server).getMessages},
		{"POST", "/channels/{}/messages", false, (*Server).postMessage},
		{"GET", "/channels/{}/messages/{}", false, (*Server).getMessage},
		{"PATCH", "/channels/{}/messages/{}", false, (*Server).patchMessage},
		{"DELETE", "/channels/{}/messages/{}", false, (*Server).deleteMessage},
		{"PUT", "/channels/{}/messages/{}/reactions/{}/@me", false, (*Server).putReaction},
		{"DELETE", "/channels/{}/messages/{}/reactions/{}/@me", false, (*Server).deleteReaction},
		{"POST", "/channels/{}/threads", false, (*Server).postThread},
		{"POST", "/channels/{}/messages/{}/threads", false, (*Server).postThread},
		{"POST", "/attachments/refresh-urls", false, (*Server).refreshFiles},
		{"PUT", "/applications/{}/commands", false, (*Server).putCommands},
		{"PUT", "/applications/{}/guilds/{}/commands", false, (*Server).putCommands},
		{"POST", "/interactions/{}/{}/callback", true, (*Server).postCallback},
		{"GET", "/webhooks/{}/{}/messages/@original", true, (*Server).getOriginal},
		{"PATCH", "/webhooks/{}/{}/messages/@original", true, (*Server).patchOriginal},
		{"DELETE", "/webhooks/{}/{}/messages/@original", true, (*Server).deleteOriginal},
		{"POST", "/webhooks/{}/{}", true, (*Server).postFollowUp},
	}
}

// find returns the route of a request and its ids; one without do if there is none.
func find(method, path string) (route, []string) {
	given := strings.Split(path, "/")
	for _, to := range routes() {
		want := strings.Split(to.path, "/")
		if to.method != method || len(want) != len(given) {
			continue
		}
		var ids []string
		fits := true
		for i, w := range want {
			if w == "{}" {
				ids = append(ids, given[i])
			} else if w != given[i] {
				fits = false
			}
		}
		if fits {
			return to, ids
		}
	}
	return route{path: path}, nil
}

// major returns the id in a path that has its own rate limits.
func major(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 2 && (parts[1] == "channels" || parts[1] == "guilds" || parts[1] == "webhooks") {
		return parts[2]
	}
	return ""
}

func hash(text string) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return strconv.FormatUint(h.Sum64(), 16)
}

func (s *Server) getApplication(*Call, []string) (any, *failure) {
	return map[string]any{"id": AppID, "name": "Aria", "flags": s.flags(), "bot_public": true}, nil
}

// flags returns the application's flags; s.mu is held.
func (s *Server) flags() int {
	flags := 1 << 23
	i := s.gateway.Intents
	if i == 0 || i&intentContent != 0 {
		flags |= 1 << 19 // the content is switched on in the portal
	}
	return flags
}

func (s *Server) getMe(*Call, []string) (any, *failure) { return s.people[BotID].json(), nil }

// postDirect opens the channel of direct messages with a user.
func (s *Server) postDirect(c *Call, _ []string) (any, *failure) {
	body := decode[struct {
		Recipient string `json:"recipient_id"`
	}](c.Body)
	p := s.people[body.Recipient]
	if p == nil {
		return nil, &failure{status: 400, code: 50033, text: "Invalid Recipient(s)"}
	}
	if p.direct == "" {
		p.direct = s.open(Channel{ID: s.id(), Type: Direct, People: []string{p.ID}}).ID
	}
	return s.channels[p.direct].json(), nil
}

// DirectOf returns the channel of direct messages with a user; "" if there is none yet.
func (s *Server) DirectOf(person string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person(person).direct
}

func (s *Server) getMember(_ *Call, ids []string) (any, *failure) {
	g := s.guild(ids[0])
	if g == nil {
		return nil, &failure{status: 404, code: 10004, text: "Unknown Guild"}
	}
	m := g.Members[ids[1]]
	if m == nil {
		return nil, &failure{status: 404, code: 10007, text: "Unknown Member"}
	}
	out := m.json()
	out["user"] = s.person(ids[1]).json()
	return out, nil
}

var signature = regexp.MustCompile(`^ex=([0-9a-f]+)&is=[0-9a-f]+&hm=([0-9a-f]+)&?$`)

// serveFile serves a file if the signature has not expired.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.unlock()
	if r.Header.Get("Authorization") != "" {
		s.breach("the token is sent to the file server")
	}
	data, known := s.files[r.URL.Path]
	m := signature.FindStringSubmatch(r.URL.RawQuery)
	if !known || m == nil {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	until, _ := strconv.ParseInt(m[1], 16, 64)
	if m[2] != mac(r.URL.Path, until) || time.Now().Unix() > until {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	_, _ = w.Write(data)
}

// refreshFiles signs addresses again.
func (s *Server) refreshFiles(c *Call, _ []string) (any, *failure) {
	body := decode[struct {
		URLs []string `json:"attachment_urls"`
	}](c.Body)
	fresh := []any{}
	for _, address := range body.URLs {
		u, err := url.Parse(address)
		if err != nil || !strings.HasPrefix(address, s.URL+"/attachments/") {
			return nil, malformed("attachment_urls", "ATTACHMENT_NOT_FOUND")
		}
		fresh = append(fresh, map[string]any{"original": address, "refreshed": s.signed(u.Path, time.Now().Add(24*time.Hour))})
	}
	return map[string]any{"refreshed_urls": fresh}, nil
}
