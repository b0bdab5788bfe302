package botapi

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The published limits, with some room for the network's changes to the distance
// between two calls.
const (
	allCalls, allPer     = 30, 1050 * time.Millisecond
	chatCalls, chatPer   = 3, 3100 * time.Millisecond
	groupCalls, groupPer = 20, 61 * time.Second

	waitMargin  = 250 * time.Millisecond
	defaultWait = 3 * time.Second // of a 429 that names none
	sweepEvery  = 512
)

// pacer lets calls through: those of one chat one after the other, and none sooner than
// the limits and the server allow.
type pacer struct {
	on    bool
	mu    sync.Mutex
	all   window
	until time.Time // until then the server wants no calls
	lanes map[int64]*lane
	count int
}

// lane is the way to one chat.
type lane struct {
	busy  bool
	queue []*waiter // urgent ones first, else in order of arrival
	short window
	long  window
	until time.Time
	used  time.Time
}

type waiter struct {
	rank  int
	ready chan struct{}
}

func newPacer(on bool) *pacer {
	return &pacer{on: on, all: window{most: allCalls, per: allPer}, lanes: map[int64]*lane{}}
}

// lane finds or makes a chat's lane; p.mu is held.
func (p *pacer) lane(chat int64) *lane {
	l := p.lanes[chat]
	if l == nil {
		if p.count++; p.count%sweepEvery == 0 {
			p.sweep()
		}
		l = &lane{short: window{most: chatCalls, per: chatPer}, long: window{most: groupCalls, per: groupPer}}
		p.lanes[chat] = l
	}
	l.used = time.Now()
	return l
}

// sweep removes lanes that hold nothing.
func (p *pacer) sweep() {
	now := time.Now()
	for chat, l := range p.lanes {
		if !l.busy && len(l.queue) == 0 && now.After(l.until) && now.Sub(l.used) > groupPer {
			delete(p.lanes, chat)
		}
	}
}

// enter waits until the chat is free; leave must follow unless it is an error.
func (p *pacer) enter(ctx context.Context, chat int64, rank int) error {
	p.mu.Lock()
	l := p.lane(chat)
	if !l.busy {
		l.busy = true
		p.mu.Unlock()
		return nil
	}
	w := &waiter{rank: rank, ready: make(chan struct{})}
	at := slices.IndexFunc(l.queue, func(o *waiter) bool { return o.rank < rank })
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, w)
	p.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		p.abandon(chat, l, w)
		return ctx.Err()
	}
}

func (p *pacer) abandon(chat int64, l *lane, w *waiter) {
	p.mu.Lock()
	at := slices.Index(l.queue, w)
	if at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 { // its turn has come
		p.leave(chat)
	}
}

// leave lets the next one in.
func (p *pacer) leave(chat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[chat]
	if len(l.queue) == 0 {
		l.busy = false
		return
	}
	next := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	close(next.ready)
}

// open blocks as wait does, but takes no slot: it is for what precedes a call.
func (p *pacer) open(ctx context.Context, chat int64) error {
	for {
		p.mu.Lock()
		at := p.next(chat)
		p.mu.Unlock()
		if !at.After(time.Now()) {
			return ctx.Err()
		}
		if err := pause(ctx, at); err != nil {
			return err
		}
	}
}

// wait blocks until a call may be made, or fails at once if that is later than ctx
// allows. Chat 0 stands for none. The caller is in the chat's lane.
func (p *pacer) wait(ctx context.Context, chat int64) error {
	for {
		at, mine := p.reserve(chat)
		if mine {
			if err := Sleep(ctx, time.Until(at)); err != nil || !p.closed(chat) {
				return err
			}
			continue
		}
		if err := pause(ctx, at); err != nil {
			return err
		}
	}
}

// pause sleeps until then, or fails at once if that is later than ctx allows.
func pause(ctx context.Context, until time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return context.DeadlineExceeded
	}
	return Sleep(ctx, time.Until(until))
}

// reserve returns when to look again; if mine is true, that moment is the caller's.
func (p *pacer) reserve(chat int64) (at time.Time, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at = p.next(chat)
	if at.After(now) {
		return at, false
	}
	if p.on {
		at = later(now, p.all.next())
		p.all.add(at)
	}
	if p.on && chat != 0 {
		l := p.lane(chat)
		l.short.add(at)
		l.long.add(at)
	}
	return later(at, now), true
}

