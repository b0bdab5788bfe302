package daemon

import (
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/memory"
)

// TestMigration checks that the settings of a group, and what counts against its budget, move with it at once.
func TestMigration(t *testing.T) {
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
	inspectBot(t, memory.Options{}, inspect)
}
