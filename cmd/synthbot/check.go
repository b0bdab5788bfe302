package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"synthbot/core"
)

func (p *program) checkCommand() *cobra.Command {
	return p.fileFlag(&cobra.Command{
		Use: "check", Short: "Check everything up to connecting, and tell all faults at once", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.check() },
	})
}

// check does all that run does before it connects.
func (p *program) check() error {
	cfg, err := p.mustLoad()
	if err != nil {
		return err
	}
	who, err := cfg.loadCast()
	if err != nil {
		return err
	}
	log := p.logger(cfg, slog.LevelError)
	engines, err := cfg.engines(p, log)
	if err != nil {
		return err
	}
	b, err := p.assemble(cfg, log,
		func() (core.Store, error) { return cfg.openStore(p, log) },
		func() ([]core.Interface, error) { return cfg.interfaces(p, nil, nil) })
	database := "can be opened"
	switch {
	case errors.Is(err, core.ErrLocked):
		database = "is in use by a running synthbot"
	case err != nil:
		return err
	default:
		if err := b.Close(); err != nil {
			return err
		}
	}
	dir, err := cfg.dataDir(p.getenv)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "ok  configuration  %s\n", cfg.file)
	fmt.Fprintf(p.out, "ok  persona        %s\n", who.main.Name)
	fmt.Fprintf(p.out, "ok  engines        %s\n", strings.Join(engines.Names(), ", "))
	fmt.Fprintf(p.out, "ok  database       in %s, %s\n", dir, database)
	for _, e := range cfg.enabled {
		fmt.Fprintf(p.out, "ok  interface      %s\n", e.name)
	}
	if len(cfg.enabled) == 0 {
		fmt.Fprintf(p.out, "!   interface      none is enabled: `synthbot run` would refuse to start\n")
	}
	return nil
}
