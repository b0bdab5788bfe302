// Package recon tells, locally and at once, the language of a conversation and the tone of a
// message and of the conversation. It asks no model, except for Small, which can be added.
//
// # Language
//
// A conversation begins with the platform's locale, which every word of another language weakens. Then the words of
// users count, the latest most: frequent words, endings, letters that few languages have, and scripts. Another
// language wins when the evidence for it is clearly stronger, so that one foreign word changes nothing. The bot's own
// lines do not count: they follow. The detector does not know every language. Where words are of none that it knows,
// or could be of several, it says hint.Undetermined, and the model is given no order.
//
// Trigrams, as libraries use them, do worse on lines of a chat: whatlanggo takes 75 of 450 short
// sentences for another language where it gets 254 right; lingua-go has 124 MB of models.
package recon

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"synthbot/core"
	"synthbot/core/hint"
	"synthbot/core/recent"
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
	tag, heard := l.detector.language(s, l.heard.in)
	priority := LocalePriority
	switch {
	case heard:
		priority = HeardPriority
	case tag == hint.Undetermined:
		priority = UndeterminedPriority
	}
	of, all := l.tone.in(s.Text), l.tones.conversation(s, l.tone.in)
	return said(
		hint.Hint{Kind: hint.Language, Text: tag, Priority: priority},
		hint.Hint{Kind: hint.MessageTone, Text: string(of), Priority: HeardPriority},
		hint.Hint{Kind: hint.ConversationTone, Text: string(all), Priority: HeardPriority},
	), nil
}

func said(hints ...hint.Hint) []hint.Hint {
	return slices.DeleteFunc(hints, func(h hint.Hint) bool { return h.Text == "" })
}

// What makes the language of a longer text clear.
const (
	clearMin  = 3.0 // evidence
	clearLead = 1.2 // times that of the next language
)

// LanguageOf returns the language of a text of some sentences, by its beginning; "" if it is not clear.
func (l *Local) LanguageOf(text string) string {
	l.prepare()
	e := l.detector.read(text).evidence
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

// memo remembers what was found in the latest texts, by their hashes: those of a conversation come again with
// each turn. It is safe for concurrent use.
type memo[T any] struct {
	find  func(text string) T
	seed  maphash.Seed
	found *recent.Shared[uint64, T]
}

// maxFound is how many texts a memo remembers at least.
const maxFound = 2048

func newMemo[T any](find func(text string) T) *memo[T] {
	return &memo[T]{find, maphash.MakeSeed(), recent.NewShared[uint64, T](maxFound)}
}

func (m *memo[T]) in(text string) T {
	key := maphash.String(m.seed, text)
	value, ok := m.found.Get(key)
	if !ok {
		value = m.find(text)
		m.found.Put(key, value)
	}
	return value
}
