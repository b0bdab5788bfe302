package setup

import (
	"os"
	"path/filepath"
	"testing"

	"synthbot/config"
)

// TestMoveKeysNeedsBackup checks that the file stays unchanged if it cannot be backed up.
func TestMoveKeysNeedsBackup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	before := "[bot]\nold = \"x\"\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file+".bak", "full"), 0o700); err != nil { // a full folder, which cannot be replaced
		t.Fatal(err)
	}
	repairs := moveKeys(file, config.Faults{{Key: "bot.old", MovedTo: "bot.name"}})
	if len(repairs) != 1 {
		t.Fatal("the file has no keys to move")
	}
	if err := repairs[0].Apply(); err == nil {
		t.Error("the result claims that a backup exists")
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != before {
		t.Errorf("file: got %q, %v", after, err)
	}
}
