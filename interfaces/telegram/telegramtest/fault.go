package telegramtest

import (
	"io"
	"net/http"
	"slices"
	"time"
)

// FaultKind is a way in which a request fails.
type FaultKind int

// Ways to fail. Those that end in After fail after the request was carried out.
const (
	None        FaultKind = iota
	Limited               // 429 with Fault.RetryAfter
	Internal              // 500 with a JSON body
	BadGateway            // 502 with a page of HTML
	Unavailable           // 503 without a body
	Reset                 // the connection breaks
	Hang                  // no response at all
	Cut                   // an incomplete response
	ResetAfter
	HangAfter
	CutAfter
	Refused // 400 with Fault.Text
)

// Fault says how one request fails; the zero value: not at all.
type Fault struct {
	Kind       FaultKind
	RetryAfter int  // seconds
	Global     bool // with Limited: for all chats
	Text       string
	Code       int // with Refused; 0: 400
}

// beforeWork reports whether the request fails before it is carried out.
func (f Fault) beforeWork() bool { return f.Kind != None && f.Kind < ResetAfter || f.Kind == Refused }

func (f Fault) status() int {
	return map[FaultKind]int{Limited: 429, Internal: 500, BadGateway: 502, Unavailable: 503, Refused: 400}[f.Kind]
}

// Fail sets a function that decides how each request fails; nil: none fails.
func (s *Server) Fail(f func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// FailNext fails the next requests of a method, in the order of the faults.
func (s *Server) FailNext(method string, faults ...Fault) {
	s.Fail(func(c Call) Fault {
		if c.Method != method || len(faults) == 0 {
			return Fault{}
		}
		next := faults[0]
		faults = faults[1:]
		return next
	})
}

// chooseFault returns how a request fails: because of a wait, the function of Fail, or a rate limit.
func (s *Server) chooseFault(c *Call) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	polls := c.Method == "getUpdates" // has no rate limit
	for _, who := range []int64{c.Chat, everyone} {
		if left := s.blocked[who].Sub(c.At); left > 0 && !polls {
			s.early++
			return Fault{Kind: Limited, RetryAfter: int(left/time.Second) + 1}
		}
	}
	var f Fault
	if s.fail != nil {
		f = s.fail(*c)
	}
	if f.Kind == None && s.strict && !polls {
		f = s.limits.take(c.Chat, c.At)
	}
	if f.Kind == Limited {
		who := c.Chat
		if f.Global {
			who = everyone
		}
		s.blocked[who] = c.At.Add(time.Duration(f.RetryAfter) * time.Second)
	}
	return f
}

// everyone is the key in Server.blocked for all chats.
const everyone = -1

// failRequest answers a request, or breaks its connection, as the fault says.
func (s *Server) failRequest(w http.ResponseWriter, r *http.Request, f Fault) {
	switch f.Kind {
	case Limited:
		reply(w, failure{429, "Too Many Requests: retry after", map[string]any{"retry_after": f.RetryAfter}})
	case Internal:
		reply(w, failure{500, "Internal Server Error", nil})
	case Refused:
		code := f.Code
		if code == 0 {
			code = 400
		}
		reply(w, failure{code, f.Text, nil})
	case BadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "<html><head><title>502 Bad Gateway</title></head></html>")
	case Unavailable:
		w.WriteHeader(503)
	case Hang, HangAfter:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
	case Cut, CutAfter:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"ok":true,"result":{"mess`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// limiter enforces the published limits: 30 requests a second; in a chat, one a second with short bursts; in a group,
// 20 a minute.
type limiter struct {
	all   []time.Time
	chats map[int64][]time.Time
}

const (
	perSecond = 30
	burst     = 5
	perMinute = 20
)

func (l *limiter) take(chat int64, at time.Time) Fault {
	if l.chats == nil {
		l.chats = map[int64][]time.Time{}
	}
	l.all = within(l.all, at, time.Second)
	if len(l.all) >= perSecond {
		return Fault{Kind: Limited, RetryAfter: 3, Global: true}
	}
	if chat != 0 {
		l.chats[chat] = within(l.chats[chat], at, time.Minute)
		recent := within(slices.Clone(l.chats[chat]), at, burst*time.Second)
		if len(recent) > burst || chat < 0 && len(l.chats[chat]) >= perMinute {
			return Fault{Kind: Limited, RetryAfter: 5}
		}
		l.chats[chat] = append(l.chats[chat], at)
	}
	l.all = append(l.all, at)
	return Fault{}
}

// within removes times that are older than window.
func within(times []time.Time, now time.Time, window time.Duration) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) >= window })
}
