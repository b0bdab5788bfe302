package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStateOfService: commands find the service's database without $STATE_DIRECTORY, which
// systemd sets for the daemon alone. A link to a folder that is closed to them counts.
func TestStateOfService(t *testing.T) {
	dir := t.TempDir()
	config, state := filepath.Join(dir, "config.toml"), filepath.Join(dir, "state")
	if ofService(config, config, state) {
		t.Error("a service that was never started")
	}
	if err := os.Symlink("private/nowhere", state); err != nil {
		t.Fatal(err)
	}
	if !ofService(config, config, state) || ofService(filepath.Join(dir, "other.toml"), config, state) || ofService("", config, state) {
		t.Error("it is found where it is not, or not where it is")
	}
	t.Chdir(dir)
	if !ofService("./config.toml", config, state) {
		t.Error("a relative name of the same file")
	}
}
