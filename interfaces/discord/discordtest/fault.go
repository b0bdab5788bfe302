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

// Ways to fail. With those that end in After, the request is carried out first.
const (
	None       FaultKind = iota
	Limited              // 429: the route's rate limit is exceeded, for Fault.After
	Shared               // 429: the same, by other bots
	Global               // 429: the limit of all requests is exceeded
	Cloudflare           // 429 with an HTML page, by a proxy in front of the API
	Refused              // Fault.Status and Fault.Code, with a JSON body
	Broken               // Fault.Status (default 502) with an HTML page
	Reset                // the connection breaks
	Hang                 // the request gets no response
	ResetAfter
	HangAfter
)

// Fault says how one request fails.
type Fault struct {
	Kind   FaultKind
	After  time.Duration // with rate limits: how long; default 50ms
	Status int
	Code   int
}

// late reports whether the request is carried out before it fails.
func (f Fault) late() bool { return f.Kind >= ResetAfter }

// Fail sets the function that decides whether a request fails; nil: none fails.
func (s *Server) Fail(f func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// FailNext makes the next requests that begin with "METHOD /path" fail, one with each fault.
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

// Delay sets a function that returns how long a request is delayed; nil: none is delayed.
func (s *Server) Delay(f func(Call) time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = f
}

// linger delays a request. It returns false if the client or the server gives up first.
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

// limits are the rate limits, and how much of them is used.
type limits struct {
	count int // requests of a bucket in each period
	per   time.Duration
	all   int                   // requests in each second
	left  map[string]*allowance // by bucket
	sent  []time.Time
	hits  int                  // how often a limit was exceeded
	bans  map[string]time.Time // until when the bot must wait, by bucket; "" for all requests
	early int                  // requests that were made before
}

type allowance struct {
	left  int
	reset time.Time
}

func (l *limits) init() { l.left, l.bans = map[string]*allowance{}, map[string]time.Time{} }

// Limit allows count requests of each bucket in the time per, and all requests of all buckets in a
// second; 0 means any number.
func (s *Server) Limit(count int, per time.Duration, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.count, s.limits.per, s.limits.all = count, per, all
}

// Strict sets limits like the platform's: five messages in five seconds in a channel, and 50 requests in a second.
func (s *Server) Strict() { s.Limit(5, 5*time.Second, 50) }

// Hits returns how often the bot exceeded a rate limit, and how many requests it made while it had to wait.
func (s *Server) Hits() (hits, early int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.hits, s.limits.early
}

// bucket returns the name of the bucket that limits a request.
func (c *Call) bucket(route string) string {
	return c.Method + " " + route + " " + major(c.Path)
}

// take counts a request, and returns how it fails if a limit is exceeded. It sets the headers of rate
// limits. s.mu is held.
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

// obey records until when a refused bot must wait.
func (l *limits) obey(c *Call, route string, f Fault) {
	until := c.At.Add(f.After)
	switch f.Kind {
	case Limited, Shared:
		l.bans[c.bucket(route)] = until
	case Global, Cloudflare:
		l.bans[""] = until
	}
}

// breakDown responds with a fault. It panics if the connection is to break.
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

// filled returns the fault with its defaults.
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

// status returns the HTTP status that the client sees; 0: none.
func (f Fault) status() int {
	switch f.Kind {
	case Limited, Shared, Global, Cloudflare:
		return 429
	case Refused, Broken:
		return f.Status
	}
	return 0
}
