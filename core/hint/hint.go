// Package hint holds what plugins say about a message before it is answered.
package hint

import (
	"context"

	"synthbot/core"
)

// Kind sorts what a Source contributes.
type Kind string

// Kinds of hint.
const (
	Snippet          Kind = "snippet"
	Instruction      Kind = "instruction"
	Language         Kind = "language_hint"
	MessageTone      Kind = "tone_hint"
	ConversationTone Kind = "conversation_tone_hint"
	Memory           Kind = "memory"
)

// Undetermined is the text of a Language hint where people write in a language that
// nobody recognised: the model answers as it sees fit, without an order.
const Undetermined = "und"

// Hint is one contribution of a Source; among hints of a kind the highest priority wins.
type Hint struct {
	Kind     Kind
	Text     string
	Priority int
}

// Source is the ability to say something about a message before it is answered.
type Source interface {
	Recon(ctx context.Context, s core.Scene) ([]Hint, error)
}
