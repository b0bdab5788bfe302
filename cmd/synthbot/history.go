package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/daemon"
)

func historyCommand(p *program) *cobra.Command {
	var n int
	var format string
	c := &cobra.Command{
		Use: "history [PATH]", Short: "List conversations, or print the messages of one", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 1 || format != "text" && format != "jsonl" {
				return daemon.Usagef("--last takes a number above 0, and --format text or jsonl")
			}
			if len(args) == 0 {
				return p.places(c.Context())
			}
			root, err := core.ParsePath(args[0])
			if err != nil {
				return daemon.Usagef("%w", err)
			}
			return p.look(c.Context(), func(v core.View) error {
				entries, err := v.Recent(root, n, nil)
				for i := range entries {
					err = errors.Join(err, printEntry(p.Out, &entries[i], root, format))
				}
				return err
			})
		},
	}
	c.Flags().IntVarP(&n, "last", "n", 50, "number of messages, counted from the newest")
	c.Flags().StringVar(&format, "format", "text", "text or jsonl")
	return p.atDaemon(c)
}

func (p *program) places(ctx context.Context) error {
	return p.look(ctx, func(v core.View) error {
		heads, err := v.Places(core.Path{})
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "PLACE\tENTRIES\tLAST")
		for _, h := range heads {
			fmt.Fprintf(w, "%s\t%d\t%s\n", h.Path, h.Count, h.Time.Format(time.DateTime))
		}
		return w.Flush()
	})
}

func printEntry(out io.Writer, e *core.Entry, root core.Path, format string) error {
	if format == "jsonl" {
		return json.NewEncoder(out).Encode(e)
	}
	if e.Kind != core.KindMessage {
		return nil
	}
	where, text := "", e.Message.Transcript()
	if e.Message.Path != root {
		where = e.Message.Path.String() + "  "
	}
	if e.Deleted {
		text = "(deleted)"
	}
	_, err := fmt.Fprintf(out, "%s  %s%s: %s\n", e.Message.Time.Format(time.DateTime), where,
		txt.Lines(e.Message.Author.Name), strings.ReplaceAll(txt.Lines(text), "\n", "\n    "))
	return err
}
