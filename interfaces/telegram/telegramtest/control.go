package telegramtest

import (
	"net/http"
	"testing"
	"time"
)

// patience is how long Await waits, even on the slowest machine.
const patience = 5 * time.Minute

// Delay sets how long the server waits before it answers a request other than getUpdates; nil: not at all.
func (s *Server) Delay(f func(Call) time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = f
}

// delayAnswer delays a request. It returns false if the client disconnected meanwhile.
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

// Lack removes methods, as in an older version of the server.
func (s *Server) Lack(methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = methods
}

// Revoke makes the token invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
	if s.reader != nil {
		close(s.reader)
		s.reader = nil
	}
}

// Exchange replaces the bot by another one, with this token. It has no commands and no updates, and its private chats
// and basic groups are empty.
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

// knowsToken reports whether a path's first element is "bot" and the token.
func (s *Server) knowsToken(element string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token != "" && element == "bot"+s.token
}

// Await blocks until ok returns true. It calls ok again after each request that the server answered. It fails the test
// after 5 minutes.
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

// Forget deletes the messages and requests so far, for tests that measure memory.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
	clear(s.queries)
	for _, c := range s.chats {
		c.messages, c.drafts = nil, nil
	}
}

// Remove deletes a message as a user does. The bot gets no update.
func (s *Server) Remove(chat int64, id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chats[chat].find(id); m != nil {
		m.Deleted = true
	}
}
