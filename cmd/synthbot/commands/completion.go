package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/daemon"
)

// completePlaces completes a conversation's path: of those that the database has.
func completePlaces(p *program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return listPlaces(c.Context(), p), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRooms completes the rooms of the log, and then the levels.
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

// listPlaces lists the paths of the conversations, as `history --format json` prints them: the daemon
// answers, if one runs. Without an answer there are none.
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
