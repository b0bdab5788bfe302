package moderation

import (
	"context"
	"time"

	"synthbot/core"
)

const (
	sweepEvery = 10 * time.Minute
	writeTime  = 2 * time.Second // at the end, too
	tellTime   = 20 * time.Second
)

// Run implements core.Runner: it writes down what happened, tells who is to be
// told, and takes away what is over.
func (p *Plugin) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.wake:
			p.flush(ctx)
		case <-timer.C:
			p.flush(ctx)
			if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
				p.host.Log.Error("what is over is not taken away", "err", err)
			}
			timer.Reset(sweepEvery)
		case <-ctx.Done():
			p.flush(ctx)
			return nil
		}
	}
}

// flush writes and tells what waits. What cannot be written waits for the next
// time.
func (p *Plugin) flush(ctx context.Context) {
	q := p.flushItems(ctx)
	if q.lost > 0 {
		p.host.Log.Warn("too much happened to be written down", "lost", q.lost)
	}
	for _, n := range q.notices {
		p.pass(ctx, n)
	}
}

// flushItems takes the queue, and writes what is in it, even at the end.
func (p *Plugin) flushItems(ctx context.Context) queue {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	q := p.queue
	p.queue = queue{}
	p.mu.Unlock()
	left, err := p.writeAll(ctx, q.items)
	if err == nil {
		return q
	}
	p.host.Log.Error("what happened is not written down yet", "err", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.items = append(left, p.queue.items...)
	return q
}

// pass tells one notice.
func (p *Plugin) pass(ctx context.Context, n notice) {
	if n.to.IsZero() {
		p.host.Desk.Admins(n.text)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := p.host.Desk.Tell(ctx, n.to, n.text); err != nil {
		p.host.Log.Warn("a notice is not told", "to", n.to, "err", err)
	}
}

// sweep takes away what is over or too old, and follows groups that moved.
func (p *Plugin) sweep(ctx context.Context) error {
	ctx, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer p.change.Unlock()
	now := p.host.Clock()
	p.mu.Lock()
	var over []held
	for d, his := range p.holds {
		for _, h := range his {
			if !stands(h.until, now) {
				over = append(over, held{d, h})
			}
		}
	}
	var places []core.Path
	for place, until := range p.mutes {
		if !stands(until, now) {
			places = append(places, place)
		}
	}
	p.mu.Unlock()
	for i := range over {
		if err := p.lift(ctx, over[i].digest, &over[i].hold); err != nil {
			return err
		}
	}
	for _, place := range places {
		if err := p.unmute(ctx, place); err != nil {
			return err
		}
	}
	if err := p.expire(ctx, now.Add(-p.config.Keep)); err != nil {
		return err
	}
	return p.follow(ctx)
}

// expire takes away what was logged before. p.change is held.
func (p *Plugin) expire(ctx context.Context, before time.Time) error {
	p.mu.Lock()
	events, appeals := p.log.older(before)
	p.mu.Unlock()
	for i := range events {
		if err := p.write(ctx, removal(events[i].items())); err != nil {
			return err
		}
	}
	for _, x := range appeals {
		if err := p.drop(ctx, x.person, appealKey+x.id); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.expire(before)
	return nil
}

// follow moves what holds in a group to where the group went on. p.change is held.
func (p *Plugin) follow(ctx context.Context) error {
	moved, err := p.moved(ctx)
	if err != nil || len(moved) == 0 {
		return err
	}
	p.mu.Lock()
	var old []held
	for d, his := range p.holds {
		for _, h := range his {
			if _, ok := moved[h.scope]; ok {
				old = append(old, held{d, h})
			}
		}
	}
	p.mu.Unlock()
	for i := range old {
		if err := p.rescope(ctx, &old[i], moved[old[i].scope]); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for from, to := range moved {
		if until, ok := p.mutes[from]; ok { // the item moved with the place
			delete(p.mutes, from)
			p.mutes[to] = until
		}
	}
	return nil
}

// moved are the places of holds and mutes that go on elsewhere, and where.
func (p *Plugin) moved(ctx context.Context) (map[core.Path]core.Path, error) {
	moved := make(map[core.Path]core.Path)
	p.mu.Lock()
	for _, his := range p.holds {
		for i := range his {
			moved[his[i].scope] = his[i].scope
		}
	}
	for place := range p.mutes {
		moved[place] = place
	}
	p.mu.Unlock()
	delete(moved, core.Path{})
	err := p.host.Reader.View(ctx, func(v core.View) error {
		for from := range moved {
			h, err := v.Head(from)
			if err != nil {
				return err
			}
			if moved[from] = h.Path; h.Path == from || h.Path.IsZero() {
				delete(moved, from)
			}
		}
		return nil
	})
	return moved, err
}

// rescope moves a hold: first it holds there, too, then only there.
func (p *Plugin) rescope(ctx context.Context, h *held, to core.Path) error {
	next := h.hold
	next.scope = to
	now := p.host.Clock()
	if _, err := p.put(ctx, core.Path{}, next.key(h.digest), holdValue{now, next.end()}, core.AnyVersion); err != nil {
		return err
	}
	if !next.person.IsZero() {
		item, _, err := p.host.Items.Get(ctx, h.person, h.detailKey())
		if err != nil {
			return err
		}
		item.Path, item.Key, item.Version = next.person, next.detailKey(), core.AnyVersion
		if item.Value != nil {
			if _, err := p.host.Items.Put(ctx, item); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	p.holds.set(h.digest, next)
	p.mu.Unlock()
	return p.lift(ctx, h.digest, &h.hold)
}
