package turn

import (
	"context"
	"log/slog"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// thinkAfter is how long a model may think before people are shown that it does.
const thinkAfter = 400 * time.Millisecond

// Thinking wraps an Asker: while it thinks for longer than a moment, the place's
// interface shows that the bot is at work. find returns the interface's ability
// to show it, or nil.
func Thinking(a core.Asker, find func(place core.Path) core.TypingIndicator, log *slog.Logger) core.Asker {
	return thinking{a, find, log}
}

type thinking struct {
	core.Asker
	find func(core.Path) core.TypingIndicator
	log  *slog.Logger
}

// Ask implements core.Asker. The sign is gone when it returns.
func (t thinking) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	shower := t.find(q.Path)
	if shower == nil || q.Unshown {
		return t.Asker.Ask(ctx, q)
	}
	shown, stop := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		wait(shown, thinkAfter)
		if shown.Err() == nil {
			guard(t.log, "thinker", func() { shower.ShowTyping(shown, q.Path) })
		}
	}()
	defer func() { stop(); <-gone }()
	return t.Asker.Ask(ctx, q)
}
