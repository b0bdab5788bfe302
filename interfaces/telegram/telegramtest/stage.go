package telegramtest

import (
	"net/http"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen, on the slowest machine.
const patience = 5 * time.Minute

// Delay sets how long requests take before they are answered; nil: no time.
// Requests of getUpdates are not delayed: they wait for updates.
func (s *Server) Delay(f func(Call) time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = f
}

// delayAnswer delays a request; false: who asked has gone.
func (s *Server) delayAnswer(r *http.Request, c Call) bool {
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

// Lack makes the server one of an older version, that does not know these
// methods.
func (s *Server) Lack(methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = methods
}

// Revoke takes the token away: from now on the server does not know the bot.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
	if s.reader != nil {
		close(s.reader)
		s.reader = nil
	}
}

// Exchange puts another bot in the place of the one that the server knew: it has no
// commands and no updates, and its private chats and old groups are empty.
func (s *Server) Exchange(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
	s.updates = nil
	clear(s.commands)
	for _, c := range s.chats {
		if c.Type == "private" || c.Type == "group" {
			c.next, c.messages, c.drafts = 0, nil, nil
		}
	}
}

func (s *Server) isRevoked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token == ""
}

// knowsToken reports whether a path's first element holds the bot's token.
func (s *Server) knowsToken(element string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token != "" && element == "bot"+s.token
}

// Await returns when ok does; it looks again after each request that the server
// answered. It fails the test when its patience is over.
func (s *Server) Await(tb testing.TB, ok func() bool) {
	tb.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		noted := s.recorded
		s.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-noted:
		case <-late.C:
			tb.Fatal("it never happened")
		}
	}
}

// Forget drops what was said and asked so far, to measure the memory of others.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
	clear(s.queries)
	for _, c := range s.chats {
		c.messages, c.drafts = nil, nil
	}
}

// Remove deletes a message, as a user with the right to do so does; the bot gets no
// update.
func (s *Server) Remove(chat int64, id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chats[chat].find(id); m != nil {
		m.Deleted = true
	}
}
