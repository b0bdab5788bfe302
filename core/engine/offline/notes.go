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
func (s *speaker) remember(m understood) plan {
	text := clipForeign(m.rest)
	if !s.has(actionSave) || text == "" {
		return s.speak("", s.say("remembernone"))
	}
	values := map[string]any{"text": text}
	_, some := m.self()
	if some {
		values["about"] = []string{"me"}
	}
	return s.speak("action", s.with("remembered", "text", text), newStep(actionSave, values))
}

// recall answers "what do you know about …": out of what the prompt holds, else
// by a search, whose result comes back in a further round.
func (s *speaker) recall(m understood) plan {
	text := clipForeign(m.rest)
	found := s.known(text)
	if found != "" {
		return s.speak("query", s.with("recalled", "found", found))
	}
	self, _ := m.self()
	if !s.has(actionSearch) || text == "" && !self {
		return s.speak("query", s.with("recallnone", "text", text))
	}
	values := map[string]any{"query": text}
	if self {
		values = map[string]any{"about": []string{"me"}}
	}
	return plan{Intent: "query", Actions: []step{newStep(actionSearch, values)}}
}

// known finds a subject in the memories and the lines that the prompt brought.
func (s *speaker) known(subject string) string {
	keys := keywords(subject, s.books)
	var found []string
	for _, raw := range s.memories {
		for _, text := range texts(raw, 4) {
			if matching(text, keys) > 0 && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	line := s.remembered(subject)
	if len(found) == 0 && line != "" {
		return `"` + line + `"`
	}
	return joinFound(found)
}

func joinFound(found []string) string {
	var parts []string
	for _, f := range found[:min(len(found), 5)] {
		parts = append(parts, clipForeign(f))
	}
	parts = slices.DeleteFunc(parts, func(f string) bool { return f == "" })
	return strings.Join(parts, "; ")
}

// self reports whether users speak of themselves: with all that the ask took, or
// in some of it.
func (m understood) self() (all, some bool) {
	words := split(m.rest)
	others := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return m.book.self[w.fold] })
	some = len(others) < len(words)
	return some && len(others) == 0, some
}

// texts collects what reads like words from a JSON value of any shape.
func texts(raw json.RawMessage, depth int) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return walk(value, depth)
}

// textKeys are the keys under which objects hold their words, or what holds them.
const textKeys = "text content memory fact summary note value title message" +
	" output outputs result results memories items found data actions"

func walk(value any, depth int) (all []string) {
	if depth == 0 {
		return nil
	}
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			all = append(all, walk(item, depth-1)...)
		}
	case map[string]any:
		for key := range strings.FieldsSeq(textKeys) {
			all = walk(v[key], depth-1)
			if len(all) > 0 {
				return all
			}
		}
	}
	return all
}
