package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"synthbot/core/txt"
	"synthbot/daemon"
	"synthbot/memory"
	"synthbot/setup"
)

func checkCommand(p *program) *cobra.Command {
	var online, fix, changes bool
	var path string
	found := &findings{out: p.Out, format: formatText}
	c := &cobra.Command{
		Use: "check", Short: "Check the configuration and report all problems at once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			place, err := core.ParsePath(path)
			if path != "" && (err != nil || place.IsPerson()) {
				return daemon.Usagef("--path: %q is not a place", path)
			}
			switch {
			case p.runningBot != nil && changes:
				return reportChangesInForce(c.Context(), p.runningBot, found)
			case p.runningBot != nil:
				return printSettings(p.runningBot, place, found)
			case fix:
				if err := p.fix(found); err != nil {
					return err
				}
			}
			return found.faults(p.check(c.Context(), place, online, found))
		},
	}
	c.Flags().Var(&found.format, "format", "text or json (one object a line)")
	c.Flags().BoolVar(&fix, "fix", false, "first fix what can be fixed safely, and print each change: "+
		"file modes, a missing data directory, keys that have moved")
	c.Flags().BoolVar(&online, "online", false, "also connect to each platform and engine to verify its credentials")
	c.Flags().StringVar(&path, "path", "", "print the settings of a `conversation` and the origin of each")
	c.Flags().BoolVar(&changes, changesFlag, false,
		"print only what differs from the configuration in force; `check` asks the daemon with it")
	_ = c.Flags().MarkHidden(changesFlag)
	_ = c.RegisterFlagCompletionFunc("path", completePlaces(p))
	return p.addConfigFlag(c)
}

// changesFlag is the flag with which `check` asks the daemon.
const changesFlag = "changes"

// check does what `synthbot run` does before it connects. It changes nothing.
func (p *program) check(ctx context.Context, place core.Path, online bool, found *findings) error {
	cfg, err := mustLoad(p)
	for _, e := range cfg.Enabled {
		own := e.Account()
		if err := setup.CheckToken(own.Platform, own.Token); err != nil {
			found.add("token", core.Finding{Found: e.Name, Fix: err.Error()})
		}
	}
	if err != nil {
		return err
	}
	database, log := core.Finding{Found: "can be opened", Fatal: true}, p.Logger(cfg, slog.LevelError)
	open := func() (daemon.Store, error) {
		s, err := p.openStore(cfg, log, accessRead)
		_, isEmpty := s.(daemon.EmptyStore)
		switch {
		case errors.Is(err, core.ErrLocked):
			database.Found = "is in use by a running synthbot"
			return daemon.EmptyStore{}, nil
		case errors.Is(err, memory.ErrOlder):
			database.Found = "has an older format; the bot converts it at its next start and keeps a copy"
			return daemon.EmptyStore{}, nil
		case err != nil && place.IsZero(): // the rest is checked anyway
			database.Found, database.Fix = "cannot be opened", txt.Line(err.Error())
			return daemon.EmptyStore{}, nil
		case err == nil && isEmpty:
			database.Found = "will be created"
		case err == nil && place.IsZero() && cfg.Store.URL.IsZero():
			if err := s.(*memory.DB).Check(ctx); err != nil {
				database.Found, database.Fix = "cannot be read", txt.Line(err.Error())
				return daemon.EmptyStore{}, s.Close()
			}
		}
		return s, err
	}
	inspect := func(b *daemon.Bot) (err error) {
		if !place.IsZero() {
			err = p.showSettings(ctx, b, place, found)
		} else {
			p.reportParts(cfg, b.InForce().Engines.Names(), database, found)
			if !cfg.Store.URL.IsZero() {
				server, err := cfg.Store.Probe(ctx)
				found.addAll("database", server)
				if err != nil {
					return err
				}
			}
			found.addAll("engine", b.EnginesTooSmall(ctx))
			found.addAll("speech", cfg.Speech.Probe()) // whether its programs are installed
			found.addAll("program", setup.MissingPrograms(cfg))
			err = p.reportChanges(ctx, b, found)
		}
		if online {
			p.checkOnline(ctx, b, found)
		}
		if found.fatal {
			err = errors.Join(err, errFindings)
		}
		return err
	}
	return p.Run(ctx, daemon.RunOptions{
		Config: cfg, Log: log, Open: open, Interfaces: daemon.EnabledInterfaces, Inspect: inspect,
	})
}

