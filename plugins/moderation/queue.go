package moderation

import (
	"context"
	"errors"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/values"
)

const (
	maxQueue      = 1024
	sweepEvery    = 10 * time.Minute
	writeTimeout  = 2 * time.Second // also when the bot stops
	notifyTimeout = 20 * time.Second
)

// queue holds items and notices that wait to be stored and sent in the background.
type queue struct {
	items   []core.Item
	notices []notice
	lost    int // items that were dropped because the queue was full
}

type notice struct {
	to   core.Path
	text string
}

// enqueue adds items to the queue. The caller holds mu.
func (r *records) enqueue(items ...core.Item) {
	if len(r.queue.items)+len(items) > maxQueue {
		r.queue.lost += len(items)
		return
	}
	r.queue.items = append(r.queue.items, items...)
	loop.Notify(r.wake)
}

// notify sends a notice to places or users, or to all admins if there are none. It does not block.
func (r *records) notify(text string, to ...core.Path) {
	if len(to) == 0 {
		r.host.Messenger.NotifyAdmins(text)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range to {
		if len(r.queue.notices) < maxQueue {
			r.queue.notices = append(r.queue.notices, notice{path, text})
		}
	}
	loop.Notify(r.wake)
}

// logLater logs an event, and queues its items.
func (r *records) logLater(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.stamp(&e, r.host.Clock())
	r.enqueue(e.items()...)
	r.enqueue(r.log.add(e)...)
}

// logOnce is logNow, but does nothing if the same event is logged.
func (r *records) logOnce(ctx context.Context, e event) error {
	same := func(x *event) bool { return x.What == e.What && x.about == e.about && x.Until.Equal(e.Until) }
	if len(r.events(same)) > 0 {
		return nil
	}
	return r.logNow(ctx, e)
}

// logNow logs and stores an event. If its user was forgotten meanwhile, it logs nothing; if the
// user who caused it was, it leaves them out. The caller holds change.
func (r *records) logNow(ctx context.Context, e event) error {
	r.mu.Lock()
	r.log.stamp(&e, r.host.Clock())
	r.mu.Unlock()
	for _, item := range e.items() { // first the event, then the deed
		err := r.put(ctx, item)
		switch {
		case errors.Is(err, core.ErrForgotten) && item.Path == e.about:
			return nil
		case errors.Is(err, core.ErrForgotten):
			e.by, e.byName = core.Path{}, ""
		case err != nil:
			return err
		}
	}
	r.mu.Lock()
	gone := r.log.add(e)
	r.mu.Unlock()
	return r.put(ctx, gone...)
}

// run empties the queue, and removes expired holds and events, until ctx ends.
func (r *records) run(ctx context.Context, keep time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
			r.flush(ctx)
		case <-r.stale:
			if err := r.reopen(ctx); err != nil && ctx.Err() == nil {
				r.host.Log.Error("blocks and mutes are not read again", "err", err)
			}
		case <-timer.C:
			r.flush(ctx)
			if err := r.sweep(ctx, keep); err != nil && ctx.Err() == nil {
				r.host.Log.Error("expired blocks, mutes and events are not removed", "err", err)
			}
			timer.Reset(sweepEvery)
		case <-ctx.Done():
			r.flush(ctx)
			return nil
		}
	}
}

// flush stores and sends what is in the queue. Items that cannot be stored stay there.
func (r *records) flush(ctx context.Context) {
	q := r.flushItems(ctx)
	if q.lost > 0 {
		r.host.Log.Warn("the log is incomplete because too much happened", "count", q.lost)
	}
	for _, n := range q.notices {
		sending, cancel := context.WithTimeout(ctx, notifyTimeout)
		if err := r.host.Messenger.Tell(sending, n.to, n.text); err != nil {
			r.host.Log.Warn("a notice is not sent", "path", n.to, "err", err)
		}
		cancel()
	}
}

// flushItems takes the queue and stores its items, even if ctx ended.
func (r *records) flushItems(ctx context.Context) queue {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	r.change.Lock()
	defer r.change.Unlock()
	r.mu.Lock()
	q := r.queue
	r.queue = queue{}
	r.mu.Unlock()
	for i, item := range q.items {
		err := r.put(ctx, item)
		if errors.Is(err, core.ErrBadEvent) { // it can never be stored
			r.host.Log.Error("an item of the log is dropped", "path", item.Path, "err", err)
			continue
		}
		if err != nil {
			r.host.Log.Error("the log is not written yet", "err", err)
			r.mu.Lock()
			r.queue.items = append(q.items[i:], r.queue.items...)
			r.mu.Unlock()
			break
		}
	}
	return q
}

// sweep removes expired holds and old events, and moves the holds of groups that moved.
func (r *records) sweep(ctx context.Context, keep time.Duration) error {
	ctx, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.change.Unlock()
	now := r.host.Clock()
	for _, h := range r.find(func(h *hold) bool { return !isActive(h.until, now) }) {
		if err := r.liftHold(ctx, &h); err != nil {
			return err
		}
	}
	if err := r.expire(ctx, now.Add(-keep)); err != nil {
		return err
	}
	return r.followMoved(ctx)
}

// expire removes the events before a time. The caller holds change.
func (r *records) expire(ctx context.Context, before time.Time) error {
	isOld := func(e *event) bool { return e.At.Before(before) }
	var items []core.Item
	for _, e := range r.events(isOld) {
		items = append(items, e.items()...)
	}
	if err := r.put(ctx, removals(items)...); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.remove(isOld)
	return nil
}

// followMoved moves the holds of groups that have another path now. The caller holds change.
func (r *records) followMoved(ctx context.Context) error {
	moved := make(map[core.Path]core.Path) // where the places are now
	for _, h := range r.find(func(h *hold) bool { return !h.scope.IsZero() }) {
		moved[h.scope] = core.Path{}
	}
	err := r.host.Reader.View(ctx, func(v core.View) error {
		for from := range moved {
			h, err := v.Head(from)
			if err != nil {
				return err
			}
			moved[from] = h.Path
			if h.Path == from || h.Path.IsZero() {
				delete(moved, from)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, h := range r.find(func(h *hold) bool { return !moved[h.scope].IsZero() }) {
		if err := r.moveHold(ctx, h, moved[h.scope]); err != nil {
			return err
		}
	}
	return nil
}

// moveHold moves a hold to another scope. It applies in both until that is done.
func (r *records) moveHold(ctx context.Context, h hold, to core.Path) error {
	if h.kind == quietPlace { // the store moved the item with the place
		r.mu.Lock()
		defer r.mu.Unlock()
		r.holds.remove(&h)
		r.holds.set(quietIn(to, h.until, h.number))
		return nil
	}
	d, ok, err := values.Get[detail](ctx, r.host.Items, h.user, h.detailKey())
	if err != nil {
		return err
	}
	if !ok {
		d = detail{Name: h.name, Tag: h.tag, At: r.host.Clock(), Until: h.until}
	}
	next := h
	next.scope = to
	if err := r.startHold(ctx, next, d); err != nil {
		return err
	}
	return r.liftHold(ctx, &h)
}
