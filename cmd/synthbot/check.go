package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

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

// What `check --online` goes by.
const (
	onlineTime = 40 * time.Second
	leastDisk  = 200 << 20 // bytes that should be free
)

// errOnline is the error after all findings were printed.
var errOnline = errors.New("something needs to be fixed, see above")

// checkOnline asks each platform and engine who we are, tries speech, and looks at the machine.
// It prints one line each, with a fix if one is needed.
func (p *program) checkOnline(ctx context.Context, b *daemon.Bot) error {
	ctx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	cfg := b.InForce().Config
	type group struct {
		name string
		look func() []core.Finding
	}
	groups := []group{{"machine", func() []core.Finding { return machine(cfg, p.Getenv) }}}
	for _, i := range b.InForce().Interfaces {
		if prober, ok := i.(core.Prober); ok {
			groups = append(groups, group{i.Name(), func() []core.Finding { return prober.Probe(ctx) }})
		}
	}
	engines := b.InForce().Engines
	groups = append(groups, group{"engine", func() []core.Finding { return daemon.ProbeEngines(ctx, engines) }})
	groups = append(groups, group{"speech", func() []core.Finding { return cfg.Speech.Try(ctx) }})
	found := make([][]core.Finding, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() { found[i] = g.look() })
	}
	all.Wait()
	fatal := false
	for i, g := range groups {
		for _, f := range found[i] {
			fatal = fatal || f.Fatal && f.Fix != ""
			daemon.PrintFinding(p.Out, g.name, f)
		}
	}
	if fatal {
		return errOnline
	}
	return nil
}

// machine looks at what the daemon will run on.
func machine(c *daemon.Config, getenv func(string) string) []core.Finding {
	list := []core.Finding{modeOf(c.File, 0o037, "the configuration may hold secrets; chmod 600 it")}
	files := c.Document.SecretFiles()
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		list = append(list, modeOf(file, 0o037, "it holds a secret; chmod 600 it"))
	}
	dir, err := c.DataDir(getenv)
	if err != nil {
		return append(list, core.Finding{What: "data_dir", Found: "unknown", Fix: err.Error(), Fatal: true})
	}
	list = append(list, disk(dir))
	if _, err := os.Stat(dir); err == nil {
		list = append(list, modeOf(dir, 0o077, "it holds private talk; chmod 700 it"))
	}
	return append(list, credentials(getenv("CREDENTIALS_DIRECTORY"))...)
}

// modeOf finds fault with a file that others may read.
func modeOf(file string, not os.FileMode, fix string) core.Finding {
	info, err := os.Stat(file)
	if err != nil {
		return core.Finding{What: "mode", Found: file, Fix: err.Error()}
	}
	f := core.Finding{What: "mode", Found: fmt.Sprintf("%s is %04o", filepath.Base(file), info.Mode().Perm())}
	if info.Mode().Perm()&not != 0 {
		f.Fix = fix
	}
	return f
}

// disk finds fault with a disk that is nearly full.
func disk(dir string) core.Finding {
	for dir != "/" && dir != "." {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return core.Finding{What: "disk", Found: dir, Fix: err.Error()}
	}
	free := s.Bavail * uint64(s.Bsize)
	f := core.Finding{What: "disk", Found: fmt.Sprintf("%d MiB are free", free>>20)}
	if free < leastDisk {
		f.Fix = "make room, or move data_dir"
	}
	return f
}

// credentials lists what systemd hands over.
func credentials(dir string) []core.Finding {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []core.Finding{{What: "credentials", Found: dir, Fix: err.Error(), Fatal: true}}
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return []core.Finding{{What: "credentials", Found: "from systemd: " + strings.Join(names, ", ")}}
}
