package memory_test

import (
	"time"

	"synthbot/plugins/memory"
)

// standard returns the default configuration.
func standard() memory.Config {
	return memory.Config{Hints: 5, HintChars: 1200, Extract: true, ExtractAfter: 15 * time.Minute, ExtractMin: 6,
		ExtractDaily: 4, ExtractFacts: 5}
}
