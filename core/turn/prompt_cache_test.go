package turn

import "testing"

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
