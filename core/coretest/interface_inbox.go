package coretest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
)

// Inbox is a core.Inbox that stores events in memory. The zero value is ready to use.
type Inbox struct {
	// Fail, if set, is called before events are stored. Receive returns its error.
	Fail func(events []core.Event) error

	mu     sync.Mutex
	known  map[string]bool
	events []core.Event
	came   chan struct{} // closed when there are more events; nil: nobody waits
}

// Receive implements core.Inbox.
func (b *Inbox) Receive(ctx context.Context, events ...core.Event) error {
	if b.Fail != nil {
		if err := b.Fail(events); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[string]bool{}
	}
	for _, e := range events {
		if key := string(e.Kind) + e.Message.Path.String() + " " + e.Message.ID; !b.known[key] || e.Kind == core.KindEdit {
			b.known[key] = true
			b.events = append(b.events, e)
		}
	}
	if b.came != nil {
		close(b.came)
		b.came = nil
	}
	return nil
}

// Events returns the events so far, each once.
func (b *Inbox) Events() []core.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]core.Event(nil), b.events...)
}

// Wait waits until there are n events, and returns all.
func (b *Inbox) Wait(t testing.TB, n int) []core.Event {
	t.Helper()
	late := time.After(Patience)
	for {
		b.mu.Lock()
		if len(b.events) >= n {
			defer b.mu.Unlock()
			return append([]core.Event(nil), b.events...)
		}
		if b.came == nil {
			b.came = make(chan struct{})
		}
		came, have := b.came, len(b.events)
		b.mu.Unlock()
		select {
		case <-came:
		case <-late:
			t.Fatalf("%d events came in, want %d", have, n)
		}
	}
}

// Parts is a core.Deliveries of one step, in memory: what was sent is not sent again, and what
// may have been sent is sent again only so often. The zero value is ready to use.
type Parts struct {
	mu    sync.Mutex
	done  map[int]core.Sent
	keys  map[int]string
	sends map[int]int // that may have worked
	since map[int]time.Time
}

// Send implements core.Deliveries.
func (p *Parts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	k, sends, sent := p.begin(n)
	switch {
	case sent:
		return nil
	case sends >= what.MaxSends():
		return core.Errorf(core.Unsure, "nobody knows whether it was sent")
	}
	id, err := do(ctx, k)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		what.ID = id
		p.done[n] = what
	case errors.Is(err, core.ErrUnknownOutcome) && errors.Is(err, core.ErrAway): // an outage counts once
		p.sends[n] = max(sends, 1)
	case errors.Is(err, core.ErrUnknownOutcome), ctx.Err() != nil:
		p.sends[n] = sends + 1
	}
	return err
}

// begin returns the key of a part, and how many sends of it may have worked.
func (p *Parts) begin(n int) (k string, sends int, sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done, p.keys, p.sends, p.since = map[int]core.Sent{}, map[int]string{}, map[int]int{}, map[int]time.Time{}
	}
	if p.keys[n] == "" {
		p.keys[n] = key()
	}
	if p.sends[n] == 0 {
		p.since[n] = time.Now()
	}
	_, sent = p.done[n]
	return p.keys[n], p.sends[n], sent
}

// Since implements core.Deliveries.
func (p *Parts) Since(n int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, sent := p.done[n]; sent || p.sends[n] == 0 {
		return time.Time{}
	}
	return p.since[n]
}

// Again calls send as turns do: again, after a pause, while it returns core.ErrAway or core.ErrUnknownOutcome.
func Again(ctx context.Context, send func() error) (err error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err = send()
		if !errors.Is(err, core.ErrUnknownOutcome) && !errors.Is(err, core.ErrAway) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Sent returns what was sent, in order.
func (p *Parts) Sent() []core.Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []core.Sent
	for n := 1; n <= len(p.done); n++ {
		list = append(list, p.done[n])
	}
	return list
}

// Forget deletes the record that the n-th part was sent, as if the process had crashed before it was written.
func (p *Parts) Forget(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.done, n)
	p.sends[n] = 1
}

// Doubt makes the outcome of the n-th part unknown for good.
func (p *Parts) Doubt(n int) {
	_, _, _ = p.begin(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends[n] = core.Sent{Repeatable: true}.MaxSends()
}

var errInbox = errors.New("the disk is full")

// listening is a driver whose Listen is running.
type listening struct {
	core.Interface
	Inbox *Inbox
	stop  func()
}

// listen starts a driver. Its stop is called when the test ends, at the latest.
func listen(t testing.TB, w World, in *Inbox) *listening {
	t.Helper()
	d := w.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Listen(ctx, in) }()
	l := &listening{d, in, sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Listen: %v", err)
			}
		case <-time.After(Patience):
			t.Error("Listen has not returned after its context ended")
		}
	})}
	t.Cleanup(l.stop)
	return l
}

// key returns a new idempotency key, like those of a journal.
func key() string { return strings.ToLower(rand.Text()[:25]) }
