// Package epochs says in a context when something was begun, and for which turn.
//
// An epoch ends when somebody is forgotten (Facts.Epoch counts them). What was begun
// before must not store their words, so code that makes something of what it read
// works with a context that says in which epoch they began to read. Stores leave out
// or refuse what concerns people who were forgotten since. Without an epoch they
// accept everything.
package epochs

import (
	"context"

	"synthbot/core"
)

type epoch struct {
	number uint64
	turn   core.TurnID
}

type key struct{}

// With returns a context for what is begun in an epoch, outside of turns.
func With(ctx context.Context, number uint64) context.Context {
	return WithTurn(ctx, core.TurnID{}, number)
}

// WithTurn returns a context for a turn that is begun in an epoch. Its plugins
// store nothing any more once somebody whom it answers is forgotten.
func WithTurn(ctx context.Context, turn core.TurnID, number uint64) context.Context {
	return context.WithValue(ctx, key{}, &epoch{number, turn})
}

// Of returns the epoch and the turn of a context, as far as it has them.
func Of(ctx context.Context) (number uint64, turn core.TurnID, ok bool) {
	e, _ := ctx.Value(key{}).(*epoch)
	if e == nil {
		return 0, core.TurnID{}, false
	}
	return e.number, e.turn, true
}

// Without returns a context for what contains nobody's words.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, nil)
}
