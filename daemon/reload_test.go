package daemon

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/memory"
)

// awayStore is a Store whose server cannot be reached.
type awayStore struct{ Store }

func (awayStore) View(context.Context, func(core.View) error) error {
	return errors.New("connection refused")
}

// TestReloadDuringAnOutage: a reload that fails because the database cannot be reached is repeated afterwards. One that
// fails for another reason is not.
func TestReloadDuringAnOutage(t *testing.T) {
	inspectBot(t, memory.Options{}, func(b *Bot) error {
		b.reloads.requested = make(chan struct{}, 1)
		isAway := b.monitor.outageHandler("database", &b.monitor.away, "away", "back")
		present := b.Data.Store
		b.Data.Store = awayStore{present}
		if _, err := b.Reload(); err == nil || strings.Contains(err.Error(), "repeated") {
			t.Errorf("without an outage: got %v, want another error", err)
		}
		isAway(true)
		isAway(false)
		if len(b.reloads.requested) > 0 {
			t.Error("a reload that failed before an outage is repeated")
		}
		isAway(true)
		if _, err := b.Reload(); err == nil || !strings.Contains(err.Error(), "repeated when it can") {
			t.Errorf("got %v, want an error that says that the reload is repeated", err)
		}
		b.Data.Store = present
		isAway(false)
		if len(b.reloads.requested) != 1 {
			t.Error("the reload is not repeated")
		}
		<-b.reloads.requested
		isAway(true)
		b.Data.Store = awayStore{present}
		_, _ = b.Reload()
		b.Data.Store = present
		if err := os.WriteFile(b.InForce().Config.File, []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Reload(); err == nil {
			t.Error("an invalid file was read")
		}
		isAway(false)
		if len(b.reloads.requested) > 0 {
			t.Error("a reload is repeated although a later one found an invalid file")
		}
		return nil
	})
}
