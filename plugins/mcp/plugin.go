// Package mcp makes the tools of MCP servers actions of the bot, and serves the bot's memories, history and messages to
// other programs, both by the Model Context Protocol: over stdio and streamable HTTP, with the official SDK.
//
// A server is not trusted. Its texts, including descriptions and errors, are data: they have a maximum length, are on
// one line in prompts, and are marked as foreign where a model reads them. The configuration decides who may call a
// tool and which calls must be confirmed. A server's hints matter only in that tools marked as read-only need no
// confirmation by default.
//
// Each configured server has one goroutine that owns its process or connection: it connects and lists the tools. When
// the server ends, floods or hangs, the goroutine removes the actions from the catalogue and starts the server again,
// after pauses that grow.
//
// Serve does not control the bot: it only reads and sends, in the places that the configuration lists.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/secret"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Plugin offers the tools of all configured servers.
type Plugin struct {
	host    core.Host
	servers []*server

	mu      sync.Mutex // serialises rebuild
	actions atomic.Pointer[[]core.Action]
}

// New makes the plugin. It starts nothing; Run does.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h}
	for _, conf := range c.Servers {
		p.servers = append(p.servers, newServer(h, conf, p.rebuild))
	}
	p.actions.Store(&[]core.Action{})
	return p, nil
}

func (p *Plugin) Name() string { return "mcp" }

// Actions implements core.Plugin: it returns the actions of the connected servers.
func (p *Plugin) Actions() []core.Action { return slices.Clone(*p.actions.Load()) }

// Run implements core.Runner: it keeps all servers running until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	var work sync.WaitGroup
	for _, s := range p.servers {
		work.Go(func() { s.run(ctx) })
	}
	work.Wait()
	return nil
}

// rebuild lists the actions of all connected servers again, and notifies the bot.
func (p *Plugin) rebuild() {
	p.mu.Lock()
	var entries []entry
	for _, s := range p.servers {
		list := s.entries.Load()
		if list != nil && s.conn.Load() != nil {
			entries = append(entries, *list...)
		}
	}
	list := nameActions(entries)
	p.actions.Store(&list)
	p.mu.Unlock()
	p.host.Changed()
}

