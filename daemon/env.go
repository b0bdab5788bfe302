package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"synthbot/admin"
	"synthbot/config"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// Env is the process around a bot: its streams, environment and clock.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Clock    func() time.Time
	Version  string
	File     string // the configuration file; empty: the first of usualFiles that exists

	Patience   time.Duration             // how long a database job may run; 0: the default of package memory
	BeforeJob  func(job string)          // is called before each database job, for tests
	OnStuck    func(job string)          // is called when a database job makes no progress
	OnStopping func(grace time.Duration) // is called when the bot begins to stop

	levels logs.Levels
	lines  admin.Lines // the latest log lines, for the admin page
}

// StoreOptions returns the options for all databases.
func (e *Env) StoreOptions() memory.Options {
	return memory.Options{OnStuck: e.OnStuck, Patience: e.Patience, BeforeJob: e.BeforeJob}
}

// Load reads the configuration and the files that it names. Its error reports all problems at once.
func (e *Env) Load() (*Config, error) {
	c := &Config{File: e.ConfigFile(), stamps: make(stamps)}
	o := config.Options{Getenv: e.Getenv, Open: func(file string) (io.ReadCloser, error) {
		c.stamps.add(file)
		return os.Open(file)
	}}
	var d *config.Document
	if c.File == "" {
		for _, usual := range usualFiles {
			c.stamps.add(usual)
		}
		d = config.Parse("built-in defaults", nil, o)
	} else {
		d = config.Open(c.File, o)
	}
	err := c.decode(d)
	c.read = c.Clock(e.Clock)()
	return c, err
}

var usualFiles = []string{"config.toml", ServiceConfig}

// ConfigFile returns the configuration file: the given one, or the first of the usual ones that exists, or "".
func (e *Env) ConfigFile() string {
	asked := cmp.Or(e.File, e.Getenv("SYNTHBOT_CONFIG"))
	if asked != "" {
		return asked
	}
	for _, usual := range usualFiles {
		if _, err := os.Stat(usual); !errors.Is(err, fs.ErrNotExist) {
			return usual
		}
	}
	return ""
}

// MustLoad is Load for commands that need a configuration file.
func (e *Env) MustLoad() (*Config, error) {
	c, err := e.Load()
	return c, cmp.Or(err, RequireFile(c))
}

// loadAgain is MustLoad for a running bot. It refuses a file that can be read only once, such as a pipe.
func (e *Env) loadAgain() (*Config, error) {
	file := e.ConfigFile()
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		c := &Config{File: file, stamps: make(stamps)}
		c.stamps.add(file)
		return c, Usagef("%s is not a regular file and cannot be read again; restart the bot to change it", file)
	}
	return e.MustLoad()
}

// RequireFile returns an error if there is no configuration file.
func RequireFile(c *Config) error {
	if c.File == "" {
		return Usagef("no configuration file: `synthbot init` asks a few questions and writes one; -c names another")
	}
	return nil
}

// HidesDataDir reports whether the file may name a data directory that could not be read.
func HidesDataDir(c *Config) bool {
	d := c.Document
	return c.Bot.DataDir == "" && (d.Broken() || d.HasFault("bot") || d.Line("bot", "data_dir") > 0)
}

// Parse reads a configuration that is not on disk. References to secrets stay as they are.
func (e *Env) Parse(file, text string) (*Config, error) {
	c := &Config{File: file}
	return c, c.decode(config.Parse(file, []byte(text), config.Options{Getenv: e.Getenv, References: true}))
}

// Locale returns the user's language tag from the environment; "" for none.
func (e *Env) Locale() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		tag, _, _ := strings.Cut(e.Getenv(name), ".")
		switch tag {
		case "":
		case "C", "POSIX":
			return ""
		default:
			return strings.ReplaceAll(tag, "_", "-")
		}
	}
	return ""
}

// UsageError is an error that users fix by another command line or configuration.
type UsageError struct{ error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Paths of a bot that runs as a systemd service.
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
	case samePath(c.File, ServiceConfig):
		return ServiceState, nil
	case getenv("XDG_STATE_HOME") != "":
		return filepath.Join(getenv("XDG_STATE_HOME"), "synthbot"), nil
	case getenv("HOME") != "":
		return filepath.Join(getenv("HOME"), ".local", "state", "synthbot"), nil
	}
	return "", Usagef("no place for the database: set data_dir in [bot], or $STATE_DIRECTORY or $HOME")
}

// OwnsFile reports whether the bot made the file or folder with a name in its data directory.
func OwnsFile(name string) bool {
	ofDatabase := strings.HasPrefix(strings.TrimPrefix(name, "."), memory.FileName)
	return ofDatabase || name == admin.SocketName || name == ImportFolder
}

// samePath reports whether a file name, relative or absolute, means the absolute path. DataDir uses it because
// systemd sets $STATE_DIRECTORY for the daemon alone, and other commands must find the same directory.
func samePath(name, path string) bool {
	full, err := filepath.Abs(name)
	return err == nil && name != "" && full == path
}

// Beside resolves a path of the configuration file against its folder.
func (c *Config) Beside(path string) string {
	if filepath.IsAbs(path) || c.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.File), path)
}

// programBeside is Beside for a program. A name without a slash stays: it is looked up in PATH.
func (c *Config) programBeside(name string) string {
	full, err := filepath.Abs(c.Beside(name))
	if err != nil || !strings.Contains(name, "/") {
		return name
	}
	return full
}

// RegularFile returns the file that a name means, without symbolic links. If it exists and is something else, such as
// a device or a folder, RegularFile returns an error: replacing it or changing its mode could damage the machine.
func RegularFile(name string) (string, error) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return "", Usagef("%s is not a regular file; synthbot does not change it", name)
	}
	return name, nil
}

// WriteFile writes a regular file completely, or not at all. It follows symbolic links, and keeps the owner.
func WriteFile(file string, data []byte, mode fs.FileMode) error {
	return writeFile(file, data, mode, keepOwner)
}

// writeFile is WriteFile with a function that sets the owner of the new file.
func writeFile(file string, data []byte, mode fs.FileMode, setOwner func(f *os.File, former string) error) error {
	file, err := RegularFile(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".synthbot-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), setOwner(f, file), f.Sync(), f.Close())
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
		return nil // the new file has that owner already
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
