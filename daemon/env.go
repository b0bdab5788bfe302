package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

// Env is what a bot gets from the process that runs it.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Clock    func() time.Time
	Version  string
	File     string // the configuration file; empty: the first of the usual places

	Patience time.Duration             // with the database; 0: its default
	Fault    func(job string)          // of the database, for tests
	Stuck    func(job string)          // is called when the database makes no progress
	Stopping func(grace time.Duration) // is called when the bot begins to stop

	levels logs.Levels
}

// StoreOptions returns the options for all databases.
func (e *Env) StoreOptions() memory.Options {
	return memory.Options{OnStuck: e.Stuck, Patience: e.Patience, BeforeJob: e.Fault}
}

// Load reads the configuration and the files that it names. It returns all faults at once.
func (e *Env) Load() (*Config, error) {
	c := &Config{File: e.ConfigFile()}
	o := config.Options{Getenv: e.Getenv}
	var d *config.Document
	if c.File == "" {
		d = config.Parse("built-in defaults", nil, o)
	} else {
		d = config.Open(c.File, o)
	}
	err := c.decode(d)
	c.read = c.Clock(e.Clock)()
	return c, err
}

// ConfigFile returns the configuration file: the given one, or the first of the usual ones
// that exists, or "".
func (e *Env) ConfigFile() string {
	for _, asked := range []string{e.File, e.Getenv("SYNTHBOT_CONFIG")} {
		if asked != "" {
			return asked
		}
	}
	for _, usual := range []string{"config.toml", "/etc/synthbot/config.toml"} {
		if _, err := os.Stat(usual); !errors.Is(err, fs.ErrNotExist) {
			return usual
		}
	}
	return ""
}

// MustLoad is Load for commands that need a file.
func (e *Env) MustLoad() (*Config, error) {
	c, err := e.Load()
	if err == nil && c.File == "" {
		err = Usagef("no configuration file: give one with -c, or write ./config.toml (config.example.toml shows how)")
	}
	return c, err
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
