package daemon

import (
	"os"
	"path/filepath"
)

// Paths of a service.
const (
	ServiceConfig = "/etc/synthbot/config.toml"
	ServiceState  = "/var/lib/synthbot"
)

// DataDir returns the folder of the database.
func (c *Config) DataDir(getenv func(string) string) (string, error) {
	switch {
	case c.Bot.DataDir != "":
		return c.Beside(c.Bot.DataDir), nil
	case getenv("STATE_DIRECTORY") != "":
		return getenv("STATE_DIRECTORY"), nil
	case ofService(c.File, ServiceConfig, ServiceState):
		return ServiceState, nil
	case getenv("XDG_STATE_HOME") != "":
		return filepath.Join(getenv("XDG_STATE_HOME"), "synthbot"), nil
	case getenv("HOME") != "":
		return filepath.Join(getenv("HOME"), ".local", "state", "synthbot"), nil
	}
	return "", Usagef("no place for the database: set data_dir in [bot], or $STATE_DIRECTORY or $HOME")
}

// ofService reports whether a configuration is the service's, and its state folder exists.
// systemd sets $STATE_DIRECTORY for the daemon alone, not for other commands.
func ofService(file, config, state string) bool {
	full, err := filepath.Abs(file)
	if err != nil || full != config {
		return false
	}
	_, err = os.Lstat(state) // the folder that it links to may be closed to us
	return err == nil
}

// Beside resolves a path of the configuration file against its folder.
func (c *Config) Beside(path string) string {
	if filepath.IsAbs(path) || c.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.File), path)
}
