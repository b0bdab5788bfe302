package core

import (
	"context"
	"errors"

	"synthbot/core/llm"
)

// Question is a request to a language model.
type Question struct {
	Path   Path   // the place
	People []Path // the users who caused it, who share its cost equally; none: the bot itself
	// Behind, if set, returns the other users who wait for its answer, because their messages in the
	// place are answered after it. It is safe for concurrent use.
	Behind func() []Path
	// Unshown means that neither a draft of the answer nor a typing indicator is shown, because
	// the turn may send nothing at all.
	Unshown bool
	// Build returns the request for an engine with these limits. It is called for each engine that is tried.
	Build func(llm.Limits) (llm.Request, error)
}

// ErrNoEngine is returned by Ask if there is no engine that could be asked.
var ErrNoEngine = errors.New("no engine is configured")

// Asker answers a Question with the first engine that can.
type Asker interface {
	Ask(ctx context.Context, q Question) (llm.Answer, error)
}
