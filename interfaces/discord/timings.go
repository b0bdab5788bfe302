package discord

import (
	"time"

	"synthbot/interfaces/discord/gateway"
)

// timings are the waits of the driver; tests have shorter ones.
type timings struct {
	gateway gateway.Timings
	retry   time.Duration // before a request is repeated for the first time
	guilds  time.Duration // for a guild that was announced
	flush   time.Duration // between two times of storing what was seen
	typing  time.Duration // between two signs of typing
	defers  time.Duration // how long an interaction waits for the disk
	answers time.Duration // how long the answer to an interaction may take
	draft   time.Duration // between two edits of a growing message
	left    time.Duration // before a draft of an earlier process is deleted
}

var defaultTimings = timings{
	gateway: gateway.Timings{
		Patience: 20 * time.Second, Identify: 5250 * time.Millisecond, Invalid: time.Second,
		Backoff: time.Second, Longest: 2 * time.Minute,
	},
	retry: 300 * time.Millisecond, guilds: 20 * time.Second, flush: 2 * time.Second, typing: 8 * time.Second,
	defers: 1500 * time.Millisecond, answers: 3 * time.Second, draft: 1500 * time.Millisecond, left: 5 * time.Minute,
}
