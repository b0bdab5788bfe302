package botapi

import (
	"context"
	"maps"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/loop"
)

// The published limits, with some room because the network changes the time between two calls.
const (
	allCalls, allPer     = 30, 1050 * time.Millisecond
	chatCalls, chatPer   = 3, 3100 * time.Millisecond
	groupCalls, groupPer = 20, 61 * time.Second

	waitMargin  = 250 * time.Millisecond
	defaultWait = 3 * time.Second // after a 429 without retry_after
)

// pacer delays calls until the limits and the server allow them. Its queue admits one call to a chat at a time. Chat 0
// stands for all calls.
type pacer struct {
	on    bool
	queue driver.Queue[int64] // for the chats
	mu    sync.Mutex
	lanes map[int64]*lane
	count int
}

type lane struct {
	limits []limit
	times  []time.Time // of the last calls, in order
	until  time.Time   // the server asked to wait until then
	used   time.Time
}

// limit allows most calls within any period of length per.
type limit struct {
	most int
	per  time.Duration
}

func newPacer(on bool) *pacer { return &pacer{on: on, lanes: map[int64]*lane{}} }

// lane returns a chat's lane. After every 512 new lanes, it deletes the unused ones. p.mu is held.
func (p *pacer) lane(chat int64) *lane {
	now := time.Now()
	l := p.lanes[chat]
	if l == nil {
		if p.count++; p.count%512 == 0 {
			maps.DeleteFunc(p.lanes, func(_ int64, l *lane) bool {
				return now.After(l.until) && now.Sub(l.used) > groupPer
			})
		}
		l = &lane{}
		switch {
		case !p.on:
		case chat == 0:
			l.limits = []limit{{allCalls, allPer}}
		case chat > 0:
			l.limits = []limit{{chatCalls, chatPer}}
		default:
			l.limits = []limit{{chatCalls, chatPer}, {groupCalls, groupPer}}
		}
		p.lanes[chat] = l
	}
	l.used = now
	return l
}

// wait blocks until a call may be made. It fails at once if the deadline of ctx is sooner. If take is set, it takes the
// slot of the call, and the caller must have entered the chat's queue.
func (p *pacer) wait(ctx context.Context, chat int64, take bool) error {
	for {
		p.mu.Lock()
		now := time.Now()
		at := p.blocked(chat)
		if chat != 0 {
			at = driver.Later(at, p.lane(chat).nextSlot(false))
		}
		free := !at.After(now)
		if free && take {
			at = driver.Later(now, p.lane(0).nextSlot(false))
			p.takeSlot(chat, at)
		}
		p.mu.Unlock()
		if deadline, ok := ctx.Deadline(); ok && !free && at.After(deadline) {
			return context.DeadlineExceeded
		}
		loop.Sleep(ctx, time.Until(at))
		if ctx.Err() != nil || free && (!take || p.waitLeft(chat) == 0) {
			return ctx.Err()
		}
	}
}

// takeSlot counts a call to the chat at that time. p.mu is held.
func (p *pacer) takeSlot(chat int64, at time.Time) {
	p.lane(0).add(at)
	if chat != 0 {
		p.lane(chat).add(at)
	}
}

// blocked returns until when the server asked to wait with calls to a chat. p.mu is held.
func (p *pacer) blocked(chat int64) time.Time {
	return driver.Later(p.lane(0).until, p.lane(chat).until)
}

// waitLeft returns how long the server still wants no calls to a chat.
func (p *pacer) waitLeft(chat int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.blocked(chat)), 0)
}

// block records that the server asked to wait (429). That holds for one chat. If another chat must already wait, it
// holds for all.
func (p *pacer) block(chat int64, d time.Duration) {
	until := time.Now().Add(d + waitMargin)
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, l := range p.lanes {
		if chat != 0 && other != 0 && other != chat && time.Now().Before(l.until) {
			p.lane(0).until = driver.Later(p.lane(0).until, until)
		}
	}
	l := p.lane(chat)
	l.until = driver.Later(l.until, until)
}

// nextSlot returns when the limits allow another call or, if half is set, when at most half of each limit is used.
func (l *lane) nextSlot(half bool) (at time.Time) {
	for _, x := range l.limits {
		n := x.most
		if half {
			n = n/2 + 1
		}
		if len(l.times) >= n {
			at = driver.Later(at, l.times[len(l.times)-n].Add(x.per))
		}
	}
	return at
}

func (l *lane) add(at time.Time) {
	l.times = append(l.times[max(0, len(l.times)-allCalls+1):], at)
}

// TakeSpare takes a slot for a call that is not important, such as a typing indicator. It returns false if the chat is
// busy or less than half of the limits is left.
func (c *Client) TakeSpare(chat int64) bool {
	p := c.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	free := driver.Later(p.lane(chat).nextSlot(true), p.lane(0).nextSlot(true))
	if p.queue.Busy(chat) || now.Before(p.blocked(chat)) || free.After(now) {
		return false
	}
	p.takeSlot(chat, now)
	return true
}

// Wait blocks until a call that belongs to no chat may be made, and takes its slot.
func (c *Client) Wait(ctx context.Context) error { return c.pace.wait(ctx, 0, true) }

// MustWait reports whether the server asked to wait with calls to a chat.
func (c *Client) MustWait(chat int64) bool { return c.pace.waitLeft(chat) > 0 }
