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
	maxAlbum   = 10
)

// intake turns updates into events and hands them in, in order. Parts of an
// album wait for each other: they stay with the platform until the album is
// complete.
type intake struct {
	d       *Driver
	in      core.Inbox
	convert *converter
	waiting map[album]waitingAlbum // albums that may grow
	stored  map[int64]bool         // taken in, but not to be confirmed yet
	pending map[int64]bool         // not taken in yet, for the sake of an album
	damaged map[int64]int          // how often an update alone found the store damaged
}

// album is an album of a place.
type album struct {
	place core.Path
	group string
}

// waitingAlbum is what is known of an album that waits.
type waitingAlbum struct {
	parts    int
	lastPart time.Time
}

// item is an update that was read.
type item struct {
	id int64
	converted
}

// place is the place that an item is about; zero if it is about none.
func (it *item) place() core.Path {
	if len(it.events) == 0 {
		return core.Path{}
	}
	return it.events[0].Message.Path
}

// Pause is how long to wait before asking again, where albums wait.
func (i *intake) Pause() time.Duration {
	var longest time.Duration
	for _, h := range i.waiting {
		longest = max(longest, albumQuiet-time.Since(h.lastPart), time.Millisecond)
	}
	return longest
}

// Held implements botapi.Intake.
func (i *intake) Held(id int64) bool { return i.pending[id] }

// Take hands a batch in, as one commit, and returns the offset that confirms what is on
// disk; 0: nothing is. After an error the rest comes again.
func (i *intake) Take(ctx context.Context, raws []json.RawMessage) (int64, error) {
	items, offset := i.readyItems(i.read(ctx, raws))
	events := make([]core.Event, 0, len(items))
	for _, it := range items {
		events = append(events, it.events...)
		i.beforeReceive(it)
	}
	if len(events) > 0 {
		err := i.in.Receive(ctx, events...)
		if errors.Is(err, core.ErrBadEvent) || errors.Is(err, core.ErrDamaged) { // one of them may be to blame
			err = i.receiveEach(ctx, items)
		}
		if err != nil {
			return 0, err
		}
	}
	for _, it := range items {
		i.stored[it.id] = true
		if it.press != nil {
			i.d.background(func(ctx context.Context) { i.d.endPress(ctx, it.press) })
		}
	}
	if len(i.waiting) == 0 {
		clear(i.stored)
		clear(i.damaged)
	}
	return offset, nil
}

// read decodes and converts; what cannot be read is left behind.
func (i *intake) read(ctx context.Context, raws []json.RawMessage) []item {
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
		i.d.ranks.admins.invalidate(c.admins)
	}
	for n := range c.events {
		i.d.ranks.setRank(ctx, &c.events[n].Message)
	}
	return c
}

// readyItems leaves the albums out that may still grow, joins the parts of the others, and says
// how far the batch may be confirmed.
func (i *intake) readyItems(items []item) (ready []item, offset int64) {
	i.hold(items)
	joined := map[album]int{}
	for _, it := range items {
		key := album{it.place(), it.album}
		first, joins := joined[key]
		_, waits := i.waiting[key]
		switch {
		case waits:
			i.pending[it.id] = true
			continue
		case i.stored[it.id]:
			continue
		case joins:
			ready[first].join(it)
			it = item{id: it.id}
		case it.album != "":
			joined[key] = len(ready)
		}
		ready = append(ready, it)
	}
	for _, it := range items {
		if i.pending[it.id] {
			return ready, it.id
		}
		if it.id > 0 { // it can be read
			offset = max(offset, it.id+1)
		}
	}
	return ready, offset
}

// hold finds the albums of a batch that may not be complete: nothing else was said there
// since, and their last part came just now.
func (i *intake) hold(items []item) {
	parts, last := map[album]int{}, map[core.Path]string{}
	for _, it := range items {
		if len(it.events) > 0 {
			parts[album{it.place(), it.album}]++
			last[it.place()] = it.album
		}
	}
	was := i.waiting
	i.waiting, i.pending = map[album]waitingAlbum{}, map[int64]bool{}
	for place, name := range last {
		key := album{place, name}
		h := was[key]
		if h.parts != parts[key] {
			h = waitingAlbum{parts[key], time.Now()}
		}
		if name != "" && h.parts < maxAlbum && time.Since(h.lastPart) < albumQuiet {
			i.waiting[key] = h
		}
	}
}

// join adds a further part to an album: its file, and its words if it has some.
func (it *item) join(part item) {
	m, more := &it.events[0].Message, &part.events[0].Message
	m.Attachments = append(m.Attachments, more.Attachments...)
	switch {
	case m.Text == "":
		m.Text, m.Spoken = more.Text, more.Spoken
	case more.Text != "":
		m.Text += "\n" + more.Text
	}
	for _, o := range more.Foreign {
		if o.Text != "" && len(m.Foreign) < core.MaxForeign {
			m.Foreign = append(m.Foreign, o)
		}
	}
	if m.Addressed == "" {
		m.Addressed = more.Addressed
	}
}

// beforeReceive takes notice of what people say, so that it is known when the answer begins, and
// of a choice, before anybody can whisper.
func (i *intake) beforeReceive(it item) {
	for n := range it.events {
		e := &it.events[n]
		if e.Kind != core.KindMessage || e.Message.Author.Bot {
			continue
		}
		i.d.send.drafts.ClearSoon(e.Message.Path.String())
		if i.d.opt.Config.Acknowledge != "" {
			i.d.marks.noteCandidate(&e.Message)
		}
	}
	if it.press != nil && it.press.choice {
		i.d.choices.Put(it.press.query, true)
	}
}

// maxDamaged is how often an update is handed in that finds the store damaged, while
// others do not.
const maxDamaged = 3

// receiveEach hands items in one by one. What follows a failed one in its place waits
// with it. What can never be taken in is left behind.
func (i *intake) receiveEach(ctx context.Context, items []item) (failure error) {
	stuck := map[core.Path]bool{}
	var failed []item
	taken := 0
	for _, it := range items {
		if len(it.events) == 0 || stuck[it.place()] {
			continue
		}
		switch err := i.in.Receive(ctx, it.events...); {
		case err == nil:
			taken++
		case errors.Is(err, core.ErrBadEvent):
			i.skip(it, err)
		default:
			failure, stuck[it.place()] = err, true
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
			i.skip(it, failure)
		}
	}
	return failure
}

func (i *intake) skip(it item, err error) {
	i.d.log.Error("update left behind: it cannot be taken in", "id", it.id, "err", err)
	i.stored[it.id] = true
}
