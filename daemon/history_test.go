package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/memory"
)

// TestLastWords checks that /history shows the last messages in the bot's time zone, although many commands
// follow them.
func TestLastWords(t *testing.T) {
	db, err := memory.Open(t.TempDir(), memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	place, noon := core.MustPath("telegram/-100"), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	batch := new(core.Batch)
	for i := range 50 {
		m := core.Message{ID: fmt.Sprint(i), Path: place, Time: noon, Author: core.Author{Name: "Ann"}}
		kind := core.KindCommand
		if i < 15 {
			kind, m.Text = core.KindMessage, fmt.Sprintf("word %d.", i)
		}
		batch.Append = append(batch.Append, core.Entry{Event: core.Event{Kind: kind, Message: m}})
	}
	if err := db.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	c := new(Config)
	if err := c.Bot.Timezone.UnmarshalText([]byte("Asia/Tokyo")); err != nil {
		t.Fatal(err)
	}
	b := &Bot{env: &Env{Clock: time.Now}, Data: &Storage{Store: db, DB: db}}
	b.parts.Store(&parts{Config: c})
	call := command.Call{Path: core.MustPath("telegram/1000"), Args: map[string]string{"path": place.String()}}
	text, err := (&chatCommands{b}).history(t.Context(), call)
	lines := strings.Split(text, "\n")
	if err != nil || len(lines) != 10 || lines[0] != "21:00 Ann: word 5." || lines[9] != "21:00 Ann: word 14." {
		t.Errorf("/history: got %q, %v", text, err)
	}
	call.Args["count"] = "1000"
	text, err = (&chatCommands{b}).history(t.Context(), call)
	if n := strings.Count(text, "Ann"); err != nil || n != 15 {
		t.Errorf("asked for many, it shows %d, %v", n, err)
	}
}
