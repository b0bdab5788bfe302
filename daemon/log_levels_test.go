package daemon

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLogFaults checks that an unknown area in log.levels is reported with its line.
func TestLogFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[log.levels]\nturn = \"DEBUG\"\n\"interfaces/desk\" = \"WARN\"\nkitchen = \"INFO\"\n[interfaces.desk]\ntype = \"console\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now}
	if _, err := p.Load(); err == nil || !strings.Contains(err.Error(), ":4: log.levels.kitchen: unknown room") || strings.Contains(err.Error(), ":3:") {
		t.Errorf("got %v, want a fault in line 4 only", err)
	}
}

// TestLogLevelChangeIsLogged checks that the log line about a changed level has each key once.
func TestLogLevelChangeIsLogged(t *testing.T) {
	var out strings.Builder
	b := &Bot{env: &Env{Getenv: func(string) string { return "" }}}
	b.log = b.env.LoggerTo(&out, &Config{Tables: Tables{Log: LogConfig{Format: "json"}}}, slog.LevelDebug)
	b.parts.Store(&parts{Config: new(Config)})
	if _, err := b.SetLog("turn", "debug"); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), `"room":`) != 1 || !strings.Contains(out.String(), `"name":"core/turn"`) {
		t.Errorf("log: got %s", out.String())
	}
}
