package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLogFaults: a room that there is not is a fault of its line.
func TestLogFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[log.levels]\nturn = \"DEBUG\"\n\"interfaces/desk\" = \"WARN\"\nkitchen = \"INFO\"\n[interfaces.desk]\ntype = \"console\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), ":4: log.levels.kitchen: unknown room") || strings.Contains(err.Error(), ":3:") {
		t.Errorf("%v", err)
	}
}
