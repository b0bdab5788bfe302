// Package recon tells, locally and at once, the language of a conversation and the tone of a
// message and of the conversation. It asks no model, except for Small, which can be added.
//
// # Language
//
// A conversation begins with the platform's locale, which every word of another language weakens.
// Then the words of users count, the latest most: frequent words, endings, letters that few
// languages have, and scripts. Another language wins when the evidence for it is clearly stronger,
// so that one foreign word changes nothing. The bot's own lines do not count: they follow. The
// detector does not know every language. Where words are of none that it knows, or could be of
// several, it says hint.Undetermined, and the model is given no order.
//
// Trigrams, as libraries use them, do worse on lines of a chat: whatlanggo takes 75 of 450 short
// sentences for another language where it gets 254 right; lingua-go has 124 MB of models.
package recon

import (
	"context"
	"sync"

	"synthbot/core"
	"synthbot/core/hint"
)

// Priorities of the local hints. Plugins can win with higher ones.
const (
	UndeterminedPriority = 5  // there are words that the detector does not know
	LocalePriority       = 10 // the platform said so
	HeardPriority        = 20 // the words say so
)

// Local needs no model. It is safe for concurrent use.
type Local struct {
	once     sync.Once
	detector *detector
	tones    *tones
	heard    *memo[reading]
	tone     *memo[tone]
}

// New returns the local recon.
func New() *Local { return new(Local) }

// Recon implements hint.Source. It never fails, and takes well under a millisecond.
func (l *Local) Recon(_ context.Context, s core.Scene) ([]hint.Hint, error) {
	l.prepare()
	var hints []hint.Hint
	add := func(kind hint.Kind, text string, priority int) {
		if text != "" {
			hints = append(hints, hint.Hint{Kind: kind, Text: text, Priority: priority})
		}
	}
	tag, heard := l.detector.language(s, l.heard.in)
	priority := LocalePriority
	switch {
	case heard:
		priority = HeardPriority
	case tag == hint.Undetermined:
		priority = UndeterminedPriority
	}
	add(hint.Language, tag, priority)
	add(hint.MessageTone, string(l.tone.in(s.Text)), HeardPriority)
	add(hint.ConversationTone, string(l.tones.conversation(s, l.tone.in)), HeardPriority)
	return hints, nil
}

// What makes the language of a longer text clear.
const (
	clearMin  = 3.0 // evidence
	clearLead = 1.2 // times that of the next language
)

// LanguageOf returns the language of a text of some sentences, by its beginning; "" if it is
// not clear.
func (l *Local) LanguageOf(text string) string {
	l.prepare()
	e := make(evidence, len(l.detector.tags))
	l.detector.weigh(e, text)
	at, next := e.best()
	if e[at] < clearMin || e[at] < clearLead*next {
		return ""
	}
	return l.detector.tags[at]
}

// prepare makes the lexicon when it is first needed, not at start.
func (l *Local) prepare() {
	l.once.Do(func() {
		l.detector, l.tones = newDetector(), newTones()
		l.heard, l.tone = newMemo(l.detector.read), newMemo(l.tones.of)
	})
}
