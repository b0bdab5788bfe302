package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
)

// asked is what `synthbot prompt` is to show the prompt of.
type asked struct {
	path, text, author string
	catalogue          string
	lite               bool
	limit              int
}

func promptCommand(p *program) *cobra.Command {
	var a asked
	c := &cobra.Command{
		Use: "prompt --path P --text T", Short: "Print the prompt for a message, without sending it",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("path") || !c.Flags().Changed("text") {
				return daemon.Usagef("prompt: give the conversation with --path and the message with --text")
			}
			return p.prompt(c.Context(), a)
		},
	}
	f := c.Flags()
	f.StringVar(&a.path, "path", "", "`path` of the conversation")
	f.StringVar(&a.text, "text", "", "`text` of the message")
	f.StringVar(&a.author, "author", "someone", "name of the author")
	f.StringVar(&a.catalogue, "catalogue", "",
		"`file` with additional actions, as synthbot actions --format json prints them")
	f.BoolVar(&a.lite, "lite", false, "print the lite prompt, which has the essential actions only")
	f.IntVar(&a.limit, "limit", 0, "maximum number of characters (default: max_prompt_chars of the first engine)")
	return p.atDaemon(c)
}

func (p *program) prompt(ctx context.Context, a asked) error {
	place, err := core.ParsePath(a.path)
	if err != nil {
		return daemon.Usagef("--path: %w", err)
	}
	if place.IsPerson() {
		return daemon.Usagef("--path: %s is a person, not a place", place)
	}
	if a.limit < 0 {
		return daemon.Usagef("--limit: %d is below 0", a.limit)
	}
	further, err := loadCatalogue(a.catalogue)
	if err != nil {
		return err
	}
	return p.inspect(ctx, func(b *daemon.Bot) error { return p.preview(ctx, b, place, a, further) })
}

// preview prints the prompt for a message.
func (p *program) preview(ctx context.Context, b *daemon.Bot, place core.Path, a asked, further shelf) error {
	cfg := *b.InForce().Config
	cfg.Prompt.Lite = cfg.Prompt.Lite || a.lite
	turns, err := b.TurnsWith(&cfg, p.Logger(&cfg, slog.LevelWarn), further)
	if err != nil {
		return err
	}
	limits := b.InForce().Engines.Limits(place)
	limits.Chars = cmp.Or(a.limit, limits.Chars)
	built, err := turns.Preview(ctx, core.Message{
		Path: place, ID: "preview", Text: a.text, Time: cfg.Clock(p.Clock)(),
		Author:  core.Author{ID: a.author, Name: a.author},
		Private: place.Interface() == "console", Addressed: core.AddressedDirect,
	}, limits)
	if err == nil {
		_, err = fmt.Fprintf(p.Out, "%s\n", built.JSON())
	}
	return err
}
