package turn

import (
	"testing"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/recent"
)

// TestPromptCache: what prompts said is dropped when a user is forgotten, also by a turn that began before.
func TestPromptCache(t *testing.T) {
	var c promptCache
	first := c.at(1)
	if c.at(1) != first {
		t.Error("two turns do not share the cache")
	}
	second := c.at(2)
	if second == first || c.at(2) != second {
		t.Error("a user was forgotten, and the cache is the same, or not shared any more")
	}
	if old := c.at(1); old == first || old == second {
		t.Error("a turn that began before has a cache that others had")
	}
	if c.at(2) != second {
		t.Error("a turn that began before displaced the cache")
	}
}

// later is a store in which a user was just forgotten.
type later struct{ core.Store }

func (later) Epoch() uint64 { return 2 }

// TestForgetDropsPrompts: Forget does not wait for the next turn.
func TestForgetDropsPrompts(t *testing.T) {
	s := &setup{Options: Options{Store: later{}, Runtime: action.NewRuntime(action.Options{})}}
	before := s.cache.at(1)
	turns := &Turns{undo: recent.NewShared[undoKey, undoable](1)}
	turns.setup.Store(s)
	turns.Forget()
	if s.cache.kept == before || s.cache.epoch != 2 {
		t.Error("the former prompts are kept")
	}
}
