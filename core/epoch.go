package core

import "context"

// An epoch ends when somebody is forgotten (Facts.Epoch counts them). What was begun
// before must not store their words, so code that makes something of what it read
// works with a context that says in which epoch they began to read. Stores leave out
// or refuse what concerns people who were forgotten since. Without an epoch they
// accept everything.
type epoch struct {
	number uint64
	turn   TurnID
}

type epochKey struct{}

// WithEpoch returns a context for what is begun in an epoch, outside of turns.
func WithEpoch(ctx context.Context, number uint64) context.Context {
	return WithTurn(ctx, TurnID{}, number)
}

// WithTurn returns a context for a turn that is begun in an epoch. Its plugins
// store nothing any more once somebody whom it answers is forgotten.
func WithTurn(ctx context.Context, turn TurnID, number uint64) context.Context {
	return context.WithValue(ctx, epochKey{}, &epoch{number, turn})
}

// EpochOf returns the epoch and the turn of a context, as far as it has them.
func EpochOf(ctx context.Context) (number uint64, turn TurnID, ok bool) {
	e, _ := ctx.Value(epochKey{}).(*epoch)
	if e == nil {
		return 0, TurnID{}, false
	}
	return e.number, e.turn, true
}

// WithoutEpoch returns a context for what contains nobody's words.
func WithoutEpoch(ctx context.Context) context.Context {
	return context.WithValue(ctx, epochKey{}, nil)
}
