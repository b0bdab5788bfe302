package turn

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"synthbot/core"
	"synthbot/core/txt"
)

// If more than mergeAbove messages wait, all of them are one turn, which answers at most maxMerged.
const (
	mergeAbove = 5
	maxMerged  = 100
)

// due decides, when an event is received, whether it is answered.
func (s *setup) due(e *core.Event, in *intake) bool {
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
		e.Kind, e.Command = core.KindMessage, nil // an ordinary message
		s.findName(m)
	case core.KindMessage:
	default:
		return false
	}
	here := s.Settings(m.Path)
	if m.Author.Bot {
		if !here.Bots || !s.isForBot(m, &here) {
			return false
		}
		in.note(m.Path, func(e *placeAttention) { e.bots++ })
		return in.at(m.Path).bots <= botRounds // two bots that answer each other are stopped until a person speaks
	}
	wanted := s.isForBot(m, &here)
	own := m.Text != "" || len(m.Foreign) == 0 // more than a forward
	if !wanted && own && !m.Private && in.at(m.Path).mayOverhear(m, &here, in.now) {
		m.Addressed, wanted = core.AddressedOverheard, true
	}
	if !m.Private {
		in.note(m.Path, func(e *placeAttention) { e.heard(wanted, in.now) })
	}
	// Whether a voice message is for the bot is decided again when its text is known.
	hears := s.Prompt.Speech.Hear != nil && s.Prompt.Speech.Overhears && !here.Blind
	return wanted || m.Voice && hears && sound(m) != nil && here.Activation != ActivationNever
}

// isCommand reports whether the event calls a command that its author may call.
func (s *setup) isCommand(e *core.Event) bool {
	if e.Command == nil || e.Message.Author.Bot {
		return false
	}
	c, ok := s.Plugins.Commands.Find(e.Command.Name)
	return ok && c.Rank <= e.Message.Author.Rank
}

// findName sets Addressed if the message calls the bot by name.
func (s *setup) findName(m *core.Message) {
	if m.Addressed == "" && containsAnyWord(s.Names(m.Path), spoken(m)) {
		m.Addressed = core.AddressedName
	}
}

// spoken returns what the author wrote, without code and mentions of others.
func spoken(m *core.Message) string { return cmp.Or(m.Spoken, m.Text) }

// isForBot reports whether the message is one that the bot answers in that place.
func (s *setup) isForBot(m *core.Message, here *Settings) bool {
	switch {
	case m.Private, here.Activation == ActivationAlways:
		return true
	case here.Activation == ActivationNever:
		return false
	}
	return m.Addressed != "" || here.Activation == ActivationKeyword && containsAnyWord(here.Keywords, spoken(m))
}

// containsAnyWord reports whether a text contains one of the words as a whole word, in any script.
func containsAnyWord(words []string, text string) bool {
	text = folded(text)
	for _, word := range words {
		word = folded(word)
		if word == "" {
			continue
		}
		for at := range txt.Words(text, word) {
			before := text[strings.LastIndexFunc(text[:at], unicode.IsSpace)+1 : at]
			if !strings.Contains(before, "://") { // a web address addresses nobody
				return true
			}
		}
	}
	return false
}

// folded returns the form in which names are compared: lower case, each accent composed with its letter.
func folded(text string) string { return strings.ToLower(norm.NFC.String(strings.TrimSpace(text))) }

// merge returns the first waiting entries that one turn answers: the messages that waited too long, all messages if
// many wait, or else adjacent ones of one author.
func (s *setup) merge(waiting []core.Entry) []core.Entry {
	messages, old := 0, 0
	for i := range waiting {
		e := &waiting[i]
		decides := false // a yes or no in reply to a message may answer a question: it is a turn of its own
		if e.Message.ReplyTo != nil {
			_, decides = s.yesOrNo(&e.Message)
		}
		if e.Kind != core.KindMessage || e.Reply != "" || decides {
			break
		}
		if old == messages && s.isLate(s.waited(e)) {
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

// isLate reports whether an entry waited so long that it is acknowledged together with others.
func (s *setup) isLate(waited time.Duration) bool {
	return s.Config.Backlog > 0 && waited > s.Config.Backlog
}
