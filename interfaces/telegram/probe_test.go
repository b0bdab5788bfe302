package telegram

import (
	"strings"
	"testing"

	"synthbot/core"
)

func TestProbe(t *testing.T) {
	w := newWorld(t, nil)
	d := w.driver(t)
	found := make(map[string]core.Finding)
	for _, f := range d.Probe(t.Context()) {
		found[f.What] = f
	}
	if f := found["identity"]; f.Found != "@aria_bot" || f.Fix != "" {
		t.Errorf("identity: %+v", f)
	}
	if f := found["privacy"]; f.Found == "" || f.Fatal {
		t.Errorf("privacy: %+v", f)
	}
	if f := found["clock"]; !strings.Contains(f.Found, "from the platform's") {
		t.Errorf("clock: %+v", f)
	}
	if n := len(w.Calls("getUpdates")); n != 0 {
		t.Errorf("updates were taken %d times", n)
	}
	w.Revoke()
	f := d.Probe(t.Context())
	if len(f) != 1 || !f[0].Fatal || !strings.Contains(f[0].Fix, "BotFather") {
		t.Errorf("with a token that is refused: %+v", f)
	}
}
