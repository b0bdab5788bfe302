package setup

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/daemon"
)

// SharedFolder returns what to do about a data directory that other users can enter, but that is not the bot's own, so
// that its mode must stay; "" otherwise. A folder is the bot's own if it has no sticky bit, and holds nothing but the
// bot's files.
func SharedFolder(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	why := ""
	if info.Mode()&fs.ModeSticky != 0 {
		why = "is for all users"
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		why = "cannot be read"
	}
	for _, e := range entries {
		if why == "" && !daemon.OwnsFile(e.Name()) {
			why = "also holds " + e.Name()
		}
	}
	if why == "" {
		return ""
	}
	return dir + " " + why + ", and other users can enter it; set data_dir in [bot] to a folder of the bot's own"
}

// MissingPrograms returns the programs of a configuration's plugins that are not installed. It leaves out paths that
// are relative to the folder in which a program runs.
func MissingPrograms(c *daemon.Config) (list []core.Finding) {
	c.Walk(func(s config.Setting) {
		argv, ok := s.Value.Interface().([]string)
		if s.Kind != "program" || !ok || len(argv) == 0 || s.Key[0] != "plugins" {
			return
		}
		relative := strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0])
		if _, err := exec.LookPath(argv[0]); err != nil && !relative {
			fix := fmt.Sprintf("install it, or set its path in %s", s.Key)
			list = append(list, core.Finding{Found: argv[0] + " was not found", Fix: fix, Fatal: true})
		}
	})
	return list
}
