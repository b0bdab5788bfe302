package discordtest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// FaultKind is a way in which a request fails.
type FaultKind int

// Ways to fail. Those that end in After fail when the work is done already.
const (
	None       FaultKind = iota
	Limited              // 429: the route's bucket is empty, for Fault.After
	Shared               // 429: others emptied it
	Global               // 429: for everything
	Cloudflare           // 429 with a page of HTML, by a proxy in front of the API
	Refused              // Fault.Status and Fault.Code, with a JSON body
	Broken               // Fault.Status (default 502) with a page of HTML
	Reset                // the connection breaks
	Hang                 // no answer at all
	ResetAfter
	HangAfter
)

// Fault is what becomes of one request.
type Fault struct {
	Kind   FaultKind
	After  time.Duration // with limits: how long; default 50ms
	Status int
	Code   int
}

// late reports whether the work is done before the request fails.
func (f Fault) late() bool { return f.Kind >= ResetAfter }

// Fail sets who decides about the failing of requests; nil for nobody.
func (s *Server) Fail(f func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// FailNext fails the next requests that begin with "METHOD /path", in that
// order, and then none.
func (s *Server) FailNext(prefix string, faults ...Fault) {
	s.Fail(func(c Call) Fault {
		if !c.Is(prefix) || len(faults) == 0 {
			return Fault{}
		}
		next := faults[0]
		faults = faults[1:]
		return next
	})
}

// Delay sets how long requests take before anything is done; nil: no time.
func (s *Server) Delay(f func(Call) time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = f
}

// linger delays a request; false: who asked has gone.
func (s *Server) linger(r *http.Request, c Call) bool {
	s.mu.Lock()
	f := s.delay
	s.mu.Unlock()
	if f == nil {
		return true
	}
	t := time.NewTimer(f(c))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// Revoke makes the token invalid: requests and new connections are refused from now on,
// and open connections are closed.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.revoked = true
	s.unlock()
	s.Close(4004, "Authentication failed.")
}

// admits reports whether a request's token is the bot's.
func (s *Server) admits(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.revoked && token == "Bot "+Token
}

// limits are the rate limits, and what is left of them.
type limits struct {
	count int
	per   time.Duration
	all   int // per second
	left  map[string]*allowance
	sent  []time.Time
	hits  int
	bans  map[string]time.Time // until when the bot must wait, by bucket; "" for everything
	early int
}

type allowance struct {
	left  int
	reset time.Time
}

func (l *limits) init() { l.left, l.bans = map[string]*allowance{}, map[string]time.Time{} }

// Limit allows so many requests of one bucket in that time, and so many of all
// in a second; 0 for any number.
func (s *Server) Limit(count int, per time.Duration, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.count, s.limits.per, s.limits.all = count, per, all
}

// Strict holds the bot to limits like the platform's: five messages in five
// seconds in a channel, and 50 requests in a second.
func (s *Server) Strict() { s.Limit(5, 5*time.Second, 50) }

// Hits counts the rate limits that the bot exceeded, and early the requests that it made
// while it had to wait.
func (s *Server) Hits() (hits, early int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.hits, s.limits.early
}

// bucket names what a request's limit hangs on.
func (c *Call) bucket(route string) string {
	return c.Method + " " + route + " " + major(c.Path)
}

// take lets a request pass or says how it fails, and tells in headers what is
// left; s.mu is held.
func (l *limits) take(c *Call, route string, h http.Header) Fault {
	bucket := c.bucket(route)
	for _, name := range []string{bucket, ""} {
		left := l.bans[name].Sub(c.At)
		if left > 0 {
			l.early++
			return Fault{Kind: map[bool]FaultKind{true: Global, false: Limited}[name == ""], After: left}
		}
	}
	if l.all > 0 {
		l.sent = slices.DeleteFunc(l.sent, func(t time.Time) bool { return c.At.Sub(t) > time.Second })
		if len(l.sent) >= l.all {
			l.hits++
			return Fault{Kind: Global, After: 200 * time.Millisecond}
		}
		l.sent = append(l.sent, c.At)
	}
	if l.count == 0 {
		return Fault{}
	}
	a := l.left[bucket]
	if a == nil || !a.reset.After(c.At) {
		a = &allowance{left: l.count, reset: c.At.Add(l.per)}
		l.left[bucket] = a
	}
	a.left--
	rest := a.reset.Sub(c.At)
	h.Set("X-RateLimit-Bucket", hash(c.Method+route))
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.count))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(a.left, 0)))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(a.reset.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(rest.Seconds(), 'f', 3, 64))
	if a.left >= 0 {
		return Fault{}
	}
	l.hits++
	return Fault{Kind: Limited, After: rest}
}

// obey notes until when a refused bot must wait.
func (l *limits) obey(c *Call, route string, f Fault) {
	until := c.At.Add(f.After)
	switch f.Kind {
	case Limited, Shared:
		l.bans[c.bucket(route)] = until
	case Global, Cloudflare:
		l.bans[""] = until
	}
}

// breakDown answers with a fault; it does not return where the connection breaks.
func (s *Server) breakDown(w http.ResponseWriter, r *http.Request, f Fault) {
	h := w.Header()
	switch f.Kind {
	case Limited, Shared, Global:
		scope := map[FaultKind]string{Limited: "user", Shared: "shared", Global: "global"}[f.Kind]
		h.Set("X-RateLimit-Scope", scope)
		if f.Kind == Global {
			h.Set("X-RateLimit-Global", "true")
		}
		h.Set("Retry-After", strconv.Itoa(int(f.After/time.Second)+1))
		refuse(w, failure{status: 429, text: "You are being rate limited.", more: map[string]any{"retry_after": f.After.Seconds(), "global": f.Kind == Global}})
	case Cloudflare:
		h.Set("Content-Type", "text/html")
		h.Set("Retry-After", strconv.Itoa(int((f.After+time.Second-1)/time.Second)))
		w.WriteHeader(429)
		_, _ = io.WriteString(w, "<html><body>error code: 1015</body></html>")
	case Refused:
		refuse(w, failure{status: f.Status, code: f.Code, text: "Refused on demand"})
	case Broken:
		h.Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html><body>bad gateway</body></html>")
	case Hang, HangAfter:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// filled has the defaults.
func (f Fault) filled() Fault {
	if f.After == 0 {
		f.After = 50 * time.Millisecond
	}
	if f.Kind == Cloudflare {
		f.After = max(f.After, time.Second)
	}
	if f.Kind == Broken && f.Status == 0 {
		f.Status = 502
	}
	if f.Kind == Refused && f.Status == 0 {
		f.Status = 403
	}
	return f
}

// status is what the caller sees.
func (f Fault) status() int {
	switch f.Kind {
	case Limited, Shared, Global, Cloudflare:
		return 429
	case Refused, Broken:
		return f.Status
	}
	return 0
}
