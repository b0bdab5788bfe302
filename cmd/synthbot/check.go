package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
)

func checkCommand(p *program) *cobra.Command {
	var online, changes bool
	var path string
	c := &cobra.Command{
		Use: "check", Short: "Check the configuration and report all problems at once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			place, err := core.ParsePath(path)
			if path != "" && (err != nil || place.IsPerson()) {
				return daemon.Usagef("--path: %q is not a place", path)
			}
			switch {
			case p.host != nil && changes:
				return p.blueprintChanges(c.Context(), p.host)
			case p.host != nil:
				return effective(p.Out, p.host, place)
			}
			return p.check(c.Context(), place, online)
		},
	}
	c.Flags().BoolVar(&online, "online", false, "also connect to each platform and engine to verify its credentials")
	c.Flags().StringVar(&path, "path", "", "print the settings of a `conversation` and the origin of each")
	c.Flags().BoolVar(&changes, changesFlag, false,
		"print only how blueprints changed; for `check`, which asks the daemon")
	_ = c.Flags().MarkHidden(changesFlag)
	return p.fileFlag(c)
}

// changesFlag is the flag by which a check asks the daemon.
const changesFlag = "changes"

// check does what `synthbot run` does before it connects. It changes nothing.
func (p *program) check(ctx context.Context, place core.Path, online bool) error {
	cfg, err := p.MustLoad()
	if err != nil {
		return err
	}
	database := "can be opened"
	open := func() (daemon.Store, error) {
		s, err := p.openStore(cfg, false)
		if errors.Is(err, core.ErrLocked) {
			database = "is in use by a running synthbot"
			return daemon.EmptyStore{}, nil
		}
		if _, ok := s.(daemon.EmptyStore); ok && err == nil {
			database = "will be made"
		}
		return s, err
	}
	look := func(b *daemon.Bot) (err error) {
		if place.IsZero() {
			p.printChecked(cfg, b.InForce().Engines.Names(), database)
			b.PrintNarrowEngines(ctx, p.Out)
			for _, f := range cfg.Speech.Probe() { // whether its programs are installed
				daemon.PrintFinding(p.Out, "speech", f)
				if f.Fatal {
					err = errOnline
				}
			}
			err = errors.Join(err, p.blueprints(ctx, b))
		} else {
			err = p.inEffect(ctx, b, place)
		}
		if online {
			err = errors.Join(err, p.checkOnline(ctx, b))
		}
		return err
	}
	return p.Run(ctx, daemon.Life{
		Config: cfg, Log: p.Logger(cfg, slog.LevelError), Open: open, Interfaces: daemon.EnabledInterfaces, Look: look,
	})
}

// printChecked prints what was checked, a line each.
func (p *program) printChecked(cfg *daemon.Config, engines []string, database string) {
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		dir = err.Error()
	}
	fmt.Fprintf(p.Out, "ok  configuration  %s\n", cfg.File)
	fmt.Fprintf(p.Out, "ok  persona        %s\n", cfg.Personas.Main.Name)
	fmt.Fprintf(p.Out, "ok  engines        %s\n", strings.Join(engines, ", "))
	fmt.Fprintf(p.Out, "ok  database       in %s, %s\n", dir, database)
	for _, e := range cfg.Enabled {
		fmt.Fprintf(p.Out, "ok  interface      %s\n", e.Name)
	}
	fmt.Fprintf(p.Out, "ok  plugins        %s\n", cmp.Or(strings.Join(cfg.ChosenNames(), ", "), "none"))
	if len(cfg.Enabled) == 0 {
		fmt.Fprintf(p.Out, "!   interface      none is enabled: `synthbot run` would refuse to start\n")
	}
}

// blueprints prints the warnings about blueprints, and how they differ from those that the
// bot used last. It asks the daemon that has the database, if there is one.
func (p *program) blueprints(ctx context.Context, b *daemon.Bot) error {
	own := b.InForce().Config.Blueprints()
	if own == nil {
		return nil
	}
	for _, f := range own.Faults() {
		fmt.Fprintf(p.Out, "!   blueprint      %s\n", f)
	}
	if b.Data.DB != nil {
		return p.blueprintChanges(ctx, b)
	}
	if d, ok := p.daemonAt(); ok {
		err := p.ask(ctx, d, []string{"check", "--" + changesFlag}, p.In, p.Out)
		if !errors.Is(err, exited(statusDone)) {
			const text = "the running synthbot does not say what it used last: changes are unknown"
			fmt.Fprintln(p.Out, "!   blueprint      "+text)
		}
	}
	return nil
}

// blueprintChanges prints how the blueprints differ from those that the bot used last.
func (p *program) blueprintChanges(ctx context.Context, b *daemon.Bot) error {
	own := b.InForce().Config.Blueprints()
	if own == nil {
		return nil
	}
	changes, err := own.Changes(ctx, b.Data.Items(daemon.BlueprintName))
	for _, f := range changes {
		text := "!   blueprint      %s (breaking: what uses it may fail)\n"
		if f.Warning {
			text = "ok  blueprint      %s (harmless)\n"
		}
		fmt.Fprintf(p.Out, text, f)
	}
	return err
}

// effective prints the settings of a place and the origin of each.
func effective(out io.Writer, b *daemon.Bot, place core.Path) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, row := range b.InForce().PlaceSettings(place) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.Name, row.Value, row.From)
	}
	return w.Flush()
}

// inEffect prints the settings that apply in a place: those of the running daemon, if there
// is one, which knows the changes by command.
func (p *program) inEffect(ctx context.Context, b *daemon.Bot, place core.Path) error {
	d, ok := p.daemonAt()
	if !ok {
		return effective(p.Out, b, place)
	}
	err := p.ask(ctx, d, []string{"check", "--path", place.String()}, p.In, p.Out)
	if errors.Is(err, exited(statusDone)) {
		return nil
	}
	return err
}
