package daemon

import (
	"path/filepath"
	"testing"
)

// TestStateOfService: commands find the service's database without $STATE_DIRECTORY, which
// systemd sets for the daemon alone.
func TestStateOfService(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if !samePath(file, file) || samePath(filepath.Join(dir, "other.toml"), file) || samePath("", file) {
		t.Error("it is found where it is not, or not where it is")
	}
	t.Chdir(dir)
	if !samePath("./config.toml", file) {
		t.Error("a relative name of the same file")
	}
	c := &Config{File: ServiceConfig}
	home := func(name string) string { return map[string]string{"HOME": "/root"}[name] }
	if got, err := c.DataDir(home); got != ServiceState || err != nil {
		t.Errorf("root's commands use %q before the first start: %v", got, err)
	}
}
