package turn

import (
	"log/slog"
	"runtime/debug"
)

// guard calls a plugin where nothing else would stop its panic, which is logged.
func guard(log *slog.Logger, what string, call func()) {
	defer func() {
		r := recover()
		if r != nil {
			log.Error("plugin panicked", "caller", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
