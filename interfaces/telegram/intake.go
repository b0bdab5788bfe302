package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"synthbot/core"
)

const (
	albumQuiet = 700 * time.Millisecond // after which an album is complete
	albumMost  = 10
)

// intake turns updates into events and hands them in, in order. Parts of an
// album wait for each other: they stay with the platform until the album is
// complete.
type intake struct {
	d       *Driver
	in      core.Inbox
	convert *converter
	held    map[string]held // albums that may grow, by their name
	done    map[int64]bool  // taken in, but not to be confirmed yet
	pending map[int64]bool  // not taken in yet, for the sake of an album
	damaged map[int64]int   // how often an update alone found the store damaged
}

// held is what is known of an album that waits.
type held struct {
	parts int
	grew  time.Time
}

type item struct {
	id int64
	converted
}

// Pause is how long to wait before asking again, where albums wait.
func (i *intake) Pause() time.Duration {
	var longest time.Duration
	for _, h := range i.held {
		longest = max(longest, albumQuiet-time.Since(h.grew), time.Millisecond)
	}
	return longest
}

// Take hands a batch in and returns the offset that confirms what is on disk;
// 0: nothing is. After an error the rest comes again.
func (i *intake) Take(ctx context.Context, raws []json.RawMessage) (int64, error) {
	items := i.items(ctx, raws)
	ready, offset := i.ready(items)
	if err := i.deliver(ctx, ready); err != nil {
		return 0, err
	}
	for _, it := range ready {
		i.done[it.id] = true
	}
	if len(i.held) == 0 {
		clear(i.done)
		clear(i.damaged)
	}
	return offset, nil
}

// Held implements botapi.Intake.
func (i *intake) Held(id int64) bool { return i.pending[id] }

// items decodes and converts; what cannot be read is left behind.
func (i *intake) items(ctx context.Context, raws []json.RawMessage) []item {
	items, updates := make([]item, len(raws)), make([]*update, len(raws))
	for n, raw := range raws {
		var err error
		if updates[n], items[n].id, err = decode(raw); err != nil {
			i.d.log.Error("update left behind", "err", err)
		}
	}
	i.d.ranks.loadAdmins(ctx, updates)
	for n, u := range updates {
		if u != nil {
			items[n].converted = i.convertSafely(ctx, u)
		}
	}
	return items
}

// convertSafely converts an update; one that makes the driver stumble is left
// behind like one that cannot be read.
func (i *intake) convertSafely(ctx context.Context, u *update) (c converted) {
	defer func() {
		r := recover()
		if r != nil {
			i.d.log.Error("update left behind", "id", u.ID, "panic", r)
			c = converted{}
		}
	}()
	c = i.convert.convert(u)
	if c.admins != 0 {
		i.d.ranks.changed(c.admins)
	}
	for n := range c.events {
		i.d.ranks.setRank(ctx, &c.events[n].Message)
	}
	return c
}

// deliver hands items in, as one commit. Where an event may be to blame that this
// fails, they are handed in one by one.
func (i *intake) deliver(ctx context.Context, items []item) error {
	var events []core.Event
	for _, it := range items {
		events = append(events, it.events...)
		i.before(it)
		if it.press != nil && it.press.choice { // before anybody can whisper
			it.press.answered = i.d.presses.expect(it.press.query)
		}
	}
	if len(events) > 0 {
		err := i.in.Receive(ctx, events...)
		if errors.Is(err, core.ErrBadEvent) || errors.Is(err, core.ErrDamaged) {
			err = i.receiveEach(ctx, items)
		}
		if err != nil {
			return err
		}
	}
	for _, it := range items {
		if it.press != nil {
			i.d.later(func(ctx context.Context) { i.d.presses.end(ctx, it.press) })
		}
	}
	return nil
}

// maxDamaged is how often an update is handed in that finds the store damaged, while
// others do not.
const maxDamaged = 3

// receiveEach hands items in one by one. What follows a failed one in its place waits
// with it. What can never be taken in is left behind.
func (i *intake) receiveEach(ctx context.Context, items []item) (failure error) {
	stuck := map[string]bool{}
	var failed []item
	taken := 0
	for _, it := range items {
		place := it.place()
		if len(it.events) == 0 || stuck[place] {
			continue
		}
		switch err := i.in.Receive(ctx, it.events...); {
		case err == nil:
			taken++
		case errors.Is(err, core.ErrBadEvent):
			i.leave(it, err)
		default:
			failure, stuck[place] = err, true
			if errors.Is(err, core.ErrDamaged) {
				failed = append(failed, it)
			}
		}
	}
	for _, it := range failed {
		if taken > 0 {
			i.damaged[it.id]++
		}
		if i.damaged[it.id] >= maxDamaged {
			i.leave(it, failure)
		}
	}
	return failure
}

func (i *intake) leave(it item, err error) {
	i.d.log.Error("update left behind: it cannot be taken in", "id", it.id, "err", err)
	i.done[it.id] = true
}

// before takes notice of what people say, so that it is known when the answer
// begins.
func (i *intake) before(it item) {
	for n := range it.events {
		e := &it.events[n]
		if e.Kind != core.KindMessage || e.Message.Author.Bot {
			continue
		}
		if s, err := chatKeyOf(i.d.opt.Name, e.Message.Path); err == nil {
			i.d.send.drafts.ClearSoon(i.d.send.draftPlace(s))
		}
		if i.d.opt.Config.Acknowledge != "" {
			i.d.marks.noteCandidate(&e.Message)
		}
	}
}
