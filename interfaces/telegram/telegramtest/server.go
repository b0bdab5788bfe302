package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Token is the token of the server's bot.
const Token = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

// The bot itself.
const (
	BotID   = 110201543
	BotName = "aria_bot"
)

// Call is one request.
type Call struct {
	Method string
	Params map[string]string
	Files  map[string][]byte // uploads, by field
	At     time.Time         // when it arrived
	Done   time.Time         // when it was answered
	Status int
	Chat   int64
}

// Server is a Bot API server. Its methods are safe for concurrent use.
type Server struct {
	URL string
	// Dial, set by InMemory, replaces the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	conns    atomic.Int32
	mu       sync.Mutex
	people   map[int64]*Person
	chats    map[int64]*Chat
	fail     func(Call) Fault
	delay    func(Call) time.Duration
	methods  map[string]method
	missing  []string
	stalled  string        // a file
	recorded chan struct{} // closed and replaced when a request is answered
	strict   bool
	calls    []Call
	updates  []update
	lastID   int
	arrived  chan struct{} // closed and replaced when an update comes
	reader   chan struct{} // closed to end the getUpdates that is open
	blocked  map[int64]time.Time
	early    int
	limits   limiter
	queries  map[string]bool // callback queries: answered or not
	nextID   int
	hook     webhook
	files    map[string][]byte
	commands map[string]string
	closing  chan struct{}
	token    string // "": none is known
}

type update struct {
	id  int
	raw json.RawMessage
}

// New starts a server on the loopback interface, which ends with the test.
func New(tb testing.TB) *Server {
	s := newServer()
	web := httptest.NewUnstartedServer(s)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.conns.Add(-1)
		}
	}
	web.Start()
	s.URL = web.URL
	tb.Cleanup(func() { s.endRequests(); web.CloseClientConnections(); web.Close() })
	return s
}

// InMemory starts a server that only Dial reaches, for tests in a synctest bubble. The returned function ends it.
func InMemory() (*Server, func()) {
	s := newServer()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.URL, s.Dial = "http://telegram.test", l.dial
	web := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(l) }()
	return s, func() { s.endRequests(); _ = web.Close(); <-done }
}

func newServer() *Server {
	return &Server{
		people: map[int64]*Person{}, chats: map[int64]*Chat{}, arrived: make(chan struct{}),
		blocked: map[int64]time.Time{}, queries: map[string]bool{}, files: map[string][]byte{},
		commands: map[string]string{}, closing: make(chan struct{}),
		token: Token, lastID: 870000000, recorded: make(chan struct{}), methods: methods(),
	}
}

// endRequests ends all waiting requests.
func (s *Server) endRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
}

// Strict makes the server enforce the published rate limits.
func (s *Server) Strict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = true
}

// Calls returns the requests of a method so far, or with "" all but getUpdates, in the order in which they were answered.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Call
	for _, c := range s.calls {
		if method == c.Method || method == "" && c.Method != "getUpdates" {
			list = append(list, c)
		}
	}
	return list
}

// Count returns the number of requests so far, including getUpdates.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Connected returns the number of open connections of a server that New started.
func (s *Server) Connected() int { return int(s.conns.Load()) }

// Early returns how many requests arrived while the bot should have waited.
func (s *Server) Early() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early
}

// ServeHTTP implements the Bot API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if len(parts) > 2 && parts[0] == "file" && s.knowsToken(parts[1]) {
		s.serveFile(w, r, strings.Join(parts[2:], "/"))
		return
	}
	if len(parts) != 2 || !s.knowsToken(parts[0]) {
		reply(w, failure{401, "Unauthorized", nil})
		return
	}
	c, err := readCall(r, parts[1])
	if err != nil {
		reply(w, failure{400, "Bad Request: " + err.Error(), nil})
		return
	}
	if c.Method == "getUpdates" {
		s.getUpdates(w, r, c)
		return
	}
	s.serve(w, r, c)
}

// serve answers one request, or fails it on demand.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, c Call) {
	fault := s.chooseFault(&c)
	if !s.delayAnswer(r, c) {
		return
	}
	if fault.beforeWork() {
		s.record(c, fault.status())
		s.failRequest(w, r, fault)
		return
	}
	result, fail := s.perform(c)
	if fault.Kind != None {
		s.record(c, 0)
		s.failRequest(w, r, fault)
		return
	}
	if fail != nil {
		s.record(c, fail.code)
		reply(w, *fail)
		return
	}
	s.record(c, 200)
	reply(w, result)
}

// record adds a request to Calls.
func (s *Server) record(c Call, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Status, c.Done = status, time.Now()
	s.calls = append(s.calls, c)
	close(s.recorded)
	s.recorded = make(chan struct{})
}

func (s *Server) perform(c Call) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do, known := s.methods[strings.ToLower(c.Method)]
	if !known || slices.Contains(s.missing, c.Method) {
		return nil, &failure{404, "Not Found: method not found", nil}
	}
	result, err := do(s, c)
	if err != nil {
		f, ok := err.(*failure)
		if !ok {
			f = &failure{500, err.Error(), nil}
		}
		if f.code == 400 {
			f = &failure{400, "Bad Request: " + f.text, f.params}
		}
		return nil, f
	}
	return result, nil
}

// failure is an answer with ok false.
type failure struct {
	code   int
	text   string
	params map[string]any
}

func (f *failure) Error() string { return f.text }

// refuse returns the error of a bad request.
func refuse(format string, args ...any) error {
	return &failure{400, fmt.Sprintf(format, args...), nil}
}

// reply sends a result or a failure with a Content-Length, as Telegram does.
func reply(w http.ResponseWriter, v any) {
	body, code := map[string]any{"ok": true, "result": v}, http.StatusOK
	if f, ok := v.(failure); ok {
		body, code = map[string]any{"ok": false, "error_code": f.code, "description": f.text}, f.code
		if f.params != nil {
			body["parameters"] = f.params
		}
	}
	data, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

const maxRequest = 60 << 20

// readCall reads a request in any encoding that Telegram accepts.
func readCall(r *http.Request, method string) (Call, error) {
	c := Call{Method: method, Params: map[string]string{}, Files: map[string][]byte{}, At: time.Now()}
	r.Body = http.MaxBytesReader(nil, r.Body, maxRequest)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return c, refuse("can't parse JSON object")
		}
		for k, v := range body {
			c.Params[k] = asText(v)
		}
	} else if err := readForm(r, &c); err != nil {
		return c, err
	}
	c.Chat = atoi(c.Params["chat_id"])
	return c, nil
}

func readForm(r *http.Request, c *Call) error {
	multi := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	if multi {
		if err := r.ParseMultipartForm(maxRequest); err != nil {
			return err
		}
		for field, heads := range r.MultipartForm.File {
			f, err := heads[0].Open()
			if err != nil {
				return err
			}
			data, err := io.ReadAll(f)
			if err != nil {
				return err
			}
			c.Files[field] = data
			c.Params[field+".name"] = heads[0].Filename
		}
	} else if err := r.ParseForm(); err != nil {
		return err
	}
	for k, v := range r.Form {
		c.Params[k] = v[0]
	}
	return nil
}

func asText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