// errFindings is the error if a printed finding is fatal.
var errFindings = errors.New("something needs to be fixed, see above")

func (p *program) reportParts(cfg *daemon.Config, engines []string, database core.Finding, found *findings) {
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		dir = err.Error()
	}
	found.add("configuration", core.Finding{Found: cfg.File})
	found.add("persona", core.Finding{Found: cfg.Personas.Main.Name})
	found.add("engines", core.Finding{Found: strings.Join(engines, ", ")})
	where := "in " + dir
	if !cfg.Store.URL.IsZero() {
		where = "on the server of [store], files beside it " + where
	}
	database.Found, database.Fix = where+", "+database.Found, cmp.Or(dataDirFix(dir), database.Fix)
	found.add("database", database)
	shared := setup.SharedFolder(dir)
	if shared != "" {
		found.add("database", core.Finding{Fix: shared})
	}
	for _, e := range cfg.Enabled {
		found.add("interface", core.Finding{Found: e.Name})
	}
	found.add("plugins", core.Finding{Found: cmp.Or(strings.Join(cfg.ChosenNames(), ", "), "none")})
	if len(cfg.Enabled) == 0 {
		found.add("interface", core.Finding{Found: "none is enabled", Fix: "`synthbot run` would refuse to start"})
	}
}

// dataDirFix returns why the data directory cannot be written; "" if it can. To find out, it creates a folder in
// it, or in the nearest existing one above it, and removes the folder: file modes alone do not tell.
func dataDirFix(dir string) string {
	dir = nearestExisting(dir)
	made, err := os.MkdirTemp(dir, ".synthbot-*")
	if err == nil {
		err = os.Remove(made)
	}
	if err == nil {
		return ""
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Sprintf("%s cannot be written: %v; change its owner or mode, or set data_dir in [bot]", dir, err)
}

// nearestExisting returns a folder, or the nearest one above it that exists.
func nearestExisting(dir string) string {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		return nearestExisting(filepath.Dir(dir))
	}
	return dir
}

// reportChanges reports the warnings about blueprints, and what differs from the configuration that the daemon
// uses, or used last.
func (p *program) reportChanges(ctx context.Context, b *daemon.Bot, found *findings) error {
	own := b.InForce().Config.Blueprints()
	if own != nil {
		for _, f := range own.Faults() {
			found.add("blueprint", core.Finding{Fix: f.String()})
		}
	}
	d, running := p.dialDaemon()
	switch {
	case running:
		args := []string{"check", "--" + changesFlag, "--format", found.format.String()}
		err := p.runInDaemon(ctx, d, args, p.In, p.output.To)
		if !errors.Is(err, exitStatus(statusDone)) {
			found.add("daemon", core.Finding{Fix: "the running synthbot did not answer: changes are unknown"})
		}
	case b.Data.DB != nil:
		return reportChangesInForce(ctx, b, found)
	}
	return nil
}

// reportChangesInForce reports which changed keys apply after a restart only, and how blueprints differ from
// those that the bot used last.
func reportChangesInForce(ctx context.Context, b *daemon.Bot, found *findings) error {
	for _, key := range b.AfterRestart() {
		found.add("daemon", core.Finding{Found: key, Fix: "changes after a restart only"})
	}
	own := b.InForce().Config.Blueprints()
	if own == nil {
		return nil
	}
	changes, err := own.Changes(ctx, b.Data.Items(daemon.BlueprintName))
	for _, f := range changes {
		if f.Warning {
			found.add("blueprint", core.Finding{Found: f.String() + " (harmless)"})
		} else {
			found.add("blueprint", core.Finding{Fix: f.String() + " (breaking: what uses it may fail)"})
		}
	}
	return err
}

// printSettings prints the settings of a place, by the configuration of the bot.
func printSettings(b *daemon.Bot, place core.Path, found *findings) error {
	w := tabwriter.NewWriter(found.out, 0, 0, 2, ' ', 0)
	if found.format != formatJSON {
		fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	}
	for _, row := range b.InForce().PlaceSettings(place) {
		if found.format == formatJSON {
			printJSON(w, map[string]string{"setting": row.Name, "value": row.Value, "from": row.From})
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.Name, row.Value, row.From)
	}
	return w.Flush()
}

