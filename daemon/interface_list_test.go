package daemon

import (
	"context"
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

// TestTypedLines checks that the terminal recalls what users typed in the place before, and completes commands.
func TestTypedLines(t *testing.T) {
	file, place := filepath.Join(t.TempDir(), "config.toml"), core.MustPath("console/main")
	write(t, file, "[bot]\ndata_dir = \"data\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	l := RunOptions{Config: c, Log: p.Logger(c, slog.LevelError), Grace: time.Minute, Attended: true}
	l.Interfaces = Terminal(console.Options{In: strings.NewReader("hello\nand again\n"), Out: io.Discard, User: "jay"}, place)
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	l.Inspect = func(b *Bot) error {
		if got := b.Data.typedLines(b.log, place)(t.Context()); !slices.Equal(got, []string{"hello", "and again"}) {
			t.Errorf("typed lines: got %q", got)
		}
		for line, want := range map[string]string{
			"/stat": "/status", "/why c": "console/main", "/say console/": "console/main", "/log core/t": "core/turn", "/log core/turn e": "error",
			"/persona A": "Aria", "/engine ": "offline default", "/set sco": "scope", "/set scope ": "chat interface unified default",
			"/set language ": "default", "/activation al": "always", "/id ": "",
		} {
			if got := strings.Join((&chatCommands{b}).complete(t.Context(), line), " "); got != want {
				t.Errorf("completions of %q: got %q, want %q", line, got, want)
			}
		}
		return nil
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// inbox receives events with a function.
type inbox func(events []core.Event)

// Receive implements core.Inbox.
func (i inbox) Receive(_ context.Context, events ...core.Event) error {
	i(events)
	return nil
}

// TestInterfaceClock: an interface that a reload keeps goes by the time zone in force.
func TestInterfaceClock(t *testing.T) {
	e := &Env{Clock: time.Now, In: strings.NewReader("hello\n"), Out: io.Discard, Err: io.Discard}
	b := e.newBot(RunOptions{Log: slog.New(slog.DiscardHandler)})
	made, err := makeConsole(b.maker(b.InForce()), new(consoleConfig))
	if err != nil {
		t.Fatal(err)
	}
	next := new(Config)
	if err := next.Bot.Timezone.UnmarshalText([]byte("Asia/Tokyo")); err != nil {
		t.Fatal(err)
	}
	b.parts.Store(&parts{Config: next})
	ctx, cancel := context.WithCancel(t.Context())
	zone := "none"
	receive := func(events []core.Event) {
		zone = events[0].Message.Time.Location().String()
		cancel() // the console would wait for an answer
	}
	if err := made[0].Listen(ctx, inbox(receive)); err != nil || zone != "Asia/Tokyo" {
		t.Errorf("it goes by %s, %v", zone, err)
	}
}

// TestInterfaceStays checks that a reload keeps an interface until its own table changes.
func TestInterfaceStays(t *testing.T) {
	for _, kind := range []string{"console", "telegram"} {
		former := console.New(console.Options{Name: kind, In: strings.NewReader(""), Out: io.Discard})
		d, _ := findDriver(kind)
		one := enabled{Name: kind, driver: d, Own: d.config()}
		b := (&Env{Clock: time.Now}).newBot(RunOptions{Log: slog.New(slog.DiscardHandler)})
		b.parts.Store(&parts{Config: &Config{Enabled: []enabled{one}}, Interfaces: []core.Interface{former}})
		m := b.maker(b.InForce())
		if m.unchanged(one) == nil {
			t.Errorf("%s was not kept", kind)
		}
		one.Own = &consoleConfig{User: "ann"}
		if m.unchanged(one) != nil {
			t.Errorf("%s was kept although its table has changed", kind)
		}
	}
}
