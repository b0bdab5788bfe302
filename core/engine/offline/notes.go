package offline

import (
	"encoding/json"
	"slices"
	"strings"
)

// Actions that this engine knows how to call, where the catalogue has them.
const (
	actionSave   = "memory_save"
	actionSearch = "memory_search"
	actionRemind = "reminder_set"
)

// remember answers "remember that …". The note is only announced: whether it
// was taken is known when the action has run.
func (s *speaker) remember(m match) plan {
	text := echo(m.rest)
	a, ok := s.actions[actionSave]
	if ok && text != "" {
		_, some := m.self()
		if p, ok := a.payload(text, some, "text", "content", "memory", "fact", "note", "value", "summary"); ok {
			return s.speak("action", s.say("remembered", map[string]string{"text": text}), step{Type: actionSave, Payload: p})
		}
	}
	return s.speak("", s.say("remembernone", nil))
}

// recall answers "what do you know about …": out of what the prompt holds, else
// by a search, whose result comes back in a further round.
func (s *speaker) recall(m match) plan {
	text := echo(m.rest)
	self, _ := m.self()
	found := s.known(text)
	if found == "" {
		if a, ok := s.actions[actionSearch]; ok {
			if self && a.about() {
				text = "" // whoever speaks is known to the action, and is no word to look for
			}
			if p, ok := a.payload(text, self, "query", "text", "search", "about", "q", "term"); ok {
				return plan{Intent: "query", Actions: []step{{Type: actionSearch, Payload: p}}}
			}
		}
		return s.speak("query", s.say("recallnone", map[string]string{"text": text}))
	}
	return s.speak("query", s.say("recalled", map[string]string{"found": found}))
}

// known finds a subject in the memories and the lines that the prompt brought.
func (s *speaker) known(subject string) string {
	keys := telling(subject, s.books)
	var found []string
	for _, raw := range s.memories {
		for _, text := range texts(raw, 4) {
			if matchesAny(text, keys) && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	if len(found) == 0 {
		if line := s.remembered(subject); line != "" {
			return `"` + line + `"`
		}
	}
	return joinFound(found)
}

func matchesAny(text string, keys []word) bool {
	words := split(text[:min(len(text), maxRead)])
	return slices.ContainsFunc(keys, func(k word) bool {
		return slices.ContainsFunc(words, func(w word) bool { return same(w.fold, k.fold) })
	})
}

func joinFound(found []string) string {
	var parts []string
	for _, f := range found[:min(len(found), 5)] {
		if f = echo(f); f != "" {
			parts = append(parts, f)
		}
	}
	return strings.Join(parts, "; ")
}

// self reports whether a person speaks of himself: with all that the ask took, or
// in some of it.
func (m match) self() (all, some bool) {
	words := split(m.rest)
	himself := func(w word) bool { return m.book.self[w.fold] }
	some = slices.ContainsFunc(words, himself)
	return some && !slices.ContainsFunc(words, func(w word) bool { return !himself(w) }), some
}

// about reports whether the action can be told whom it is about.
func (a actionInfo) about() bool { return a.Schema.Properties["about"].is("array") }

// payload fills an action's payload: text under the first of the names that the
// schema knows, that it is about who speaks, and what else is required, where that
// can be known.
func (a actionInfo) payload(text string, self bool, names ...string) (json.RawMessage, bool) {
	values := make(map[string]any)
	if text != "" {
		name := a.property(names)
		if name == "" {
			return nil, false
		}
		values[name] = text
	}
	if self && a.about() {
		values["about"] = []string{"me"}
	}
	if len(values) == 0 || !a.complete(values) {
		return nil, false
	}
	data, err := json.Marshal(values)
	return data, err == nil
}

// property is the first of the names that stands for a text, else the only
// required property that is one.
func (a actionInfo) property(names []string) string {
	for _, name := range names {
		if p, ok := a.Schema.Properties[name]; ok && p.is("string") {
			return name
		}
	}
	if len(a.Schema.Required) == 1 && a.Schema.Properties[a.Schema.Required[0]].is("string") {
		return a.Schema.Required[0]
	}
	return ""
}

// complete adds what is required besides and has one evident value.
func (a actionInfo) complete(values map[string]any) bool {
	for _, name := range a.Schema.Required {
		if _, given := values[name]; given {
			continue
		}
		p := a.Schema.Properties[name]
		switch {
		case p.Default != nil:
			values[name] = p.Default
		case len(p.Enum) > 0:
			values[name] = p.Enum[0]
		case p.is("array"):
			values[name] = []any{}
		default:
			return false
		}
	}
	return true
}

// texts collects what reads like words from a JSON value of any shape.
func texts(raw json.RawMessage, depth int) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return walk(value, depth)
}

func walk(value any, depth int) []string {
	if depth == 0 {
		return nil
	}
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, walk(item, depth-1)...)
		}
		return all
	case map[string]any:
		for _, key := range []string{"text", "content", "memory", "fact", "summary", "note", "value", "title", "message"} {
			if item, ok := v[key]; ok {
				if found := walk(item, depth-1); len(found) > 0 {
					return found
				}
			}
		}
		for _, key := range []string{"output", "outputs", "result", "results", "memories", "items", "found", "data", "actions"} {
			if item, ok := v[key]; ok {
				if found := walk(item, depth-1); len(found) > 0 {
					return found
				}
			}
		}
	}
	return nil
}