// showSettings prints the settings of a place. If a daemon runs, it prints them, because it knows the changes by
// command.
func (p *program) showSettings(ctx context.Context, b *daemon.Bot, place core.Path, found *findings) error {
	d, ok := p.dialDaemon()
	if !ok {
		return printSettings(b, place, found)
	}
	args := []string{"check", "--path", place.String(), "--format", found.format.String()}
	err := p.runInDaemon(ctx, d, args, p.In, p.output.To)
	if errors.Is(err, exitStatus(statusDone)) {
		return nil
	}
	return err
}

// Limits of `check --online`.
const (
	onlineTime  = 40 * time.Second
	minFreeDisk = 200 << 20 // bytes that should be free
)

// checkOnline asks each platform and engine whether it accepts the bot, tries speech, and checks the machine.
func (p *program) checkOnline(ctx context.Context, b *daemon.Bot, out *findings) {
	ctx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	cfg := b.InForce().Config
	type group struct {
		name  string
		probe func() []core.Finding
	}
	groups := []group{{"machine", func() []core.Finding { return checkMachine(cfg, p.Getenv) }}}
	for _, i := range b.InForce().Interfaces {
		// The parts of one interface have one account.
		known := slices.ContainsFunc(groups, func(g group) bool { return g.name == i.Name() })
		if prober, ok := i.(core.Prober); ok && !known {
			groups = append(groups, group{i.Name(), func() []core.Finding { return prober.Probe(ctx) }})
		}
	}
	engines := b.InForce().Engines
	groups = append(groups,
		group{"engine", func() []core.Finding { return daemon.ProbeEngines(ctx, engines) }},
		group{"speech", func() []core.Finding { return cfg.Speech.Try(ctx) }})
	found := make([][]core.Finding, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() { found[i] = g.probe() })
	}
	all.Wait()
	for i, g := range groups {
		out.addAll(g.name, found[i])
	}
}

func checkMachine(c *daemon.Config, getenv func(string) string) []core.Finding {
	list := []core.Finding{checkMode(c.File, 0o037, "the configuration may hold secrets; chmod 600 it")}
	for _, file := range c.Document.SecretFiles() {
		list = append(list, checkMode(file, 0o037, "it holds a secret; chmod 600 it"))
	}
	dir, err := c.DataDir(getenv)
	if err != nil {
		return append(list, core.Finding{What: "data_dir", Found: "unknown", Fix: err.Error(), Fatal: true})
	}
	list = append(list, checkDisk(dir))
	if _, err := os.Stat(dir); err == nil {
		fix := cmp.Or(setup.SharedFolder(dir), "it holds private messages; chmod 700 it")
		list = append(list, checkMode(dir, 0o077, fix))
	}
	return append(list, listCredentials(getenv("CREDENTIALS_DIRECTORY"))...)
}

// checkMode reports a file whose mode has forbidden rights.
func checkMode(file string, forbidden os.FileMode, fix string) core.Finding {
	info, err := os.Stat(file)
	if err != nil {
		return core.Finding{What: "mode", Found: file, Fix: err.Error()}
	}
	f := core.Finding{What: "mode", Found: fmt.Sprintf("%s is %04o", filepath.Base(file), info.Mode().Perm())}
	if info.Mode().Perm()&forbidden != 0 {
		f.Fix = fix
	}
	return f
}

// checkDisk reports a disk that is nearly full.
func checkDisk(dir string) core.Finding {
	dir = nearestExisting(dir)
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return core.Finding{What: "disk", Found: dir, Fix: err.Error()}
	}
	free := s.Bavail * uint64(s.Bsize)
	f := core.Finding{What: "disk", Found: fmt.Sprintf("%d MiB are free", free>>20)}
	if free < minFreeDisk {
		f.Fix = "free some space, or move data_dir"
	}
	return f
}

func listCredentials(dir string) []core.Finding {
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

// fix applies the safe repairs, and prints each change first. A failed repair is a finding.
func (p *program) fix(found *findings) error {
	repairs, err := setup.Repairs(p.Env)
	for _, r := range repairs {
		for _, line := range r.Lines {
			if found.format == formatJSON {
				printJSON(p.Out, findingLine{Level: "ok", Group: "fix", Text: line})
			} else {
				fmt.Fprintln(p.Out, "fix  "+line)
			}
		}
		if err := r.Apply(); err != nil {
			found.add("fix", core.Finding{Found: "failed", Fix: err.Error(), Fatal: true})
		}
	}
	return err
}
