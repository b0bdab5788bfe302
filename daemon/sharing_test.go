package daemon

import (
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/secret"
	"synthbot/memory"
)

// TestForgottenInAllProcesses: a process tells the others whom it forgot. They drop what they hold in memory about that
// user.
func TestForgottenInAllProcesses(t *testing.T) {
	server := memory.ServerConfig{URL: secret.New(coretest.StartPostgres(t).URL), Lease: 10 * time.Second}
	hints := make(chan string, 100)
	other, err := memory.Open(t.TempDir(), memory.Options{Server: server, OnHint: func(h string) { hints <- h }})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ann := core.MustPath("telegram/@user/1")
	inspect := func(b *Bot) error {
		if err := b.PersonalData().forget(t.Context(), ann); err != nil {
			return err
		}
		until(t, func() bool { return len(hints) > 0 && <-hints == "gone 2 "+ann.String() })
		names := func() int {
			b.alerts.mu.Lock()
			defer b.alerts.mu.Unlock()
			return len(b.alerts.recent)
		}
		b.alerts.report("Ann (telegram/@user/1) is an admin")
		if names() != 1 {
			t.Fatal("the alert is not remembered")
		}
		b.workers.sharing.handleHint("gone 1 " + ann.String())
		until(t, func() bool { return names() == 0 })
		return nil
	}
	inspectBot(t, memory.Options{Server: server}, inspect)
}
