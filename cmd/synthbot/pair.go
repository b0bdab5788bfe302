package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
)

func pairCommand(p *program) *cobra.Command {
	return p.atDaemon(&cobra.Command{
		Use: "pair [CODE]", Short: "Approve a pairing code, or list the users who wait for approval",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.inspect(c.Context(), func(b *daemon.Bot) error { return p.pair(c.Context(), b, args) })
		},
	})
}

func (p *program) pair(ctx context.Context, b *daemon.Bot, args []string) error {
	plugin := b.InForce().Pairing()
	if plugin == nil {
		const text = "no user waits for a code: access.private is %q, not %q"
		return daemon.Usagef(text, b.InForce().Config.Access.Private, daemon.PairingName)
	}
	if len(args) == 0 {
		waiting, err := plugin.Waiting(ctx)
		for _, person := range waiting {
			fmt.Fprintln(p.Out, person)
		}
		return err
	}
	person, err := plugin.Pair(ctx, args[0], core.Path{})
	if err == nil {
		fmt.Fprintf(p.Out, "%s may talk to the bot now\n", person)
	}
	return err
}
