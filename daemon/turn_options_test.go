package daemon

import (
	"testing"

	"synthbot/core"
	"synthbot/memory"
)

// TestConfigured: places are configured by a path in the file, of the place or below it, or by a setting of their own.
func TestConfigured(t *testing.T) {
	inspectBot(t, memory.Options{}, func(b *Bot) error {
		p := b.InForce()
		p.Config.Access.Allow = []core.Path{core.MustPath("telegram/-1/2")}
		if err := b.changes.Set(t.Context(), core.MustPath("telegram/-3"), "activation", "never"); err != nil {
			t.Fatal(err)
		}
		configured := b.turnOptions(p).Places.Configured
		for place, want := range map[string]bool{
			"telegram/-1": true, "telegram/-1/2": true, "telegram/-1/2/3": false, "telegram/-2": false, "telegram/-3": true,
		} {
			if got := configured(core.MustPath(place)); got != want {
				t.Errorf("%s: got %v, want %v", place, got, want)
			}
		}
		return nil
	})
}
