package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/core/recent"
)

const (
	albumQuiet = 700 * time.Millisecond // an album without a new part for so long is complete
	maxAlbum   = 10                     // parts
	maxParts   = 5000                   // of albums whose captions are known
)

// intake converts updates to events and stores them in the inbox, in order. The parts of an album are stored
// together. Until an album is complete, its updates are not confirmed, so Telegram sends them again.
type intake struct {
	d       *Driver
	in      driver.Receiver
	convert *converter
	waiting map[album]waitingAlbum                 // albums that may still grow
	stored  map[int64]bool                         // updates that are stored or skipped, but not confirmed yet
	albums  recent.Cache[messageKey, []core.Event] // the latest version of each part of an album, by each part
}

type messageKey struct {
	path core.Path
	id   string
}

// album names an album of a place. Its group is "" for messages without one.
type album struct {
	place core.Path
	group string
}

type waitingAlbum struct {
	parts    int
	lastPart time.Time
}

// item is what is stored together: the events of one update, or those of an album.
type item struct {
	ids   []int64      // of its updates
	parts []core.Event // of an album
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

// Held implements botapi.Intake. An update that was taken is stored or held.
func (i *intake) Held(id int64) bool { return id > 0 && len(i.waiting) > 0 && !i.stored[id] }

// Take implements botapi.Intake.
func (i *intake) Take(ctx context.Context, raws []json.RawMessage) (int64, error) {
	items, offset := i.readyItems(i.read(ctx, raws))
	var groups [][]core.Event
	for _, it := range items {
		i.noteCaptions(&it)
		if len(it.events) > 0 {
			groups = append(groups, it.events)
		}
		i.beforeReceive(it)
	}
	if err := i.in.Receive(ctx, groups); err != nil {
		return 0, err
	}
	for _, it := range items {
		for _, id := range it.ids {
			i.stored[id] = true
		}
		if it.press != nil {
			i.d.background(func(ctx context.Context) { i.d.endPress(ctx, it.press) })
		}
	}
	if len(i.waiting) == 0 {
		clear(i.stored)
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
	newest := map[core.Path]album{} // what the last message of each place belongs to
	first := map[album]int{}
	var joined []item
	for _, it := range items {
		offset = max(offset, it.ids[0]+1)
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
	before := i.waiting
	i.waiting = map[album]waitingAlbum{}
	for _, it := range joined {
		key := it.key()
		w := before[key]
		if w.parts != len(it.ids) {
			w = waitingAlbum{len(it.ids), time.Now()}
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

// join adds the file and the text of a further part to the first part of an album.
func (it *item) join(part item) {
	if it.parts == nil {
		it.parts = slices.Clone(it.events)
	}
	it.ids, it.parts = append(it.ids, part.ids...), append(it.parts, part.events[0])
	m, more := &it.events[0].Message, &part.events[0].Message
	m.Attachments = append(m.Attachments, more.Attachments...)
	joinTexts(m, more)
	if m.Addressed == "" {
		m.Addressed = more.Addressed
	}
}

func joinTexts(m, more *core.Message) {
	switch {
	case m.Text == "":
		m.Text, m.Spoken = more.Text, more.Spoken
	case more.Text != "":
		if m.Spoken != "" || more.Spoken != "" {
			m.Spoken = cmp.Or(m.Spoken, m.Text) + "\n" + cmp.Or(more.Spoken, more.Text)
		}
		m.Text += "\n" + more.Text
	}
	for _, o := range more.Foreign {
		if o.Text != "" && len(m.Foreign) < core.MaxForeign {
			m.Foreign = append(m.Foreign, o)
		}
	}
}

// noteCaptions notes the parts of an album. It changes the edit of a part to an edit of the message that the parts
// became, with the captions of all of them.
func (i *intake) noteCaptions(it *item) {
	for _, p := range it.parts {
		i.albums.Put(messageKey{p.Message.Path, p.Message.ID}, it.parts)
	}
	if len(it.events) != 1 || it.events[0].Kind != core.KindEdit {
		return
	}
	edit := &it.events[0]
	parts, _ := i.albums.Get(messageKey{edit.Message.Path, edit.Message.ID})
	if len(parts) == 0 {
		return
	}
	parts[slices.IndexFunc(parts, func(p core.Event) bool { return p.Message.ID == edit.Message.ID })] = *edit
	whole := parts[0].Message
	whole.Foreign = slices.Clone(whole.Foreign)
	for n := range parts[1:] {
		joinTexts(&whole, &parts[n+1].Message)
	}
	m := &edit.Message
	m.ID, m.Text, m.Spoken, m.Foreign = whole.ID, whole.Text, whole.Spoken, whole.Foreign
	edit.Command = parts[0].Command
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
