package setup

import (
	"os"
	"path/filepath"
	"testing"

	"synthbot/config"
)

// TestMoveKeysNeedsBackup: without a copy of the former file, the file stays as it is.
func TestMoveKeysNeedsBackup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	before := "[bot]\nold = \"x\"\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file+".bak", "full"), 0o700); err != nil { // nothing can replace it
		t.Fatal(err)
	}
	r, ok := moveKeys(file, config.Faults{{Key: "bot.old", MovedTo: "bot.name"}})
	if !ok {
		t.Fatal("there is nothing to move")
	}
	if err := r.Apply(); err == nil {
		t.Error("it says that a copy was kept")
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != before {
		t.Errorf("the file is %q, %v", after, err)
	}
}
