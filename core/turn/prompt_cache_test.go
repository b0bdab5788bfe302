package turn

import (
	"testing"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/prompt"
	"synthbot/core/recent"
)

// nextEpoch is a store after a user was forgotten.
type nextEpoch struct{ core.Store }

func (nextEpoch) Epoch() uint64 { return 2 }

// TestForgetDropsPrompts: Forget drops the cached prompts at once, not with the next turn.
func TestForgetDropsPrompts(t *testing.T) {
	s := &setup{
		Options: Options{Store: nextEpoch{}, Runtime: action.NewRuntime(action.Options{})},
		cache:   recent.NewPerEpoch(prompt.NewCache),
	}
	before := s.cache.In(1)
	turns := &Turns{undo: recent.NewShared[undoKey, undoable](1)}
	turns.setup.Store(s)
	turns.Forget()
	if s.cache.In(1) == before || s.cache.In(2) == before {
		t.Error("the cached prompts were kept")
	}
}
