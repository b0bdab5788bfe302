package memory_test

import (
	"testing"

	"synthbot/core"
	"synthbot/plugins/memory"
	"synthbot/plugins/plugintest"
)

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "memory",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			p, err := memory.New(s.Host, standard())
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{
			{Action: "memory_save", Payload: `{"text":"Jay's pet is called ` + plugintest.Canary + `","about":["me"],"importance":9}`},
			{Action: "memory_save", Payload: `{"text":"the word is ` + plugintest.Canary + `","tags":["` + plugintest.Canary + `"]}`},
			{Command: "remember", Args: map[string]string{"text": "my word is " + plugintest.Canary}},
		},
		Ask: []plugintest.Sample{
			{Action: "memory_search", Payload: `{"query":"` + plugintest.Canary + ` pet word"}`},
			{Action: "memory_search", Payload: `{"about":["jay"]}`},
			{Command: "memories"},
			{Text: "what is the pet called, and the word?"},
		},
	})
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(memory.New))
}
