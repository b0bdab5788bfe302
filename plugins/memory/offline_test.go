package memory_test

import (
	"testing"

	"synthbot/core/engine"
	"synthbot/core/turn"
	"synthbot/plugins/memory"
	"synthbot/plugins/plugintest"
)

// TestOffline checks that the offline engine stores and finds memories with these actions.
func TestOffline(t *testing.T) {
	chain, err := engine.New(nil, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { chain.Close() })
	plugintest.Text(t, `
engine none
Jay> remember that my boat is called Albatross
bot~ Albatross
Jay> /memories
bot~ my boat is called Albatross
bot~ forget ID
clock +72h
Jay> what do you know about my boat?
bot~ my boat is called Albatross
`, plugintest.Of(memory.New), plugintest.Tune(func(o *turn.Options) { o.Asker = chain }))
}
