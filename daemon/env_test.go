package daemon

import (
	"path/filepath"
	"testing"
)

// TestStateOfService checks that commands find the service's database without $STATE_DIRECTORY, which systemd
// sets only for the daemon.
func TestStateOfService(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if !samePath(file, file) || samePath(filepath.Join(dir, "other.toml"), file) || samePath("", file) {
		t.Error("samePath is wrong for absolute names")
	}
	t.Chdir(dir)
	if !samePath("./config.toml", file) {
		t.Error("samePath is wrong for a relative name of the same file")
	}
	c := &Config{File: ServiceConfig}
	home := func(name string) string { return map[string]string{"HOME": "/root"}[name] }
	if got, err := c.DataDir(home); got != ServiceState || err != nil {
		t.Errorf("root's commands before the first start: got %q, %v, want %q", got, err, ServiceState)
	}
}

// TestLocale checks that a variable without a language leaves the choice to the next one.
func TestLocale(t *testing.T) {
	for _, c := range []struct{ all, messages, lang, want string }{
		{"", "", "", ""},
		{"de_AT.UTF-8", "C", "en_US", "de-AT"},
		{".UTF-8", "", "en_US.UTF-8", "en-US"},
		{"", "C.UTF-8", "en_US", ""},
		{"", "", "POSIX", ""},
	} {
		values := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		e := &Env{Getenv: func(name string) string { return values[name] }}
		if got := e.Locale(); got != c.want {
			t.Errorf("%v: got %q, want %q", values, got, c.want)
		}
	}
}
