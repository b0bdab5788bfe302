package mcp

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"synthbot/config"
	"synthbot/core"
)

// TestDocs checks that every configuration on the documentation page is valid.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Fatalf("got %d configurations", len(blocks))
	}
	for _, b := range blocks {
		text := strings.NewReplacer("[plugins.mcp]\nenabled = true\n", "", "plugins.mcp.", "").Replace(b[1])
		var c Config
		if err := config.Read("mcp.md", []byte(text), &c, config.Options{Getenv: func(string) string { return "x" }}); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
		if _, err := New(core.Host{Log: discardLog()}, c); err != nil {
			t.Error(err)
		}
	}
}
