package main

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
	"synthbot/plugins/mcp"
)

func mcpCommand(p *program) *cobra.Command {
	return p.atDaemon(&cobra.Command{
		Use: "mcp", Args: cobra.NoArgs,
		Short: "Serve memories, history and messages over the Model Context Protocol (stdio)",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.inspect(c.Context(), func(b *daemon.Bot) error { return p.serveMCP(c.Context(), b) })
		},
	})
}

// serveMCP serves until the other program leaves.
func (p *program) serveMCP(ctx context.Context, b *daemon.Bot) error {
	cfg := b.InForce().Config
	var rights mcp.Serving
	for _, c := range cfg.Chosen {
		if own, ok := c.Own.(*mcp.Config); ok {
			rights = own.Serve
		}
	}
	if rights.As.IsZero() {
		return daemon.Usagef("mcp: the other program needs a user to act for; set as in [plugins.mcp.serve]")
	}
	return mcp.Serve(ctx, mcp.Options{
		Version: version, Log: p.Logger(cfg, slog.LevelWarn), Clock: cfg.Clock(p.Clock), Rights: rights,
		Facts: b.Data.Store, Reader: b.Data.Store, Desk: b.Messenger(),
		Admits: func(person core.Path) bool { return !slices.ContainsFunc(cfg.Access.Deny, person.Within) },
	}, io.NopCloser(p.In), open{p.Out})
}

// open is a stream that stays open when it is closed: it is not ours.
type open struct{ io.Writer }

// Close implements io.Closer.
func (open) Close() error { return nil }
