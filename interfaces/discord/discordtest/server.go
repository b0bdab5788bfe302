package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Token is what the bot authenticates with, without the word Bot.
const Token = "OTAwMDAwMDAwMDAwMDAwMDAx.T0ken.of-tests"

// epoch is the Unix time from which the platform's ids count, in milliseconds.
const epoch = 1420070400000

// Server is the platform. Its methods are safe for concurrent use.
type Server struct {
	// URL is for api_url and cdn_url.
	URL string
	// Dial, set by InMemory, replaces the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when something changes
	breaches []string
	last     uint64 // the newest id given
	closing  chan struct{}

	people       map[string]*Person
	guilds       []*Guild
	channels     map[string]*Channel
	files        map[string][]byte // by path
	commands     map[string][]appCommand
	interactions map[string]*Interaction
	nonceAge     time.Duration
	answerTime   time.Duration

	calls   []Call
	forget  bool
	fail    func(Call) Fault
	delay   func(Call) time.Duration
	revoked bool
	limits  limits
	gateway gateway
}

// New starts a server on the loopback interface. It ends with the test, and makes it fail if the bot broke a rule.
func New(tb testing.TB) *Server {
	s := newServer()
	s.answerTime = realAnswerTime
	web := httptest.NewServer(s)
	s.URL = web.URL
	tb.Cleanup(func() {
		s.hangUp()
		web.CloseClientConnections()
		web.Close()
		for _, b := range s.Breaches() {
			tb.Errorf("the bot broke a rule: %s", b)
		}
	})
	return s
}

// InMemory starts a server that can only be reached through Dial, for tests with testing/synctest.
// The returned function ends it.
func InMemory() (*Server, func()) {
	s := newServer()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.URL, s.Dial = "http://discord.test", l.dial
	web := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(l) }()
	return s, func() { s.hangUp(); _ = web.Close(); <-done }
}

func newServer() *Server {
	s := &Server{
		changed: make(chan struct{}), closing: make(chan struct{}), people: map[string]*Person{},
		channels: map[string]*Channel{}, files: map[string][]byte{}, commands: map[string][]appCommand{},
		interactions: map[string]*Interaction{}, nonceAge: nonceAge, answerTime: answerTime,
	}
	s.limits.init()
	s.gateway.init()
	s.begin()
	return s
}

// hangUp ends all connections, and requests that hang.
func (s *Server) hangUp() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	s.Drop()
	s.gateway.running.Wait()
}

// unlock unlocks s.mu after a change, and wakes Await.
func (s *Server) unlock() {
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

// Await waits until ok returns true. It calls ok after every change, and returns false if ctx ends first.
func (s *Server) Await(ctx context.Context, ok func() bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ok()
		}
	}
}

// breach records that the bot broke a rule; s.mu is held.
func (s *Server) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(s.breaches) < 50 && !slices.Contains(s.breaches, text) {
		s.breaches = append(s.breaches, text)
	}
}

// Breaches returns the rules that the bot broke.
func (s *Server) Breaches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.breaches)
}

// id returns a new id; s.mu is held.
func (s *Server) id() string {
	s.last = max(s.last+1, uint64(max(time.Now().UnixMilli()-epoch, 1))<<22)
	return strconv.FormatUint(s.last, 10)
}

// newer reports whether the id a is newer than b.
func newer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// Call is one request to the REST API.
type Call struct {
	Method string
	Path   string          // after /api/v9
	Body   json.RawMessage // its JSON, also if there are files
	Files  []File
	At     time.Time
	Status int // 0: the connection broke
	query  map[string]string
}

// Is reports whether "METHOD /path" of the request begins with prefix.
func (c Call) Is(prefix string) bool { return strings.HasPrefix(c.Method+" "+c.Path, prefix) }

// Field returns a field of the request's JSON; nil if there is none.
func (c Call) Field(name string) any {
	var body map[string]any
	_ = json.Unmarshal(c.Body, &body)
	return body[name]
}

// Calls returns the requests so far whose "METHOD /path" begins with prefix.
func (s *Server) Calls(prefix string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Call
	for _, c := range s.calls {
		if c.Is(prefix) {
			list = append(list, c)
		}
	}
	return list
}

// Forgetful stops recording requests, for long tests.
func (s *Server) Forgetful() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget, s.calls = true, nil
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
