package memory

import (
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// Limits of what is remembered of reactions to one entry; they are foreign
// input. What is beyond is not counted.
const (
	maxEmoji     = 64  // bytes of one
	maxReactions = 64  // different ones
	maxReactors  = 256 // people, and emoji of one of them
)

// change applies an event that changes stored entries. It does nothing if there is
// nothing to change.
func (t *tx) change(e *core.Event) error {
	switch e.Kind {
	case core.KindMigration:
		return t.migrate(e.Message.Path, e.To)
	case core.KindEdit:
		m := e.Message
		t.dropOldForeign(&m)
		t.touch(m.Path, m.ID, func(l *line) bool { return edit(l, &m) })
	case core.KindDeletion:
		t.touch(e.Message.Path, e.Target, erase)
	case core.KindReaction:
		t.touch(e.Message.Path, e.Target, func(l *line) bool {
			return react(l, e.Message.Author.ID, e.Data)
		})
	}
	return nil
}

// touch rewrites the entry of a platform id where alter changed it.
func (t *tx) touch(path core.Path, id string, alter func(*line) bool) {
	if id == "" {
		return
	}
	p := t.resolve(path)
	seq, known := t.find(p, id)
	if !known {
		return
	}
	l, ok, err := t.line(p, seq)
	if err != nil {
		t.db.odd(err)
	}
	if ok && !l.Deleted && alter(&l) {
		t.rewrite(p, &l)
	}
}

// edit takes the new texts, and the new attachments unless they are nil: then
// the platform said nothing about them.
func edit(l *line, m *core.Message) bool {
	same := l.Message.Text == m.Text && slices.EqualFunc(l.Message.Foreign, m.Foreign, sameForeign) &&
		(m.Attachments == nil || slices.Equal(l.Message.Attachments, m.Attachments))
	if same {
		return false
	}
	l.Message.Text, l.Message.Foreign = m.Text, m.Foreign
	if m.Attachments != nil {
		l.Message.Attachments = m.Attachments
	}
	l.Rev++
	return true
}

// sameForeign compares what is kept of two foreign texts.
func sameForeign(a, b core.Foreign) bool {
	same := a.Time.Equal(b.Time)
	a.Time, b.Time = time.Time{}, time.Time{}
	return same && a == b
}

// erase keeps the number and who it was, and drops what was said.
func erase(l *line) bool {
	kept := l.Message
	l.Message = core.Message{
		Path: kept.Path, ID: kept.ID, Seq: kept.Seq, Author: kept.Author, Time: kept.Time, Ahead: kept.Ahead,
		Private: kept.Private, Scopes: kept.Scopes, Addressed: kept.Addressed,
	}
	l.Data, l.Reply, l.Command, l.Reactions, l.reactors = "", "", nil, nil, nil
	l.Deleted = true
	return true
}

// react counts a person's emoji once, however often it is delivered, or takes
// away what is named.
func react(l *line, person, emoji string) bool {
	if taken, ok := strings.CutPrefix(emoji, core.TakenAway); ok || emoji == "" {
		return unreact(l, person, taken)
	}
	if len(emoji) > maxEmoji || slices.Contains(l.reactors[person], emoji) {
		return false
	}
	if l.Reactions[emoji] == 0 && len(l.Reactions) >= maxReactions {
		return false
	}
	if person != "" {
		if len(l.reactors[person]) >= maxReactors || l.reactors[person] == nil && len(l.reactors) >= maxReactors {
			return false
		}
		if l.reactors == nil {
			l.reactors = make(map[string][]string)
		}
		l.reactors[person] = append(l.reactors[person], emoji)
	}
	if l.Reactions == nil {
		l.Reactions = make(map[string]int)
	}
	l.Reactions[emoji]++
	return true
}

// unreact takes away a person's emoji, or everybody's if person is empty; without
// one, all of them.
func unreact(l *line, person, emoji string) (changed bool) {
	for who, theirs := range l.reactors {
		if person != "" && who != person {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(theirs), func(e string) bool {
			gone := emoji == "" || e == emoji
			if gone {
				l.Reactions[e]--
			}
			return gone
		})
		changed = changed || len(kept) < len(theirs)
		if len(kept) > 0 {
			l.reactors[who] = kept
		} else {
			delete(l.reactors, who)
		}
	}
	for e, n := range l.Reactions { // some may be nobody's
		if n <= 0 || person == "" && (emoji == "" || e == emoji) {
			delete(l.Reactions, e)
			changed = true
		}
	}
	if len(l.Reactions) == 0 {
		l.Reactions = nil
	}
	return changed
}
