package blueprint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/txt"
)

// Plugin offers the tools of blueprints. Safe for concurrent use.
type Plugin struct {
	h       core.Host
	agents  []*agent
	actions []core.Action
}

// New reads the blueprints. The error joins everything that is wrong with them.
func New(h core.Host, c Config) (*Plugin, error) {
	all, faults := c.load()
	var errs []error
	for _, f := range faults {
		if f.Warning {
			h.Log.Warn("blueprint", "text", f.String())
		} else {
			errs = append(errs, errors.New(f.String()))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p := &Plugin{h: h}
	for _, l := range all {
		p.add(l)
	}
	return p, nil
}

// add adds a blueprint's tools.
func (p *Plugin) add(l loaded) {
	a := &agent{loaded: l, pace: &pace{limits: l.limits, clock: p.h.Clock}}
	if len(l.source.Command) > 0 {
		a.program = program.Program{
			Argv: l.source.Command, Dir: filepath.Dir(l.File), Env: l.source.Env, Timeout: l.source.Timeout,
			MaxOutput: int(l.source.MaxBody),
		}
	} else {
		a.client = outbound.New(outbound.Options{
			Allow: l.source.Allow, Timeout: l.source.Timeout, MaxBody: l.source.MaxBody, Redirects: 3,
		})
	}
	p.agents = append(p.agents, a)
	for _, t := range l.offered() {
		one, view := t.made, viewOf(t)
		one.Do = func(ctx context.Context, c core.Call) (r core.Result, err error) {
			r.Output, err = a.call(ctx, t, c)
			step, ok := view.step(r.Output)
			if err == nil && ok && a.source.Show && t.Output != nil {
				r.Next = []core.Step{step}
			}
			return r, err
		}
		other, _ := l.rollback(t)
		if other != nil {
			one.Undo = func(ctx context.Context, c core.Call, done core.Result) error {
				return a.undo(ctx, t, other, c, done)
			}
		}
		p.actions = append(p.actions, one)
	}
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return p.h.Name }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action { return slices.Clone(p.actions) }

// Run implements core.Runner: it compares the blueprints with those that were used last, and
// tells the admins what broke.
func (p *Plugin) Run(ctx context.Context) error {
	for _, a := range p.agents {
		if err := p.review(ctx, &a.loaded); err != nil && ctx.Err() == nil {
			p.h.Log.Error("blueprint not compared", "file", a.File, "err", err)
		}
	}
	<-ctx.Done()
	for _, a := range p.agents {
		if a.client != nil {
			a.client.CloseIdleConnections()
		}
	}
	return nil
}

// accepted is what is kept of a blueprint.
type accepted struct {
	Blueprint json.RawMessage `json:"blueprint"`
}

func (l *loaded) key() string {
	return "accepted:" + filepath.ToSlash(filepath.Join(l.source.Path, filepath.Base(l.File)))
}

// former returns the blueprint that was used last, nil if there was none.
func (l *loaded) former(ctx context.Context, items core.Items) (json.RawMessage, error) {
	item, _, err := items.Get(ctx, core.Path{}, l.key())
	var before accepted
	if err != nil || item.Decode(&before) != nil {
		return nil, err
	}
	return before.Blueprint, nil
}

// Changes tells how the files differ from what the bot used last, which items, the plugin's
// own, remember: what can break as a fault, the rest as warnings. Files that cannot be read
// are left out.
func (c *Config) Changes(ctx context.Context, items core.Items) (faults []Fault, err error) {
	all, _ := c.load()
	for i := range all {
		l := &all[i]
		before, err := l.former(ctx, items)
		if err != nil {
			return nil, err
		}
		if before == nil {
			continue
		}
		changes, err := Compare(before, l.data)
		if err != nil {
			text := "what was used last can no longer be read, so that nobody can tell what changed"
			faults = append(faults, Fault{Source: l.index, File: l.File, Text: text, Warning: true})
		}
		for _, change := range changes {
			faults = append(faults, Fault{l.index, l.File, change.Tool, change.Text, !change.Breaking})
		}
	}
	return faults, nil
}

// review compares a blueprint with the one that was used last, tells what changed, and keeps
// it.
func (p *Plugin) review(ctx context.Context, l *loaded) error {
	before, err := l.former(ctx, p.h.Items)
	now := core.JSON(accepted{l.data})
	if err != nil || before != nil && string(core.JSON(accepted{before})) == string(now) {
		return err
	}
	var changes []Change
	if before != nil {
		if changes, err = Compare(before, l.data); err != nil {
			p.h.Log.Warn("the former blueprint cannot be read", "file", l.File, "err", err)
		}
	}
	var broke []string
	for _, c := range changes {
		p.h.Log.Info("blueprint changed", "file", l.File, "text", c.Text, "tool", c.Tool, "breaking", c.Breaking)
		if c.Breaking {
			broke = append(broke, "- "+c.String())
		}
	}
	const most = 20
	if len(broke) > most {
		broke = append(broke[:most], fmt.Sprintf("- … and %d more", len(broke)-most))
	}
	if len(broke) > 0 {
		const text = "The blueprint %s (%s) has changed in a way that can break what uses it:\n%s"
		p.h.Messenger.NotifyAdmins(fmt.Sprintf(text,
			l.Name, filepath.Base(l.File), strings.Join(broke, "\n")))
	}
	return core.PutItem(ctx, p.h.Items, core.Path{}, l.key(), now)
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{{
		Spec: command.Spec{
			Name: "blueprints", Idempotent: true, Brief: "Show the agents whose tools I use", Rank: core.RankAdmin,
			Args: []command.Arg{{Name: "name", Brief: "Show only this one, in full"}},
			Briefs: map[string]string{
				"de": "Zeigt die Agenten, deren Werkzeuge ich benutze",
				"it": "Mostra gli agenti di cui uso gli strumenti",
			},
		},
		Do: func(_ context.Context, c command.Call) (string, error) { return p.shown(c.Args["name"]) },
	}}
}

// shown describes the agents to an admin.
func (p *Plugin) shown(name string) (string, error) {
	var b strings.Builder
	for _, l := range p.agents {
		if name != "" && !strings.EqualFold(l.Name, name) {
			continue
		}
		fmt.Fprintf(&b, "**%s** %s – %s\n", l.Name, l.Version, txt.Clip(l.Description, 300))
		fmt.Fprintf(&b, "%d tools, from `%s`\n", len(l.Tools), filepath.Base(l.File))
		if name != "" {
			var raw bytes.Buffer
			_ = json.Indent(&raw, l.Raw, "", "  ") // it is JSON
			fmt.Fprintf(&b, "```json\n%s\n```\n", txt.Clip(raw.String(), 3000))
		}
	}
	switch {
	case b.Len() > 0:
		return strings.TrimSpace(b.String()), nil
	case name != "":
		return "", core.Errorf(core.Invalid, "There is no blueprint called %q.", name)
	}
	return "There are no blueprints.", nil
}
