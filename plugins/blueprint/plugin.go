// Package blueprint makes the tools of agent blueprints actions of the bot. A blueprint is a file ai-tools.json that
// describes the tools of an agent and how to call them. The package also writes the bot's own catalogue as such a file,
// and serves it. Servers that list their tools themselves belong to package mcp.
//
// # The file
//
//	{
//	  "name": "bank", "type": "agent", "version": "1.2.0", "description": "…",
//	  "endpoint": "https://bank.example",              the agent's address, unless the configuration has one
//	  "endpoints": {"invoke": {"path": "/invoke"}},    the path below it where tools are called
//	  "meta": {"compliance": {…}, "security": {"rateLimits": {"perMinute": 60}, "authRequired": true}},
//	  "capabilities": {"tools": [{
//	    "name": "invoices.list", "title": "…", "description": "…",
//	    "inputSchema": {…}, "outputSchema": {…},        JSON Schema, draft 2020-12, with $defs
//	    "annotations": {"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false},
//	    "examples": [{"scenario": "…", "payload": {…}}],
//	    "security": {"permission": "moderators", "requiresConfirmation": true},
//	    "endpoint": {"path": "/invoices/{id}", "method": "GET"}
//	  }]}
//	}
//
// A tool needs a name and an inputSchema. name, version, description, endpoint, endpoints, compliance and security may
// also be inside of meta or metadata. $defs of the file apply to all its tools. Everything but the tools is the
// envelope; unknown parts of it are kept. In an outputSchema, "x-display" sets how the output is shown: a format of the
// action display, or none.
//
// # How a tool becomes an action
//
// The action has the tool's name (getBalance becomes get_balance) behind the configured prefix, and its inputSchema.
// The description's first sentence is the brief; the whole description and the examples are the action's guide; without
// an example, one is made from the schema. The tool's output must match the outputSchema.
//
// A file cannot grant anything. A tool that is not marked as read-only is for admins and must be confirmed, unless the
// configuration says otherwise; the permission and confirmation in a file can only be stricter.
//
// # How a tool is called
//
// By HTTP POST to the invoke endpoint:
//
//	{"tool": "invoices.list", "input": {…}, "context": {"userId": "…", "sessionId": "…"}}
//	{"success": true, "output": …}    or    {"success": false, "error": {"code": "…", "message": "…"}}
//
// context is sent only if the configuration says so. A tool with an endpoint of its own receives only its input: the
// values in braces in the path, all of which are required, and the rest as query (GET, DELETE) or JSON body; the
// response is the output. A local command reads the request on its standard input, and writes such an answer, or the
// bare output, to its standard output. Text that is not JSON is a string.
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
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Plugin offers the tools of blueprints. Safe for concurrent use.
type Plugin struct {
	h       core.Host
	agents  []*agent
	actions []core.Action
}

// New reads the blueprints. It logs warnings, and joins all other faults in the error.
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

func newAgent(l loaded, clock func() time.Time) *agent {
	a := &agent{loaded: l, pace: &pace{limits: l.limits, clock: clock}}
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
	return a
}