// nameActions returns the actions of entries, sorted by name. Tools whose names the catalogue cannot
// tell apart get a suffix. The names depend only on the entries.
func nameActions(entries []entry) []core.Action {
	taken := make(map[string]int)
	for _, e := range entries {
		taken[action.Normal(e.action.Name)]++
	}
	list := make([]core.Action, 0, len(entries))
	for _, e := range entries {
		a := e.action
		if taken[action.Normal(a.Name)] > 1 && !e.own {
			a.Name = actionName(e.server, e.tool, true)
		}
		list = append(list, a)
	}
	sorting.Sort(list, func(a, b core.Action) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Config is the table [plugins.mcp].
type Config struct {
	Servers []Server `toml:"server" doc:"An MCP server whose tools the bot may use."`
	Serve   Serving  `toml:"serve" doc:"What synthbot mcp offers to the program that starts it."`
}

// Server is one program that offers tools. Exactly one of Command and URL is set.
type Server struct {
	Name    string                   `toml:"name" required:"true" example:"files" doc:"The prefix of its actions: a-z, 0-9 and -, at most 24 characters."`
	Command []string                 `toml:"command" kind:"program" example:"npx, -y, @modelcontextprotocol/server-filesystem, /srv/files" doc:"The program with its arguments, run without a shell; or set url. A relative path with a slash starts from dir or, without one, from the folder of the configuration file; a name without a slash is looked up in PATH."`
	URL     string                   `toml:"url" example:"https://tools.example.org/mcp" doc:"The address of its streamable HTTP endpoint; or set command."`
	Dir     string                   `toml:"dir" doc:"The working directory of the command, relative to the configuration file; empty: the bot's."`
	Env     map[string]secret.Secret `toml:"env" example:"GITHUB_TOKEN=env:GITHUB_TOKEN" doc:"Variables of the command's environment, which otherwise holds little more than PATH and HOME."`
	Headers map[string]secret.Secret `toml:"headers" example:"X-Key=env:TOOLS_KEY" doc:"Headers of every request to url."`

	Tools       []string          `toml:"tools" example:"search_*" doc:"The tools that are offered, by the server's names; * matches any characters; empty: all."`
	Permission  string            `toml:"permission" default:"admins" oneof:"everyone|moderators|admins" doc:"Who may use its actions."`
	Permissions map[string]string `toml:"permissions" example:"search_*=everyone" doc:"The same for single tools, by name or pattern: everyone, moderators, admins or nobody."`
	Confirm     map[string]bool   `toml:"confirm" example:"search_*=false" doc:"Whether the user must confirm, by name or pattern of the tool. By default they must, unless the server marks the tool as read-only."`

	Timeout   time.Duration `toml:"timeout" default:"60s" min:"1s" max:"15m" doc:"How long one call may take."`
	Start     time.Duration `toml:"start" default:"30s" min:"1s" max:"10m" doc:"How long the server may take to start."`
	MaxOutput int           `toml:"max_output" default:"12000" min:"1000" max:"60000" doc:"How many bytes of an output the model sees."`
	Media     bool          `toml:"media" default:"true" doc:"Send pictures and sounds that a tool returns to the chat."`
}

// Serving is what another program gets over synthbot mcp.
type Serving struct {
	As   core.Path   `toml:"as" example:"telegram/@user/1000" doc:"The user on whose behalf the program acts; empty: it has no access."`
	See  []core.Path `toml:"see" kind:"place" example:"discord/81384788765712384" doc:"Places whose history and memories it may search, with all places below them. Private chats must be listed themselves."`
	Send []core.Path `toml:"send" kind:"place" example:"discord/81384788765712384/1" doc:"Places that it may write to, with all places below them. Private chats must be listed themselves."`
}

var serverName = txt.Pattern(`^[a-z0-9][a-z0-9-]{0,23}$`)

// nobody is the value in Server.Permissions of a tool that is not offered.
const nobody = "nobody"

func (c *Config) Check(fault func(text string, at ...any)) {
	seen := make(map[string]bool)
	for i := range c.Servers {
		name := action.Normal(c.Servers[i].Name)
		if seen[name] {
			fault("another server has the same or nearly the same name", "server", i, "name")
		}
		seen[name] = true
	}
}

func (s *Server) Check(fault func(text string, at ...any)) {
	if s.Name != "" && (!serverName().MatchString(s.Name) || strings.HasPrefix(s.Name, "message")) {
		fault("write a-z, 0-9 and -, at most 24 letters, and not message", "name")
	}
	program.CheckEnv(s.Env, fault)
	outbound.CheckHeaders(s.Headers, fault)
	action.CheckPatterns(s.Tools, fault, "tools")
	for pattern, who := range s.Permissions {
		action.CheckPattern(pattern, fault, "permissions", pattern)
		if !slices.Contains([]string{"everyone", "moderators", "admins", nobody}, who) {
			fault(fmt.Sprintf("is %q; write everyone, moderators, admins or nobody", who), "permissions", pattern)
		}
	}
	for pattern := range s.Confirm {
		action.CheckPattern(pattern, fault, "confirm", pattern)
	}
	_, wrong := outbound.ServerURL(s.URL)
	switch {
	case len(s.Command) == 0 && s.URL == "":
		fault(`is missing; write command = ["PROGRAM", "ARGUMENT"], or url`, "command")
		return
	case len(s.Command) > 0 && s.URL != "":
		fault("is set beside command; remove one of them", "url")
		return
	case s.URL != "" && wrong != "":
		fault(wrong, "url")
	case s.URL == "" && strings.TrimSpace(s.Command[0]) == "":
		fault("names no program", "command", 0)
	}
	if s.URL != "" && len(s.Env) > 0 {
		fault("is for a command, and this server has a url", "env")
	}
	if s.URL == "" && len(s.Headers) > 0 {
		fault("are for a url, and this server has a command", "headers")
	}
}

func (s *Serving) Check(fault func(text string, at ...any)) {
	if !s.As.IsZero() && !s.As.IsPerson() {
		fault("is not a user; write it as telegram/@user/1000", "as")
	}
	if s.As.IsZero() && len(s.See)+len(s.Send) > 0 {
		fault("is missing; name the user on whose behalf the program acts", "as")
	}
}

// permission returns who may call a tool. ok is false if it is not offered.
func (s *Server) permission(tool string) (p core.Permission, ok bool) {
	who, _ := closest(s.Permissions, tool)
	who = cmp.Or(who, s.Permission, string(core.PermissionAdmins))
	if who == nobody || len(s.Tools) > 0 && !action.MatchAny(s.Tools, tool) {
		return "", false
	}
	return core.Permission(who), true
}

// closest returns the value for a tool in a table of patterns: that of its name,
// else of the longest pattern that matches, and of these the first in alphabetical order.
func closest[V any](table map[string]V, tool string) (found V, ok bool) {
	if v, ok := table[tool]; ok {
		return v, true
	}
	best := ""
	for pattern, v := range table {
		match, _ := path.Match(pattern, tool)
		if match && (!ok || len(pattern) > len(best) || len(pattern) == len(best) && pattern < best) {
			found, best, ok = v, pattern, true
		}
	}
	return found, ok
}
