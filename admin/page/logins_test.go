package page

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestLogin(t *testing.T) {
	w := newWorld(t)
	ticket := w.page.Ticket()
	c := w.client()
	r := c.post("/login", "token", " "+ticket+"\n")
	if r.status != http.StatusSeeOther || r.head.Get("Location") != "/" {
		t.Fatalf("login: %d %s", r.status, r.body)
	}
	cookie := r.head.Get("Set-Cookie")
	for _, want := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q has no %q", cookie, want)
		}
	}
	if r := c.get("/"); r.status != http.StatusOK {
		t.Errorf("page after the login: status %d", r.status)
	}
	if to := c.get("/login").head.Get("Location"); to != "/#main" {
		t.Errorf("a login link opened in a session redirects to %q, which keeps the token", to)
	}
	if r := w.client().post("/login", "token", ticket); r.status != http.StatusForbidden || r.head.Get("Set-Cookie") != "" {
		t.Errorf("second use of the ticket: status %d", r.status)
	}
	if strings.Contains(w.log.String(), ticket) {
		t.Error("the ticket is in the log")
	}
	old := w.page.Ticket()
	w.later(10 * time.Minute)
	if r := w.client().post("/login", "token", old); r.status != http.StatusForbidden {
		t.Errorf("ticket after ten minutes: status %d", r.status)
	}
}

// TestTwoBots opens the pages of two bots on one machine in one browser, which sends the cookies of one port to
// the other.
func TestTwoBots(t *testing.T) {
	one, two := newWorld(t), newWorld(t)
	c := one.in()
	other := two.client()
	other.Jar = c.Jar
	if r := other.post("/login", "token", two.page.Ticket()); r.status != http.StatusSeeOther {
		t.Fatalf("login: %d", r.status)
	}
	for i, c := range []*client{c, other} {
		if r := c.get("/"); r.status != http.StatusOK {
			t.Errorf("bot %d: %d", i+1, r.status)
		}
	}
	c.post("/logout", "csrf", c.csrf())
	if c.get("/").status == http.StatusOK || other.get("/").status != http.StatusOK {
		t.Error("a logout from one bot must not affect the other")
	}
}

func TestTicketsAreFew(t *testing.T) {
	w := newWorld(t)
	first := w.page.Ticket()
	for range maxTickets {
		w.later(time.Second)
		w.page.Ticket()
	}
	if r := w.client().post("/login", "token", first); r.status != http.StatusForbidden {
		t.Errorf("oldest of too many tickets: status %d", r.status)
	}
}

func TestLoginIsLimited(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	ticket := w.page.Ticket()
	wrong := func(from string) int { // from a loopback address; this machine has many
		r := c.request(http.MethodPost, "/login", map[string][]string{"token": {"wrong"}})
		r.RemoteAddr = from
		answer := httptest.NewRecorder()
		w.page.Handler().ServeHTTP(answer, r)
		return answer.Code
	}
	for i := range maxWrong {
		if status := wrong("127.0.0." + strconv.Itoa(1+i) + ":1000"); status != http.StatusForbidden {
			t.Fatalf("a wrong token: %d", status)
		}
	}
	if r := c.post("/login", "token", ticket); r.status != http.StatusTooManyRequests || r.head.Get("Retry-After") != "301" {
		t.Errorf("after too many wrong tokens: status %d, Retry-After %q", r.status, r.head.Get("Retry-After"))
	}
	w.later(wrongTime)
	if r := c.post("/login", "token", ticket); r.status != http.StatusSeeOther {
		t.Errorf("after the wait: status %d", r.status)
	}
	refused := make(chan int)
	for range 4 * maxWrong { // at the same time
		go func() { refused <- wrong("[::1]:1000") }()
	}
	tried := 0
	for range 4 * maxWrong {
		if <-refused == http.StatusForbidden {
			tried++
		}
	}
	if tried != maxWrong {
		t.Errorf("%d of many concurrent tokens were tried", tried)
	}
	if r := c.post("/login", "token", w.page.Ticket()); r.status != http.StatusSeeOther {
		t.Errorf("with a new login link: status %d", r.status)
	}
}

func TestSecureWithTLS(t *testing.T) {
	w := newWorld(t)
	w.server = httptest.NewTLSServer(w.page.Handler())
	defer w.server.Close()
	c := w.client()
	c.Transport = w.server.Client().Transport
	r := c.post("/login", "token", w.page.Ticket())
	if !strings.Contains(r.head.Get("Set-Cookie"), "; Secure") {
		t.Errorf("status %d, cookie %q", r.status, r.head.Get("Set-Cookie"))
	}
}

