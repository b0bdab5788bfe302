package command

import "context"

type contextKey struct{}

// Context marks the context of a chat command. A command may run beside a turn of its
// place: the draft that this turn shows stays.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey{}, true) }

// IsContext reports whether the context is that of a chat command.
func IsContext(ctx context.Context) bool { return ctx.Value(contextKey{}) != nil }
