package daemon

import (
	"io"
	"path/filepath"
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
	dir := t.TempDir()
	server := memory.ServerConfig{URL: secret.New(coretest.StartPostgres(t).URL), Lease: 10 * time.Second}
	file := filepath.Join(dir, "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = \"1:a\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	hints := make(chan string, 100)
	other, err := memory.Open(filepath.Join(dir, "other"), memory.Options{Server: server, OnHint: func(h string) { hints <- h }})
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
	l := RunOptions{
		Config: c, Log: p.Logger(c, 0), Interfaces: InspectionInterfaces, Inspect: inspect,
		Open: func() (Store, error) { return memory.Open(filepath.Join(dir, "data"), memory.Options{Server: server}) },
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
