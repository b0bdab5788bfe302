package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/turn"
	"synthbot/plugins/blueprint"
)

func (p *program) checkCommand() *cobra.Command {
	var online, changes bool
	var path string
	c := &cobra.Command{
		Use: "check", Short: "Check everything up to connecting, and tell all faults at once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			place, err := core.ParsePath(path)
			if path != "" && (err != nil || place.IsPerson()) {
				return usagef("--path: %q is no place", path)
			}
			if changes && p.host != nil {
				return p.ownChanges(c.Context())
			}
			if p.host != nil {
				return p.inEffect(c.Context(), p.host.bot, place)
			}
			return p.check(c.Context(), place, online)
		},
	}
	c.Flags().BoolVar(&online, "online", false, "also ask each platform and engine who we are")
	c.Flags().StringVar(&path, "path", "", "print the settings that hold in a `place`, and where each comes from")
	c.Flags().BoolVar(&changes, changesFlag, false, "tell how blueprints changed, and nothing else: of the daemon for `check`")
	_ = c.Flags().MarkHidden(changesFlag)
	return p.fileFlag(c)
}

// changesFlag is what a check asks the daemon for that has the database.
const changesFlag = "changes"

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
		err = p.inEffect(ctx, b, place)
	default:
		p.found(cfg, b.parts.engines.Names(), database)
		b.narrow(ctx, p.out)
		err = p.blueprints(ctx, cfg, b)
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
	fmt.Fprintf(p.out, "ok  plugins        %s\n", orElse(strings.Join(cfg.chosenNames(), ", "), "none"))
	if len(cfg.enabled) == 0 {
		fmt.Fprintf(p.out, "!   interface      none is enabled: `synthbot run` would refuse to start\n")
	}
}

// narrow tells of engines whose limits hold no prompt at all in some place: there
// they are passed over with every turn.
func (b *bot) narrow(ctx context.Context, out io.Writer) {
	o := b.options(b.parts)
	o.Injectors, o.Recons, o.Bios = nil, nil, nil // a check connects to nothing
	turns := turn.New(o)
	for _, e := range b.parts.config.Engines {
		for _, place := range b.parts.config.samples() {
			if e.Disabled {
				continue
			}
			_, err := turns.Preview(ctx, core.Message{Path: place, ID: "check", Text: "hello", Time: o.Clock(), Private: true, Addressed: core.Direct}, e.Limits())
			if long := (*core.ModelError)(nil); errors.As(err, &long) {
				fmt.Fprintf(out, "!   engine         %s is passed over in %s, where no prompt fits: %s\n", e.Name, place, oneLine(long.Err.Error()))
				break
			}
		}
	}
}

// samples are places that differ in what a prompt holds at least.
func (c *Config) samples() (places []core.Path) {
	for _, e := range c.enabled {
		if p, err := core.MakePath(e.name, "1"); err == nil {
			places = append(places, p)
		}
	}
	for i := range c.Overrides {
		if o := &c.Overrides[i]; o.Persona != "" {
			places = append(places, o.Path)
		}
	}
	return places
}

// blueprints tells what is odd about the blueprints, and how they differ from what
// the bot used last. Where a daemon has the database, it is asked.
func (p *program) blueprints(ctx context.Context, cfg *Config, b *bot) error {
	own := cfg.blueprints()
	if own == nil {
		return nil
	}
	for _, f := range own.Faults() {
		fmt.Fprintf(p.out, "!   blueprint      %s\n", f)
	}
	if b.db != nil {
		return p.blueprintChanges(ctx, cfg, b)
	}
	if d, ok := p.daemonAt(); ok {
		status := exited(0)
		if err := p.ask(ctx, d, []string{"check", "--" + changesFlag}, nil, p.out); !errors.As(err, &status) || status != 0 {
			fmt.Fprintf(p.out, "!   blueprint      the running synthbot does not say what it used last, so that changes cannot be told\n")
		}
	}
	return nil
}

// ownChanges is what the daemon answers.
func (p *program) ownChanges(ctx context.Context) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return p.blueprintChanges(ctx, cfg, p.host.bot)
}

// blueprintChanges tells how the blueprints differ from what the bot used last.
func (p *program) blueprintChanges(ctx context.Context, cfg *Config, b *bot) error {
	own := cfg.blueprints()
	if own == nil {
		return nil
	}
	changes, err := own.Changes(ctx, b.items(blueprintName))
	for _, f := range changes {
		if f.Warning {
			fmt.Fprintf(p.out, "ok  blueprint      %s (harmless)\n", f)
		} else {
			fmt.Fprintf(p.out, "!   blueprint      %s (breaking: what uses it may fail)\n", f)
		}
	}
	return err
}

// blueprints are those of the plugin, where it is turned on.
func (c *Config) blueprints() *blueprint.Config {
	for _, chosen := range c.chosen {
		if own, ok := chosen.own.(*blueprint.Config); ok {
			return own
		}
	}
	return nil
}
