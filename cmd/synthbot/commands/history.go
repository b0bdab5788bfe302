package commands

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
			return p.view(c.Context(), func(cfg *daemon.Config, v core.View) error {
				last := func(n int) ([]core.Entry, error) { return v.Recent(root, n, nil) }
				shown := func(e *core.Entry) bool { return *how == formatJSON || isShown(e) }
				entries, err := daemon.LastMatching(n, last, shown)
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
					printEntry(p.Out, cfg, &entries[i], root, names, *how)
				}
				return err
			})
		},
	}
	c.ValidArgsFunction = completePlaces(p)
	c.Flags().IntVarP(&n, "last", "n", 50, "number of messages, counted from the newest")
	how = formatFlag(c)
	return p.preferDaemon(c)
}

type placeLine struct {
	Name    string    `json:"name,omitempty"`
	Path    core.Path `json:"path"`
	Entries uint64    `json:"entries"`
	Last    time.Time `json:"last"`
	Private bool      `json:"private"`
}

// names returns the names of places: from the interfaces of the running bot, or from the stored messages.
func (p *program) names(v core.View, places []core.Path) (map[core.Path]string, error) {
	if p.runningBot != nil {
		return p.runningBot.InForce().Names(v, places...)
	}
	return users.NamesOf(v, nil, places...)
}

func (p *program) printPlaces(ctx context.Context, how format) error {
	return p.view(ctx, func(cfg *daemon.Config, v core.View) error {
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
				printJSON(w, placeLine{names[h.Path], h.Path, h.Count, h.Time, h.Private})
				continue
			}
			name := cmp.Or(txt.Line(names[h.Path]), "–")
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", name, h.Path, h.Count, h.Time.In(cfg.Zone()).Format(time.DateTime))
		}
		return w.Flush()
	})
}

// isShown reports whether an entry is shown as text: a message with words or files, or a deleted one.
func isShown(e *core.Entry) bool { return e.Kind == core.KindMessage && (e.Deleted || e.Spoken()) }

func printEntry(
	out io.Writer, cfg *daemon.Config, e *core.Entry, root core.Path, names map[core.Path]string, how format,
) {
	if how == formatJSON {
		printJSON(out, e)
		return
	}
	where, text := "", e.Message.Transcript()
	if e.Message.Path != root {
		where = strings.TrimSpace(txt.Line(names[e.Message.Path])+" ("+e.Message.Path.String()+")") + "  "
	}
	if e.Deleted {
		text = "(deleted)"
	}
	fmt.Fprintf(out, "%s  %s%s: %s\n", e.Message.Time.In(cfg.Zone()).Format(time.DateTime), where,
		txt.Lines(e.Message.Author.Name), strings.ReplaceAll(txt.Lines(text), "\n", "\n    "))
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
			return p.withStore(accessRead, func(cfg *daemon.Config, s daemon.Store) error {
				return p.usage(c.Context(), cfg, s, days, *how)
			})
		},
	}
	c.Flags().IntVar(&days, "days", 30, "number of days, up to today")
	how = formatFlag(c)
	return p.preferDaemon(c)
}

func (p *program) usage(ctx context.Context, cfg *daemon.Config, s daemon.Store, days int, how format) error {
	var uses []memory.Use
	var err error
	if db, ok := s.(*memory.DB); ok {
		today := cfg.Clock(p.Clock)()
		uses, err = db.Uses(ctx, today.AddDate(0, 0, 1-days).Format(time.DateOnly), today.Format(time.DateOnly))
		if err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if how == formatText {
		fmt.Fprintln(w, "DAY\tENGINE\tCALLS\tIN\tCACHED\tOUT\tCOST\t")
	}
	for _, r := range cfg.Spending(uses) {
		if how == formatJSON {
			printJSON(w, usageLine{r.Day, r.Engine, r.Calls, r.In, r.Cached, r.Out, *r.Cost})
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t\n", r.Day, r.Engine, r.Calls, r.In, r.Cached, r.Out, *r.Cost)
	}
	return w.Flush()
}

// usageLine is the usage of one engine on one day, in JSON. In, Cached and Out are tokens; In includes Cached.
type usageLine struct {
	Day    string  `json:"day"`
	Engine string  `json:"engine"`
	Calls  int     `json:"calls"`
	In     int     `json:"in"`
	Cached int     `json:"cached"`
	Out    int     `json:"out"`
	Cost   float64 `json:"cost"`
}

// completePlaces completes the path of a stored conversation.
func completePlaces(p *program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return listPlaces(c.Context(), p), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeRooms(p *program) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cfg, err := p.load()
		switch {
		case err != nil || len(args) > 1:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1:
			return []string{"debug", "info", "warn", "error", "default"}, cobra.ShellCompDirectiveNoFileComp
		}
		return append(cfg.Rooms(), "all"), cobra.ShellCompDirectiveNoFileComp
	}
}

// listPlaces returns the paths of the conversations that `history --format json` prints. The daemon answers
// if one runs. If the command fails, there are none.
func listPlaces(ctx context.Context, p *program) (paths []string) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer nothing.Close()
	go func() {
		defer w.Close()
		e := &daemon.Env{File: p.File, In: nothing, Out: w, Err: nothing, Getenv: p.Getenv, Clock: p.Clock}
		newProgram(e, []string{"history", "--format", "json"}).run(ctx)
	}()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var place struct {
			Path core.Path `json:"path"`
		}
		if json.Unmarshal(lines.Bytes(), &place) == nil {
			paths = append(paths, place.Path.String())
		}
	}
	return paths
}
