package page

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// Bounds of getting in and staying in.
const (
	ticketTime  = 10 * time.Minute
	maxTickets  = 8
	sessionIdle = 2 * time.Hour
	sessionTime = 12 * time.Hour
	maxSessions = 32
	maxWrong    = 5 // wrong tickets within wrongTime; who comes is on this machine, by whatever address
	wrongTime   = 5 * time.Minute
	openTime    = 15 * time.Minute
)

// digest is all that is kept of a secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// secret is 32 bytes that nobody guesses.
func secret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// session is a browser that was let in.
type session struct {
	id    string // for the list of sessions; opens nothing
	csrf  string
	began time.Time
	agent string
	over  chan struct{} // closed when it was revoked

	mu     sync.Mutex
	seen   time.Time
	words  string                  // that were looked for last
	opened map[core.Path]time.Time // private places, and until when they are open
}

// opens reports whether a private place is open in this session.
func (s *session) opens(place core.Path, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.opened[place])
}

func (s *session) setOpen(place core.Path, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[place] = until
}

func (s *session) setWords(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = words
}

func (s *session) sought() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}

// doors know who may come in, for as long as the process lives.
type doors struct {
	clock func() time.Time

	mu       sync.Mutex
	tickets  map[digest]time.Time // until when
	sessions map[digest]*session
	wrong    []time.Time // when tickets were wrong
}

// ticket makes a one-time token; the oldest gives way where there are many. Who
// can ask for one is at the terminal: nobody stays locked out.
func (d *doors) ticket() string {
	t := secret()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = nil
	if d.tickets == nil {
		d.tickets = make(map[digest]time.Time)
	}
	for len(d.tickets) >= maxTickets {
		delete(d.tickets, oldest(d.tickets))
	}
	d.tickets[digestOf(t)] = d.clock().Add(ticketTime)
	return t
}

func oldest(tickets map[digest]time.Time) digest {
	return slices.MinFunc(slices.Collect(maps.Keys(tickets)), func(a, b digest) int { return tickets[a].Compare(tickets[b]) })
}

// enter takes a ticket and returns the cookie of a new session; none where the
// ticket is none, or used, or too old. After too many of those no ticket is
// looked at, for as long as wait says.
func (d *doors) enter(ticket, agent string) (cookie string, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := digestOf(ticket), d.clock()
	d.wrong = slices.DeleteFunc(d.wrong, func(t time.Time) bool { return now.Sub(t) >= wrongTime })
	if len(d.wrong) >= maxWrong {
		return "", wrongTime - now.Sub(d.wrong[0])
	}
	until, known := d.tickets[key]
	delete(d.tickets, key)
	if !known || !now.Before(until) {
		d.wrong = append(d.wrong, now)
		return "", 0
	}
	if d.sessions == nil {
		d.sessions = make(map[digest]*session)
	}
	d.expire(now)
	for len(d.sessions) >= maxSessions {
		d.end(d.idlest())
	}
	cookie = secret()
	d.sessions[digestOf(cookie)] = &session{
		id: secret()[:8], csrf: secret(), began: now, seen: now, agent: agent,
		over: make(chan struct{}), opened: make(map[core.Path]time.Time),
	}
	return cookie, 0
}

// session finds who comes with a cookie; nil for nobody.
func (d *doors) session(cookie string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock()
	d.expire(now)
	s := d.sessions[digestOf(cookie)]
	if s != nil {
		s.mu.Lock()
		s.seen = now
		s.mu.Unlock()
	}
	return s
}

// tidy ends what is over.
func (d *doors) tidy() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(d.clock())
}

// expire ends what is over. d.mu is held.
func (d *doors) expire(now time.Time) {
	for key, s := range d.sessions {
		if s.stale(now) {
			d.end(key)
		}
	}
}

func (s *session) stale(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.seen) >= sessionIdle || now.Sub(s.began) >= sessionTime
}

// end ends a session, with the streams that it has open. d.mu is held.
func (d *doors) end(key digest) {
	if s := d.sessions[key]; s != nil {
		close(s.over)
		delete(d.sessions, key)
	}
}

func (d *doors) idlest() digest {
	return slices.MinFunc(slices.Collect(maps.Keys(d.sessions)), func(a, b digest) int {
		return d.sessions[a].lastSeen().Compare(d.sessions[b].lastSeen())
	})
}

func (s *session) lastSeen() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// revoke ends the session of that id, or all sessions where all is true.
func (d *doors) revoke(id string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		if all || s.id == id {
			d.end(key)
		}
	}
}

// list returns the sessions, the latest first.
func (d *doors) list() []*session {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(d.clock())
	return slices.SortedFunc(maps.Values(d.sessions), func(a, b *session) int {
		return cmp.Or(b.began.Compare(a.began), cmp.Compare(a.id, b.id))
	})
}

// same compares secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
