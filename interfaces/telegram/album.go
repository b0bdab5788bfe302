package telegram

import (
	"time"

	"synthbot/core"
)

// ready sorts out the albums that may still grow; nothing follows them in their
// places. It joins the others, and says how far the batch may be confirmed.
func (i *intake) ready(items []item) (ready []item, offset int64) {
	waiting := i.growing(items)
	clear(i.pending)
	albums := map[string]int{}
	for _, it := range items {
		key := it.key()
		switch at, joins := albums[key]; {
		case waiting[key]:
			i.pending[it.id] = true
			continue
		case i.done[it.id]:
			continue
		case key != "" && joins:
			ready[at].join(it)
			it = item{id: it.id}
		default:
			albums[key] = len(ready)
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

// growing finds the albums of a batch that may not be complete: nothing else
// was said there since, and their last part came just now.
func (i *intake) growing(items []item) map[string]bool {
	counts, open := map[string]int{}, map[string]string{}
	for _, it := range items {
		place := it.place()
		if place == "" {
			continue
		}
		delete(open, place)
		key := it.key()
		if key != "" {
			counts[key]++
			open[place] = key
		}
	}
	was := i.held
	i.held = map[string]held{}
	waiting := map[string]bool{}
	for _, key := range open {
		h := held{parts: counts[key], grew: time.Now()}
		if old, ok := was[key]; ok && old.parts == h.parts {
			h.grew = old.grew
		}
		if h.parts < albumMost && time.Since(h.grew) < albumQuiet {
			i.held[key], waiting[key] = h, true
		}
	}
	return waiting
}

// place is the place that an item is about, if it is about one.
func (it *item) place() string {
	if len(it.events) == 0 {
		return ""
	}
	return it.events[0].Message.Path.String()
}

// key names the album that an item belongs to.
func (it *item) key() string {
	if it.album == "" || len(it.events) == 0 {
		return ""
	}
	return it.place() + " " + it.album
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
