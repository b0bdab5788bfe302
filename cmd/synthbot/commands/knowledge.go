package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"synthbot/config"
	"synthbot/daemon"
	"synthbot/plugins/knowledge"
)

func knowledgeCommand(p *program) *cobra.Command {
	c := group(&cobra.Command{
		Use: "knowledge", Short: "Index, search or evaluate the documents of [plugins.knowledge]",
	})
	c.AddCommand(p.preferDaemon(&cobra.Command{
		Use: "sync", Short: "Read what changed in the sources", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withKnowledge(c.Context(), p, accessChangeOrCreate, func(k *knowledge.Plugin) error {
				sum, err := k.Sync(c.Context(), func(line string) { fmt.Fprintln(p.Out, line) })
				for _, fault := range sum.Faults {
					fmt.Fprintln(p.Out, "not read: "+fault)
				}
				fmt.Fprintln(p.Out, sum)
				return errors.Join(err, k.AwaitVectors(c.Context(), func(line string) { fmt.Fprintln(p.Out, line) }))
			})
		},
	}), p.preferDaemon(&cobra.Command{
		Use: "search TEXT", Short: "Look something up as the model would", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSynced(c.Context(), p, func(k *knowledge.Plugin) error {
				return k.Look(c.Context(), p.Out, args[0])
			})
		},
	}), p.preferDaemon(&cobra.Command{
		Use: "gaps", Short: "List the questions that no document answered", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			print := func(k *knowledge.Plugin) error { return k.Gaps(c.Context(), p.Out) }
			return withKnowledge(c.Context(), p, accessRead, print)
		},
	}), p.addConfigFlag(&cobra.Command{
		Use: "eval FILE", Short: "Print hit rates for a file of questions (FILE \"-\": standard input)",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withFile(c, p, args[0], func(in io.Reader) error {
				return evalKnowledge(c.Context(), p, args[0], in)
			})
		},
	}))
	return c
}

func evalKnowledge(ctx context.Context, p *program, file string, in io.Reader) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var q knowledge.Questions
	if err := config.Read(file, data, &q, config.Options{}); err != nil {
		return err
	}
	if len(q.Questions) == 0 {
		return daemon.Usagef("%s: there are no questions; write [[question]] with text and sources", file)
	}
	return withSynced(ctx, p, func(k *knowledge.Plugin) error { return k.Eval(ctx, p.Out, q.Questions) })
}

// withKnowledge calls f with the plugin knowledge of the daemon, or of a bot that does not run.
func withKnowledge(ctx context.Context, p *program, as access, f func(*knowledge.Plugin) error) error {
	if _, err := mustLoad(p); err != nil {
		return err
	}
	return p.inspectLogging(ctx, slog.LevelError, as, func(b *daemon.Bot) error {
		k := b.Knowledge()
		if k == nil {
			return daemon.Usagef("the plugin is off; add [plugins.knowledge] with a source to the configuration")
		}
		return f(k)
	})
}

// withSynced is withKnowledge, but first reads the sources, unless a daemon does that.
func withSynced(ctx context.Context, p *program, f func(*knowledge.Plugin) error) error {
	return withKnowledge(ctx, p, accessReadOrCreate, func(k *knowledge.Plugin) error {
		if p.runningBot == nil {
			if _, err := k.Sync(ctx, nil); err != nil {
				return err
			}
		}
		return f(k)
	})
}
