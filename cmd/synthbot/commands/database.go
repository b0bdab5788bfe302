package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/secret"
	"synthbot/daemon"
	"synthbot/memory"
)

// access is what a command may do with a database that is missing or has an older format.
type access int

const (
	// An older format is an error, and stays as it is. A missing database is an empty store.
	accessRead access = iota
	// Like accessRead, but a missing database is created.
	accessReadOrCreate
	// An older format is converted. A missing database is an empty store.
	accessChange
	// An older format is converted. A missing database is created.
	accessChangeOrCreate
)

// inspect calls f with the daemon's bot or, outside a daemon, with a new one that does not run.
func (p *program) inspect(ctx context.Context, as access, f func(*daemon.Bot) error) error {
	return p.inspectLogging(ctx, slog.LevelWarn, as, f)
}

// inspectLogging is inspect with the lowest level that the new bot logs.
func (p *program) inspectLogging(ctx context.Context, least slog.Level, as access, f func(*daemon.Bot) error) error {
	if p.runningBot != nil {
		return f(p.runningBot)
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log := p.Logger(cfg, least)
	return p.Run(ctx, daemon.RunOptions{
		Config: cfg, Log: log, Interfaces: daemon.InspectionInterfaces, Inspect: f,
		Open: func() (daemon.Store, error) { return p.openStore(cfg, log, as) },
	})
}

func (p *program) openStore(c *daemon.Config, log *slog.Logger, as access) (daemon.Store, error) {
	if p.runningBot != nil {
		return p.runningBot.Data.Store, nil
	}
	dir, err := c.DataDir(p.Getenv)
	if err != nil {
		return nil, err
	}
	o := p.StoreOptions()
	o.Log, o.Server, o.BesideBot = log, c.Store, as == accessRead || as == accessChange
	o.KeepFormat = as <= accessReadOrCreate
	db, err := memory.Open(dir, o)
	switch {
	case errors.Is(err, memory.ErrMissing):
		return daemon.EmptyStore{}, nil
	case err != nil:
		return nil, err
	}
	return db, nil
}

func (p *program) withStore(as access, f func(*daemon.Config, daemon.Store) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	s, err := p.openStore(cfg, p.Logger(cfg, slog.LevelWarn), as)
	if err != nil {
		return err
	}
	err = f(cfg, s)
	if p.runningBot != nil {
		return err
	}
	return errors.Join(err, s.Close())
}

func (p *program) noDatabaseError(c *daemon.Config) error {
	if !c.Store.URL.IsZero() {
		return errors.New("there is no database yet on the server of [store]; the first conversation creates it")
	}
	dir, _ := c.DataDir(p.Getenv) // the caller has searched it
	return fmt.Errorf("there is no database yet in %s; the first conversation creates it", dir)
}

// withBot calls f with a bot that does not run, whose database must exist.
func (p *program) withBot(ctx context.Context, as access, f func(*daemon.Bot) error) error {
	return p.inspect(ctx, as, func(b *daemon.Bot) error {
		if b.Data.DB == nil {
			return p.noDatabaseError(b.InForce().Config)
		}
		return f(b)
	})
}

// withDB calls f with the database, which must exist.
func (p *program) withDB(as access, f func(*daemon.Config, *memory.DB) error) error {
	return p.withStore(as, func(cfg *daemon.Config, s daemon.Store) error {
		db, ok := s.(*memory.DB)
		if !ok {
			return p.noDatabaseError(cfg)
		}
		return f(cfg, db)
	})
}

// view calls f with a view of the database, if there is one.
func (p *program) view(ctx context.Context, f func(*daemon.Config, core.View) error) error {
	return p.withStore(accessRead, func(cfg *daemon.Config, s daemon.Store) error {
		var b bytes.Buffer // printed after the view, so that a slow reader does not keep it open
		out := p.Out
		p.Out = &b
		err := s.View(ctx, func(v core.View) error { return f(cfg, v) })
		p.Out = out
		if err == nil {
			_, err = b.WriteTo(out)
		}
		return err
	})
}

func backupCommand(p *program) *cobra.Command {
	replace := false
	c := &cobra.Command{
		Use: "backup FILE", Args: cobra.ExactArgs(1),
		Short: "Back up the database, even while the bot runs (FILE \"-\": standard output)",
		RunE:  func(c *cobra.Command, args []string) error { return backup(c.Context(), p, args[0], replace) },
		PostRun: func(_ *cobra.Command, args []string) {
			if args[0] != "-" {
				noteImported(p)
			}
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "replace FILE if it exists")
	return p.addConfigFlag(c)
}

// backup copies the database to a file, or to standard output for "-". If a daemon runs, it makes the copy.
func backup(ctx context.Context, p *program, file string, replace bool) error {
	if p.runningBot == nil { // inside a daemon, file is always "-"
		if err := p.checkBackupTarget(file, replace); err != nil {
			return err
		}
		d, running := p.dialDaemon()
		switch {
		case running && file == "-":
			return p.runInDaemon(ctx, d, []string{"backup", "-"}, p.In, p.output.To)
		case running:
			return p.backupByDaemon(ctx, d, file)
		}
	}
	return p.withAnyFormat(func(db *memory.DB) (err error) {
		if file == "-" {
			_, err = db.WriteTo(p.Out)
			return err
		}
		return db.Backup(file)
	})
}

// withAnyFormat calls copy with the database, whatever its format is. The database can only be copied.
func (p *program) withAnyFormat(copy func(*memory.DB) error) error {
	if p.runningBot != nil {
		return p.withDB(accessRead, func(_ *daemon.Config, db *memory.DB) error { return copy(db) })
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	o := p.StoreOptions()
	o.Log, o.Server = p.Logger(cfg, slog.LevelWarn), cfg.Store
	err = memory.CopyStored(dir, o, copy)
	if errors.Is(err, memory.ErrMissing) {
		return p.noDatabaseError(cfg)
	}
	return err
}

// noteImported prints the folder of imported personas, if there are any, because a backup does not contain them.
func noteImported(p *program) {
	cfg, _ := p.load()
	dir, _ := cfg.DataDir(p.Getenv) // the backup has found it
	folder := filepath.Join(dir, daemon.ImportFolder)
	files, err := os.ReadDir(folder)
	if err == nil && len(files) > 0 {
		fmt.Fprintf(p.Err, "imported personas are not part of the backup: copy %s as well\n", folder)
	}
}

// checkBackupTarget returns an error for a file that a backup must not replace: the database itself, a file
// that is not regular and, unless replace is set, any other existing file.
func (p *program) checkBackupTarget(file string, replace bool) error {
	existing, err := os.Lstat(file)
	if file == "-" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return daemon.Usagef("%w", err)
	}
	if !existing.Mode().IsRegular() {
		return daemon.Usagef("backup: %s is not a regular file, and is not replaced; - writes to standard output", file)
	}
	cfg, _ := p.load() // its faults are reported when they matter
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	if own, err := os.Stat(filepath.Join(dir, memory.FileName)); err == nil && os.SameFile(own, existing) {
		return daemon.Usagef("backup: %s is the database itself; name another file", file)
	}
	if !replace {
		return daemon.Usagef("backup: %s exists already; name another file, or say --replace", file)
	}
	return nil
}

// backupByDaemon makes the daemon write the copy into an open file, because it may not be allowed to open
// one there. When the copy is complete, it replaces a file of that name.
func (p *program) backupByDaemon(ctx context.Context, d *admin.Control, file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return errors.Join(err, d.Close())
	}
	err = p.runInDaemon(ctx, d, []string{"backup", "-"}, p.In, f)
	if errors.Is(err, exitStatus(statusDone)) {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func restoreCommand(p *program) *cobra.Command {
	var salvage bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore the database from a backup", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return restore(p, args[0], salvage) },
	}
	c.Flags().BoolVar(&salvage, "salvage", false, "FILE is damaged: recover what is readable")
	return p.addConfigFlag(c)
}

// restore replaces the database with a backup, or with what is readable in a damaged one.
func restore(p *program, file string, salvage bool) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	if !cfg.Store.URL.IsZero() {
		return daemon.Usagef("restore writes a file, but [store] names a server: restore with another " +
			"configuration, then run `synthbot store copy --from DIR --to URL`")
	}
	if !salvage {
		return memory.Restore(dir, file)
	}
	saved, err := memory.Salvage(dir, file)
	if err != nil {
		return err
	}
	for _, bucket := range []string{"log", "journal", "facts"} {
		fmt.Fprintf(p.Out, "saved %d of %s\n", saved.Pairs[bucket], bucket)
	}
	const text = "dropped %d invalid ones; %d parts could not be read\n"
	fmt.Fprintf(p.Out, text, saved.Dropped, len(saved.Faults))
	return nil
}

func storeCommand(p *program) *cobra.Command {
	return group(&cobra.Command{Use: "store", Short: "Move the database between a file and a server"}, copyCommand(p))
}

func copyCommand(p *program) *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use: "copy --from DIR|URL --to DIR|URL", Args: cobra.NoArgs,
		Short: "Copy everything between data directories and PostgreSQL databases",
		Long: "Copies everything from a data directory, or from a PostgreSQL database (postgres://HOST/NAME,\n" +
			"or env:NAME for a variable that holds such a URL), to another one, which must be empty.\n" +
			"No bot may run with either of them. It reads everything back, compares it, and prints\n" +
			"the number of pairs and the SHA-256 of each bucket.",
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := location(p, "--from", from)
			if err != nil {
				return err
			}
			target, err := location(p, "--to", to)
			if err != nil {
				return err
			}
			return copyStore(c.Context(), p, source, target)
		},
	}
	c.Flags().StringVar(&from, "from", "", "data directory or URL of the `original`")
	c.Flags().StringVar(&to, "to", "", "data directory or URL of the `copy`")
	return c
}

