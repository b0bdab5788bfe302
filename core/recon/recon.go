package recon

import (
	"context"
	"sync"

	"synthbot/core"
	"synthbot/core/hint"
)

// Priorities of the local hints. Plugins outdo them with higher ones.
const (
	LocalePriority = 10 // the platform said so
	HeardPriority  = 20 // the words say so
)

// Local is the recon of the house.
type Local struct {
	once     sync.Once // the lexicon is made when it is first needed, not at start
	detector *detector
	tones    *tones
}

// New returns the local recon. It is safe for concurrent use.
func New() *Local { return new(Local) }

// Recon implements hint.Source. It fails never, and is done in well under a
// millisecond for an ordinary window.
func (l *Local) Recon(_ context.Context, s core.Scene) ([]hint.Hint, error) {
	l.once.Do(func() { l.detector, l.tones = newDetector(), newTones() })
	var hints []hint.Hint
	add := func(kind hint.Kind, text string, priority int) {
		if text != "" {
			hints = append(hints, hint.Hint{Kind: kind, Text: text, Priority: priority})
		}
	}
	tag, heard := l.detector.language(s)
	priority := LocalePriority
	if heard {
		priority = HeardPriority
	}
	add(hint.Language, tag, priority)
	add(hint.MessageTone, string(l.tones.of(s.Text)), HeardPriority)
	add(hint.ConversationTone, string(l.tones.conversation(s)), HeardPriority)
	return hints, nil
}
