// Package recon detects the language of a conversation and the tone of a message and of the
// conversation. Local does so without a model; Small, which is optional, asks a small model.
//
// # Language
//
// A conversation starts in the platform's locale. Each word of another language weakens the trust in that. The evidence
// is the words of users, with more weight for later ones: frequent words, endings, letters that few languages have, and
// scripts. The language changes when the evidence for another one is clearly stronger, so that one foreign word changes
// nothing. The bot's own messages do not count. If the words are of no known language, or could be of several, the
// language is hint.Undetermined, and the prompt names none.
//
// Trigrams, which libraries use, are worse for chat messages: of 450 short sentences, whatlanggo
// gets 254 right and takes 75 for another language; lingua-go has 124 MB of models.
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

// Priorities of the local hints. Plugins can override them with higher ones.
const (
	UndeterminedPriority = 5  // the words are of no known language
	LocalePriority       = 10 // from the platform's locale
	HeardPriority        = 20 // from the words of users
)

// Local detects language and tone without a model. It is safe for concurrent use.
type Local struct {
	once     sync.Once
	detector *detector
	tones    *tones
	heard    *memo[reading]
	tone     *memo[string]
}

// New returns a Local.
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
	return nonEmpty(
		hint.Hint{Kind: hint.Language, Text: tag, Priority: priority},
		hint.Hint{Kind: hint.MessageTone, Text: of, Priority: HeardPriority},
		hint.Hint{Kind: hint.ConversationTone, Text: all, Priority: HeardPriority},
	), nil
}

func nonEmpty(hints ...hint.Hint) []hint.Hint {
	return slices.DeleteFunc(hints, func(h hint.Hint) bool { return h.Text == "" })
}

// LanguageOf returns the language of the beginning of a text of several sentences, or "" if it is not clear.
func (l *Local) LanguageOf(text string) string {
	const least, lead = 3.0, 1.2 // evidence, and times that for the next language
	l.prepare()
	e := l.detector.read(text).evidence
	at, next := e.best()
	if e[at] < least || e[at] < lead*next {
		return ""
	}
	return l.detector.tags[at]
}

// prepare loads the word lists on first use, to keep the start fast.
func (l *Local) prepare() {
	l.once.Do(func() {
		l.detector, l.tones = newDetector(), newTones()
		l.heard, l.tone = newMemo(l.detector.read), newMemo(l.tones.of)
	})
}

// memo caches the results for the latest texts, by hash, because each turn reads the messages of the conversation
// again. It is safe for concurrent use.
type memo[T any] struct {
	find  func(text string) T
	seed  maphash.Seed
	found *recent.Shared[uint64, T]
}

// maxFound is how many results a memo keeps at least.
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
