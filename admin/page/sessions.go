package page

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
)

const (
	ticketTime  = 10 * time.Minute
	maxTickets  = 8
	sessionIdle = 2 * time.Hour
	sessionTime = 12 * time.Hour
	maxSessions = 32
	maxWrong    = 5 // wrong tickets of all clients within wrongTime
	wrongTime   = 5 * time.Minute
	openTime    = 15 * time.Minute // how long a private place stays open
)

type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

type session struct {
	id    string // shown in the list of sessions; not a secret
	csrf  string
	began time.Time
	agent string
	over  chan struct{} // closed when it is revoked

	mu     *sync.Mutex // of the logins
	seen   time.Time
	words  string                  // searched last
	tag    string                  // searched last
	note   string                  // shown on the next page
	opened map[core.Path]time.Time // until when private places are open
}

func (s *session) opens(place core.Path, now time.Time) (open bool) {
	s.locked(func() { open = now.Before(s.opened[place]) })
	return open
}

// locked calls f while no other visit of the session reads or changes it.
func (s *session) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// logins holds tickets and sessions. It lives as long as the process.
type logins struct {
	clock func() time.Time

	mu       sync.Mutex
	tickets  map[digest]time.Time // until when
	sessions map[digest]*session
	wrong    []time.Time // when tickets were wrong
}

// ticket makes a one-time token. It replaces the oldest one if there are too many. A user who
// can request one has access to the machine, so it also ends a lockout.
func (d *logins) ticket() string {
	t := rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = nil
	for len(d.tickets) >= maxTickets {
		delete(d.tickets, oldest(d.tickets, func(until time.Time) time.Time { return until }))
	}
	d.tickets[digestOf(t)] = d.clock().Add(ticketTime)
	return t
}

func oldest[V any](all map[digest]V, at func(V) time.Time) digest {
	byTime := func(a, b digest) int { return at(all[a]).Compare(at(all[b])) }
	return slices.MinFunc(slices.Collect(maps.Keys(all)), byTime)
}

// login exchanges a ticket for the cookie of a new session; "" if the ticket is wrong, used or
// too old. After too many wrong tickets, it accepts none, and returns how long to wait.
func (d *logins) login(ticket, agent string) (cookie string, wait time.Duration) {
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
	d.expire(now)
	for len(d.sessions) >= maxSessions {
		d.end(oldest(d.sessions, func(s *session) time.Time { return s.seen }))
	}
	cookie = rand.Text()
	d.sessions[digestOf(cookie)] = &session{
		id: rand.Text()[:8], csrf: rand.Text(), began: now, seen: now, agent: agent,
		over: make(chan struct{}), mu: &d.mu, opened: make(map[core.Path]time.Time),
	}
	return cookie, 0
}

// session returns the session of a cookie; nil if there is none.
func (d *logins) session(cookie string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock()
	d.expire(now)
	s := d.sessions[digestOf(cookie)]
	if s != nil {
		s.seen = now
	}
	return s
}

func (d *logins) expireNow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(d.clock())
}

// expire ends expired sessions. d.mu is held.
func (d *logins) expire(now time.Time) {
	for key, s := range d.sessions {
		if now.Sub(s.seen) >= sessionIdle || now.Sub(s.began) >= sessionTime {
			d.end(key)
		}
	}
}

// end ends a session and its streams. d.mu is held.
func (d *logins) end(key digest) {
	close(d.sessions[key].over)
	delete(d.sessions, key)
}

func (d *logins) revoke(id string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		if all || s.id == id {
			d.end(key)
		}
	}
}

// list returns copies of the sessions, the latest first.
func (d *logins) list() (all []session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(d.clock())
	for _, s := range d.sessions {
		all = append(all, *s)
	}
	sorting.Sort(all, func(a, b session) int { return cmp.Or(b.began.Compare(a.began), cmp.Compare(a.id, b.id)) })
	return all
}

type browser struct {
	ID, Began, Seen, Agent string
	Own                    bool
}

// sessions lists the sessions, and the private conversations that were opened.
func (p *Page) sessions(v *visit) error {
	var list []browser
	for _, s := range p.logins.list() {
		list = append(list, browser{s.id, p.formatDate(s.began), p.formatDate(s.seen), s.agent, s.id == v.session.id})
	}
	openings, err := p.openings(v.Context())
	if err != nil {
		return err
	}
	return p.show(v, "sessions", "Sessions", "/sessions", map[string]any{"Sessions": list, "Openings": openings})
}

func (p *Page) revoke(v *visit) error {
	p.logins.revoke(v.PostFormValue("id"), v.PostFormValue("all") != "")
	p.Log.Info("sessions revoked by an admin", "all", v.PostFormValue("all") != "", "session", v.session.id)
	return v.redirect("/sessions")
}
