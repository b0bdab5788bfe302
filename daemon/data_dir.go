package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// WriteFile writes a file completely, or not at all. A new file gets the owner of the one
// that it replaces.
func WriteFile(file string, data []byte, mode fs.FileMode) error {
	return writeFile(file, data, mode, keepOwner)
}

// writeFile is WriteFile with a choice of the owner.
func writeFile(file string, data []byte, mode fs.FileMode, own func(f *os.File, former string) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".synthbot-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), own(f, file), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// keepOwner gives a new file the owner of the former one, if there is one.
func keepOwner(f *os.File, former string) error {
	info, err := os.Stat(former)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 && int(owner.Uid) == os.Geteuid() {
		return nil // it is the owner already
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
