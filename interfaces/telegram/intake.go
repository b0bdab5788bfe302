package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	damaged map[int64]int          // how often an update failed with core.ErrDamaged while others were stored
}

// album names an album of a place. Its group is "" for messages without one.
type album struct {
	place core.Path
	group string
}

// waitingAlbum is the state of an album that may still grow.
type waitingAlbum struct {
	ids      []int64 // of its updates
	lastPart time.Time
}

// item is what is stored together: the events of one update, or those of an album.
type item struct {
	ids []int64 // of its updates
	converted
}

// key returns the place and the album of an item; zero if it has no events.
func (it *item) key() album {
	if len(it.events) == 0 {
		return album{}
	}
	return album{it.events[0].Message.Path, it.album}
}

// Pause implements botapi.Intake.
func (i *intake) Pause() time.Duration {
	var longest time.Duration
	for _, w := range i.waiting {
		longest = max(longest, albumQuiet-time.Since(w.lastPart), time.Millisecond)
	}
	return longest
}

// Held implements botapi.Intake.
func (i *intake) Held(id int64) bool {
	for _, w := range i.waiting {
		if slices.Contains(w.ids, id) {
			return true
		}
	}
	return false
}

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

// read decodes and converts updates. One that cannot be decoded has no events and, if even its id is unknown, no item.
func (i *intake) read(ctx context.Context, raws []json.RawMessage) []item {
	var items []item
	var updates []*update
	for _, raw := range raws {
		u, id, err := decode(raw)
		if err != nil {
			i.d.log.Error("update skipped", "err", err)
		}
		if id > 0 {
			items, updates = append(items, item{ids: []int64{id}}), append(updates, u)
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

// readyItems returns the items to store now, in which the parts of each complete album are joined. An album may still
// grow if it is the newest of its place, and got its last part less than albumQuiet ago. The offset confirms all
// updates of the batch before the first part of such an album.
func (i *intake) readyItems(items []item) (ready []item, offset int64) {
	for _, it := range items {
		offset = max(offset, it.ids[0]+1)
	}
	joined, newest := i.joinAlbums(items)
	before := i.waiting
	i.waiting = map[album]waitingAlbum{}
	for _, it := range joined {
		key := it.key()
		w := before[key]
		if len(w.ids) != len(it.ids) {
			w = waitingAlbum{it.ids, time.Now()}
		}
		mayGrow := key.group != "" && newest[key.place] == key && len(it.ids) < maxAlbum
		if !mayGrow || time.Since(w.lastPart) >= albumQuiet {
			ready = append(ready, it)
			continue
		}
		if len(i.waiting) == 0 {
			offset = it.ids[0]
		}
		i.waiting[key] = w
	}
	return ready, offset
}

// joinAlbums joins the parts of each album. It leaves out the updates that are stored already. newest is what the last
// message of each place belongs to.
func (i *intake) joinAlbums(items []item) (joined []item, newest map[core.Path]album) {
	newest = map[core.Path]album{}
	first := map[album]int{}
	for _, it := range items {
		if i.stored[it.ids[0]] {
			continue
		}
		key := it.key()
		newest[key.place] = key
		n, begun := first[key]
		if begun && key.group != "" {
			joined[n].join(it)
			continue
		}
		first[key] = len(joined)
		joined = append(joined, it)
	}
	return joined, newest
}

// join adds the file and the text of a further part to the first part of an album.
func (it *item) join(part item) {
	it.ids = append(it.ids, part.ids...)
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
		place := it.key().place
		if len(it.events) == 0 || stuck[place] {
			continue
		}
		switch err := i.in.Receive(ctx, it.events...); {
		case err == nil:
			count++
		case errors.Is(err, core.ErrBadEvent):
			i.skip(it, err)
		default:
			failure, stuck[place] = err, true
			if errors.Is(err, core.ErrDamaged) {
				damaged[n] = err
			}
		}
	}
	for n, err := range damaged {
		id := items[n].ids[0]
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
	i.d.log.Error("update skipped: it cannot be stored", "id", it.ids[0], "err", err)
	i.setStored(it)
}

func (i *intake) setStored(it item) {
	for _, id := range it.ids {
		i.stored[id] = true
	}
}
