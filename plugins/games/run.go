package games

import (
	"context"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// How long Run sleeps: at most, and after something did not work.
const (
	longest = time.Hour
	again   = time.Minute
)

// Run implements core.Runner: it ends polls when their time has come.
func (p *Plugin) Run(ctx context.Context) error {
	core.Repeat(ctx, p.wake, func() time.Duration {
		next, err := p.end(ctx)
		if err != nil && ctx.Err() == nil {
			p.host.Log.Error("polls could not be ended", "retry_in", again, "err", err)
			return again
		}
		return next
	})
	return nil
}

// end ends all polls whose time has come, takes away what is old, and returns how
// long nothing more is to be done.
func (p *Plugin) end(ctx context.Context) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return 0, err
	}
	now, next := p.host.Clock(), longest
	for _, i := range items {
		if !strings.HasPrefix(i.Key, pollKey) || i.Path.IsPerson() {
			continue
		}
		one, err := readPoll(i)
		if err != nil {
			return 0, err
		}
		switch {
		case one.Told && now.Sub(one.Ends) > p.config.Keep:
			i.Value = nil
			_, err = p.host.Items.Put(ctx, i)
		case one.Told:
		case one.Closed || !now.Before(one.Ends):
			err = p.announce(ctx, &one)
		default:
			next = min(next, one.Ends.Sub(now))
		}
		if err != nil {
			return 0, err
		}
	}
	return next, nil
}

// announce makes the persona announce the result. The event has an id of its own, so that
// this happens once.
func (p *Plugin) announce(ctx context.Context, o *poll) error {
	if !o.Closed {
		if err := p.count(ctx, o); err != nil {
			return err
		}
	}
	by := maker{p.host.Name, p.host.Name}
	makers, err := p.ofPeople(ctx, o, madeKey)
	if len(makers) > 0 {
		err = makers[0].Decode(&by)
	}
	if err != nil {
		return err
	}
	err = p.host.Inbox.Receive(ctx, core.Event{Kind: core.KindReminder, Message: core.Message{
		Path: o.item.Path, ID: fmt.Sprintf("%s-poll-%d-%d", p.host.Name, o.Number, o.Ends.Unix()),
		Author: core.Author{ID: by.ID, Name: by.Name}, Time: p.host.Clock(), Private: o.Private,
		Text: fmt.Sprintf("Poll %d is over: %s", o.Number, o.result().said()),
	}})
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return p.settle(ctx, o)
}
