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

// inspect calls f with a bot: the daemon's, or a new one that does not run.
func (p *program) inspect(ctx context.Context, f func(*daemon.Bot) error) error {
	if p.host != nil {
		return f(p.host)
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return p.Run(ctx, daemon.Life{
		Config: cfg, Log: p.Logger(cfg, slog.LevelWarn), Interfaces: daemon.InterfacesToLookAt, Look: f,
		Open: func() (daemon.Store, error) { return p.readStore(cfg) },
	})
}

// readDB opens the database; nil if there is none.
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

// readStore is readDB for commands that only read.
func (p *program) readStore(c *daemon.Config) (daemon.Store, error) {
	db, err := p.readDB(c)
	if db == nil {
		return daemon.EmptyStore{}, err
	}
	return db, err
}

// noDatabase is the error of a missing database.
func (p *program) noDatabase(c *daemon.Config) error {
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	return fmt.Errorf("there is no database yet in %s; the first conversation makes it", dir)
}

// withBot calls f with a bot that does not run, whose database must exist.
func (p *program) withBot(ctx context.Context, f func(*daemon.Bot) error) error {
	return p.inspect(ctx, func(b *daemon.Bot) error {
		if b.Data.DB == nil {
			return p.noDatabase(b.InForce().Config)
		}
		return f(b)
	})
}

// withDB calls f with the database, which must exist.
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
		return p.noDatabase(cfg)
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
	var b bytes.Buffer // printed when the view is over, so that a slow reader does not block it
	out := p.Out
	p.Out = &b
	err = s.View(ctx, f)
	p.Out = out
	if err == nil {
		_, err = b.WriteTo(out)
	}
	return p.closing(s, err)
}

// closing closes c after a command that returned err, unless it belongs to the daemon.
func (p *program) closing(c io.Closer, err error) error {
	if p.host != nil {
		return err
	}
	return errors.Join(err, c.Close())
}