func (p *Plugin) add(l loaded) {
	a := newAgent(l, p.h.Clock)
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

func (p *Plugin) Name() string { return p.h.Name }

func (p *Plugin) Actions() []core.Action { return slices.Clone(p.actions) }

// Run implements core.Runner: it compares the blueprints with those that were used last, and
// notifies the admins of breaking changes.
func (p *Plugin) Run(ctx context.Context) error {
	for _, a := range p.agents {
		if err := p.compareWithLast(ctx, &a.loaded); err != nil && ctx.Err() == nil {
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

// accepted is the item that stores the blueprint that was used last.
type accepted struct {
	Blueprint json.RawMessage `json:"blueprint"`
}

func (l *loaded) key() string {
	return "accepted:" + filepath.ToSlash(filepath.Join(l.source.Path, filepath.Base(l.File)))
}

// lastUsed returns the blueprint that was used last, nil if there was none.
func (l *loaded) lastUsed(ctx context.Context, items core.Items) (json.RawMessage, error) {
	item, _, err := items.Get(ctx, core.Path{}, l.key())
	var before accepted
	if err != nil || item.Decode(&before) != nil {
		return nil, err
	}
	return before.Blueprint, nil
}

// Changes returns how the files differ from the blueprints that the bot used last, which are in the plugin's items.
// Breaking changes are faults, others warnings. Files that cannot be read are left out.
func (c *Config) Changes(ctx context.Context, items core.Items) (faults []Fault, err error) {
	all, _ := c.load()
	for i := range all {
		l := &all[i]
		before, err := l.lastUsed(ctx, items)
		if err != nil {
			return nil, err
		}
		if before == nil {
			continue
		}
		changes, err := Compare(before, l.data)
		if err != nil {
			text := "the blueprint that was used last can no longer be read, so that changes are unknown"
			faults = append(faults, Fault{File: l.File, Text: text, Warning: true})
		}
		for _, change := range changes {
			change.File = l.File
			faults = append(faults, change)
		}
	}
	return faults, nil
}

// compareWithLast compares a blueprint with the one that was used last, reports the changes, and
// stores it as the last one.
func (p *Plugin) compareWithLast(ctx context.Context, l *loaded) error {
	before, err := l.lastUsed(ctx, p.h.Items)
	now := core.JSON(accepted{l.data})
	if err != nil || before != nil && string(core.JSON(accepted{before})) == string(now) {
		return err
	}
	var changes []Fault
	if before != nil {
		if changes, err = Compare(before, l.data); err != nil {
			p.h.Log.Warn("the former blueprint cannot be read", "file", l.File, "err", err)
		}
	}
	var broke []string
	for _, c := range changes {
		p.h.Log.Info("blueprint changed", "file", l.File, "text", c.Text, "tool", c.Tool, "breaking", !c.Warning)
		if !c.Warning {
			broke = append(broke, "- "+c.String())
		}
	}
	const most = 20
	if len(broke) > most {
		broke = append(broke[:most], fmt.Sprintf("- … and %d more", len(broke)-most))
	}
	if len(broke) > 0 {
		const text = "The blueprint %s (%s) has changed in a way that can break what uses it:\n%s"
		p.h.Messenger.NotifyAdmins(fmt.Sprintf(text, l.Name, filepath.Base(l.File), strings.Join(broke, "\n")))
	}
	return values.Put(ctx, p.h.Items, core.Path{}, l.key(), now)
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
		Do: func(_ context.Context, c command.Call) (string, error) { return p.describe(c.Args["name"]) },
	}}
}

// describe lists the blueprints or, with a name, shows that one in full.
func (p *Plugin) describe(name string) (string, error) {
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

// Config is the table [plugins.blueprint].
type Config struct {
	Sources []Source `toml:"source" doc:"A blueprint whose tools the bot may use."`
	Serve   Serving  `toml:"serve" doc:"Which actions of the bot other programs may call over HTTP."`
	// Dir is the folder to which relative paths refer; "": the working directory.
	Dir string
}

// Source is a blueprint, or a folder of them, and how its agent is called: over HTTP, or, with Command, as a program.
type Source struct {
	Path    string                   `toml:"path" kind:"file" required:"true" example:"blueprints/bank.json" doc:"An ai-tools.json file, or a folder with such .json files; relative to the configuration file."`
	Prefix  string                   `toml:"prefix" example:"bank." doc:"The prefix of its actions' names."`
	Tools   []string                 `toml:"tools" example:"invoices.*" doc:"The tools that are offered, by their names in the file; * matches any characters; empty: all."`
	URL     string                   `toml:"url" example:"https://bank.example.org" doc:"The agent's address; empty: the one in the file."`
	Headers map[string]secret.Secret `toml:"headers" example:"Authorization=env:BANK_AUTHORIZATION" doc:"Headers of every request."`
	Allow   []outbound.Peer          `toml:"allow" example:"127.0.0.1:8080" doc:"Private addresses, ranges or hosts that may be called."`
	Command []string                 `toml:"command" kind:"program" example:"/usr/local/bin/bank-tools, --json" doc:"A program that is run instead of calling a server, without a shell, in the blueprint's folder. It reads and writes JSON."`
	Env     map[string]secret.Secret `toml:"env" example:"BANK_KEY=env:BANK_KEY" doc:"Variables of the command's environment, which otherwise holds little more than PATH and HOME."`

	Permission string        `toml:"permission" default:"" oneof:"|everyone|moderators|admins" doc:"Who may use its tools. Empty: everyone may use tools marked as read-only, admins may use the rest. A file can require more, never less."`
	Confirm    string        `toml:"confirm" default:"changes" oneof:"changes|always|never" doc:"Which tools the user must confirm. changes: those not marked as read-only; always: all; never: only those for which the file requires it."`
	Show       bool          `toml:"show" default:"true" doc:"Show results that match their outputSchema to users as tables, metrics, charts or texts, by the action display."`
	Context    bool          `toml:"context" default:"false" doc:"Send the user and the place to the agent."`
	Timeout    time.Duration `toml:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long one call may take."`
	MaxBody    int64         `toml:"max_body" default:"262144" min:"1024" max:"16777216" doc:"The maximum size of an answer, in bytes."`
}

// Values of Source.Confirm besides "changes".
const (
	confirmAlways = "always"
	confirmNever  = "never"
)

func (s *Source) Check(fault func(text string, at ...any)) {
	if s.Prefix != "" && !txt.IsName(s.Prefix, 32, ".-") {
		fault("write a-z, 0-9, '_', '.' and '-', at most 32 letters", "prefix")
	}
	action.CheckPatterns(s.Tools, fault, "tools")
	_, wrong := outbound.ServerURL(s.URL)
	switch {
	case s.URL != "" && len(s.Command) > 0:
		fault("is set beside command; remove one of them", "url")
	case s.URL != "" && wrong != "":
		fault(wrong, "url")
	case len(s.Command) > 0 && s.Command[0] == "":
		fault("the program has no name", "command", 0)
	}
	outbound.CheckHeaders(s.Headers, fault)
	program.CheckEnv(s.Env, fault)
}

// offers reports whether the configuration wants a tool that the source can use.
func (s *Source) offers(tool string) bool { return len(s.Tools) == 0 || action.MatchAny(s.Tools, tool) }
