package turn

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"synthbot/core"
	"synthbot/core/txt"
)

// mergeAbove is how many entries may wait before all of them are one turn, and
// maxMerged how many one turn holds at most.
const (
	mergeAbove = 5
	maxMerged  = 100
)

// due decides, once and for ever, whether an event wants an answer.
func (s *setup) due(e *core.Event, h *intake) bool {
	m := &e.Message
	switch e.Kind {
	case core.KindContinue, core.KindReminder, core.KindBeat:
		return true
	case core.KindPress:
		_, _, confirms := parseQuestion(e.Data)
		if !confirms && m.Text == "" {
			m.Text = e.Data // pressing a suggestion is saying it
		}
		return !m.Author.Bot
	case core.KindCommand:
		if s.isCommand(e) {
			return true
		}
		e.Kind, e.Command = core.KindMessage, nil // it is talk like any other
		s.findName(m)
	case core.KindMessage:
	default:
		return false
	}
	here := s.Settings(m.Path)
	if m.Author.Bot {
		return here.Bots && s.isForBot(m, &here) && h.bot(m)
	}
	wanted := s.isForBot(m, &here)
	own := m.Text != "" || len(m.Foreign) == 0 // else it is only somebody else's
	if !wanted && own && !m.Private && h.at(m.Path).mayOverhear(m, &here, h.now) {
		m.Addressed, wanted = core.AddressedOverheard, true
	}
	h.heard(m, wanted)
	return wanted || s.mayBeCalled(m, &here)
}

// isCommand reports whether the event calls a command that this person may call
// here. To everybody else it looks as if there were none.
func (s *setup) isCommand(e *core.Event) bool {
	if s.Plugins.Commands == nil || e.Command == nil || e.Message.Author.Bot {
		return false
	}
	c, ok := s.Plugins.Commands.Find(e.Command.Name)
	return ok && c.Rank <= e.Message.Author.Rank
}

// findName notes whether the message calls the bot by name.
func (s *setup) findName(m *core.Message) {
	if m.Addressed == "" && newNames(s.Names(m.Path)).in(spoken(m)) {
		m.Addressed = core.AddressedName
	}
}

// spoken is what the author said, without code and the names of others whom they mention.
func spoken(m *core.Message) string {
	if m.Spoken != "" {
		return m.Spoken
	}
	return m.Text
}

// isForBot reports whether the message is one that the bot answers in that place.
func (s *setup) isForBot(m *core.Message, here *Settings) bool {
	if m.Private {
		return true
	}
	switch here.Activation {
	case ActivationAlways:
		return true
	case ActivationNever:
		return false
	case ActivationKeyword:
		return m.Addressed != "" || newNames(here.Keywords).in(spoken(m))
	}
	return m.Addressed != ""
}

// names finds the bot's names as whole words, in any script.
type names []string

func newNames(list []string) (n names) {
	for _, name := range list {
		name = folded(strings.TrimSpace(name))
		if name != "" {
			n = append(n, name)
		}
	}
	return n
}

// folded is a text in the form in which names are compared: in small letters, and with each
// accent composed with its letter, however it was typed.
func folded(text string) string { return strings.ToLower(norm.NFC.String(text)) }

func (n names) in(text string) bool {
	text = folded(text)
	for _, w := range n {
		for at := range txt.Words(text, w) {
			word := text[strings.LastIndexFunc(text[:at], unicode.IsSpace)+1 : at]
			if !strings.Contains(word, "://") { // nobody is called in a web address
				return true
			}
		}
	}
	return false
}

// merge chooses what one turn answers from the front of what waits: the
// messages that waited too long, all of them when many wait, or else adjacent
// ones of one author.
func (s *setup) merge(waiting []core.Entry) []core.Entry {
	messages, old := 0, 0
	for messages < len(waiting) && s.mergeable(&waiting[messages]) {
		if old == messages && s.isLate(&waiting[messages]) {
			old++
		}
		messages++
	}
	switch {
	case old > 0:
		return waiting[:old]
	case messages > mergeAbove:
		return waiting[:messages]
	}
	n := 1
	for n < messages && waiting[n].Message.Author.ID == waiting[0].Message.Author.ID {
		n++
	}
	return waiting[:n]
}

// mergeable reports whether an entry may be answered together with others. A yes or no in
// reply to something decides it, and is answered alone.
func (s *setup) mergeable(e *core.Entry) bool {
	if e.Kind != core.KindMessage || e.Reply != "" {
		return false
	}
	_, plain := s.yesOrNo(&e.Message)
	return !plain || e.Message.ReplyTo == nil
}

// isLate reports whether the entry waited so long that it is acknowledged together
// with others rather than answered by itself.
func (s *setup) isLate(e *core.Entry) bool {
	limit := s.Config.Backlog
	return limit > 0 && s.waited(e) > limit
}
