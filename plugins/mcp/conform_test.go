package mcp

import (
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/plugins/plugintest"
)

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{Name: "mcp", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, Config{Servers: []Server{complete(own("good"))}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

// running is a plugin that is already being run.
type running struct{ p *Plugin }

func (r running) Name() string           { return r.p.Name() }
func (r running) Actions() []core.Action { return r.p.Actions() }

// TestConformRunning checks that the actions of servers conform to the rules for plugins.
func TestConformRunning(t *testing.T) {
	coretest.TestPlugin(t, func(t *testing.T) core.Plugin {
		conf := own("reading")
		conf.Tools = []string{"echo", "Write-File", "weather", "picture", "resource_*", "prompt_*"}
		b := start(t, nil, conf)
		b.there("test_echo")
		if n := len(b.Actions()); n != 6 {
			t.Fatalf("got %d actions", n)
		}
		return running{b.Plugin}
	})
}