// paths are all paths of the page.
var paths = map[string][]string{
	http.MethodGet: {
		"/", "/live", "/turn?place=telegram/-100&seq=1", "/talk", "/talk/place?place=telegram/-100", "/memories", "/memories/found", "/memories/one?id=1&place=telegram/-100",
		"/personas", "/personas/one?id=aria.toml", "/charts", "/catalogue", "/knowledge", "/reminders", "/settings", "/settings?place=telegram/-100", "/sessions", "/log", "/log/live",
	},
	http.MethodPost: {
		"/talk/open", "/talk/close", "/memories", "/memories/save", "/memories/drop", "/memories/merge", "/personas/preview", "/personas/save", "/personas/try", "/sessions/revoke", "/logout", "/do",
	},
}

func TestNobodyIsLetIn(t *testing.T) {
	w := newWorld(t)
	w.live()
	stranger := w.client()
	for method, list := range paths {
		for _, path := range list {
			r := stranger.send(stranger.request(method, path, nil))
			redirected := path == "/" && r.status == http.StatusSeeOther && r.head.Get("Location") == "/login"
			if !redirected && r.status != http.StatusUnauthorized {
				t.Errorf("%s %s: %d", method, path, r.status)
			}
			if strings.Contains(r.body, "tea") || strings.Contains(r.body, "telegram") {
				t.Errorf("%s %s reveals: %s", method, path, r.body)
			}
		}
	}
}

func TestFormsAreOurs(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf := c.csrf()
	for _, path := range append(paths[http.MethodPost], "/login") {
		for name, change := range map[string]func(r *http.Request){
			"another origin":   func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"another port":     func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
			"another scheme":   func(r *http.Request) { r.Header.Set("Origin", strings.Replace(w.server.URL, "http", "https", 1)) },
			"no origin":        func(r *http.Request) { r.Header.Del("Origin") },
			"an opaque origin": func(r *http.Request) { r.Header.Set("Origin", "null") },
			"another site":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		} {
			r := c.request(http.MethodPost, path, map[string][]string{"csrf": {csrf}, "all": {"yes"}})
			change(r)
			if got := c.send(r); got.status != http.StatusForbidden {
				t.Errorf("%s from %s: status %d", path, name, got.status)
			}
		}
	}
	for _, path := range paths[http.MethodPost] {
		if r := c.post(path, "csrf", w.in().csrf(), "all", "yes"); r.status != http.StatusForbidden {
			t.Errorf("%s with another session's token: %d", path, r.status)
		}
		if r := c.post(path, "all", "yes"); r.status != http.StatusForbidden {
			t.Errorf("%s without a token: %d", path, r.status)
		}
	}
	if r := c.get("/"); r.status != http.StatusOK {
		t.Errorf("page after that: status %d", r.status)
	}
	r := c.request(http.MethodGet, "/", nil)
	r.Host = "evil.example"
	if got := c.send(r); got.status != http.StatusMisdirectedRequest {
		t.Errorf("foreign host name: status %d", got.status)
	}
}

func TestSessionsEnd(t *testing.T) {
	w := newWorld(t)
	one, two := w.in(), w.in()
	own, other := one.csrf(), two.csrf()
	list := w.page.logins.list()
	if len(list) != 2 {
		t.Fatalf("got %d sessions", len(list))
	}
	for _, s := range list {
		if s.csrf == other {
			one.post("/sessions/revoke", "csrf", own, "id", s.id)
		}
	}
	if r := two.get("/talk"); r.status != http.StatusUnauthorized {
		t.Errorf("revoked: %d", r.status)
	}
	if r := one.get("/talk"); r.status != http.StatusOK {
		t.Errorf("not revoked: %d", r.status)
	}
	one.post("/logout", "csrf", own)
	if r := one.get("/talk"); r.status != http.StatusUnauthorized {
		t.Errorf("logged out: %d", r.status)
	}
	idle := w.in()
	w.later(sessionIdle)
	if r := idle.get("/talk"); r.status != http.StatusUnauthorized {
		t.Errorf("idle: %d", r.status)
	}
	busy := w.in()
	for range 11 {
		w.later(sessionIdle - time.Hour + time.Second)
		busy.get("/talk")
	}
	if r := busy.get("/talk"); r.status != http.StatusOK {
		t.Errorf("active session after eleven hours: status %d", r.status)
	}
	w.later(time.Hour)
	if r := busy.get("/talk"); r.status != http.StatusUnauthorized {
		t.Errorf("active session after twelve hours: status %d", r.status)
	}
	for range maxSessions + 3 {
		w.in()
	}
	if n := len(w.page.logins.list()); n != maxSessions {
		t.Errorf("got %d sessions", n)
	}
}