// location returns the location of a database that a flag names.
func location(p *program, flag, given string) (memory.Location, error) {
	name, variable := strings.CutPrefix(given, "env:")
	if variable {
		given = p.Getenv(name)
	}
	switch {
	case given == "" && variable:
		return memory.Location{}, daemon.Usagef("%s: $%s is not set or empty", flag, name)
	case given == "":
		return memory.Location{}, daemon.Usagef("%s: name a data directory, or the URL of a database", flag)
	case variable || strings.Contains(given, "://"):
		return memory.Location{URL: secret.New(given)}, nil
	}
	return memory.Location{Dir: given}, nil
}

// progressInterval is how often a long command prints its progress.
const progressInterval = 2 * time.Second

func copyStore(ctx context.Context, p *program, from, to memory.Location) error {
	printed := time.Now()
	sums, err := memory.Copy(ctx, from, to, func(bucket string, pairs int) {
		if time.Since(printed) > progressInterval {
			printed = time.Now()
			fmt.Fprintf(p.Err, "%s: %d copied\n", bucket, pairs)
		}
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BUCKET\tPAIRS\tSHA-256")
	for _, s := range sums {
		fmt.Fprintf(w, "%s\t%d\t%x\n", s.Bucket, s.Pairs, s.Sum)
	}
	return w.Flush()
}
