package discord

import (
	"testing"

	"synthbot/core/action"
)

// TestCatalogueTakesTheActions: the actions are valid, and the schema of the message action, which is
// in every prompt, stays small.
func TestCatalogueTakesTheActions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	snapshot, err := action.Build(s.bot(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := snapshot.Message("discord"); !ok || len(snapshot.All()) != 7 {
		t.Errorf("got %d actions, want 7, one of them for messages", len(snapshot.All()))
	}
	size := 0
	for _, d := range snapshot.All() {
		if d.IsMessage() && len(d.CorrectionSchema()) > 700 {
			t.Errorf("%s: got %d characters in every prompt, want at most 700", d.Name, len(d.CorrectionSchema()))
		}
		size += len(d.CorrectionSchema()) + len(d.Brief) + len(d.Name)
		t.Logf("%s: %d", d.Name, len(d.CorrectionSchema()))
	}
	t.Logf("%d characters in a prompt", size)
}
