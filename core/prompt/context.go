package prompt

import (
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// section is one key of the context. A section without items is left out.
type section struct {
	name  string
	items []part
	had   int           // items before any gave way
	list  bool          // the value is a list of items, else the one item
	sum   int           // of the items' sizes
	lines []*core.Entry // what the items of a history tell
}

func newSection(name string, list bool, items ...part) section {
	s := section{name: name, list: list, items: items, had: len(items)}
	for i := range items {
		s.sum += items[i].size
	}
	return s
}

// cost is what the section takes, without the comma before it.
func (s *section) cost() int {
	n := len(s.items)
	if n == 0 {
		return 0
	}
	cost := textSize(s.name) + len(`"":`) + s.sum
	if s.list {
		cost += len(`[]`) + n - 1
	}
	return cost
}

// first drops the n first items.
func (s *section) first(n int) {
	for i := range s.items[:n] {
		s.sum -= s.items[i].size
	}
	s.items = s.items[n:]
	if s.lines != nil {
		s.lines = s.lines[n:]
	}
}

// shorten cuts the texts of an item until they take at most room characters in
// all, the longest first.
func (s *section) shorten(i, room int) {
	p := &s.items[i]
	s.sum -= p.size
	most := level(p.sizes(), room)
	for j := range p.slots {
		p.shorten(j, most)
	}
	s.sum += p.size
}

func (s *section) append(dst []byte) []byte {
	if len(s.items) == 0 {
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendText(dst, s.name), ':')
	if s.list {
		dst = append(dst, '[')
	}
	for i := range s.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s.items[i].raw...)
	}
	if s.list {
		dst = append(dst, ']')
	}
	return dst
}

// spoken keeps what belongs into a history.
func spoken(entries []core.Entry) []*core.Entry {
	kept := make([]*core.Entry, 0, len(entries))
	for i := range entries {
		if entries[i].Spoken() {
			kept = append(kept, &entries[i])
		}
	}
	return kept
}

// entries writes history entries; abroad: with the place they come from.
func (p *Parts) entries(name string, list []*core.Entry, abroad bool) section {
	guess, texts := 0, 0
	for _, e := range list {
		guess += 128*(1+len(e.Message.Foreign)) + e.Message.TextSize()
		texts += 1 + len(e.Message.Foreign)
	}
	raw := make([]byte, 0, guess)
	slots := make([]slot, 0, texts)
	items := make([]part, len(list))
	for i, e := range list {
		w := writer{raw: raw[len(raw):], slots: slots[len(slots):], zone: p.Zone, marks: p.marks}
		w.entry(e, abroad)
		items[i] = w.done()
		raw = raw[:len(raw)+min(len(w.raw), cap(raw)-len(raw))]
		slots = slots[:len(slots)+len(w.slots)]
	}
	s := newSection(name, true, items...)
	s.lines = list
	return s
}

// entry writes one line of a history.
func (w *writer) entry(e *core.Entry, abroad bool) {
	m := &e.Message
	w.open('{')
	w.time("at", m.Time)
	if abroad {
		w.text("interface_path", m.Path.String())
	}
	w.some("from", m.Author.Name)
	if !e.Self {
		w.some("usertag", w.marks.Of(m.Path, m.Author))
	}
	if e.Self {
		w.truth("self")
	}
	text := m.Text
	if e.Self {
		text = llm.Unthink(text)
	}
	w.slot("text", text, false)
	w.spoken(m)
	w.foreign(m.Path, m.Foreign)
	if len(m.Attachments) > 0 {
		w.list("attachments")
		for i := range m.Attachments {
			w.item(string(m.Attachments[i].Kind))
		}
		w.close(']')
	}
	w.close('}')
}

// values are JSON values that others supply; what is none is left out.
func values(name string, raws []json.RawMessage) section {
	items := make([]part, 0, len(raws))
	for _, raw := range raws {
		if clean, ok := appendValue(make([]byte, 0, len(raw)), raw); ok {
			items = append(items, part{raw: clean, size: size(clean)})
		}
	}
	return newSection(name, true, items...)
}

// memories are those that were found, then those that recon knows.
func (p *Parts) memories() []json.RawMessage {
	list := slices.Clip(p.Memories)
	for _, text := range p.Recon.Memories {
		list = append(list, append(appendText([]byte(`{"text":`), text), '}'))
	}
	return list
}

// single is a section of one value; an empty object or list is nothing.
func single(name string, w *writer) section {
	if len(w.raw) <= len(`{}`) {
		return section{name: name}
	}
	return newSection(name, false, w.done())
}

// injections are the keys that plugins add, sorted, except for those that have a meaning of their own.
func injections(m map[string]json.RawMessage) []section {
	list := make([]section, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch key {
		case "history_current_chat", "history_recent", "participants", "memories", "conversation_state",
			"recon", "recon_instructions", personaKey, "":
			continue
		}
		if txt.Line(key) != key {
			continue
		}
		if raw, ok := appendValue(nil, m[key]); ok {
			list = append(list, newSection(key, false, part{raw: raw, size: size(raw)}))
		}
	}
	return list
}

func stateJSON(s *core.State) *writer {
	w := new(writer)
	w.open('{')
	w.some("topic", s.Topic)
	w.dictionary("entities", s.Entities)
	w.dictionary("slotsFilled", s.SlotsFilled)
	w.texts("slotsRequired", s.SlotsRequired)
	w.some("status", s.Status)
	w.close('}')
	return w
}

func (w *writer) dictionary(name string, m map[string]json.RawMessage) {
	if len(m) == 0 {
		return
	}
	w.object(name)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.value(key, m[key])
	}
	w.close('}')
}

func (r *Recon) hints() *writer {
	w := new(writer)
	w.open('{')
	w.some("language", languageTag(r.Language))
	w.some("message_tone", r.MessageTone)
	w.some("conversation_tone", r.ConversationTone)
	w.texts("snippets", r.Snippets)
	w.close('}')
	return w
}
