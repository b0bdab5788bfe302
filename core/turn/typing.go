package turn

import (
	"context"
	"log/slog"
	"time"

	"synthbot/core"
)

// typingDelay is how long the bot may be at work before people are shown that it is.
const typingDelay = 400 * time.Millisecond

// ShowTyping lets an interface show in a place that the bot is at work, if that takes longer than a
// moment, until stop is called or ctx ends. The sign is gone when stop returns. by may be nil.
func ShowTyping(ctx context.Context, by core.TypingIndicator, place core.Path, log *slog.Logger) (stop func()) {
	if by == nil {
		return func() {}
	}
	shown, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	timer := time.AfterFunc(typingDelay, func() {
		defer close(gone)
		if shown.Err() == nil {
			guard(log, "typing", func() { by.ShowTyping(shown, place) })
		}
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-gone
		}
	}
}
