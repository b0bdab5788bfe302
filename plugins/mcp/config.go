package mcp

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"synthbot/core"
)

// Config is the table [plugins.mcp].
type Config struct {
	Servers []Server `toml:"server" doc:"An MCP server whose tools the bot may use."`
	Serve   Serving  `toml:"serve" doc:"What synthbot mcp offers to the program that starts it."`
}

// Server is one program that offers tools. Exactly one of Command and URL is set.
type Server struct {
	Name    string                 `toml:"name" required:"true" example:"files" doc:"The prefix of its actions: a-z, 0-9 and -, at most 24 characters."`
	Command []string               `toml:"command" example:"npx, -y, @modelcontextprotocol/server-filesystem, /srv/files" doc:"The program with its arguments, run without a shell; or set url."`
	URL     string                 `toml:"url" example:"https://tools.example.org/mcp" doc:"The address of its streamable HTTP endpoint; or set command."`
	Dir     string                 `toml:"dir" doc:"The working directory of the command; empty: the bot's."`
	Env     map[string]core.Secret `toml:"env" example:"GITHUB_TOKEN=env:GITHUB_TOKEN" doc:"Variables of the command's environment, which otherwise holds little more than PATH and HOME."`
	Headers map[string]core.Secret `toml:"headers" example:"X-Key=env:TOOLS_KEY" doc:"Headers of every request to url."`

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
	See  []core.Path `toml:"see" example:"discord/81384788765712384" doc:"Places whose history and memories it may search, with all places below them. Private chats must be listed themselves."`
	Send []core.Path `toml:"send" example:"discord/81384788765712384/1" doc:"Places that it may write to, with all places below them. Private chats must be listed themselves."`
}

// Names of servers and variables, and of headers.
var (
	serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,23}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// nobody closes a tool in Server.Permissions.
const nobody = "nobody"

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	seen := make(map[string]bool)
	for i := range c.Servers {
		name := plain(c.Servers[i].Name)
		if seen[name] {
			fault("another server is called so, or nearly so", "server", i, "name")
		}
		seen[name] = true
	}
}

// Check implements the configuration's own check.
func (s *Server) Check(fault func(text string, at ...any)) {
	if s.Name != "" && (!serverName.MatchString(s.Name) || strings.HasPrefix(s.Name, "message")) {
		fault("write a-z, 0-9 and -, at most 24 letters, and not message", "name")
	}
	s.checkWay(fault)
	for name := range s.Env {
		if !envName.MatchString(name) {
			fault("is no name of a variable", "env", name)
		}
	}
	for name := range s.Headers {
		if !headerName.MatchString(name) {
			fault("is no name of a header", "headers", name)
		}
	}
	s.checkPatterns(fault)
}

// checkWay checks how the server is reached.
func (s *Server) checkWay(fault func(text string, at ...any)) {
	switch {
	case len(s.Command) == 0 && s.URL == "":
		fault(`is missing; write command = ["PROGRAM", "ARGUMENT"], or url`, "command")
		return
	case len(s.Command) > 0 && s.URL != "":
		fault("stands beside command; one of the two is enough", "url")
		return
	case s.URL != "":
		s.checkURL(fault)
	case strings.TrimSpace(s.Command[0]) == "":
		fault("names no program", "command", 0)
	}
	if s.URL != "" && len(s.Env) > 0 {
		fault("is for a command, and this server has a url", "env")
	}
	if s.URL == "" && len(s.Headers) > 0 {
		fault("are for a url, and this server has a command", "headers")
	}
}

func (s *Server) checkURL(fault func(text string, at ...any)) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		fault("is no address; write it as https://host/path", "url")
	case u.User != nil || u.RawQuery != "":
		fault("no name, password or query belongs into it; put keys into headers", "url")
	}
}

func (s *Server) checkPatterns(fault func(text string, at ...any)) {
	check := func(pattern string, at ...any) {
		if _, err := path.Match(pattern, ""); err != nil {
			fault(fmt.Sprintf("%q is no pattern; write a tool's name, or a part of one with *", pattern), at...)
		}
	}
	for i, pattern := range s.Tools {
		check(pattern, "tools", i)
	}
	for pattern, who := range s.Permissions {
		check(pattern, "permissions", pattern)
		switch who {
		case string(core.PermissionEveryone), string(core.PermissionModerators), string(core.PermissionAdmins), nobody:
		default:
			fault(fmt.Sprintf("is %q; write everyone, moderators, admins or nobody", who), "permissions", pattern)
		}
	}
	for pattern := range s.Confirm {
		check(pattern, "confirm", pattern)
	}
}

// Check implements the configuration's own check.
func (s *Serving) Check(fault func(text string, at ...any)) {
	if !s.As.IsZero() && !s.As.IsPerson() {
		fault("is no person; write it as telegram/@user/1000", "as")
	}
	if s.As.IsZero() && len(s.See)+len(s.Send) > 0 {
		fault("is missing; name the person in whose name the program acts", "as")
	}
}

// offers reports whether a tool is to be offered at all.
func (s *Server) offers(tool string) bool {
	if len(s.Tools) == 0 {
		return true
	}
	for _, pattern := range s.Tools {
		if ok, _ := path.Match(pattern, tool); ok {
			return true
		}
	}
	return false
}

// permission is who may cause a tool; ok is false where nobody may.
func (s *Server) permission(tool string) (p core.Permission, ok bool) {
	who, _ := closest(s.Permissions, tool)
	switch {
	case who == nobody:
		return core.PermissionUndeclared, false
	case who != "":
		return core.Permission(who), true
	case s.Permission != "":
		return core.Permission(s.Permission), true
	}
	return core.PermissionAdmins, true
}

// closest finds what a table of patterns says about a tool: its name itself,
// else the longest pattern that matches, of equals the first by letters.
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
