package turn

import (
	"log/slog"
	"runtime/debug"
)

// guard calls a plugin where nothing else would stop its panic, which is logged. It
// reports whether the call came to its end.
func guard(log *slog.Logger, what string, call func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("plugin panicked", "what", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
	return true
}
