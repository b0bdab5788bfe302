package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"synthbot/core"
)

const (
	albumQuiet = 700 * time.Millisecond // an album without a new part for so long is complete
	maxAlbum   = 10                     // parts
)

// intake converts updates to events and stores them in the inbox, in order. The parts of an album are stored
// together. Until an album is complete, its updates are not confirmed, so Telegram sends them again.
type intake struct {
	d       *Driver
	in      core.Inbox
	convert *converter
	waiting map[album]waitingAlbum // albums that may still grow
	stored  map[int64]bool         // updates that are stored or skipped, but not confirmed yet
	pending map[int64]bool         // updates of waiting albums
	damaged map[int64]int          // how often an update failed with core.ErrDamaged while others were stored
}

type album struct {
	place core.Path
	group string
}

// waitingAlbum is the state of an album that may still grow.
type waitingAlbum struct {
	parts    int
	lastPart time.Time
}

// item is an update with its events. id is 0 if it cannot be decoded.
type item struct {
	id    int64
	parts []int64 // ids of the updates with further parts of the album
	converted
}

// place returns the place of an item; zero if it has no events.
func (it *item) place() core.Path {
	if len(it.events) == 0 {
		return core.Path{}
	}
	return it.events[0].Message.Path
}

// Pause implements botapi.Intake.
func (i *intake) Pause() time.Duration {
	var longest time.Duration
	for _, h := range i.waiting {
		longest = max(longest, albumQuiet-time.Since(h.lastPart), time.Millisecond)
	}
	return longest
}

// Held implements botapi.Intake.
func (i *intake) Held(id int64) bool { return i.pending[id] }

// Take implements botapi.Intake. It stores a batch of updates in one commit, or one by one if that fails because
// of one of them.
func (i *intake) Take(ctx context.Context, raws []json.RawMessage) (int64, error) {
	items, offset := i.readyItems(i.read(ctx, raws))
	events := make([]core.Event, 0, len(items))
	for _, it := range items {
		events = append(events, it.events...)
		i.beforeReceive(it)
	}
	if len(events) > 0 {
		err := i.in.Receive(ctx, events...)
		if errors.Is(err, core.ErrBadEvent) || errors.Is(err, core.ErrDamaged) {
			err = i.receiveEach(ctx, items)
		}
		if err != nil {
			return 0, err
		}
	}
	for _, it := range items {
		i.setStored(it)
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

// read decodes and converts updates. One that cannot be decoded is skipped: it has no events.
func (i *intake) read(ctx context.Context, raws []json.RawMessage) []item {
	items, updates := make([]item, len(raws)), make([]*update, len(raws))
	for n, raw := range raws {
		var err error
		if updates[n], items[n].id, err = decode(raw); err != nil {
			i.d.log.Error("update skipped", "err", err)
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

// convertSafely converts an update and sets the ranks of its authors. An update whose conversion panics is skipped,
// like one that cannot be decoded.
func (i *intake) convertSafely(ctx context.Context, u *update) (c converted) {
	defer func() {
		r := recover()
		if r != nil {
			i.d.log.Error("update skipped", "id", u.ID, "panic", r)
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

// readyItems returns the items to store now, in which the parts of each complete album are joined. The offset
// confirms all updates of the batch before the first part of an album that may still grow.
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
			continue
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

// hold sets waiting to the albums of a batch that may still grow: their place has no newer message, and their last
// part came less than albumQuiet ago.
func (i *intake) hold(items []item) {
	parts, last := map[album]int{}, map[core.Path]string{}
	for _, it := range items {
		if len(it.events) > 0 {
			parts[album{it.place(), it.album}]++
			last[it.place()] = it.album
		}
	}
	before := i.waiting
	i.waiting, i.pending = map[album]waitingAlbum{}, map[int64]bool{}
	for place, name := range last {
		key := album{place, name}
		h := before[key]
		if h.parts != parts[key] {
			h = waitingAlbum{parts[key], time.Now()}
		}
		if name != "" && h.parts < maxAlbum && time.Since(h.lastPart) < albumQuiet {
			i.waiting[key] = h
		}
	}
}

// join adds the file and the text of a further part to the first part of an album.
func (it *item) join(part item) {
	it.parts = append(it.parts, part.id)
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

// beforeReceive prepares for an answer, which may begin while the update is being stored: it deletes leftover drafts,
// notes which message to acknowledge, and registers a pressed choice for Whisper.
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

// maxDamaged is how often an update may fail with core.ErrDamaged while others are stored, before it is skipped.
const maxDamaged = 3

// receiveEach stores items one by one. After a failure, further items of the same place are not stored, to keep the
// order. An item that can never be stored is skipped.
func (i *intake) receiveEach(ctx context.Context, items []item) (failure error) {
	stuck, damaged := map[core.Path]bool{}, map[int]error{}
	count := 0
	for n, it := range items {
		if len(it.events) == 0 || stuck[it.place()] {
			continue
		}
		switch err := i.in.Receive(ctx, it.events...); {
		case err == nil:
			count++
		case errors.Is(err, core.ErrBadEvent):
			i.skip(it, err)
		default:
			failure, stuck[it.place()] = err, true
			if errors.Is(err, core.ErrDamaged) {
				damaged[n] = err
			}
		}
	}
	for n, err := range damaged {
		id := items[n].id
		if count > 0 {
			i.damaged[id]++
		}
		if i.damaged[id] >= maxDamaged {
			i.skip(items[n], err)
		}
	}
	return failure
}

func (i *intake) skip(it item, err error) {
	i.d.log.Error("update skipped: it cannot be stored", "id", it.id, "err", err)
	i.setStored(it)
}

func (i *intake) setStored(it item) {
	for _, id := range append(it.parts, it.id) {
		i.stored[id] = true
	}
}