// next is when the chat's own limits and the server let a call through; p.mu is held.
func (p *pacer) next(chat int64) time.Time {
	if chat == 0 {
		return p.until
	}
	l := p.lane(chat)
	at := later(p.until, l.until)
	if p.on {
		at = later(at, l.short.next())
	}
	if p.on && chat < 0 {
		at = later(at, l.long.next())
	}
	return at
}

// spare takes a slot for a call that nobody would miss, if the chat is idle and
// plenty of slots are left.
func (p *pacer) spare(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.lane(chat), time.Now()
	if l.busy || now.Before(p.until) || now.Before(l.until) {
		return false
	}
	if !p.on {
		return true
	}
	if l.short.used(now) > chatCalls/2 || chat < 0 && l.long.used(now) > groupCalls/2 || p.all.used(now) > allCalls/2 {
		return false
	}
	p.all.add(now)
	l.short.add(now)
	l.long.add(now)
	return true
}

// closed reports whether the server wants no calls now.
func (p *pacer) closed(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Before(p.until) || chat != 0 && now.Before(p.lane(chat).until)
}

// left is how long the server still wants no calls.
func (p *pacer) left(chat int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.until
	if chat != 0 {
		until = later(until, p.lane(chat).until)
	}
	return max(time.Until(until), 0)
}

// block obeys a 429. A wait concerns one chat; if a second chat must wait at the same
// time, all are meant.
func (p *pacer) block(chat int64, d time.Duration) (until time.Time) {
	if d <= 0 {
		d = defaultWait
	}
	until = time.Now().Add(d + waitMargin)
	p.mu.Lock()
	defer p.mu.Unlock()
	if chat == 0 {
		p.until = later(p.until, until)
		return until
	}
	for other, l := range p.lanes {
		if other != chat && time.Now().Before(l.until) {
			p.until = later(p.until, until)
		}
	}
	l := p.lane(chat)
	l.until = later(l.until, until)
	return until
}

// waits lists the chats that must wait, for the next process. Chat 0 stands for all.
func (p *pacer) waits() map[int64]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, now := map[int64]time.Time{}, time.Now()
	if now.Before(p.until) {
		list[0] = p.until
	}
	for chat, l := range p.lanes {
		if now.Before(l.until) {
			list[chat] = l.until
		}
	}
	return list
}

// restore takes over the waits of an earlier process. One that is longer than the
// platform ever asks for comes from a wrong clock.
func (p *pacer) restore(waits map[int64]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for chat, until := range waits {
		left := time.Until(until)
		switch {
		case left <= 0 || left > 24*time.Hour:
		case chat == 0:
			p.until = until
		default:
			p.lane(chat).until = until
		}
	}
}

// window allows most calls within any stretch of per.
type window struct {
	most  int
	per   time.Duration
	times []time.Time // of the last calls, at most most
}

// next is when another call is allowed.
func (w *window) next() time.Time {
	if len(w.times) < w.most {
		return time.Time{}
	}
	return w.times[0].Add(w.per)
}

func (w *window) add(t time.Time) {
	if len(w.times) >= w.most {
		w.times = slices.Delete(w.times, 0, 1)
	}
	w.times = append(w.times, t)
}

func (w *window) used(now time.Time) (n int) {
	for _, t := range w.times {
		if now.Sub(t) < w.per {
			n++
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sleep waits, or returns the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Spare takes a slot for a call that nobody would miss, if the chat is idle and plenty
// of slots are left.
func (c *Client) Spare(chat int64) bool { return c.pace.spare(chat) }

// Wait blocks until a call about no chat may be made.
func (c *Client) Wait(ctx context.Context) error { return c.pace.wait(ctx, 0) }

// Quiet reports whether the server wants no calls for a chat now.
func (c *Client) Quiet(chat int64) bool { return c.pace.closed(chat) }

// Block obeys a refusal with 429 of a call that is not made again.
func (c *Client) Block(ctx context.Context, chat int64, err error) {
	if IsCode(err, 429) {
		c.pace.block(chat, RetryAfter(err))
		c.saveWaits(ctx)
	}
}
