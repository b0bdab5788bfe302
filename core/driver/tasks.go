package driver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tasks are goroutines that a driver waits for when it ends. The zero value is ready to use. Safe for concurrent use.
type Tasks struct {
	Most int // how many may run at the same time; 0: any number

	mu      sync.Mutex
	group   sync.WaitGroup
	running atomic.Int64
	closed  bool
}

// Go runs f in a goroutine. It returns false if f will not run, because Close was called or too many tasks are running.
func (t *Tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.Most > 0 && t.running.Load() >= int64(t.Most) {
		return false
	}
	t.running.Add(1)
	t.group.Go(func() {
		defer t.running.Add(-1)
		f()
	})
	return true
}

// Open allows tasks to start again after Close.
func (t *Tasks) Open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = false
}

// Close blocks until all tasks have ended. No others start before Open.
func (t *Tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.group.Wait()
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Jitter returns d, randomly changed by up to 20 % in either direction.
func Jitter(d time.Duration) time.Duration {
	d = max(d, 0)
	return d*4/5 + rand.N(d*2/5+1)
}

// Queue admits one sender at a time to each chat. Others wait, ordered by priority, then by arrival. The
// zero value is ready to use. Safe for concurrent use.
type Queue[K comparable] struct {
	mu      sync.Mutex
	waiting map[K][]*ticket // has an entry for each chat in use
}

type ticket struct {
	priority int
	turn     chan struct{} // closed when the chat is free
}

// Enter blocks until the chat is free or ctx ends; then the error is that of ctx. Higher priorities go
// first. The caller calls leave once, which admits the next sender.
func (q *Queue[K]) Enter(ctx context.Context, chat K, priority int) (leave func(), err error) {
	leave = func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.admitNext(chat)
	}
	t := q.join(chat, priority)
	if t == nil {
		return leave, nil
	}
	select {
	case <-t.turn:
		return leave, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[chat], t)
	if i >= 0 {
		q.waiting[chat] = slices.Delete(q.waiting[chat], i, i+1)
	} else {
		q.admitNext(chat) // it was admitted at the same moment
	}
	return nil, ctx.Err()
}

// join adds a ticket to the chat's queue. It returns nil if the chat was free, and now marks it as in use.
func (q *Queue[K]) join(chat K, priority int) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, busy := q.waiting[chat]
	if !busy {
		if q.waiting == nil {
			q.waiting = make(map[K][]*ticket)
		}
		q.waiting[chat] = nil
		return nil
	}
	t := &ticket{priority, make(chan struct{})}
	at := slices.IndexFunc(list, func(o *ticket) bool { return o.priority < priority })
	if at < 0 {
		at = len(list)
	}
	q.waiting[chat] = slices.Insert(list, at, t)
	return t
}

// admitNext admits the next sender or, if there is none, marks the chat as free. q.mu is held.
func (q *Queue[K]) admitNext(chat K) {
	list := q.waiting[chat]
	if len(list) == 0 {
		delete(q.waiting, chat)
		return
	}
	q.waiting[chat] = list[1:]
	close(list[0].turn)
}

// Busy reports whether the chat is in use.
func (q *Queue[K]) Busy(chat K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, busy := q.waiting[chat]
	return busy
}
