package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"synthbot/core"
)

func (p *program) checkCommand() *cobra.Command {
	var online bool
	var path string
	c := &cobra.Command{
		Use: "check", Short: "Check everything up to connecting, and tell all faults at once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			place, err := core.ParsePath(path)
			if path != "" && (err != nil || place.IsPerson()) {
				return usagef("--path: %q is no place", path)
			}
			return p.check(c.Context(), place, online)
		},
	}
	c.Flags().BoolVar(&online, "online", false, "also ask each platform and engine who we are")
	c.Flags().StringVar(&path, "path", "", "print the settings that hold in a `place`, and where each comes from")
	return p.fileFlag(c)
}

// check does all that run does before it connects, and changes nothing.
func (p *program) check(ctx context.Context, place core.Path, online bool) error {
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
	switch {
	case !place.IsZero():
		err = b.effective(p, place)
	default:
		p.found(cfg, b.parts.engines.Names(), database)
	}
	if online {
		err = errors.Join(err, b.checkOnline(ctx, p))
	}
	return closing(b, err)
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
