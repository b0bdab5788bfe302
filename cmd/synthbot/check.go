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

// check does all that run does before it connects, and changes nothing.
func (p *program) check() error {
	cfg, err := p.mustLoad()
	if err != nil {
		return err
	}
	log := p.logger(cfg, slog.LevelError)
	database := "can be opened"
	b, err := p.assemble(cfg, log,
		func() (core.Store, error) {
			s, err := cfg.readStore(p)
			if errors.Is(err, core.ErrLocked) {
				database = "is in use by a running synthbot"
				return nothing{}, nil
			}
			if _, none := s.(nothing); none && err == nil {
				database = "will be made"
			}
			return s, err
		},
		func(m maker) ([]core.Interface, error) { return cfg.interfaces(m, nil) })
	if err != nil {
		return err
	}
	p.found(cfg, b.parts.engines.Names(), database)
	return b.Close()
}

// found prints what was checked, a line each.
func (p *program) found(cfg *Config, engines []string, database string) {
	dir, err := cfg.dataDir(p.getenv)
	if err != nil {
		dir = err.Error()
	}
	fmt.Fprintf(p.out, "ok  configuration  %s\n", cfg.file)
	fmt.Fprintf(p.out, "ok  persona        %s\n", cfg.cast.main.Name)
	fmt.Fprintf(p.out, "ok  engines        %s\n", strings.Join(engines, ", "))
	fmt.Fprintf(p.out, "ok  database       in %s, %s\n", dir, database)
	for _, e := range cfg.enabled {
		fmt.Fprintf(p.out, "ok  interface      %s\n", e.name)
	}
	if len(cfg.enabled) == 0 {
		fmt.Fprintf(p.out, "!   interface      none is enabled: `synthbot run` would refuse to start\n")
	}
}
