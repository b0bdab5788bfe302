package console

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"synthbot/core"
	"synthbot/core/watch"
)

// Hall is an interface whose places are terminals that come and go: those of
// people who talk to a daemon that runs already. Safe for concurrent use.
type Hall struct {
	name  string
	any   *Console      // describes the action; nobody sits there
	ready chan struct{} // closed by Listen
	once  sync.Once

	mu    sync.Mutex
	inbox core.Inbox // nil: Listen does not run
	life  context.Context
	seats map[core.Path]*Console
	guest sync.WaitGroup
}

var (
	_ core.Interface       = (*Hall)(nil)
	_ core.TypingIndicator = (*Hall)(nil)
	_ core.Reachable       = (*Hall)(nil)
	_ watch.Observer       = (*Hall)(nil)
)

// Errors of Sit.
var (
	ErrTaken  = errors.New("somebody is talking in this session already")
	ErrClosed = errors.New("the bot is going away")
)

// NewHall makes a hall of that name.
func NewHall(name string) *Hall {
	return &Hall{name: name, any: New(Options{Name: name}), ready: make(chan struct{}), seats: make(map[core.Path]*Console)}
}

// Name is the interface's name.
func (h *Hall) Name() string { return h.name }

// Actions lists the one action: to say something at the terminal that a turn
// takes place at.
func (h *Hall) Actions() []core.Action {
	actions := h.any.Actions()
	for i := range actions {
		actions[i].Check = func(ctx context.Context, call core.Call) error {
			c, err := h.seat(call.Path)
			if err != nil {
				return nil // Do will tell
			}
			_, err = c.message(call)
			return err
		}
		actions[i].Do = func(ctx context.Context, call core.Call) (core.Result, error) {
			c, err := h.seat(call.Path)
			if err != nil {
				return core.Result{}, err
			}
			return c.send(ctx, call)
		}
	}
	return actions
}

// Reaches implements core.Reachable: what waits at a terminal waits for somebody to
// sit there again.
func (h *Hall) Reaches(place core.Path) bool {
	_, err := h.seat(place)
	return err == nil
}

// seat is who sits at a place.
func (h *Hall) seat(place core.Path) (*Console, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.seats[place]
	if !ok {
		return nil, fmt.Errorf("nobody sits at %s: %w", place, core.ErrAway)
	}
	return c, nil
}

// Listen opens the hall until ctx ends, and waits until everybody has left.
func (h *Hall) Listen(ctx context.Context, in core.Inbox) error {
	h.mu.Lock()
	h.inbox, h.life = in, ctx
	h.mu.Unlock()
	h.once.Do(func() { close(h.ready) })
	<-ctx.Done()
	h.mu.Lock()
	h.inbox = nil
	h.mu.Unlock()
	h.guest.Wait()
	return nil
}

// Sit lets somebody talk until he leaves, ctx ends, or the hall closes. The
// options' Name is the hall's. It waits for Listen, and fails with ErrTaken where
// somebody sits there, and with ErrClosed after Listen.
func (h *Hall) Sit(ctx context.Context, o Options) error {
	o.Name = h.name
	c := New(o)
	select {
	case <-h.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	in, life := h.inbox, h.life
	switch {
	case in == nil:
		h.mu.Unlock()
		return ErrClosed
	case h.seats[c.place] != nil:
		h.mu.Unlock()
		return fmt.Errorf("%s: %w", c.place, ErrTaken)
	}
	h.seats[c.place] = c
	h.guest.Add(1)
	h.mu.Unlock()
	defer h.leave(c)
	if o.Seated != nil {
		o.Seated(c.place)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(life, stop)()
	return c.Listen(ctx, in)
}

func (h *Hall) leave(c *Console) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seats, c.place)
	h.guest.Done()
}

// Observe implements watch.Observer.
func (h *Hall) Observe(end watch.TurnEnd) {
	if c, err := h.seat(end.Turn.Path); err == nil {
		c.Observe(end)
	}
}

// ShowTyping implements core.TypingIndicator.
func (h *Hall) ShowTyping(ctx context.Context, place core.Path) {
	c, err := h.seat(place)
	if err != nil {
		<-ctx.Done()
		return
	}
	c.ShowTyping(ctx, place)
}
