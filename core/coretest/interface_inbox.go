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

// patience is how long a suite waits for what must come.
const patience = 20 * time.Second

// Inbox is a true core.Inbox that keeps events in memory. The zero value works.
type Inbox struct {
	// Fail, where set, is asked before events are taken in.
	Fail func(events []core.Event) error

	mu     sync.Mutex
	known  map[string]bool
	events []core.Event
	calls  int
	came   chan struct{}
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
	b.calls++
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

// Events returns what was taken in, each event once.
func (b *Inbox) Events() []core.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]core.Event(nil), b.events...)
}

// Wait returns the events once there are n of them.
func (b *Inbox) Wait(t testing.TB, n int) []core.Event {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
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
		case <-late.C:
			t.Fatalf("%d events came in, want %d", have, n)
		}
	}
}

// Parts is a true core.Parts of one step: what was sent is not sent again.
type Parts struct {
	mu   sync.Mutex
	done map[int]core.Sent
	keys map[int]string
}

// Send implements core.Parts.
func (p *Parts) Send(ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error)) error {
	p.mu.Lock()
	if p.done == nil {
		p.done, p.keys = map[int]core.Sent{}, map[int]string{}
	}
	_, sent := p.done[n]
	if p.keys[n] == "" {
		p.keys[n] = key()
	}
	k := p.keys[n]
	p.mu.Unlock()
	if sent {
		return nil
	}
	id, err := do(ctx, k)
	if err != nil {
		return err
	}
	what.ID = id
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[n] = what
	return nil
}

// Since implements core.Parts: there was no former life.
func (p *Parts) Since(int) time.Time { return time.Time{} }

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

// Forget drops the n-th part, as a crash before its record would.
func (p *Parts) Forget(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.done, n)
}

var errInbox = errors.New("the disk is full")

// listening is a driver that listens.
type listening struct {
	core.Interface
	Inbox *Inbox
	stop  func()
}

// listen starts a driver; it ends with the test, or before by stop.
func listen(t testing.TB, w World, in *Inbox) *listening {
	t.Helper()
	d := w.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Listen(ctx, in) }()
	var once sync.Once
	l := &listening{d, in, func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Listen: %v", err)
				}
			case <-time.After(patience):
				t.Error("Listen goes on after its context ended")
			}
		})
	}}
	t.Cleanup(l.stop)
	return l
}

// key makes an idempotency key, like those of a journal.
func key() string { return strings.ToLower(rand.Text()[:25]) }
