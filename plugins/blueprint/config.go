package blueprint

import (
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/txt"
)

// Config is the table [plugins.blueprint].
type Config struct {
	Sources []Source `toml:"source" doc:"A blueprint whose tools the bot may use."`
	Serve   Serving  `toml:"serve" doc:"Which actions of the bot other programs may call over HTTP."`
	// Dir is what relative paths are relative to; "": the working directory.
	Dir string
}

// Source is a blueprint, or a folder of them, and how its agent is called: over HTTP, or,
// with Command, as a program.
type Source struct {
	Path    string                 `toml:"path" required:"true" example:"blueprints/bank.json" doc:"An ai-tools.json file, or a folder with such .json files; relative to the configuration file."`
	Prefix  string                 `toml:"prefix" example:"bank." doc:"The prefix of its actions' names."`
	Tools   []string               `toml:"tools" example:"invoices.*" doc:"The tools that are offered, by their names in the file; * matches any characters; empty: all."`
	URL     string                 `toml:"url" example:"https://bank.example.org" doc:"The agent's address; empty: the one in the file."`
	Headers map[string]core.Secret `toml:"headers" example:"Authorization=env:BANK_AUTHORIZATION" doc:"Headers of every request."`
	Allow   []outbound.Peer        `toml:"allow" example:"127.0.0.1:8080" doc:"Private addresses, ranges or hosts that may be called."`
	Command []string               `toml:"command" example:"/usr/local/bin/bank-tools, --json" doc:"A program that is run instead of calling a server, without a shell, in the blueprint's folder. It reads and writes JSON."`
	Env     map[string]core.Secret `toml:"env" example:"BANK_KEY=env:BANK_KEY" doc:"Variables of the command's environment, which otherwise holds little more than PATH and HOME."`

	Permission string        `toml:"permission" default:"" oneof:"|everyone|moderators|admins" doc:"Who may use its tools. Empty: everyone may use tools marked as read-only, admins may use the rest. A file can require more, never less."`
	Confirm    string        `toml:"confirm" default:"changes" oneof:"changes|always|never" doc:"Which tools the user must confirm. changes: those not marked as read-only; always: all; never: only those for which the file requires it."`
	Show       bool          `toml:"show" default:"true" doc:"Show results that match their outputSchema to users as tables, metrics, charts or texts, by the action display."`
	Context    bool          `toml:"context" default:"false" doc:"Send the user and the place to the agent."`
	Timeout    time.Duration `toml:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long one call may take."`
	MaxBody    int64         `toml:"max_body" default:"262144" min:"1024" max:"16777216" doc:"The maximum size of an answer, in bytes."`
}

var prefixRule = txt.Pattern(`^[a-z0-9_.-]{0,32}$`)

// Values of Source.Confirm besides "changes".
const (
	confirmAlways = "always"
	confirmNever  = "never"
)

// Check implements the configuration's own check.
func (s *Source) Check(fault func(text string, at ...any)) {
	if !prefixRule().MatchString(s.Prefix) {
		fault("write a-z, 0-9, '_', '.' and '-', at most 32 letters", "prefix")
	}
	action.CheckPatterns(s.Tools, fault, "tools")
	_, wrong := outbound.ServerURL(s.URL)
	switch {
	case s.URL != "" && len(s.Command) > 0:
		fault("there is a command already; give one of them", "url")
	case s.URL != "" && wrong != "":
		fault(wrong, "url")
	case len(s.Command) > 0 && s.Command[0] == "":
		fault("the program has no name", "command", 0)
	}
	outbound.CheckHeaders(s.Headers, fault)
	program.CheckEnv(s.Env, fault)
}

// offers reports whether a tool is wanted. What sends messages belongs to the interfaces:
// an exported catalogue contains it, too.
func (s *Source) offers(tool string) bool {
	return !s.sendsMessages(tool) && (len(s.Tools) == 0 || action.MatchAny(s.Tools, tool))
}

// sendsMessages reports whether a tool has a name that is reserved for an interface.
func (s *Source) sendsMessages(tool string) bool {
	return strings.HasPrefix(s.Prefix+actionName(tool), core.MessagePrefix)
}
