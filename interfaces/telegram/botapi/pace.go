package botapi

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"synthbot/core/driver"
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
// the limits and the server allow. Chat 0 stands for all calls.
type pacer struct {
	on    bool
	queue driver.Queue[int64] // for the chats
	mu    sync.Mutex
	lanes map[int64]*lane
	count int
}

// lane is the way to one chat.
type lane struct {
	windows []window
	until   time.Time // until then the server wants no calls
	used    time.Time
}

func newPacer(on bool) *pacer { return &pacer{on: on, lanes: map[int64]*lane{}} }

// lane finds or makes a chat's lane; p.mu is held.
func (p *pacer) lane(chat int64) *lane {
	l := p.lanes[chat]
	if l == nil {
		if p.count++; p.count%sweepEvery == 0 {
			p.sweep()
		}
		l = &lane{}
		switch {
		case !p.on:
		case chat == 0:
			l.windows = []window{{most: allCalls, per: allPer}}
		case chat > 0:
			l.windows = []window{{most: chatCalls, per: chatPer}}
		default:
			l.windows = []window{{most: chatCalls, per: chatPer}, {most: groupCalls, per: groupPer}}
		}
		p.lanes[chat] = l
	}
	l.used = time.Now()
	return l
}

// sweep removes lanes that hold nothing.
func (p *pacer) sweep() {
	now := time.Now()
	maps.DeleteFunc(p.lanes, func(_ int64, l *lane) bool { return now.After(l.until) && now.Sub(l.used) > groupPer })
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
// allows. The caller is in the chat's queue.
func (p *pacer) wait(ctx context.Context, chat int64) error {
	for {
		at, mine := p.reserve(chat)
		if mine {
			driver.Sleep(ctx, time.Until(at))
			if ctx.Err() != nil || p.left(chat) == 0 {
				return ctx.Err()
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
	driver.Sleep(ctx, time.Until(until))
	return ctx.Err()
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
	at = driver.Later(now, p.lane(0).free())
	p.take(chat, at)
	return at, true
}

// take uses a slot of the chat, and one of all calls; p.mu is held.
func (p *pacer) take(chat int64, at time.Time) {
	p.lane(0).add(at)
	if chat != 0 {
		p.lane(chat).add(at)
	}
}

// next is when the chat's own limits and the server let a call through; p.mu is held.
func (p *pacer) next(chat int64) time.Time {
	at := p.blocked(chat)
	if chat != 0 {
		at = driver.Later(at, p.lane(chat).free())
	}
	return at
}

// blocked is until when the server wants no calls for a chat; p.mu is held.
func (p *pacer) blocked(chat int64) time.Time {
	return driver.Later(p.lane(0).until, p.lane(chat).until)
}

// spare takes a slot for a call that nobody would miss, if the chat is idle and
// plenty of slots are left.
func (p *pacer) spare(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.queue.Busy(chat) || now.Before(p.blocked(chat)) || p.lane(chat).full(now) || p.lane(0).full(now) {
		return false
	}
	p.take(chat, now)
	return true
}

// left is how long the server still wants no calls.
func (p *pacer) left(chat int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.blocked(chat)), 0)
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
	for other, l := range p.lanes {
		if chat != 0 && other != 0 && other != chat && time.Now().Before(l.until) {
			p.lane(0).until = driver.Later(p.lane(0).until, until)
		}
	}
	l := p.lane(chat)
	l.until = driver.Later(l.until, until)
	return until
}

// waits lists the chats that must wait, for the next process.
func (p *pacer) waits() map[int64]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, now := map[int64]time.Time{}, time.Now()
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
		if left > 0 && left <= 24*time.Hour {
			p.lane(chat).until = until
		}
	}
}

// free is when the windows let another call through.
func (l *lane) free() (at time.Time) {
	for i := range l.windows {
		at = driver.Later(at, l.windows[i].next())
	}
	return at
}

func (l *lane) add(at time.Time) {
	for i := range l.windows {
		l.windows[i].add(at)
	}
}

// full reports whether more than half of a window is used.
func (l *lane) full(now time.Time) bool {
	return slices.ContainsFunc(l.windows, func(w window) bool { return w.used(now) > w.most/2 })
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

// Spare takes a slot for a call that nobody would miss, if the chat is idle and plenty
// of slots are left.
func (c *Client) Spare(chat int64) bool { return c.pace.spare(chat) }

// Wait blocks until a call about no chat may be made.
func (c *Client) Wait(ctx context.Context) error { return c.pace.wait(ctx, 0) }

// Quiet reports whether the server wants no calls for a chat now.
func (c *Client) Quiet(chat int64) bool { return c.pace.left(chat) > 0 }

// Block obeys a refusal with 429 of a call that is not made again.
func (c *Client) Block(ctx context.Context, chat int64, err error) {
	if IsCode(err, 429) {
		c.pace.block(chat, RetryAfter(err))
		c.saveWaits(ctx)
	}
}
