package core

import "context"

type besideKey struct{}

// Beside marks the context of a chat command, which may run beside a turn of its
// place: what that turn shows for the moment, as a draft, stays.
func Beside(ctx context.Context) context.Context { return context.WithValue(ctx, besideKey{}, true) }

// IsBeside reports whether the context is that of a chat command.
func IsBeside(ctx context.Context) bool { return ctx.Value(besideKey{}) != nil }
