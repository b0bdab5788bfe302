package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/daemon"
	"synthbot/memory"
)

func historyCommand(p *program) *cobra.Command {
	var n int
	var how *format
	c := &cobra.Command{
		Use: "history [PATH]", Short: "List conversations, or print the messages of one", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 1 {
				return daemon.Usagef("--last takes a number above 0")
			}
			if len(args) == 0 {
				return p.printPlaces(c.Context(), *how)
			}
			root, err := core.ParsePath(args[0])
			if err != nil {
				return daemon.Usagef("%w", err)
			}
			return p.look(c.Context(), func(v core.View) error {
				entries, err := v.Recent(root, n, nil)
				if err == nil && len(entries) == 0 {
					fmt.Fprintf(p.Err, "nothing was said in %s; `synthbot history` lists the conversations\n", root)
				}
				var paths []core.Path
				for i := range entries {
					paths = append(paths, entries[i].Message.Path)
				}
				names, wrong := p.names(v, paths)
				err = errors.Join(err, wrong)
				for i := range entries {
					err = errors.Join(err, printEntry(p.Out, &entries[i], root, names, *how))
				}
				return err
			})
		},
	}
	c.ValidArgsFunction = completePlaces(p)
	c.Flags().IntVarP(&n, "last", "n", 50, "number of messages, counted from the newest")
	how = formatFlag(c)
	return p.atDaemon(c)
}

// placeLine is a conversation in JSON.
type placeLine struct {
	Name    string    `json:"name,omitempty"`
	Path    core.Path `json:"path"`
	Entries uint64    `json:"entries"`
	Last    time.Time `json:"last"`
	Private bool      `json:"private"`
}

// names returns what places are called: by the interfaces of the running bot, or by what was written there.
func (p *program) names(v core.View, places []core.Path) (map[core.Path]string, error) {
	if p.host != nil {
		return p.host.InForce().Names(v, places...)
	}
	return users.NamesOf(v, nil, places...)
}

func (p *program) printPlaces(ctx context.Context, how format) error {
	return p.look(ctx, func(v core.View) error {
		heads, err := v.Places(core.Path{})
		if err != nil {
			return err
		}
		paths := make([]core.Path, len(heads))
		for i, h := range heads {
			paths[i] = h.Path
		}
		names, err := p.names(v, paths)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
		if how == formatText {
			fmt.Fprintln(w, "NAME\tPLACE\tENTRIES\tLAST")
		}
		for _, h := range heads {
			if how == formatJSON {
				err = errors.Join(err, printJSON(w, placeLine{names[h.Path], h.Path, h.Count, h.Time, h.Private}))
				continue
			}
			name := cmp.Or(txt.Line(names[h.Path]), "–")
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", name, h.Path, h.Count, h.Time.Format(time.DateTime))
		}
		return errors.Join(err, w.Flush())
	})
}

func printEntry(
	out io.Writer, e *core.Entry, root core.Path, names map[core.Path]string, how format,
) error {
	if how == formatJSON {
		return printJSON(out, e)
	}
	if e.Kind != core.KindMessage || !e.Deleted && !e.Spoken() {
		return nil
	}
	where, text := "", e.Message.Transcript()
	if e.Message.Path != root {
		where = strings.TrimSpace(txt.Line(names[e.Message.Path])+" ("+e.Message.Path.String()+")") + "  "
	}
	if e.Deleted {
		text = "(deleted)"
	}
	_, err := fmt.Fprintf(out, "%s  %s%s: %s\n", e.Message.Time.Format(time.DateTime), where,
		txt.Lines(e.Message.Author.Name), strings.ReplaceAll(txt.Lines(text), "\n", "\n    "))
	return err
}

func usageCommand(p *program) *cobra.Command {
	var days int
	var how *format
	c := &cobra.Command{
		Use: "usage", Short: "Print token usage and cost per day", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if days < 1 || days > 3660 {
				return daemon.Usagef("--days takes a number from 1 to 3660")
			}
			return p.withStore(false, func(cfg *daemon.Config, s daemon.Store) error {
				return p.usage(c.Context(), cfg, s, days, *how)
			})
		},
	}
	c.Flags().IntVar(&days, "days", 30, "number of days, up to today")
	how = formatFlag(c)
	return p.atDaemon(c)
}

// usage prints what the engines were used for in the last days.
func (p *program) usage(ctx context.Context, cfg *daemon.Config, s daemon.Store, days int, how format) error {
	var uses []memory.Use
	if db, ok := s.(*memory.DB); ok {
		today := cfg.Clock(p.Clock)()
		var err error
		uses, err = db.Uses(ctx, today.AddDate(0, 0, 1-days).Format(time.DateOnly), today.Format(time.DateOnly))
		if err != nil {
			return err
		}
	}
	if how == formatJSON {
		for _, r := range daemon.Spending(uses) {
			line := usageLine{
				Day: r.Day, Engine: r.Engine, Calls: r.Calls, In: r.In, Cached: r.Cached, Out: r.Out,
				Cost: cfg.Cost(r.Engine, r.Usage),
			}
			if err := printJSON(p.Out, line); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "DAY\tENGINE\tCALLS\tIN\tCACHED\tOUT\tCOST\t")
	for _, r := range daemon.Spending(uses) {
		cost := cfg.Cost(r.Engine, r.Usage)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t\n", r.Day, r.Engine, r.Calls, r.In, r.Cached, r.Out, cost)
	}
	return w.Flush()
}

// usageLine is what one engine was used for on one day, in JSON. In, Cached and Out are tokens; those
// of Cached are part of In.
type usageLine struct {
	Day    string  `json:"day"`
	Engine string  `json:"engine"`
	Calls  int     `json:"calls"`
	In     int     `json:"in"`
	Cached int     `json:"cached"`
	Out    int     `json:"out"`
	Cost   float64 `json:"cost"`
}
