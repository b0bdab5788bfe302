package core

import (
	"context"
	"errors"

	"synthbot/core/llm"
)

// Question is what a turn wants to know. Build is called with the limits of each engine that is tried.
type Question struct {
	Path   Path   // the place
	People []Path // who caused it, in equal shares; none: the bot itself
	// Behind, if set, returns the people who wait for its answer besides, as theirs comes after it in
	// the place. It is safe for concurrent use.
	Behind func() []Path
	// Unshown keeps the answer, and that one is thought about, from being shown
	// before the turn says something: it may say nothing at all.
	Unshown bool
	Build   func(llm.Limits) (llm.Request, error)
}

// ErrNoEngine is what asking fails with where there is none to be asked.
var ErrNoEngine = errors.New("no engine is configured")

// Asker answers a Question with the first engine that can.
type Asker interface {
	Ask(ctx context.Context, q Question) (llm.Answer, error)
}
