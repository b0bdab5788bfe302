package admin

import "sync"

// subscribers are channels that receive what is published. Safe for concurrent use.
type subscribers[T any] struct {
	mu  sync.Mutex
	all map[chan T]bool
}

// subscribe returns a channel with room for n values. done ends the subscription.
func (s *subscribers[T]) subscribe(n int) (_ <-chan T, done func()) {
	c := make(chan T, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[chan T]bool)
	}
	s.all[c] = true
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, c)
	}
}

// publish sends a value to each channel that has room. It does not block.
func (s *subscribers[T]) publish(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		select {
		case c <- value:
		default:
		}
	}
}
