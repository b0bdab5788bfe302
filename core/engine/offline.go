package engine

import (
	"time"

	"synthbot/core/engine/offline"
	"synthbot/core/llm"
)

// NewOffline makes the engine that is always there. A nil clock is time.Now, a
// nil zone the local one; both are asked only where a message has no time.
func NewOffline(clock func() time.Time, zone *time.Location) llm.Model {
	return offline.New(offline.Options{Clock: clock, Zone: zone})
}
