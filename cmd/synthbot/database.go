package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"synthbot/core"
	"synthbot/daemon"
	"synthbot/memory"
)

// looking is a bot to look at: the daemon's, or one that is made for it.
func (p *program) looking(cfg *daemon.Config, log *slog.Logger, further ...core.Plugin) (*daemon.Bot, error) {
	if p.host == nil {
		open := func() (core.Store, error) { return p.readStore(cfg) }
		return p.Assemble(cfg, log, open, daemon.InterfacesToLookAt, further...)
	}
	return p.host.Reconfigured(cfg, log, further...)
}

// closing closes c after an action that ended with err; what is the daemon's
// stays open.
func (p *program) closing(c io.Closer, err error) error {
	if p.host != nil {
		return err
	}
	return closing(c, err)
}

// readDB opens the database where there is one; nil where there is none.
func (p *program) readDB(c *daemon.Config) (*memory.DB, error) {
	if p.host != nil {
		return p.host.Data.DB, nil
	}
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, memory.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	o := p.StoreOptions()
	o.Log = p.Logger(c, slog.LevelWarn)
	return memory.Open(dir, o)
}

// readStore is readDB for those who only look.
func (p *program) readStore(c *daemon.Config) (core.Store, error) {
	db, err := p.readDB(c)
	if db == nil {
		return daemon.EmptyStore{}, err
	}
	return db, err
}

// unmade says that there is nothing to work on, and where it would be.
func (p *program) unmade(c *daemon.Config) error {
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	return fmt.Errorf("there is no database yet in %s; the first conversation makes it", dir)
}

// withBot calls f with a bot to look at, whose database must be there.
func (p *program) withBot(f func(*daemon.Bot) error) error {
	if p.host != nil {
		return f(p.host)
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	b, err := p.looking(cfg, p.Logger(cfg, slog.LevelWarn))
	if err != nil {
		return err
	}
	if b.Data.DB == nil {
		return closing(b, p.unmade(cfg))
	}
	return closing(b, f(b))
}

// withDB calls f with the database, which must be there.
func (p *program) withDB(f func(*memory.DB) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	db, err := p.readDB(cfg)
	if err != nil {
		return err
	}
	if db == nil {
		return p.unmade(cfg)
	}
	return p.closing(db, f(db))
}

// look calls f with a view of the database.
func (p *program) look(ctx context.Context, f func(core.View) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	s, err := p.readStore(cfg)
	if err != nil {
		return err
	}
	var b bytes.Buffer // printed when the view is over: who reads slowly holds nobody up
	out := p.Out
	p.Out = &b
	err = s.View(ctx, f)
	p.Out = out
	if err == nil {
		_, err = b.WriteTo(out)
	}
	return p.closing(s, err)
}

// closing closes c after an action that ended with err.
func closing(c io.Closer, err error) error {
	closed := c.Close()
	if err == nil {
		err = closed
	}
	return err
}
