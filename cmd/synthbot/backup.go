package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"synthbot/admin"
	"synthbot/daemon"
	"synthbot/memory"
)

func backupCommand(p *program) *cobra.Command {
	replace := false
	c := &cobra.Command{
		Use: "backup FILE", Args: cobra.ExactArgs(1),
		Short: "Back up the database, even while the bot runs (FILE \"-\": standard output)",
		RunE: func(c *cobra.Command, args []string) error {
			file := args[0]
			var d *admin.Control
			running := false
			if p.host == nil { // the daemon itself is asked for a stream alone
				if err := p.fitForBackup(file, replace); err != nil {
					return err
				}
				d, running = p.daemonAt()
			}
			switch {
			case file == "-" && running:
				return p.ask(c.Context(), d, []string{"backup", "-"}, p.In, p.Out)
			case running:
				return p.backupBy(c.Context(), d, file)
			}
			return p.withDB(func(db *memory.DB) (err error) {
				if file == "-" {
					_, err = db.WriteTo(p.Out)
					return err
				}
				return db.Backup(file)
			})
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "replace FILE if it exists")
	return p.fileFlag(c)
}

// fitForBackup refuses files that a copy must not replace: the database itself, which the
// daemon would keep writing after nobody can open it, what is not a regular file, and, unless
// replace is set, any other file.
func (p *program) fitForBackup(file string, replace bool) error {
	there, err := os.Lstat(file)
	if file == "-" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return daemon.Usagef("%w", err)
	}
	if !there.Mode().IsRegular() {
		return daemon.Usagef("backup: %s is not a regular file, and is not replaced; - writes to standard output", file)
	}
	cfg, _ := p.load() // its faults are reported when they matter
	dir, err := cfg.DataDir(p.Getenv)
	if err != nil {
		return err
	}
	if own, err := os.Stat(filepath.Join(dir, memory.FileName)); err == nil && os.SameFile(own, there) {
		return daemon.Usagef("backup: %s is the database itself; name another file", file)
	}
	if !replace {
		return daemon.Usagef("backup: %s exists already; name another file, or say --replace", file)
	}
	return nil
}

// backupBy lets the daemon write the copy into an open file, since it may not be allowed to
// write there. A file of that name is replaced when the copy is complete.
func (p *program) backupBy(ctx context.Context, d *admin.Control, file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return errors.Join(err, d.Close())
	}
	var status exited
	err = p.ask(ctx, d, []string{"backup", "-"}, p.In, f)
	if errors.As(err, &status) && status == statusDone {
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
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			dir, err := cfg.DataDir(p.Getenv)
			if err != nil {
				return err
			}
			if !salvage {
				return memory.Restore(dir, args[0])
			}
			saved, err := memory.Salvage(dir, args[0])
			if err != nil {
				return err
			}
			for _, bucket := range []string{"log", "journal", "facts"} {
				fmt.Fprintf(p.Out, "saved %d of %s\n", saved.Pairs[bucket], bucket)
			}
			const text = "dropped %d that made no sense; %d parts could not be read\n"
			fmt.Fprintf(p.Out, text, saved.Dropped, len(saved.Faults))
			return nil
		},
	}
	c.Flags().BoolVar(&salvage, "salvage", false, "FILE is damaged: recover what is readable")
	return p.fileFlag(c)
}
