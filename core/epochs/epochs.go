// Package epochs keeps in a context in which epoch work began, and for which turn.
//
// An epoch ends when a user is forgotten (Facts.Epoch counts epochs). Work that began earlier may have read the
// user's data and must not store it again. So code that stores something based on what it read uses a context with
// the epoch in which it began to read. Stores drop or refuse data about users who were forgotten since then. Without
// an epoch they accept everything.
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

// With returns a context for work that begins in an epoch, outside of turns.
func With(ctx context.Context, number uint64) context.Context {
	return WithTurn(ctx, core.TurnID{}, number)
}

// WithTurn returns a context for a turn that begins in an epoch. Once a user whom the
// turn answers is forgotten, its plugins can store nothing any more.
func WithTurn(ctx context.Context, turn core.TurnID, number uint64) context.Context {
	return context.WithValue(ctx, key{}, &epoch{number, turn})
}

// Of returns the epoch and the turn of a context. ok is false if it has no epoch.
func Of(ctx context.Context) (number uint64, turn core.TurnID, ok bool) {
	e, _ := ctx.Value(key{}).(*epoch)
	if e == nil {
		return 0, core.TurnID{}, false
	}
	return e.number, e.turn, true
}

// Without returns a context without an epoch, for data that concerns no user.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, nil)
}
