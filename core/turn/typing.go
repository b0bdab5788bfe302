package turn

import (
	"context"
	"log/slog"
	"time"

	"synthbot/core"
)

// typingDelay is how long the bot may be at work before it is shown as typing.
const typingDelay = 400 * time.Millisecond

// ShowTyping shows the bot as typing in a place from typingDelay on, until stop is called or ctx ends.
// When stop returns, by is no longer called. by may be nil.
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
