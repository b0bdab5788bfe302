package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"synthbot/config"
	"synthbot/core"
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

	logs logs
	db   atomic.Pointer[memory.DB] // while it is open
	bot  atomic.Pointer[Bot]       // that was assembled last
}

// OpenStore opens the configuration's database, making it where there is none.
func (p *Env) OpenStore(c *Config, log *slog.Logger) (core.Store, error) {
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return nil, err
	}
	o := p.StoreOptions()
	o.Config, o.Log = c.Memory, inRoom(log, "memory")
	o.Full = func(full bool) {
		if b := p.bot.Load(); b != nil {
			b.monitor.diskFull(full)
		}
	}
	db, err := memory.Open(dir, o)
	if err != nil {
		return nil, err
	}
	p.db.Store(db)
	return db, nil
}

// StoreOptions are the options of every database that is opened.
func (p *Env) StoreOptions() memory.Options {
	return memory.Options{Stuck: p.Stuck, Patience: p.Patience, Fault: p.Fault}
}

// Load reads the configuration and all that it names, all faults at once.
func (p *Env) Load() (*Config, error) {
	c := &Config{File: p.ConfigFile()}
	o := config.Options{Getenv: p.Getenv}
	var d *config.Document
	if c.File == "" {
		d = config.Parse("built-in defaults", nil, o)
	} else {
		d = config.Open(c.File, o)
	}
	err := c.decode(d)
	c.read = c.Clock(p.Clock)()
	return c, err
}

// ConfigFile chooses the configuration file; "" where there is none to be found.
func (p *Env) ConfigFile() string {
	for _, asked := range []string{p.File, p.Getenv("SYNTHBOT_CONFIG")} {
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

// MustLoad is load for commands that make no sense without a file.
func (p *Env) MustLoad() (*Config, error) {
	c, err := p.Load()
	if err == nil && c.File == "" {
		err = Usagef("no configuration file: give one with -c, or write ./config.toml (config.example.toml shows how)")
	}
	return c, err
}

// Parse reads a configuration that is not on disk; secrets are left where they are.
func (p *Env) Parse(file, text string) (*Config, error) {
	c := &Config{File: file}
	return c, c.decode(config.Parse(file, []byte(text), config.Options{Getenv: p.Getenv, References: true}))
}

// UsageError is the error of somebody who has to change his command or his file.
type UsageError struct{ error }

func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
