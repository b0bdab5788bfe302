package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		Open: func() (daemon.Store, error) { return p.openStore(cfg, false) },
	})
}

// openStore opens the database. A missing one is made, or else the store is empty.
func (p *program) openStore(c *daemon.Config, create bool) (daemon.Store, error) {
	if p.host != nil {
		return p.host.Data.Store, nil
	}
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, memory.FileName)); errors.Is(err, fs.ErrNotExist) && !create {
		return daemon.EmptyStore{}, nil
	}
	o := p.StoreOptions()
	o.Log = p.Logger(c, slog.LevelWarn)
	db, err := memory.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return db, nil
}

func (p *program) withStore(create bool, f func(*daemon.Config, daemon.Store) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	s, err := p.openStore(cfg, create)
	if err != nil {
		return err
	}
	err = f(cfg, s)
	if p.host != nil {
		return err
	}
	return errors.Join(err, s.Close())
}

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
	return p.withStore(false, func(cfg *daemon.Config, s daemon.Store) error {
		db, ok := s.(*memory.DB)
		if !ok {
			return p.noDatabase(cfg)
		}
		return f(db)
	})
}

// look calls f with a view of the database.
func (p *program) look(ctx context.Context, f func(core.View) error) error {
	return p.withStore(false, func(_ *daemon.Config, s daemon.Store) error {
		var b bytes.Buffer // printed when the view is over, so that a slow reader does not block it
		out := p.Out
		p.Out = &b
		err := s.View(ctx, f)
		p.Out = out
		if err == nil {
			_, err = b.WriteTo(out)
		}
		return err
	})
}
