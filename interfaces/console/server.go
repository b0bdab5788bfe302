package console

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"synthbot/core"
	"synthbot/core/watch"
)

// Server is the interface for terminals that attach to a running daemon. Safe for concurrent use.
type Server struct {
	console *Console      // only has the name and describes the action
	ready   chan struct{} // closed by Listen
	once    sync.Once

	mu       sync.Mutex
	inbox    core.Inbox      // nil: Listen does not run
	life     context.Context // of Listen
	sessions map[core.Path]*Console
	attached sync.WaitGroup
}

var (
	_ core.Interface       = (*Server)(nil)
	_ core.TypingIndicator = (*Server)(nil)
	_ core.Reachable       = (*Server)(nil)
	_ watch.Observer       = (*Server)(nil)
)

// NewServer returns a server for the interface with this name.
func NewServer(name string) *Server {
	c := New(Options{Name: name})
	return &Server{console: c, ready: make(chan struct{}), sessions: make(map[core.Path]*Console)}
}

// Name implements core.Interface.
func (s *Server) Name() string { return s.console.Name() }

// Actions implements core.Interface. The action sends a message to the terminal of the turn.
func (s *Server) Actions() []core.Action { return s.console.actions(s.session) }

// Reaches implements core.Reachable. Messages of a session wait until a terminal attaches.
func (s *Server) Reaches(place core.Path) bool {
	_, err := s.session(place)
	return err == nil
}

// session returns the terminal that is attached at a place.
func (s *Server) session(place core.Path) (*Console, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.sessions[place]
	if !ok {
		return nil, fmt.Errorf("no terminal is attached at %s: %w", place, core.ErrAway)
	}
	return c, nil
}

// Listen lets terminals attach until ctx ends, and waits until all are detached.
func (s *Server) Listen(ctx context.Context, in core.Inbox) error {
	s.mu.Lock()
	s.inbox, s.life = in, ctx
	s.mu.Unlock()
	s.once.Do(func() { close(s.ready) })
	<-ctx.Done()
	s.mu.Lock()
	s.inbox = nil
	s.mu.Unlock()
	s.attached.Wait()
	return nil
}

// Attach runs a conversation until the user leaves, or ctx or that of Listen ends. It waits until Listen is called. It
// fails if another terminal uses the session, or if Listen has ended. It ignores Options.Name.
func (s *Server) Attach(ctx context.Context, o Options) error {
	o.Name = s.Name()
	c := New(o)
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	in, life, err := s.attach(c)
	if err != nil {
		return err
	}
	defer s.detach(c)
	if o.Attached != nil {
		o.Attached(c.place)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(life, stop)()
	return c.Listen(ctx, in)
}

func (s *Server) attach(c *Console) (in core.Inbox, life context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.inbox == nil:
		return nil, nil, errors.New("the bot is stopping")
	case s.sessions[c.place] != nil:
		return nil, nil, fmt.Errorf("%s: another terminal uses this session", c.place)
	}
	s.sessions[c.place] = c
	s.attached.Add(1)
	return s.inbox, s.life, nil
}

func (s *Server) detach(c *Console) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c.place)
	s.attached.Done()
}

// Observe implements watch.Observer.
func (s *Server) Observe(end watch.TurnEnd) {
	if c, err := s.session(end.Turn.Path); err == nil {
		c.Observe(end)
	}
}

// ShowTyping implements core.TypingIndicator.
func (s *Server) ShowTyping(ctx context.Context, place core.Path) {
	c, err := s.session(place)
	if err != nil {
		<-ctx.Done()
		return
	}
	c.ShowTyping(ctx, place)
}
