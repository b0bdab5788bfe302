package memory

import (
	"slices"
	"strings"

	"synthbot/core"
)

// Limits of the reactions to one entry that are stored. More are not counted.
const (
	maxEmoji     = 64  // bytes of one
	maxReactions = 64  // different ones
	maxReactors  = 256 // people, and emoji of one of them
)

// change applies an event to the entries that it changes, if they are stored.
func (t *tx) change(e *core.Event) {
	switch e.Kind {
	case core.KindMigration:
		t.migrate(e.Message.Path, e.To)
	case core.KindEdit:
		m := e.Message
		t.forgotten().dropOldForeign(&m)
		t.changeEntry(m.Path, m.ID, func(l *storedEntry) bool { return edit(l, &m, e.Command) })
	case core.KindDeletion:
		t.changeEntry(e.Message.Path, e.Target, erase)
	case core.KindReaction:
		t.changeEntry(e.Message.Path, e.Target, func(l *storedEntry) bool {
			return react(l, e.Message.Author.ID, e.Data)
		})
	}
}

func (t *tx) changeEntry(path core.Path, id string, alter func(*storedEntry) bool) {
	p := t.resolve(path)
	seq, known := t.findID(p, id)
	if !known {
		return
	}
	if l, ok := t.entry(p, seq); ok && !l.Deleted && alter(&l) {
		t.rewrite(&l)
	}
}

// edit applies the new texts and attachments, and reports whether anything changed. Nil attachments mean that
// the platform did not say: the old ones stay. A command becomes the new one, or a message if there is none.
func edit(l *storedEntry, m *core.Message, c *core.Command) bool {
	switch {
	case l.Message.Heard != 0 && m.Heard == 0:
		addHeard(m, &l.Message)
	case l.Message.Heard == 0 && m.Heard != 0: // only the transcript: the author may have edited the rest since
		current := l.Message
		addHeard(&current, m)
		current.Heard, current.Attachments = m.Heard, nil
		m = &current
	}
	sameForeign := func(a, b core.Foreign) bool {
		same := a.Time.Equal(b.Time)
		a.Time, a.Path, a.ID = b.Time, b.Path, b.ID
		return same && a == b
	}
	if l.Message.Text == m.Text && slices.EqualFunc(l.Message.Foreign, m.Foreign, sameForeign) &&
		(m.Attachments == nil || slices.Equal(l.Message.Attachments, m.Attachments)) {
		return false
	}
	l.Message.Text, l.Message.Written, l.Message.Foreign = m.Text, m.Written, m.Foreign
	if m.Attachments != nil {
		l.Message.Attachments = m.Attachments
	}
	if m.Heard != 0 { // a transcript: what the author said has not changed
		l.Message.Heard = m.Heard
		return true
	}
	if l.Kind == core.KindCommand {
		l.Command = c
		if c == nil {
			l.Kind = core.KindMessage
		}
	}
	l.Rev++
	return true
}

// addHeard adds to a message the transcript of another version of it. Its author did not write that.
func addHeard(m, heard *core.Message) {
	m.Caption(heard.Text[min(max(heard.Written, 0), len(heard.Text)):])
	m.Foreign = slices.Clone(m.Foreign)
	for i := range m.Foreign {
		o := &m.Foreign[i]
		if o.Voice && i < len(heard.Foreign) && strings.HasPrefix(heard.Foreign[i].Text, o.Text) {
			o.Text = heard.Foreign[i].Text
		}
	}
}

func erase(l *storedEntry) bool {
	kept := l.Message
	l.Message = core.Message{
		Path: kept.Path, ID: kept.ID, Seq: kept.Seq, Author: kept.Author, Time: kept.Time, Ahead: kept.Ahead,
		Private: kept.Private, Scopes: kept.Scopes, Addressed: kept.Addressed,
	}
	l.Data, l.Reply, l.Command, l.Reactions, l.reactors = "", "", nil, nil, nil
	l.Deleted = true
	return true
}

// react counts a person's emoji once, however often it is delivered, or removes it.
func react(l *storedEntry, person, emoji string) bool {
	if taken, ok := strings.CutPrefix(emoji, core.TakenAway); ok || emoji == "" {
		unreact(l, person, taken)
		return true
	}
	tooMany := l.Reactions[emoji] == 0 && len(l.Reactions) >= maxReactions ||
		person != "" && l.reactors[person] == nil && len(l.reactors) >= maxReactors
	if tooMany || len(emoji) > maxEmoji || slices.Contains(l.reactors[person], emoji) {
		return false
	}
	if person != "" {
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

// unreact removes a person's emoji, or everybody's if person is empty; all emoji if emoji is empty.
func unreact(l *storedEntry, person, emoji string) {
	for who, theirs := range l.reactors {
		if person != "" && who != person {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(theirs), func(e string) bool {
			gone := emoji == "" || e == emoji
			if gone && l.Reactions[e] > 0 { // files may lack counts: former versions did not count what they imported
				l.Reactions[e]--
			}
			return gone
		})
		if len(kept) > 0 {
			l.reactors[who] = kept
		} else {
			delete(l.reactors, who)
		}
	}
	for e, n := range l.Reactions { // some may have no known author
		if n <= 0 || person == "" && (emoji == "" || e == emoji) {
			delete(l.Reactions, e)
		}
	}
	if len(l.Reactions) == 0 {
		l.Reactions = nil
	}
}
