package core

import "context"

type epochKey struct{}

// WithEpoch says under which epoch (Facts.Epoch) what is done with the context was
// begun. A Store and Items that are given it leave out what concerns people who
// were forgotten since; turns give it to all that they call.
func WithEpoch(ctx context.Context, epoch uint64) context.Context {
	return context.WithValue(ctx, epochKey{}, epoch)
}

// EpochOf returns the epoch of a context; ok is false where nobody named one.
func EpochOf(ctx context.Context) (epoch uint64, ok bool) {
	epoch, ok = ctx.Value(epochKey{}).(uint64)
	return epoch, ok
}

// WithoutEpoch takes the epoch off: for what concerns nobody's former words.
func WithoutEpoch(ctx context.Context) context.Context {
	return context.WithValue(ctx, epochKey{}, nil)
}
