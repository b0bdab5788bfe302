package daemon

import (
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/console"
)

// TestTypedLines: the arrow keys of a terminal bring back what users typed there before.
func TestTypedLines(t *testing.T) {
	file, place := filepath.Join(t.TempDir(), "config.toml"), core.MustPath("console/main")
	write(t, file, "[bot]\ndata_dir = \"data\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	l := Life{Config: c, Log: p.Logger(c, slog.LevelError), Grace: time.Minute, Attended: true}
	l.Interfaces = Terminal(console.Options{In: strings.NewReader("hello\nand again\n"), Out: io.Discard, User: "jay"}, place)
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	l.Look = func(b *Bot) error {
		if got := b.Data.typedLines(b.log, place)(t.Context()); !slices.Equal(got, []string{"hello", "and again"}) {
			t.Errorf("the arrow keys bring back %q", got)
		}
		return nil
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
