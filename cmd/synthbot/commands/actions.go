package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/daemon"
	"synthbot/plugins/blueprint"
)

func actionsCommand(p *program) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "actions", Short: "Print the actions that the model can use", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			print, ok := map[string]func(io.Writer, []*action.Definition, func(string) bool) error{
				"table": actionTable, "json": actionJSON, "ai-tools": actionTools, "markdown": actionMarkdown,
			}[format]
			if !ok {
				return daemon.Usagef("--format: %q is not one of table, json, ai-tools, markdown", format)
			}
			return p.inspect(c.Context(), accessRead, func(b *daemon.Bot) error {
				snapshot := b.InForce().Snapshot
				return print(p.Out, snapshot.All(), daemon.Offered(snapshot))
			})
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table, json, ai-tools or markdown")
	return p.preferDaemon(c)
}

// actionLine is an action as `synthbot actions --format json` prints it.
type actionLine struct {
	Name       string          `json:"name"`
	Owner      string          `json:"owner"`
	Brief      string          `json:"brief"`
	Schema     json.RawMessage `json:"schema"`
	Examples   core.Examples   `json:"examples"`
	Similes    []string        `json:"similes"`
	Permission core.Permission `json:"permission"`
	Offered    bool            `json:"offered"`
}

func actionTable(out io.Writer, all []*action.Definition, offered func(string) bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tOWNER\tPERMISSION\tOFFERED\tBRIEF")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\n", d.Name, d.Owner, d.Allows(), offered(d.Name), d.Brief)
	}
	return w.Flush()
}

func actionJSON(out io.Writer, all []*action.Definition, offered func(string) bool) error {
	list := make([]actionLine, len(all))
	for i, d := range all {
		similes := append([]string{}, d.Similes...)
		list[i] = actionLine{d.Name, d.Owner, d.Brief, d.Schema, d.Examples, similes, d.Allows(), offered(d.Name)}
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(list)
}

func actionTools(out io.Writer, all []*action.Definition, _ func(string) bool) error {
	actions := make([]core.Action, len(all))
	for i, d := range all {
		actions[i] = d.Action
	}
	raw, err := blueprint.Export(version, actions)
	if err == nil {
		_, err = out.Write(raw)
	}
	return err
}

func actionMarkdown(out io.Writer, all []*action.Definition, _ func(string) bool) error {
	for _, d := range all {
		brief := strings.TrimSuffix(d.Brief, ".")
		fmt.Fprintf(out, "## %s\n\n%s. Owner: %s. Permission: %s.\n\n", d.Name, brief, d.Owner, d.Allows())
		schema, err := json.MarshalIndent(d.Schema, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "```json\n%s\n```\n\n", schema)
		if d.Examples.Description != "" {
			fmt.Fprintf(out, "%s\n\n", d.Examples.Description)
		}
		for _, e := range d.Examples.Examples {
			fmt.Fprintf(out, "- %s: `%s`\n", e.Scenario, e.Payload)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// catalogue is a plugin with the actions of a file, which cannot be executed.
type catalogue struct{ actions []core.Action }

func (catalogue) Name() string             { return "catalogue" }
func (s catalogue) Actions() []core.Action { return s.actions }

// loadCatalogue reads a file that `synthbot actions --format json` wrote; without a file, the catalogue is empty.
func loadCatalogue(file string) (catalogue, error) {
	if file == "" {
		return catalogue{}, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return catalogue{}, daemon.Usagef("%w", err)
	}
	var list []struct {
		actionLine
		Essential bool `json:"essential"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return catalogue{}, daemon.Usagef("%s: is not what `synthbot actions --format json` prints", file)
	}
	var s catalogue
	for _, l := range list {
		if strings.HasPrefix(l.Name, core.MessagePrefix) {
			continue // the interface adds its own
		}
		if l.Permission == core.PermissionConcerned {
			l.Permission = core.PermissionEveryone // the file does not say whom it concerns
		}
		s.actions = append(s.actions, core.Action{
			Name: l.Name, Brief: l.Brief, Schema: l.Schema, Examples: l.Examples, Similes: l.Similes,
			Permission: l.Permission, Essential: l.Essential,
			Do: func(context.Context, core.Call) (core.Result, error) {
				return core.Result{}, fmt.Errorf("%s is only shown", l.Name)
			},
		})
	}
	return s, nil
}

// promptRequest holds the flags of `synthbot prompt`.
type promptRequest struct {
	path, text, author string
	catalogue          string
	lite               bool
	limit              int
}

func promptCommand(p *program) *cobra.Command {
	var a promptRequest
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
	return p.preferDaemon(c)
}

func (p *program) prompt(ctx context.Context, a promptRequest) error {
	place, err := core.ParsePath(a.path)
	if err != nil {
		return daemon.Usagef("--path: %w", err)
	}
	if place.IsPerson() {
		return daemon.Usagef("--path: %s is a user, not a place", place)
	}
	if a.limit < 0 {
		return daemon.Usagef("--limit: %d is below 0", a.limit)
	}
	further, err := loadCatalogue(a.catalogue)
	if err != nil {
		return err
	}
	return p.inspect(ctx, accessRead, func(b *daemon.Bot) error {
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
	})
}
