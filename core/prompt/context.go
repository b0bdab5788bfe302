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
	had   int           // items before reduction
	list  bool          // the value is a list of items, else the only item
	sum   int           // of the items' sizes
	lines []*core.Entry // the entries of a history, one for each item
}

// section writes n items under a key. Unless list is set, n is at most one.
func (w *writer) section(name string, list bool, n int, item func(i int)) section {
	s := section{name: name, list: list, had: n}
	if n == 0 {
		return s
	}
	s.items = make([]part, n)
	w.key(name)
	if list {
		w.open('[')
	}
	for i := range s.items {
		w.begin()
		item(i)
		s.items[i] = w.done()
		s.sum += s.items[i].size
	}
	if list {
		w.close(']')
	}
	return s
}

// cost returns the size of the section, without the comma before it.
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

func (s *section) dropFirst(n int) {
	for i := range s.items[:n] {
		s.sum -= s.items[i].size
	}
	s.items = s.items[n:]
	if s.lines != nil {
		s.lines = s.lines[n:]
	}
}

// shorten cuts the texts of an item until they take at most room characters in all, the longest first.
func (s *section) shorten(i, room int) {
	p := &s.items[i]
	s.sum -= p.size
	most := level(p.sizes(), room)
	for j := range p.slots {
		p.shorten(j, most)
	}
	s.sum += p.size
}

func (s *section) write(w *writer) {
	if len(s.items) == 0 {
		return
	}
	w.key(s.name)
	if s.list {
		w.open('[')
	}
	for i := range s.items {
		w.comma()
		w.WriteString(s.items[i].raw)
	}
	if s.list {
		w.close(']')
	}
}

// spoken returns the entries of a history.
func spoken(entries []core.Entry) []*core.Entry {
	kept := make([]*core.Entry, 0, len(entries))
	for i := range entries {
		if entries[i].Spoken() {
			kept = append(kept, &entries[i])
		}
	}
	return kept
}

// history writes entries; with the place of each if abroad is set.
func (w *writer) history(name string, list []*core.Entry, abroad bool) section {
	s := w.section(name, true, len(list), func(i int) { w.entry(list[i], abroad) })
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
	w.optional("from", m.Author.Name)
	text := m.Text
	if e.Self {
		w.raw("self", "true")
		text = llm.Unthink(text)
	} else {
		w.optional("usertag", w.marks.Of(m.Path, m.Author))
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

// values writes a list of JSON values from plugins, and texts after them. Invalid JSON is left out.
func (w *writer) values(name string, raws []json.RawMessage, texts ...string) section {
	raws = slices.DeleteFunc(slices.Clone(raws), func(raw json.RawMessage) bool { return !isValue(raw) })
	return w.section(name, true, len(raws)+len(texts), func(i int) {
		if i < len(raws) {
			w.supplied(raws[i])
			return
		}
		w.open('{')
		w.text("text", texts[i-len(raws)])
		w.close('}')
	})
}

// injections writes the keys that plugins add, sorted, except for those with a fixed meaning.
func (w *writer) injections(m map[string]json.RawMessage) (list []section) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch key {
		case "history_current_chat", "history_recent", "participants", "memories", "conversation_state",
			"recon", "recon_instructions", personaKey, "":
			continue
		}
		if txt.Line(key) == key && isValue(m[key]) {
			list = append(list, w.section(key, false, 1, func(int) { w.supplied(m[key]) }))
		}
	}
	return list
}

func (w *writer) state(s *core.State) section {
	n := len(s.Topic) + len(s.Entities) + len(s.SlotsFilled) + len(s.SlotsRequired) + len(s.Status)
	return w.section("conversation_state", false, min(n, 1), func(int) {
		w.open('{')
		w.optional("topic", s.Topic)
		w.dictionary("entities", s.Entities)
		w.dictionary("slotsFilled", s.SlotsFilled)
		w.texts("slotsRequired", s.SlotsRequired)
		w.optional("status", s.Status)
		w.close('}')
	})
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

// recon writes the hints about the message. A beat has none: there is no user whose language or tone to match.
func (w *writer) recon(kind Kind, r *Recon) section {
	language := languageTag(r.Language)
	n := len(language) + len(r.MessageTone) + len(r.ConversationTone) + len(r.Snippets)
	if kind == Beat {
		n = 0
	}
	return w.section("recon", false, min(n, 1), func(int) {
		w.open('{')
		w.optional("language", language)
		w.optional("message_tone", r.MessageTone)
		w.optional("conversation_tone", r.ConversationTone)
		w.texts("snippets", r.Snippets)
		w.close('}')
	})
}

// WindowStart returns the number of the entry after which a place's history begins in a prompt; last is the number of
// the newest entry. The history holds between n and 2n entries of the log (all of them while there are fewer). Its
// beginning moves once every n entries, so that consecutive prompts share it.
func WindowStart(last uint64, n int) uint64 {
	if n <= 0 {
		return last
	}
	steps := last / uint64(n)
	return (max(steps, 1) - 1) * uint64(n)
}
