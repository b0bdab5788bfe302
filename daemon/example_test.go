package daemon

import (
	"testing"
	"time"

	"synthbot/config"
)

// TestExampleReadsBack reads the example as it is shipped.
func TestExampleReadsBack(t *testing.T) {
	p := &Env{File: "../config.example.toml", Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err != nil {
		t.Error(err)
	}
	var c Config
	config.Defaults(&c)
	if c.Corrector.Attempts != 2 || c.Prompt.Scope != "chat" {
		t.Errorf("defaults: %+v", c)
	}
}
