package turn

import (
	"testing"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/recent"
)

// TestPromptCache: turns of the same epoch share the cache; a new epoch, after a user was
// forgotten, drops it. A turn of an old epoch gets a cache of its own.
func TestPromptCache(t *testing.T) {
	var c promptCache
	first := c.at(1)
	if c.at(1) != first {
		t.Error("turns of the same epoch do not share the cache")
	}
	second := c.at(2)
	if second == first || c.at(2) != second {
		t.Error("a new epoch has the old cache or none that is shared")
	}
	if old := c.at(1); old == first || old == second {
		t.Error("a turn of an old epoch shares a cache")
	}
	if c.at(2) != second {
		t.Error("a turn of an old epoch replaced the cache")
	}
}

// nextEpoch is a store after a user was forgotten.
type nextEpoch struct{ core.Store }

func (nextEpoch) Epoch() uint64 { return 2 }

// TestForgetDropsPrompts: Forget drops the cached prompts at once, not with the next turn.
func TestForgetDropsPrompts(t *testing.T) {
	s := &setup{Options: Options{Store: nextEpoch{}, Runtime: action.NewRuntime(action.Options{})}}
	before := s.cache.at(1)
	turns := &Turns{undo: recent.NewShared[undoKey, undoable](1)}
	turns.setup.Store(s)
	turns.Forget()
	if s.cache.kept == before || s.cache.epoch != 2 {
		t.Error("the cached prompts were kept")
	}
}
