package daemon

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/memory"
)

// TestMigration checks that the settings of a group, and what counts against its budget, move with it at once.
func TestMigration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = \"1:a\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	group, super := core.MustPath("telegram/-5"), core.MustPath("telegram/-1005")
	inspect := func(b *Bot) error {
		if err := b.changes.Set(t.Context(), group, "activation", "always"); err != nil {
			return err
		}
		today := time.Now().Format(time.DateOnly)
		used := engine.Use{Day: today, Place: group, Engine: "e", Usage: llm.Usage{In: 7}}
		if err := b.Data.usage.Record(t.Context(), used); err != nil {
			return err
		}
		b.Data.usage.writing.Wait()
		move := core.Event{Kind: core.KindMigration, To: super, Message: core.Message{Path: group, ID: "m"}}
		if err := b.Turns.Inbox().Receive(t.Context(), move); err != nil {
			return err
		}
		if at := b.changes.At(super); at.Activation != "always" {
			t.Errorf("the settings after the move are %+v", at)
		}
		spent, err := b.Data.usage.Spent(t.Context(), today, super)
		if spent.Tokens != 7 {
			t.Errorf("after the move, %d tokens count", spent.Tokens)
		}
		return err
	}
	l := RunOptions{
		Config: c, Log: p.Logger(c, 0), Interfaces: InspectionInterfaces, Inspect: inspect,
		Open: func() (Store, error) { return memory.Open(filepath.Join(dir, "data"), memory.Options{}) },
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
