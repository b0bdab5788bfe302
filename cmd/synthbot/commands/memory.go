package commands

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/daemon"
	"synthbot/memory"
)

func memoryCommand(p *program) *cobra.Command {
	return group(&cobra.Command{Use: "memory", Short: "List, search, export, import, forget or prune stored data"},
		listCommand(p), searchCommand(p), exportCommand(p), importCommand(p), forgetCommand(p), pruneCommand(p))
}

func listCommand(p *program) *cobra.Command {
	var n int
	var about string
	var how *format
	c := &cobra.Command{
		Use: "list [PATH]", Short: "List memories, newest first, with their earlier versions",
		ValidArgsFunction: completePlaces(p),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			below, err := optionalPath(args)
			if err != nil {
				return err
			}
			whom, err := core.ParsePath(about)
			if about != "" && err != nil {
				return daemon.Usagef("--about: %w", err)
			}
			if n < 1 {
				return daemon.Usagef("--last takes a number above 0")
			}
			return p.withDB(accessRead, func(cfg *daemon.Config, db *memory.DB) error {
				facts, _, err := db.ListFacts(c.Context(), core.FactPage{Below: below, About: whom, N: n})
				if err == nil && len(facts) == 0 {
					fmt.Fprintln(p.Err, "no such memory is stored")
				}
				for i := range facts {
					if *how == formatJSON {
						printJSON(p.Out, facts[i])
						continue
					}
					fmt.Fprint(p.Out, facts[i].ID+"  ")
					p.printFact(cfg, &facts[i])
				}
				return err
			})
		},
	}
	c.Flags().IntVarP(&n, "last", "n", 50, "how many, the newest ones")
	c.Flags().StringVar(&about, "about", "", "only those about this `user` or place")
	how = formatFlag(c)
	return p.preferDaemon(c)
}

func searchCommand(p *program) *cobra.Command {
	var place string
	c := &cobra.Command{
		Use: "search TEXT", Short: "Search the memories that a conversation can see", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := core.ParsePath(place)
			if err != nil {
				return daemon.Usagef("--path: %w", err)
			}
			return p.withDB(accessRead, func(cfg *daemon.Config, db *memory.DB) error {
				found, err := db.Recall(c.Context(), core.FactQuery{See: []core.Path{from}, Text: args[0], N: 20})
				for i := range found {
					found[i].Former = nil
					p.printFact(cfg, &found[i])
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&place, "path", "console/main", "the `place` whose memories are searched")
	return p.preferDaemon(c)
}

func (p *program) printFact(cfg *daemon.Config, f *core.Fact) {
	day := func(t time.Time) string { return t.In(cfg.Zone()).Format(time.DateOnly) }
	fmt.Fprintf(p.Out, "%s  %s  %s\n", day(f.Time), f.Origin, txt.Lines(f.Text))
	for _, before := range f.Former {
		fmt.Fprintf(p.Out, "    before, %s: %s\n", day(before.Time), txt.Lines(before.Text))
	}
}

func exportCommand(p *program) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "export [PATH]", Short: "Export the data of a conversation, a user, or everyone",
		ValidArgsFunction: completePlaces(p),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if format != "jsonl" {
				return daemon.Usagef("--format: only jsonl is supported")
			}
			path, err := optionalPath(args)
			if err != nil {
				return err
			}
			return p.withBot(c.Context(), accessRead, func(b *daemon.Bot) error {
				var lines lineCounter
				err := b.PersonalData().Export(c.Context(), io.MultiWriter(p.Out, &lines), path)
				if err == nil && lines == 0 {
					fmt.Fprintf(p.Err, "nothing is stored about %s\n", cmp.Or(path.String(), "anybody"))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl: one JSON object a line")
	return p.preferDaemon(c)
}

func importCommand(p *program) *cobra.Command {
	return p.addConfigFlag(&cobra.Command{
		Use: "import FILE", Short: "Import exported data (FILE \"-\": standard input)", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withFile(c, p, args[0], func(in io.Reader) error {
				return p.withStore(accessChangeOrCreate, func(_ *daemon.Config, s daemon.Store) error {
					lines, added, err := s.(*memory.DB).Import(c.Context(), in, daemon.CheckItem)
					if err != nil {
						return fmt.Errorf("%w; lines added before that: %d; the rest can be imported later", err, added)
					}
					_, err = fmt.Fprintf(p.Out, "lines added: %d of %d\n", added, lines)
					return err
				})
			})
		},
	})
}

func forgetCommand(p *program) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "forget [PATH]", Short: "Erase the data of a conversation, a user, or (--all) everyone",
		ValidArgsFunction: completePlaces(p),
		Args:              cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := optionalPath(args)
			if err != nil {
				return err
			}
			if path.IsZero() != all {
				return daemon.Usagef("memory forget: name a place or a user, or give --all")
			}
			forget := func(b *daemon.Bot) error { return p.forget(c.Context(), b, path) }
			return p.withBot(c.Context(), accessChange, forget)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "everything")
	return p.preferDaemon(c)
}

func pruneCommand(p *program) *cobra.Command {
	return p.preferDaemon(&cobra.Command{
		Use: "prune", Short: "Apply the retention limits of [memory] now and compact the database",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDB(accessChange, func(cfg *daemon.Config, db *memory.DB) error {
				if err := db.Prune(c.Context(), cfg.Memory); err != nil {
					return err
				}
				before, after, err := db.Compact(c.Context()) // so that no erased data is left in the file
				if err == nil {
					fmt.Fprintf(p.Out, "the file had %d KiB and has %d KiB\n", before>>10, after>>10)
				}
				return err
			})
		},
	})
}

func optionalPath(args []string) (core.Path, error) {
	if len(args) == 0 {
		return core.Path{}, nil
	}
	path, err := core.ParsePath(args[0])
	if err != nil {
		return path, daemon.Usagef("%w", err)
	}
	return path, nil
}

// lineCounter counts the lines of an export that is written to it.
type lineCounter int

var _ memory.NonBlocking = (*lineCounter)(nil)

// NonBlocking implements memory.NonBlocking.
func (l *lineCounter) NonBlocking() {}

func (l *lineCounter) Write(p []byte) (int, error) {
	*l += lineCounter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

// forget erases all data of a place or a user, including that of plugins, and rewrites the database
// file without it. It prints how much there was.
func (p *program) forget(ctx context.Context, b *daemon.Bot, path core.Path) error {
	var exported lineCounter
	countErr := b.PersonalData().Export(ctx, &exported, path) // an error does not prevent forgetting
	if err := b.PersonalData().Forget(ctx, path); err != nil {
		return err
	}
	switch {
	case countErr != nil:
		fmt.Fprintln(p.Out, "erased; the amount could not be counted")
	case exported == 0:
		fmt.Fprintf(p.Out, "nothing was stored about %s\n", cmp.Or(path.String(), "anybody"))
	default:
		fmt.Fprintf(p.Out, "erased: %d lines of an export\n", exported)
	}
	return nil
}
