package telegram

import (
	"strings"
	"testing"

	"synthbot/core"
)

// TestProbe: a probe reports the bot, its privacy mode and the clock without receiving
// updates. A rejected token is fatal and has a fix.
func TestProbe(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	found := make(map[string]core.Finding)
	for _, f := range d.Probe(t.Context()) {
		found[f.What] = f
	}
	if f := found["identity"]; f.Found != "@aria_bot" || f.Fix != "" {
		t.Errorf("identity: got %+v, want @aria_bot", f)
	}
	if f := found["privacy"]; f.Found == "" || f.Fatal {
		t.Errorf("privacy: got %+v", f)
	}
	if f := found["clock"]; !strings.Contains(f.Found, "from the platform's") {
		t.Errorf("clock: got %+v", f)
	}
	if n := len(w.Calls("getUpdates")); n != 0 {
		t.Errorf("got %d calls of getUpdates, want 0", n)
	}
	w.Revoke()
	f := d.Probe(t.Context())
	if len(f) != 1 || !f[0].Fatal || !strings.Contains(f[0].Fix, "BotFather") {
		t.Errorf("rejected token: got %+v, want one fatal finding that names BotFather", f)
	}
}
