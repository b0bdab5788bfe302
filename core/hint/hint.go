// Package hint holds what plugins tell the model about a message before it is answered.
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

// Undetermined is the text of a Language hint if the language was not recognised: the
// prompt then says nothing about the language of the answer.
const Undetermined = "und"

// Hint is one contribution of a Source. A higher priority wins over a lower one of the same kind.
type Hint struct {
	Kind     Kind
	Text     string
	Priority int
}

// Source is the ability of a plugin to contribute hints.
type Source interface {
	Recon(ctx context.Context, s core.Scene) ([]Hint, error)
}
